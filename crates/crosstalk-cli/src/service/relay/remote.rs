//! A relay over the network: the client, its errors in plain words, and the pauses between retries.

use crate::console::{Console, DIM, styled};
use crate::failure::Failure;
use crate::service::lookup::is_long_enough;
use crate::service::settings::{Settings, base_url};
use crate::{shell, view};
use clap::Args;
use crosstalk_envelope::meta::Digest;
use crosstalk_envelope::{ErrorCode, Explanation};
use crosstalk_protocol::audit::{ChainId, Hash, LogEntry, LogPlace, LogQuery, LogReceipt, NoteKey};
pub(crate) use crosstalk_relay::client::{Approval, DeliveryStatus, MessageView};
use crosstalk_relay::client::{
    ApprovalDecision, Blocking, Client, ClientError, ConsentRecord, ConsentView, DeadLetterView,
    InboxPage, LogChainView, MessageStatus, SendResult,
};
use crosstalk_relay::outbound::OutboundError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The relay of this machine, where nothing else is configured.
pub(crate) const LOCAL: &str = "http://127.0.0.1:8799";
/// The longest token file, in bytes.
const TOKEN_FILE: u64 = 4096;
/// How much longer than asked a relay may take to answer a request that waits.
const GRACE: Duration = Duration::from_secs(10);
/// The largest file that is fetched, in bytes.
const LARGEST: u64 = 256 << 20;

/// Which relay is asked.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RelayArgument {
    /// The relay; else the one of the settings, else the one on this machine (http://127.0.0.1:8799)
    #[arg(long, value_name = "URL", value_parser = base_url)]
    relay: Option<String>,
    /// The file with its token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl RelayArgument {
    /// A relay by its URL, or that of the settings.
    pub(crate) fn new(relay: Option<String>, token_file: Option<PathBuf>) -> Self {
        Self { relay, token_file }
    }

    /// A relay by its URL; an empty one means that of the settings.
    pub(crate) fn of(url: &str, token_file: Option<PathBuf>) -> Result<Self, Failure> {
        let relay = match url {
            "" => None,
            url => Some(base_url(url).map_err(Failure::usage)?),
        };
        Ok(Self { relay, token_file })
    }

    /// The relay for an address: the named one, else the one of the settings for this address, else the first of the
    /// settings, else the one on this machine.
    pub(crate) fn connect(
        &self,
        config: &Settings,
        address: Option<&str>,
    ) -> Result<Remote, Failure> {
        let relays = config.relays();
        let known = match &self.relay {
            Some(url) => relays.iter().find(|r| r.url == *url),
            None => address.and_then(|a| config.relay_for(a)).or(relays.first()),
        };
        let url = self.relay.as_deref().or(known.map(|r| r.url.as_str()));
        let file = self.token_file.clone();
        let file = file.or_else(|| config.token_file(known?));
        let token = file.map(|f| read_token(&f)).transpose()?;
        let mut remote = Remote::open(url.unwrap_or(LOCAL), token)?;
        let whole = self.token_file.as_ref().map(std::path::absolute);
        remote.token_file = whole.and_then(Result::ok);
        Ok(remote)
    }

    pub(crate) const fn is_named(&self) -> bool {
        self.relay.is_some()
    }

    /// The relay that is named, else another one.
    pub(crate) fn or(&self, relay: &str, token_file: Option<&Path>) -> Self {
        match self.relay {
            Some(_) => self.clone(),
            None => Self {
                relay: Some(relay.to_owned()),
                token_file: self.token_file.clone().or(token_file.map(Path::to_owned)),
            },
        }
    }
}

pub(crate) fn read_token(file: &Path) -> Result<String, Failure> {
    use std::io::Read as _;
    let shown = file.to_string_lossy().into_owned();
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|f| f.take(TOKEN_FILE).read_to_string(&mut text))
        .map_err(|e| Failure::at(file, e))?;
    let token = text.trim();
    let is_one = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    match is_one {
        true => Ok(token.to_owned()),
        // Whatever it is, it is not shown.
        false => Err(Failure::malformed(format!(
            "{shown} has no token: write the line into it that was printed when the token was created"
        ))),
    }
}

