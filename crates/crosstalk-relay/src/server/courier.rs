//! What a person has to carry, and what was given up.

use super::answer::{self, Answer, Fault};
use super::inbox::read_json;
use super::media::Media;
use super::message::status_of;
use super::query::{self, TEXT};
use super::surface::Call;
use super::view::{LetterView, MessageView};
use crate::delivery::report;
use crosstalk_envelope::registry::ErrorCode;
use crosstalk_protocol::relay::{Attempt, Delivery, Handler, RelayStore, State};
use crosstalk_protocol::store::is_same_party;
use serde::Deserialize;
use serde_json::json;

/// How much text a listing has, at most one message more.
const BYTES: usize = 4 << 20;

pub(super) async fn waiting(call: &mut Call<'_>) -> Result<Answer, Fault> {
    call.media(&[Media::Json])?;
    let limit = call.query()?.limit()?;
    call.site.settle().await;
    let relay = &call.site.relay;
    let waiting = relay.read(move |store| store.courier(limit)).await?;
    let (mut messages, mut bytes) = (Vec::new(), 0);
    for courier in &waiting {
        let Some(view) = MessageView::of(relay, &courier.record) else {
            continue;
        };
        messages.push(view.in_inbox(&courier.to, State::Queued, None));
        bytes += courier.record.text.len();
        if bytes > BYTES {
            break;
        }
    }
    let last = waiting.iter().map(|c| c.record.seq).max().unwrap_or(0);
    Ok(answer::json(
        &json!({"messages": messages, "cursor": last.to_string()}),
    ))
}

#[derive(Deserialize)]
struct Carried {
    to: String,
    state: String,
    reason: Option<String>,
}

pub(super) async fn carried(call: &mut Call<'_>) -> Result<Answer, Fault> {
    let id = call.name()?;
    let carried: Carried = read_json(call).await?;
    query::checked("to", &carried.to, TEXT)?;
    let reason = match carried.reason.as_deref().unwrap_or("") {
        "" => "the person who carries messages could not bring it there",
        reason => query::checked("reason", reason, TEXT)?,
    };
    let attempt = match carried.state.as_str() {
        "carried" => Attempt::Delivered,
        "failed" => Attempt::Failed {
            reason: reason.to_owned(),
        },
        _ => {
            return Err(Fault::format(
                "`state` is neither `carried` nor `failed`.\nWhat to do: give one of them.",
            ));
        }
    };
    let relay = &call.site.relay;
    let (at, rules) = (relay.now(), relay.rules());
    let (wanted, to) = (id.clone(), carried.to.clone());
    let has_failed = attempt != Attempt::Delivered;
    let change = move |store: &mut dyn RelayStore| {
        let to = rules.routes.named(&to);
        let deliveries = store.deliveries(&wanted)?;
        let waits = |d: &&Delivery| d.by == Handler::CopyPaste && is_same_party(&d.to, to);
        let since = deliveries.iter().find(waits).map(|d| d.queued_at);
        let is_there = since.is_some() && store.attempted(&wanted, to, &attempt, at)?;
        let record = store.taken_as(&wanted)?;
        Ok(record.zip(since).filter(|_| is_there))
    };
    let found = relay.write_filed(change).await?;
    let (record, since) =
        found.ok_or_else(|| Fault::missing("message that waits to be carried there"))?;
    if has_failed {
        let reason = crosstalk_envelope::unicode::escape(reason);
        let why = (ErrorCode::Route, reason.as_ref());
        report::undeliverable(relay, &record, &carried.to, why, since).await;
    }
    status_of(call, &id).await
}

pub(super) async fn dead(call: &mut Call<'_>) -> Result<Answer, Fault> {
    call.media(&[Media::Json])?;
    let limit = call.query()?.limit()?;
    let letters = call.site.relay.read(move |store| store.dead(limit)).await?;
    let letters: Vec<LetterView> = letters.into_iter().map(Into::into).collect();
    Ok(answer::json(&json!({ "letters": letters })))
}

pub(super) async fn requeue(call: &mut Call<'_>) -> Result<Answer, Fault> {
    let id = call.name()?;
    let relay = &call.site.relay;
    let at = relay.now();
    let requeue = move |store: &mut dyn RelayStore| store.requeue(&id, at);
    match relay.write_filed(requeue).await? {
        0 => Err(Fault::missing("such dead letter")),
        count => {
            relay.wake();
            Ok(answer::json(&json!({ "requeued": count })))
        }
    }
}
