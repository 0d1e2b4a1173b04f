//! Every way of mail into a relay that its configuration names, started and stopped together.

use crate::authenticate::SenderAuthenticator;
use crate::imap::MailboxReader;
use crate::intake::MailIntake;
use crate::listener::{MailListener, MailServer};
use crate::session::Dialect;
use crosstalk_relay::config::{Config, LmtpAddress};
use crosstalk_relay::core::Relay;
use crosstalk_relay::server;
use std::fs::{self, DirBuilder};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// How long a connect to a socket that is already there may take.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// Why mail can't come in.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// An address can't be listened on.
    #[error("can't listen for mail on {0}: {1}")]
    Listen(String, #[source] io::Error),
    /// The certificate or key of STARTTLS, or the name servers.
    #[error("{0}")]
    Setup(String),
}

/// The sockets for mail. They are bound early, while the process may still use low ports.
#[derive(Debug, Default)]
pub struct MailListeners {
    lmtp: Option<BoundListener>,
    smtp: Option<BoundListener>,
}

/// A socket that was bound.
#[derive(Debug)]
enum BoundListener {
    Network(TcpListener),
    Socket(UnixListener),
}

impl BoundListener {
    fn network(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self::Network(listener))
    }

    /// A socket in a folder. One that is left of a relay that was killed is replaced; one that somebody listens on is not.
    fn socket(path: &Path) -> io::Result<Self> {
        let is_socket = fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket());
        if is_socket && is_abandoned(path) {
            fs::remove_file(path)?;
        }
        // Others may write to the folder. Its mode is set where they can't put anything else in the place of the socket.
        let parent = path.parent().unwrap_or(Path::new(""));
        let folder = make_private_folder(parent)?;
        let bound = bind_in(&folder, path);
        fs::remove_dir(&folder)?;
        Ok(Self::Socket(bound?))
    }

    fn into_listener(self) -> io::Result<(MailListener, Option<SocketAddr>)> {
        Ok(match self {
            Self::Network(listener) => {
                let address = listener.local_addr()?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                (MailListener::Network(listener), Some(address))
            }
            Self::Socket(listener) => {
                let listener = tokio::net::UnixListener::from_std(listener)?;
                (MailListener::Socket(listener), None)
            }
        })
    }
}

/// Whether nobody listens on a socket. While its queue is full, a connect waits: then somebody does.
fn is_abandoned(path: &Path) -> bool {
    let (tell, told) = mpsc::channel();
    let path = path.to_owned();
    thread::spawn(move || tell.send(UnixStream::connect(path).map(drop)));
    let connected = told.recv_timeout(CONNECT_TIME);
    matches!(connected, Ok(Err(fault)) if fault.kind() == io::ErrorKind::ConnectionRefused)
}

/// A new folder that only its owner can use. Its name is short: so is the longest path of a socket.
fn make_private_folder(parent: &Path) -> io::Result<PathBuf> {
    let mut number = 0;
    loop {
        let folder = parent.join(format!(".{number}"));
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => return Ok(folder),
            Err(fault) if fault.kind() == io::ErrorKind::AlreadyExists && number < 99 => {
                number += 1
            }
            Err(fault) => return Err(fault),
        }
    }
}

/// Binds a socket that everybody may write to, and gives it its path. The folder is empty afterwards.
fn bind_in(folder: &Path, path: &Path) -> io::Result<UnixListener> {
    let made = folder.join("s");
    let listener = UnixListener::bind(&made)?;
    // The mail server runs as another user. The permissions of the folder decide who may hand mail over.
    let placed = fs::set_permissions(&made, fs::Permissions::from_mode(0o666))
        .and_then(|()| listener.set_nonblocking(true))
        // Unlike a rename, it replaces nothing.
        .and_then(|()| fs::hard_link(&made, path));
    fs::remove_file(&made)?;
    placed.map(|()| listener)
}

