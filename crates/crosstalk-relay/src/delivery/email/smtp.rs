//! A conversation with the mail server that sends the mail of a relay, step by step: each step says what is wrong with it.

use crate::config::{Email, MailTls, SmarthostAccount};
use crate::file::{MAX_FILE_BYTES, open_regular, read_bounded};
use crosstalk_api::client::one_line;
use lettre::Address;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::authentication::{Credentials, Mechanism};
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::commands::{Data, Mail, Rcpt};
use lettre::transport::smtp::extension::ClientId;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// The largest file with a password, in bytes.
const MAX_PASSWORD_BYTES: u64 = 4096;
/// How many characters of a mail server's words are kept.
const REASON_CHARS: usize = 400;
/// How much longer than a command the transfer of a mail may take: mail servers check it before they answer.
const TRANSFER_FACTOR: u32 = 10;

/// A step of sending a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailStep {
    /// Reading the password, or the certificate authorities.
    Files,
    /// Reaching the mail server.
    Connect,
    /// Encrypting the connection.
    Encrypt,
    /// Logging in.
    LogIn,
    /// Naming the sender.
    Sender,
    /// Naming the recipient.
    Recipient,
    /// Transferring the mail.
    Transfer,
}

/// A step that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct MailFault {
    /// The step.
    pub step: MailStep,
    /// What the mail server said, or what happened, on one line.
    pub reason: String,
    /// The reply code of the mail server.
    pub code: Option<u16>,
}

impl MailFault {
    fn new(step: MailStep, reason: impl AsRef<str>) -> Self {
        let reason: String = one_line(reason.as_ref())
            .chars()
            .take(REASON_CHARS)
            .collect();
        let code = None;
        Self { step, reason, code }
    }

    fn of(step: MailStep, error: &Error) -> Self {
        let code = error
            .status()
            .and_then(|code| code.to_string().parse().ok());
        let words = match (code, std::error::Error::source(error)) {
            // The words of the mail server alone: the rest is about this program.
            (Some(code), Some(words)) => format!("{code} {words}"),
            (None, Some(source)) => innermost(source).to_string(),
            (_, None) => error.to_string(),
        };
        Self {
            code,
            ..Self::new(step, words)
        }
    }

    /// Whether the mail server said that it will never work.
    pub fn is_permanent(&self) -> bool {
        self.code.is_some_and(|code| code >= 500)
    }

    /// Whether the mail server said that the mail is too large (RFC 1870, RFC 3463).
    pub fn is_too_large(&self) -> bool {
        let is_size = self.code == Some(552) && self.step != MailStep::Recipient;
        is_size || self.reason.contains("5.3.4")
    }
}

/// The error below all others: those above it say the same again.
fn innermost<'e>(
    error: &'e (dyn std::error::Error + 'static),
) -> &'e (dyn std::error::Error + 'static) {
    let mut found = error;
    while let Some(source) = found.source() {
        found = source;
    }
    found
}

/// A connection on which mails can be sent.
pub struct SmtpConnection {
    connection: AsyncSmtpConnection,
    within: Duration,
}

impl SmtpConnection {
    /// Connects, encrypts and logs in, as configured.
    ///
    /// # Errors
    /// The step that failed.
    pub async fn open(email: &Email, out: &SmarthostAccount) -> Result<Self, MailFault> {
        let password = match &out.password_file {
            Some(path) => Some(secret(path).await?),
            None => None,
        };
        let tls = match out.tls() {
            MailTls::None => None,
            MailTls::Tls | MailTls::Starttls => Some(parameters(out).await?),
        };
        let from_start = tls.clone().filter(|_| out.tls() == MailTls::Tls);
        let upgrade = tls.filter(|_| out.tls() == MailTls::Starttls);
        let hello = ClientId::Domain(email.domain.clone());
        let within = Duration::from_secs(out.timeout_seconds.max(1));
        let server = (out.host.as_str(), out.port());
        let connect =
            AsyncSmtpConnection::connect_tokio1(server, Some(within), &hello, from_start, None);
        let connection = bounded(within, MailStep::Connect, connect).await?;
        let mut this = Self { connection, within };
        if let Some(parameters) = upgrade {
            if !this.connection.can_starttls() {
                return Err(MailFault::new(
                    MailStep::Encrypt,
                    "the mail server does not offer STARTTLS",
                ));
            }
            let upgrade = this.connection.starttls(parameters, &hello);
            bounded(within, MailStep::Encrypt, upgrade).await?;
        }
        if let Some((user, password)) = out.user.clone().zip(password) {
            let credentials = Credentials::new(user, password);
            let login = this
                .connection
                .auth(&[Mechanism::Plain, Mechanism::Login], &credentials);
            bounded(within, MailStep::LogIn, login).await?;
        }
        Ok(this)
    }

