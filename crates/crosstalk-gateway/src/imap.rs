//! An existing mailbox: the gateway reads what is new in a folder, by IDLE where the server offers it, else from time to time
//! (MAI-070).
//!
//! ```text
//! UIDs that are new ── remember (fsync) ──> fetch ──> MailIntake::receive ──> mark or move ──> forget (fsync)
//! ```
//!
//! A mail that was accepted just before the process was killed is fetched again; its messages have the same ids, so that the relay
//! knows them.

use crate::authenticate::MailPeer;
use crate::intake::{MailIntake, MailOutcome};
use crate::listener::MailStream;
use async_imap::extensions::idle::IdleResponse;
use async_imap::types::Fetch;
use async_imap::{Client, Session};
use crosstalk_email::limit::MAIL_BYTES;
use crosstalk_relay::config::{ImapAccount, MailTls};
use crosstalk_relay::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use futures_util::TryStreamExt as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::future::Future;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio_rustls::TlsConnector;

/// The file in the data folder that says which mails were read.
pub const STATE_FILE: &str = "email-imap.json";
/// The most bytes of that file.
const MAX_STATE_BYTES: u64 = 16 << 20;
/// Seconds between two looks, where the server does not tell.
const POLL_SECONDS: u64 = 30;
/// Seconds that an IDLE lasts. A mail that the server reports just before it idles is found when this is over.
const IDLE_SECONDS: u64 = 60;
/// Seconds that one command may take.
const COMMAND_SECONDS: u64 = 120;
/// The longest wait before the next connection, in seconds.
const MAX_PAUSE_SECONDS: u64 = 300;

/// Why the mailbox can't be read now.
#[derive(Debug, thiserror::Error)]
pub enum MailboxError {
    /// The server, or the way to it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The answer of the server.
    #[error("{0}")]
    Imap(#[from] async_imap::error::Error),
    /// A step of the beginning of a connection failed.
    #[error("{1}")]
    Step(MailboxStep, String),
    /// Something else.
    #[error("{0}")]
    Other(String),
}

/// A step of the beginning of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailboxStep {
    /// Reading the password, or the certificate authorities.
    Files,
    /// Reaching the mail server.
    Connect,
    /// Encrypting the connection.
    Encrypt,
    /// Logging in.
    LogIn,
    /// Opening the folder.
    Folder,
}

/// Logs in to a mailbox and opens its folders, without a change. Returns the number of mails in the folder to read.
///
/// # Errors
/// The step that failed, and why.
pub async fn try_mailbox(account: &ImapAccount) -> Result<u32, (MailboxStep, String)> {
    let step_of = |fault: MailboxError| match fault {
        MailboxError::Step(step, reason) => (step, reason),
        other => (MailboxStep::Connect, other.to_string()),
    };
    let folder_fault = |fault: MailboxError| match &fault {
        MailboxError::Imap(fault) => (MailboxStep::Folder, words_of(fault)),
        other => (MailboxStep::Folder, other.to_string()),
    };
    let mut session = within(connect(account)).await.map_err(step_of)?;
    if let Some(folder) = &account.done_folder {
        let opened = in_time(session.examine(folder)).await;
        opened.map_err(|fault| {
            let (step, reason) = folder_fault(fault);
            (step, format!("{folder}: {reason}"))
        })?;
    }
    let mailbox = in_time(session.examine(&account.folder)).await;
    let mailbox = mailbox.map_err(|fault| {
        let (step, reason) = folder_fault(fault);
        (step, format!("{}: {reason}", account.folder))
    })?;
    let _ = in_time(session.logout()).await;
    Ok(mailbox.exists)
}

/// The mails of a folder that were read, and those that are still to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailboxState {
    /// The folder and its account.
    pub mailbox: String,
    /// The UIDVALIDITY: if it changes, all UIDs mean other mails.
    pub validity: u32,
    /// The lowest UID that was not seen yet.
    pub next: u32,
    /// The UIDs below that are still to be read.
    pub open: BTreeSet<u32>,
}

impl MailboxState {
    /// The state of a file; the empty one if there is none.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn load(path: &Path) -> io::Result<Self> {
        let file = match open_regular(path) {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(fault) => return Err(fault),
        };
        let text = read_bounded(&file, MAX_STATE_BYTES)?;
        serde_json::from_slice(&text).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// Writes the state: it is on disk when this returns.
    fn save(&self, path: &Path) -> io::Result<()> {
        let beside = path.with_extension("new");
        let mut file = File::create(&beside)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        match path.parent() {
            Some(folder) => File::open(folder)?.sync_all(),
            None => Ok(()),
        }
    }
}

