//! `GET /crosstalk/inbox`, also as a stream of server-sent events, and `POST /crosstalk/ack`.

use super::body;
use super::credential::Caller;
use super::history::Trails;
use super::media::Media;
use super::query::{self, ID, Query, TEXT};
use super::response::{self, HttpError, Json, Response, json_text};
use super::router::{Accepts, Call};
use super::slow_client::Phase;
use super::view::{inbox_message, leaving_message, text_bytes};
use super::{MAX_LISTING_BYTES, Server};
use crate::core::Relay;
use crate::core::access::{self, Access};
use axum::extract::Request;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use crosstalk_api::inbox::{AFTER, Ack, Acked, FOR, InboxPage, MAX_ACK_IDS, WAIT};
use crosstalk_api::message::MessageView;
use crosstalk_envelope::ErrorCode;
use crosstalk_protocol::relay::port::{
    Cursor, InboxEntry, MailboxAction, MailboxChange, RecordQuery, SettledNotice,
};
use crosstalk_protocol::relay::{
    Delivery, DeliveryState, Handler, Role, public_reason, report, undelivered_help,
};
use crosstalk_protocol::store::{Record, StoreError, is_same_party};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many messages are looked for first, before it is known how large they are.
const FIRST: usize = 16;

pub(super) async fn inbox(
    call: Call,
    Accepts(media): Accepts,
    query: Query,
    request: Request,
) -> Result<Response, HttpError> {
    let address = query.required(&FOR)?;
    let mut after = query.text(&AFTER)?.map(Cursor::new);
    let limit = query.limit()?;
    let wait = query.number(&WAIT)?.unwrap_or(0);
    check_reader(&call, address)?;
    if media == Media::Events {
        let last = request.headers().get("last-event-id");
        let last = last.map(|v| v.to_str().map_err(|_| unknown_cursor()));
        if let Some(last) = last.transpose()?.filter(|l| !l.is_empty()) {
            after = Some(Cursor::new(last));
        }
    }
    check_cursor(&call.server, after.as_ref()).await?;
    call.server.relay.note_reader(&call.caller.peer, address);
    let mut reader = InboxReader {
        server: Arc::clone(&call.server),
        caller: call.caller.clone(),
        access: call.access(),
        trails: Trails::default(),
        address: address.to_owned(),
        after,
    };
    if media == Media::Events {
        return Ok(stream_events(reader, &call.connection.phase));
    }
    let entries = reader.next(limit, Duration::from_secs(wait)).await?;
    if media == Media::Json {
        let messages = reader.views(&entries).await?;
        let cursor = reader.after.unwrap_or_default().to_string();
        return Ok(Json(InboxPage { messages, cursor }).into_response());
    }
    let place = reader.after.clone().unwrap_or_default();
    let relay = &call.server.relay;
    let leaving = entries
        .iter()
        .filter_map(|e| Some((e, relay.leaving(&e.record)?)));
    let (given, texts): (Vec<&InboxEntry>, Vec<String>) = leaving.unzip();
    reader.mark_handed_out(given);
    let mut answer = response::text(file(texts.into_iter()));
    if let Ok(place) = HeaderValue::from_str(place.as_str()) {
        let name = HeaderName::from_static("crosstalk-cursor");
        answer.headers_mut().insert(name, place);
    }
    Ok(answer)
}

/// A caller that reads an inbox, and its cursor.
struct InboxReader {
    pub(super) server: Arc<Server>,
    pub(super) caller: Caller,
    access: Access,
    trails: Trails,
    address: String,
    pub(super) after: Option<Cursor>,
}

impl InboxReader {
    /// The next messages; if there are none, those that come within a time. Expired messages are skipped.
    pub(super) async fn next(
        &mut self,
        most: usize,
        wait: Duration,
    ) -> Result<Vec<InboxEntry>, HttpError> {
        let until = (!wait.is_zero()).then(|| Instant::now() + wait);
        loop {
            let mut entries = self.some(most, until).await?;
            let Some(last) = entries.last() else {
                return Ok(entries);
            };
            self.after = Some(last.cursor.clone());
            let now = self.server.relay.now();
            entries.retain(|e| !e.record.is_expired(now));
            if !entries.is_empty() {
                return Ok(entries);
            }
        }
    }

