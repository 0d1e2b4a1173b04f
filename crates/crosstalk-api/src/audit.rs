//! The log of a relay: checkpoints, proofs, receipts and entries.

use crate::client::{Client, ClientError, MESSAGE_BYTES, RequestTarget, unreadable};
use crate::endpoint::{endpoints, parameters};
use crate::inbox::LIMIT;
use crate::message::ID;
use crate::schema::{self, MAX_ID_CHARS};
use crate::{BodyForm, Endpoint, Media, ParameterKind, SuccessResponse};
use crosstalk_envelope::base64;
use crosstalk_protocol::audit::{
    ChainId, EventDetail, Hash, Leaf, LogEntry, LogPlace, LogQuery, LogReceipt, NoteKey,
};
use http::header::ACCEPT;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

parameters! {
    /// The chain, by its number; the first one if nothing is said.
    CHAIN = query "chain", ParameterKind::count();
    /// The entry.
    INDEX = required "index", ParameterKind::count();
    /// How many entries the tree has; those of the latest checkpoint if nothing is said.
    SIZE = query "size", ParameterKind::count();
    /// How many entries the older checkpoint has.
    OLDER = required "from", ParameterKind::count();
    /// How many the newer has; those of the latest if nothing is said.
    NEWER = query "to", ParameterKind::count();
    /// From this index on.
    FROM = query "from", ParameterKind::count();
    /// Up to this index, which is not among them.
    TO = query "to", ParameterKind::count();
    /// Only these kinds, with commas between them.
    KIND = query "kind", ParameterKind::text::<schema::Word>(MAX_ID_CHARS);
    /// Not before this time.
    SINCE = query "since", ParameterKind::text::<schema::Word>(MAX_ID_CHARS);
    /// Not after this time.
    UNTIL = query "until", ParameterKind::text::<schema::Word>(MAX_ID_CHARS);
    /// Only of this message.
    MESSAGE = query "message", ParameterKind::text::<schema::Word>(MAX_ID_CHARS);
    /// Only of messages of this thread.
    THREAD = query "thread", ParameterKind::text::<schema::Word>(MAX_ID_CHARS);
    /// With the texts of messages.
    TEXTS = query "texts", ParameterKind::Flag { default: None };
    /// The last ones instead of the first ones.
    NEWEST = query "newest", ParameterKind::Flag { default: None };
}

endpoints! {
    /// The signed receipt of a message
    ///
    /// AUD-030. The entry of the message, its way to the root, and the signed checkpoint: a C2SP tlog-proof.
    RECEIPT: Receipt = Get "/crosstalk/messages/{}/receipt" for Known in Audit {
        parameters: &[&ID],
        response: SuccessResponse::ok("The receipt.", &[BodyForm::of::<String>(Media::Text)]),
    }

    /// The chains of the log
    ///
    /// AUD-060. Relays that share a store write a chain each, and each of them serves all. A relay with a store of its own has
    /// one.
    CHAINS: Chains = Get "/crosstalk/audit/chains" for Known in Audit {
        response: SuccessResponse::ok("The chains, by their numbers.", &[BodyForm::json::<LogChains>()]),
    }

    /// The latest signed checkpoint of the log
    ///
    /// AUD-020. A C2SP signed note: origin, size, root, signature.
    CHECKPOINT: Checkpoint = Get "/crosstalk/audit/checkpoint" for Known in Audit {
        parameters: &[&CHAIN],
        response: SuccessResponse::ok("The checkpoint.", &[BodyForm::of::<String>(Media::Text)]),
    }

    /// The public key of the log
    ///
    /// AUD-021. The key that checkpoints are signed with, as name+hash+key.
    LOG_KEY: LogKey = Get "/crosstalk/audit/key" for Named in Audit {
        parameters: &[&CHAIN],
        response: SuccessResponse::ok("The key.", &[BodyForm::of::<String>(Media::Text)]),
    }

    /// The proof that an entry is in the log
    ///
    /// AUD-011. Hashes in base64, a line each, from the leaf to the root.
    INCLUSION: Inclusion = Get "/crosstalk/audit/inclusion" for Known in Audit {
        parameters: &[&INDEX, &SIZE, &CHAIN],
        response: SuccessResponse::ok("The proof.", &[BodyForm::of::<String>(Media::Text)]),
    }

    /// The proof that a log extends an older one
    ///
    /// AUD-012. Hashes in base64, a line each.
    CONSISTENCY: Consistency = Get "/crosstalk/audit/consistency" for Known in Audit {
        parameters: &[&OLDER, &NEWER, &CHAIN],
        response: SuccessResponse::ok("The proof.", &[BodyForm::of::<String>(Media::Text)]),
    }

    /// Entries of the log
    ///
    /// AUD-001. With what is kept beside them, and with the texts of messages where that is wanted. For the relay operator.
    ENTRIES: Entries = Get "/crosstalk/audit/entries" for Admin in Audit {
        parameters: &[
            &FROM, &TO, &KIND, &SINCE, &UNTIL, &MESSAGE, &THREAD, &TEXTS, &NEWEST, &LIMIT,
            &CHAIN,
        ],
        response: SuccessResponse::ok(
            "Entries in their order; there may be fewer than were asked for, where texts are long.",
            &[BodyForm::json::<LogEntries>()],
        ),
    }
}