impl MailListeners {
    /// Binds what the configuration names.
    ///
    /// # Errors
    /// If an address can't be used.
    pub fn bind(config: &Config) -> Result<Self, GatewayError> {
        let Some(email) = &config.email else {
            return Ok(Self::default());
        };
        let network = |address: SocketAddr| {
            let bound = BoundListener::network(address);
            bound.map_err(|fault| GatewayError::Listen(address.to_string(), fault))
        };
        let lmtp = email.lmtp.as_ref().map(|lmtp| match &lmtp.listen {
            LmtpAddress::Network(address) => network(*address),
            LmtpAddress::Socket(path) => BoundListener::socket(path)
                .map_err(|fault| GatewayError::Listen(path.display().to_string(), fault)),
        });
        let smtp = email.smtp.as_ref().map(|smtp| network(smtp.listen));
        Ok(Self {
            lmtp: lmtp.transpose()?,
            smtp: smtp.transpose()?,
        })
    }
}

/// The running ways of mail into a relay.
pub struct MailGateway {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
    /// The address of the LMTP server; none if it listens on a socket of this machine.
    pub lmtp: Option<SocketAddr>,
    /// The address of the SMTP server.
    pub smtp: Option<SocketAddr>,
}

impl MailGateway {
    /// Starts what the configuration of a relay names; nothing if it names nothing. `folder` is the data folder. Needs a tokio
    /// runtime.
    ///
    /// # Errors
    /// If a certificate or the name servers can't be used.
    pub fn start(
        relay: &Relay,
        listeners: MailListeners,
        folder: &Path,
    ) -> Result<Option<Self>, GatewayError> {
        let config = relay.config();
        let Some(email) = &config.email else {
            return Ok(None);
        };
        if email.imap.is_none() && listeners.lmtp.is_none() && listeners.smtp.is_none() {
            return Ok(None);
        }
        let authenticator =
            SenderAuthenticator::new(config.federation.dns).map_err(GatewayError::Setup)?;
        let intake = MailIntake::new(relay.clone(), authenticator);
        let tls = email.smtp.as_ref().and_then(|smtp| smtp.tls.as_ref());
        let tls = tls.map(server::tls).transpose();
        let tls =
            tls.map_err(|fault| GatewayError::Setup(format!("TLS of [email.smtp]: {fault}")))?;
        let (stop, stopped) = watch::channel(false);
        let mut this = Self {
            stop,
            tasks: JoinSet::new(),
            lmtp: None,
            smtp: None,
        };
        let ways = [
            (Dialect::Lmtp, listeners.lmtp, None),
            (Dialect::Smtp, listeners.smtp, tls),
        ];
        for (dialect, listener, tls) in ways {
            let Some(listener) = listener else { continue };
            let setup = |fault: io::Error| GatewayError::Setup(fault.to_string());
            let (listener, address) = listener.into_listener().map_err(setup)?;
            let tls = tls.map(|tls| TlsAcceptor::from(tls.config()));
            let server = MailServer::new(intake.clone(), dialect, &email.domain, tls);
            let way = match dialect {
                Dialect::Lmtp => &mut this.lmtp,
                Dialect::Smtp => &mut this.smtp,
            };
            *way = address;
            let shown = address.map_or_else(|| "a socket".to_owned(), |a| a.to_string());
            tracing::info!(address = shown, ?dialect, "listening for mail");
            this.tasks.spawn(server.serve(listener, stopped.clone()));
        }
        if let Some(account) = &email.imap {
            let reader = MailboxReader::new(intake, account.clone(), folder);
            this.tasks.spawn(reader.run(stopped));
        }
        Ok(Some(this))
    }

    /// Stops: mails that are being taken in are finished, for at most so long.
    pub async fn stop(mut self, grace: Duration) {
        let _ = self.stop.send(true);
        let finish = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(grace, finish).await.is_err() {
            tracing::warn!("a mail was not taken in before the end: it comes again");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn only_a_socket_without_a_listener_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lmtp");
        let bind = || BoundListener::socket(&path);
        let first = bind().unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o666);
        assert!(UnixStream::connect(&path).is_ok());
        assert!(bind().is_err(), "somebody listens");
        drop(first);
        drop(bind().unwrap());
        fs::remove_file(&path).unwrap();
        // It is the socket of another program, although no stream can be opened to it.
        let other = UnixDatagram::bind(&path).unwrap();
        assert!(bind().is_err());
        drop(other);
        fs::remove_file(&path).unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "x").unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&secret, &path).unwrap();
        assert!(bind().is_err());
        let mode = secret.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::remove_file(&path).unwrap();
        drop(bind().unwrap());
        let mut names: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["lmtp", "secret"], "nothing else is left");
    }
}
