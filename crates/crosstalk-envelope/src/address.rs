//! Addresses: simple names and URLs, kept byte for byte.
//!
//! Implements ADR-001 to ADR-009 and LNT-008.

use crate::name::unseen;
use crate::registry::{Rule, SCHEMES, SchemeForm, SchemeKind, rule};
use std::fmt;

/// The schemes that a program knows: those of the registry and those of its configuration (ADR-008).
///
/// ```
/// use crosstalk_envelope::{Address, Schemes, registry::{SchemeForm, SchemeKind}};
/// let mut schemes = Schemes::default();
/// schemes.add("acme", SchemeForm::Authority, SchemeKind::Tool);
/// let address = Address::split("acme://printer");
/// assert_eq!(schemes.kind(&address), Some(SchemeKind::Tool));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Schemes {
    added: Vec<(String, SchemeForm, SchemeKind)>,
}

impl Schemes {
    /// Adds a scheme, or gives one of the registry another meaning.
    pub fn add(&mut self, name: impl Into<String>, form: SchemeForm, kind: SchemeKind) {
        self.added
            .insert(0, (name.into().to_ascii_lowercase(), form, kind));
    }

    /// The form and kind of a scheme, without regard to case.
    pub fn find(&self, scheme: &str) -> Option<(SchemeForm, SchemeKind)> {
        let added = self
            .added
            .iter()
            .find(|(name, ..)| name.eq_ignore_ascii_case(scheme));
        added.map(|(_, form, kind)| (*form, *kind)).or_else(|| {
            SCHEMES
                .iter()
                .find(|s| s.name.eq_ignore_ascii_case(scheme))
                .map(|s| (s.form, s.kind))
        })
    }

    /// The kind of party that an address reaches; nothing for a simple name, [`SchemeKind::Custom`] for an unknown scheme.
    pub fn kind(&self, address: &Address<'_>) -> Option<SchemeKind> {
        Some(
            self.find(address.scheme()?)
                .map_or(SchemeKind::Custom, |(_, kind)| kind),
        )
    }

    /// Reads an address.
    ///
    /// # Errors
    /// An [`AddressError`] if it is empty, has control characters, or breaks the form of its scheme.
    pub fn parse<'a>(&self, text: &'a str) -> Result<Address<'a>, AddressError> {
        let address = Address::split(text);
        let fault = address.fault(self);
        fault.map_or(Ok(address), |(rule, message)| {
            Err(AddressError { rule, message })
        })
    }
}

/// An address: the text as it was written, and its parts.
///
/// ```
/// use crosstalk_envelope::{Address, registry::SchemeKind};
/// let address = Address::parse("human://dr.smith@clinic.example/inbox").unwrap();
/// assert_eq!(address.kind(), Some(SchemeKind::Person));
/// assert_eq!(address.user(), Some("dr.smith"));
/// assert_eq!(address.host(), Some("clinic.example"));
/// assert_eq!(address.to_string(), "human://dr.smith@clinic.example/inbox");
/// assert!(Address::parse("BROTHER").unwrap().is_name());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address<'a> {
    text: &'a str,
    /// Length of the scheme; 0 for a simple name.
    scheme: usize,
}

impl<'a> Address<'a> {
    /// Reads an address. A text without a scheme is a simple name.
    ///
    /// # Errors
    /// An [`AddressError`] if it is empty, has control characters, or breaks the form of its scheme.
    pub fn parse(text: &'a str) -> Result<Self, AddressError> {
        Schemes::default().parse(text)
    }

    /// Takes a text for an address without judging it.
    pub fn split(text: &'a str) -> Self {
        Self {
            text,
            scheme: scheme_length(text),
        }
    }

