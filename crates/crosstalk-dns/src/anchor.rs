//! Trust anchors: the keys where a chain of signatures may end.

use crate::options::SetupError;
use hickory_resolver::proto::dnssec::TrustAnchors;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::proto::serialize::txt::trust_anchor::{Entry, Parser};
use std::str::FromStr;
use std::sync::Arc;

/// The keys that count, and the zones that they are the keys of.
#[derive(Clone)]
pub struct Anchors {
    keys: Arc<TrustAnchors>,
    /// `None` if they are those of the root that are built in.
    zones: Option<Vec<Name>>,
}

impl Anchors {
    /// The keys of a text with DNSKEY records, or those of the root.
    pub fn new(text: Option<&str>) -> Result<Self, SetupError> {
        let Some(text) = text else {
            return Ok(Self {
                keys: Arc::new(TrustAnchors::default()),
                zones: None,
            });
        };
        let wrong = |reason: String| SetupError::Anchor(reason);
        let zones: Vec<Name> = Parser::new(text)
            .parse()
            .map_err(|e| wrong(e.to_string()))?
            .into_iter()
            .filter_map(|entry| match entry {
                Entry::DNSKEY(record) => Some(record.name().to_lowercase()),
                _ => None,
            })
            .collect();
        if zones.is_empty() {
            return Err(wrong("there is no DNSKEY record in it".to_owned()));
        }
        let keys = TrustAnchors::from_str(text).map_err(|e| wrong(e.to_string()))?;
        Ok(Self {
            keys: Arc::new(keys),
            zones: Some(zones),
        })
    }

    /// The keys.
    pub fn keys(&self) -> Arc<TrustAnchors> {
        Arc::clone(&self.keys)
    }

    /// Whether nobody chose them: the keys of the root, whether or not the resolver knows anything about DNSSEC.
    pub fn is_built_in(&self) -> bool {
        self.zones.is_none()
    }

    /// Whether a chain from this name can end at one of them.
    pub fn cover(&self, name: &Name) -> bool {
        self.zones
            .as_ref()
            .is_none_or(|zones| zones.iter().any(|zone| zone.zone_of(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=";

    fn name(text: &str) -> Name {
        Name::from_ascii(text).unwrap()
    }

    #[test]
    fn without_a_text_it_is_the_root() {
        let anchors = Anchors::new(None).unwrap();
        assert!(anchors.is_built_in());
        assert!(anchors.cover(&name("_crosstalk-key.example.com.")));
    }

    #[test]
    fn a_text_names_its_zones() {
        let text = format!("; ours\nExample.test. 3600 IN DNSKEY {KEY}\n\nother. IN DNSKEY {KEY}");
        let anchors = Anchors::new(Some(&text)).unwrap();
        assert!(!anchors.is_built_in());
        for covered in ["example.test.", "a.EXAMPLE.test.", "b.other."] {
            assert!(anchors.cover(&name(covered)), "{covered}");
        }
        for outside in ["test.", "another.", "badexample.test.", "example.com."] {
            assert!(!anchors.cover(&name(outside)), "{outside}");
        }
    }

    #[test]
    fn a_text_without_a_key_is_refused() {
        for text in [
            "",
            "\n; nothing\n",
            "example.test.",
            "example.test. IN TXT hello",
            "example.test. IN DNSKEY 257 3",
            "example.test. IN DNSKEY 257 3 15 !!!",
        ] {
            assert!(
                matches!(Anchors::new(Some(text)), Err(SetupError::Anchor(_))),
                "{text:?}"
            );
        }
    }
}
