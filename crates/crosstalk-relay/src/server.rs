//! The HTTP server of a relay.
//!
//! ```text
//! accept ── ConnectionPermit ── TLS ── TimeoutStream ── hyper ── router (axum) ── Guarded: gate, credential, rate ── handler
//! ```
//!
//! [`crosstalk_api::ENDPOINTS`] lists every path, its methods, and the permission that a caller needs; `server/router.rs`
//! registers a handler for each of them.

mod approval;
mod audit;
mod batch;
mod blob;
mod body;
mod connection;
mod consent;
mod console;
mod cors;
mod courier;
mod credential;
mod directory;
mod gate;
mod history;
mod housekeeping;
mod inbox;
mod mcp;
mod media;
mod message;
mod operation;
mod permit;
mod poll;
mod probe;
mod query;
mod receive;
mod response;
mod router;
mod slow_client;
mod sms;
mod thread;
mod tls;
mod token;
mod trust;
mod view;

pub use blob::Blobs;
pub(crate) use blob::blob_path;
pub use console::{
    CONSOLE_KEY, CONSOLE_LINK, find_or_make_link_key, renew_link_key, write_link_page,
};
pub use probe::{ProbeError, probe};
pub use tls::{ServerTls, TlsError, tls};

use crate::config::Config;
use crate::core::Relay;
use crate::metrics::{Metrics, RequestSeconds};
use crate::rate::{RateKey, RateLimiter};
use console::RelayConsole;
use credential::{Caller, Credentials};
use crosstalk_protocol::relay::port::StoreStop;
use crosstalk_protocol::store::StoreError;
use gate::Gate;
use http::HeaderValue;
use hyper_util::service::TowerToHyperService;
use permit::ConnectionPermits;
use response::HttpError;
use router::ServedRoutes;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long requests may go on after the server was told to stop.
const DRAIN_TIME: Duration = Duration::from_secs(20);

/// How long a request waits until the messages that were just accepted are indexed.
const MAX_INDEX_WAIT: Duration = Duration::from_secs(5);
/// With more messages that are indexed and not searchable, a search does not wait for them.
const MAX_SEARCH_BACKLOG: u64 = 10_000;

/// How many bytes of text a listing has, at most one message more.
const MAX_LISTING_BYTES: usize = 4 << 20;
/// How many entries a listing looks at for a caller that may not read all of them.
const MAX_SCANNED: usize = 5_000;

/// What a server needs besides a relay.
pub struct ServerOptions<F> {
    /// The data folder of the relay; attachments are kept in `blobs` in it.
    pub data: PathBuf,
    /// Certificate and key, for TLS without a proxy.
    pub tls: Option<ServerTls>,
    /// When it is done, the server stops: requests end, and accepted messages are indexed, as far as there is time.
    pub shutdown: F,
}

/// Why a server ended, or did not begin.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The network, or the folder of attachments.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store can't be relied on.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Others could reach it, and no caller could be authenticated.
    #[error("the relay would listen on {0}, where others can reach it, and has no tokens")]
    NoCredentials(SocketAddr),
}

/// What every request needs.
pub(crate) struct Server {
    relay: Relay,
    listen: SocketAddr,
    policy: RwLock<Arc<HttpPolicy>>,
    credentials: Credentials,
    rate_limiter: RateLimiter,
    blobs: Blobs,
    tls: Option<ServerTls>,
    request_seconds: RequestSeconds,
    measured: operation::Gauges,
    /// How many messages waited for their index at the start: the relay is ready when they are indexed.
    left_before: u64,
    is_ready: AtomicBool,
    shutdown: watch::Sender<bool>,
}

/// What the server makes of the configuration.
struct HttpPolicy {
    config: Arc<Config>,
    gate: Gate,
    /// The rate limit as callers are told it: from elsewhere, and at this machine.
    rate_limit: Option<HeaderValue>,
    local_rate_limit: Option<HeaderValue>,
}

