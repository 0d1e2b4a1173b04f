//! Parties: addresses that name the same one, and ids that name nothing.

use crosstalk_envelope::Address;
use crosstalk_envelope::name::{name_key, same_name};
use crosstalk_envelope::unicode::is_hidden;

/// The longest id, in bytes.
const LONGEST_ID: usize = 200;

/// The names and addresses of the person whose store it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mine {
    addresses: Vec<String>,
}

impl Mine {
    /// These names and addresses.
    pub fn new(addresses: impl IntoIterator<Item = String>) -> Self {
        Self {
            addresses: addresses.into_iter().collect(),
        }
    }

    /// Whether an address is one of them.
    pub fn has(&self, address: &str) -> bool {
        self.addresses.iter().any(|a| is_same_party(a, address))
    }
}

/// Whether two addresses name the same party ([`same_name`]).
pub fn is_same_party(one: &str, other: &str) -> bool {
    same_name(one, other)
}

/// An address in the form in which equal parties are equal ([`name_key`]).
pub fn party(address: &str) -> String {
    name_key(address)
}

/// Whether a sender may answer for the one who was asked: the same party, or a simple name that is the same as the scheme
/// of the other's URL. A model that was asked as `chatgpt://thread/x` signs its answer `CHATGPT`.
///
/// ```
/// use crosstalk_protocol::store::may_answer;
/// assert!(may_answer("chatgpt://thread/x", "ChatGPT") && may_answer("Claude", "claude://chat/7"));
/// assert!(!may_answer("chatgpt://thread/x", "chatgpt://thread/y") && !may_answer("CLAUDE", "MALLORY"));
/// ```
pub fn may_answer(asked: &str, sender: &str) -> bool {
    let (one, other) = (Address::split(asked), Address::split(sender));
    match (one.scheme(), other.scheme()) {
        (Some(scheme), None) => same_name(scheme, sender),
        (None, Some(scheme)) => same_name(scheme, asked),
        _ => is_same_party(asked, sender),
    }
}

/// Whether what stands where an id belongs names nothing: it is empty, has white space, hidden characters, brackets,
/// quotes or an ellipsis in it (`<message id>`, `...`), or is longer than any id. Other ids are opaque text.
///
/// ```
/// use crosstalk_protocol::store::is_placeholder;
/// assert!(is_placeholder("<as above>") && is_placeholder("01J9…") && is_placeholder("the same"));
/// assert!(!is_placeholder("01J9J3D3M6A4M3WQX8G1ZQ0S7K") && !is_placeholder("ticket-7"));
/// ```
pub fn is_placeholder(id: &str) -> bool {
    let is_odd =
        |c: char| c.is_whitespace() || c.is_control() || is_hidden(c) || "<>{}[]()\"`…".contains(c);
    // `last` is what people type for the latest message.
    let is_word = id.eq_ignore_ascii_case("last");
    id.is_empty() || is_word || id.len() > LONGEST_ID || id.contains("...") || id.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_names_nothing() {
        let long = "x".repeat(201);
        let odd = [
            "",
            " ",
            "a b",
            "a\tb",
            "a\u{7}b",
            "a\u{202e}b",
            "a\u{200b}b",
            "a\u{e0041}b",
            "<id>",
            "{id}",
            "[id]",
            "(id)",
            "\"id\"",
            "01J…",
            "01J...",
            "`01J`",
            "last",
            &long,
        ];
        for id in odd {
            assert!(is_placeholder(id), "{id:?}");
        }
        let ids = ["M1", "äö", "a.b", "a..b", "t/7#x", "'x'", "msg-2025:10"];
        for id in ids.into_iter().chain([&*"x".repeat(200)]) {
            assert!(!is_placeholder(id), "{id:?}");
        }
    }

    #[test]
    fn party_answers_only_for_itself() {
        for (asked, sender, may) in [
            ("ANN", "ann", true),
            ("ANN", "BOB", false),
            ("chatgpt://thread/x", "CHATGPT", true),
            ("ChatGPT", "chatgpt://thread/x", true),
            ("chatgpt://thread/x", "chatgpt://thread/x", true),
            ("chatgpt://thread/x", "CHATGPT://thread/x", true),
            ("chatgpt://thread/x", "chatgpt://thread/X", false),
            ("chatgpt://thread/x", "chatgpt://thread/y", false),
            ("chatgpt://thread/x", "claude", false),
        ] {
            assert_eq!(may_answer(asked, sender), may, "{asked} {sender}");
            assert_eq!(may_answer(sender, asked), may, "{sender} {asked}");
        }
    }
}
