//! Answers that keep thread, parent, session and context right: ERROR, ACK, NACK, RESPOND.
//!
//! Implements ENV-091 and ERR-002 to ERR-005.

use crate::builder::Builder;
use crate::diagnostic::{Diagnostic, Position};
use crate::document::Document;
use crate::envelope::Envelope;
use crate::explanation::Explanation;
use crate::grammar::CoreHeader;
use crate::id;
use crate::name::{SYSTEM, SYSTEM_USER};
use crate::registry::{ErrorCode, Intent, Rule};
use crate::unicode::escape;

/// The ids of a received message: its own, or those that the receiver made up for it and keeps beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedIds {
    /// The conversation.
    pub thread: String,
    /// The message.
    pub message: String,
}

impl ReceivedIds {
    /// Takes the ids of an envelope and makes those that it lacks.
    pub fn of(envelope: &Envelope<'_>) -> Self {
        let own = |id: Option<&str>| id.map_or_else(id::new_ulid, str::to_owned);
        Self {
            thread: own(envelope.thread),
            message: own(envelope.message),
        }
    }
}

/// Why a message or a request is rejected: what happened and what to do, as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The code of the taxonomy.
    pub code: ErrorCode,
    /// The reason, in one line.
    pub reason: String,
    /// The sentence that says what happened, and where.
    pub what: String,
    /// The sentence that says what to do; empty if there is nothing to do.
    pub help: String,
    /// The rule that was broken, and where.
    pub rule: Option<(&'static str, Option<Position>)>,
}

impl Rejection {
    /// A rejection with the usual reason of its code.
    pub fn new(code: ErrorCode, what: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            code,
            reason: code.summary().to_owned(),
            what: what.into(),
            help: help.into(),
            rule: None,
        }
    }

    /// The same with another reason.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = reason.into();
        self
    }

    /// The same with the rule that was broken.
    #[must_use]
    pub fn with_rule(mut self, rule: &Rule) -> Self {
        self.rule = Some((rule.id, None));
        self
    }

    /// Both sentences, for the body of an ERROR.
    pub fn detail(&self) -> String {
        Explanation::new(&self.what, &self.help).detail()
    }

    /// The rejection for the first error among some findings in `text`.
    pub fn from_findings(findings: &[Diagnostic], text: &str) -> Option<Self> {
        let finding = findings
            .iter()
            .filter(|d| d.is_error())
            .min_by_key(|d| d.span.start)?;
        let position = finding.position(text);
        let code = finding.code().unwrap_or(ErrorCode::Format);
        let (line, column) = (position.line, position.column);
        let what = format!("Line {line}, column {column}: {}.", finding.message);
        let help = match finding.help() {
            "" => String::new(),
            help => format!("{help}."),
        };
        Some(Self {
            code,
            reason: escape(&finding.message).replace('\n', " "),
            what: escape(&what).into_owned(),
            help: escape(&help).into_owned(),
            rule: Some((finding.rule.id, Some(position))),
        })
    }
}

/// The ERROR that answers a message which could be read (ERR-002): RECEIVER→SENDER.
///
/// ```
/// use crosstalk_envelope::{Document, ErrorCode, Reading, reply::{self, ReceivedIds, Rejection}};
/// let text = "[[CLAUDE→chatgpt://thread/xyz789 v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\n\
///             context: auth\nintent: REQUEST\nbody: |\n  Hello?\nsig: none\n[[END]]\n";
/// let document = Document::parse(text, Reading::Strict);
/// let ids = ReceivedIds::of(&document.envelope());
/// let refusal = Rejection::new(ErrorCode::Route, "Could not deliver the message.", "check the address.");
/// let answer = reply::error(&document.envelope(), &ids, &refusal).build().unwrap();
/// assert!(answer.starts_with("[[chatgpt://thread/xyz789→CLAUDE v1]]\nuser: system\n"));
/// assert!(answer.contains("meta: error\nCode: E-ROUTE\nReason: Routing failed"));
/// ```
pub fn error(original: &Envelope<'_>, ids: &ReceivedIds, refusal: &Rejection) -> Builder {
    let builder = answer(original, ids, SYSTEM_USER, Intent::Error);
    report(builder, refusal, original.intent.map(|i| i.written))
}

/// The ERROR of SYSTEM for a text that could not be read (ERR-003); takes over what could be.
pub fn error_from_system(original: Option<&Document<'_>>, refusal: &Rejection) -> Builder {
    let header = |core| original.and_then(|d| d.header(core));
    let receiver = original
        .map(Document::sender)
        .filter(|s| !s.is_empty())
        .unwrap_or("UNKNOWN");
    let mut builder = Builder::new(SYSTEM, receiver)
        .user(SYSTEM_USER)
        .core_if(CoreHeader::Session, header(CoreHeader::Session))
        .core_if(CoreHeader::Thread, header(CoreHeader::Thread))
        .core_if(CoreHeader::Parent, header(CoreHeader::Message))
        .message(id::new_ulid())
        .context(header(CoreHeader::Context).unwrap_or("error"))
        .intent(Intent::Error.as_str());
    if header(CoreHeader::Session).is_none() && header(CoreHeader::Thread).is_none() {
        builder = builder.thread(id::new_ulid());
    }
    report(builder, refusal, header(CoreHeader::Intent))
}