impl HttpPolicy {
    fn new(config: Arc<Config>, listen: SocketAddr) -> Self {
        let rate_limit = |a_minute: u32| {
            let text = format!("\"requests\";q={a_minute};w=60");
            HeaderValue::from_str(&text).ok().filter(|_| a_minute > 0)
        };
        Self {
            gate: Gate::new(listen, std::iter::once(&config.name).chain(&config.hosts))
                .with_extensions(&config.extension.origins),
            rate_limit: rate_limit(config.limits.requests_per_minute),
            local_rate_limit: rate_limit(config.limits.local_requests_per_minute),
            config,
        }
    }
}

impl Server {
    /// What the configuration of now makes of the server.
    fn policy(&self) -> Arc<HttpPolicy> {
        let config = self.relay.config();
        let policy = self.policy.read();
        let policy = Arc::clone(&policy.unwrap_or_else(PoisonError::into_inner));
        if Arc::ptr_eq(&policy.config, &config) {
            return policy;
        }
        let new = Arc::new(HttpPolicy::new(config, self.listen));
        let last = self.policy.write();
        *last.unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        new
    }

    /// Counts a request, or rejects it because there were too many.
    fn check_rate(&self, caller: &Caller) -> Result<(), HttpError> {
        let config = self.relay.config();
        let limits = &config.limits;
        let a_minute = match caller.peer.is_local {
            true => limits.local_requests_per_minute,
            false => limits.requests_per_minute,
        };
        // Requests with a token are counted by the token, others by their address.
        debug_assert!(!caller.peer.is_local || matches!(caller.rate_key, RateKey::Peer(_)));
        if a_minute == 0 {
            return Ok(());
        }
        let now = std::time::Instant::now();
        let taken = self.rate_limiter.acquire(&caller.rate_key, a_minute, now);
        taken.map_err(HttpError::too_often)
    }

    /// Checks that the credential of a caller still counts after something took its time.
    async fn check_credential(&self, caller: &Caller) -> Result<(), HttpError> {
        let known = self.relay.registry().await?;
        self.credentials
            .check_credential(&known, caller, self.relay.now())
    }

    /// Waits until everything that came before is indexed, and deliveries by the inbox are recorded, so that requests find them.
    /// Not for ever: a disk may be full.
    async fn wait_for_index(&self) {
        let caught_up = self.relay.store().caught_up();
        // After that, requests see what is there.
        let _ = tokio::time::timeout(MAX_INDEX_WAIT, caught_up).await;
    }

    /// Waits until indexed messages can be searched for, unless that takes long because the search index is made again.
    async fn wait_for_search(&self) {
        let indexed = self.relay.indexing().borrow().through;
        let mut searchable = self.relay.searchable();
        let left = indexed.saturating_sub(*searchable.borrow());
        if left <= MAX_SEARCH_BACKLOG {
            let filled = searchable.wait_for(|through| *through >= indexed);
            let _ = tokio::time::timeout(MAX_INDEX_WAIT, filled).await;
        }
    }

    /// Waits until the server is told to stop.
    async fn wait_for_shutdown(&self) {
        let mut shutdown = self.shutdown.subscribe();
        // The sender lives as long as this.
        let _ = shutdown.wait_for(|begun| *begun).await;
    }

    fn is_shutting_down(&self) -> bool {
        *self.shutdown.borrow()
    }
}

