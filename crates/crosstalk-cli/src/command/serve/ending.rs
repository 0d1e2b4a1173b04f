//! The run of a relay, until a signal or its store ends it.

use super::reload::{self, Reloader};
use crate::failure::Failure;
use crate::service::relay::data::Data;
use crate::service::relay::token::NARROW_TOKEN;
use crosstalk_relay::core::Relay;
use crosstalk_relay::delivery::{self, Delivery};
use crosstalk_relay::outbound::{Outbound, Roots};
use crosstalk_relay::server::{self, ServeError, ServerOptions, ServerTls};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How long deliveries that are under way may take after the relay was told to end.
const GRACE: Duration = Duration::from_secs(10);
/// The exit code of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Serves until a signal comes; then everything that was begun is finished. A second signal ends the process at once.
pub(super) async fn run(
    relay: &Relay,
    listener: TcpListener,
    tls: Option<ServerTls>,
    data: &Data,
    reloader: Reloader,
    mut signals: Signals,
) -> Result<(), Failure> {
    let work = super::work_folder(data);
    let outbound = Outbound::new(relay.resolver().cloned(), Roots::system());
    let delivery = Delivery::start(relay, delivery::Setup { work, outbound });
    let reloader = Arc::new(Mutex::new(reloader));
    let shutdown = async move {
        let mut look = tokio::time::interval(reload::LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // A disk that does not answer must not keep the relay from its end: what reads files is not waited for.
        let mut reading: Option<JoinHandle<()>> = None;
        let mut is_asked = false;
        loop {
            tokio::select! {
                signal = signals.next() => match signal {
                    Signal::End => break,
                    Signal::Reload => is_asked = true,
                },
                _ = look.tick() => {}
            }
            if reading.as_ref().is_some_and(|r| !r.is_finished()) {
                continue;
            }
            let reloader = Arc::clone(&reloader);
            let is_asked = std::mem::take(&mut is_asked);
            // If it panics, the next look says more.
            reading = Some(tokio::task::spawn_blocking(move || {
                let mut reloader = reloader.lock().unwrap_or_else(PoisonError::into_inner);
                match is_asked {
                    true => reloader.reload("SIGHUP"),
                    false => reloader.look(),
                }
            }));
        }
        tracing::info!(
            "stopping: what was begun is finished first; a second signal ends it at once"
        );
        tokio::spawn(async move {
            while signals.next().await == Signal::Reload {}
            std::process::exit(INTERRUPTED);
        });
        delivery.stop(GRACE).await;
    };
    let options = ServerOptions {
        data: data.folder().to_owned(),
        tls,
        shutdown,
    };
    match server::serve(relay.clone(), listener, options).await {
        Ok(()) => Ok(()),
        Err(ServeError::Store(fault)) => Err(fault.into()),
        Err(ServeError::NoCredentials(listen)) => {
            Err(super::no_credentials(listen, &data.command(NARROW_TOKEN)))
        }
        Err(ServeError::Io(fault)) => Err(Failure::Io("the relay".into(), fault)),
    }
}

/// A wish from outside.
#[derive(Debug, PartialEq, Eq)]
enum Signal {
    End,
    #[cfg_attr(not(unix), allow(dead_code, reason = "there is no such signal"))]
    Reload,
}

/// The signals of the process.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|e| Failure::Io("the signals".into(), e));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::End,
            _ = self.terminate.recv() => Signal::End,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }
}

/// The signals of the process.
#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self)
    }

    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::End
    }
}