/// The chains of the log.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct LogChains {
    /// The chains, by their numbers.
    pub chains: Vec<LogChainView>,
}

/// A chain of the log.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "LogChain")]
pub struct LogChainView {
    /// Its number. That of the first one is 0.
    pub chain: u64,
    /// The origin of its checkpoints: the name of the relay, and for a later chain `/` and its number.
    pub origin: String,
    /// The key that its checkpoints are signed with, as name+hash+key; none if its relay has no ed25519 key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub key: Option<String>,
    /// Since when it is registered; in a relay with a store of its own, since the start of the relay.
    #[schemars(with = "schema::Time")]
    pub since: String,
    /// How many entries it has.
    pub size: u64,
    /// How many entries its latest checkpoint covers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    pub signed: Option<u64>,
    /// The root of these, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub root: Option<String>,
}

/// Entries of the log, and how many there are in all.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub struct LogEntries {
    /// The chain that they are of.
    #[serde(default)]
    pub chain: u64,
    /// How many entries it has.
    pub size: u64,
    /// The entries.
    pub entries: Vec<LogEntryView>,
}

/// An entry of the log, with what is kept beside it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[schemars(rename = "LogEntry")]
pub struct LogEntryView {
    /// Its index.
    pub index: u64,
    /// Its kind.
    #[serde(default)]
    pub kind: String,
    /// When it was written.
    #[serde(default)]
    #[schemars(with = "schema::Time")]
    pub at: String,
    /// The line that the tree covers.
    pub leaf: String,
    /// The id of the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub message: Option<String>,
    /// The salt of the digest of the detail, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub salt: Option<String>,
    /// To whom, by whom, why: name=value, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub detail: Option<String>,
    /// Of a message that was accepted and is kept: its sender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub from: Option<String>,
    /// Of a message that was accepted and is kept: its receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub to: Option<String>,
    /// The text of the message as it was accepted, unless its consent is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    pub text: Option<String>,
}

impl From<LogEntry> for LogEntryView {
    fn from(entry: LogEntry) -> Self {
        let (salt, detail) = entry.detail.unzip();
        let (from, to) = entry.parties.unzip();
        Self {
            index: entry.index,
            kind: entry.leaf.kind.as_str().to_owned(),
            at: entry.leaf.at.to_string(),
            leaf: entry.leaf.to_string(),
            message: entry.leaf.id,
            salt: salt.map(|salt| base64::encode(&salt)),
            detail: detail.map(|detail| detail.to_string()),
            from,
            to,
            text: entry.text,
        }
    }
}

