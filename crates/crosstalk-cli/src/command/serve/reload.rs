//! Reads configuration and certificate again while the relay runs: on SIGHUP, and when a file has changed. SIGHUP makes the
//! relay look at the trust file as well; when that file changes, the relay notices by itself.

use super::Overrides;
use crate::service::relay::data::Data;
use crosstalk_envelope::meta::Digest;
use crosstalk_relay::config::{Config, Tls};
use crosstalk_relay::core::Relay;
use crosstalk_relay::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use crosstalk_relay::server::{self, ServerTls};
use std::io;
use std::path::Path;
use std::time::Duration;

/// How often the files are looked at.
pub(super) const LOOK: Duration = Duration::from_secs(2);

/// What is in the files: a digest each of the content and the mode, or why they can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    config: Result<Digest, io::ErrorKind>,
    tls: Option<[Result<Digest, io::ErrorKind>; 2]>,
}

impl Contents {
    /// The files that a relay starts with. Both are taken before the files are read: what changes in between is then read again.
    pub(super) fn new(config: Result<Digest, io::ErrorKind>, tls: Option<&Tls>) -> Self {
        Self {
            config,
            tls: tls.map(|files| [digest(&files.certificate), digest(&files.key)]),
        }
    }
}

/// The digest of the configuration, or why it can't be read.
pub(super) fn config_digest(overrides: &Overrides, data: &Data) -> Result<Digest, io::ErrorKind> {
    digest(&overrides.file.clone().unwrap_or_else(|| data.config()))
}

/// What is read again.
pub(super) struct Reloader {
    relay: Relay,
    data: Data,
    overrides: Overrides,
    tls: Option<ServerTls>,
    /// The files as of the last look.
    seen: Contents,
    /// The files as of the last time that they were used.
    used: Contents,
    /// Whether there was a file with the configuration since the start.
    has_file: bool,
    /// Whether the configuration could not be used the last time.
    is_config_bad: bool,
}

impl Reloader {
    pub(super) fn new(
        relay: Relay,
        data: Data,
        overrides: Overrides,
        tls: Option<ServerTls>,
        read: Contents,
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

    /// Looks at the files. What has changed is used when two looks find the same: a certificate and its key are two files,
    /// and nobody replaces both at once.
    pub(super) fn look(&mut self) {
        let now = self.contents();
        let is_settled = now == self.seen;
        self.seen = now;
        if is_settled && self.seen != self.used {
            self.reload("a file has changed");
        }
    }

    /// Reads everything again, and says what became of it.
    pub(super) fn reload(&mut self, why: &str) {
        self.seen = self.contents();
        self.relay.look_at_keys();
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
                        "the configuration can be used again: it says what the relay goes by already"
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
        is_changed |= self.use_certificate(why);
        // The paths of the certificate may be other ones by now.
        self.seen = self.contents();
        self.used = self.seen.clone();
        self.has_file |= self.used.config.is_ok();
        if !is_changed {
            tracing::info!(
                why,
                "read trust file, configuration and certificate again: nothing else has changed"
            );
        }
    }

    /// Whether something is to be said about it.
    fn use_config(&self, config: Config, why: &str) -> bool {
        let reload = match self.relay.reload(config) {
            Ok(reload) => reload,
            Err(fault) => {
                tracing::error!(why, reason = %fault, "the store can't be read, and the old configuration stays");
                return true;
            }
        };
        if !reload.changed.is_empty() {
            let changed = reload.changed.join(", ");
            tracing::info!(why, changed, "the new configuration counts from now on");
            super::warn_about_routes(&self.relay.config(), &self.data);
            // What was held up by the old one may go on.
            self.relay.wake();
        }
        if !reload.needs_restart.is_empty() {
            let settings = reload.needs_restart.join(", ");
            tracing::warn!(
                why,
                settings,
                "these settings have changed and need a restart: the old ones count until then"
            );
        }
        !reload.changed.is_empty() || !reload.needs_restart.is_empty()
    }

    /// Whether something is to be said about it.
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

    fn contents(&self) -> Contents {
        let config = config_digest(&self.overrides, &self.data);
        Contents::new(config, self.relay.config().tls.as_ref())
    }
}

fn digest(path: &Path) -> Result<Digest, io::ErrorKind> {
    let read = open_regular(path).and_then(|file| {
        let mut bytes = read_bounded(&file, MAX_FILE_BYTES)?;
        // A file that was refused for its mode is read again after `chmod`.
        bytes.extend(mode(&file)?.to_le_bytes());
        Ok(bytes)
    });
    read.map(|bytes| Digest::of(&bytes)).map_err(|e| e.kind())
}

fn mode(file: &std::fs::File) -> io::Result<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    Ok(file.metadata()?.permissions().mode())
}
