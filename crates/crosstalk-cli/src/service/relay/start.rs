//! Starts a relay on its data folder with the adapters of this program, serves it, and creates its tokens.

use crate::clock;
use crate::failure::Failure;
use crate::service::relay::data::DataFolder;
use crosstalk_dns::{Dns, Options, SetupError};
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{PrivateKey, Timestamp, base64};
use crosstalk_protocol::Trust;
use crosstalk_protocol::dns::{AddressAnswer, DnsAnswer};
use crosstalk_protocol::relay::port::{RegistryChange, RelayStore};
use crosstalk_protocol::relay::{Role, TokenRecord};
use crosstalk_relay::config::Config;
use crosstalk_relay::core::{OpenStore, Relay, Setup};
use crosstalk_relay::delivery::{DeliverySetup, DeliveryTask};
use crosstalk_relay::outbound::{Outbound, Roots};
use crosstalk_relay::port::{Keyring, Later, Resolver};
use crosstalk_relay::server::{self, ServeError, ServerOptions, ServerTls};
use crosstalk_store::{
    PostgresPlace, PostgresRelay, PostgresTrust, SqliteRelay, SqliteStore, TrustFile,
    TrustStoreError,
};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// Starts the part of the relay that has no network, with its key. The store was opened to be looked at.
pub(crate) async fn start(
    data: &DataFolder,
    config: Config,
    store: SqliteStore,
) -> Result<Relay, Failure> {
    data.require_log_key(&config.name, &store)?;
    let key = data.find_or_make_key(&config.name)?;
    start_core(data, config, Some(key)).await
}

/// Starts the part of the relay that has no network. Without a key, it signs nothing.
pub(crate) async fn start_core(
    data: &DataFolder,
    config: Config,
    key: Option<PrivateKey>,
) -> Result<Relay, Failure> {
    let path = data.store();
    let open: OpenStore = Box::new(move |context| {
        Box::pin(async move { Ok(SqliteRelay::open(path, context)? as Arc<dyn RelayStore>) })
    });
    let keyring = Box::new(TrustRing::new(data.trust()));
    start_on(data, config, key, keyring, open).await
}

/// Starts the part of the relay that has no network, on a database that other relays use as well.
pub(crate) async fn start_shared(
    data: &DataFolder,
    config: Config,
    place: PostgresPlace,
) -> Result<Relay, Failure> {
    if config.email.is_some() || config.sms.is_some() {
        data.require_reply_key()?;
    }
    let key = data.find_or_make_key(&config.name)?;
    let keyring = Box::new(SharedTrustRing {
        files: data.trust(),
        database: PostgresTrust::open(place.clone())?,
    });
    let open: OpenStore = Box::new(move |context| {
        Box::pin(async move { Ok(PostgresRelay::open(place, context)? as Arc<dyn RelayStore>) })
    });
    start_on(data, config, Some(key), keyring, open).await
}

async fn start_on(
    data: &DataFolder,
    config: Config,
    key: Option<PrivateKey>,
    keyring: Box<dyn Keyring>,
    open: OpenStore,
) -> Result<Relay, Failure> {
    let resolver = resolver(&config)?;
    let has_replies = config.email.is_some() || config.sms.is_some();
    let reply_key = has_replies
        .then(|| data.find_or_make_reply_key())
        .transpose()?;
    let setup = Setup {
        key,
        reply_key,
        keyring,
        open,
        resolver,
        clock: Arc::new(clock::exact),
        command: {
            let data = data.clone();
            Arc::new(move |words: &str| data.command(words))
        },
        config,
    };
    Ok(Relay::start(setup).await?)
}

/// The working folder of `exec` routes that name none.
pub(crate) fn work_folder(data: &DataFolder) -> PathBuf {
    data.folder().join("work")
}

/// Serves and delivers until `stop` says how long deliveries may still take. Then everything that was begun is finished.
pub(crate) async fn serve(
    relay: &Relay,
    listener: TcpListener,
    tls: Option<ServerTls>,
    data: &DataFolder,
    stop: impl Future<Output = Duration>,
) -> Result<(), ServeError> {
    let setup = DeliverySetup {
        work: work_folder(data),
        data: data.folder().to_owned(),
        outbound: Outbound::new(relay.resolver().cloned(), Roots::system()),
    };
    let delivery = DeliveryTask::start(relay, setup);
    let options = ServerOptions {
        data: data.folder().to_owned(),
        tls,
        shutdown: async move { delivery.stop(stop.await).await },
    };
    server::serve(relay.clone(), listener, options).await
}

/// The resolver; none is asked unless the configuration enables federation.
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

/// A runtime with some threads; without a number, one for each core.
pub(crate) fn runtime(threads: Option<usize>) -> Result<Runtime, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let built = builder.enable_all().thread_name("relay").build();
    built.map_err(|e| Failure::io("the threads of the relay", e))
}

/// Whether a token was neither revoked nor has expired.
pub(crate) fn is_active(token: &TokenRecord, now: Timestamp) -> bool {
    token.revoked_at.is_none() && token.expires_at.is_none_or(|end| end > now)
}

/// Takes the tokens of the data folder over into the database of several relays: those that it does not know, and those that
/// were revoked here.
pub(crate) async fn hand_over_tokens(data: &DataFolder, relay: &Relay) -> Result<(), Failure> {
    if !data.store().is_file() {
        return Ok(());
    }
    for token in data.open()?.tokens()? {
        let by = "operator".to_owned();
        let change = match token.revoked_at {
            Some(at) => RegistryChange::RevokeToken {
                name: token.name,
                by,
                at,
            },
            None => RegistryChange::AddToken { token, by },
        };
        relay.store().change_registry(change).await?;
    }
    Ok(())
}

