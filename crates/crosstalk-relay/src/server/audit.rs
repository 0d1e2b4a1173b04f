//! The audit log: checkpoints, proofs and receipts for every credential, entries for the operator.

use super::MAX_LISTING_BYTES;
use super::housekeeping;
use super::message;
use super::query::Query;
use super::response::{self, HttpError, Json, Response};
use super::router::{Accepts, Call, Segment};
use crosstalk_api::Parameter;
use crosstalk_api::audit::{
    CHAIN, FROM, INDEX, KIND, LogChainView, LogChains, LogEntries, MESSAGE, NEWER, NEWEST, OLDER,
    SINCE, SIZE, TEXTS, THREAD, TO, UNTIL,
};
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::{Timestamp, base64};
use crosstalk_protocol::audit::{ChainId, EventKind, Hash, LogQuery, NoteError, SignedCheckpoint};
use crosstalk_protocol::relay::port::{LogChain, LogProof};

/// The chains of the log.
pub(super) async fn chains(call: Call, _: Accepts) -> Result<Json<LogChains>, HttpError> {
    let relay = &call.server.relay;
    let mut chains = Vec::new();
    for chain in relay.store().chains().await? {
        let head = relay.store().log_head(chain.id).await?;
        let signed = relay.checkpoint(chain.id).await?;
        chains.push(LogChainView {
            chain: chain.id.0,
            origin: chain.id.origin(&relay.config().name),
            key: relay.key_of(&chain).ok().map(|key| key.to_string()),
            since: chain.since.to_string(),
            size: head.size,
            signed: signed.as_ref().map(|s| s.size),
            root: signed.as_ref().map(|s| base64::encode(&s.root)),
        });
    }
    Ok(Json(LogChains { chains }))
}

/// The chain that a request is about: the first one, if it names none.
async fn chain_of(call: &Call, query: &Query) -> Result<LogChain, HttpError> {
    let id = ChainId(query.number(&CHAIN)?.unwrap_or_default());
    let found = call.server.relay.find_chain(id).await?;
    found.ok_or_else(|| HttpError::missing("such chain of the log"))
}

