//! Every way of mail into a relay that its configuration names, started and stopped together.

use crate::authenticate::SenderAuthenticator;
use crate::imap::MailboxReader;
use crate::intake::MailIntake;
use crate::listener::{MailListener, MailServer};
use crate::session::Dialect;
use crosstalk_relay::config::{Config, LmtpAddress};
use crosstalk_relay::core::Relay;
use crosstalk_relay::server;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;
use std::{fs, io};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

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
        if is_socket && UnixStream::connect(path).is_err() {
            fs::remove_file(path)?;
        }
        let listener = UnixListener::bind(path)?;
        // The mail server runs as another user. Who may hand mail over is decided by the folder.
        fs::set_permissions(path, fs::Permissions::from_mode(0o666))?;
        listener.set_nonblocking(true)?;
        Ok(Self::Socket(listener))
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
