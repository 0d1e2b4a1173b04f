//! Whether the resolver hands out signatures at all.
//!
//! Many machines sit behind a forwarder that knows nothing about DNSSEC. Validation can't tell this from an attack:
//! all that it sees are signatures that should be there and are not. So the resolver is asked for the signed keys of
//! the root first, which everyone who has signatures has.

use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::xfer::{DnsHandle, FirstAnswer, RetryDnsHandle};
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{DnsRequestOptions, Query, ResponseCode};
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{NameServerPool, PoolContext, TlsConfig, config};
use std::sync::Arc;

/// Whether the resolver has the signed keys of the root; an error if it did not say.
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