    async fn some(
        &self,
        most: usize,
        until: Option<Instant>,
    ) -> Result<Vec<InboxEntry>, HttpError> {
        let relay = &self.server.relay;
        let (address, first) = (self.address.as_str(), most.min(FIRST));
        let mut entries = match until {
            None => relay.inbox(address, self.after.as_ref(), first).await?,
            Some(until) => tokio::select! {
                entries = relay.next(address, self.after.as_ref(), first, until) => entries?,
                () = self.server.wait_for_shutdown() => Vec::new(),
            },
        };
        let mut bytes: usize = entries.iter().map(|e| e.record.text.len()).sum();
        while entries.len() >= FIRST && entries.len() < most && bytes < MAX_LISTING_BYTES {
            let usual = (bytes / entries.len()).max(1);
            let room = ((MAX_LISTING_BYTES - bytes) / usual).max(1);
            let after = entries.last().map(|e| e.cursor.clone());
            let some = room.min(most - entries.len());
            let more = relay.inbox(address, after.as_ref(), some).await?;
            if more.is_empty() {
                break;
            }
            bytes += more.iter().map(|e| e.record.text.len()).sum::<usize>();
            entries.extend(more);
        }
        // The credential may have been revoked meanwhile.
        self.server.check_credential(&self.caller).await?;
        Ok(entries)
    }

    /// Messages count as handed out. Looking is not delivering: what a handler brings there is not handed out here, and
    /// what a person carries only to the one it is for.
    pub(super) fn mark_handed_out<'e>(&self, entries: impl IntoIterator<Item = &'e InboxEntry>) {
        let peer = &self.caller.peer;
        let rules = self.access.rules();
        let is_here = |e: &&InboxEntry| {
            let is_inbox = e.by == Handler::Inbox || rules.routes.is_bound(&e.to);
            let counts = match e.by {
                Handler::Inbox | Handler::CopyPaste if is_inbox => peer.speaks_for(&e.to),
                Handler::CopyPaste => peer.role == Role::Agent,
                _ => false,
            };
            e.state == DeliveryState::Queued && counts
        };
        let mut entries = entries.into_iter().filter(is_here).peekable();
        if let Some(first) = entries.peek() {
            let to = first.to.clone();
            let ids = entries.map(|e| e.record.id.clone()).collect();
            self.server.relay.handed_out(&to, ids);
        }
    }

    /// Messages as JSON, ESCALATEs and HANDOFFs with their history; as many as one response has room for. They
    /// count as handed out.
    async fn views(&mut self, entries: &[InboxEntry]) -> Result<Vec<MessageView>, HttpError> {
        let (mut views, mut given, mut bytes) = (Vec::with_capacity(entries.len()), Vec::new(), 0);
        for entry in entries {
            let Some(view) = self.view(entry).await? else {
                continue;
            };
            bytes += text_bytes(&view);
            views.push(view);
            given.push(entry);
            if bytes > MAX_LISTING_BYTES || self.trails.is_full() {
                self.after = Some(entry.cursor.clone());
                break;
            }
        }
        self.mark_handed_out(given);
        Ok(views)
    }

    /// A message as it is now: `None` if it was revoked since it was listed, or has expired.
    pub(super) async fn again(
        &mut self,
        entry: &InboxEntry,
    ) -> Result<Option<MessageView>, HttpError> {
        match self.record_of(entry).await? {
            Some(record) => {
                let entry = InboxEntry {
                    record,
                    ..entry.clone()
                };
                self.view(&entry).await
            }
            None => Ok(None),
        }
    }

    /// Whether a message may still be handed out.
    pub(super) async fn stands(&self, entry: &InboxEntry) -> Result<bool, HttpError> {
        let now = self.server.relay.now();
        let record = self.record_of(entry).await?;
        Ok(record.is_some_and(|r| !r.is_expired(now)))
    }

    async fn record_of(&self, entry: &InboxEntry) -> Result<Option<Record>, HttpError> {
        let query = RecordQuery::Seqs(vec![entry.record.seq]);
        Ok(self.server.relay.store().records(query).await?.pop())
    }

    async fn view(&mut self, entry: &InboxEntry) -> Result<Option<MessageView>, HttpError> {
        let relay = self.server.relay.clone();
        let mut record = entry.record.clone();
        let mut history = None;
        if access::is_handover(&record) {
            self.server.wait_for_index().await;
            // Once it is indexed, its thread is known.
            let Some(indexed) = self.record_of(entry).await? else {
                return Ok(None);
            };
            let earlier = self
                .trails
                .before(&indexed, relay.store(), &self.access)
                .await?;
            record = indexed;
            let texts = earlier.records.iter().filter_map(|r| relay.leaving(r));
            history = Some((texts.collect(), earlier.withheld));
        }
        let message = leaving_message(&relay, &record);
        Ok(message.map(|message| inbox_message(message, entry, history)))
    }
}