/// The number of tokens that callers can use, on the store of a relay that is started.
pub(crate) async fn count_tokens_of(relay: &Relay) -> Result<usize, Failure> {
    let now = clock::exact();
    let registry = relay.store().registry(None).await?;
    let tokens = registry.map(|known| known.tokens).unwrap_or_default();
    Ok(tokens.iter().filter(|t| is_active(t, now)).count())
}

pub(crate) fn count_active_tokens(store: &SqliteStore) -> Result<usize, Failure> {
    let now = clock::exact();
    let tokens = store.tokens()?;
    Ok(tokens.iter().filter(|t| is_active(t, now)).count())
}

/// The trust file behind the relay's port.
#[derive(Debug)]
pub(crate) struct TrustRing {
    file: TrustFile,
}

impl TrustRing {
    pub(crate) fn new(file: TrustFile) -> Self {
        Self { file }
    }
}

impl Keyring for TrustRing {
    fn read(&self) -> Result<Trust, String> {
        self.file.read().map_err(|e| e.to_string())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        let after = self.file.update(|trust| {
            change(trust);
            Ok::<Trust, TrustStoreError>(trust.clone())
        });
        after.map_err(|e| e.to_string())
    }
}

/// The trust data of several relays, in their database. The trust files of the data folder are taken over whenever they changed.
#[derive(Debug)]
struct SharedTrustRing {
    files: TrustFile,
    database: PostgresTrust,
}

impl Keyring for SharedTrustRing {
    fn read(&self) -> Result<Trust, String> {
        match self.files.read() {
            Ok(files) if files == Trust::default() => {}
            Ok(files) => {
                let refused = self.database.adopt(&files).map_err(|e| e.to_string())?;
                for (id, reason) in refused {
                    tracing::warn!(key = %id, ?reason, "a key of trust.toml was not taken over: decide about it in the console or over HTTP");
                }
            }
            // The keys of the database count on.
            Err(error) => {
                tracing::error!(reason = %error, "the trust file of the data folder is not taken over")
            }
        }
        self.database.read().map_err(|e| e.to_string())
    }

    fn update(&self, change: &mut dyn FnMut(&mut Trust)) -> Result<Trust, String> {
        self.database.update(change).map_err(|e| e.to_string())
    }

    fn is_shared(&self) -> bool {
        true
    }
}

pub(crate) struct DnsResolver(Dns);

impl DnsResolver {
    /// Asks a name server, else those of the system.
    pub(crate) fn new(server: Option<SocketAddr>, options: Options) -> Result<Self, SetupError> {
        match server {
            Some(address) => Dns::server(address, options),
            None => Dns::system(options),
        }
        .map(Self)
    }
}

impl Resolver for DnsResolver {
    fn keys<'l>(&'l self, domain: &'l str) -> Later<'l, DnsAnswer> {
        Box::pin(self.0.keys(domain))
    }

    fn addresses<'l>(&'l self, name: &'l str, domain: &'l str) -> Later<'l, AddressAnswer> {
        Box::pin(self.0.addresses(name, domain))
    }

    fn relays<'l>(&'l self, domain: &'l str) -> Later<'l, Result<Vec<String>, String>> {
        Box::pin(self.0.relays(domain))
    }

    fn hosts<'l>(&'l self, host: &'l str) -> Later<'l, Result<Vec<IpAddr>, String>> {
        Box::pin(self.0.hosts(host))
    }
}

/// The command that lets one agent in, for its own address.
pub(crate) const NARROW_TOKEN: &str = "token create NAME --role agent --for ADDRESS";

/// Who creates and revokes tokens on the data folder, as the log names them.
pub(crate) const OPERATOR: &str = "operator";

/// A new token that never expires, and its secret. The token holds a digest of the secret only.
pub(crate) fn new_token(
    name: String,
    role: Role,
    addresses: Vec<String>,
) -> Result<(TokenRecord, String), Failure> {
    let secret = new_secret()?;
    let token = TokenRecord {
        name,
        hash: Digest::of(secret.as_bytes()),
        role,
        addresses,
        courier: Vec::new(),
        created_at: clock::now(),
        expires_at: None,
        revoked_at: None,
        last_used_at: None,
    };
    Ok((token, secret))
}

fn new_secret() -> Result<String, Failure> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(|e| Failure::failed(format!("the system gives no random numbers: {e}")))?;
    let text = base64::encode(&bytes);
    let text = text
        .trim_end_matches('=')
        .replace('+', "-")
        .replace('/', "_");
    Ok(format!("xt_{text}"))
}

#[cfg(test)]
mod keyring_tests {
    use super::*;
    use crosstalk_store::Home;

    #[test]
    fn change_is_visible_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let ring = TrustRing::new(TrustFile::new(&home));
        assert_eq!(ring.read().unwrap(), Trust::default());
        let after = ring.update(&mut |trust| {
            trust.remove("nobody", None);
        });
        assert_eq!(after.unwrap(), TrustFile::new(&home).read().unwrap());
        std::fs::write(home.trust(), "this is not TOML").unwrap();
        assert!(ring.read().unwrap_err().contains("trust.toml"));
    }
}

#[cfg(test)]
mod token_tests {
    use super::*;

    #[test]
    fn secrets_have_their_form_and_differ() {
        let (one, other) = (new_secret().unwrap(), new_secret().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 46);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        assert!(one.starts_with("xt_") && one.chars().all(is_plain), "{one}");
    }
}