    fn fault(&self, schemes: &Schemes) -> Option<(&'static Rule, &'static str)> {
        let text = self.text;
        if text.trim().is_empty() || text.chars().any(char::is_control) {
            return Some((
                &rule::ADDRESS_EMPTY,
                "the address is empty or has control characters",
            ));
        }
        if !self.is_name() && text.contains(char::is_whitespace) {
            return Some((&rule::ADDRESS_SPACE, "the URL has white space in it"));
        }
        if unseen(text).is_some() {
            return Some((
                &rule::ADDRESS_UNSEEN,
                "the address has a blank of Unicode or a variation selector in it",
            ));
        }
        let scheme = self.scheme()?;
        if !has_whole_escapes(text) {
            return Some((
                &rule::ADDRESS_PERCENT,
                "a percent sign is not followed by two hex digits",
            ));
        }
        match schemes.find(scheme) {
            Some((SchemeForm::Authority, _)) if self.authority().is_none_or(str::is_empty) => {
                Some((
                    &rule::ADDRESS_AUTHORITY,
                    "the URL has no authority behind `//`",
                ))
            }
            Some((_, SchemeKind::Mail))
                if !is_mailbox(self.path()) || self.authority().is_some() =>
            {
                Some((
                    &rule::ADDRESS_MAIL,
                    "the mail address has no local part or no domain",
                ))
            }
            Some((_, SchemeKind::Phone))
                if !is_phone(self.path()) || self.authority().is_some() =>
            {
                Some((
                    &rule::ADDRESS_PHONE,
                    "the phone number has no digits or other characters in it",
                ))
            }
            _ => None,
        }
    }

    /// The text as it was written.
    pub const fn as_str(&self) -> &'a str {
        self.text
    }

    /// Whether it is a simple name, for a person to resolve.
    pub const fn is_name(&self) -> bool {
        self.scheme == 0
    }

    /// The scheme of a URL, as it was written.
    pub fn scheme(&self) -> Option<&'a str> {
        self.text.get(..self.scheme).filter(|s| !s.is_empty())
    }

    /// The kind of party that a URL reaches, by the registry; [`SchemeKind::Custom`] for an unknown scheme.
    pub fn kind(&self) -> Option<SchemeKind> {
        Schemes::default().kind(self)
    }

    /// The text behind the scheme and its colon.
    fn rest(&self) -> &'a str {
        let start = if self.is_name() { 0 } else { self.scheme + 1 };
        self.text.get(start..).unwrap_or("")
    }

    /// The rest up to the query and the fragment.
    fn hierarchy(&self) -> &'a str {
        if self.is_name() {
            self.text
        } else {
            before(self.rest(), b"?#")
        }
    }

    /// The text between `//` and the path.
    pub fn authority(&self) -> Option<&'a str> {
        self.rest()
            .strip_prefix("//")
            .filter(|_| !self.is_name())
            .map(|r| before(r, b"/?#"))
    }

    /// The text before the `@` of the authority or of a mail address.
    pub fn user(&self) -> Option<&'a str> {
        self.at_sign().map(|(user, _)| user)
    }

    /// The host: the authority, or the domain of a mail address, without user and port.
    pub fn host(&self) -> Option<&'a str> {
        let host = match (self.at_sign(), self.authority()) {
            (Some((_, host)), _) => host,
            (None, Some(authority)) => authority,
            (None, None) => return None,
        };
        let port = host
            .rsplit_once(':')
            .filter(|(_, p)| p.bytes().all(|b| b.is_ascii_digit()));
        Some(port.map_or(host, |(host, _)| host))
    }

    fn at_sign(&self) -> Option<(&'a str, &'a str)> {
        match (self.authority(), self.kind()) {
            (Some(authority), _) => authority.rsplit_once('@'),
            (None, Some(SchemeKind::Mail)) => self.path().rsplit_once('@'),
            _ => None,
        }
    }

    /// The path behind the authority, or all of an opaque address or a name.
    pub fn path(&self) -> &'a str {
        let skip = self.authority().map_or(0, |a| a.len() + 2);
        self.hierarchy().get(skip..).unwrap_or("")
    }

    /// The text behind `?`.
    pub fn query(&self) -> Option<&'a str> {
        let rest = self.rest().get(self.hierarchy().len()..)?;
        rest.strip_prefix('?').map(|r| before(r, b"#"))
    }

    /// The text behind `#`.
    pub fn fragment(&self) -> Option<&'a str> {
        self.rest()
            .split_once('#')
            .filter(|_| !self.is_name())
            .map(|(_, fragment)| fragment)
    }
}

impl fmt::Display for Address<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)
    }
}

