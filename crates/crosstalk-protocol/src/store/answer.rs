//! Settling: whether an answer settles a question.

use super::arrival::{Arrival, Wait};
use super::party::{is_same_party, may_answer};
use super::record::Record;
use crate::verdict::VerdictWord;
use crosstalk_envelope::Intent;

/// The parts of a question that decide whether a message answers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking<'a> {
    /// The right side of its direction line.
    pub receiver: &'a str,
    /// The parties that a POLL or a BROADCAST asks.
    pub targets: Vec<&'a str>,
    /// Whether it is a POLL: then it asks its targets alone.
    pub is_poll: bool,
    /// The party that has to act on it until it is settled.
    pub wait: Wait,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
}

/// The parts of an answer that decide whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answering<'a> {
    /// The left side of its direction line.
    pub sender: &'a str,
    /// Whether it was written here.
    pub is_mine: bool,
    /// The result of checking its signature.
    pub verdict: VerdictWord,
}

impl<'a> Asking<'a> {
    /// Whether it asks the sender of another message.
    pub fn asks(&self, sender: &str) -> bool {
        let receiver = Some(self.receiver).filter(|_| !self.is_poll || self.targets.is_empty());
        let mut asked = receiver.into_iter().chain(self.targets.iter().copied());
        asked.any(|a| may_answer(a, sender))
    }

    /// Whether it waits for the sender of another message: it asks them, and they are not among those who have answered. A
    /// poll waits on for the others.
    pub fn waits_for(&self, sender: &str, answered: &[String]) -> bool {
        self.asks(sender) && !answered.iter().any(|a| may_answer(a, sender))
    }
}

impl Answering<'_> {
    /// Whether it settles a question, if its intent does at all. Only who was asked can: what waits for me is settled by
    /// what was written here, or by a copy of it that is signed as well as the question; anything else by those whom it
    /// asks, or from here.
    pub fn settles(&self, question: &Asking<'_>) -> bool {
        match question.wait {
            _ if self.is_mine => true,
            Wait::Me => {
                is_same_party(self.sender, question.receiver)
                    && rank(self.verdict) <= rank(question.verdict)
            }
            Wait::Nobody | Wait::Carry | Wait::Them => question.asks(self.sender),
        }
    }
}

/// How much a signature says: a trusted key, a key, nothing.
const fn rank(verdict: VerdictWord) -> u8 {
    match verdict {
        VerdictWord::Verified => 0,
        VerdictWord::FirstContact | VerdictWord::Unbound => 1,
        _ => 2,
    }
}

impl Record {
    /// What counts of a kept message as a question.
    pub fn asking(&self) -> Asking<'_> {
        Asking {
            receiver: &self.receiver,
            targets: Vec::new(),
            is_poll: self.meaning == Some(Intent::Poll),
            wait: self.wait,
            verdict: self.verdict,
        }
    }
}

impl Arrival {
    /// What counts of it as a question.
    pub fn asking(&self) -> Asking<'_> {
        Asking {
            receiver: &self.receiver,
            targets: self.targets.iter().map(String::as_str).collect(),
            is_poll: self.meaning == Some(Intent::Poll),
            wait: self.wait(),
            verdict: self.verdict,
        }
    }

    /// What counts of it as an answer.
    pub fn answering(&self) -> Answering<'_> {
        Answering {
            sender: &self.sender,
            is_mine: self.is_written_here(),
            verdict: self.verdict,
        }
    }

    /// Whether it settles a question that it answers.
    pub fn settles_question(&self, question: &Asking<'_>) -> bool {
        self.settles() && self.answering().settles(question)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_was_asked_can_settle() {
        use VerdictWord::{FirstContact, UnknownKey, Unsigned, Verified};
        use Wait::{Carry, Me, Them};
        // The question: who has to act, its verdict. The answer: its sender, whether it is mine, its verdict.
        for (wait, asked, sender, is_mine, verdict, settles) in [
            (Them, Verified, "claude", false, Unsigned, true),
            (Them, Unsigned, "claude://chat/7", false, Unsigned, true),
            (Them, Unsigned, "BOB", false, Unsigned, true),
            (Them, Unsigned, "chatgpt", false, Unsigned, true),
            (Them, Unsigned, "MALLORY", false, Verified, false),
            (Them, Unsigned, "MALLORY", true, Unsigned, true),
            (Carry, Verified, "CLAUDE", false, Unsigned, true),
            (Carry, Verified, "MALLORY", false, Verified, false),
            (Me, Verified, "ME", true, Unsigned, true),
            (Me, Unsigned, "Claude", false, Unsigned, true),
            (Me, Unsigned, "Claude", false, UnknownKey, true),
            (Me, Unsigned, "Claude", false, Verified, true),
            (Me, FirstContact, "Claude", false, Unsigned, false),
            (Me, Verified, "Claude", false, FirstContact, false),
            (Me, Verified, "Claude", false, Verified, true),
            // Another target answers for itself, not for me.
            (Me, Unsigned, "BOB", false, Verified, false),
            (Me, Unsigned, "claude://chat/7", false, Verified, false),
            (Me, Unsigned, "MALLORY", false, Verified, false),
        ] {
            let question = Asking {
                receiver: "CLAUDE",
                targets: vec!["bob", "chatgpt://thread/x"],
                is_poll: false,
                wait,
                verdict: asked,
            };
            let answer = Answering {
                sender,
                is_mine,
                verdict,
            };
            assert_eq!(
                answer.settles(&question),
                settles,
                "{question:?} {answer:?}"
            );
        }
    }

    #[test]
    fn a_poll_waits_for_its_targets_until_they_have_answered() {
        let poll = Asking {
            receiver: "VOTERS",
            targets: vec!["CLAUDE", "chatgpt://thread/x"],
            is_poll: true,
            wait: Wait::Them,
            verdict: VerdictWord::Unsigned,
        };
        for (sender, answered, waits) in [
            ("claude", &[][..], true),
            ("claude", &["claude"], false),
            ("CHATGPT", &["claude"], true),
            ("CHATGPT", &["chatgpt://thread/x"], false),
            ("VOTERS", &[], false),
            ("GEMINI", &[], false),
        ] {
            let answered: Vec<String> = answered.iter().map(|a| (*a).to_owned()).collect();
            assert_eq!(
                poll.waits_for(sender, &answered),
                waits,
                "{sender} {answered:?}"
            );
        }
    }
}
