//! Starts the part of a relay that has no network, on its data folder.

use crate::failure::Failure;
use crate::service::relay::data::Data;
use crate::service::relay::keyring::TrustRing;
use crate::service::relay::resolver::DnsResolver;
use crosstalk_dns::Options;
use crosstalk_envelope::{PrivateKey, Timestamp};
use crosstalk_protocol::relay::{RelayStore, TokenRecord};
use crosstalk_relay::config::Config;
use crosstalk_relay::core::{Relay, Setup};
use crosstalk_relay::port::Resolver;
use crosstalk_store::SqliteStore;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Starts the part of the relay that has no network, with its key.
pub(crate) fn start(data: &Data, config: Config, store: SqliteStore) -> Result<Relay, Failure> {
    data.require_log_key(&config.name, &store)?;
    let key = data.find_or_make_key(&config.name)?;
    start_core(data, config, store, Some(key))
}

/// Starts the part of the relay that has no network. Without a key, it signs nothing.
pub(crate) fn start_core(
    data: &Data,
    config: Config,
    store: SqliteStore,
    key: Option<PrivateKey>,
) -> Result<Relay, Failure> {
    let path = data.store();
    let resolver = resolver(&config)?;
    let setup = Setup {
        key,
        keyring: Box::new(TrustRing::new(data.trust())),
        writer: Box::new(store),
        open: Box::new(move || {
            let store: Box<dyn RelayStore + Send> = Box::new(SqliteStore::open(&path)?);
            Ok(store)
        }),
        resolver,
        clock: Box::new(precise),
        command: {
            let data = data.clone();
            Box::new(move |words| data.command(words))
        },
        config,
    };
    Ok(Relay::start(setup)?)
}

/// What asks name servers. None hears of anything, unless the configuration speaks of other domains.
pub(crate) fn resolver(config: &Config) -> Result<Option<Arc<dyn Resolver>>, Failure> {
    let federation = &config.federation;
    let asks = federation.enabled || federation.accept || federation.dns.is_some();
    Ok(match asks {
        true => Some(Arc::new(DnsResolver::new(
            federation.dns,
            Options::default(),
        )?)),
        false => None,
    })
}

/// Now, to the millisecond: a relay orders by it.
pub(crate) fn precise() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::from_millis(since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(0)))
}

/// How many tokens count now.
pub(crate) fn active(store: &SqliteStore) -> Result<usize, Failure> {
    let now = precise();
    let counts =
        |t: &&TokenRecord| t.revoked_at.is_none() && t.expires_at.is_none_or(|end| end > now);
    Ok(store.tokens()?.iter().filter(counts).count())
}