/// Methods of [`Client`] that a [`Remote`] has as well; what goes wrong then names the relay.
macro_rules! forward {
    ($(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        $(pub(crate) fn $name(&self, $($argument: $type),*) -> Result<$answer, RelayError> {
            self.ask(async |client| client.$name($($argument),*).await)
        })+
    };
}

pub(crate) struct Remote {
    url: String,
    /// The file with its token, where the settings don't say it.
    token_file: Option<PathBuf>,
    has_token: bool,
    client: Blocking,
}

impl Remote {
    /// A relay, with the secret of a token.
    pub(crate) fn open(url: &str, token: Option<String>) -> Result<Self, Failure> {
        let mut client =
            Client::new(url).map_err(|fault| Failure::usage(format!("{url}: {fault}")))?;
        let has_token = token.is_some();
        if let Some(token) = token {
            client = client.with_token(token);
        }
        let client = Blocking::new(client).map_err(|e| Failure::io("the network", e))?;
        Ok(Self {
            url: url.to_owned(),
            token_file: None,
            has_token,
            client,
        })
    }

    /// The same relay with another deadline for each request.
    pub(crate) fn with_deadline(self, within: Duration) -> Self {
        Self {
            client: self.client.with_deadline(within),
            ..self
        }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The file with its token, where the settings don't say it.
    pub(crate) fn token_file(&self) -> Option<&Path> {
        self.token_file.as_deref()
    }

    /// Whether it is asked with a credential.
    pub(crate) const fn has_token(&self) -> bool {
        self.has_token
    }

    fn ask<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, ClientError>,
    ) -> Result<T, RelayError> {
        self.client.run(work).map_err(|fault| RelayError {
            url: self.url.clone(),
            fault,
        })
    }

    forward! {
        fn search(words: &str, limit: usize) -> Vec<MessageView>;
        fn message(id: &str) -> MessageView;
        fn status(id: &str) -> MessageStatus;
        fn export(thread: &str) -> String;
        fn poll(id: &str) -> serde_json::Value;
        fn close_poll(id: &str) -> serde_json::Value;
        fn chains() -> Vec<LogChainView>;
        fn checkpoint(chain: ChainId) -> String;
        fn log_key(chain: ChainId) -> NoteKey;
        fn inclusion(place: LogPlace, size: u64) -> Vec<Hash>;
        fn consistency(chain: ChainId, from: u64, to: u64) -> Vec<Hash>;
        fn receipt(id: &str) -> LogReceipt;
        fn entries(asked: &LogQuery) -> (u64, Vec<LogEntry>);
        fn has_blob(digest: Digest) -> bool;
        fn consent(id: &str) -> ConsentRecord;
        fn courier(limit: usize) -> Vec<MessageView>;
        fn approval(id: &str) -> Approval;
        fn requeue(id: &str) -> u64;
    }

    /// Hands a message over. When this returns, the relay has it on disk.
    pub(crate) fn receive(&self, text: &str) -> Result<SendResult, RelayError> {
        self.ask(async |c| c.send(text).await)
    }

    /// Hands a message over, and waits for the answer so many seconds. A relay that is gone is noticed soon after.
    pub(crate) fn receive_and_wait(
        &self,
        text: &str,
        seconds: u64,
    ) -> Result<SendResult, RelayError> {
        let wait = Duration::from_secs(seconds);
        self.ask(async |c| c.clone().with_deadline(GRACE).ask(text, wait).await)
    }

    /// The unacknowledged messages of an address.
    pub(crate) fn inbox(
        &self,
        address: &str,
        after: Option<&str>,
        limit: u32,
        wait: u64,
    ) -> Result<InboxPage, RelayError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.ask(async |c| {
            c.inbox(address, after, limit, Duration::from_secs(wait))
                .await
        })
    }

    /// Acknowledges a message.
    pub(crate) fn acknowledge(&self, address: &str, id: &str) -> Result<(), RelayError> {
        self.ask(async |c| c.acknowledge(address, &[id]).await)
            .map(drop)
    }

    /// Reports that the program failed on a message.
    pub(crate) fn report_failure(
        &self,
        address: &str,
        id: &str,
        is_final: bool,
    ) -> Result<(), RelayError> {
        let state = if is_final { "failed" } else { "retrying" };
        self.ask(async |c| c.mark(address, &[id], state).await)
            .map(drop)
    }

    pub(crate) fn put_blob(&self, bytes: Vec<u8>) -> Result<(), RelayError> {
        self.ask(async |c| c.put_blob(bytes.into()).await).map(drop)
    }

    pub(crate) fn blob(&self, digest: Digest) -> Result<Vec<u8>, RelayError> {
        self.ask(async |c| c.get_blob(digest, LARGEST).await)
            .map(Into::into)
    }

    pub(crate) fn consents(
        &self,
        by: Option<&str>,
        holding: bool,
        limit: usize,
    ) -> Result<Vec<ConsentView>, RelayError> {
        self.ask(async |c| c.consents(by, holding, limit).await)
    }

    /// Reports that a message was carried, or why not.
    pub(crate) fn carried(
        &self,
        id: &str,
        to: &str,
        failed: Option<&str>,
    ) -> Result<(), RelayError> {
        self.ask(async |c| c.carried(id, to, failed).await)
            .map(drop)
    }

    /// The held messages that the caller may decide.
    pub(crate) fn approvals(&self, limit: u32) -> Result<Vec<Approval>, RelayError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.ask(async |c| c.approvals(limit).await)
    }

    /// Approves a message by the digests of the text that the person saw, or rejects it with a reason.
    pub(crate) fn decide(
        &self,
        id: &str,
        digest: Digest,
        raw: Digest,
        refused: Option<&str>,
    ) -> Result<Approval, RelayError> {
        let verdict = ApprovalDecision {
            digest,
            raw,
            refused,
        };
        self.ask(async |c| c.decide(id, &verdict).await)
    }

    /// The dead letters.
    pub(crate) fn dead(&self, limit: u32) -> Result<Vec<DeadLetterView>, RelayError> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.ask(async |c| c.dead(limit).await)
    }
}

