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
use async_imap::imap_proto::{
    AttributeValue, MailboxDatum, MessageSection, Response, SectionPath, Status,
};
use async_imap::types::UnsolicitedResponse;
use async_imap::{Client, Session};
use crosstalk_email::limit::{HEAD_BYTES, MAIL_BYTES};
use crosstalk_relay::config::{ImapAccount, MailTls};
use crosstalk_relay::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::future::Future;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
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
/// Seconds that an IDLE lasts. The gateway looks for new mails after it also where the server reported none, and notices a
/// connection that ended in silence.
const IDLE_SECONDS: u64 = 60;
/// Seconds that one command may take.
const COMMAND_SECONDS: u64 = 120;
/// The longest wait before a mail is read again that could not be taken in, in seconds.
const MAX_RETRY_SECONDS: u64 = 3600;
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
    /// The server refused one command, in its words. The connection is good.
    #[error("the server refuses: {0}")]
    Refused(String),
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

/// Why an IDLE ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IdleEnd {
    /// The server reported something.
    Told,
    /// Nothing was reported.
    Time,
    /// The relay stops.
    Stopped,
}

/// An open folder of a mailbox.
struct OpenFolder {
    session: ImapSession,
    /// Whether the server reported a mail since the gateway began to look for new ones, as far as was looked. It reports each mail
    /// once, in the answer to whatever command: an IDLE that begins later says nothing about it.
    has_news: bool,
}

impl OpenFolder {
    fn new(session: ImapSession) -> Self {
        Self {
            session,
            has_news: false,
        }
    }

    /// Whether the server reported a mail since the gateway began to look for new ones.
    fn has_news(&mut self) -> bool {
        // What the library read. It keeps the last hundred alone.
        while let Ok(said) = self.session.unsolicited_responses.try_recv() {
            self.has_news |= matches!(said, UnsolicitedResponse::Exists(_));
        }
        self.has_news
    }

    /// Runs a command, and passes on what the server says until it is done. `async-imap` would take a NO and the end of a
    /// connection for an answer without mails: a mail that was not read would count as removed.
    async fn run(
        &mut self,
        command: &str,
        mut note: impl FnMut(&Response<'_>),
    ) -> Result<(), MailboxError> {
        within(async {
            let tag = self.session.run_command(command).await?;
            while let Some(answer) = self.session.read_response().await? {
                match answer.parsed() {
                    Response::Done {
                        tag: of,
                        status,
                        outcome,
                    } if *of == tag => {
                        let said = outcome.information.as_deref().unwrap_or_default();
                        return match status {
                            Status::Ok => Ok(()),
                            Status::No => Err(MailboxError::Refused(said.to_owned())),
                            _ => Err(MailboxError::Other(format!("the server says: {said}"))),
                        };
                    }
                    Response::MailboxData(MailboxDatum::Exists(_)) => self.has_news = true,
                    other => note(other),
                }
            }
            Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
        })
        .await
    }

    async fn search(&mut self, query: &str) -> Result<BTreeSet<u32>, MailboxError> {
        let mut found = BTreeSet::new();
        let note = |answer: &Response<'_>| {
            if let Response::MailboxData(MailboxDatum::Search(uids)) = answer {
                found.extend(uids);
            }
        };
        self.run(&format!("UID SEARCH {query}"), note).await?;
        Ok(found)
    }

    /// Something of a mail; nothing if the mail is gone.
    async fn fetch<T>(
        &mut self,
        uid: u32,
        item: &str,
        read: impl Fn(&AttributeValue<'_>) -> Option<T>,
    ) -> Result<Option<T>, MailboxError> {
        let mut found = None;
        let note = |answer: &Response<'_>| {
            // The server may tell about other mails in between, and about the flags of this one.
            if let Response::Fetch(_, values) = answer
                && values.contains(&AttributeValue::Uid(uid))
                && let Some(value) = values.iter().find_map(&read)
            {
                found = Some(value);
            }
        };
        self.run(&format!("UID FETCH {uid} (UID {item})"), note)
            .await?;
        Ok(found)
    }

    async fn set_flags(&mut self, uid: u32, flags: &str) -> Result<(), MailboxError> {
        self.run(&format!("UID STORE {uid} +FLAGS.SILENT ({flags})"), |_| ())
            .await
    }

    /// Waits until the server reports something, for at most so long.
    async fn idle(
        self,
        time: Duration,
        stop: &mut watch::Receiver<bool>,
    ) -> Result<(Self, IdleEnd), MailboxError> {
        let reported = self.session.unsolicited_responses.clone();
        let mut idle = self.session.idle();
        in_time(idle.init()).await?;
        // What the server reported before it began to idle.
        let mut before = std::iter::from_fn(|| reported.try_recv().ok());
        let end = if before.any(|said| matches!(said, UnsolicitedResponse::Exists(_))) {
            IdleEnd::Told
        } else {
            let (wait, interrupt) = idle.wait_with_timeout(time);
            let ended = tokio::select! {
                told = wait => match told? {
                    IdleResponse::Timeout => IdleEnd::Time,
                    IdleResponse::NewData(_) | IdleResponse::ManualInterrupt => IdleEnd::Told,
                },
                _ = stop.wait_for(|is_over| *is_over) => IdleEnd::Stopped,
            };
            drop(interrupt);
            ended
        };
        let session = in_time(idle.done()).await?;
        Ok((Self::new(session), end))
    }
}

