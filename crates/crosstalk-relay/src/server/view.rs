//! Messages, threads, deliveries and tokens of the store, in the types of the API.

use crate::core::Relay;
use crosstalk_api::approval::{Approval, DecisionView, RecipientView};
use crosstalk_api::delivery::DeadLetterView;
use crosstalk_api::message::{DeliveryStatus, MessageView};
use crosstalk_api::thread::ThreadView;
use crosstalk_api::token::TokenView;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::port::{DeadLetter, InboxEntry, TokenRecord};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::relay::{Delivery, DeliveryState, HeldMessage};
use crosstalk_protocol::store::{self, Record};

/// The intent of a message: what it means, else what is written.
fn intent_of(record: &Record) -> Option<String> {
    let meaning = record.meaning.map(|m| m.as_str().to_owned());
    meaning.or_else(|| record.intent.clone())
}

/// A message as it leaves the relay; nothing once it has expired.
pub(super) fn leaving_message(relay: &Relay, record: &Record) -> Option<MessageView> {
    Some(message_of(record, relay.leaving(record)?))
}

/// A message that waits for a person, as it came: it has not left the relay.
pub(super) fn held_message(record: &Record) -> MessageView {
    MessageView {
        state: Some(DeliveryState::Held.as_str().to_owned()),
        ..message_of(record, record.text.clone())
    }
}

fn message_of(record: &Record, envelope: String) -> MessageView {
    MessageView {
        id: record.id.clone(),
        thread: record.thread.clone(),
        from: speaker(&record.sender, &record.text, 0).into_owned(),
        to: record.receiver.clone(),
        intent: intent_of(record),
        state: None,
        attempt: None,
        received_at: record.at.to_string(),
        signature: Some(record.verdict.as_str().to_owned()),
        pkid: record.pkid.clone(),
        envelope,
        history: None,
        withheld: None,
    }
}

/// How much text a message has, in bytes.
pub(super) fn text_bytes(message: &MessageView) -> usize {
    let history = message.history.iter().flatten().map(String::len);
    message.envelope.len() + history.sum::<usize>()
}

/// A message in an inbox, with its history and the number of texts that are withheld from it.
pub(super) fn inbox_message(
    message: MessageView,
    entry: &InboxEntry,
    history: Option<(Vec<String>, usize)>,
) -> MessageView {
    let (history, withheld) = history.unzip();
    let withheld = withheld.and_then(|count| u64::try_from(count).ok());
    MessageView {
        to: entry.to.clone(),
        state: Some(entry.state.as_str().to_owned()),
        attempt: Some(entry.attempts.saturating_add(1)),
        history,
        withheld: withheld.filter(|count| *count > 0),
        ..message
    }
}

/// A message that waits for a person, or did. Its envelope is shown until it is decided or its consent has expired.
pub(super) fn approval_of(held: &HeldMessage, now: Timestamp) -> Approval {
    let record = &held.record;
    let recipients = held.recipients.iter().map(|r| RecipientView {
        to: r.address.clone(),
        by: r.by.as_str().to_owned(),
    });
    let decided = held.decided.as_ref().map(|d| DecisionView {
        decision: d.choice.as_str().to_owned(),
        by: d.by.clone(),
        at: d.at.to_string(),
        reason: d.reason.clone(),
    });
    Approval {
        id: record.id.clone(),
        thread: record.thread.clone(),
        from: speaker(&record.sender, &record.text, 0).into_owned(),
        to: record.receiver.clone(),
        intent: intent_of(record),
        received_at: record.at.to_string(),
        signature: record.verdict.as_str().to_owned(),
        pkid: record.pkid.clone(),
        handed_in_by: held.peer.clone(),
        recipients: recipients.collect(),
        why: held.held.why.clone(),
        deciders: held.held.deciders.clone(),
        ends_at: time(held.ends()),
        digest: record.digest.to_string(),
        raw: held.raw.to_string(),
        envelope: held.text(now).map(str::to_owned),
        decided,
    }
}

pub(super) fn thread_of(thread: store::Thread) -> ThreadView {
    ThreadView {
        id: thread.id,
        context: thread.context,
        parties: thread.parties,
        open: thread.closed_at.is_none(),
        messages: thread.messages,
        updated_at: thread.last_at.to_string(),
    }
}

/// A delivery as the operator sees it, or others: why it failed may say something about the machine.
pub(super) fn delivery_of(delivery: Delivery, is_operator: bool) -> DeliveryStatus {
    let reason = match is_operator {
        true => delivery.reason.clone(),
        false => delivery.public_reason(),
    };
    DeliveryStatus {
        to: delivery.to,
        by: delivery.by.as_str().to_owned(),
        state: delivery.state.as_str().to_owned(),
        attempts: delivery.attempts,
        queued_at: delivery.queued_at.to_string(),
        delivered_at: time(delivery.delivered_at),
        read_at: time(delivery.read_at),
        acknowledged_at: time(delivery.acknowledged_at),
        failed_at: time(delivery.failed_at),
        reason,
        next_at: time(delivery.next_at),
        running_since: None,
        never_read: false,
        did_you_mean: None,
    }
}

pub(super) fn letter_of(letter: DeadLetter) -> DeadLetterView {
    let delivery = letter.delivery;
    DeadLetterView {
        id: letter.id,
        from: letter.from,
        to: delivery.to,
        by: delivery.by.as_str().to_owned(),
        attempts: delivery.attempts,
        reason: delivery.reason,
        failed_at: time(delivery.failed_at),
    }
}

/// A token, without its secret.
pub(super) fn token_of(token: TokenRecord) -> TokenView {
    TokenView {
        name: token.name,
        role: token.role.as_str().to_owned(),
        addresses: token.addresses,
        courier: token.courier,
        created_at: token.created_at.to_string(),
        expires_at: time(token.expires_at),
        revoked_at: time(token.revoked_at),
        last_used_at: time(token.last_used_at),
        token: None,
    }
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}