/// How many entries are searched for an id by its beginning.
pub(crate) const LOOKED_THROUGH: u16 = 500;

/// The entry with this id, else the only one whose id begins with it.
pub(crate) fn find_by_prefix<T>(
    prefix: &str,
    get: impl Fn(&str) -> Result<T, RelayError>,
    all_ids: impl FnOnce() -> Result<Vec<String>, RelayError>,
    several: impl FnOnce() -> Failure,
) -> Result<T, Failure> {
    let unknown = match get(prefix) {
        Err(trouble) if trouble.is_unknown() && is_long_enough(prefix) => trouble,
        answer => return Ok(answer?),
    };
    let upper = prefix.to_ascii_uppercase();
    let ids = all_ids()?.into_iter();
    let mut found = ids.filter(|id| id.starts_with(prefix) || id.starts_with(&upper));
    match (found.next(), found.next()) {
        (Some(only), None) => Ok(get(&only)?),
        (Some(_), Some(_)) => Err(several()),
        (None, _) => Err(unknown.into()),
    }
}

/// An error between this program and a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RelayError {
    pub(crate) url: String,
    pub(crate) fault: ClientError,
}

impl RelayError {
    pub(crate) fn code(&self) -> ErrorCode {
        self.fault.code().unwrap_or(ErrorCode::Route)
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_temporary(&self) -> bool {
        self.fault.is_temporary()
    }

    /// Whether the message may have arrived although the connection ended before the relay confirmed it.
    pub(crate) fn may_have_arrived(&self) -> bool {
        match &self.fault {
            ClientError::Outbound(OutboundError::Broken { was_sent, .. }) => *was_sent,
            ClientError::Outbound(OutboundError::Late(_)) | ClientError::Unreadable { .. } => true,
            _ => false,
        }
    }

    /// Whether the relay answered 404.
    pub(crate) fn is_unknown(&self) -> bool {
        matches!(&self.fault, ClientError::Rejected(refused) if refused.status == 404)
    }

    /// Whether the token may not send as the address; the relay never accepts the same message.
    pub(crate) fn is_wrong_sender(&self) -> bool {
        let is_it = |detail: &str| detail.contains("use a token for this address");
        matches!(&self.fault, ClientError::Rejected(refused) if refused.status == 403 && is_it(&refused.detail))
    }

    /// Whether the relay denied the request.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(&self.fault, ClientError::Rejected(refused) if matches!(refused.status, 401 | 403))
    }

    /// After how many seconds the relay wants to be asked again.
    pub(crate) fn retry_after(&self) -> Option<u64> {
        match &self.fault {
            ClientError::Rejected(refused) => refused.retry_after.map(|d| d.as_secs()),
            _ => None,
        }
    }
}

