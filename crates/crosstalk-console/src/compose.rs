//! Messages that a person writes here, and answers that a person brings back from a chat: each becomes an envelope that the
//! person sees before it is sent.

use crate::page::PageError;
use crosstalk_api::client::MessageView;
use crosstalk_envelope::reply::{ReceivedIds, answer};
use crosstalk_envelope::{Builder, CoreHeader, Document, Intent, Reading, id, scan};
use crosstalk_protocol::compose::{context_of, infer_intent};

/// The message that a person wrote into a form.
pub(crate) struct WrittenMessage<'f> {
    pub(crate) from: &'f str,
    pub(crate) to: &'f str,
    /// Nothing: what the text looks like.
    pub(crate) intent: Option<&'f str>,
    pub(crate) context: Option<&'f str>,
    pub(crate) body: &'f str,
    pub(crate) is_urgent: bool,
}

/// The intents that a form offers.
pub(crate) const INTENTS: [(Intent, &str); 5] = [
    (Intent::Respond, "answer"),
    (Intent::Request, "ask"),
    (Intent::Broadcast, "inform"),
    (Intent::Nack, "decline"),
    (Intent::Ack, "confirm"),
];

impl WrittenMessage<'_> {
    /// The envelope of a new message, or of an answer to a message.
    pub(crate) fn envelope(
        &self,
        user: &str,
        answered: Option<&MessageView>,
    ) -> Result<String, PageError> {
        if self.body.trim().is_empty() {
            return Err(PageError::fault(
                400,
                "The message is empty.",
                "write something.",
            ));
        }
        let parsed = answered.map(|view| Document::parse(&view.envelope, Reading::Strict));
        let original = parsed.as_ref().map(Document::envelope);
        let meaning = original.as_ref().and_then(|o| o.meaning());
        let chosen = self.intent.and_then(|word| {
            let mut all = INTENTS.iter().map(|(intent, _)| *intent);
            all.find(|intent| intent.as_str() == word)
        });
        let intent = chosen.unwrap_or_else(|| infer_intent(self.body, meaning));
        let body = self.body.trim_end();
        let mut builder = Builder::new(self.from, self.to).user(user);
        builder = match (&original, answered) {
            (Some(original), Some(view)) => builder
                .core_if(CoreHeader::Session, original.session.map(|s| s.text))
                .thread(&view.thread)
                .parent(&view.id)
                .message(id::new_ulid())
                .context(self.context.or(original.context).unwrap_or("reply")),
            _ => builder
                .thread(id::new_ulid())
                .message(id::new_ulid())
                .context(self.context.map_or_else(|| context_of(body), str::to_owned)),
        };
        builder = builder.intent(intent.as_str());
        if self.is_urgent {
            builder = builder.meta("routing", "X-Priority", "high");
        }
        if intent == Intent::Nack {
            let reason: String = body
                .lines()
                .next()
                .unwrap_or("")
                .chars()
                .take(200)
                .collect();
            builder = builder.meta("refusal", "Reason", reason);
        }
        build(&builder.body(body))
    }
}

/// The text of an envelope, or why there is none.
pub(crate) fn build(builder: &Builder) -> Result<String, PageError> {
    builder.build().map_err(|fault| {
        let first = fault.diagnostics.iter().find(|d| d.is_error());
        let first = first.or(fault.diagnostics.first());
        let what = first.map_or("The message is malformed", |d| d.message.as_ref());
        let help = first.map_or("", |d| d.help());
        PageError::fault(400, format!("This can't be sent: {what}."), help)
    })
}

/// An answer that a person brought back from a chat.
pub(crate) struct Brought {
    /// The envelope as it is sent.
    pub(crate) envelope: String,
    /// Whether the chat wrote an envelope, and not only text.
    pub(crate) has_envelope: bool,
    /// Whether its addresses, ids and context are those of the question, and not what the chat wrote.
    pub(crate) is_readdressed: bool,
}

