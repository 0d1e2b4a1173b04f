//! The rules of indexing, over facts in memory.

use crosstalk_envelope::Timestamp;
use crosstalk_envelope::reply::ReceivedIds;
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{
    Arrival, Index, IndexChanges, IndexFacts, IndexedMessage, IndexedThread, Side, StoredMessage,
    Wait, Way,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// What is indexed, in maps that are searched from end to end.
#[derive(Clone, Debug, Default, PartialEq)]
struct Indexed {
    messages: BTreeMap<u64, IndexedMessage>,
    threads: BTreeMap<String, IndexedThread>,
    answers: BTreeMap<u64, Vec<String>>,
}

impl Indexed {
    fn all(&self, is_it: impl Fn(&&IndexedMessage) -> bool) -> Vec<IndexedMessage> {
        self.messages.values().filter(is_it).cloned().collect()
    }

    /// Indexes messages together, as those with the next positions. Which message each settles.
    fn index(&mut self, batch: &[Arrival]) -> Vec<Option<String>> {
        let mut index = Index::new(&*self);
        let next = self.messages.last_key_value().map_or(1, |(seq, _)| seq + 1);
        let mut settled = Vec::new();
        for (seq, arrival) in (next..).zip(batch) {
            let mut arrival = arrival.clone();
            let thread = index.place(&mut arrival).unwrap().thread;
            settled.push(index.add(seq, &arrival, thread).unwrap());
        }
        let changes = index.finish().unwrap();
        self.apply(changes);
        settled
    }

    fn apply(&mut self, changes: IndexChanges) {
        for change in changes.messages {
            let seq = change.message.seq;
            let answers = self.answers.entry(seq).or_default();
            if change.forgets_answers {
                answers.clear();
            }
            answers.extend(change.answered_by);
            answers.sort();
            self.messages.insert(seq, change.message);
        }
        for change in changes.threads {
            match change.thread {
                Some(thread) => self.threads.insert(change.id, thread),
                None => self.threads.remove(&change.id),
            };
        }
    }

    fn of(messages: &[Arrival]) -> Self {
        let mut indexed = Self::default();
        indexed.index(messages);
        indexed
    }

    fn wait(&self, id: &str) -> Wait {
        self.all(|m| m.id == id)[0].wait
    }

    fn thread_of(&self, id: &str) -> String {
        self.all(|m| m.id == id)[0].thread.clone()
    }
}

impl IndexFacts for &Indexed {
    type Error = Infallible;

    fn message(&self, id: &str) -> Result<Option<IndexedMessage>, Infallible> {
        Ok(self.all(|m| m.id == id).pop())
    }

    fn thread(&self, id: &str) -> Result<Option<IndexedThread>, Infallible> {
        Ok(self.threads.get(id).cloned())
    }

    fn messages_of(&self, thread: &str) -> Result<Vec<IndexedMessage>, Infallible> {
        Ok(self.all(|m| m.thread == thread))
    }

    fn waiting_in(&self, thread: &str, limit: usize) -> Result<Vec<IndexedMessage>, Infallible> {
        let mut waiting = self.all(|m| m.thread == thread && m.wait != Wait::Nobody);
        waiting.truncate(limit);
        Ok(waiting)
    }

    fn waiting_anywhere(&self, limit: usize) -> Result<Vec<IndexedMessage>, Infallible> {
        let mut waiting = self.all(|m| matches!(m.wait, Wait::Carry | Wait::Them));
        waiting.reverse();
        waiting.truncate(limit);
        Ok(waiting)
    }

    fn answers_to(&self, id: &str) -> Result<Vec<IndexedMessage>, Infallible> {
        Ok(self.all(|m| m.parent.as_deref() == Some(id)))
    }

    fn latest_of_session(&self, session: &str) -> Result<Option<IndexedMessage>, Infallible> {
        let all = self.all(|m| m.session.as_deref() == Some(session));
        Ok(all.into_iter().max_by_key(|m| (m.counts, m.seq)))
    }

    fn thread_asks(&self, thread: &str) -> Result<bool, Infallible> {
        Ok(self
            .messages_of(thread)?
            .iter()
            .any(|m| m.asks != Wait::Nobody))
    }

    fn session_asks(&self, session: &str) -> Result<bool, Infallible> {
        let is_in = |m: &&IndexedMessage| m.session.as_deref() == Some(session);
        Ok(self.all(is_in).iter().any(|m| m.asks != Wait::Nobody))
    }

    fn answered_by(&self, seq: u64) -> Result<Vec<String>, Infallible> {
        Ok(self.answers.get(&seq).cloned().unwrap_or_default())
    }

    fn recipients(&self, _: u64) -> Result<Vec<String>, Infallible> {
        Ok(Vec::new())
    }
}

/// A message with headers of its own, such as `thread: T1\n`.
fn message(id: &str, direction: &str, headers: &str, intent: &str) -> Arrival {
    let text = format!(
        "[[{direction} v1]]\nuser: u\n{headers}message: {id}\ncontext: c\nintent: {intent}\nbody: |\n  Words.\nsig: none\n[[END]]\n"
    );
    Arrival::recall(StoredMessage {
        text,
        received: None,
        truncated: false,
        verdict: VerdictWord::Unsigned,
        pkid: None,
        side: Side::Between,
        way: Way::Relayed,
        at: Timestamp::from_millis(1000),
        message: Some(id.to_owned()),
        answers: None,
        generated: ReceivedIds {
            thread: format!("thread of {id}"),
            message: format!("own {id}"),
        },
    })
}

#[test]
fn answer_settles_its_question_and_names_it() {
    let question = message("M1", "ANN→BOB", "thread: T1\n", "REQUEST");
    let mut indexed = Indexed::of(&[question]);
    assert_eq!(indexed.wait("M1"), Wait::Carry);
    assert_eq!(indexed.threads["T1"].waiting, 1);
    let stranger = message("M2", "EVE→ANN", "thread: T1\nparent: M1\n", "RESPOND");
    assert_eq!(indexed.index(&[stranger]), [None]);
    let answer = message("M3", "BOB→ANN", "thread: T1\nparent: M1\n", "RESPOND");
    assert_eq!(indexed.index(&[answer]), [Some("M1".to_owned())]);
    assert_eq!(indexed.wait("M1"), Wait::Nobody);
    assert_eq!(indexed.threads["T1"].waiting, 0);
}

#[test]
fn poll_waits_for_every_voter() {
    let targets = "thread: T1\n";
    let poll = message(
        "P",
        "ANN→VOTERS",
        targets,
        "POLL\nmeta: routing\nTargets: [BOB, EVE]",
    );
    let vote = |id: &str, voter: &str| {
        message(
            id,
            &format!("{voter}→ANN"),
            "thread: T1\nparent: P\n",
            "RESPOND",
        )
    };
    let mut indexed = Indexed::of(&[poll, vote("V1", "BOB"), vote("V2", "BOB")]);
    assert_eq!(indexed.wait("P"), Wait::Carry);
    assert_eq!(indexed.index(&[vote("V3", "EVE")]), [Some("P".to_owned())]);
}

#[test]
fn answers_that_came_first_follow_their_question_into_its_thread() {
    let early = message("M2", "BOB→ANN", "parent: M1\n", "RESPOND");
    let earlier = message("M3", "ANN→BOB", "parent: M2\n", "BROADCAST");
    let mut indexed = Indexed::of(&[early, earlier]);
    assert_eq!(indexed.thread_of("M3"), "thread of M2");
    indexed.index(&[message("M1", "ANN→BOB", "thread: T1\n", "REQUEST")]);
    for id in ["M1", "M2", "M3"] {
        assert_eq!(indexed.thread_of(id), "T1");
    }
    assert_eq!(indexed.threads.keys().collect::<Vec<_>>(), ["T1"]);
    assert_eq!(indexed.wait("M1"), Wait::Nobody);
}

#[test]
fn only_a_party_closes_a_thread() {
    let question = message("M1", "ANN→BOB", "thread: T1\n", "REQUEST");
    let mut indexed = Indexed::of(&[question]);
    indexed.index(&[message("M2", "EVE→BOB", "thread: T1\n", "CLOSE")]);
    assert_eq!(indexed.threads["T1"].closed_at, None);
    assert_eq!(indexed.wait("M1"), Wait::Carry);
    indexed.index(&[message("M3", "BOB→ANN", "thread: T1\n", "CLOSE")]);
    assert!(indexed.threads["T1"].closed_at.is_some());
    assert_eq!(indexed.wait("M1"), Wait::Nobody);
}

#[test]
fn unsigned_close_leaves_verified_questions_open() {
    let mut question = message("M1", "ANN→BOB", "thread: T1\n", "REQUEST");
    question.verdict = VerdictWord::Verified;
    let close = message("M2", "BOB→ANN", "thread: T1\n", "CLOSE");
    let mut firm = message("M3", "BOB→ANN", "thread: T1\n", "CLOSE");
    firm.verdict = VerdictWord::Verified;
    let mut indexed = Indexed::of(&[question, close]);
    assert_eq!(indexed.wait("M1"), Wait::Carry);
    indexed.index(&[firm]);
    assert_eq!(indexed.wait("M1"), Wait::Nobody);
}

#[test]
fn thread_keeps_its_first_parties() {
    let one = |n: u32| {
        let direction = format!("ANN→agent://x/{n}");
        message(&format!("M{n}"), &direction, "thread: T1\n", "BROADCAST")
    };
    let indexed = Indexed::of(&(0..100).map(one).collect::<Vec<_>>());
    let parties = &indexed.threads["T1"].parties;
    assert_eq!(parties.len(), 64);
    assert_eq!(parties[0].address, "ANN");
    assert!(parties.iter().all(|p| p.counts));
}

/// Messages of a few ids, threads, sessions, parties and verdicts, so that they often mean each other.
fn messages() -> impl Strategy<Value = Vec<Arrival>> {
    let parents = prop::collection::vec((0..8_usize, 0..4_usize, 0..4_usize), 1..12);
    let kinds = prop::collection::vec((0..6_usize, 0..5_usize, 0..3_usize), 12);
    (parents, kinds).prop_map(|(parents, kinds)| {
        let all = parents.into_iter().zip(kinds).enumerate();
        let one = |(n, ((parent, thread, session), (intent, direction, kind)))| {
            let intents = ["REQUEST", "RESPOND", "CLOSE", "NACK", "POLL", "BROADCAST"];
            let directions = ["ANN→BOB", "BOB→ANN", "EVE→ANN", "ann→EVE", "BOB→EVE"];
            let mut headers = String::new();
            if session < 2 {
                headers += &format!("session: S{session}\n");
            }
            if thread < 2 {
                headers += &format!("thread: T{thread}\n");
            }
            if parent < 12 {
                headers += &format!("parent: M{parent}\n");
            }
            let id = format!("M{n}");
            let mut arrival = message(&id, directions[direction], &headers, intents[intent]);
            let (verdict, side, way) = [
                (VerdictWord::Unsigned, Side::Between, Way::Relayed),
                (VerdictWord::Verified, Side::ToMe, Way::Imported),
                (VerdictWord::Unsigned, Side::Mine, Way::Sent),
            ][kind];
            (arrival.verdict, arrival.side, arrival.way) = (verdict, side, way);
            arrival
        };
        all.map(one).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn portions_make_no_difference(messages in messages(), portion in 1..5_usize) {
        let together = Indexed::of(&messages);
        let mut apart = Indexed::default();
        for part in messages.chunks(portion) {
            apart.index(part);
        }
        // Where nobody has answered, nothing is recorded.
        let tidy = |mut indexed: Indexed| {
            indexed.answers.retain(|_, answered| !answered.is_empty());
            indexed
        };
        prop_assert_eq!(tidy(together), tidy(apart));
    }

    #[test]
    fn counting_again_changes_nothing(messages in messages()) {
        let indexed = Indexed::of(&messages);
        let mut again = indexed.clone();
        let mut index = Index::new(&indexed);
        for thread in indexed.threads.keys() {
            index.recount(thread).unwrap();
        }
        for message in indexed.messages.values() {
            index.judge(&message.id).unwrap();
        }
        let changes = index.finish().unwrap();
        again.apply(changes);
        prop_assert_eq!(&again.messages, &indexed.messages);
        prop_assert_eq!(again.threads, indexed.threads);
    }
}