/// Explains an unknown issuer, with the state of SSL_CERT_FILE.
fn unknown_issuer() -> Explanation {
    let Some(file) = std::env::var_os("SSL_CERT_FILE") else {
        return Explanation::new(
            "no authority that this system trusts signed its certificate",
            "for an authority of your own, set SSL_CERT_FILE to the file with its certificate",
        );
    };
    let shown = view::line(&file.to_string_lossy());
    match std::fs::read(&file) {
        Err(fault) => Explanation::new(
            format!("SSL_CERT_FILE names {shown}, which can't be read: {fault}"),
            "name the file with the certificate of the authority, or unset it",
        ),
        Ok(bytes) if !String::from_utf8_lossy(&bytes).contains(PEM_CERTIFICATE) => {
            Explanation::new(
                format!("SSL_CERT_FILE names {shown}, which has no certificate in it"),
                format!("name a PEM file: it has a line {PEM_CERTIFICATE}"),
            )
        }
        Ok(_) => Explanation::new(
            format!("no authority in {shown} (SSL_CERT_FILE) signed its certificate"),
            "name the file with the certificate of the authority that did",
        ),
    }
}

/// The first line of a certificate in a PEM file.
const PEM_CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----";

/// Explains a TLS error; nothing for other errors.
fn explain_tls(fault: &OutboundError) -> Option<Explanation> {
    let OutboundError::Unreachable { reason, .. } = fault else {
        return None;
    };
    let has = |words: &[&str]| words.iter().any(|w| reason.contains(w));
    let Explanation { what, help } = if has(&["UnknownIssuer"]) {
        unknown_issuer()
    } else if has(&["CaUsedAsEndEntity"]) {
        Explanation::new(
            "its certificate is that of an authority, and not one for a server",
            "give the relay a certificate for its name that the authority signed, and name the authority with \
             SSL_CERT_FILE here",
        )
    } else if has(&["NotValidForName", "not valid for name"]) {
        Explanation::new(
            "its certificate is for another name",
            "use the name in the certificate",
        )
    } else if has(&["NotValidYet", "not valid yet"]) {
        Explanation::new("its certificate is not valid yet", "compare the clocks")
    } else if has(&["Expired", "expired"]) {
        Explanation::new(
            "its certificate has expired",
            "ask the relay operator to renew it",
        )
    } else if has(&["InvalidContentType", "corrupt message"]) {
        Explanation::new(
            "it does not speak TLS there",
            "write http:// instead of https://",
        )
    } else if has(&["invalid peer certificate"]) {
        Explanation::fact("its certificate can't be trusted")
    } else {
        return None;
    };
    Some(Explanation::new(format!("{what} ({reason})"), help))
}

/// The command that starts a relay at a URL of this machine; for other URLs, at the usual address.
fn serve_at(url: &str) -> String {
    let usual = "crosstalk serve".to_owned();
    let Some(rest) = url.strip_prefix("http://") else {
        return usual;
    };
    let place = rest.split('/').next().unwrap_or(rest);
    let place = place.replacen("localhost:", "127.0.0.1:", 1);
    match place.parse::<std::net::SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => format!("{usual} --listen {address}"),
        _ => usual,
    }
}

impl RelayError {
    /// What kept the program from reaching the relay, and what to do.
    fn explain_outbound(&self, fault: &OutboundError) -> Explanation {
        let mut explained = explain_tls(fault).unwrap_or_else(|| fault.explanation());
        explained.what = format!("{} (E-ROUTE): {}", self.url, explained.what);
        if explained.help.is_empty() && explain_tls(fault).is_none() {
            explained.help = match fault {
                OutboundError::Broken { .. } if self.url.starts_with("http://") => {
                    "if it speaks TLS there, write https:// instead of http://".into()
                }
                _ => format!(
                    "check that a relay runs there; `{}` starts one on this machine",
                    serve_at(&self.url)
                ),
            };
        }
        explained
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.url;
        let refused = match &self.fault {
            ClientError::Rejected(refused) => refused,
            ClientError::Outbound(fault) => return self.explain_outbound(fault).fmt(f),
            fault => return write!(f, "{url}: {fault}"),
        };
        write!(f, "{url} says {}: {}", self.code(), refused.reason)?;
        for line in refused.detail.lines().filter(|l| !l.trim().is_empty()) {
            write!(f, "\n  {line}")?;
        }
        if self.is_wrong_sender() {
            f.write_str(
                "\n  Or use an address of your token: `--from ADDR`, or permanently `crosstalk config set sender ADDR`; `--for \
                 ADDR` names an inbox; an MCP client starts `crosstalk mcp --as ADDR`.",
            )?;
        }
        if refused.status == 401 {
            let url = shell::word(url);
            write!(
                f,
                "\n  If you have a token, `crosstalk relay add {url} --token-file FILE` keeps it here."
            )?;
        }
        match self.retry_after() {
            Some(seconds) => write!(f, "\n  Try again in {seconds} seconds."),
            None => Ok(()),
        }
    }
}

