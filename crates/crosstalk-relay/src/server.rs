//! The relay in the network: an HTTP server.
//!
//! ```text
//! accept ── Seat ── TLS ── Paced ── hyper ── surface ── gate, credential, rate ── one function for each thing to do
//! ```
//!
//! [`crosstalk_api::ENDPOINTS`] lists every path, its methods, and the permission that a caller needs; `server/surface.rs`
//! finds the function that answers.

mod answer;
mod approval;
mod audit;
mod batch;
mod blob;
mod body;
mod connection;
mod consent;
mod courier;
mod credential;
mod descriptor;
mod directory;
mod gate;
mod history;
mod housekeeping;
mod inbox;
mod media;
mod message;
mod operation;
mod pace;
mod poll;
mod probe;
mod query;
mod receive;
mod router;
mod seat;
mod stream;
mod thread;
mod tls;
mod token;
mod view;

pub use blob::Blobs;
pub use probe::{ProbeError, probe};
pub use tls::{ServerTls, TlsError, tls};

use crate::config::Config;
use crate::core::{Relay, Stopped};
use crate::metrics::{Metrics, RequestSeconds};
use crate::rate::{Rates, Whose};
use answer::Fault;
use credential::{Caller, Credentials};
use crosstalk_protocol::store::StoreError;
use gate::Gate;
use http::HeaderValue;
use seat::Seats;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// How long requests may go on after the server was told to stop.
const DRAIN: Duration = Duration::from_secs(20);

/// How long a reader waits until what was just taken is filed.
const SETTLE: Duration = Duration::from_secs(5);

/// What a server needs besides a relay.
pub struct ServerOptions<F> {
    /// The data folder of the relay; attachments are kept in `blobs` in it.
    pub data: PathBuf,
    /// Certificate and key, for TLS without a proxy.
    pub tls: Option<ServerTls>,
    /// When it is done, the server stops: requests end, and what was taken is filed, as far as there is time.
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
    /// It would listen to others, and nobody could prove who they are.
    #[error("the relay would listen on {0}, where others can reach it, and has no tokens")]
    NoCredentials(SocketAddr),
}

/// What every request needs.
pub(crate) struct Site {
    relay: Relay,
    listen: SocketAddr,
    front: RwLock<Arc<Front>>,
    credentials: Credentials,
    rates: Rates,
    blobs: Blobs,
    tls: Option<ServerTls>,
    request_seconds: RequestSeconds,
    measured: operation::Gauges,
    /// The place of the last message that was there at the start: the relay is ready when it is filed.
    ready_at: u64,
    closing: watch::Sender<bool>,
}

/// What the server makes of the configuration.
struct Front {
    config: Arc<Config>,
    gate: Gate,
    /// The limit of requests, as it is told to everybody, and to the person at this machine.
    policy: Option<HeaderValue>,
    local_policy: Option<HeaderValue>,
}

impl Front {
    fn new(config: Arc<Config>, listen: SocketAddr) -> Self {
        let policy = |a_minute: u32| {
            let text = format!("\"requests\";q={a_minute};w=60");
            HeaderValue::from_str(&text).ok().filter(|_| a_minute > 0)
        };
        Self {
            gate: Gate::new(listen, std::iter::once(&config.name).chain(&config.hosts)),
            policy: policy(config.limits.requests_per_minute),
            local_policy: policy(config.limits.local_requests_per_minute),
            config,
        }
    }
}

impl Site {
    /// What the configuration of now makes of the server.
    fn front(&self) -> Arc<Front> {
        let config = self.relay.config();
        let front = self.front.read();
        let front = Arc::clone(&front.unwrap_or_else(PoisonError::into_inner));
        if Arc::ptr_eq(&front.config, &config) {
            return front;
        }
        let new = Arc::new(Front::new(config, self.listen));
        let last = self.front.write();
        *last.unwrap_or_else(PoisonError::into_inner) = Arc::clone(&new);
        new
    }

    /// Counts a request, or refuses it because there were too many.
    fn allow(&self, caller: &Caller) -> Result<(), Fault> {
        let config = self.relay.config();
        let limits = &config.limits;
        let a_minute = match caller.peer.is_local {
            true => limits.local_requests_per_minute,
            false => limits.requests_per_minute,
        };
        // A token is counted wherever it comes from, everybody else by where they come from.
        debug_assert!(!caller.peer.is_local || matches!(caller.whose, Whose::Peer(_)));
        if a_minute == 0 {
            return Ok(());
        }
        let now = std::time::Instant::now();
        let taken = self.rates.take(&caller.whose, a_minute, now);
        taken.map_err(Fault::too_often)
    }

