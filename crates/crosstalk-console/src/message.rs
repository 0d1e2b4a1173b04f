//! A message as pages show it: what its envelope says, in words for people.

use crate::badge::SignatureBadge;
use crate::fields::encode;
use crate::text::{Moment, PartyName, Piece, Shown, pieces};
use crosstalk_api::client::{DeliveryStatus, MessageView};
use crosstalk_envelope::registry::Priority;
use crosstalk_envelope::{Document, Intent, Reading, Timestamp};

/// How much of a body a listing shows, in characters.
const SNIPPET_CHARS: usize = 120;
/// The longest body that a page shows; the rest is in the inspector.
const BODY_CHARS: usize = 20_000;

/// The intent of a message, as a word and a class for its colour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IntentTag {
    pub(crate) word: Shown,
    pub(crate) tone: &'static str,
    /// Why a message with this intent is in somebody's inbox.
    pub(crate) why: &'static str,
}

impl IntentTag {
    fn of(meaning: Option<Intent>, written: &str) -> Self {
        let (tone, why) = match meaning {
            Some(Intent::Request) => ("ask", "asks you"),
            Some(Intent::Poll) => ("ask", "asks for your vote"),
            Some(Intent::Escalate) => ("urgent", "escalated to you"),
            Some(Intent::Handoff) => ("ask", "handed over to you"),
            Some(Intent::Respond) => ("answer", "answers"),
            Some(Intent::Error) => ("bad", "failed"),
            Some(Intent::Nack) => ("bad", "declined"),
            Some(Intent::Revoke) => ("urgent", "revokes"),
            Some(intent) if intent.asks() => ("ask", "asks you"),
            Some(intent) if intent.answers() => ("answer", "answers"),
            _ => ("plain", "for your information"),
        };
        Self {
            word: Shown::short(written, 24),
            tone,
            why,
        }
    }
}

/// An attachment that a message refers to.
#[derive(Clone, Debug)]
pub(crate) struct AttachmentLine {
    pub(crate) name: Shown,
    pub(crate) mime: Shown,
}

/// How far a message is with one recipient.
#[derive(Clone, Debug)]
pub(crate) struct DeliveryLine {
    pub(crate) to: PartyName,
    pub(crate) by: String,
    pub(crate) state: String,
    pub(crate) tone: &'static str,
    pub(crate) reason: Shown,
    pub(crate) attempts: u32,
    pub(crate) next: Option<Moment>,
    pub(crate) did_you_mean: Option<Shown>,
    pub(crate) is_never_read: bool,
}

impl DeliveryLine {
    pub(crate) fn of(status: &DeliveryStatus, now: Timestamp) -> Self {
        Self {
            to: PartyName::of(&status.to),
            by: status.by.clone(),
            tone: state_tone(&status.state),
            state: status.state.clone(),
            reason: Shown::new(status.reason.as_deref().unwrap_or("")),
            attempts: status.attempts,
            next: status.next_at.as_deref().map(|at| Moment::parse(at, now)),
            did_you_mean: status.did_you_mean.as_deref().map(Shown::new),
            is_never_read: status.never_read,
        }
    }
}

/// The class for the colour of a state of a delivery.
pub(crate) fn state_tone(state: &str) -> &'static str {
    match state {
        "delivered" | "read" | "acknowledged" => "ok",
        "failed" | "refused" | "cancelled" => "bad",
        "held" | "retrying" => "warn",
        _ => "none",
    }
}

/// Whether people may reply to a message with this intent. It is settled, or only informs, else (HTP-025, INT-016).
pub(crate) const fn takes_reply(meaning: Option<Intent>) -> bool {
    !matches!(
        meaning,
        Some(
            Intent::Ack
                | Intent::Nack
                | Intent::Error
                | Intent::Broadcast
                | Intent::Revoke
                | Intent::Close
        )
    )
}

/// A message.
#[derive(Clone, Debug)]
pub(crate) struct ShownMessage {
    /// The id in a path.
    pub(crate) id_path: String,
    pub(crate) thread_path: String,
    pub(crate) from: PartyName,
    pub(crate) to: PartyName,
    pub(crate) intent: IntentTag,
    pub(crate) context: Shown,
    pub(crate) snippet: Shown,
    pub(crate) body: Vec<Piece>,
    pub(crate) is_cut: bool,
    pub(crate) badge: SignatureBadge,
    pub(crate) pkid: Option<Shown>,
    pub(crate) at: Moment,
    pub(crate) is_high: bool,
    pub(crate) deadline: Option<Moment>,
    pub(crate) attachments: Vec<AttachmentLine>,
    pub(crate) is_unread: bool,
    pub(crate) asks: bool,
    pub(crate) takes_reply: bool,
    /// How urgent it is: the least comes first.
    pub(crate) rank: (u8, i64),
    pub(crate) raw_id: String,
    pub(crate) raw_to: String,
    pub(crate) raw_from: String,
}

impl ShownMessage {
    pub(crate) fn of(view: &MessageView, now: Timestamp) -> Self {
        let document = Document::parse(&view.envelope, Reading::Strict);
        let envelope = document.envelope();
        let routing = envelope.routing();
        let meaning = envelope.meaning();
        let body = document.body_text();
        let shown: String = body.chars().take(BODY_CHARS).collect();
        let deadline = routing.deadline.and_then(Timestamp::parse);
        let is_high = routing.priority == Priority::High;
        let asks = meaning.is_some_and(|m| m.asks());
        let is_urgent = is_high || meaning == Some(Intent::Escalate);
        let at = Timestamp::parse(&view.received_at).unwrap_or(now);
        let class = match (is_urgent, asks, routing.priority == Priority::Low) {
            (true, true, _) => 0,
            (true, false, _) => 1,
            (false, true, false) => 2,
            (false, false, false) => 3,
            (false, _, true) => 4,
        };
        // Of two questions, the one whose deadline comes first is first.
        let order = deadline.filter(|_| asks).unwrap_or(at).as_millis();
        let attachments = envelope.attachments().filter_map(|(_, read)| read.ok());
        let attachments = attachments.map(|a| AttachmentLine {
            name: Shown::short(a.name.unwrap_or("attachment"), 80),
            mime: Shown::short(a.mime, 60),
        });
        Self {
            id_path: encode(&view.id),
            thread_path: encode(&view.thread),
            from: PartyName::of(&view.from),
            to: PartyName::of(&view.to),
            intent: IntentTag::of(meaning, view.intent.as_deref().unwrap_or("none")),
            context: Shown::short(envelope.context.unwrap_or(""), 120),
            snippet: Shown::short(&body, SNIPPET_CHARS),
            is_cut: shown.len() < body.len(),
            body: pieces(&shown),
            badge: SignatureBadge::of(view.signature.as_deref()),
            pkid: view.pkid.as_deref().map(Shown::new),
            at: Moment::of(at, now),
            is_high,
            deadline: deadline.map(|at| Moment::of(at, now)),
            attachments: attachments.collect(),
            is_unread: crate::live::is_unread(view.state.as_deref()),
            asks,
            takes_reply: takes_reply(meaning),
            rank: (class, order),
            raw_id: view.id.clone(),
            raw_to: view.to.clone(),
            raw_from: view.from.clone(),
        }
    }
}