impl From<RelayError> for Failure {
    fn from(trouble: RelayError) -> Self {
        let explained = match &trouble.fault {
            ClientError::Outbound(fault) => trouble.explain_outbound(fault),
            _ => Explanation::fact(trouble.to_string()),
        };
        Self::refused(trouble.code(), explained.what).help(explained.help)
    }
}

/// Pauses between retries; each is twice as long as the one before.
#[derive(Debug)]
pub(crate) struct Pause {
    longest: u64,
    /// The sentence behind the error.
    sentence: &'static str,
    seconds: u64,
    said: Option<RelayError>,
}

impl Pause {
    /// Pauses of at most so many seconds; `sentence` says what happens after one.
    pub(crate) const fn new(longest: u64, sentence: &'static str) -> Self {
        Self {
            longest,
            sentence,
            seconds: 0,
            said: None,
        }
    }

    /// Reports the error once and sleeps, but not past `end`.
    pub(crate) fn take(
        &mut self,
        console: &mut Console,
        trouble: &RelayError,
        end: Option<Instant>,
    ) -> Result<(), Failure> {
        self.seconds = (self.seconds * 2).clamp(1, self.longest);
        if self.said.as_ref() != Some(trouble) {
            console.note(&format!("{trouble}; {}", self.sentence))?;
            console.flush()?;
            self.said = Some(trouble.clone());
        }
        let asked = trouble.retry_after().unwrap_or(0).min(3600);
        let seconds = self.seconds.max(asked);
        // Not all who wait come back at the same moment.
        let part = random() >> 24;
        let pause = Duration::from_secs(seconds) / 2 + Duration::from_secs(seconds) * part / 512;
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        std::thread::sleep(left.map_or(pause, |left| left.min(pause)));
        Ok(())
    }

    /// Reports that the relay is back.
    pub(crate) fn over(&mut self, console: &mut Console) -> Result<(), Failure> {
        if self.said.take().is_some() {
            console.talk(&styled(DIM, "The relay is there again.\n"))?;
        }
        self.seconds = 0;
        Ok(())
    }
}

/// Anything from 0 to `u32::MAX`.
pub(crate) fn random() -> u32 {
    getrandom::u32().unwrap_or(u32::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_line_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t");
        std::fs::write(&file, " xt_abc\n").unwrap();
        assert_eq!(read_token(&file).unwrap(), "xt_abc");
        for wrong in ["", "\n", "secret one\n", "a\nsecret\n"] {
            std::fs::write(&file, wrong).unwrap();
            let fault = read_token(&file).unwrap_err().to_string();
            assert!(!fault.contains("secret"), "{fault}");
        }
    }
}

#[cfg(test)]
mod error_tests {
    use super::*;
    use crosstalk_relay::client::RejectedRequest;
    use std::time::Duration;

    #[test]
    fn a_refusal_says_code_reason_place_and_way_out() {
        let trouble = RelayError {
            url: "http://r".into(),
            fault: ClientError::Rejected(Box::new(RejectedRequest {
                status: 403,
                code: Some(ErrorCode::Perm),
                reason: "You may not".into(),
                detail: "Line 3, column 7: no.\nWhat to do: ask.".into(),
                retry_after: Some(Duration::from_secs(5)),
            })),
        };
        assert_eq!(
            trouble.to_string(),
            "http://r says E-PERM: You may not\n  Line 3, column 7: no.\n  What to do: ask.\n  Try again in 5 seconds."
        );
        assert_eq!(Failure::from(trouble).exit(), ErrorCode::Perm.into());
    }

    #[test]
    fn tls_is_told_in_words() {
        for (reason, words) in [
            ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
            (
                "invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))",
                "that of an authority",
            ),
            (
                "invalid peer certificate: certificate not valid for name \"a\"",
                "another name",
            ),
            (
                "received corrupt message of type InvalidContentType",
                "http://",
            ),
        ] {
            let trouble = RelayError {
                url: "https://r".into(),
                fault: ClientError::Outbound(OutboundError::Unreachable {
                    url: "https://r".into(),
                    reason: reason.into(),
                }),
            };
            let text = trouble.to_string();
            assert!(
                text.contains(words) && !text.contains("crosstalk serve"),
                "{text}"
            );
        }
    }
}
