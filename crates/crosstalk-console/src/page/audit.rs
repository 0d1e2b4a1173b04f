//! The audit log: the journal with filters, an entry with its proof, and an export.

use super::{PageError, PageResult, Shell, render};
use crate::asset::PROOF;
use crate::fields::{FormFields, encode};
use crate::text::{Moment, PartyName, Shown};
use crate::visit::{Visit, redirect};
use askama::Template;
use axum::body::Body;
use axum::extract::Path;
use axum::response::Response;
use crosstalk_api::audit::LogEntryView;
use crosstalk_envelope::{Timestamp, base64};
use crosstalk_protocol::audit::{
    ChainId, EventKind, Hash, LogEntry, LogPlace, LogQuery, Note, is_included, leaf_hash,
};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderValue, StatusCode};

/// How many entries are on a page.
const SHOWN: usize = 50;
/// How many entries an export has at most.
const EXPORTED: usize = 500;

/// An entry in the journal.
struct EntryRow {
    index: u64,
    /// The query that names the chain; nothing for the first one.
    chain: String,
    kind: &'static str,
    tone: &'static str,
    at: Moment,
    message: Option<Shown>,
    message_path: String,
    detail: Vec<(Shown, Shown)>,
    parties: Option<(PartyName, PartyName)>,
}

/// The class for the colour of a kind.
const fn tone_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Delivered | EventKind::Approved | EventKind::Granted => "ok",
        EventKind::Failed | EventKind::Refused | EventKind::Declined => "bad",
        EventKind::Held | EventKind::Revoked | EventKind::Erased => "warn",
        EventKind::Accepted | EventKind::Transferred | EventKind::Closed => "note",
    }
}

impl EntryRow {
    fn of(chain: ChainId, entry: &LogEntry, now: Timestamp) -> Self {
        let id = entry.leaf.id.as_deref();
        let detail = entry.detail.as_ref().map(|(_, detail)| {
            let pairs = detail.pairs();
            pairs.map(|(name, value)| (Shown::short(name, 30), Shown::short(value, 160)))
        });
        Self {
            index: entry.index,
            chain: chain_query(chain),
            kind: entry.leaf.kind.as_str(),
            tone: tone_of(entry.leaf.kind),
            at: Moment::of(entry.leaf.at, now),
            message: id.map(|id| Shown::short(id, 40)),
            message_path: encode(id.unwrap_or("")),
            detail: detail.into_iter().flatten().collect(),
            parties: entry
                .parties
                .as_ref()
                .map(|(from, to)| (PartyName::of(from), PartyName::of(to))),
        }
    }
}

/// The query of a link to a chain; nothing for the first one.
fn chain_query(chain: ChainId) -> String {
    match chain {
        ChainId::FIRST => String::new(),
        chain => format!("?chain={chain}"),
    }
}

/// The chain that the query of a page names; else the first one.
fn chain_of(fields: &FormFields) -> Result<ChainId, PageError> {
    let named = fields.get("chain").map(str::trim);
    let parse =
        |text| ChainId::parse(text).ok_or_else(|| PageError::format("`chain` is no number."));
    named.map_or(Ok(ChainId::FIRST), parse)
}

/// A chain that the journal links to, where there are several.
struct ChainLink {
    query: String,
    origin: Shown,
    is_shown: bool,
}

/// A kind that the filter offers.
struct KindChoice {
    word: &'static str,
    is_chosen: bool,
}

#[derive(Template)]
#[template(path = "audit.html")]
struct AuditPage {
    shell: Shell,
    chains: Vec<ChainLink>,
    /// The chain that is shown, if it is not the first one.
    chain: Option<u64>,
    entries: Vec<EntryRow>,
    size: u64,
    kinds: Vec<KindChoice>,
    since: Shown,
    until: Shown,
    message: Shown,
    thread: Shown,
    is_filtered: bool,
    older: Option<String>,
    export: String,
    relay_url: String,
}

/// The query of the page as a question to the log, and as the query of a link.
fn question(fields: &FormFields) -> Result<(LogQuery, String), PageError> {
    let time = |name: &str| match fields.get(name).map(str::trim) {
        None => Ok(None),
        Some(text) => {
            // A day counts as its beginning, or its end.
            let whole = match (text.len(), name) {
                (10, "until") => format!("{text}T23:59:59Z"),
                (10, _) => format!("{text}T00:00:00Z"),
                _ => text.to_owned(),
            };
            let at = Timestamp::parse(&whole);
            at.map(Some).ok_or_else(|| {
                PageError::fault(
                    400,
                    format!("`{name}` is no time."),
                    "write it as 2027-01-31 or 2027-01-31T12:00:00Z.",
                )
            })
        }
    };
    let kind = fields.get("kind");
    let kinds = EventKind::ALL
        .into_iter()
        .filter(|k| Some(k.as_str()) == kind);
    let text = |name: &str| fields.get(name).map(|t| t.trim().to_owned());
    let asked = LogQuery {
        chain: chain_of(fields)?,
        kinds: kinds.collect(),
        since: time("since")?,
        until: time("until")?,
        id: text("message"),
        thread: text("thread"),
        newest: true,
        limit: SHOWN,
        ..LogQuery::default()
    };
    let mut link = String::new();
    for name in ["chain", "kind", "since", "until", "message", "thread"] {
        if let Some(value) = fields.get(name) {
            link.push_str(&format!("&{name}={}", encode(value.trim())));
        }
    }
    Ok((asked, link))
}