/// How often a stream sends a comment, so that proxies keep the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many messages are fetched at once.
const STREAM_LIMIT: usize = 16;
/// How much of a message is written at once.
const CHUNK_BYTES: usize = 64 << 10;

/// What an address gets, from now on.
fn stream_events(mut reader: InboxReader, phase: &Phase) -> Response {
    let (send, body) = body::stream(phase, None);
    tokio::spawn(async move {
        // The stream is open, and a client that loses it waits a little before it connects again.
        if send
            .send(Bytes::from_static(b"retry: 2000\n: crosstalk\n\n"))
            .await
            .is_err()
        {
            return;
        }
        while !reader.server.is_shutting_down() && !reader.server.relay.is_stopping() {
            // Without a cursor, the same messages would come again and again.
            reader.after.get_or_insert_default();
            let read = tokio::select! {
                read = reader.next(STREAM_LIMIT, HEARTBEAT) => read,
                () = send.closed() => return,
            };
            let Ok(entries) = read else {
                return;
            };
            if entries.is_empty()
                && send
                    .send(Bytes::from_static(b": still here\n\n"))
                    .await
                    .is_err()
            {
                return;
            }
            for entry in &entries {
                if write_event(&mut reader, entry, &send).await.is_none() {
                    return;
                }
            }
        }
    });
    response::with_media(Media::Events, body)
}

/// Writes a message in parts, each when there is room for it on the connection: a slow reader holds up only itself, until
/// its connection is closed. A message that is revoked while it waits is not written; in the middle of it, the stream ends.
async fn write_event(
    reader: &mut InboxReader,
    entry: &InboxEntry,
    send: &mpsc::Sender<Bytes>,
) -> Option<()> {
    let mut room = send.reserve().await.ok()?;
    let Some(view) = reader.again(entry).await.ok()? else {
        return Some(());
    };
    let (place, data) = (&entry.cursor, json_text(&view));
    let event = format!("event: message\nid: {place}\ndata: {data}\n\n");
    let mut event = Bytes::from(event);
    loop {
        let part = event.split_to(event.len().min(CHUNK_BYTES));
        room.send(part);
        if event.is_empty() {
            break;
        }
        room = send.reserve().await.ok()?;
        if !reader.stands(entry).await.ok()? {
            return None;
        }
    }
    reader.mark_handed_out(std::slice::from_ref(entry));
    Some(())
}

/// Checks that the caller may read the inbox of an address.
pub(super) fn check_reader(call: &Call, address: &str) -> Result<(), HttpError> {
    match call.access().reads_for(address) {
        true => Ok(()),
        false => Err(HttpError::forbidden(
            format!(
                "The credential `{}` does not read for {}.",
                call.caller.peer.name,
                crosstalk_envelope::unicode::escape(address)
            ),
            "use one that is bound to this address.",
        )),
    }
}

