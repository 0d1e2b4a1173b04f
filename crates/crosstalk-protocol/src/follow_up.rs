//! Questions on the way to an answer: when an agent answers a question with an ESCALATE to a person or a REQUEST to another
//! agent, what comes back goes to the agent, and what the agent says then goes to the first asker.
//!
//! Everything is read from the messages that are kept, so that it does not matter what was restarted in between.

use crate::program::expects_answer;
use crate::relay::is_human;
use crate::store::{Record, is_same_party};
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::registry::Intent;

/// A message that another one goes back to, with what is known about it where it is kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Ancestor {
    /// The message.
    pub record: Record,
    /// Whether the agent sent it.
    pub is_own: bool,
    /// Whether the agent got it.
    pub is_for_agent: bool,
    /// Whether it was for the one who replies.
    pub is_for_replier: bool,
}

/// What an agent gets when somebody has replied to what it asked.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUp {
    /// What the agent was asked first. Its next answer belongs to this message.
    pub question: Record,
    /// What it asked then: an ESCALATE or a REQUEST.
    pub inquiry: Record,
    /// The reply.
    pub reply: Record,
    /// Whether the relay takes what is said in the name of the replier only with a credential of that one.
    pub has_credential: bool,
}

impl FollowUp {
    /// What a reply follows up, if it does. `ancestors` are its parent, the parent of that, and so on.
    ///
    /// 1. The reply is a RESPOND, a NACK or an ERROR: who asks back is answered like everybody else.
    /// 2. The nearest ESCALATE or REQUEST among its ancestors that the agent sent was for the one who replies.
    /// 3. Before that, the agent got a message that asks; one from somebody else than the replier, if there is one.
    /// 4. Neither the question nor what the agent asked has expired.
    pub fn find(reply: &Record, ancestors: Vec<Ancestor>, now: Timestamp) -> Option<Self> {
        let is_reply = |meaning: Intent| meaning.answers() && meaning != Intent::Ack;
        if !reply.meaning.is_some_and(is_reply) {
            return None;
        }
        let is_own = |a: &Ancestor| a.is_own && is_inquiry(a.record.meaning);
        let mut rest = ancestors.into_iter();
        let inquiry = rest.find(is_own).filter(|e| e.is_for_replier)?;
        let asks = |a: &Ancestor| expects_answer(a.record.meaning) && a.is_for_agent && !a.is_own;
        let mut questions: Vec<Record> = rest.filter(asks).map(|a| a.record).collect();
        let is_others = |q: &Record| !is_same_party(&q.sender, &reply.sender);
        let place = questions.iter().position(is_others).unwrap_or(0);
        let question = (place < questions.len()).then(|| questions.swap_remove(place))?;
        let is_over = question.is_expired(now) || inquiry.record.is_expired(now);
        (!is_over).then(|| Self {
            question,
            inquiry: inquiry.record,
            reply: reply.clone(),
            has_credential: false,
        })
    }

    /// The same, where it is known whether the relay asks for credentials.
    #[must_use]
    pub fn with_credential(self, has_credential: bool) -> Self {
        Self {
            has_credential,
            ..self
        }
    }
}

/// Whether an agent that sends a message with this intent in answer to a question goes on when the reply comes.
pub const fn is_inquiry(meaning: Option<Intent>) -> bool {
    matches!(meaning, Some(Intent::Escalate | Intent::Request))
}