pub(crate) async fn list(visit: Visit) -> PageResult {
    let (mut asked, link) = question(&visit.query)?;
    asked.to = match visit.query.get("before") {
        Some(before) => Some(
            before
                .parse()
                .map_err(|_| PageError::format("`before` is no number."))?,
        ),
        None => None,
    };
    let (size, mut entries) = visit.client.entries(&asked).await?;
    let chains = visit.client.chains().await?;
    entries.reverse();
    let last = entries.last().map(|e| e.index);
    let older = last
        .filter(|last| entries.len() == SHOWN && *last > 0)
        .map(|last| format!("/audit?before={last}{link}"));
    let text = |name: &str| Shown::new(visit.query.text(name));
    render(&AuditPage {
        chains: chains
            .iter()
            .map(|chain| ChainLink {
                query: chain_query(ChainId(chain.chain)),
                origin: Shown::new(&chain.origin),
                is_shown: chain.chain == asked.chain.0,
            })
            .collect(),
        chain: (asked.chain != ChainId::FIRST).then_some(asked.chain.0),
        entries: entries
            .iter()
            .map(|e| EntryRow::of(asked.chain, e, visit.now))
            .collect(),
        size,
        kinds: EventKind::ALL
            .into_iter()
            .map(|k| KindChoice {
                word: k.as_str(),
                is_chosen: asked.kinds.contains(&k),
            })
            .collect(),
        since: text("since"),
        until: text("until"),
        message: text("message"),
        thread: text("thread"),
        is_filtered: !link.is_empty(),
        older,
        export: format!("/audit/export?{}", link.trim_start_matches('&')),
        relay_url: visit.console.host.url(&visit.headers),
        shell: visit.shell("Audit log").await,
    })
}

/// The journal of one message.
pub(crate) async fn of_message(_: Visit, Path(id): Path<String>) -> Response {
    redirect(&format!("/audit?message={}", encode(&id)))
}

/// Entries as JSON, a line each: the newest that the filter lets through.
pub(crate) async fn export(visit: Visit) -> PageResult {
    let (mut asked, _) = question(&visit.query)?;
    asked.limit = EXPORTED;
    let (_, entries) = visit.client.entries(&asked).await?;
    let mut text = String::new();
    for entry in entries {
        let line = serde_json::to_string(&LogEntryView::from(entry));
        text.push_str(&line.unwrap_or_default());
        text.push('\n');
    }
    let mut answer = Response::new(Body::from(text));
    *answer.status_mut() = StatusCode::OK;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/jsonl"));
    let name = HeaderValue::from_static("attachment; filename=\"audit.jsonl\"");
    headers.insert(CONTENT_DISPOSITION, name);
    Ok(answer)
}

/// The proof that an entry is in the log.
struct EntryProof {
    size: u64,
    root: String,
    path: Vec<String>,
    note: Shown,
    key: Option<Shown>,
    /// Whether the leaf and the path give the root, as this relay computes it.
    is_included: bool,
    is_signed: bool,
}

#[derive(Template)]
#[template(path = "audit_entry.html")]
struct EntryPage {
    shell: Shell,
    script: &'static str,
    row: EntryRow,
    leaf: String,
    leaf_shown: Shown,
    leaf_hash: String,
    /// Nothing if the entry came after the latest checkpoint.
    proof: Option<EntryProof>,
    why_not: &'static str,
    command_id: Option<Shown>,
    relay_url: String,
}

pub(crate) async fn show(visit: Visit, Path(index): Path<String>) -> PageResult {
    let missing = || PageError::fault(404, "There is no such entry.", "go back to the journal.");
    let index: u64 = index.parse().map_err(|_| missing())?;
    let chain = chain_of(&visit.query)?;
    let place = LogPlace { chain, index };
    let asked = LogQuery {
        chain,
        from: index,
        to: Some(index.saturating_add(1)),
        limit: 1,
        ..LogQuery::default()
    };
    let (_, entries) = visit.client.entries(&asked).await?;
    let entry = entries.first().ok_or_else(missing)?;
    let leaf = entry.leaf.to_string();
    let hash = leaf_hash(leaf.as_bytes());
    let (proof, why_not) = match visit.client.checkpoint(chain).await {
        Ok(note) => proof_of(&visit, place, &hash, &note).await?,
        Err(_) => (None, "This relay has no key, so it signs no checkpoints."),
    };
    render(&EntryPage {
        script: PROOF.path,
        row: EntryRow::of(chain, entry, visit.now),
        leaf_shown: Shown::new(&leaf),
        leaf_hash: base64::encode(&hash),
        leaf,
        proof,
        why_not,
        command_id: entry.leaf.id.as_deref().map(Shown::argument),
        relay_url: visit.console.host.url(&visit.headers),
        shell: visit.shell("Audit log").await,
    })
}

async fn proof_of(
    visit: &Visit,
    place: LogPlace,
    leaf: &Hash,
    text: &str,
) -> Result<(Option<EntryProof>, &'static str), PageError> {
    let note = Note::parse(text).ok();
    let Some((note, claimed)) = note.and_then(|note| Some((note, note.claim().ok()?))) else {
        return Ok((None, "The latest checkpoint can't be read."));
    };
    let LogPlace { chain, index } = place;
    if index >= claimed.size {
        return Ok((
            None,
            "It came after the latest checkpoint. The next one covers it: load the page again in a moment.",
        ));
    }
    let path = visit.client.inclusion(place, claimed.size).await?;
    let key = visit.client.log_key(chain).await.ok();
    let proof = EntryProof {
        size: claimed.size,
        root: base64::encode(&claimed.root),
        is_included: is_included(leaf, index, claimed.size, &path, &claimed.root),
        is_signed: key.as_ref().is_some_and(|key| note.open(key).is_ok()),
        path: path.iter().map(|hash| base64::encode(hash)).collect(),
        note: Shown::new(text),
        key: key.map(|key| Shown::new(&key.to_string())),
    };
    Ok((Some(proof), ""))
}
