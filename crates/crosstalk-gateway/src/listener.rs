//! The servers for LMTP and SMTP: connections with limits and deadlines around [`MailSession`].

use crate::authenticate::MailPeer;
use crate::data::{DataFault, DataReader};
use crate::intake::{MailIntake, MailOutcome};
use crate::session::{Dialect, MAX_COMMAND_BYTES, MailSession, Step, line, too_large};
use crosstalk_email::limit::MAIL_BYTES;
use crosstalk_relay::rate::network;
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// The most connections at once.
const MAX_CONNECTIONS: usize = 512;
/// The most connections at once from one network, for SMTP.
const MAX_CONNECTIONS_PER_NETWORK: usize = 20;
/// Seconds until the next command has to be there.
const COMMAND_SECONDS: u64 = 300;
/// Seconds until the next command of a client from everywhere has to be there.
const STRANGER_COMMAND_SECONDS: u64 = 60;
/// Seconds until a mail has to be there, however slowly it comes.
const MAIL_SECONDS: u64 = 600;
/// Seconds until the next bytes of a mail have to be there.
const BYTES_SECONDS: u64 = 60;
/// Seconds until an answer has to be taken.
const ANSWER_SECONDS: u64 = 60;
/// Seconds until TLS has to be agreed on.
const TLS_SECONDS: u64 = 30;
/// How many bytes are read at once.
const READ_BYTES: usize = 64 * 1024;

/// A stream of a mail client or a mail server.
pub(crate) trait MailStream:
    AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug
{
}
impl<S: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug> MailStream for S {}

/// Where connections come from.
pub enum MailListener {
    /// The network.
    Network(TcpListener),
    /// This machine, through a socket in a folder.
    Socket(UnixListener),
}

impl MailListener {
    /// The next connection. One through a socket of this machine counts as one of this machine.
    async fn accept(&self) -> io::Result<(Box<dyn MailStream>, SocketAddr)> {
        match self {
            Self::Network(listener) => {
                let (stream, peer) = listener.accept().await?;
                let _ = stream.set_nodelay(true);
                Ok((Box::new(stream), peer))
            }
            Self::Socket(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Box::new(stream), (Ipv4Addr::LOCALHOST, 0).into()))
            }
        }
    }
}

/// A server for mail.
pub struct MailServer {
    intake: MailIntake,
    dialect: Dialect,
    host: String,
    tls: Option<TlsAcceptor>,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// A connection that counts, until it is dropped.
struct OpenConnection {
    server: Arc<MailServer>,
    of: IpAddr,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        let mut open = self
            .server
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = open.get_mut(&self.of) {
            *number -= 1;
            if *number == 0 {
                open.remove(&self.of);
            }
        }
    }
}

impl MailServer {
    /// A server under a name. With `tls`, it offers STARTTLS.
    pub fn new(
        intake: MailIntake,
        dialect: Dialect,
        host: &str,
        tls: Option<TlsAcceptor>,
    ) -> Arc<Self> {
        Arc::new(Self {
            intake,
            dialect,
            host: host.to_owned(),
            tls,
            open: Mutex::default(),
        })
    }

    /// Serves until `stop` says so. Mails that are being taken in are finished first.
    pub async fn serve(self: Arc<Self>, listener: MailListener, mut stop: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = stop.wait_for(|is_over| *is_over) => break,
                Some(_) = connections.join_next() => continue,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(fault) => {
                    // Too many open files: those that are open go on.
                    tracing::warn!(reason = %fault, "a mail connection was not accepted");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let Some(permit) = self.permit(peer.ip()) else {
                connections.spawn(turn_away(stream));
                continue;
            };
            let (server, stop) = (Arc::clone(&self), stop.clone());
            connections.spawn(async move {
                // The peer is gone: there is nobody to tell.
                let _ = server.converse(stream, peer, stop).await;
                drop(permit);
            });
        }
        drop(listener);
        while connections.join_next().await.is_some() {}
    }

