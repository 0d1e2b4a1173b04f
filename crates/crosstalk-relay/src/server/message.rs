//! The endpoints that show one message, its delivery status, and the messages that a search finds.

use super::media::Media;
use super::query::Query;
use super::response::{self, HttpError, Json, Response};
use super::router::{Accepts, Call, Segment};
use super::view::{delivery_of, held_message, leaving_message};
use super::{MAX_LISTING_BYTES, MAX_SCANNED};
use crate::core::access::{self, Handovers};
use axum::response::IntoResponse as _;
use crosstalk_api::message::{DeliveryStatus, MessageStatus, Messages, WORDS};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::relay::{Delivery, FilledSearch, RelayStore};
use crosstalk_protocol::store::{Page, Record, Search};
use std::sync::Arc;

/// For how many recipients of a message it is looked up whether they ever read their inbox.
const LOOKED_AT_INBOXES: usize = 16;

pub(super) async fn message(
    call: Call,
    Accepts(media): Accepts,
    Segment(id): Segment,
) -> Result<Response, HttpError> {
    let (record, is_held) = find(&call, id).await?;
    let view = match is_held {
        true => Some(held_message(&record)),
        false => leaving_message(&call.server.relay, &record),
    };
    let view = view.ok_or_else(|| HttpError::missing("such message"))?;
    Ok(match media {
        Media::Json => Json(view).into_response(),
        _ => response::text(view.envelope),
    })
}

/// The message that the path names, if the caller may read it, and whether it is held for a person.
pub(super) async fn find(call: &Call, id: String) -> Result<(Record, bool), HttpError> {
    let (server, access, now) = (
        Arc::clone(&call.server),
        call.access(),
        call.server.relay.now(),
    );
    let ask = move |store: &dyn RelayStore| {
        let Some(record) = store.record(&id)? else {
            let held = store.held(&id)?.filter(|held| held.text(now).is_some());
            let held = held.filter(|held| server.can_read_held(&access, held));
            return Ok(held.map(|held| (held.record, true)));
        };
        let seen = !record.is_expired(now) && access.can_find(store, &record)?;
        Ok(seen.then_some((record, false)))
    };
    let found = call.server.relay.read(ask).await?;
    found.ok_or_else(|| HttpError::missing("such message"))
}

pub(super) async fn status(
    call: Call,
    _: Accepts,
    Segment(id): Segment,
) -> Result<Json<MessageStatus>, HttpError> {
    let (server, access) = (Arc::clone(&call.server), call.access());
    call.server.wait_for_writes().await;
    let ask = move |store: &dyn RelayStore| {
        let Some(record) = store.record(&id)? else {
            let held = store.held(&id)?.filter(|held| !held.is_approved());
            let held = held.filter(|held| server.can_read_held(&access, held));
            return Ok(held.map(|held| {
                let deliveries = held.deliveries();
                (held.record, deliveries, Vec::new())
            }));
        };
        if !access.can_read(store, &record)? {
            return Ok(None);
        }
        let mut deliveries = store.deliveries(&id)?;
        if !access.reads_for(&record.sender) {
            // Recipients see how far it is with them.
            deliveries.retain(|d| access.reads_for(&d.to));
        }
        let mut never_read = Vec::new();
        for delivery in deliveries.iter().take(LOOKED_AT_INBOXES) {
            if server.relay.is_never_read(store, &record, delivery)? {
                never_read.push(delivery.to.clone());
            }
        }
        Ok(Some((record, deliveries, never_read)))
    };
    let found = call.server.relay.read(ask).await?;
    let (record, deliveries, never_read) =
        found.ok_or_else(|| HttpError::missing("such message"))?;
    let peer = &call.caller.peer;
    let view = |mut delivery: Delivery| {
        delivery.next_at = call.server.relay.next_attempt(&record.id, &delivery);
        let running_since = call.server.relay.running_since(&record.id, &delivery.to);
        let is_never_read = never_read.contains(&delivery.to);
        let similar = || call.server.relay.similar_address(peer, &delivery.to);
        let did_you_mean = is_never_read.then(similar).flatten();
        let mut view = delivery_of(delivery, peer.is_admin());
        (view.never_read, view.did_you_mean) = (is_never_read, did_you_mean);
        view.running_since = running_since.map(|at| at.to_string());
        view
    };
    Ok(Json(status_of(&record, deliveries.into_iter().map(view))))
}

/// How far a message is.
pub(super) fn status_of(
    record: &Record,
    deliveries: impl Iterator<Item = DeliveryStatus>,
) -> MessageStatus {
    MessageStatus {
        id: record.id.clone(),
        thread: record.thread.clone(),
        sender: speaker(&record.sender, &record.text, 0).into_owned(),
        deliveries: deliveries.collect(),
    }
}

pub(super) async fn search(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<Messages>, HttpError> {
    let words = query.required(&WORDS)?;
    let search = Search::parse(words)
        .map_err(|e| HttpError::format(format!("`q`: {e}."), "search for words."))?;
    let (limit, access) = (query.limit()?, call.access());
    call.server.wait_for_index().await;
    call.server.wait_for_search().await;
    let (now, none) = (call.server.relay.now(), Handovers::new());
    let ask = move |store: &dyn RelayStore| {
        let (mut found, mut bytes, mut skip): (Vec<Record>, usize, usize) = (Vec::new(), 0, 0);
        let mut indexed = u64::MAX;
        loop {
            let page = Page {
                limit: access::PORTION,
                skip,
            };
            let FilledSearch {
                found: mut listing,
                through,
            } = store.search_filled(&search, page)?;
            indexed = indexed.min(through);
            skip += listing.items.len();
            let more = listing.more && !listing.items.is_empty();
            listing.items.retain(|r| !r.is_expired(now));
            for record in access.filter_readable(store, listing.items, &none)? {
                bytes += record.text.len();
                found.push(record);
                if found.len() == limit || bytes > MAX_LISTING_BYTES {
                    return Ok((found, indexed));
                }
            }
            if !more || skip >= MAX_SCANNED {
                return Ok((found, indexed));
            }
        }
    };
    let relay = &call.server.relay;
    let (found, indexed_through) = relay.read(ask).await?;
    let messages = found.iter().filter_map(|r| leaving_message(relay, r));
    Ok(Json(Messages {
        messages: messages.collect(),
        indexed_through,
    }))
}