/// Serves a relay until it is told to stop, or its store can't be relied on any more.
///
/// During shutdown, it accepts no connections, requests come to their end, readers that wait for a message are answered, and
/// accepted messages are indexed for a few seconds; the rest is indexed at the next start.
///
/// ```no_run
/// # async fn example(relay: crosstalk_relay::core::Relay) -> Result<(), crosstalk_relay::server::ServeError> {
/// use crosstalk_relay::server::{ServerOptions, serve};
/// let listener = tokio::net::TcpListener::bind(relay.config().listen).await?;
/// let shutdown = async { drop(tokio::signal::ctrl_c().await) };
/// serve(relay, listener, ServerOptions { data: "data".into(), tls: None, shutdown }).await
/// # }
/// ```
///
/// # Errors
/// If it can't begin, or why it had to end.
pub async fn serve<F: Future<Output = ()>>(
    relay: Relay,
    listener: TcpListener,
    options: ServerOptions<F>,
) -> Result<(), ServeError> {
    let listen = listener.local_addr()?;
    let config = relay.config();
    let credentials = Credentials::new(listen.ip().is_loopback());
    let known = relay.registry().await?;
    if known.tokens.is_empty() && !config.holds.is_empty() {
        tracing::warn!(
            "messages wait for a person, and without tokens every program on this machine counts \
             as one: create a token for each person who decides (`{}`) and for each agent (`{}`)",
            relay.command("token create NAME --role person --for ADDRESS"),
            relay.command("token create NAME --role agent --for ADDRESS"),
        );
    }
    if credentials.locks_everyone_out(&known) {
        return Err(ServeError::NoCredentials(listen));
    }
    let left_before = relay.indexing().borrow().left;
    let server = Arc::new(Server {
        listen,
        policy: RwLock::new(Arc::new(HttpPolicy::new(config, listen))),
        credentials,
        rate_limiter: RateLimiter::new(),
        blobs: Blobs::open(&options.data)?,
        tls: options.tls,
        request_seconds: RequestSeconds::default(),
        measured: operation::Gauges::default(),
        left_before,
        is_ready: AtomicBool::new(left_before == 0),
        shutdown: watch::Sender::new(false),
        relay,
    });
    let keeping = tokio::spawn(housekeeping::run(Arc::clone(&server)));
    let readying = tokio::spawn(operation::become_ready(Arc::clone(&server)));
    let saying = tokio::spawn(server.relay.clone().run_notice_queue());
    let ended = match routes(&server, &options.data) {
        Ok(routes) => accept(&server, routes, listener, options.shutdown).await,
        Err(fault) => Err(fault),
    };
    keeping.abort();
    saying.abort();
    readying.abort();
    if let Err(error) = housekeeping::note_uses(&server).await {
        tracing::warn!(reason = %error, "the store did not record the last use of tokens");
    }
    server.relay.stop().await;
    ended
}

/// The endpoints of the API, and the pages of the console, which call them.
fn routes(server: &Arc<Server>, data: &Path) -> Result<ServedRoutes, ServeError> {
    let api = router::router(Arc::clone(server));
    let host = RelayConsole::new(Arc::clone(server), api.clone(), data)?;
    let pages = crosstalk_console::router(Arc::new(host));
    Ok(ServedRoutes {
        api: TowerToHyperService::new(api),
        pages: TowerToHyperService::new(pages),
    })
}

/// Lets connections in until it is time to stop, and waits for them to end.
async fn accept<F: Future<Output = ()>>(
    server: &Arc<Server>,
    routes: ServedRoutes,
    listener: TcpListener,
    shutdown: F,
) -> Result<(), ServeError> {
    let config = server.relay.config();
    let limits = &config.limits;
    let max_connections =
        permit::max_connections(limits.connections, permit::raise_descriptor_limit());
    let permits = ConnectionPermits::new(max_connections, limits.connections_per_peer);
    let mut stopped = server.relay.stopped();
    tokio::pin!(shutdown);
    let ended = loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break Ok(()),
            stopped = stopped.wait_for(Option::is_some) => break failure(stopped.ok().as_deref()),
        };
        match accepted {
            Ok((stream, from)) => match permits.acquire(from.ip(), server) {
                Some(permit) => {
                    connection::spawn(Arc::clone(server), routes.clone(), stream, from, permit)
                }
                None => {
                    Metrics::count(&server.relay.metrics().turned_away);
                    match server.tls.is_some() {
                        true => drop(stream),
                        false => connection::reject_connection(stream),
                    }
                }
            },
            Err(error) => {
                // Too many open files, or a connection that was gone before it was there: the next one may do.
                tracing::warn!(reason = %error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    };
    drop(listener);
    server.shutdown.send_replace(true);
    if tokio::time::timeout(DRAIN_TIME, permits.all_free())
        .await
        .is_err()
    {
        tracing::warn!("some requests did not end in time");
    }
    ended
}

fn failure(stopped: Option<&Option<StoreStop>>) -> Result<(), ServeError> {
    match stopped {
        Some(Some(StoreStop::Failed(error))) => Err(ServeError::Store(error.clone())),
        _ => Ok(()),
    }
}
