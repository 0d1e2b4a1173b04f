//! Runs a relay until a signal or its store ends it. Configuration, certificate and trust file are read again on SIGHUP and
//! when they change.

use super::{StartOptions, warn_about_routes};
use crate::failure::Failure;
use crate::service::relay::data::DataFolder;
use crate::service::relay::start::{NARROW_TOKEN, serve};
use crosstalk_envelope::meta::Digest;
use crosstalk_relay::config::{Config, Tls};
use crosstalk_relay::core::Relay;
use crosstalk_relay::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use crosstalk_relay::server::{self, ServeError, ServerTls};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

/// How long deliveries may take after the relay was told to stop.
pub(super) const GRACE: Duration = Duration::from_secs(10);
/// The exit code of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Serves until a signal comes; then everything that was begun is finished. A second signal ends the process at once.
pub(super) async fn run_until_signal(
    relay: &Relay,
    listener: TcpListener,
    tls: Option<ServerTls>,
    data: &DataFolder,
    reloader: Reloader,
    mut signals: ProcessSignals,
) -> Result<(), Failure> {
    let reloader = Arc::new(Mutex::new(reloader));
    let stop = async move {
        let mut look = tokio::time::interval(LOOK);
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
        tracing::info!("stopping: finishing the current work; a second signal ends it at once");
        tokio::spawn(async move {
            while signals.next().await == Signal::Reload {}
            std::process::exit(INTERRUPTED);
        });
        GRACE
    };
    match serve(relay, listener, tls, data, stop).await {
        Ok(()) => Ok(()),
        Err(ServeError::Store(fault)) => Err(fault.into()),
        Err(ServeError::NoCredentials(listen)) => {
            Err(super::no_credentials(listen, &data.command(NARROW_TOKEN)))
        }
        Err(ServeError::Io(fault)) => Err(Failure::io("the relay", fault)),
    }
}

/// A signal to the process.
#[derive(Debug, PartialEq, Eq)]
enum Signal {
    End,
    #[cfg_attr(not(unix), allow(dead_code, reason = "there is no such signal"))]
    Reload,
}

/// The signals that end the relay or make it read its files again.
pub(super) struct ProcessSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl ProcessSignals {
    #[cfg(unix)]
    pub(super) fn new() -> Result<Self, Failure> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|e| Failure::io("the signals", e));
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hangup: listen(SignalKind::hangup())?,
        })
    }

    #[cfg(unix)]
    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::End,
            _ = self.terminate.recv() => Signal::End,
            _ = self.hangup.recv() => Signal::Reload,
        }
    }

    #[cfg(not(unix))]
    pub(super) fn new() -> Result<Self, Failure> {
        Ok(Self {})
    }

    #[cfg(not(unix))]
    async fn next(&mut self) -> Signal {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
        Signal::End
    }
}

const LOOK: Duration = Duration::from_secs(2);

/// The state of the files: a digest of each content and mode, or the reason why a file can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileDigests {
    config: Result<Digest, io::ErrorKind>,
    tls: Option<[Result<Digest, io::ErrorKind>; 2]>,
}

impl FileDigests {
    /// The files that a relay starts with. Both are computed before the files are read: later changes are read again.
    pub(super) fn new(config: Result<Digest, io::ErrorKind>, tls: Option<&Tls>) -> Self {
        Self {
            config,
            tls: tls.map(|files| [digest(&files.certificate), digest(&files.key)]),
        }
    }
}

/// The digest of the configuration, or why it can't be read.
pub(super) fn config_digest(
    overrides: &StartOptions,
    data: &DataFolder,
) -> Result<Digest, io::ErrorKind> {
    digest(&overrides.file.clone().unwrap_or_else(|| data.config()))
}

pub(super) struct Reloader {
    relay: Relay,
    data: DataFolder,
    overrides: StartOptions,
    tls: Option<ServerTls>,
    /// The files as of the last look.
    seen: FileDigests,
    /// The files as of the last time that they were used.
    used: FileDigests,
    /// Whether there was a file with the configuration since the start.
    has_file: bool,
    /// Whether the configuration could not be used the last time.
    is_config_bad: bool,
}

impl Reloader {
    pub(super) fn new(
        relay: Relay,
        data: DataFolder,
        overrides: StartOptions,
        tls: Option<ServerTls>,
        read: FileDigests,
    ) -> Self {
        Self {
            relay,
            data,
            overrides,
            tls,
            has_file: read.config.is_ok(),
            is_config_bad: false,
            seen: read.clone(),
            used: read,
        }
    }