/// Why a text is not an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} ({}): {}", .rule.id, .rule.help)]
pub struct AddressError {
    /// The rule that it breaks.
    pub rule: &'static Rule,
    /// The fault, as a sentence.
    pub message: &'static str,
}

/// The length of the scheme that a text begins with, or 0.
fn scheme_length(text: &str) -> usize {
    let is_scheme = |b: u8| crate::grammar::is_name_byte(b) && b != b'_' || b == b'+';
    let length = text.bytes().take_while(|b| is_scheme(*b)).count();
    let begins_well = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    match text.as_bytes().get(length..) {
        // A colon and a space make a sentence, not a URL.
        Some([b':', b' ' | b'\t', ..]) => 0,
        Some([b':', ..]) if begins_well => length,
        _ => 0,
    }
}

/// The text before the first of some ASCII marks.
fn before<'t>(text: &'t str, marks: &[u8]) -> &'t str {
    let end = text.bytes().position(|b| marks.contains(&b));
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

/// Whether two hex digits follow each percent sign.
pub fn has_whole_escapes(text: &str) -> bool {
    text.split('%').skip(1).all(|tail| {
        let hex = tail.as_bytes().first_chunk::<2>();
        hex.is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit))
    })
}

fn is_mailbox(text: &str) -> bool {
    text.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty()
            && !domain.is_empty()
            && !domain.starts_with('.')
            && !domain.ends_with('.')
            && !domain.contains("..")
            && !domain.contains('/')
    })
}

fn is_phone(text: &str) -> bool {
    let number = text.split(';').next().unwrap_or("");
    let digits = number.strip_prefix('+').unwrap_or(number);
    digits.bytes().any(|b| b.is_ascii_digit())
        && digits
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.' | b'(' | b')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_draft_is_read_and_printed_back() {
        for (text, kind, host) in [
            (
                "human://support.acme.com/queue/billing",
                SchemeKind::Person,
                "support.acme.com",
            ),
            ("human://+1-555-0100", SchemeKind::Person, "+1-555-0100"),
            (
                "claude://session/abc123?model=opus",
                SchemeKind::Assistant,
                "session",
            ),
            (
                "chatgpt://thread/xyz789?workspace=default",
                SchemeKind::Assistant,
                "thread",
            ),
            (
                "email:user@domain.com?subject=AI+Crosstalk",
                SchemeKind::Mail,
                "domain.com",
            ),
            ("mcp://tool@host", SchemeKind::Tool, "host"),
            ("matrix://server/room", SchemeKind::Room, "server"),
            ("acme://x:8080/y#z", SchemeKind::Custom, "x"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.to_string(), text);
            assert_eq!(address.kind(), Some(kind), "{text}");
            assert_eq!(address.host(), Some(host), "{text}");
        }
        assert_eq!(
            Address::parse("tel:+44-20-7123-4567").unwrap().path(),
            "+44-20-7123-4567"
        );
    }

    #[test]
    fn names_are_names_and_broken_urls_are_refused() {
        for name in ["CLAUDE", "BROTHER AI", "Jürgen", "a→b: c", "Note: this"] {
            assert!(Address::parse(name).unwrap().is_name(), "{name}");
        }
        for (text, rule) in [
            ("", &rule::ADDRESS_EMPTY),
            ("  ", &rule::ADDRESS_EMPTY),
            ("human://", &rule::ADDRESS_AUTHORITY),
            ("claude:session", &rule::ADDRESS_AUTHORITY),
            ("email:nobody", &rule::ADDRESS_MAIL),
            ("email:a@b..c", &rule::ADDRESS_MAIL),
            ("tel:call-me", &rule::ADDRESS_PHONE),
            ("claude://a b", &rule::ADDRESS_SPACE),
            ("claude://a%2", &rule::ADDRESS_PERCENT),
            ("CLAUDE\u{fe0f}", &rule::ADDRESS_UNSEEN),
            ("CLAUDE\u{3000}", &rule::ADDRESS_UNSEEN),
            ("claude://a\u{fe0f}", &rule::ADDRESS_UNSEEN),
            ("claude://a\u{3000}", &rule::ADDRESS_SPACE),
        ] {
            assert_eq!(Address::parse(text).unwrap_err().rule, rule, "{text}");
        }
    }
}
