//! Finding the open question of an answer whose ids are wrong.
//!
//! Models forget ids, make them up, write a thread where a message belongs, and copy those of the example that taught them
//! the format. An answer of an asked party belongs to the question that waits for it; if several do, a person decides. An
//! answer that names a question which does not wait for its sender, because the sender has answered it or was not asked,
//! belongs to the only question of the thread that does.

use super::arrival::Arrival;
use super::party::is_same_party;
use crate::primer::is_example_id;

/// The facts of a store about the ids in a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedIds {
    /// Whether the message is here that it says it answers.
    pub parent_is_message: bool,
    /// Whether a thread is here that has the id of the message that it says it answers.
    pub parent_is_thread: bool,
    /// Whether the thread is here that it names, and something was asked in it. A thread without a question holds answers that
    /// were lost before.
    pub thread_asks: bool,
    /// The thread of a message that has the id of the thread that it names.
    pub of_thread_as_message: Option<String>,
    /// Whether something was asked in its session. An answer that made the session up does not count.
    pub session_asks: bool,
    /// The thread of the question that it says it answers, if that one does not wait for its sender: they have answered it
    /// before, or it asks somebody else. A poll that asks its sender is left out: a voter may vote again.
    pub not_waiting: Option<String>,
}

/// Where the question of an answer is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Nowhere: its ids say what it answers, or it answers nothing.
    None,
    /// In the thread of the message.
    Here,
    /// In another thread, which it named in a wrong place.
    Thread(String),
    /// Among all that wait: nothing that it names is known.
    Everywhere,
    /// In the thread of a question that does not wait for its sender: it may mean the only one that does.
    Next(String),
}

/// A question that waits for the sender of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateQuestion {
    /// Its id.
    pub id: String,
    /// The party that asks.
    pub sender: String,
}

/// The question that an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meant {
    /// None that waits for its sender.
    None,
    /// This one.
    One(String),
    /// One of these.
    Several(Vec<String>),
}

impl Arrival {
    /// The question that it means, among those that wait for its sender: the one that it names, in whatever place; else the
    /// only one by whom it is addressed to; else the only one.
    pub fn choose_question(&self, open: &[CandidateQuestion]) -> Meant {
        let is_named = |q: &&CandidateQuestion| Some(&q.id) == self.thread.as_ref();
        if let Some(named) = open.iter().find(is_named) {
            return Meant::One(named.id.clone());
        }
        let is_by_receiver = |q: &&CandidateQuestion| is_same_party(&q.sender, &self.receiver);
        let addressed: Vec<&CandidateQuestion> = open.iter().filter(is_by_receiver).collect();
        let left = match addressed.is_empty() {
            true => open.iter().collect(),
            false => addressed,
        };
        match left.as_slice() {
            [] => Meant::None,
            [only] => Meant::One(only.id.clone()),
            several => Meant::Several(several.iter().map(|q| q.id.clone()).collect()),
        }
    }

    /// The only question that waits for its sender, where it names one that does not.
    pub fn choose_next(&self, open: &[CandidateQuestion]) -> Meant {
        match open {
            [only] => Meant::One(only.id.clone()),
            _ => Meant::None,
        }
    }

