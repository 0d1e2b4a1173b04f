//! Messages, threads and deliveries as JSON.

use crate::core::Relay;
use crosstalk_envelope::Timestamp;
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::relay::{DeadLetter, Delivery, HeldMessage, State, TokenRecord};
use crosstalk_protocol::store::{Record, Thread};
use serde::Serialize;

/// The intent of a message: what it means, else what is written.
fn intent_of(record: &Record) -> Option<String> {
    let meaning = record.meaning.map(|m| m.as_str().to_owned());
    meaning.or_else(|| record.intent.clone())
}

/// A message.
#[derive(Debug, Serialize)]
pub(super) struct MessageView {
    pub(super) id: String,
    thread: String,
    from: String,
    to: String,
    intent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    received_at: String,
    pub(super) envelope: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<Vec<String>>,
    /// How many texts are not in the history, though they came before: their consent is not for who gets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    withheld: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) answers: Option<Vec<MessageView>>,
}

impl MessageView {
    /// A message as it leaves the relay; nothing once its time is over.
    pub(super) fn of(relay: &Relay, record: &Record) -> Option<Self> {
        Some(Self::with(record, relay.leaving(record)?))
    }

    /// A message that waits for a person, as it came: it has not left the relay.
    pub(super) fn held(record: &Record) -> Self {
        Self {
            state: Some(State::Held.as_str()),
            ..Self::with(record, record.text.clone())
        }
    }

    fn with(record: &Record, envelope: String) -> Self {
        Self {
            id: record.id.clone(),
            thread: record.thread.clone(),
            from: speaker(&record.sender, &record.text, 0).into_owned(),
            to: record.receiver.clone(),
            intent: intent_of(record),
            state: None,
            received_at: record.at.to_string(),
            envelope,
            history: None,
            withheld: None,
            answers: None,
        }
    }

    /// How much text it has.
    pub(super) fn size(&self) -> usize {
        let history = self.history.iter().flatten().map(String::len);
        self.envelope.len() + history.sum::<usize>()
    }

    /// The same in the inbox of somebody, with the history and how much is withheld of it.
    pub(super) fn in_inbox(
        mut self,
        to: &str,
        state: State,
        history: Option<(Vec<String>, usize)>,
    ) -> Self {
        to.clone_into(&mut self.to);
        self.state = Some(state.as_str());
        (self.history, self.withheld) = history.unzip();
        self.withheld = self.withheld.filter(|count| *count > 0);
        self
    }
}

/// A message that waits for a person, or did.
#[derive(Debug, Serialize)]
pub(super) struct ApprovalView {
    id: String,
    thread: String,
    from: String,
    to: String,
    intent: Option<String>,
    received_at: String,
    /// What was found out about its signature when it came.
    signature: &'static str,
    pkid: Option<String>,
    /// The credential that it was handed in with.
    handed_in_by: String,
    recipients: Vec<RecipientView>,
    why: String,
    deciders: Vec<String>,
    ends_at: Option<String>,
    digest: String,
    raw: String,
    /// Exactly as it came; nothing once it is decided or its consent has ended.
    envelope: Option<String>,
    decided: Option<DecidedView>,
}

#[derive(Debug, Serialize)]
struct RecipientView {
    to: String,
    by: &'static str,
}

#[derive(Debug, Serialize)]
struct DecidedView {
    decision: &'static str,
    by: String,
    at: String,
    reason: Option<String>,
}

impl ApprovalView {
    pub(super) fn of(held: &HeldMessage, now: Timestamp) -> Self {
        let record = &held.record;
        let recipients = held.recipients.iter().map(|r| RecipientView {
            to: r.address.clone(),
            by: r.by.as_str(),
        });
        let decided = held.decided.as_ref().map(|d| DecidedView {
            decision: d.choice.as_str(),
            by: d.by.clone(),
            at: d.at.to_string(),
            reason: d.reason.clone(),
        });
        let ends = [held.expires, held.answer_by].into_iter().flatten().min();
        Self {
            id: record.id.clone(),
            thread: record.thread.clone(),
            from: speaker(&record.sender, &record.text, 0).into_owned(),
            to: record.receiver.clone(),
            intent: intent_of(record),
            received_at: record.at.to_string(),
            signature: record.verdict.as_str(),
            pkid: record.pkid.clone(),
            handed_in_by: held.peer.clone(),
            recipients: recipients.collect(),
            why: held.held.why.clone(),
            deciders: held.held.deciders.clone(),
            ends_at: time(ends),
            digest: record.digest.to_string(),
            raw: held.raw.to_string(),
            envelope: held.text(now).map(str::to_owned),
            decided,
        }
    }
}