/// The first bytes of a mail, or of its head.
fn section(value: &AttributeValue<'_>) -> Option<Arc<[u8]>> {
    match value {
        AttributeValue::BodySection {
            section: None | Some(SectionPath::Full(MessageSection::Header)),
            data: Some(data),
            ..
        } => Some(data.as_ref().into()),
        _ => None,
    }
}

fn size(value: &AttributeValue<'_>) -> Option<u64> {
    match value {
        AttributeValue::Rfc822Size(size) => Some(u64::from(*size)),
        _ => None,
    }
}

/// The mails that have to be read again, how often they were read, and when they are next.
#[derive(Debug, Default)]
struct MailRetries(BTreeMap<u32, (u32, Instant)>);

impl MailRetries {
    /// Puts a mail off, for longer each time.
    fn delay(&mut self, uid: u32) {
        let tries = self.0.get(&uid).map_or(0, |(tries, _)| *tries);
        let seconds = 1_u64.checked_shl(tries).unwrap_or(u64::MAX);
        let pause = Duration::from_secs(seconds.clamp(1, MAX_RETRY_SECONDS));
        self.0
            .insert(uid, (tries.saturating_add(1), Instant::now() + pause));
    }

    /// The mail that has waited longest for its turn, if it is the turn of one.
    fn due(&self) -> Option<u32> {
        let first = self.0.iter().min_by_key(|(_, (_, at))| *at)?;
        (first.1.1 <= Instant::now()).then_some(*first.0)
    }

