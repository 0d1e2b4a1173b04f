//! The endpoints that list threads and show one as a tree, as envelopes, or as Markdown.

use super::body;
use super::inbox::{file, unknown_cursor};
use super::media::Media;
use super::query::Query;
use super::response::{self, HttpError, Json, Response};
use super::router::{Accepts, Call, Segment};
use super::view::{leaving_message, thread_of};
use crate::core::Relay;
use crate::core::access::{Access, Handovers, PORTION};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use crosstalk_api::inbox::AFTER;
use crosstalk_api::thread::{OPEN, SKIP, ThreadList, ThreadNode, ThreadTree, ThreadView, WITH};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::archive;
use crosstalk_protocol::relay::port::RelayStore;
use crosstalk_protocol::store::{Page, Record, StoreError, Thread, ThreadFilter, ThreadPosition};
use std::collections::HashMap;

/// How many threads a listing looks at for a caller that may not read all of them.
const MAX_SCANNED_THREADS: usize = 10_000;
/// How much of a thread is in one answer: messages, and bytes of text.
const MAX_MESSAGES: usize = 2_000;
const MAX_BYTES: usize = 8 << 20;
/// How much of a longer one is read at once, at most one message more: a text that is revoked meanwhile is not sent.
const CHUNK_BYTES: usize = 64 << 10;
/// The depth limit of a tree. An answer to a message at the limit is its sibling.
const MAX_DEPTH: usize = 48;

pub(super) async fn threads(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<ThreadList>, HttpError> {
    let with = query.text(&WITH)?.map(str::to_owned);
    let (open, limit) = (query.flag(&OPEN)?, query.limit()?);
    let skip = query.number(&SKIP)?.unwrap_or(0);
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    let after = query.text(&AFTER)?.map(read_cursor).transpose()?;
    let access = call.access();
    call.server.wait_for_index().await;
    let wanted = WantedThreads {
        open,
        with,
        after,
        skip,
        limit,
    };
    let (threads, last) = list_threads(&call.server.relay, &access, wanted).await?;
    let cursor = last.map(|last| format!("{}.{}", last.at.as_millis(), last.seq));
    Ok(Json(ThreadList { threads, cursor }))
}

/// Which threads a caller asks for.
struct WantedThreads {
    open: Option<bool>,
    with: Option<String>,
    after: Option<ThreadPosition>,
    skip: usize,
    limit: usize,
}

/// The threads that a caller sees, and the position of the last if there are more.
async fn list_threads(
    relay: &Relay,
    access: &Access,
    wanted: WantedThreads,
) -> Result<(Vec<ThreadView>, Option<ThreadPosition>), StoreError> {
    let (store, now, open) = (relay.store(), relay.now(), wanted.open);
    let mut filter = ThreadFilter {
        open: open == Some(true),
        waiting: false,
        with: wanted.with,
        after: wanted.after,
    };
    let fits = |t: &Thread| {
        let is_wanted = open.is_none_or(|open| t.closed_at.is_none() == open);
        is_wanted && (access.is_admin() || t.parties.iter().any(|p| access.reads_for(p)))
    };
    let mut page = Page::first(PORTION);
    let (mut views, mut skipped, mut looked) = (Vec::new(), 0, 0);
    if access.is_admin() && open != Some(false) {
        // The store leaves them out.
        (page.skip, skipped) = (wanted.skip, wanted.skip);
    }
    while looked < MAX_SCANNED_THREADS {
        let listing = store.threads(filter.clone(), page).await?;
        page.skip = 0;
        looked += listing.items.len();
        let mut threads = listing.items.into_iter().peekable();
        while let Some(thread) = threads.next() {
            filter.after = Some(thread.position());
            if !fits(&thread) {
                continue;
            }
            if skipped < wanted.skip {
                skipped += 1;
                continue;
            }
            let thread = redact_thread(store, access, thread, now).await?;
            views.push(thread_of(thread));
            if views.len() == wanted.limit {
                let more = listing.more || threads.peek().is_some();
                return Ok((views, filter.after.filter(|_| more)));
            }
        }
        if !listing.more {
            return Ok((views, None));
        }
    }
    Ok((views, filter.after))
}

/// The position that a cursor stands for.
fn read_cursor(text: &str) -> Result<ThreadPosition, HttpError> {
    let number = |text: &str| {
        let is_plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| is_plain)
    };
    let parts = text.split_once('.');
    let position = parts.and_then(|(at, seq)| {
        Some(ThreadPosition {
            at: Timestamp::from_millis(number(at)?),
            seq: u64::try_from(number(seq)?).ok()?,
        })
    });
    position.ok_or_else(unknown_cursor)
}