type ImapSession = Session<Box<dyn MailStream>>;

/// Reads a mailbox until it is told to stop.
pub struct MailboxReader {
    intake: MailIntake,
    account: ImapAccount,
    path: PathBuf,
}

impl MailboxReader {
    /// A reader that keeps its state in a folder.
    pub fn new(intake: MailIntake, account: ImapAccount, folder: &Path) -> Self {
        Self {
            intake,
            account,
            path: folder.join(STATE_FILE),
        }
    }

    /// Reads until `stop` says so; connects again, with longer and longer waits, when the connection ends.
    pub async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut pause = 1;
        self.intake.relay().metrics().set_mailbox(false);
        loop {
            let ended = self.converse(stop.clone(), &mut pause).await;
            self.intake.relay().metrics().set_mailbox(false);
            if *stop.borrow() {
                return;
            }
            let host = &self.account.host;
            match ended {
                Ok(()) => return,
                Err(fault) => {
                    tracing::warn!(host, reason = %fault, pause, "the mailbox can't be read now")
                }
            }
            tokio::select! {
                () = tokio::time::sleep(Duration::from_secs(pause)) => {}
                _ = stop.wait_for(|is_over| *is_over) => return,
            }
            pause = (pause * 2).min(MAX_PAUSE_SECONDS);
        }
    }

    /// One connection.
    async fn converse(
        &self,
        mut stop: watch::Receiver<bool>,
        pause: &mut u64,
    ) -> Result<(), MailboxError> {
        let mut session = within(connect(&self.account)).await?;
        let capabilities = in_time(session.capabilities()).await?;
        let (has_idle, has_move) = (capabilities.has_str("IDLE"), capabilities.has_str("MOVE"));
        let mailbox = in_time(session.select(&self.account.folder)).await?;
        let validity = mailbox.uid_validity.ok_or_else(|| {
            MailboxError::Other(
                "the server has no lasting numbers for its mails (UIDVALIDITY)".into(),
            )
        })?;
        let mut state = self.begin(&mut session, validity, mailbox.uid_next).await?;
        // The mailbox can be read: the next connection is tried at once.
        *pause = 1;
        self.intake.relay().metrics().set_mailbox(true);
        tracing::info!(
            host = self.account.host,
            folder = self.account.folder,
            "reading the mailbox"
        );
        loop {
            self.find_new(&mut session, &mut state).await?;
            self.take_open(&mut session, &mut state, has_move, &stop)
                .await?;
            if *stop.borrow() {
                let _ = in_time(session.logout()).await;
                return Ok(());
            }
            if !has_idle {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_secs(POLL_SECONDS)) => {}
                    _ = stop.wait_for(|is_over| *is_over) => {}
                }
                continue;
            }
            let seconds = match state.open.is_empty() {
                true => IDLE_SECONDS,
                // These are tried again soon.
                false => POLL_SECONDS,
            };
            let mut idle = session.idle();
            in_time(idle.init()).await?;
            let (wait, interrupt) = idle.wait_with_timeout(Duration::from_secs(seconds));
            let told = {
                tokio::pin!(wait);
                tokio::select! {
                    told = &mut wait => Some(told),
                    _ = stop.wait_for(|is_over| *is_over) => None,
                }
            };
            drop(interrupt);
            match told {
                Some(Err(fault)) => return Err(fault.into()),
                Some(Ok(
                    IdleResponse::NewData(_)
                    | IdleResponse::Timeout
                    | IdleResponse::ManualInterrupt,
                ))
                | None => {}
            }
            session = in_time(idle.done()).await?;
        }
    }

    /// The state of this mailbox. In one that was not read before, or whose UIDs were given out anew, the unread mails are new: the
    /// others were read by somebody, or here.
    async fn begin(
        &self,
        session: &mut ImapSession,
        validity: u32,
        next: Option<u32>,
    ) -> Result<MailboxState, MailboxError> {
        let account = &self.account;
        let mailbox = format!("{}@{}/{}", account.user, account.host, account.folder);
        let path = self.path.clone();
        let known = blocking(move || MailboxState::load(&path)).await?;
        if known.mailbox == mailbox && known.validity == validity {
            return Ok(known);
        }
        let unread = in_time(session.uid_search("UNSEEN")).await?;
        let above = unread
            .iter()
            .max()
            .map_or(1, |highest| highest.saturating_add(1));
        let state = MailboxState {
            mailbox,
            validity,
            next: next.unwrap_or(above).max(above),
            open: unread.into_iter().collect(),
        };
        self.save(&state).await?;
        Ok(state)
    }

    async fn save(&self, state: &MailboxState) -> Result<(), MailboxError> {
        let (state, path) = (state.clone(), self.path.clone());
        Ok(blocking(move || state.save(&path)).await?)
    }

    /// Remembers the mails that came since the last look.
    async fn find_new(
        &self,
        session: &mut ImapSession,
        state: &mut MailboxState,
    ) -> Result<(), MailboxError> {
        let found = in_time(session.uid_search(format!("UID {}:*", state.next))).await?;
        // The star always finds the last mail, also one that is known.
        let new: Vec<u32> = found.into_iter().filter(|uid| *uid >= state.next).collect();
        if let Some(highest) = new.iter().max() {
            state.next = highest.saturating_add(1);
            state.open.extend(new);
            self.save(state).await?;
        }
        Ok(())
    }

    /// Takes in every mail that is still to be read.
    async fn take_open(
        &self,
        session: &mut ImapSession,
        state: &mut MailboxState,
        has_move: bool,
        stop: &watch::Receiver<bool>,
    ) -> Result<(), MailboxError> {
        let origin = MailPeer {
            way: "imap",
            ..MailPeer::default()
        };
        for uid in state.open.clone() {
            if *stop.borrow() {
                return Ok(());
            }
            let outcome = match fetch(session, uid, "(UID RFC822.SIZE)").await? {
                None => None,
                Some(head) if u64::from(head.size.unwrap_or(0)) > MAIL_BYTES as u64 => {
                    match fetch(session, uid, "(UID BODY.PEEK[HEADER])").await? {
                        Some(mail) => {
                            let head: Arc<[u8]> = mail.header().unwrap_or_default().into();
                            Some(self.intake.reject_too_large(head, &origin).await)
                        }
                        None => None,
                    }
                }
                Some(_) => match fetch(session, uid, "(UID BODY.PEEK[])").await? {
                    Some(mail) => {
                        let bytes: Arc<[u8]> = mail.body().unwrap_or_default().into();
                        Some(self.intake.receive(bytes, &origin).await)
                    }
                    None => None,
                },
            };
            match outcome {
                // It is tried again.
                Some(MailOutcome::Later(_)) => continue,
                // Another program removed it.
                None => {}
                Some(_) => self.mark(session, uid, has_move).await?,
            }
            state.open.remove(&uid);
            self.save(state).await?;
        }
        Ok(())
    }

    /// Marks a mail as read, or moves it away.
    async fn mark(
        &self,
        session: &mut ImapSession,
        uid: u32,
        has_move: bool,
    ) -> Result<(), MailboxError> {
        let uid = uid.to_string();
        let flags = |flags: &str| format!("+FLAGS.SILENT ({flags})");
        within(set_flags(session, &uid, flags("\\Seen"))).await?;
        let Some(folder) = &self.account.done_folder else {
            return Ok(());
        };
        if has_move {
            return in_time(session.uid_mv(&uid, folder)).await;
        }
        in_time(session.uid_copy(&uid, folder)).await?;
        // It is gone when the owner of the mailbox tidies up: expunging here would remove what others marked.
        within(set_flags(session, &uid, flags("\\Deleted"))).await
    }
}