    /// Looks at the files, and uses a change when two looks find the same: a certificate and its key are two files and
    /// are not replaced at once.
    fn look(&mut self) {
        let now = self.contents();
        let is_settled = now == self.seen;
        self.seen = now;
        if is_settled && self.seen != self.used {
            self.reload("a file has changed");
        }
    }

    /// Reads all files again and logs the result.
    fn reload(&mut self, why: &str) {
        self.seen = self.contents();
        self.relay.reload_keys();
        let config = self.overrides.config(&self.data);
        let is_gone = self.has_file && self.seen.config.is_err();
        let was_bad = std::mem::replace(&mut self.is_config_bad, is_gone || config.is_err());
        // Whatever is wrong with it is said below.
        let mut is_changed = self.is_config_bad;
        match config {
            // Without its file, a relay would go on without the rules of its operator.
            Ok(_) if is_gone => tracing::error!(
                why,
                "the configuration is gone, and the old one stays: put the file back, or restart the relay without it"
            ),
            Ok(config) => {
                is_changed = self.use_config(config, why);
                if was_bad && !is_changed {
                    is_changed = true;
                    tracing::info!(
                        why,
                        "the configuration can be used again, and is the one that the relay uses"
                    );
                }
            }
            Err(fault) => tracing::error!(
                why,
                reason = %fault,
                "the new configuration can't be used, and the old one stays: correct the file (`{}` checks it), and it is \
                 read again",
                self.check_command()
            ),
        }
        // The certificate may be in other files by now. Each digest is made before its file is read, so that a change in
        // between is noticed at the next look.
        self.seen.tls = self.contents().tls;
        is_changed |= self.use_certificate(why);
        self.used = self.seen.clone();
        self.has_file |= self.used.config.is_ok();
        if !is_changed {
            tracing::info!(
                why,
                "read trust file, configuration and certificate again: nothing else has changed"
            );
        }
    }

    /// Uses the new state; returns whether it logged something.
    fn use_config(&self, config: Config, why: &str) -> bool {
        // This thread is one of those that may wait.
        let reload = Handle::current().block_on(self.relay.reload(config));
        let reload = match reload {
            Ok(reload) => reload,
            Err(fault) => {
                tracing::error!(why, reason = %fault, "the store can't be read, and the old configuration stays");
                return true;
            }
        };
        if !reload.changed.is_empty() {
            let changed = reload.changed.join(", ");
            tracing::info!(why, changed, "reloaded the configuration");
            warn_about_routes(&self.relay.config(), &self.data);
            // Messages that the old configuration stopped may go on.
            self.relay.wake();
        }
        if !reload.needs_restart.is_empty() {
            let settings = reload.needs_restart.join(", ");
            tracing::warn!(
                why,
                settings,
                "these settings have changed and need a restart; the old ones apply until then"
            );
        }
        !reload.changed.is_empty() || !reload.needs_restart.is_empty()
    }

    /// Uses the new state; returns whether it logged something.
    fn use_certificate(&self, why: &str) -> bool {
        let config = self.relay.config();
        let (Some(files), Some(running)) = (&config.tls, &self.tls) else {
            return false;
        };
        match server::tls(files) {
            Ok(new) => {
                let is_new = self.seen.tls != self.used.tls;
                running.replace_with(&new);
                if is_new {
                    let expires = new.expires_at().map(|t| t.to_string()).unwrap_or_default();
                    tracing::info!(why, expires, "new connections get the new certificate");
                }
                is_new
            }
            Err(fault) => {
                tracing::error!(
                    why,
                    reason = %fault,
                    "the new certificate or key can't be used, and the old one stays: correct the files (`{}` checks them), and \
                     they are read again",
                    self.check_command()
                );
                true
            }
        }
    }

    fn check_command(&self) -> String {
        self.overrides.command("--check", &self.data)
    }

    fn contents(&self) -> FileDigests {
        let config = config_digest(&self.overrides, &self.data);
        FileDigests::new(config, self.relay.config().tls.as_ref())
    }
}

fn digest(path: &Path) -> Result<Digest, io::ErrorKind> {
    let read = open_regular(path).and_then(|file| {
        let mut bytes = read_bounded(&file, MAX_FILE_BYTES)?;
        // A file that was rejected for its mode is read again after `chmod`.
        bytes.extend(mode(&file)?.to_le_bytes());
        Ok(bytes)
    });
    read.map(|bytes| Digest::of(&bytes)).map_err(|e| e.kind())
}

fn mode(file: &std::fs::File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode())
}
