//! The endpoints that show one message, its delivery status, and the messages that a search finds.

use super::media::Media;
use super::query::Query;
use super::response::{self, HttpError, Json, Response};
use super::router::{Accepts, Call, Segment};
use super::view::{delivery_of, held_message, leaving_message};
use super::{MAX_LISTING_BYTES, MAX_SCANNED};
use crate::core::Relay;
use crate::core::access::{self, Access, Handovers};
use axum::response::IntoResponse as _;
use crosstalk_api::message::{DeliveryStatus, MessageStatus, Messages, WORDS};
use crosstalk_protocol::relay::Delivery;
use crosstalk_protocol::relay::port::{FilledSearch, SearchQuery};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::store::{Page, Record, Search, StoreError};

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
    let (server, access) = (&call.server, call.access());
    let (store, now) = (server.relay.store(), server.relay.now());
    let missing = || HttpError::missing("such message");
    let Some(record) = store.record(&id).await? else {
        let held = store.held_message(&id).await?;
        let held = held.filter(|held| held.text(now).is_some());
        let held = held.ok_or_else(missing)?;
        return match server.can_read_held(&access, &held).await {
            true => Ok((held.record, true)),
            false => Err(missing()),
        };
    };
    match !record.is_expired(now) && access.can_find(store, &record).await? {
        true => Ok((record, false)),
        false => Err(missing()),
    }
}

pub(super) async fn status(
    call: Call,
    _: Accepts,
    Segment(id): Segment,
) -> Result<Json<MessageStatus>, HttpError> {
    let (server, access) = (&call.server, call.access());
    server.wait_for_index().await;
    let store = server.relay.store();
    let missing = || HttpError::missing("such message");
    let (record, deliveries) = match store.record(&id).await? {
        Some(record) => {
            if !access.can_read(store, &record).await? {
                return Err(missing());
            }
            let mut deliveries = store.deliveries_of(&id).await?;
            if !access.reads_for(&record.sender) {
                // Recipients see how far it is with them.
                deliveries.retain(|d| access.reads_for(&d.to));
            }
            (record, deliveries)
        }
        None => {
            let held = store.held_message(&id).await?;
            let held = held.filter(|held| !held.is_approved());
            let held = held.ok_or_else(missing)?;
            if !server.can_read_held(&access, &held).await {
                return Err(missing());
            }
            let deliveries = held.deliveries();
            (held.record, deliveries)
        }
    };
    let mut never_read = Vec::new();
    for delivery in deliveries.iter().take(LOOKED_AT_INBOXES) {
        if server.relay.is_never_read(&record, delivery).await? {
            never_read.push(delivery.to.clone());
        }
    }
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
    let relay = &call.server.relay;
    let (found, indexed_through) = find_words(relay, &access, search, limit).await?;
    let messages = found.iter().filter_map(|r| leaving_message(relay, r));
    Ok(Json(Messages {
        messages: messages.collect(),
        indexed_through,
    }))
}

/// The messages that a search finds and a caller sees, at most so many, and up to where the search index was filled.
async fn find_words(
    relay: &Relay,
    access: &Access,
    search: Search,
    limit: usize,
) -> Result<(Vec<Record>, u64), StoreError> {
    let (store, now, none) = (relay.store(), relay.now(), Handovers::new());
    let (mut found, mut bytes, mut skip): (Vec<Record>, usize, usize) = (Vec::new(), 0, 0);
    let mut indexed = u64::MAX;
    loop {
        let query = SearchQuery {
            search: search.clone(),
            page: Page {
                limit: access::PORTION,
                skip,
            },
            is_complete: false,
        };
        let FilledSearch {
            found: mut listing,
            through,
        } = store.search(query).await?;
        indexed = indexed.min(through);
        skip += listing.items.len();
        let more = listing.more && !listing.items.is_empty();
        listing.items.retain(|r| !r.is_expired(now));
        for record in access.filter_readable(store, listing.items, &none).await? {
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
}