/// The words of the server in an error, without what the library writes around them.
fn words_of(fault: &async_imap::error::Error) -> String {
    use async_imap::error::Error;
    let (Error::No(text) | Error::Bad(text)) = fault else {
        return fault.to_string();
    };
    let said = text.split_once("Some(\"").map(|(_, rest)| rest);
    let said = said.and_then(|rest| rest.rsplit_once("\")"));
    said.map_or_else(|| text.clone(), |(words, _)| words.replace('\\', ""))
}

async fn connect(account: &ImapAccount) -> Result<ImapSession, MailboxError> {
    let step = |step, fault: &dyn std::fmt::Display| MailboxError::Step(step, fault.to_string());
    let stream = TcpStream::connect((account.host.as_str(), account.port())).await;
    let stream = stream.map_err(|fault| step(MailboxStep::Connect, &fault))?;
    let _ = stream.set_nodelay(true);
    let greet = |fault: MailboxError| step(MailboxStep::Connect, &fault);
    let stream: Box<dyn MailStream> = match account.tls() {
        MailTls::None => Box::new(stream),
        MailTls::Tls => Box::new(encrypt(account, stream).await?),
        MailTls::Starttls => {
            let mut client = Client::new(stream);
            greeting(&mut client).await.map_err(greet)?;
            let asked = client.run_command_and_check_ok("STARTTLS", None).await;
            asked.map_err(|fault| step(MailboxStep::Encrypt, &fault))?;
            Box::new(encrypt(account, client.into_inner()).await?)
        }
    };
    let mut client = Client::new(stream);
    if account.tls() != MailTls::Starttls {
        greeting(&mut client).await.map_err(greet)?;
    }
    let password = open_regular(&account.password_file)
        .and_then(|file| read_bounded(&file, MAX_FILE_BYTES))
        .map_err(|fault| {
            let shown = account.password_file.display();
            step(MailboxStep::Files, &format_args!("{shown}: {fault}"))
        })?;
    let password = String::from_utf8_lossy(&password);
    let session = client
        .login(&account.user, password.trim_end_matches(['\r', '\n']))
        .await;
    session.map_err(|(fault, _)| {
        let user = &account.user;
        step(
            MailboxStep::LogIn,
            &format_args!("the server does not let `{user}` in: {}", words_of(&fault)),
        )
    })
}

