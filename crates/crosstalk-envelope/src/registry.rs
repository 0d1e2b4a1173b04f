//! Names on the wire: intents, namespaces, schemes, error codes, kinds of personal data and rules.
//!
//! The tables are generated from `spec/registry/*.toml`; this module gives them their types.

#[rustfmt::skip]
mod generated;

use crate::words;
pub use generated::{
    CARD_ISSUERS, DENIED_KEYS, ErrorCode, IBAN_LENGTHS, Intent, KEPT_KEYS, KEPT_NAMESPACES,
    LABEL_BEFORE, LABEL_BEHIND, LEGACY_INTENTS, NAMESPACES, NATIONAL_NUMBERS, NationalCheck,
    PHONE_LABELS, Pii, PiiKind, Priority, SCHEMES, VERSION_WORDS, rule,
};
use std::fmt;
use std::ops::RangeInclusive;

/// A numbered rule of `spec/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its id, such as `ENV-022`.
    pub id: &'static str,
    /// The code that a violation carries.
    pub code: Option<ErrorCode>,
    /// The rule in a sentence.
    pub title: &'static str,
    /// What to do about a violation.
    pub help: &'static str,
    /// A repair by this rule leaves text out: what was repaired so is never verified (SIG-012).
    pub drops: bool,
}

/// A META namespace of the registry.
#[derive(Debug)]
pub struct Namespace {
    /// Its name, in lower case.
    pub name: &'static str,
    /// What it is for.
    pub summary: &'static str,
    /// It may stand more than once in an envelope: one block per hop.
    pub repeats: bool,
    /// It is written by hops and left out of the canonical form.
    pub hop: bool,
    /// Its keys are this prefix and a number.
    pub numbered: Option<(&'static str, ValueKind)>,
    /// Its named keys.
    pub keys: &'static [Key],
}

impl Namespace {
    /// The namespace with this name, if the registry has it.
    ///
    /// ```
    /// use crosstalk_envelope::registry::Namespace;
    /// assert!(Namespace::find("audit").is_some_and(|n| n.repeats && n.hop));
    /// assert!(Namespace::find("Audit").is_none());
    /// ```
    pub fn find(name: &str) -> Option<&'static Self> {
        NAMESPACES.iter().find(|n| n.name == name)
    }

    /// How the values of this key are read, if the registry has the key.
    pub fn kind_of(&self, key: &str) -> Option<(ValueKind, &'static [&'static str])> {
        if let Some(known) = self.keys.iter().find(|k| k.name == key) {
            return Some((known.kind, known.values));
        }
        let (prefix, kind) = self.numbered?;
        let number = key.strip_prefix(prefix)?;
        let counts = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        counts.then_some((kind, &[]))
    }
}

/// A key of a namespace.
#[derive(Debug)]
pub struct Key {
    /// Its name, case-sensitive.
    pub name: &'static str,
    /// How its value is read.
    pub kind: ValueKind,
    /// The known words of a [`ValueKind::Word`] or [`ValueKind::Words`].
    pub values: &'static [&'static str],
    /// It is written by hops and left out of the canonical form.
    pub hop: bool,
}

/// How a META value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// One of a list of words.
    Word,
    /// Some of a list of words.
    Words,
    /// A list of texts: a flow, or comma-separated.
    List,
    /// A poll's options: a flow, or separated by `|`.
    Options,
    /// A point in time.
    Time,
    /// A consent, with or without its time.
    Consent,
    /// An address.
    Address,
    /// A list of addresses.
    Addresses,
    /// Addresses with arrows between them.
    Route,
    /// An attachment reference.
    Attachment,
    /// A code of the error taxonomy.
    ErrorCode,
    /// A whole number.
    Integer,
    /// `sha256:` and 64 hex digits.
    Digest,
    /// Base64 with padding.
    Base64,
    /// A public key as its record.
    Key,
}

/// An issuer of payment cards (RED-012).
#[derive(Debug)]
pub struct CardIssuer {
    /// Its name.
    pub name: &'static str,
    /// The first digits, as the first number of a range.
    pub first: u32,
    /// The last number of that range, with as many digits.
    pub last: u32,
    /// How many digits its cards have.
    pub lengths: RangeInclusive<usize>,
}

/// A national number of people (RED-015).
#[derive(Debug)]
pub struct NationalNumber {
    /// How its check digits are computed.
    pub check: NationalCheck,
    /// The weights of its digits, in the order in which the check uses them.
    pub weights: &'static [&'static [u64]],
    /// The letters that stand for a remainder, in the order in which the check uses them.
    pub alphabets: &'static [&'static str],
    /// The ways to write it that need no label.
    pub forms: &'static [&'static str],
    /// The ways to write it that need a label.
    pub labelled: &'static [&'static str],
    /// The labels.
    pub labels: &'static [&'static str],
}

/// An address scheme of the registry.
#[derive(Debug)]
pub struct Scheme {
    /// Its name, in lower case.
    pub name: &'static str,
    /// How its addresses are written.
    pub form: SchemeForm,
    /// Whom it reaches.
    pub kind: SchemeKind,
    /// What it is for.
    pub summary: &'static str,
}

/// How the addresses of a scheme are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemeForm {
    /// `scheme://authority/path`.
    Authority,
    /// `scheme:rest`.
    Opaque,
}

words! {
    /// Whom or what an address reaches.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum SchemeKind {
        /// A person or a queue of people.
        Person = "person",
        /// An AI assistant.
        Assistant = "assistant",
        /// A mail address.
        Mail = "mail",
        /// A phone number.
        Phone = "phone",
        /// A tool.
        Tool = "tool",
        /// A room, a channel or a user of a chat system.
        Room = "room",
        /// A scheme that the registry does not have.
        Custom = "custom",
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the enum is generated from the registry, which names no default"
)]
impl Default for Priority {
    fn default() -> Self {
        Self::Normal
    }
}

impl Priority {
    /// The one that a word means; a word that the registry does not have counts as normal.
    pub fn parse(word: Option<&str>) -> Self {
        word.and_then(Self::from_wire).unwrap_or_default()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for PiiKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_holds_what_the_draft_names() {
        assert_eq!(ErrorCode::ALL.len(), 8);
        assert_eq!(Intent::ALL.len(), 11);
        assert_eq!(LEGACY_INTENTS.len(), 5);
        assert_eq!(ErrorCode::TooLarge.http_status(), 413);
        assert_eq!(
            ErrorCode::from_wire("E-RATE").map(ErrorCode::exit_code),
            Some(17)
        );
    }

    #[test]
    fn numbered_keys_are_known_by_their_prefix() {
        let attachments = Namespace::find("attachments").unwrap();
        assert!(attachments.kind_of("A12").is_some());
        assert!(attachments.kind_of("A").is_none());
        assert!(attachments.kind_of("B1").is_none());
    }
}
