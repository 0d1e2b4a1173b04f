//! The log of a relay.

use super::{Client, ClientError, Path, unreadable};
use crosstalk_envelope::base64;
use crosstalk_protocol::audit::{Detail, Hash, Leaf, LogEntry, LogQuery, NoteKey, Receipt};
use http::Method;
use http::header::ACCEPT;
use serde::Deserialize;

#[derive(Deserialize)]
struct Entries {
    size: u64,
    entries: Vec<EntryView>,
}

#[derive(Deserialize)]
struct EntryView {
    index: u64,
    leaf: String,
    salt: Option<String>,
    detail: Option<String>,
    text: Option<String>,
    from: Option<String>,
    to: Option<String>,
}

impl EntryView {
    fn entry(self) -> Option<LogEntry> {
        let salt = self.salt.map(|s| base64::decode(&s).ok_or(()));
        let detail = self.detail.map(|d| Detail::parse(&d).ok_or(()));
        let (salt, detail) = (salt.transpose().ok()?, detail.transpose().ok()?);
        Some(LogEntry {
            index: self.index,
            leaf: Leaf::parse(&self.leaf).ok()?,
            detail: salt.zip(detail),
            text: self.text,
            parties: self.from.zip(self.to),
        })
    }
}

impl Client {
    /// A text, read as something.
    async fn text_of<T>(
        &self,
        path: Path,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ClientError> {
        let mut call = self.call(Method::GET, &path.text)?;
        call.most = super::MESSAGE_BYTES;
        let answer = self.run(call.header(ACCEPT, "text/plain")?).await?;
        let found = answer.text().and_then(read);
        found.ok_or_else(|| unreadable(&answer, "it is not what was asked for"))
    }

    /// The latest checkpoint of the log: a signed note. Nothing of it is checked.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn checkpoint(&self) -> Result<String, ClientError> {
        let path = Path::new("crosstalk/audit/checkpoint");
        self.text_of(path, |t| Some(t.to_owned())).await
    }

    /// The key that the relay says it signs checkpoints with.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn log_key(&self) -> Result<NoteKey, ClientError> {
        let path = Path::new("crosstalk/audit/key");
        self.text_of(path, |t| NoteKey::parse(t.strip_suffix('\n')?).ok())
            .await
    }

    /// The proof that an entry is among the first so many.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn inclusion(&self, index: u64, size: u64) -> Result<Vec<Hash>, ClientError> {
        let path = Path::new("crosstalk/audit/inclusion")
            .query("index", &index.to_string())
            .query("size", &size.to_string());
        self.text_of(path, hashes).await
    }

    /// The proof that the first so many entries are the beginning of more.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn consistency(&self, from: u64, to: u64) -> Result<Vec<Hash>, ClientError> {
        let path = Path::new("crosstalk/audit/consistency")
            .query("from", &from.to_string())
            .query("to", &to.to_string());
        self.text_of(path, hashes).await
    }

    /// The receipt of a message.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn receipt(&self, id: &str) -> Result<Receipt, ClientError> {
        let path = Path::new("crosstalk/messages").part(id).part("receipt");
        self.text_of(path, |t| Receipt::parse(t).ok()).await
    }

    /// Entries of the log, and how many there are in all.
    ///
    /// # Errors
    /// What the relay says against it, or why it can't be reached.
    pub async fn entries(&self, asked: &LogQuery) -> Result<(u64, Vec<LogEntry>), ClientError> {
        let kinds: Vec<&str> = asked.kinds.iter().map(|k| k.as_str()).collect();
        let path = Path::new("crosstalk/audit/entries")
            .query("from", &asked.from.to_string())
            .query_if("to", asked.to.map(|n| n.to_string()).as_deref())
            .query_if(
                "kind",
                (!kinds.is_empty()).then(|| kinds.join(",")).as_deref(),
            )
            .query_if("since", asked.since.map(|t| t.to_string()).as_deref())
            .query_if("until", asked.until.map(|t| t.to_string()).as_deref())
            .query_if("message", asked.id.as_deref())
            .query_if("thread", asked.thread.as_deref())
            .query_if("texts", asked.texts.is_some().then_some("true"))
            .query_if("newest", asked.newest.then_some("true"))
            .query("limit", &asked.most.clamp(1, 500).to_string());
        let call = self.call(Method::GET, &path.text)?;
        let answer = self.run(call.header(ACCEPT, super::JSON)?).await?;
        let read: Entries = serde_json::from_slice(&answer.body)
            .map_err(|e| unreadable(&answer, &e.to_string()))?;
        let entries = read.entries.into_iter().map(EntryView::entry);
        let entries = entries.collect::<Option<Vec<LogEntry>>>();
        let entries = entries.ok_or_else(|| unreadable(&answer, "an entry can't be read"))?;
        Ok((read.size, entries))
    }
}

/// Hashes, a line each.
fn hashes(text: &str) -> Option<Vec<Hash>> {
    let hash = |line: &str| base64::decode(line)?.try_into().ok();
    text.lines().map(hash).collect()
}