    fn permit(self: &Arc<Self>, ip: IpAddr) -> Option<OpenConnection> {
        let of = network(ip);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.values().sum();
        let own = open.get(&of).copied().unwrap_or(0);
        let is_full = self.dialect == Dialect::Smtp && own >= MAX_CONNECTIONS_PER_NETWORK;
        if all >= MAX_CONNECTIONS || is_full {
            return None;
        }
        open.insert(of, own + 1);
        drop(open);
        Some(OpenConnection {
            server: Arc::clone(self),
            of,
        })
    }

    async fn converse(
        &self,
        stream: Box<dyn MailStream>,
        peer: SocketAddr,
        stop: watch::Receiver<bool>,
    ) -> io::Result<()> {
        let mut session = MailSession::new(self.dialect, &self.host, self.tls.is_some());
        let greeting = session.greeting();
        let mut plain = MailConnection::new(stream, stop.clone());
        plain.say(&greeting).await?;
        if !self.talk(&mut plain, &mut session, peer).await? {
            return Ok(());
        }
        let (Some(tls), true) = (&self.tls, plain.held.is_empty()) else {
            // Bytes that came before the encryption are no commands after it.
            return Ok(());
        };
        let limit = Duration::from_secs(TLS_SECONDS);
        let stream = tokio::time::timeout(limit, tls.accept(plain.stream)).await??;
        let mut encrypted = MailConnection::new(stream, stop);
        self.talk(&mut encrypted, &mut session, peer).await?;
        Ok(())
    }