/// Whether a person may reply to an ESCALATE: the one whom it names; if it names none, a person whom the relay chose and
/// delivered it to.
///
/// ```
/// use crosstalk_protocol::may_reply_to_escalation;
/// let (ann, bob) = ("human://acme.example/ann", "human://acme.example/bob");
/// let reached = |address: &str| address == ann;
/// assert!(may_reply_to_escalation(ann, ann, |_| false));
/// assert!(may_reply_to_escalation("SUPPORT", ann, reached) && !may_reply_to_escalation("SUPPORT", bob, reached));
/// assert!(!may_reply_to_escalation(ann, bob, |_| true));
/// assert!(!may_reply_to_escalation("SUPPORT", "claude://code/api", |_| true));
/// ```
pub fn may_reply_to_escalation(
    asked: &str,
    replier: &str,
    reached: impl FnOnce(&str) -> bool,
) -> bool {
    is_same_party(asked, replier) || (!is_human(asked) && is_human(replier) && reached(replier))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tests::record;
    use crate::verdict::VerdictWord;

    const NOW: Timestamp = Timestamp::from_millis(0);
    const BOSS: &str = "human://acme.example/boss";

    fn message(id: &str, from: &str, meaning: Intent) -> Record {
        Record {
            id: id.into(),
            sender: from.into(),
            meaning: Some(meaning),
            ..record(VerdictWord::Unsigned, "")
        }
    }

    fn ancestor(id: &str, from: &str, meaning: Intent) -> Ancestor {
        Ancestor {
            record: message(id, from, meaning),
            is_own: from == "BOT",
            is_for_agent: from != "BOT",
            is_for_replier: from == "BOT",
        }
    }

    fn found(reply: Intent, ancestors: &[(&str, &str, Intent)]) -> Option<(String, String)> {
        let ancestors = ancestors.iter().map(|(id, from, m)| ancestor(id, from, *m));
        let follow_up = FollowUp::find(&message("R", BOSS, reply), ancestors.collect(), NOW)?;
        Some((follow_up.question.id, follow_up.inquiry.id))
    }

    #[test]
    fn a_reply_goes_back_to_the_first_question() {
        use Intent::{Ack, Error, Escalate, Nack, Request, Respond};
        let once = [("E", "BOT", Escalate), ("Q", "ANN", Request)];
        let wanted = Some(("Q".to_owned(), "E".to_owned()));
        for (reply, is_one) in [
            (Respond, true),
            (Nack, true),
            (Error, true),
            (Request, false),
            (Ack, false),
        ] {
            assert_eq!(found(reply, &once), wanted.clone().filter(|_| is_one));
        }
        // The agent asked the person again.
        let twice = [
            ("E2", "BOT", Escalate),
            ("R1", BOSS, Respond),
            ("E1", "BOT", Escalate),
            ("Q", "ANN", Request),
        ];
        assert_eq!(found(Respond, &twice), Some(("Q".into(), "E2".into())));
        // The person asked back, and the agent answered.
        let back = [
            ("A", "BOT", Respond),
            ("B", BOSS, Request),
            ("E", "BOT", Escalate),
            ("Q", "ANN", Request),
        ];
        assert_eq!(found(Respond, &back), wanted);
        // The person who decides is the one who asked.
        let own = [("E", "BOT", Escalate), ("Q", BOSS, Request)];
        assert_eq!(found(Respond, &own), wanted);
        // The agent asked another agent, or asked back.
        let other = [("E", "BOT", Request), ("Q", "ANN", Request)];
        assert_eq!(found(Respond, &other), wanted);
        let asked_back = [("E", "BOT", Request), ("Q", BOSS, Request)];
        assert_eq!(found(Respond, &asked_back), wanted);
        for none in [
            &[("E", "BOT", Escalate)][..],
            &[("E", "BOT", Respond), ("Q", "ANN", Request)],
            &[("E", "EVE", Escalate), ("Q", "ANN", Request)],
            &[("E", "BOT", Escalate), ("Q", "ANN", Respond)],
            &[("Q", "ANN", Request)],
            &[],
        ] {
            assert_eq!(found(Respond, none), None, "{none:?}");
        }
    }

    #[test]
    fn only_the_person_who_was_asked_replies() {
        let reply = message("R", "human://acme.example/eve", Intent::Respond);
        let question = ancestor("Q", "ANN", Intent::Request);
        let mut escalation = ancestor("E", "BOT", Intent::Escalate);
        escalation.is_for_replier = false;
        assert_eq!(
            FollowUp::find(&reply, vec![escalation, question], NOW),
            None
        );
    }
}
