//! The electorate: the invited voters, and the voter of each ballot (POL-002, POL-006).

use crate::store::party;
use crosstalk_envelope::Address;
use crosstalk_envelope::registry::SchemeKind;
use std::collections::BTreeMap;

/// The voter whose ballot a message is.
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

/// Which address a simple name stands for, by what a relay knows: the keys are in upper case.
pub type VoterNames = BTreeMap<String, String>;

/// Those who are invited, and who speaks for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Electorate {
    /// Each once, in the order in which they are named.
    pub(super) invited: Vec<String>,
    /// Their places, by the form in which equal parties are equal.
    exact: BTreeMap<String, usize>,
    /// The places of URLs by their scheme, in the form of a name.
    schemes: BTreeMap<String, Vec<usize>>,
    /// What names stand for, where that is known: then nobody counts for an address that is only alike.
    names: Option<VoterNames>,
}

impl Electorate {
    pub(super) fn of<'a>(named: impl Iterator<Item = &'a str>, names: Option<&VoterNames>) -> Self {
        let mut all = Self {
            names: names.cloned(),
            ..Self::default()
        };
        for address in named {
            let (place, identity) = (all.invited.len(), all.identity(address));
            if all.exact.contains_key(&identity) {
                continue;
            }
            all.exact.insert(identity, place);
            if let Some(scheme) = Address::split(address).scheme() {
                let places = all.schemes.entry(party(scheme));
                places.or_default().push(place);
            }
            all.invited.push(address.to_owned());
        }
        all
    }

    /// The form of an address in which equal parties are equal, also those that a name stands for.
    fn identity(&self, address: &str) -> String {
        let own = party(address);
        let stands_for = self.names.as_ref().and_then(|names| names.get(&own));
        stands_for.map_or(own, |address| party(address))
    }

    /// The invited names that stand for an address, as `NAME=ADDRESS`.
    pub(super) fn named(&self) -> Vec<String> {
        let known = |name: &String| {
            let address = self.names.as_ref()?.get(&party(name))?;
            Some(format!("{name}={address}"))
        };
        self.invited.iter().filter_map(known).collect()
    }

    /// The voter whose ballot a message of a sender is.
    pub(super) fn voter(&self, sender: &str) -> Voter {
        if let Some(place) = self.exact.get(&self.identity(sender)) {
            return Voter::Exact(*place);
        }
        // Nobody speaks for a person but under that person's own address.
        if self.names.is_some() || is_human(sender) {
            return Voter::Uninvited;
        }
        let is_person = |place: &usize| self.invited.get(*place).is_some_and(|i| is_human(i));
        let places = match Address::split(sender).scheme() {
            Some(scheme) => self.exact.get(&party(scheme)).map(std::slice::from_ref),
            None => self.schemes.get(&party(sender)).map(Vec::as_slice),
        };
        let places = places.unwrap_or_default().iter();
        let mut alike = places.filter(|p| !is_person(p));
        match (alike.next(), alike.next()) {
            (Some(place), None) => Voter::Alike(*place),
            (Some(_), Some(_)) => Voter::Unclear,
            (None, _) => Voter::Uninvited,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_means_an_address_only_if_there_is_one() {
        let electorate = Electorate::of(
            [
                "CLAUDE",
                "claude",
                "chatgpt://thread/x",
                "human://kalle.example/inbox",
                "gemini://a",
                "gemini://b",
            ]
            .into_iter(),
            None,
        );
        assert_eq!(electorate.invited.len(), 5);
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
            assert_eq!(electorate.voter(sender), who, "{sender}");
        }
    }

    #[test]
    fn where_names_are_known_nobody_else_counts() {
        let names = VoterNames::from([("CLAUDE".to_owned(), "claude://code/bob".to_owned())]);
        let asked = ["claude", "claude://code/bob", "gemini://x/y"];
        let electorate = Electorate::of(asked.into_iter(), Some(&names));
        assert_eq!(electorate.invited, ["claude", "gemini://x/y"]);
        assert_eq!(electorate.named(), ["claude=claude://code/bob"]);
        for (sender, who) in [
            ("CLAUDE", Voter::Exact(0)),
            ("claude://code/bob", Voter::Exact(0)),
            ("claude://evil/m", Voter::Uninvited),
            ("GEMINI", Voter::Uninvited),
            ("gemini://x/y", Voter::Exact(1)),
        ] {
            assert_eq!(electorate.voter(sender), who, "{sender}");
        }
    }
}