    /// Names the sender and the only recipient of a mail.
    ///
    /// # Errors
    /// The step that failed.
    pub async fn begin(&mut self, sender: &str, recipient: &str) -> Result<(), MailFault> {
        let address = |step, text: &str| {
            let parsed = text.parse::<Address>();
            parsed.map_err(|error| MailFault::new(step, format!("{text}: {error}")))
        };
        let sender = address(MailStep::Sender, sender)?;
        let recipient = address(MailStep::Recipient, recipient)?;
        let mail = self.connection.command(Mail::new(Some(sender), Vec::new()));
        bounded(self.within, MailStep::Sender, mail).await?;
        let rcpt = self.connection.command(Rcpt::new(recipient, Vec::new()));
        bounded(self.within, MailStep::Recipient, rcpt).await?;
        Ok(())
    }

    /// Transfers the mail. When this returns, the mail server is responsible for it.
    ///
    /// # Errors
    /// [`MailStep::Transfer`]. If the connection broke, the mail server may have the mail nevertheless.
    pub async fn transfer(&mut self, mail: &[u8]) -> Result<(), MailFault> {
        bounded(
            self.within,
            MailStep::Transfer,
            self.connection.command(Data),
        )
        .await?;
        // The end of the data brings the last line end with it.
        let mail = mail.strip_suffix(b"\r\n").unwrap_or(mail);
        let within = self.within * TRANSFER_FACTOR;
        bounded(within, MailStep::Transfer, self.connection.message(mail)).await?;
        Ok(())
    }

    /// Ends the connection.
    pub async fn close(mut self) {
        // Nothing depends on how it ends.
        let _ = timeout(self.within, self.connection.quit()).await;
    }
}

/// A step that has to end in time.
async fn bounded<T>(
    within: Duration,
    step: MailStep,
    work: impl Future<Output = Result<T, Error>>,
) -> Result<T, MailFault> {
    match timeout(within, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) if error.is_tls() => Err(MailFault::of(MailStep::Encrypt, &error)),
        Ok(Err(error)) => Err(MailFault::of(step, &error)),
        Err(_) => Err(MailFault::new(
            step,
            format!(
                "the mail server did not answer within {} s",
                within.as_secs()
            ),
        )),
    }
}

async fn parameters(out: &SmarthostAccount) -> Result<TlsParameters, MailFault> {
    let mut builder = TlsParameters::builder(out.host.clone());
    if let Some(path) = &out.ca_file {
        let pem = content(path, MAX_FILE_BYTES).await?;
        let certificate = Certificate::from_pem(&pem).map_err(|error| {
            MailFault::new(MailStep::Files, format!("{}: {error}", path.display()))
        })?;
        builder = builder
            .certificate_store(CertificateStore::None)
            .add_root_certificate(certificate);
    }
    // The certificates of the system are many files.
    let built = tokio::task::spawn_blocking(move || builder.build_rustls()).await;
    let built = built.map_err(|error| MailFault::new(MailStep::Files, error.to_string()))?;
    built.map_err(|error| MailFault::of(MailStep::Files, &error))
}

/// The password in a file; read each time, so that it can be changed.
async fn secret(path: &Path) -> Result<String, MailFault> {
    let bytes = content(path, MAX_PASSWORD_BYTES).await?;
    let text = String::from_utf8_lossy(&bytes);
    let password = text.trim_end_matches(['\n', '\r']);
    match password.is_empty() {
        true => Err(MailFault::new(
            MailStep::Files,
            format!("{} does not hold a password", path.display()),
        )),
        false => Ok(password.to_owned()),
    }
}

async fn content(path: &Path, most: u64) -> Result<Vec<u8>, MailFault> {
    let (path, shown) = (path.to_owned(), path.display().to_string());
    let read = move || open_regular(&path).and_then(|file| read_bounded(&file, most));
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.unwrap_or_else(|error| Err(std::io::Error::other(error)));
    read.map_err(|error| MailFault::new(MailStep::Files, format!("{shown} can't be read: {error}")))
}