/// A conversation.
#[derive(Debug, Serialize)]
pub(super) struct ThreadView {
    id: String,
    context: Option<String>,
    parties: Vec<String>,
    open: bool,
    messages: u64,
    updated_at: String,
}

impl From<Thread> for ThreadView {
    fn from(thread: Thread) -> Self {
        Self {
            id: thread.id,
            context: thread.context,
            parties: thread.parties,
            open: thread.closed_at.is_none(),
            messages: thread.messages,
            updated_at: thread.last_at.to_string(),
        }
    }
}

/// How far a message is on its way to a recipient.
#[derive(Debug, Serialize)]
pub(super) struct DeliveryView {
    to: String,
    by: &'static str,
    state: &'static str,
    attempts: u32,
    queued_at: String,
    delivered_at: Option<String>,
    read_at: Option<String>,
    acknowledged_at: Option<String>,
    failed_at: Option<String>,
    reason: Option<String>,
    next_at: Option<String>,
    /// Whether it waits in an inbox that nobody has ever read.
    pub(super) never_read: bool,
    /// The address that may have been meant, if nobody has.
    pub(super) did_you_mean: Option<String>,
}

impl DeliveryView {
    /// A delivery as the operator sees it, or others: why it failed may say something about the machine.
    pub(super) fn of(delivery: Delivery, is_operator: bool) -> Self {
        let reason = match is_operator {
            true => delivery.reason.clone(),
            false => delivery.public_reason(),
        };
        Self {
            to: delivery.to,
            by: delivery.by.as_str(),
            state: delivery.state.as_str(),
            attempts: delivery.attempts,
            queued_at: delivery.queued_at.to_string(),
            delivered_at: time(delivery.delivered_at),
            read_at: time(delivery.read_at),
            acknowledged_at: time(delivery.acknowledged_at),
            failed_at: time(delivery.failed_at),
            reason,
            next_at: time(delivery.next_at),
            never_read: false,
            did_you_mean: None,
        }
    }
}

/// A delivery that was given up.
#[derive(Debug, Serialize)]
pub(super) struct LetterView {
    id: String,
    from: String,
    to: String,
    by: &'static str,
    attempts: u32,
    reason: Option<String>,
    failed_at: Option<String>,
}

impl From<DeadLetter> for LetterView {
    fn from(letter: DeadLetter) -> Self {
        let delivery = letter.delivery;
        Self {
            id: letter.id,
            from: letter.from,
            to: delivery.to,
            by: delivery.by.as_str(),
            attempts: delivery.attempts,
            reason: delivery.reason,
            failed_at: time(delivery.failed_at),
        }
    }
}

/// A token, without its secret.
#[derive(Debug, Serialize)]
pub(super) struct TokenView {
    name: String,
    role: &'static str,
    addresses: Vec<String>,
    courier: Vec<String>,
    created_at: String,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    last_used_at: Option<String>,
    /// The secret, where it was just made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) token: Option<String>,
}

impl From<TokenRecord> for TokenView {
    fn from(token: TokenRecord) -> Self {
        Self {
            name: token.name,
            role: token.role.as_str(),
            addresses: token.addresses,
            courier: token.courier,
            created_at: token.created_at.to_string(),
            expires_at: time(token.expires_at),
            revoked_at: time(token.revoked_at),
            last_used_at: time(token.last_used_at),
            token: None,
        }
    }
}

fn time(at: Option<Timestamp>) -> Option<String> {
    at.map(|at| at.to_string())
}