async fn encrypt(
    account: &ImapAccount,
    stream: TcpStream,
) -> Result<tokio_rustls::client::TlsStream<TcpStream>, MailboxError> {
    let other = |what: String| MailboxError::Step(MailboxStep::Encrypt, what);
    let mut roots = rustls::RootCertStore::empty();
    match &account.ca_file {
        Some(path) => {
            let unreadable = |fault: String| {
                MailboxError::Step(MailboxStep::Files, format!("{}: {fault}", path.display()))
            };
            let text = open_regular(path).and_then(|file| read_bounded(&file, MAX_FILE_BYTES));
            let text = text.map_err(|fault| unreadable(fault.to_string()))?;
            for certificate in CertificateDer::pem_slice_iter(&text) {
                let certificate = certificate.map_err(|fault| unreadable(fault.to_string()))?;
                let added = roots.add(certificate);
                added.map_err(|fault| unreadable(fault.to_string()))?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| other(e.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(account.host.clone()).map_err(|e| other(e.to_string()))?;
    let connector = TlsConnector::from(Arc::new(config));
    let stream = connector.connect(name, stream).await;
    stream.map_err(|fault| other(fault.to_string()))
}

async fn set_flags(
    session: &mut ImapSession,
    uid: &str,
    query: String,
) -> Result<(), MailboxError> {
    let answers: Vec<Fetch> = session.uid_store(uid, query).await?.try_collect().await?;
    drop(answers);
    Ok(())
}

async fn fetch(
    session: &mut ImapSession,
    uid: u32,
    query: &str,
) -> Result<Option<Fetch>, MailboxError> {
    within(async {
        let answers = session.uid_fetch(uid.to_string(), query).await?;
        let answers: Vec<Fetch> = answers.try_collect().await?;
        // A server may tell about other mails in between.
        Ok(answers.into_iter().find(|answer| answer.uid == Some(uid)))
    })
    .await
}

async fn greeting<S: AsyncRead + AsyncWrite + Unpin + Send + std::fmt::Debug>(
    client: &mut Client<S>,
) -> Result<(), MailboxError> {
    match client.read_response().await? {
        Some(_) => Ok(()),
        None => Err(MailboxError::Io(io::ErrorKind::UnexpectedEof.into())),
    }
}

async fn within<T>(work: impl Future<Output = Result<T, MailboxError>>) -> Result<T, MailboxError> {
    let limit = Duration::from_secs(COMMAND_SECONDS);
    let done = tokio::time::timeout(limit, work).await;
    done.unwrap_or_else(|_| Err(MailboxError::Other("the server does not answer".into())))
}

async fn in_time<T>(
    work: impl Future<Output = async_imap::error::Result<T>>,
) -> Result<T, MailboxError> {
    within(async { Ok(work.await?) }).await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|fault| Err(io::Error::other(fault)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_comes_back_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(STATE_FILE);
        assert_eq!(MailboxState::load(&path).unwrap(), MailboxState::default());
        let state = MailboxState {
            mailbox: "ann@host/INBOX".into(),
            validity: 7,
            next: 12,
            open: [3, 11].into(),
        };
        state.save(&path).unwrap();
        assert_eq!(MailboxState::load(&path).unwrap(), state);
        fs::write(&path, "{").unwrap();
        assert!(MailboxState::load(&path).is_err());
    }
}