    /// Where its question is looked for. Only what was pasted and is not signed may have ids that are made up
    /// ([`Self::may_make_up`]); anything else is looked for in its own thread, if it names no message.
    pub fn look_for_question(&self, known: &NamedIds) -> Lookup {
        let is_answer = self.reads_as_answer() && self.counts();
        if let Some(thread) = &known.not_waiting
            && is_answer
            && self.answers.is_none()
            && self.may_make_up()
        {
            return Lookup::Next(thread.clone());
        }
        if !self.answers_unnamed(known.parent_is_message) {
            return Lookup::None;
        }
        if !self.may_make_up() {
            return Lookup::Here;
        }
        if let Some(thread) = &known.of_thread_as_message {
            return Lookup::Thread(thread.clone());
        }
        if let Some(parent) = self.parent.as_ref().filter(|_| known.parent_is_thread) {
            return Lookup::Thread(parent.clone());
        }
        let is_real = |id: &Option<String>| id.as_deref().is_some_and(|id| !is_example_id(id));
        let is_at_home = (known.thread_asks && is_real(&self.thread))
            || (known.session_asks && is_real(&self.session));
        match is_at_home {
            true => Lookup::Here,
            false => Lookup::Everywhere,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VerdictWord;
    use crate::primer::{Assistant, example};
    use crate::store::{Side, StoredMessage, ThreadHints, Wait, Way};
    use crosstalk_envelope::Timestamp;
    use crosstalk_envelope::reply::ReceivedIds;

    fn answer(text: &str, way: Way) -> Arrival {
        Arrival::recall(StoredMessage {
            text: text.to_owned(),
            received: None,
            truncated: false,
            verdict: VerdictWord::Unsigned,
            pkid: None,
            side: Side::ToMe,
            way,
            at: Timestamp::from_millis(0),
            message: None,
            answers: None,
            generated: ReceivedIds {
                thread: "T".into(),
                message: "M".into(),
            },
        })
    }

    fn headers(lines: &str) -> String {
        format!(
            "[[A→B v1]]\nuser: a\n{lines}context: c\nintent: RESPOND\nbody: |\n  Yes.\nsig: none\n[[END]]\n"
        )
    }

    #[test]
    fn ids_that_nobody_knows_say_nothing() {
        let nothing = NamedIds::default();
        let unknown = answer(&headers("thread: T9\nparent: M9\n"), Way::Pasted);
        assert_eq!(unknown.look_for_question(&nothing), Lookup::Everywhere);
        let known = |change: fn(&mut NamedIds)| {
            let mut known = NamedIds::default();
            change(&mut known);
            known
        };
        for (known, wanted) in [
            (known(|k| k.parent_is_message = true), Lookup::None),
            (
                known(|k| {
                    k.parent_is_message = true;
                    k.not_waiting = Some("T1".into());
                }),
                Lookup::Next("T1".into()),
            ),
            (known(|k| k.thread_asks = true), Lookup::Here),
            (
                known(|k| k.parent_is_thread = true),
                Lookup::Thread("M9".into()),
            ),
            (
                known(|k| k.of_thread_as_message = Some("T1".into())),
                Lookup::Thread("T1".into()),
            ),
        ] {
            assert_eq!(unknown.look_for_question(&known), wanted, "{known:?}");
        }
        let imported = answer(&headers("thread: T9\n"), Way::Imported);
        assert_eq!(imported.look_for_question(&nothing), Lookup::Here);
        let again = known(|k| k.not_waiting = Some("T1".into()));
        let signed = answer(&headers("parent: M9\n"), Way::Relayed);
        assert_eq!(signed.look_for_question(&again), Lookup::None);
    }

    #[test]
    fn an_answer_to_an_answered_question_means_the_only_other_one() {
        let answer = answer(&headers("parent: M9\n"), Way::Pasted);
        let open = |ids: &[&str]| -> Vec<CandidateQuestion> {
            let of = |id: &&str| CandidateQuestion {
                id: (*id).to_owned(),
                sender: "B".into(),
            };
            ids.iter().map(of).collect()
        };
        assert_eq!(answer.choose_next(&open(&[])), Meant::None);
        assert_eq!(answer.choose_next(&open(&["M1"])), Meant::One("M1".into()));
        assert_eq!(answer.choose_next(&open(&["M1", "M2"])), Meant::None);
    }

    #[test]
    fn chats_that_copy_the_example_have_threads_of_their_own() {
        let known = ThreadHints {
            named_is_known: true,
            of_session: Some("T1".into()),
            ..ThreadHints::default()
        };
        let copied = example(Assistant::Any).replace("RESPOND", "REQUEST");
        assert_eq!(answer(&copied, Way::Pasted).choose_thread(&known), "T");
        let own = headers("session: s1\n");
        assert_eq!(answer(&own, Way::Pasted).choose_thread(&known), "T1");
        // An archive keeps what it says.
        assert_ne!(answer(&copied, Way::Imported).choose_thread(&known), "T");
    }

    #[test]
    fn a_pasted_request_that_only_thanks_waits_for_nobody() {
        let of = |lines: &str, body: &str, way| {
            let text = headers(lines)
                .replace("RESPOND", "REQUEST")
                .replace("  Yes.", &format!("  {body}"));
            answer(&text, way).wait()
        };
        let thanks = "Thanks, got it!";
        assert_eq!(of("parent: M1\n", thanks, Way::Pasted), Wait::Nobody);
        assert_eq!(of("parent: M1\n", "And now?", Way::Pasted), Wait::Me);
        assert_eq!(of("", thanks, Way::Pasted), Wait::Me);
        assert_eq!(of("parent: M1\n", thanks, Way::Relayed), Wait::Me);
    }

    #[test]
    fn the_only_question_of_the_receiver_is_meant() {
        let open = |pairs: &[(&str, &str)]| -> Vec<CandidateQuestion> {
            let open = |(id, sender): &(&str, &str)| CandidateQuestion {
                id: (*id).to_owned(),
                sender: (*sender).to_owned(),
            };
            pairs.iter().map(open).collect()
        };
        // It is addressed to B.
        let answer = answer(&headers("thread: M3\n"), Way::Pasted);
        for (pairs, wanted) in [
            (&[][..], Meant::None),
            (&[("M1", "C")], Meant::One("M1".into())),
            (&[("M1", "C"), ("M2", "b")], Meant::One("M2".into())),
            (
                &[("M1", "B"), ("M2", "B")],
                Meant::Several(vec!["M1".into(), "M2".into()]),
            ),
            (&[("M1", "B"), ("M3", "C")], Meant::One("M3".into())),
        ] {
            assert_eq!(answer.choose_question(&open(pairs)), wanted, "{pairs:?}");
        }
    }

    #[test]
    fn ids_of_the_example_say_nothing_even_if_they_are_here() {
        let copied = answer(&example(Assistant::Any), Way::Pasted);
        let known = NamedIds {
            thread_asks: true,
            session_asks: true,
            ..NamedIds::default()
        };
        assert_eq!(copied.look_for_question(&known), Lookup::Everywhere);
    }

    #[test]
    fn only_a_copy_of_the_example_may_answer_twice() {
        let copied = example(Assistant::Any).replace("  Keep /v2/users.", "  Yes.");
        assert!(answer(&copied, Way::Pasted).copies_example());
        assert!(!answer(&copied, Way::Imported).copies_example());
        for own in [
            headers(""),
            headers("thread: T9\n"),
            copied.replace("parent: 01K74V70T0C4NWGX9QSZPNV2PB", "parent: M1"),
        ] {
            assert!(!answer(&own, Way::Pasted).copies_example(), "{own}");
        }
    }

    #[test]
    fn the_whole_of_a_message_has_its_head_and_begins_with_its_text() {
        let of = |lines: &str, body: &str| {
            answer(
                &headers(lines).replace("  Yes.", &format!("  {body}")),
                Way::Pasted,
            )
        };
        let mut cut = of("session: s1\n", "Yes, because");
        cut.truncated = true;
        let whole = of("session: s1\n", "Yes, because it is short.");
        assert!(whole.continues(&cut));
        assert!(!of("session: s2\n", "Yes, because it is short.").continues(&cut));
        assert!(!of("session: s1\n", "No.").continues(&cut));
        assert!(!cut.continues(&cut));
        cut.truncated = false;
        assert!(!whole.continues(&cut));
    }

    #[test]
    fn an_empty_answer_settles_nothing_and_gives_way_to_one_that_says_something() {
        let of = |blocks: &str, body: &str| {
            let text = headers("session: s1\n")
                .replace("body: |\n  Yes.\n", &format!("{blocks}body: |\n{body}"));
            answer(&text, Way::Pasted)
        };
        let empty = of("", "");
        assert!(empty.says_nothing() && !empty.settles());
        assert!(of("", "  \u{200b}\n").says_nothing());
        assert!(of("meta: routing\nPriority: high\n", "").says_nothing());
        let vote = of("meta: vote\nChoice: 443\n", "");
        assert!(!vote.says_nothing() && vote.settles());
        let text = of("", "  Yes.\n");
        assert!(text.settles() && text.completes(&empty) && !empty.completes(&text));
    }
}
