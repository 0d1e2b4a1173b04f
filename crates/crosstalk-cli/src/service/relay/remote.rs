//! A relay over the network, as the commands use it.

use crate::failure::Failure;
use crate::service::lookup::is_long_enough;
use crate::service::relay::error::Trouble;
use crate::service::settings::{Config, base_url};
use clap::Args;
use crosstalk_envelope::ErrorCode;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{Hash, LogEntry, LogQuery, NoteKey, Receipt};
use crosstalk_relay::client::{Blocking, Client, ClientError, Inbox, Sent};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A message that waits at a relay for a person.
pub(crate) use crosstalk_relay::client::Approval as Held;
/// How far a message is on its way to somebody.
pub(crate) use crosstalk_relay::client::DeliveryStatus as Delivered;
/// A message at a relay.
pub(crate) use crosstalk_relay::client::Message as Waiting;
use crosstalk_relay::client::{Consent, ConsentRecord, Letter, Status, Verdict};

/// The relay of this machine, where nothing else is configured.
pub(crate) const LOCAL: &str = "http://127.0.0.1:8799";
/// The longest token file, in bytes.
const TOKEN_FILE: u64 = 4096;
/// How much longer than it was asked to a relay may take to say that there is no answer yet.
const GRACE: Duration = Duration::from_secs(10);
/// The largest file that is fetched, in bytes.
const LARGEST: u64 = 256 << 20;

/// Which relay is asked.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Through {
    /// The relay; else the one of the settings, else the one on this machine (http://127.0.0.1:8799)
    #[arg(long, value_name = "URL", value_parser = base_url)]
    relay: Option<String>,
    /// The file with its token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

impl Through {
    /// A relay by its URL, or that of the settings.
    pub(crate) fn new(relay: Option<String>, token_file: Option<PathBuf>) -> Self {
        Self { relay, token_file }
    }

    /// A relay by a URL that may be empty: then that of the settings.
    pub(crate) fn of(url: &str, token_file: Option<PathBuf>) -> Result<Self, Failure> {
        let relay = match url {
            "" => None,
            url => Some(base_url(url).map_err(Failure::Usage)?),
        };
        Ok(Self { relay, token_file })
    }

