//! The endpoints for couriers and for dead letters.

use super::message::status_of;
use super::query::{self, Query, TEXT};
use super::response::{HttpError, Json};
use super::router::{Accepts, Call, Segment};
use super::view::{delivery_of, inbox_message, leaving_message, letter_of};
use super::{MAX_LISTING_BYTES, MAX_SCANNED};
use crosstalk_api::delivery::{
    CarriedReport, DeadLetters, QuarantineList, QuarantinedView, Requeued, Retried,
};
use crosstalk_api::inbox::InboxPage;
use crosstalk_api::message::MessageStatus;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::relay::port::{AttemptResult, CourierQuery};
use crosstalk_protocol::relay::{Attempt, Delivery, Handler, report, undelivered_help};
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
    let query = CourierQuery {
        rules: relay.rules(),
        caller: Arc::clone(&call.caller.peer),
        limit,
    };
    let waiting = relay.store().courier(query).await?;
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
    let last = waiting.into_iter().max_by_key(|c| c.record.seq);
    Ok(Json(InboxPage {
        messages,
        cursor: last.map(|c| c.cursor).unwrap_or_default().to_string(),
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
    let (store, rules) = (relay.store(), relay.rules());
    let to = rules.routes.named(&carried.to);
    let missing = || HttpError::missing("message that waits for you to carry it there");
    let find = async || {
        let mut deliveries = store.deliveries_of(&id).await?.into_iter();
        let found = deliveries.find(|d| is_same_party(&d.to, to));
        found.ok_or_else(missing)
    };
    let record = store.record(&id).await?.ok_or_else(missing)?;
    // The permission is checked before anything changes.
    let before: Delivery = find().await?;
    if !rules.is_errand_of(&caller, &record, &before) {
        return Err(missing());
    }
    let notice = match attempt {
        Attempt::Delivered => None,
        _ => {
            let help = undelivered_help(Handler::CopyPaste, ErrorCode::Route);
            let why = (ErrorCode::Route, NOT_CARRIED, help);
            report::undeliverable(&record, &carried.to, why, before.queued_at)
        }
    };
    let result = AttemptResult {
        id: id.clone(),
        to: to.to_owned(),
        leased_at: None,
        attempt,
        at: relay.now(),
        notices: notice.into_iter().collect(),
    };
    if !store.finish(result).await? {
        return Err(missing());
    }
    let delivery = find().await?;
    let is_operator = caller.is_admin();
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
    let letters = call.server.relay.store().dead_letters(limit).await?;
    let letters = letters.into_iter().map(letter_of).collect();
    Ok(Json(DeadLetters { letters }))
}

pub(super) async fn requeue(call: Call, Segment(id): Segment) -> Result<Json<Requeued>, HttpError> {
    let relay = &call.server.relay;
    let at = relay.now();
    match relay.store().requeue(&id, at).await? {
        0 => Err(HttpError::missing("such dead letter")),
        count => {
            relay.wake();
            Ok(Json(Requeued { requeued: count }))
        }
    }
}

pub(super) async fn quarantine(
    call: Call,
    _: Accepts,
    query: Query,
) -> Result<Json<QuarantineList>, HttpError> {
    let limit = query.limit()?;
    let messages = call.server.relay.store().quarantine(limit).await?;
    let messages = messages.into_iter().map(|one| QuarantinedView {
        id: one.id,
        seq: one.seq,
        reason: one.reason,
    });
    Ok(Json(QuarantineList {
        messages: messages.collect(),
    }))
}

pub(super) async fn retry_quarantine(call: Call, _: Accepts) -> Result<Json<Retried>, HttpError> {
    let relay = &call.server.relay;
    let indexed = relay.store().retry_quarantine().await?;
    let left = relay.store().quarantine(MAX_SCANNED).await?.len();
    if indexed > 0 {
        tracing::info!(indexed, by = %call.caller.peer.name, "quarantined messages were indexed");
        relay.wake();
    }
    Ok(Json(Retried {
        indexed,
        left: u64::try_from(left).unwrap_or(u64::MAX),
    }))
}