    /// Talks until the conversation ends, or until encryption begins: then it returns true.
    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        connection: &mut MailConnection<S>,
        session: &mut MailSession,
        peer: SocketAddr,
    ) -> io::Result<bool> {
        let seconds = match self.dialect {
            Dialect::Lmtp => COMMAND_SECONDS,
            Dialect::Smtp => STRANGER_COMMAND_SECONDS,
        };
        loop {
            let command = match connection.command(Duration::from_secs(seconds)).await? {
                Heard::Command(command) => command,
                Heard::TooLong => {
                    connection
                        .say(&line(500, "5.5.2 the command is too long"))
                        .await?;
                    return Ok(false);
                }
                Heard::TooSlow => {
                    connection
                        .say(&line(421, "4.4.2 nothing came for too long"))
                        .await?;
                    return Ok(false);
                }
                Heard::Stopping => {
                    connection
                        .say(&line(421, "4.3.2 the gateway is stopping"))
                        .await?;
                    return Ok(false);
                }
                Heard::End => return Ok(false),
            };
            match session.command(&command, |address| self.intake.accepts(address)) {
                Step::Reply(text) => connection.say(&text).await?,
                Step::Close(text) => {
                    connection.say(&text).await?;
                    return Ok(false);
                }
                Step::StartTls(text) => {
                    connection.say(&text).await?;
                    return Ok(true);
                }
                Step::Data(text) => {
                    connection.say(&text).await?;
                    if !self.mail(connection, session, peer).await? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Reads a mail and answers it; false if the conversation can't go on.
    async fn mail<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        connection: &mut MailConnection<S>,
        session: &mut MailSession,
        peer: SocketAddr,
    ) -> io::Result<bool> {
        let limit = Duration::from_secs(MAIL_SECONDS);
        let Ok(mail) = tokio::time::timeout(limit, connection.mail()).await else {
            connection
                .say(&line(421, "4.4.2 the mail came too slowly"))
                .await?;
            return Ok(false);
        };
        let Some(mail) = mail? else {
            connection.say(&line(552, &too_large())).await?;
            return Ok(false);
        };
        let transaction = session.take_transaction();
        let number = transaction.recipients.len();
        let (code, text) = match mail {
            Err(DataFault::TooLarge) => (552, too_large()),
            Err(DataFault::BareLineEnd) => (
                554,
                "5.6.0 E-FORMAT: the mail has a CR or a LF alone; send it with CR LF at the end of each line".to_owned(),
            ),
            Ok(mail) => {
                let origin = MailPeer {
                    way: match self.dialect {
                        Dialect::Lmtp => "lmtp",
                        Dialect::Smtp => "smtp",
                    },
                    peer: (self.dialect == Dialect::Smtp).then_some(peer.ip()),
                    helo: transaction.helo,
                    return_path: Some(transaction.return_path),
                    recipients: transaction.recipients,
                };
                let outcome: MailOutcome = self.intake.receive(mail.into(), &origin).await;
                outcome.to_reply()
            }
        };
        let answer = session.answer(number, code, &text);
        connection.say(&answer).await?;
        Ok(true)
    }
}

/// Says that there is no room.
async fn turn_away(mut stream: Box<dyn MailStream>) {
    let text = line(421, "4.7.0 too many connections; try again later");
    let limit = Duration::from_secs(ANSWER_SECONDS);
    let _ = tokio::time::timeout(limit, stream.write_all(text.as_bytes())).await;
}

/// A command, or the event that came instead of one.
enum Heard {
    Command(Vec<u8>),
    TooLong,
    TooSlow,
    Stopping,
    End,
}

struct MailConnection<S> {
    stream: S,
    /// Bytes that came and were not looked at.
    held: Vec<u8>,
    stop: watch::Receiver<bool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> MailConnection<S> {
    fn new(stream: S, stop: watch::Receiver<bool>) -> Self {
        Self {
            stream,
            held: Vec::new(),
            stop,
        }
    }

    async fn say(&mut self, text: &str) -> io::Result<()> {
        let limit = Duration::from_secs(ANSWER_SECONDS);
        let write = async {
            self.stream.write_all(text.as_bytes()).await?;
            self.stream.flush().await
        };
        tokio::time::timeout(limit, write).await?
    }

    /// The next bytes; false at the end of the connection.
    async fn fill(&mut self) -> io::Result<bool> {
        let before = self.held.len();
        self.held.reserve(READ_BYTES);
        let read = (&mut self.stream)
            .take(READ_BYTES as u64)
            .read_buf(&mut self.held)
            .await?;
        Ok(read > 0 && self.held.len() > before)
    }

    /// The next command with its line end.
    async fn command(&mut self, limit: Duration) -> io::Result<Heard> {
        let deadline = tokio::time::Instant::now() + limit;
        loop {
            if let Some(at) = self.held.iter().position(|byte| *byte == b'\n') {
                let rest = self.held.split_off(at + 1);
                let command = std::mem::replace(&mut self.held, rest);
                return Ok(match command.len() <= MAX_COMMAND_BYTES {
                    true => Heard::Command(command),
                    false => Heard::TooLong,
                });
            }
            if self.held.len() >= MAX_COMMAND_BYTES {
                return Ok(Heard::TooLong);
            }
            let mut stop = self.stop.clone();
            tokio::select! {
                read = self.fill() => if !read? {
                    return Ok(Heard::End);
                },
                () = tokio::time::sleep_until(deadline) => return Ok(Heard::TooSlow),
                // Nothing is lost: no mail is under way.
                _ = stop.wait_for(|is_over| *is_over) => return Ok(Heard::Stopping),
            }
        }
    }

    /// The next mail, or what is wrong with it; nothing if it does not end.
    async fn mail(&mut self) -> io::Result<Option<Result<Vec<u8>, DataFault>>> {
        let mut reader = DataReader::new(MAIL_BYTES);
        loop {
            if let Some(used) = reader.read(&self.held) {
                self.held = self.held.split_off(used);
                return Ok(Some(reader.finish()));
            }
            self.held.clear();
            if reader.is_endless() {
                return Ok(None);
            }
            let limit = Duration::from_secs(BYTES_SECONDS);
            if !tokio::time::timeout(limit, self.fill()).await?? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
}