    /// The relay for an address: the one that is named, else the one of the settings that is for the address, else the
    /// first of the settings, else the one on this machine.
    pub(crate) fn connect(
        &self,
        config: &Config,
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

    /// Whether a relay is named.
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

/// Reads a token out of a file.
pub(crate) fn read_token(file: &Path) -> Result<String, Failure> {
    use std::io::Read as _;
    let shown = file.to_string_lossy().into_owned();
    let mut text = String::new();
    std::fs::File::open(file)
        .and_then(|f| f.take(TOKEN_FILE).read_to_string(&mut text))
        .map_err(|e| Failure::Io(shown.clone(), e))?;
    let token = text.trim();
    let is_one = !token.is_empty() && token.chars().all(|c| c.is_ascii_graphic());
    match is_one {
        true => Ok(token.to_owned()),
        // Whatever it is, it is not shown.
        false => Err(Failure::Refused(
            ErrorCode::Format,
            format!(
                "{shown} holds no token: it has to be the one line that was printed when the token was made"
            ),
        )),
    }
}

/// A relay.
pub(crate) struct Remote {
    url: String,
    /// The file with its token, where the settings don't say it.
    token_file: Option<PathBuf>,
    has_token: bool,
    client: Blocking,
}

impl Remote {
    fn open(url: &str, token: Option<String>) -> Result<Self, Failure> {
        let mut client =
            Client::new(url).map_err(|fault| Failure::Usage(format!("{url}: {fault}")))?;
        let has_token = token.is_some();
        if let Some(token) = token {
            client = client.with_token(token);
        }
        let client = Blocking::new(client).map_err(|e| Failure::Io("the network".into(), e))?;
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

    /// Where it is.
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
    ) -> Result<T, Trouble> {
        self.client.run(work).map_err(|fault| Trouble {
            url: self.url.clone(),
            fault,
        })
    }

    /// Hands a message over. When this returns, the relay has it on disk.
    pub(crate) fn receive(&self, text: &str) -> Result<Sent, Trouble> {
        self.ask(async |c| c.send(text).await)
    }

    /// Hands a message over, and waits for the answer so many seconds. A relay that is gone is noticed soon after.
    pub(crate) fn receive_and_wait(&self, text: &str, seconds: u64) -> Result<Sent, Trouble> {
        let wait = Duration::from_secs(seconds);
        self.ask(async |c| c.clone().with_deadline(GRACE).ask(text, wait).await)
    }

    /// What an address has got and not acknowledged.
    pub(crate) fn inbox(
        &self,
        address: &str,
        after: Option<&str>,
        limit: u32,
        wait: u64,
    ) -> Result<Inbox, Trouble> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.ask(async |c| {
            c.inbox(address, after, limit, Duration::from_secs(wait))
                .await
        })
    }

    /// The latest messages with some words, of those that the caller may read.
    pub(crate) fn search(&self, words: &str, limit: usize) -> Result<Vec<Waiting>, Trouble> {
        self.ask(async |c| c.search(words, limit).await)
    }

    /// Says that messages came.
    pub(crate) fn acknowledge(&self, address: &str, id: &str) -> Result<(), Trouble> {
        self.ask(async |c| c.acknowledge(address, &[id]).await)
            .map(drop)
    }

    /// Says that the program that answers a message failed, and is tried again or not.
    pub(crate) fn report_failure(
        &self,
        address: &str,
        id: &str,
        is_final: bool,
    ) -> Result<(), Trouble> {
        let state = if is_final { "failed" } else { "retrying" };
        self.ask(async |c| c.mark(address, &[id], state).await)
            .map(drop)
    }

    /// A message, as it is at the relay now.
    pub(crate) fn message(&self, id: &str) -> Result<Waiting, Trouble> {
        self.ask(async |c| c.message(id).await)
    }

    /// How far a message is.
    pub(crate) fn status(&self, id: &str) -> Result<Status, Trouble> {
        self.ask(async |c| c.status(id).await)
    }

    /// How a poll stands.
    pub(crate) fn poll(&self, id: &str) -> Result<serde_json::Value, Trouble> {
        self.ask(async |c| c.poll(id).await)
    }

    /// Closes a poll. Its result.
    pub(crate) fn close_poll(&self, id: &str) -> Result<serde_json::Value, Trouble> {
        self.ask(async |c| c.close_poll(id).await)
    }

    /// The latest checkpoint of its log.
    pub(crate) fn checkpoint(&self) -> Result<String, Trouble> {
        self.ask(async |c| c.checkpoint().await)
    }

    /// The key that it says it signs checkpoints with.
    pub(crate) fn log_key(&self) -> Result<NoteKey, Trouble> {
        self.ask(async |c| c.log_key().await)
    }

    /// The proof of an entry.
    pub(crate) fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Hash>, Trouble> {
        self.ask(async |c| c.inclusion(index, size).await)
    }

    /// The proof from an older checkpoint.
    pub(crate) fn consistency(&self, from: u64, to: u64) -> Result<Vec<Hash>, Trouble> {
        self.ask(async |c| c.consistency(from, to).await)
    }

    /// The receipt of a message.
    pub(crate) fn receipt(&self, id: &str) -> Result<Receipt, Trouble> {
        self.ask(async |c| c.receipt(id).await)
    }

    /// Entries of its log, and how many there are.
    pub(crate) fn entries(&self, asked: &LogQuery) -> Result<(u64, Vec<LogEntry>), Trouble> {
        self.ask(async |c| c.entries(asked).await)
    }

    /// Hands a file over.
    pub(crate) fn put_blob(&self, bytes: Vec<u8>) -> Result<(), Trouble> {
        self.ask(async |c| c.put_blob(bytes.into()).await).map(drop)
    }

    /// Whether a file is there.
    pub(crate) fn has_blob(&self, digest: Digest) -> Result<bool, Trouble> {
        self.ask(async |c| c.has_blob(digest).await)
    }

    /// A file, as its digest says.
    pub(crate) fn blob(&self, digest: Digest) -> Result<Vec<u8>, Trouble> {
        self.ask(async |c| c.get_blob(digest, LARGEST).await)
            .map(Into::into)
    }

    /// Consents on record there.
    pub(crate) fn consents(
        &self,
        by: Option<&str>,
        holding: bool,
        limit: usize,
    ) -> Result<Vec<Consent>, Trouble> {
        self.ask(async |c| c.consents(by, holding, limit).await)
    }

    /// A consent on record there, and what depends on it.
    pub(crate) fn consent(&self, id: &str) -> Result<ConsentRecord, Trouble> {
        self.ask(async |c| c.consent(id).await)
    }

    /// What waits for a person to carry it.
    pub(crate) fn courier(&self, limit: usize) -> Result<Vec<Waiting>, Trouble> {
        self.ask(async |c| c.courier(limit).await)
    }

    /// Says that a message was carried, or why not.
    pub(crate) fn carried(&self, id: &str, to: &str, failed: Option<&str>) -> Result<(), Trouble> {
        self.ask(async |c| c.carried(id, to, failed).await)
            .map(drop)
    }

    /// What waits for whoever asks to decide.
    pub(crate) fn approvals(&self, limit: u32) -> Result<Vec<Held>, Trouble> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.ask(async |c| c.approvals(limit).await)
    }

    /// A message that waits, or what was decided about it.
    pub(crate) fn approval(&self, id: &str) -> Result<Held, Trouble> {
        self.ask(async |c| c.approval(id).await)
    }

    /// Approves a message by the digests of what was seen, or refuses it with a reason.
    pub(crate) fn decide(
        &self,
        id: &str,
        digest: Digest,
        raw: Digest,
        refused: Option<&str>,
    ) -> Result<Held, Trouble> {
        let verdict = Verdict {
            digest,
            raw,
            refused,
        };
        self.ask(async |c| c.decide(id, &verdict).await)
    }

    /// Deliveries that were given up.
    pub(crate) fn dead(&self, limit: u32) -> Result<Vec<Letter>, Trouble> {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        self.ask(async |c| c.dead(limit).await)
    }

    /// Has a delivery tried again that was given up. How many.
    pub(crate) fn requeue(&self, id: &str) -> Result<u64, Trouble> {
        self.ask(async |c| c.requeue(id).await)
    }
}

/// How many entries of a relay are looked through for one that begins as asked for.
pub(crate) const LOOKED_THROUGH: u16 = 500;

/// What an id means at a relay: the entry with this id, else the only one whose id begins with it.
pub(crate) fn find_by_prefix<T>(
    prefix: &str,
    get: impl Fn(&str) -> Result<T, Trouble>,
    all_ids: impl FnOnce() -> Result<Vec<String>, Trouble>,
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