/// A thread as a caller may read it: a party that joined later does not learn how it began.
async fn redact_thread(
    store: &dyn RelayStore,
    access: &Access,
    mut thread: Thread,
    now: Timestamp,
) -> Result<Thread, StoreError> {
    let first = store.messages(&thread.id, None, 1).await?.items;
    let (began, is_over) = match first.first() {
        Some(first) => (access.can_read(store, first).await?, first.is_expired(now)),
        None => (access.is_admin(), false),
    };
    if !began || is_over {
        (thread.context, thread.session) = (None, None);
    }
    if !began {
        thread.parties.retain(|p| access.reads_for(p));
    }
    Ok(thread)
}

pub(super) async fn thread(
    call: Call,
    Accepts(media): Accepts,
    Segment(id): Segment,
) -> Result<Response, HttpError> {
    let access = call.access();
    call.server.wait_for_index().await;
    let relay = call.server.relay.clone();
    let (store, now) = (relay.store(), relay.now());
    let missing = || HttpError::missing("such thread");
    let thread = store.thread(&id).await?.ok_or_else(missing)?;
    let shown = access.handovers_in(store, &id).await?;
    let reader = ThreadReader { access, id, shown };
    let part = reader.read(store, None, MAX_BYTES, now).await?;
    let mut thread = redact_thread(store, &reader.access, thread, now).await?;
    if part.records.is_empty() {
        return Err(missing());
    }
    match media {
        Media::Text => Ok(export(&call, part, reader)),
        Media::Markdown if part.more => Err(HttpError::new(
            ErrorCode::TooLarge,
            "The thread is too long for one document.",
            "ask for it as text/plain.",
        )),
        Media::Markdown => {
            thread.messages = u64::try_from(part.records.len()).unwrap_or(u64::MAX);
            if let (Some(first), Some(last)) = (part.records.first(), part.records.last()) {
                (thread.first_at, thread.last_at) = (first.at, last.at);
            }
            let text = archive::to_markdown(&thread, &part.records);
            Ok(response::with_media(Media::Markdown, text.into()))
        }
        _ => {
            let node = |record: &Record| {
                Some(ThreadNode {
                    message: leaving_message(&relay, record)?,
                    answers: Vec::new(),
                })
            };
            let seen = |record: Record| Some((node(&record)?, record));
            let (nodes, records): (Vec<_>, Vec<_>) =
                part.records.into_iter().filter_map(seen).unzip();
            Ok(Json(ThreadTree {
                thread: thread_of(thread),
                messages: tree(nodes, &records),
                more: part.more,
            })
            .into_response())
        }
    }
}

/// Reads a thread for a caller.
struct ThreadReader {
    access: Access,
    id: String,
    shown: Handovers,
}

/// A part of a thread, as far as it is seen.
struct ThreadPart {
    records: Vec<Record>,
    after: Option<u64>,
    more: bool,
}

