//! Entries of the log (AUD-001, AUD-002): what is public of them, and what is kept beside.
//!
//! A leaf is one line. It names no address and no word of a message: only digests, a time, the kind and the id of the
//! message. Its recipient, or its rejection, is the [`EventDetail`], of which the leaf has a salted digest: once detail
//! and salt are erased, nobody finds out what they were by trying.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::words;
use std::fmt;

/// The prefix of every leaf.
const PREAMBLE: &str = "crosstalk-log-v1";
/// The prefix of the digest of a detail.
const DETAIL: &str = "crosstalk-detail-v1";

words! {
    /// The kind of an event.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum EventKind {
        /// A message was accepted.
        Accepted = "accepted",
        /// A message was not taken.
        Refused = "refused",
        /// A message was handed to a recipient.
        Delivered = "delivered",
        /// A delivery to a recipient became a dead letter.
        Failed = "failed",
        /// A message waits for a person.
        Held = "held",
        /// A person let it go on.
        Approved = "approved",
        /// A person stopped it.
        Declined = "declined",
        /// Somebody gave their consent, or created a token.
        Granted = "granted",
        /// A consent was passed on.
        Transferred = "transferred",
        /// A consent, a key, a permission or a token was revoked.
        Revoked = "revoked",
        /// The text of a message was erased.
        Erased = "erased",
        /// A conversation was closed.
        Closed = "closed",
    }
}

/// Something that goes into the log.
///
/// ```
/// use crosstalk_envelope::Timestamp;
/// use crosstalk_protocol::audit::{EventDetail, Event, EventKind};
/// let at = Timestamp::parse("2026-11-16T12:00:00Z").unwrap();
/// let event = Event {
///     id: Some("01KA5DQ5M0T4"),
///     detail: Some(EventDetail::default().with("to", "agent://acme.example/claude")),
///     ..Event::new(EventKind::Delivered, at)
/// };
/// let leaf = event.leaf(&[7; 16]).to_string();
/// assert!(leaf.starts_with("crosstalk-log-v1 delivered 2026-11-16T12:00:00Z - - sha256:"));
/// assert!(!leaf.contains("acme"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'e> {
    /// The kind of the event.
    pub kind: EventKind,
    /// When.
    pub at: Timestamp,
    /// The message that it happened to, where there is one.
    pub id: Option<&'e str>,
    /// The digest of its canonical form.
    pub canonical: Option<Digest>,
    /// The SHA-256 of the exact text.
    pub raw: Option<Digest>,
    /// To whom, by whom, why: kept beside the leaf.
    pub detail: Option<EventDetail>,
}

impl<'e> Event<'e> {
    /// An event that says nothing but what and when.
    pub const fn new(kind: EventKind, at: Timestamp) -> Self {
        Self {
            kind,
            at,
            id: None,
            canonical: None,
            raw: None,
            detail: None,
        }
    }

    /// Its leaf. The salt is for the digest of the detail, and unused where there is none.
    pub fn leaf(&self, salt: &[u8]) -> Leaf {
        Leaf {
            kind: self.kind,
            at: self.at,
            canonical: self.canonical,
            raw: self.raw,
            detail: self.detail.as_ref().map(|d| d.digest(salt)),
            id: self.id.map(str::to_owned),
        }
    }
}

/// To whom, by whom, why: names and values, which are written in one line.
///
/// ```
/// use crosstalk_protocol::audit::EventDetail;
/// let detail = EventDetail::default().with("to", "Dr. Ada").with("by", "inbox");
/// assert_eq!(detail.to_string(), "to=Dr.%20Ada by=inbox");
/// assert_eq!(EventDetail::parse("to=Dr.%20Ada by=inbox"), Some(detail));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventDetail(Vec<(String, String)>);

impl EventDetail {
    /// The same, with one thing more.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.0.push((name.to_owned(), value.to_owned()));
        self
    }

    /// What it says, in order.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(n, v)| (n.as_str(), v.as_str()))
    }

    /// What it says under a name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs().find(|(n, _)| *n == name).map(|(_, v)| v)
    }

    /// Reads what [`Display`](fmt::Display) wrote, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let pair = |word: &str| {
            let (name, value) = word.split_once('=')?;
            Some((unescape(name)?, unescape(value)?))
        };
        let pairs = text.split(' ').map(pair).collect::<Option<Vec<_>>>()?;
        let detail = Self(pairs);
        (detail.to_string() == text).then_some(detail)
    }

    /// Its salted digest, as a leaf has it.
    pub fn digest(&self, salt: &[u8]) -> Digest {
        detail_digest(salt, &self.to_string())
    }
}