/// The envelope for what a chat said. A signed one stays as it is. Of others, the question says from whom, to whom and in which
/// conversation: models get that wrong, and the person who carried the question knows it.
pub(crate) fn brought_back(
    said: &str,
    place: usize,
    question: Option<&MessageView>,
) -> Result<Brought, PageError> {
    let found = scan(said, Reading::Paste).accept_truncated();
    let document = found.documents.get(place);
    let is_signed = document.is_some_and(|d| !matches!(d.sig(), None | Some("none")));
    let strict = |document: &Document<'_>| Brought {
        envelope: document.text().to_owned(),
        has_envelope: true,
        is_readdressed: false,
    };
    let Some(question) = question else {
        return match document {
            Some(document) => Ok(strict(document)),
            None => Err(PageError::fault(
                400,
                "There is no envelope in the text.",
                "choose the question that it answers: then it is filed as that answer.",
            )),
        };
    };
    if let Some(document) = document.filter(|_| is_signed) {
        return Ok(strict(document));
    }
    let parsed = Document::parse(&question.envelope, Reading::Strict);
    let original = parsed.envelope();
    let ids = ReceivedIds {
        thread: question.thread.clone(),
        message: question.id.clone(),
    };
    let written = document.map(Document::envelope);
    let meaning = written.as_ref().and_then(|w| w.meaning());
    let intent = match meaning {
        Some(intent @ (Intent::Nack | Intent::Escalate | Intent::Error)) => intent,
        _ => Intent::Respond,
    };
    let user = written.as_ref().and_then(|w| w.user);
    let user = user.map_or_else(|| question.to.to_lowercase(), str::to_owned);
    let body = document.map_or_else(|| said.trim().to_owned(), Document::body_text);
    if body.trim().is_empty() {
        return Err(PageError::fault(
            400,
            "The text is empty.",
            "paste the answer of the chat.",
        ));
    }
    let mut builder = answer(&original, &ids, &user, intent);
    for block in document.into_iter().flat_map(Document::blocks) {
        if !matches!(block.namespace(), "integrity" | "audit" | "key") {
            for (key, value) in block.fields() {
                builder = builder.meta(block.namespace(), key, value);
            }
        }
    }
    Ok(Brought {
        envelope: build(&builder.body(body))?,
        has_envelope: document.is_some(),
        is_readdressed: document.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> MessageView {
        let envelope = Builder::new("ANN", "CHATGPT")
            .user("ann")
            .thread("T1")
            .message("01J9J3DBC4N7P2Q3R5S7T9V1W2")
            .context("auth")
            .intent("REQUEST")
            .body("Which flow?")
            .build()
            .unwrap();
        serde_json::from_value(serde_json::json!({
            "id": "01J9J3DBC4N7P2Q3R5S7T9V1W2", "thread": "T1", "from": "ANN", "to": "CHATGPT",
            "intent": "REQUEST", "received_at": "2026-01-01T00:00:00Z", "envelope": envelope,
        }))
        .unwrap()
    }

    fn read(envelope: &str) -> (String, String, Option<String>, String) {
        let document = Document::parse(envelope, Reading::Strict);
        assert!(document.is_accepted(), "{envelope}");
        let parent = document.header(CoreHeader::Parent).map(str::to_owned);
        let (sender, receiver) = (document.sender().to_owned(), document.receiver().to_owned());
        (sender, receiver, parent, document.body_text())
    }

    #[test]
    fn what_a_chat_says_becomes_the_answer_to_the_question() {
        let question = question();
        let wanted = |body: &str| {
            let parent = Some(question.id.clone());
            (
                "CHATGPT".to_owned(),
                "ANN".to_owned(),
                parent,
                body.to_owned(),
            )
        };
        let plain = brought_back("  Use PKCE.\n", 0, Some(&question)).unwrap();
        assert!(!plain.has_envelope);
        assert_eq!(read(&plain.envelope), wanted("Use PKCE."));
        // The model did not swap the sides, and made an id up.
        let text = "Sure!\n[[ANN→CHATGPT v1]]\nuser: gpt\nparent: 42\ncontext: x\nintent: RESPOND\nbody: |\nUse PKCE.\n[[END]]\n";
        let swapped = brought_back(text, 0, Some(&question)).unwrap();
        assert!(swapped.has_envelope && swapped.is_readdressed);
        assert_eq!(read(&swapped.envelope), wanted("Use PKCE."));
        assert!(brought_back("Use PKCE.", 0, None).is_err());
        assert!(brought_back("  ", 0, Some(&question)).is_err());
    }

    #[test]
    fn a_reply_keeps_the_conversation() {
        let question = question();
        let draft = WrittenMessage {
            from: "CHATGPT",
            to: "ANN",
            intent: None,
            context: None,
            body: "Use PKCE.\n[[END]]\nsig: none",
            is_urgent: true,
        };
        let envelope = draft.envelope("gpt", Some(&question)).unwrap();
        let (_, _, parent, body) = read(&envelope);
        assert_eq!(
            (parent, body.as_str()),
            (Some(question.id.clone()), draft.body)
        );
        assert!(envelope.contains("intent: RESPOND") && envelope.contains("X-Priority: high"));
        let broken = WrittenMessage {
            from: "A]]B",
            ..draft
        };
        assert!(broken.envelope("x", None).is_err());
    }
}
