//! The endpoints for couriers and for dead letters.

use super::MAX_LISTING_BYTES;
use super::message::status_of;
use super::query::{self, Query, TEXT};
use super::response::{HttpError, Json};
use super::router::{Accepts, Call, Segment};
use super::view::{delivery_of, inbox_message, leaving_message, letter_of};
use crosstalk_api::delivery::{CarriedReport, DeadLetters, Requeued};
use crosstalk_api::inbox::InboxPage;
use crosstalk_api::message::MessageStatus;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::{
    Attempt, Delivery, Errand, Handler, RelayStore, report, undelivered_help,
};
use crosstalk_protocol::store::is_same_party;
use std::sync::Arc;

/// Why a message could not be carried, as its sender is told in the name of its receiver: nothing that the courier wrote.
const NOT_CARRIED: &str = "the person who carries messages could not bring it there";

pub(super) async fn waiting(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<InboxPage>, HttpError> {
    let limit = query.limit()?;
    call.server.wait_for_index().await;
    let relay = &call.server.relay;
    let (rules, peer) = (relay.rules(), Arc::clone(&call.caller.peer));
    let find = move |store: &dyn RelayStore| {
        let lets_carry = |errand: &Errand| rules.offers_errand(&peer, errand);
        store.courier(&lets_carry, limit)
    };
    let waiting = relay.read(find).await?;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    for courier in &waiting {
        let Some(view) = leaving_message(relay, &courier.record) else {
            continue;
        };
        messages.push(inbox_message(view, courier, None));
        bytes += courier.record.text.len();
        if bytes > MAX_LISTING_BYTES {
            break;
        }
    }
    let last = waiting.iter().map(|c| c.record.seq).max().unwrap_or(0);
    Ok(Json(InboxPage {
        messages,
        cursor: last.to_string(),
    }))
}

pub(super) async fn carried(
    call: Call,
    Segment(id): Segment,
    Json(carried): Json<CarriedReport>,
) -> Result<Json<MessageStatus>, HttpError> {
    query::check_text("to", &carried.to, TEXT)?;
    let caller = Arc::clone(&call.caller.peer);
    let reason = match carried.reason.as_deref().unwrap_or("") {
        "" => NOT_CARRIED.to_owned(),
        reason => {
            let reason = query::check_text("reason", reason, TEXT)?;
            format!("the courier `{}` says: {}", caller.name, escape(reason))
        }
    };
    let attempt = match carried.state.as_str() {
        "carried" => Attempt::Delivered,
        "failed" => Attempt::Failed { reason },
        _ => {
            return Err(HttpError::format(
                "`state` is neither `carried` nor `failed`.",
                "give one of them.",
            ));
        }
    };
    let relay = &call.server.relay;
    let (at, rules) = (relay.now(), relay.rules());
    let has_failed = attempt != Attempt::Delivered;
    let (is_operator, wanted) = (caller.is_admin(), carried.to.clone());
    let change = move |store: &mut dyn RelayStore| {
        let to = rules.routes.named(&wanted);
        let Some(record) = store.record(&id)? else {
            return Ok(None);
        };
        let find = |store: &mut dyn RelayStore| {
            let mut deliveries = store.deliveries(&id)?.into_iter();
            Ok(deliveries.find(|d| is_same_party(&d.to, to)))
        };
        // The permission is checked before anything changes.
        let is_errand = |d: &Delivery| rules.is_errand_of(&caller, &record, d);
        let Some(before) = find(store)?.filter(is_errand) else {
            return Ok(None);
        };
        if has_failed {
            // Owed before the delivery changes: after a crash in between it is said again, under the same id.
            let help = undelivered_help(Handler::CopyPaste, ErrorCode::Route);
            let why = (ErrorCode::Route, NOT_CARRIED, help);
            let notice = report::undeliverable(&record, &wanted, why, before.queued_at);
            store.enqueue_notices(notice.as_slice())?;
        }
        if !store.attempted(&id, to, None, &attempt, at)? {
            return Ok(None);
        }
        Ok(find(store)?.map(|delivery| (record, delivery)))
    };
    let found = relay.write(change).await?;
    let (record, delivery) =
        found.ok_or_else(|| HttpError::missing("message that waits for you to carry it there"))?;
    relay.send_notices().await?;
    let deliveries = std::iter::once(delivery_of(delivery, is_operator));
    Ok(Json(status_of(&record, deliveries)))
}

pub(super) async fn dead(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<DeadLetters>, HttpError> {
    let limit = query.limit()?;
    let letters = call
        .server
        .relay
        .read(move |store| store.dead_letters(limit))
        .await?;
    let letters = letters.into_iter().map(letter_of).collect();
    Ok(Json(DeadLetters { letters }))
}

pub(super) async fn requeue(call: Call, Segment(id): Segment) -> Result<Json<Requeued>, HttpError> {
    let relay = &call.server.relay;
    let at = relay.now();
    let requeue = move |store: &mut dyn RelayStore| store.requeue(&id, at);
    match relay.write(requeue).await? {
        0 => Err(HttpError::missing("such dead letter")),
        count => {
            relay.wake();
            Ok(Json(Requeued { requeued: count }))
        }
    }
}