    /// How long it is until the turn of the next one.
    fn wait(&self) -> Duration {
        let next = self.0.values().map(|(_, at)| *at).min();
        next.map_or(Duration::MAX, |at| {
            at.saturating_duration_since(Instant::now())
        })
    }
}

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
        let mut retries = MailRetries::default();
        self.intake.relay().metrics().set_mailbox(false);
        loop {
            let talk = self.converse(stop.clone(), &mut pause, &mut retries);
            let ended = talk.await;
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
        retries: &mut MailRetries,
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
        let mut folder = OpenFolder::new(session);
        let mut state = self.begin(&mut folder, validity, mailbox.uid_next).await?;
        // The mailbox can be read: the next connection is tried at once.
        *pause = 1;
        self.intake.relay().metrics().set_mailbox(true);
        tracing::info!(
            host = self.account.host,
            folder = self.account.folder,
            "reading the mailbox"
        );
        retries.0.retain(|uid, _| state.open.contains(uid));
        loop {
            self.find_new(&mut folder, &mut state).await?;
            // A mail that has to be read again may take long each time: it never holds up those that came meanwhile.
            let untried = state.open.iter().filter(|uid| !retries.0.contains_key(uid));
            let next: Vec<u32> = match untried.copied().collect::<Vec<_>>() {
                new if new.is_empty() => retries.due().into_iter().collect(),
                new => new,
            };
            let is_idle = next.is_empty();
            for uid in next {
                if *stop.borrow() {
                    break;
                }
                match self.take(&mut folder, uid, has_move).await {
                    Ok(true) => {
                        retries.0.remove(&uid);
                        state.open.remove(&uid);
                        self.save(&state).await?;
                    }
                    Ok(false) => retries.delay(uid),
                    Err(MailboxError::Refused(reason)) => {
                        tracing::warn!(uid, reason, "the server refuses a mail of the mailbox");
                        retries.delay(uid);
                    }
                    Err(fault) => {
                        // The mail itself may end each connection: the next one begins with others.
                        retries.delay(uid);
                        return Err(fault);
                    }
                }
            }
            if *stop.borrow() {
                let _ = in_time(folder.session.logout()).await;
                return Ok(());
            }
            if !is_idle || folder.has_news() {
                continue;
            }
            let seconds = if has_idle { IDLE_SECONDS } else { POLL_SECONDS };
            let time = retries.wait().min(Duration::from_secs(seconds));
            if has_idle {
                (folder, _) = folder.idle(time, &mut stop).await?;
                continue;
            }
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                _ = stop.wait_for(|is_over| *is_over) => {}
            }
        }
    }

    /// The state of this mailbox. In one that was not read before, or whose UIDs were given out anew, the unread mails are new: the
    /// others were read by somebody, or here.
    async fn begin(
        &self,
        folder: &mut OpenFolder,
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
        let unread = folder.search("UNSEEN").await?;
        let above = unread.last().map_or(1, |highest| highest.saturating_add(1));
        let state = MailboxState {
            mailbox,
            validity,
            next: next.unwrap_or(above).max(above),
            open: unread,
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
        folder: &mut OpenFolder,
        state: &mut MailboxState,
    ) -> Result<(), MailboxError> {
        folder.has_news();
        folder.has_news = false;
        let mut new = folder.search(&format!("UID {}:*", state.next)).await?;
        // The star always finds the last mail, also one that is known.
        new.retain(|uid| *uid >= state.next);
        if let Some(highest) = new.last() {
            state.next = highest.saturating_add(1);
            state.open.extend(new);
            self.save(state).await?;
        }
        Ok(())
    }

    /// Takes in a mail, and marks it. False if it has to be read again later.
    async fn take(
        &self,
        folder: &mut OpenFolder,
        uid: u32,
        has_move: bool,
    ) -> Result<bool, MailboxError> {
        let origin = MailPeer {
            way: "imap",
            ..MailPeer::default()
        };
        let Some(bytes) = folder.fetch(uid, "RFC822.SIZE", size).await? else {
            // Another program removed it.
            return Ok(true);
        };
        let is_too_large = bytes > MAIL_BYTES as u64;
        let item = match is_too_large {
            // A head beyond the limit is not read either.
            true => format!("BODY.PEEK[HEADER]<0.{}>", HEAD_BYTES + 1),
            false => "BODY.PEEK[]".to_owned(),
        };
        let Some(mail) = folder.fetch(uid, &item, section).await? else {
            return Ok(true);
        };
        let outcome = match is_too_large {
            true => self.intake.reject_too_large(mail, &origin).await,
            false => self.intake.receive(mail, &origin).await,
        };
        if matches!(outcome, MailOutcome::Later(_)) {
            return Ok(false);
        }
        self.mark(folder, uid, has_move).await?;
        Ok(true)
    }

    /// Marks a mail as read, or moves it away.
    async fn mark(
        &self,
        folder: &mut OpenFolder,
        uid: u32,
        has_move: bool,
    ) -> Result<(), MailboxError> {
        folder.set_flags(uid, "\\Seen").await?;
        let Some(done) = &self.account.done_folder else {
            return Ok(());
        };
        let uids = uid.to_string();
        let moved = match has_move {
            true => in_time(folder.session.uid_mv(&uids, done)).await,
            false => in_time(folder.session.uid_copy(&uids, done)).await,
        };
        folder.has_news();
        moved.map_err(|fault| match &fault {
            MailboxError::Imap(no @ async_imap::error::Error::No(_)) => {
                MailboxError::Refused(words_of(no))
            }
            _ => fault,
        })?;
        if has_move {
            return Ok(());
        }
        // It is gone when the owner of the mailbox tidies up: expunging here would remove what others marked.
        folder.set_flags(uid, "\\Deleted").await
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
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    /// A mail that comes while the server gets ready to idle is reported before it says so, and never again.
    #[tokio::test]
    async fn mail_reported_before_idle_is_not_waited_for() {
        let (ours, theirs) = tokio::io::duplex(1024);
        let server = tokio::spawn(async move {
            let (lines, mut out) = tokio::io::split(theirs);
            let mut lines = BufReader::new(lines).lines();
            for (wanted, answers) in [
                ("LOGIN", "$ OK in\r\n"),
                ("UID SEARCH 1:*", "* SEARCH 1\r\n$ OK found\r\n"),
                ("IDLE", "* 2 EXISTS\r\n+ idling\r\n"),
                ("DONE", "A0003 OK done\r\n"),
            ] {
                let line = lines.next_line().await.unwrap().unwrap();
                assert!(line.contains(wanted), "{line}");
                let tag = line.split(' ').next().unwrap();
                let answers = answers.replace('$', tag);
                out.write_all(answers.as_bytes()).await.unwrap();
            }
        });
        let stream: Box<dyn MailStream> = Box::new(ours);
        let session = Client::new(stream).login("ann", "secret").await;
        let mut folder = OpenFolder::new(session.map_err(|(fault, _)| fault).unwrap());
        assert_eq!(folder.search("1:*").await.unwrap(), [1].into());
        assert!(!folder.has_news());
        let (_stop, mut stopped) = watch::channel(false);
        let (_, end) = folder
            .idle(Duration::from_secs(1), &mut stopped)
            .await
            .unwrap();
        assert_eq!(end, IdleEnd::Told);
        server.await.unwrap();
    }

    #[test]
    fn mails_that_fail_are_tried_less_and_less_often_and_in_turn() {
        let mut retries = MailRetries::default();
        assert_eq!((retries.due(), retries.wait()), (None, Duration::MAX));
        let seconds = |retries: &MailRetries, uid: u32| {
            let at = retries.0.get(&uid).unwrap().1;
            at.saturating_duration_since(Instant::now())
                .as_secs_f64()
                .ceil()
        };
        for wanted in [1.0, 2.0, 4.0, 8.0] {
            retries.delay(7);
            assert!(seconds(&retries, 7) <= wanted && seconds(&retries, 7) > wanted / 2.0);
        }
        for _ in 0..100 {
            retries.delay(7);
        }
        assert!(seconds(&retries, 7) <= MAX_RETRY_SECONDS as f64);
        let now = Instant::now();
        retries.0.insert(3, (1, now));
        retries.0.insert(2, (1, now - Duration::from_millis(1)));
        assert_eq!((retries.due(), retries.wait()), (Some(2), Duration::ZERO));
    }

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
