//! Values by the kind that the registry gives them (MET-002).

use super::{Attachment, ConsentValue};
use crate::address::Address;
use crate::base64;
use crate::flow::Flow;
use crate::registry::{ErrorCode, ValueKind};
use crate::time::Timestamp;
use std::borrow::Cow;

/// Whether a value is what the registry says that it is.
pub fn is_well_typed(kind: ValueKind, known: &[&str], value: &str) -> bool {
    match kind {
        ValueKind::Text => true,
        ValueKind::Word => known.contains(&value),
        ValueKind::Words => {
            let words = words(value);
            !words.is_empty() && words.iter().all(|w| known.contains(&w.as_ref()))
        }
        ValueKind::List => holds_texts(value) && !list(value).is_empty(),
        ValueKind::Options => holds_texts(value) && options(value).len() >= 2,
        ValueKind::Time => Timestamp::parse(value).is_some(),
        ValueKind::Consent => ConsentValue::parse(value).is_known(),
        ValueKind::Address => Address::parse(value).is_ok(),
        ValueKind::Addresses => {
            let list = list(value);
            holds_texts(value) && !list.is_empty() && list.iter().all(|a| Address::parse(a).is_ok())
        }
        ValueKind::Route => route(value).all(|a| Address::parse(a).is_ok()),
        ValueKind::Attachment => Attachment::parse(value).is_ok(),
        ValueKind::ErrorCode => ErrorCode::from_wire(value).is_some(),
        ValueKind::Integer => is_integer(value),
        ValueKind::Digest => Digest::parse(value).is_some(),
        ValueKind::Base64 => base64::decode(value).is_some(),
        // A key of an algorithm that is not known here is one all the same.
        ValueKind::Key => value
            .split_once(":pk=")
            .is_some_and(|(_, key)| base64::decode(key).is_some()),
    }
}

/// Whether a value is no flow, or one of texts: a nested list is no address.
fn holds_texts(value: &str) -> bool {
    match Flow::parse(value) {
        Ok(Flow::Text(_)) => true,
        Ok(Flow::List(items)) => items.iter().all(|i| matches!(i, Flow::Text(_))),
        Ok(Flow::Map(_)) | Err(_) => false,
    }
}

fn is_integer(value: &str) -> bool {
    value.bytes().all(|b| b.is_ascii_digit()) && value.parse::<u64>().is_ok()
}

/// A list: a flow, or texts separated by commas.
///
/// ```
/// use crosstalk_envelope::meta::list;
/// assert_eq!(list(r#"["a", "b"]"#), ["a", "b"]);
/// assert_eq!(list("a, b"), ["a", "b"]);
/// assert!(list("[a").is_empty());
/// ```
pub fn list(value: &str) -> Vec<Cow<'_, str>> {
    separated(value, ',')
}

/// A poll's options: a flow, or texts separated by `|`.
pub fn options(value: &str) -> Vec<Cow<'_, str>> {
    separated(value, '|')
}

/// Some words, separated by commas, spaces or `|`, or as a list of texts. Of a flow that is broken or holds something else,
/// every word is one: what is said about consent is not lost by a bracket.
///
/// ```
/// use crosstalk_envelope::meta::words;
/// assert_eq!(words("pii, medical"), ["pii", "medical"]);
/// assert_eq!(words("[[medical], {on: location"), ["medical", "on", "location"]);
/// ```
pub fn words(value: &str) -> Vec<Cow<'_, str>> {
    if let Ok(Flow::List(items)) = Flow::parse(value)
        && items.iter().all(|i| matches!(i, Flow::Text(_)))
    {
        return separated(value, ',');
    }
    let marks: &[char] = match Flow::is_meant(value) {
        true => &[',', '|', ' ', '\t', ';', '[', ']', '{', '}', ':', '"', '\''],
        false => &[',', '|', ' ', '\t', ';'],
    };
    let parts = value.split(marks);
    parts.filter(|p| !p.is_empty()).map(Cow::Borrowed).collect()
}

fn separated(value: &str, mark: char) -> Vec<Cow<'_, str>> {
    if Flow::is_meant(value) {
        let flow = Flow::parse(value).unwrap_or(Flow::List(Vec::new()));
        return flow
            .texts()
            .into_iter()
            .map(|t| Cow::Owned(t.to_owned()))
            .collect();
    }
    value
        .split(mark)
        .map(crate::text::trim)
        .filter(|p| !p.is_empty())
        .map(Cow::Borrowed)
        .collect()
}

/// The addresses of a route, separated by `→` or `->`.
pub(super) fn route(value: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let (station, further) = match crate::grammar::arrow_in(text) {
            Some((at, width)) => (text.get(..at)?, text.get(at + width..)),
            None => (text, None),
        };
        rest = further;
        Some(crate::text::trim(station))
    })
}

/// A SHA-256 digest as it is written: `sha256:` and 64 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// Reads a digest; hex digits may be in either case.
    pub fn parse(text: &str) -> Option<Self> {
        let hex = text.strip_prefix("sha256:")?.as_bytes();
        if hex.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(hex.chunks(2)) {
            for digit in pair {
                let value = char::from(*digit).to_digit(16)?;
                *byte = (*byte << 4) | u8::try_from(value).ok()?;
            }
        }
        Some(Self(bytes))
    }

    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(sha2::Sha256::digest(bytes).into())
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = *b"sha256:0000000000000000000000000000000000000000000000000000000000000000";
        let digits = text.iter_mut().skip("sha256:".len());
        let halves = self.0.iter().flat_map(|b| [b >> 4, b & 15]);
        for (digit, half) in digits.zip(halves) {
            *digit = if half < 10 {
                b'0' + half
            } else {
                b'a' + half - 10
            };
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_holds_texts_and_nothing_nested() {
        for (kind, value, is_fine) in [
            (ValueKind::Addresses, "[claude://a, claude://b]", true),
            (ValueKind::Addresses, "[claude://a, {x: y}]", false),
            (ValueKind::Addresses, "[claude://a, [claude://b]]", false),
            (ValueKind::Addresses, "{x: claude://a}", false),
            (ValueKind::List, "[a, {x: y}]", false),
            (ValueKind::List, "a, b", true),
            (ValueKind::Options, "[yes, no, {x: y}]", false),
            (ValueKind::Options, "yes | no", true),
        ] {
            assert_eq!(is_well_typed(kind, &[], value), is_fine, "{value}");
        }
    }
}