impl LogEntryView {
    fn entry(self) -> Option<LogEntry> {
        let salt = self.salt.map(|s| base64::decode(&s).ok_or(()));
        let detail = self.detail.map(|d| EventDetail::parse(&d).ok_or(()));
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
        target: RequestTarget,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, ClientError> {
        let mut call = self.call(target)?;
        call.most = MESSAGE_BYTES;
        let answer = self.run(call.header(ACCEPT, Media::Text.name())?).await?;
        let found = answer.text().and_then(read);
        found.ok_or_else(|| unreadable(&answer, "it is not what was asked for"))
    }

    /// The chains of the log. Nothing of it is checked.
    pub async fn chains(&self) -> Result<Vec<LogChainView>, ClientError> {
        let call = self.call(RequestTarget::of(&CHAINS))?;
        let answer = self.run(call.header(ACCEPT, Media::Json.name())?).await?;
        let read: LogChains = serde_json::from_slice(&answer.body)
            .map_err(|e| unreadable(&answer, &e.to_string()))?;
        Ok(read.chains)
    }

    /// The latest checkpoint of a chain: a signed note. Nothing of it is checked.
    pub async fn checkpoint(&self, chain: ChainId) -> Result<String, ClientError> {
        self.text_of(of_chain(&CHECKPOINT, chain), |t| Some(t.to_owned()))
            .await
    }

    /// The key that the relay says checkpoints of a chain are signed with.
    pub async fn log_key(&self, chain: ChainId) -> Result<NoteKey, ClientError> {
        let read = |text: &str| NoteKey::parse(text.strip_suffix('\n')?).ok();
        self.text_of(of_chain(&LOG_KEY, chain), read).await
    }

    /// The proof that an entry is among the first so many of its chain.
    pub async fn inclusion(&self, place: LogPlace, size: u64) -> Result<Vec<Hash>, ClientError> {
        let target = of_chain(&INCLUSION, place.chain)
            .query(&INDEX, place.index)
            .query(&SIZE, size);
        self.text_of(target, hashes).await
    }

    /// The proof that the first so many entries of a chain are the beginning of more.
    pub async fn consistency(
        &self,
        chain: ChainId,
        from: u64,
        to: u64,
    ) -> Result<Vec<Hash>, ClientError> {
        let target = of_chain(&CONSISTENCY, chain)
            .query(&OLDER, from)
            .query(&NEWER, to);
        self.text_of(target, hashes).await
    }

    /// The receipt of a message.
    pub async fn receipt(&self, id: &str) -> Result<LogReceipt, ClientError> {
        let target = RequestTarget::of(&RECEIPT).segment(id);
        self.text_of(target, |t| LogReceipt::parse(t).ok()).await
    }

    /// Entries of the log, and how many there are in all.
    pub async fn entries(&self, asked: &LogQuery) -> Result<(u64, Vec<LogEntry>), ClientError> {
        let kinds: Vec<&str> = asked.kinds.iter().map(|k| k.as_str()).collect();
        let kinds = (!kinds.is_empty()).then(|| kinds.join(","));
        let target = of_chain(&ENTRIES, asked.chain)
            .query(&FROM, asked.from)
            .query_if(&TO, asked.to)
            .query_if(&KIND, kinds)
            .query_if(&SINCE, asked.since)
            .query_if(&UNTIL, asked.until)
            .query_if(&MESSAGE, asked.id.as_deref())
            .query_if(&THREAD, asked.thread.as_deref())
            .query_if(&TEXTS, asked.texts.is_some().then_some(true))
            .query_if(&NEWEST, asked.newest.then_some(true))
            .query(&LIMIT, asked.limit.clamp(1, 500));
        let call = self.call(target)?;
        let answer = self.run(call.header(ACCEPT, Media::Json.name())?).await?;
        let read: LogEntries = serde_json::from_slice(&answer.body)
            .map_err(|e| unreadable(&answer, &e.to_string()))?;
        let entries = read.entries.into_iter().map(LogEntryView::entry);
        let entries = entries.collect::<Option<Vec<LogEntry>>>();
        let entries = entries.ok_or_else(|| unreadable(&answer, "an entry can't be read"))?;
        Ok((read.size, entries))
    }
}

/// The target of a request about a chain. A relay that knows one chain is not asked for its number.
fn of_chain(endpoint: &'static Endpoint, chain: ChainId) -> RequestTarget {
    let number = (chain != ChainId::FIRST).then_some(chain.0);
    RequestTarget::of(endpoint).query_if(&CHAIN, number)
}

/// Hashes, a line each.
fn hashes(text: &str) -> Option<Vec<Hash>> {
    let hash = |line: &str| base64::decode(line)?.try_into().ok();
    text.lines().map(hash).collect()
}
