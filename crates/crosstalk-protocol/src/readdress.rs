//! An answer that a model addressed wrongly, put right where it is pasted.
//!
//! Models copy the direction line of the question instead of swapping its sides, and sign with names that nobody asked. A
//! person who pastes the answer knows who gave it. A signed message is never changed.

use crate::store::{Record, Side, Wait, is_same_party};
use crosstalk_envelope::Document;
use crosstalk_envelope::registry::Intent;

/// The text of an unsigned answer with the sides that it means, or nothing if it stays as it is.
///
/// 1. It is from the one whom the person names (`from`), to the sender of the question.
/// 2. If its sides are those of the question, the model did not swap them.
pub fn readdressed(
    document: &Document<'_>,
    question: &Record,
    from: Option<&str>,
) -> Option<String> {
    let is_unsigned = matches!(document.sig(), None | Some("none"));
    // An intent that nobody knows is a word that the model forgot or translated. Who names the sender knows that it is an
    // answer, whatever intent the model copied.
    let answers = match document.envelope().meaning() {
        Some(Intent::Respond | Intent::Nack) | None => true,
        Some(_) => from.is_some(),
    };
    if !is_unsigned || !answers || document.is_truncated() || question.wait == Wait::Me {
        return None;
    }
    let is_unswapped = is_same_party(document.sender(), &question.sender)
        && is_same_party(document.receiver(), &question.receiver)
        && !is_same_party(&question.sender, &question.receiver);
    let sender = match from {
        Some(from) => from,
        None if is_unswapped => &question.receiver,
        None => return None,
    };
    if is_same_party(document.sender(), sender) && !is_unswapped {
        return None;
    }
    let (_, rest) = document.text().split_once("]]")?;
    let version = document.version();
    let receiver = answer_receiver(question, sender);
    Some(format!("[[{sender}→{receiver} {version}]]{rest}"))
}

/// Whom an answer is for that a person files by hand: the sender of the question. Of a message to the person it is the
/// person, and nobody answers a message of their own.
pub fn answer_receiver<'q>(question: &'q Record, sender: &str) -> &'q str {
    match question.side {
        Side::ToMe => &question.receiver,
        _ if is_same_party(&question.sender, sender) => &question.receiver,
        Side::Mine | Side::Between => &question.sender,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tests::record;
    use crate::verdict::VerdictWord;
    use crosstalk_envelope::Reading;

    fn sides(direction: &str, sig: &str, from: Option<&str>) -> Option<(String, String)> {
        let text = format!(
            "[[{direction} v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\ncontext: ports\nintent: RESPOND\nbody: |\n  8443.\nsig: {sig}\n[[END]]\n"
        );
        let question = Record {
            sender: "KALLE".into(),
            receiver: "CLAUDE".into(),
            wait: Wait::Them,
            ..record(VerdictWord::Unsigned, "")
        };
        let document = Document::parse(&text, Reading::Paste);
        let fixed = readdressed(&document, &question, from)?;
        let read = Document::parse(&fixed, Reading::Strict);
        assert!(read.is_accepted(), "{fixed}");
        assert_eq!(read.body_text(), document.body_text());
        Some((read.sender().to_owned(), read.receiver().to_owned()))
    }

    #[test]
    fn an_answer_gets_the_sides_that_it_means() {
        let claude = Some(("CLAUDE".to_owned(), "KALLE".to_owned()));
        assert_eq!(sides("KALLE→CLAUDE", "none", None), claude);
        assert_eq!(sides("YOU→KALLE", "none", Some("CLAUDE")), claude);
        assert_eq!(sides("CLAUDE→KALLE", "none", None), None);
        assert_eq!(sides("CLAUDE→KALLE", "none", Some("claude")), None);
        assert_eq!(sides("GPT→KALLE", "none", None), None);
    }

    #[test]
    fn signed_message_is_never_readdressed() {
        let sig = format!("ed25519:pkid=a@b.example;sig={}A==", "A".repeat(85));
        assert_eq!(sides("KALLE→CLAUDE", &sig, Some("CLAUDE")), None);
    }
}