impl ThreadReader {
    /// The part after a seq, of so much text, without expired messages.
    async fn read(
        &self,
        store: &dyn RelayStore,
        after: Option<u64>,
        most: usize,
        now: Timestamp,
    ) -> Result<ThreadPart, StoreError> {
        let mut part = ThreadPart {
            records: Vec::new(),
            after,
            more: true,
        };
        let mut bytes = 0;
        let portion = match most < MAX_BYTES {
            true => 1,
            false => PORTION,
        };
        while part.records.len() < MAX_MESSAGES && bytes < most {
            let page = store.messages(&self.id, part.after, portion);
            let mut listing = page.await?;
            part.more = listing.more && !listing.items.is_empty();
            part.after = listing.items.last().map(|r| r.seq).or(part.after);
            listing.items.retain(|r| !r.is_expired(now));
            let seen = self
                .access
                .filter_readable(store, listing.items, &self.shown)
                .await?;
            bytes += seen.iter().map(|r| r.text.len()).sum::<usize>();
            part.records.extend(seen);
            if !part.more {
                break;
            }
        }
        Ok(part)
    }
}

/// A thread as a file, however long it is.
fn export(call: &Call, first: ThreadPart, reader: ThreadReader) -> Response {
    let relay = call.server.relay.clone();
    let as_file = move |relay: &Relay, part: &ThreadPart| {
        file(part.records.iter().filter_map(|r| relay.leaving(r)))
    };
    if !first.more {
        return response::text(as_file(&relay, &first));
    }
    // It is read again in small parts, each when there is room for it on the line.
    drop(first);
    let (send, body) = body::stream(&call.connection.phase, None);
    tokio::spawn(async move {
        let mut after = None;
        while let Ok(room) = send.reserve().await {
            let part = reader.read(relay.store(), after, CHUNK_BYTES, relay.now());
            let Ok(part) = part.await else {
                return;
            };
            after = part.after;
            let mut text = as_file(&relay, &part);
            if part.more && !text.is_empty() {
                text.push('\n');
            }
            if !text.is_empty() {
                room.send(Bytes::from(text));
            }
            if !part.more {
                return;
            }
        }
    });
    response::with_media(Media::Text, body)
}

/// Messages under those that they answer, in the order in which they came.
fn tree(nodes: Vec<ThreadNode>, records: &[Record]) -> Vec<ThreadNode> {
    let places: HashMap<&str, usize> = records
        .iter()
        .enumerate()
        .map(|(n, r)| (r.id.as_str(), n))
        .collect();
    let mut depths = vec![0_usize; records.len()];
    let mut parents = vec![None; records.len()];
    for (place, record) in records.iter().enumerate() {
        let mut parent = record
            .parent
            .as_deref()
            .and_then(|p| places.get(p))
            .copied();
        // An answer comes after its parent; one that is too deep is shown as a sibling of its parent.
        parent = parent.filter(|p| *p < place);
        while parent.is_some_and(|p| depths.get(p).is_some_and(|d| *d + 1 >= MAX_DEPTH)) {
            parent = parent.and_then(|p| parents.get(p).copied().flatten());
        }
        if let (Some(depth), Some(slot)) = (depths.get_mut(place), parents.get_mut(place)) {
            *slot = parent;
            *depth = 0;
        }
        let depth = parent
            .and_then(|p| depths.get(p).copied())
            .map_or(0, |d| d + 1);
        if let Some(slot) = depths.get_mut(place) {
            *slot = depth;
        }
    }
    // From the last to the first: whatever answers a message is complete before the message is.
    let mut answers: Vec<Vec<ThreadNode>> = records.iter().map(|_| Vec::new()).collect();
    let mut roots = Vec::new();
    for (place, mut node) in nodes.into_iter().enumerate().rev() {
        let mut own = answers
            .get_mut(place)
            .map(std::mem::take)
            .unwrap_or_default();
        own.reverse();
        node.answers = own;
        match parents
            .get(place)
            .copied()
            .flatten()
            .and_then(|p| answers.get_mut(p))
        {
            Some(above) => above.push(node),
            None => roots.push(node),
        }
    }
    roots.reverse();
    roots
}
