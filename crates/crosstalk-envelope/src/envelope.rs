//! The typed view of a document: what each core field means.

use crate::address::Address;
use crate::document::Document;
use crate::grammar::{BodyKind, CoreHeader};
use crate::registry::{Intent, LEGACY_INTENTS};
use crate::signature::Signature;
use crate::time::Timestamp;

/// An envelope with its core fields read.
///
/// ```
/// use crosstalk_envelope::{Document, Intent, Reading};
/// let text = "[[CLAUDE→CHATGPT v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\n\
///             context: auth\nintent: QUESTION\nbody: |\n  Should we use JWT?\nsig: none\n[[END]]\n";
/// let document = Document::parse(text, Reading::Strict);
/// let envelope = document.envelope();
/// let intent = envelope.intent.unwrap();
/// assert_eq!((intent.written, intent.meaning), ("QUESTION", Some(Intent::Request)));
/// assert_eq!(envelope.session.unwrap().word(), "abc123");
/// ```
#[derive(Clone, Debug)]
pub struct Envelope<'d> {
    /// The sender.
    pub sender: Address<'d>,
    /// The receiver.
    pub receiver: Address<'d>,
    /// The person or agent that speaks.
    pub user: Option<&'d str>,
    /// The v1.0 conversation.
    pub session: Option<Session<'d>>,
    /// The conversation's id.
    pub thread: Option<&'d str>,
    /// The id of the message that this one answers.
    pub parent: Option<&'d str>,
    /// The message's own id.
    pub message: Option<&'d str>,
    /// The topic.
    pub context: Option<&'d str>,
    /// The intent.
    pub intent: Option<IntentField<'d>>,
    /// Whether the text stands under `body:` or `response:`.
    pub body_kind: BodyKind,
    /// The signature; nothing if there is no readable `sig:` line.
    pub signature: Option<Signature<'d>>,
    pub(crate) document: &'d Document<'d>,
}

impl Document<'_> {
    /// The typed view.
    pub fn envelope(&self) -> Envelope<'_> {
        let (text, parts) = (self.text(), self.parts());
        let header = |core| {
            let entry = parts.core(core)?;
            Some(entry.value.of(text)).filter(|v| !v.is_empty())
        };
        let (sender, receiver) = parts
            .direction
            .map_or(("", ""), |d| (d.sender.of(text), d.receiver.of(text)));
        Envelope {
            sender: Address::split(sender),
            receiver: Address::split(receiver),
            user: header(CoreHeader::User),
            session: header(CoreHeader::Session).map(Session::of),
            thread: header(CoreHeader::Thread),
            parent: header(CoreHeader::Parent),
            message: header(CoreHeader::Message),
            context: header(CoreHeader::Context),
            intent: header(CoreHeader::Intent).map(IntentField::parse),
            body_kind: self.body_kind().unwrap_or(BodyKind::Body),
            signature: parts.sig.and_then(|s| Signature::parse(s.of(text)).ok()),
            document: self,
        }
    }
}

impl<'d> Envelope<'d> {
    /// The intent, mapped to a core one. A v1.0 `response:` without an intent is a RESPOND.
    pub fn meaning(&self) -> Option<Intent> {
        match &self.intent {
            Some(intent) => intent.meaning,
            None if self.body_kind == BodyKind::Response => Some(Intent::Respond),
            None => None,
        }
    }

    /// The document that it is a view of.
    pub const fn document(&self) -> &'d Document<'d> {
        self.document
    }
}

/// The intent as it was written, and the core intent that it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntentField<'d> {
    /// As it was written.
    pub written: &'d str,
    /// The core intent; nothing for an unknown one.
    pub meaning: Option<Intent>,
}

impl<'d> IntentField<'d> {
    /// Reads an intent; legacy ones mean a core one (INT-002), unknown ones are kept (INT-003).
    pub fn parse(written: &'d str) -> Self {
        let meaning = Intent::from_wire(written).or_else(|| legacy(written));
        Self { written, meaning }
    }

    /// Whether it is one of v1.0.
    pub fn is_legacy(&self) -> bool {
        legacy(self.written).is_some()
    }

    /// The spelling of the core intent, or what was written.
    pub fn meaning_str(&self) -> &'d str {
        match self.meaning {
            Some(meaning) => meaning.as_str(),
            None => self.written,
        }
    }
}

fn legacy(written: &str) -> Option<Intent> {
    LEGACY_INTENTS
        .iter()
        .find(|(name, _)| *name == written)
        .map(|(_, meaning)| *meaning)
}

/// A session: a time and a word, as in `2025-10-09T16Z abc123`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Session<'d> {
    /// As it was written.
    pub text: &'d str,
}

impl<'d> Session<'d> {
    /// A session as it was written; no spelling is rejected (ENV-028).
    pub const fn of(text: &'d str) -> Self {
        Self { text }
    }

    /// The time in front, if it is one.
    pub fn time(&self) -> Option<Timestamp> {
        self.parts().0
    }

    /// The word behind the time, or all of a session in another spelling.
    pub fn word(&self) -> &'d str {
        self.parts().1
    }

    /// Whether it is a time, to the hour or finer, and one word.
    pub fn is_usual(&self) -> bool {
        let to_the_hour = matches!(self.text.as_bytes().get(10), Some(b'T' | b't'));
        let (time, word) = self.parts();
        time.is_some() && to_the_hour && !word.is_empty() && !word.contains([' ', '\t'])
    }

    fn parts(&self) -> (Option<Timestamp>, &'d str) {
        let (head, tail) = split_at_blank(self.text);
        match Timestamp::parse(head) {
            Some(time) => (Some(time), crate::text::trim_start(tail)),
            None => (None, self.text),
        }
    }
}

/// The text before the first space or tab, and from there on.
fn split_at_blank(text: &str) -> (&str, &str) {
    let at = text.bytes().position(|b| matches!(b, b' ' | b'\t'));
    text.split_at_checked(at.unwrap_or(text.len()))
        .unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_in_every_spelling() {
        let hour = Session::of("2025-10-09T16Z abc123");
        assert_eq!(
            (hour.time().unwrap().to_string().as_str(), hour.word()),
            ("2025-10-09T16:00:00Z", "abc123")
        );
        let minute = Session::of("2025-10-08T07:15Z 3b2a9c");
        assert_eq!(
            (minute.time().unwrap().to_string().as_str(), minute.word()),
            ("2025-10-08T07:15:00Z", "3b2a9c")
        );
        assert_eq!(Session::of("my session").word(), "my session");
        assert_eq!(Session::of("2025-10-08").word(), "");
    }

    #[test]
    fn legacy_intents_mean_core_ones() {
        for (written, meaning) in [
            ("QUESTION", Intent::Request),
            ("ANSWER", Intent::Respond),
            ("STATUS", Intent::Broadcast),
            ("PATCH", Intent::Request),
            ("NOTE", Intent::Broadcast),
        ] {
            let field = IntentField::parse(written);
            assert_eq!(
                (field.written, field.meaning, field.is_legacy()),
                (written, Some(meaning), true)
            );
        }
        assert_eq!(IntentField::parse("SING").meaning_str(), "SING");
        assert_eq!(IntentField::parse("request").meaning, None);
    }
}