/// The latest checkpoint. One is signed at once if there is none yet.
pub(super) async fn checkpoint(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Response, HttpError> {
    let chain = chain_of(&call, &query).await?;
    Ok(response::text(sealed(&call, &chain).await?.note))
}

/// The public key that checkpoints are signed with.
pub(super) async fn key(call: Call, _: Accepts, query: Query) -> Result<Response, HttpError> {
    let chain = chain_of(&call, &query).await?;
    let key = call.server.relay.key_of(&chain).map_err(|_| unsigned())?;
    Ok(response::text(format!("{key}\n")))
}

async fn sealed(call: &Call, chain: &LogChain) -> Result<SignedCheckpoint, HttpError> {
    let relay = &call.server.relay;
    let sealed = relay.checkpoint(chain.id).await?;
    sealed.ok_or_else(|| match relay.key_of(chain) {
        Ok(_) => HttpError::later("The log is being signed"),
        Err(_) => unsigned(),
    })
}

fn unsigned() -> HttpError {
    HttpError::new(
        ErrorCode::Unsupported,
        "This relay has no ed25519 key, so that it signs no checkpoints.",
        "ask the relay operator to give it one (`crosstalk serve` makes one where there is none).",
    )
}

fn beyond(size: u64) -> HttpError {
    HttpError::format(
        format!("The latest checkpoint has {size} entries, and this is not among them."),
        "ask for less, or a second later.",
    )
}

/// Hashes, a line each.
fn path(hashes: &[Hash]) -> Response {
    let lines = hashes.iter().map(|h| base64::encode(h) + "\n");
    response::text(lines.collect())
}

/// The way from an entry to the root.
pub(super) async fn inclusion(call: Call, _: Accepts, query: Query) -> Result<Response, HttpError> {
    let index = query.required_number(&INDEX)?;
    let chain = chain_of(&call, &query).await?;
    let latest = sealed(&call, &chain).await?.size;
    let size = query.number(&SIZE)?.unwrap_or(latest);
    if size > latest || index >= size {
        return Err(beyond(latest));
    }
    let proof = LogProof::Inclusion { index, size };
    let found = call.server.relay.store().log_proof(chain.id, proof).await?;
    Ok(path(&found.ok_or_else(|| beyond(latest))?))
}

/// That a log is the beginning of another.
pub(super) async fn consistency(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Response, HttpError> {
    let from = query.required_number(&OLDER)?;
    let chain = chain_of(&call, &query).await?;
    let latest = sealed(&call, &chain).await?.size;
    let to = query.number(&NEWER)?.unwrap_or(latest);
    if to > latest || from > to {
        return Err(beyond(latest));
    }
    let proof = LogProof::Consistency { from, to };
    let found = call.server.relay.store().log_proof(chain.id, proof).await?;
    Ok(path(&found.ok_or_else(|| beyond(latest))?))
}

/// Entries of the log, with what is kept beside them.
pub(super) async fn entries(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<LogEntries>, HttpError> {
    let chain = chain_of(&call, &query).await?.id;
    let asked = LogQuery {
        chain,
        ..asked(&query, call.server.relay.now())?
    };
    if asked.texts.is_some() {
        // Expired texts are not shown, and the log has to record that they were erased.
        housekeeping::expire(&call.server).await?;
    }
    let (store, texts) = (call.server.relay.store(), asked.texts);
    let without_texts = LogQuery {
        texts: None,
        ..asked
    };
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for entry in store.log_entries(without_texts).await? {
        let one = LogQuery {
            chain,
            from: entry.index,
            to: Some(entry.index + 1),
            limit: 1,
            texts,
            ..LogQuery::default()
        };
        let entry = match texts {
            Some(_) => store.log_entries(one).await?.pop().unwrap_or(entry),
            None => entry,
        };
        bytes += entry.text.as_ref().map_or(0, String::len);
        entries.push(entry);
        if bytes > MAX_LISTING_BYTES {
            break;
        }
    }
    let size = store.log_head(chain).await?.size;
    let entries = entries.into_iter().map(Into::into).collect();
    let chain = chain.0;
    Ok(Json(LogEntries {
        chain,
        size,
        entries,
    }))
}

fn asked(query: &Query, now: Timestamp) -> Result<LogQuery, HttpError> {
    let time = |parameter: &Parameter| {
        let text = query.text(parameter)?;
        let time = text.map(|t| Timestamp::parse(t).ok_or(()));
        time.transpose().map_err(|()| {
            HttpError::format(
                format!("The parameter `{}` is no time.", parameter.name),
                "write it like 2026-11-16T12:00:00Z.",
            )
        })
    };
    let mut kinds = Vec::new();
    for word in query.text(&KIND)?.into_iter().flat_map(|k| k.split(',')) {
        let kind = EventKind::parse(word).ok_or_else(|| {
            let all = EventKind::ALL.map(EventKind::as_str).join(", ");
            HttpError::format(
                "The parameter `kind` is none of the kinds.",
                format!("give some of these: {all}."),
            )
        })?;
        kinds.push(kind);
    }
    Ok(LogQuery {
        chain: ChainId::FIRST,
        from: query.number(&FROM)?.unwrap_or(0),
        to: query.number(&TO)?,
        kinds,
        since: time(&SINCE)?,
        until: time(&UNTIL)?,
        id: query.text(&MESSAGE)?.map(str::to_owned),
        thread: query.text(&THREAD)?.map(str::to_owned),
        limit: query.limit()?,
        texts: query.flag(&TEXTS)?.unwrap_or(false).then_some(now),
        newest: query.flag(&NEWEST)?.unwrap_or(false),
    })
}

/// The signed receipt of a message, for callers that may read the message.
pub(super) async fn receipt(
    call: Call,
    _: Accepts,
    Segment(id): Segment,
) -> Result<Response, HttpError> {
    let (record, _) = message::find(&call, id).await?;
    let entry = record
        .entry
        .ok_or_else(|| HttpError::missing("such receipt"))?;
    let relay = &call.server.relay;
    let chain = relay.find_chain(entry.chain).await?;
    let key = chain.map_or(Err(NoteError::Key), |chain| relay.key_of(&chain));
    key.map_err(|_| unsigned())?;
    let receipt = relay.receipt(entry).await?;
    let receipt = receipt.ok_or_else(|| HttpError::later("The log is being signed"))?;
    Ok(response::text(receipt.to_string()))
}
