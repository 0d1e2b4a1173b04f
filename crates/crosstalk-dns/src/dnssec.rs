//! DNSSEC: the trust anchors where a chain of signatures may end, and whether the resolver supports it.

use crate::client::SetupError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::xfer::{DnsHandle, FirstAnswer, RetryDnsHandle};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::dnssec::TrustAnchors;
use hickory_resolver::proto::op::{DnsRequestOptions, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::proto::serialize::txt::trust_anchor::{Entry, Parser};
use hickory_resolver::{NameServerPool, PoolContext, TlsConfig, config};
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

/// Whether the resolver hands out signatures at all.
///
/// Many machines sit behind a forwarder that does not support DNSSEC. Validation can't tell this from an attack: it only
/// sees that signatures are missing. So this asks the resolver for the signed keys of the root first.
///
/// # Errors
/// The resolver did not answer.
pub async fn reaches_root(
    servers: Vec<config::NameServerConfig>,
    options: config::ResolverOpts,
) -> Result<bool, NetError> {
    let attempts = options.attempts;
    let context = Arc::new(PoolContext::new(options, TlsConfig::new()?));
    let pool = NameServerPool::from_config(servers, context, TokioRuntimeProvider::default());
    let mut request = DnsRequestOptions::default();
    request.edns_set_dnssec_ok = true;
    let query = Query::query(Name::root(), RecordType::DNSKEY);
    let answer = RetryDnsHandle::new(pool, attempts)
        .lookup(query, request)
        .first_answer()
        .await;
    match answer {
        Ok(response) => {
            let has = |kind: RecordType| response.answers.iter().any(|r| r.record_type() == kind);
            Ok(has(RecordType::DNSKEY) && has(RecordType::RRSIG))
        }
        Err(NetError::Dns(DnsError::NoRecordsFound(_))) => Ok(false),
        // A server that is there for some zones only, or that has never heard of such records.
        Err(NetError::Dns(DnsError::ResponseCode(
            ResponseCode::Refused
            | ResponseCode::NotImp
            | ResponseCode::FormErr
            | ResponseCode::NotAuth,
        ))) => Ok(false),
        Err(other) => Err(other),
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