    /// Checks that the credential of a caller still counts, who was let in before something took its time.
    fn still(&self, caller: &Caller) -> Result<(), Fault> {
        self.credentials.still(caller, self.relay.now())
    }

    /// Waits until what was taken is filed, so that everything is found. Not for ever: a disk may be full.
    async fn settle(&self) {
        if self.relay.metrics().backlog.load(Ordering::Relaxed) > 0 {
            self.settle_all().await;
        }
    }

    /// The same, until what was handed out is noted as well.
    async fn settle_all(&self) {
        let filed = self.relay.write_filed(|_| Ok(()));
        // What is filed until then is shown.
        let _ = tokio::time::timeout(SETTLE, filed).await;
    }

    /// Waits until the server is told to stop.
    async fn closed(&self) {
        let mut closing = self.closing.subscribe();
        // The sender lives as long as this.
        let _ = closing.wait_for(|closes| *closes).await;
    }

    fn is_closing(&self) -> bool {
        *self.closing.borrow()
    }
}

/// Serves a relay until it is told to stop, or its store can't be relied on any more.
///
/// When it is told to stop, nobody is let in any more, requests come to their end, whoever waits for a message is
/// answered, and what was taken is filed for a few seconds; the rest is filed at the next start.
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
    let credentials = Credentials::new(listen.ip().is_loopback(), relay.clone())?;
    if credentials.are_none()? && !config.holds.is_empty() {
        tracing::warn!(
            "messages wait for a person, and without tokens every program on this machine counts as one: make a token for \
             each person who decides (`{}`) and for each agent (`{}`)",
            relay.command("token create NAME --role person --for ADDRESS"),
            relay.command("token create NAME --role agent --for ADDRESS"),
        );
    }
    if credentials.is_shut()? {
        return Err(ServeError::NoCredentials(listen));
    }
    let filing = *relay.filing().borrow();
    let site = Arc::new(Site {
        listen,
        front: RwLock::new(Arc::new(Front::new(config, listen))),
        credentials,
        rates: Rates::new(),
        blobs: Blobs::open(&options.data)?,
        tls: options.tls,
        request_seconds: RequestSeconds::new(router::endpoints()),
        measured: operation::Gauges::default(),
        ready_at: filing.through + filing.left,
        closing: watch::Sender::new(false),
        relay,
    });
    let keeping = tokio::spawn(housekeeping::run(Arc::clone(&site)));
    let saying = tokio::spawn(site.relay.clone().keep_its_word());
    let ended = accept(&site, listener, options.shutdown).await;
    keeping.abort();
    saying.abort();
    if let Err(error) = housekeeping::note_uses(&site).await {
        tracing::warn!(reason = %error, "when tokens were last used is not noted");
    }
    site.relay.stop().await;
    ended
}

/// Lets connections in until it is time to stop, and waits for them to end.
async fn accept<F: Future<Output = ()>>(
    site: &Arc<Site>,
    listener: TcpListener,
    shutdown: F,
) -> Result<(), ServeError> {
    let config = site.relay.config();
    let limits = &config.limits;
    let most = descriptor::connections(limits.connections, descriptor::raise());
    let seats = Seats::new(most, limits.connections_per_peer);
    let router = router::router(Arc::clone(site));
    let mut stopped = site.relay.stopped();
    tokio::pin!(shutdown);
    let ended = loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break Ok(()),
            stopped = stopped.wait_for(Option::is_some) => break failure(stopped.ok().as_deref()),
        };
        match accepted {
            Ok((stream, from)) => match seats.take(from.ip(), site) {
                Some(seat) => {
                    connection::spawn(Arc::clone(site), router.clone(), stream, from, seat)
                }
                None => {
                    Metrics::count(&site.relay.metrics().turned_away);
                    match site.tls.is_some() {
                        true => drop(stream),
                        false => connection::turn_away(stream),
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
    site.closing.send_replace(true);
    if tokio::time::timeout(DRAIN, seats.all_free()).await.is_err() {
        tracing::warn!("some requests did not end in time");
    }
    ended
}

fn failure(stopped: Option<&Option<Stopped>>) -> Result<(), ServeError> {
    match stopped {
        Some(Some(Stopped::Failed(error))) => Err(ServeError::Store(error.clone())),
        _ => Ok(()),
    }
}
