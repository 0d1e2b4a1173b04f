//! Polls: the endpoints that list polls, show one, stream its tally and close it.
//!
//! The parties of a poll may read its tally: the sender, the voters and the operator. Only the sender and the operator read what voters
//! wrote besides their choice.

use super::Server;
use super::body;
use super::credential::Caller;
use super::media::Media;
use super::query::Query;
use super::response::{self, HttpError, Json, Response, json_text};
use super::router::{Accepts, Call, Segment};
use crate::core::PollStatus;
use crate::core::access::{self, Access};
use crate::core::poll::initiator;
use axum::response::IntoResponse as _;
use bytes::Bytes;
use crosstalk_api::poll::{PollList, PollView};
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::store::{Page, Record};
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::Duration;

/// How often a stream sends a comment, so that proxies keep the connection open.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// How many polls a listing looks at for a caller that may not read all of them.
const LOOKED_AT: usize = 2_000;

pub(super) async fn polls(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<PollList>, HttpError> {
    let (limit, access) = (query.limit()?, call.access());
    call.server.wait_for_index().await;
    let relay = call.server.relay.clone();
    let (mut seen, mut skip) = (Vec::new(), 0);
    while seen.len() < limit && skip < LOOKED_AT {
        let page = Page {
            limit: access::PORTION,
            skip,
        };
        let (records, more) = relay.polls(page).await?;
        skip += access::PORTION;
        for record in records {
            if seen.len() < limit && sees(&call.server, &access, &record).await? {
                seen.push(record);
            }
        }
        if !more {
            break;
        }
    }
    let mut polls = Vec::with_capacity(seen.len());
    for record in &seen {
        polls.extend(relay.poll_summary(record).await?);
    }
    Ok(Json(PollList { polls }))
}

/// Whether a caller may read a poll.
async fn sees(server: &Server, access: &Access, record: &Record) -> Result<bool, HttpError> {
    let relay = &server.relay;
    Ok(!record.is_expired(relay.now()) && access.can_read(relay.store(), record).await?)
}

/// The poll with an id, if the caller may read it.
pub(super) async fn find(
    server: &Server,
    access: &Access,
    id: &str,
) -> Result<PollStatus, HttpError> {
    let found = server.relay.poll(id).await?;
    let standing = found.ok_or_else(missing)?;
    match sees(server, access, &standing.record).await? {
        true => Ok(standing),
        false => Err(missing()),
    }
}

fn missing() -> HttpError {
    HttpError::missing("such poll")
}

/// The tally of a poll, as a caller may read it.
fn view(standing: &PollStatus, access: &Access) -> PollView {
    let mut collation = standing.shown();
    if !access.is_admin() && !access.reads_for(initiator(standing)) {
        for ballot in &mut collation.counted {
            (ballot.answer, ballot.confidence) = (String::new(), None);
        }
        for other in &mut collation.not_counted {
            other.answer = String::new();
        }
        if standing.collation.call().options.is_empty() {
            // All that was said is what was chosen.
            collation.agreement = Vec::new();
            collation.counted.iter_mut().for_each(|b| b.choice = None);
        }
    }
    let time = |t: Option<Timestamp>| t.map(|t| t.to_string());
    PollView {
        collation: match serde_json::to_value(&collation) {
            Ok(Value::Object(fields)) => fields,
            _ => Map::new(),
        },
        state: standing.state().to_owned(),
        thread: standing.record.thread.clone(),
        ends_at: time(standing.ends_at),
        closed_at: time(standing.closed_at),
        past: standing.is_past,
    }
}

pub(super) async fn poll(
    call: Call,
    Accepts(media): Accepts,
    Segment(id): Segment,
) -> Result<Response, HttpError> {
    let access = call.access();
    let standing = find(&call.server, &access, &id).await?;
    if media == Media::Json {
        return Ok(Json(view(&standing, &access)).into_response());
    }
    let watcher = PollWatcher {
        server: Arc::clone(&call.server),
        caller: call.caller.clone(),
        access,
        id,
    };
    let (send, body) = body::stream(&call.connection.phase, None);
    tokio::spawn(async move {
        // If the client is gone, nothing is left to do.
        let _ = watcher.tell(send).await;
    });
    Ok(response::with_media(Media::Events, body))
}

/// A caller that watches a poll.
struct PollWatcher {
    server: Arc<Server>,
    caller: Caller,
    access: Access,
    id: String,
}

impl PollWatcher {
    /// Sends the tally whenever it changes, until the poll is closed. `None` if the client is gone.
    async fn tell(self, send: tokio::sync::mpsc::Sender<Bytes>) -> Option<()> {
        let relay = &self.server.relay;
        let standing = find(&self.server, &self.access, &self.id).await.ok()?;
        let mut changes = relay.watch_poll(&standing);
        let say = |text: String| async { send.send(text.into()).await.ok() };
        say("retry: 2000\n: crosstalk\n\n".into()).await?;
        let (mut last, mut number) = (String::new(), 0_u64);
        while !self.server.is_shutting_down() && !relay.is_stopping() {
            changes.mark_unchanged();
            // The credential may have been revoked meanwhile.
            self.server.check_credential(&self.caller).await.ok()?;
            let standing = find(&self.server, &self.access, &self.id).await.ok()?;
            let data = json_text(&view(&standing, &self.access));
            if data != last {
                number += 1;
                say(format!("event: tally\nid: {number}\ndata: {data}\n\n")).await?;
                last = data;
            }
            if standing.closed_at.is_some() {
                return Some(());
            }
            tokio::select! {
                is_more = changes.changed() => is_more.then_some(())?,
                () = self.server.wait_for_shutdown() => return Some(()),
                () = send.closed() => return None,
                () = tokio::time::sleep(HEARTBEAT) => say(": still here\n\n".into()).await?,
            }
        }
        Some(())
    }
}

pub(super) async fn close(
    call: Call,
    _: Accepts,
    Segment(id): Segment,
) -> Result<Json<PollView>, HttpError> {
    let access = call.access();
    let standing = find(&call.server, &access, &id).await?;
    if !access.is_admin() && !access.reads_for(initiator(&standing)) {
        return Err(HttpError::forbidden(
            "Only the asker or the relay operator closes a poll.",
            "use the credential of the asker, or wait for the deadline.",
        ));
    }
    let relay = &call.server.relay;
    let standing = match standing.closed_at {
        Some(_) => standing,
        None => relay
            .close_poll(&id, soon(relay.now()))
            .await?
            .ok_or_else(missing)?,
    };
    Ok(Json(view(&standing, &access)))
}

/// The next moment: what came in this one counts.
fn soon(now: Timestamp) -> Timestamp {
    Timestamp::from_millis(now.as_millis().saturating_add(1))
}
