//! Who is invited, and whose ballot a message is (POL-002, POL-006).

use crate::store::{is_same_party, may_answer};
use crosstalk_envelope::Address;
use crosstalk_envelope::registry::SchemeKind;

/// Whose ballot a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voter {
    /// This one's, under the address that is invited.
    Exact(usize),
    /// This one's, by a simple name that is the scheme of the address, or the other way round.
    Alike(usize),
    /// It could be that of several.
    Unclear,
    /// That of nobody who is invited.
    Uninvited,
}

/// Whether an address is that of a person.
pub(super) fn is_human(address: &str) -> bool {
    Address::split(address).kind() == Some(SchemeKind::Person)
}

/// Those who are invited, each once, in the order in which they are named.
pub(super) fn electorate<'a>(named: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut invited: Vec<String> = Vec::new();
    for address in named {
        if !invited.iter().any(|i| is_same_party(i, address)) {
            invited.push(address.to_owned());
        }
    }
    invited
}

/// Whose ballot a message of a sender is.
pub(super) fn voter(invited: &[String], sender: &str) -> Voter {
    let exact = invited.iter().position(|i| is_same_party(i, sender));
    if let Some(place) = exact {
        return Voter::Exact(place);
    }
    // Nobody speaks for a person but under that person's own address.
    let is_alike = |i: &str| may_answer(i, sender) && !is_human(i) && !is_human(sender);
    let mut alike = invited.iter().enumerate().filter(|(_, i)| is_alike(i));
    match (alike.next(), alike.next()) {
        (Some((place, _)), None) => Voter::Alike(place),
        (Some(_), Some(_)) => Voter::Unclear,
        (None, _) => Voter::Uninvited,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_taken_for_an_address_only_if_there_is_one() {
        let invited = electorate(
            [
                "CLAUDE",
                "claude",
                "chatgpt://thread/x",
                "human://kalle.example/inbox",
                "gemini://a",
                "gemini://b",
            ]
            .into_iter(),
        );
        assert_eq!(invited.len(), 5);
        for (sender, who) in [
            ("Claude", Voter::Exact(0)),
            ("claude://chat/7", Voter::Alike(0)),
            ("chatgpt://thread/x", Voter::Exact(1)),
            ("ChatGPT", Voter::Alike(1)),
            ("chatgpt://thread/y", Voter::Uninvited),
            ("chatgpt://thread/X", Voter::Uninvited),
            ("HUMAN", Voter::Uninvited),
            ("human://mallory.example/inbox", Voter::Uninvited),
            ("Gemini", Voter::Unclear),
            ("gemini://b", Voter::Exact(4)),
            ("MALLORY", Voter::Uninvited),
            ("", Voter::Uninvited),
        ] {
            assert_eq!(voter(&invited, sender), who, "{sender}");
        }
    }
}