/// Envelopes, one after the other.
pub(super) fn file(envelopes: impl Iterator<Item = String>) -> String {
    let mut out = String::new();
    for envelope in envelopes {
        if !out.is_empty() {
            out.push('\n');
        }
        // A byte order mark means something only at the beginning of a file.
        out.push_str(envelope.trim_start_matches('\u{feff}'));
        if !out.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

/// Rejects a cursor that the store never gave out, or has lost.
async fn check_cursor(server: &Server, cursor: Option<&Cursor>) -> Result<(), HttpError> {
    match cursor {
        Some(cursor) if !server.relay.store().has_cursor(cursor).await? => Err(unknown_cursor()),
        _ => Ok(()),
    }
}

pub(super) fn unknown_cursor() -> HttpError {
    HttpError::format(
        "The cursor is none that this relay gave out.",
        "leave it out, or use one of an answer.",
    )
}

pub(super) async fn ack(call: Call, Json(ack): Json<Ack>) -> Result<Json<Acked>, HttpError> {
    query::check_text("for", &ack.r#for, TEXT)?;
    if ack.ids.is_empty() || ack.ids.len() > MAX_ACK_IDS {
        return Err(HttpError::format(
            "`ids` is not a list of 1 to 500 ids.",
            "send at least one, and the others in another request.",
        ));
    }
    for id in &ack.ids {
        query::check_text("An id", id, ID)?;
    }
    let state = match ack.state.as_deref() {
        None | Some("acknowledged") => DeliveryState::Acknowledged,
        Some("read") => DeliveryState::Read,
        Some("retrying") => return failure(&call, ack, false).await,
        Some("failed") => return failure(&call, ack, true).await,
        Some(_) => {
            return Err(HttpError::format(
                "`state` is none of `read`, `acknowledged`, `retrying` and `failed`.",
                "give one of them.",
            ));
        }
    };
    check_reader(&call, &ack.r#for)?;
    let relay = &call.server.relay;
    let address = relay.rules().routes.named(&ack.r#for).to_owned();
    let changed = settle(relay, &address, ack.ids.clone(), state).await?;
    Ok(acked(changed, ack.ids))
}

/// Records that messages have reached the recipient behind an address. Returns those that changed.
pub(super) async fn settle(
    relay: &Relay,
    address: &str,
    ids: Vec<String>,
    state: DeliveryState,
) -> Result<Vec<String>, StoreError> {
    // Senders were notified only about messages that failed before.
    let in_hand = in_hand(relay, address, &ids, 1).await?;
    let change = MailboxChange {
        settled: settled(relay, &in_hand),
        ..MailboxChange::reach(address, ids, state, relay.now())
    };
    relay.store().change_mailbox(change).await
}

/// Which messages changed, and which are not on their way to the address.
fn acked(changed: Vec<String>, mut ids: Vec<String>) -> Json<Acked> {
    ids.retain(|id| !changed.contains(id));
    let unknown = ids;
    Json(Acked { changed, unknown })
}

/// Notes that the program of a recipient failed on messages, and tells those who wait for it.
async fn failure(call: &Call, ack: Ack, is_final: bool) -> Result<Json<Acked>, HttpError> {
    check_reader(call, &ack.r#for)?;
    let relay = &call.server.relay;
    let address = relay.rules().routes.named(&ack.r#for).to_owned();
    let failed = in_hand(relay, &address, &ack.ids, 0).await?;
    let mut notices = Vec::new();
    for InHand { delivery, asked } in &failed {
        let why = public_reason(Handler::Exec, ErrorCode::Route);
        let help = undelivered_help(Handler::Exec, ErrorCode::Route);
        let why = (ErrorCode::Route, why, help);
        let (to, since) = (delivery.to.as_str(), delivery.queued_at);
        notices.extend(asked.iter().filter_map(|asked| match is_final {
            true => report::undeliverable(asked, to, why, since),
            false => report::retried(asked, to, since),
        }));
    }
    let change = MailboxChange {
        address,
        ids: ack.ids.clone(),
        action: MailboxAction::NoteFailure { is_final },
        at: relay.now(),
        notices,
        settled: match is_final {
            true => settled(relay, &failed),
            false => Vec::new(),
        },
    };
    let changed = relay.store().change_mailbox(change).await?;
    relay.send_notices().await?;
    Ok(acked(changed, ack.ids))
}

/// A delivery that its recipient has fetched and not finished, and those messages whose senders wait for it: the message, and
/// the question that it follows up.
struct InHand {
    delivery: Delivery,
    asked: Vec<Record>,
}

/// The deliveries of messages that the recipient has in hand, if it failed on them so often at least.
async fn in_hand(
    relay: &Relay,
    address: &str,
    ids: &[String],
    failures: u32,
) -> Result<Vec<InHand>, StoreError> {
    let is_it = |d: &Delivery| {
        let failed = d.is_in_hand() && d.attempts >= failures;
        failed && is_same_party(&d.to, address)
    };
    let mut all = Vec::new();
    let deliveries = relay.store().deliveries(ids.to_vec()).await?;
    for (id, deliveries) in ids.iter().zip(deliveries) {
        let Some(delivery) = deliveries.into_iter().find(is_it) else {
            continue;
        };
        let Some(record) = relay.store().record(id).await? else {
            continue;
        };
        let follow_up = relay.find_follow_up(&delivery.to, &record).await?;
        // The sender of the question waits for it as well as the sender of the reply.
        let asked = std::iter::once(record).chain(follow_up.map(|f| f.question));
        all.push(InHand {
            asked: asked.collect(),
            delivery,
        });
    }
    Ok(all)
}

/// The notices about retries of a program that are settled now.
fn settled(relay: &Relay, in_hand: &[InHand]) -> Vec<SettledNotice> {
    let of_each = in_hand.iter().flat_map(|InHand { delivery, asked }| {
        let since = (delivery.to.as_str(), delivery.queued_at);
        asked
            .iter()
            .map(move |asked| relay.retry_notice(asked, since))
    });
    of_each.collect()
}