/// The salted digest of a detail as it is written.
pub(super) fn detail_digest(salt: &[u8], written: &str) -> Digest {
    let salt = crosstalk_envelope::base64::encode(salt);
    Digest::of(format!("{DETAIL}\n{salt}\n{written}\n").as_bytes())
}

impl fmt::Display for EventDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, value)) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{}={}", escape(name), escape(value))?;
        }
        Ok(())
    }
}

/// What would end a word or a line is written as `%` and two hex digits.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '%' | '=' | ' ' | '\0'..='\x1f' | '\x7f' => {
                out.push_str(&format!("%{:02X}", u32::from(c)));
            }
            _ => out.push(c),
        }
    }
    out
}

fn unescape(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (hex, rest) = part.split_at_checked(2)?;
        let code = u8::from_str_radix(hex, 16).ok()?;
        out.push(char::from(code));
        out.push_str(rest);
    }
    Some(out)
}

/// An entry as the tree covers it: one line of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The kind of the event.
    pub kind: EventKind,
    /// When.
    pub at: Timestamp,
    /// The digest of the canonical form of the message.
    pub canonical: Option<Digest>,
    /// The SHA-256 of its exact text.
    pub raw: Option<Digest>,
    /// The salted digest of the detail.
    pub detail: Option<Digest>,
    /// The id of the message.
    pub id: Option<String>,
}

/// A line that is no leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is no entry of a log")]
pub struct LeafError;

impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREAMBLE} {} {}", self.kind.as_str(), self.at)?;
        for digest in [self.canonical, self.raw, self.detail] {
            match digest {
                Some(digest) => write!(f, " {digest}")?,
                None => f.write_str(" -")?,
            }
        }
        match &self.id {
            Some(id) => write!(f, " {id}"),
            None => Ok(()),
        }
    }
}

impl Leaf {
    /// Reads a leaf as it is written, and nothing else: what is read gives the same line again.
    ///
    /// ```
    /// use crosstalk_protocol::audit::Leaf;
    /// let line = "crosstalk-log-v1 erased 2026-11-16T12:00:00Z - - - 01KA5DQ5M0T4";
    /// assert_eq!(Leaf::parse(line).unwrap().to_string(), line);
    /// assert!(Leaf::parse("crosstalk-log-v1 erased 2026-11-16T12:00:00.000Z - - -").is_err());
    /// ```
    pub fn parse(line: &str) -> Result<Self, LeafError> {
        let mut parts = line.splitn(7, ' ');
        let mut next = || parts.next().ok_or(LeafError);
        if next()? != PREAMBLE {
            return Err(LeafError);
        }
        let kind = EventKind::parse(next()?).ok_or(LeafError)?;
        let time = next()?;
        let at = Timestamp::parse(time).ok_or(LeafError)?;
        let is_upper = |b: &u8| b.is_ascii_uppercase();
        let mut digest = || match next()? {
            "-" => Ok(None),
            text if text.as_bytes().iter().any(is_upper) => Err(LeafError),
            text => Digest::parse(text).map(Some).ok_or(LeafError),
        };
        let leaf = Self {
            kind,
            at,
            canonical: digest()?,
            raw: digest()?,
            detail: digest()?,
            id: parts.next().map(str::to_owned),
        };
        match at.to_string() == time && !line.contains('\n') {
            true => Ok(leaf),
            false => Err(LeafError),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf() -> Leaf {
        Leaf {
            kind: EventKind::Accepted,
            at: Timestamp::from_millis(1_763_294_400_123),
            canonical: Some(Digest::of(b"a")),
            raw: Some(Digest::of(b"b")),
            detail: None,
            id: Some("an id of several words".into()),
        }
    }

    #[test]
    fn every_changed_bit_of_a_leaf_is_another_leaf_or_none() {
        let line = leaf().to_string();
        assert_eq!(Leaf::parse(&line), Ok(leaf()));
        for place in 0..line.len() {
            for bit in 0..8 {
                let mut bytes = line.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                let read = String::from_utf8(bytes)
                    .ok()
                    .and_then(|t| Leaf::parse(&t).ok());
                assert_ne!(read, Some(leaf()), "bit {bit} of {place}");
            }
        }
    }

    #[test]
    fn details_read_back_and_hide_behind_their_salt() {
        let detail = EventDetail::default()
            .with("to", "a b=c%\n\u{7f}ü→")
            .with("code", "");
        let written = detail.to_string();
        assert!(!written.contains('\n'));
        assert_eq!(EventDetail::parse(&written).as_ref(), Some(&detail));
        assert_eq!(
            EventDetail::parse("to=%61"),
            None,
            "written otherwise than we write"
        );
        assert_ne!(detail.digest(&[1; 16]), detail.digest(&[2; 16]));
    }
}