fn report(builder: Builder, refusal: &Rejection, original_intent: Option<&str>) -> Builder {
    let mut builder = builder.meta("error", "Code", refusal.code.as_str()).meta(
        "error",
        "Reason",
        &refusal.reason,
    );
    if let Some(intent) = original_intent {
        builder = builder.meta("error", "Original-Intent", intent);
    }
    if let Some((rule, position)) = &refusal.rule {
        builder = builder.meta("error", "Rule", *rule);
        if let Some(Position { line, column }) = position {
            builder = builder.meta("error", "Line", line.to_string()).meta(
                "error",
                "Column",
                column.to_string(),
            );
        }
    }
    builder.body(refusal.detail())
}

/// The ACK of a message (ERR-004).
pub fn ack(original: &Envelope<'_>, ids: &ReceivedIds, user: &str) -> Builder {
    answer(original, ids, user, Intent::Ack)
}

/// The NACK of a message, with the reason (ERR-004).
pub fn nack(original: &Envelope<'_>, ids: &ReceivedIds, user: &str, reason: &str) -> Builder {
    answer(original, ids, user, Intent::Nack).meta("refusal", "Reason", reason)
}

/// The RESPOND to a message (ERR-005).
pub fn respond(original: &Envelope<'_>, ids: &ReceivedIds, user: &str, body: &str) -> Builder {
    answer(original, ids, user, Intent::Respond).body(body)
}

/// A BROADCAST about a message, to its sender, which neither answers it nor asks for an answer.
pub fn notice(original: &Envelope<'_>, ids: &ReceivedIds, user: &str, body: &str) -> Builder {
    answer(original, ids, user, Intent::Broadcast).body(body)
}

/// An answer with any intent: it goes to the sender, in the name of the receiver.
pub fn answer(original: &Envelope<'_>, ids: &ReceivedIds, user: &str, intent: Intent) -> Builder {
    Builder::new(original.receiver.as_str(), original.sender.as_str())
        .user(user)
        .core_if(CoreHeader::Session, original.session.map(|s| s.text))
        .thread(&ids.thread)
        .parent(&ids.message)
        .message(id::new_ulid())
        .context(original.context.unwrap_or("reply"))
        .intent(intent.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reading;

    const REQUEST: &str = "[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\nthread: 01J9J3D3M6A4M3WQX8G1ZQ0S7K\nmessage: 01J9J3DBC4N7P2Q3R5S7T9V1W2\ncontext: auth\nintent: QUESTION\nbody: |\n  Hello?\nsig: none\n[[END]]\n";

    #[test]
    fn answers_keep_the_conversation() {
        let document = Document::parse(REQUEST, Reading::Strict);
        let envelope = document.envelope();
        let ids = ReceivedIds::of(&envelope);
        let refusal = Rejection::new(ErrorCode::Timeout, "No answer within 30 s.", "");
        for builder in [
            error(&envelope, &ids, &refusal),
            ack(&envelope, &ids, "relay"),
            nack(&envelope, &ids, "relay", "busy"),
            respond(&envelope, &ids, "brother", "Yes.\n[[END]]"),
        ] {
            let text = builder.build().unwrap();
            let answer = Document::parse(&text, Reading::Strict);
            let answer = answer.envelope();
            assert_eq!(
                (answer.sender.as_str(), answer.receiver.as_str()),
                ("CHATGPT", "CLAUDE")
            );
            assert_eq!(answer.thread, Some("01J9J3D3M6A4M3WQX8G1ZQ0S7K"));
            assert_eq!(answer.parent, Some("01J9J3DBC4N7P2Q3R5S7T9V1W2"));
            assert_eq!(answer.session.unwrap().text, "2025-10-09T16Z abc123");
            assert_eq!(answer.context, Some("auth"));
        }
    }

    #[test]
    fn every_refusal_becomes_a_strict_error() {
        for text in [
            "",
            "hello",
            "[[A→B v2]]",
            "[[A→B v1]]\nuser: u\u{1b}\nUSER: x\n",
            "[[A→B v1]]\ncontext: c\nintent: REQUEST\n",
            &"[".repeat(70_000),
        ] {
            let document = Document::parse(text, Reading::Strict);
            let refusal = Rejection::from_findings(document.diagnostics(), text).unwrap();
            let answer = error_from_system(Some(&document), &refusal)
                .build()
                .unwrap();
            assert!(answer.starts_with("[[SYSTEM→"), "{answer}");
        }
        for code in ErrorCode::ALL {
            assert!(
                error_from_system(None, &Rejection::new(*code, "why", ""))
                    .build()
                    .is_ok()
            );
        }
    }
}
