//! Random messages in a random order, against a list that is searched from end to end.

use super::Sqlite;
use crate::letter::{Letter, letter, nameless};
use crosstalk_envelope::{Intent, Timestamp};
use crosstalk_protocol::VerdictWord;
use crosstalk_protocol::store::{
    Arrival, AskedMessage, CandidateQuestion, Link, Lookup, Meant, Moved, NamedIds, Page,
    Placement, Record, Relocation, Search, Side, StoreOutcome, Thread, ThreadFilter, ThreadHints,
    Wait, Way, party, plan_relocation,
};
use crosstalk_store::SqliteStore;
use crosstalk_testing::tier;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// A message as the list has it.
#[derive(Clone, Debug)]
struct Row {
    arrival: Arrival,
    thread: String,
    dismissed: bool,
}

#[derive(Default)]
struct Model {
    rows: Vec<Row>,
}

/// Whether a thread is closed, and up to which messages nothing waits any more.
#[derive(Default)]
struct Course {
    closed_at: Option<Timestamp>,
    closed: Option<usize>,
    firm: Option<usize>,
}

impl Model {
    fn accept(&mut self, new: &Arrival) -> StoreOutcome {
        let by_id = |id: &str| self.rows.iter().position(|r| r.arrival.id() == id);
        let alike = |r: &Row| r.arrival.message.is_none() && r.arrival.digest == new.digest;
        let by_content = || self.rows.iter().position(alike);
        let place = match &new.message {
            Some(id) => by_id(id).or_else(by_content),
            None => by_content().or_else(|| by_id(new.id())),
        };
        let mut displaced = None;
        if let Some(place) = place {
            let row = &self.rows[place];
            let (verdict, spare) = (row.arrival.verdict, &row.arrival.generated.message);
            if row.arrival.digest == new.digest {
                return self.again(place, new);
            }
            if !new.displaces(verdict, row.arrival.side) || by_id(spare).is_some() {
                return StoreOutcome::Conflict {
                    id: row.arrival.id().to_owned(),
                    thread: row.thread.clone(),
                };
            }
            displaced = Some(spare.clone());
            self.rows[place].arrival.message = None;
        }
        let mut new = new.clone();
        let (mut candidates, named) = self.infer(&mut new);
        let hints = self.hints(&new);
        let thread = match (named, &hints.of_parent) {
            (Some(named), None) => named,
            _ => new.choose_thread(&hints),
        };
        let closed = self.course(&thread).closed_at;
        if new.answers_unnamed(hints.of_parent.is_some()) {
            let open = self.open_to(&new.sender, |r| r.thread == thread);
            candidates.extend(choose(&mut new, &open));
        }
        let answered = new.answered().map(str::to_owned);
        let waits = |model: &Self| {
            let mut rows = 0..model.rows.len();
            let place = rows.find(|n| Some(model.rows[*n].arrival.id()) == answered.as_deref());
            place.is_some_and(|n| model.wait(n) != Wait::Nobody)
        };
        let waited = waits(self);
        self.rows.push(Row {
            arrival: new.clone(),
            thread: thread.clone(),
            dismissed: false,
        });
        self.gather(self.rows.len() - 1);
        self.take_as_answer(self.rows.len() - 1);
        let is_settled = new.settles() && waited && !waits(self);
        StoreOutcome::Filed {
            id: new.id().to_owned(),
            thread,
            settled: answered.filter(|_| is_settled),
            closed,
            displaced,
            candidates,
        }
    }

    /// The question that an answer means whose ids are unknown, or the ones that it may mean, and the thread that it named in the
    /// wrong place.
    fn infer(&self, new: &mut Arrival) -> (Vec<String>, Option<String>) {
        let is_thread = |id: &Option<String>| {
            id.is_some() && self.rows.iter().any(|r| Some(&r.thread) == id.as_ref())
        };
        let message = |id: &Option<String>| {
            self.rows
                .iter()
                .find(|r| Some(r.arrival.id()) == id.as_deref())
        };
        let thread_is_thread = is_thread(&new.thread);
        let asks = |thread: &Option<String>| {
            let mut rows = self.rows.iter();
            rows.any(|r| Some(&r.thread) == thread.as_ref() && r.arrival.wait() != Wait::Nobody)
        };
        let session_asks = self
            .rows
            .iter()
            .any(|r| r.arrival.session == new.session && r.arrival.wait() != Wait::Nobody);
        let known = NamedIds {
            parent_is_message: message(&new.parent).is_some(),
            parent_is_thread: is_thread(&new.parent),
            thread_asks: asks(&new.thread),
            of_thread_as_message: message(&new.thread)
                .filter(|_| !thread_is_thread)
                .map(|r| r.thread.clone()),
            session_asks: new.session.is_some() && session_asks,
            not_waiting: self.not_waiting(new),
        };
        let (open, named) = match new.look_for_question(&known) {
            Lookup::None | Lookup::Here => return (Vec::new(), None),
            Lookup::Next(thread) => {
                let open = self.open_to(&new.sender, |r| r.thread == thread);
                if let Meant::One(id) = new.choose_next(&open) {
                    new.answers = Some(id);
                }
                return (Vec::new(), None);
            }
            Lookup::Thread(thread) => (
                self.open_to(&new.sender, |r| r.thread == thread),
                Some(thread),
            ),
            Lookup::Everywhere => {
                let mut open = self.open_to(&new.sender, |r| r.arrival.wait() != Wait::Me);
                open.reverse();
                (open, None)
            }
        };
        let candidates = choose(new, &open);
        let named = named.filter(|_| new.answers.is_none());
        (candidates, named)
    }

    /// The thread of the question that a message names, if that one does not wait for its sender.
    fn not_waiting(&self, new: &Arrival) -> Option<String> {
        let mut rows = self.rows.iter();
        let place = rows.position(|r| Some(r.arrival.id()) == new.parent.as_deref())?;
        let asking = self.rows[place].arrival.asking();
        let is_question = asking.wait != Wait::Nobody;
        let may_answer_again = asking.is_poll && asking.asks(&new.sender);
        let waits = asking.waits_for(&new.sender, &self.answered_by(place));
        (is_question && !may_answer_again && !waits).then(|| self.rows[place].thread.clone())
    }

    /// The parties whose answers to a message count.
    fn answered_by(&self, place: usize) -> Vec<String> {
        let question = &self.rows[place].arrival;
        let asking = question.asking();
        let answers = self.rows.iter().enumerate().filter(|(n, r)| {
            *n != place
                && r.arrival.answered() == Some(question.id())
                && r.arrival.settles_question(&asking)
        });
        let parties: BTreeSet<String> = answers.map(|(_, r)| party(&r.arrival.sender)).collect();
        parties.into_iter().collect()
    }

    /// Ends the wait of a message that was filed as the answer to a question, whatever its intent says.
    fn take_as_answer(&mut self, place: usize) {
        let answer = &self.rows[place].arrival;
        let mut rows = self.rows.iter().enumerate();
        let question = rows.find(|(n, r)| *n != place && Some(r.arrival.id()) == answer.answered());
        let Some((_, question)) = question else {
            return;
        };
        let asking = question.arrival.asking();
        let asks = answer.wait() != Wait::Nobody && asking.wait != Wait::Nobody;
        if asks && answer.counts() && answer.answers_instead_of_asking(&asking) {
            self.rows[place].dismissed = true;
        }
    }

    /// Files a message with another one. False if nothing changes.
    fn relocate(&mut self, id: &str, target: &str) -> bool {
        let place = |id: &str| self.rows.iter().position(|r| r.arrival.id() == id);
        let (Some(moved), Some(target)) = (place(id), place(target)) else {
            return false;
        };
        let placement = |thread: &str, answers: Option<&str>| Placement {
            thread: thread.to_owned(),
            answers: answers.map(str::to_owned),
        };
        let (row, target) = (&self.rows[moved], &self.rows[target]);
        let now = placement(&row.thread, row.arrival.answered());
        let then = placement(&target.thread, Some(target.arrival.id()));
        let links = self.rows.iter().filter(|r| r.thread == now.thread);
        let links: Vec<Link<'_>> = links
            .map(|r| Link {
                id: r.arrival.id(),
                parent: r.arrival.answered(),
            })
            .collect();
        let along = match plan_relocation(id, &links, (&now, &then)) {
            Relocation::Moves(along) => along,
            Relocation::Stays if row.arrival.answers != then.answers && !row.arrival.settles() => {
                Vec::new()
            }
            _ => return false,
        };
        if row.arrival.answers.is_some() && row.arrival.wait() != Wait::Nobody {
            self.rows[moved].dismissed = false;
        }
        self.rows[moved].arrival.answers = then.answers;
        self.rows[moved].thread.clone_from(&then.thread);
        self.take_as_answer(moved);
        for row in &mut self.rows {
            if along.iter().any(|id| id == row.arrival.id()) {
                row.thread.clone_from(&then.thread);
            }
        }
        true
    }

    /// What waits for a sender.
    fn open_to(&self, sender: &str, is_looked_at: impl Fn(&Row) -> bool) -> Vec<CandidateQuestion> {
        let open = (0..self.rows.len()).filter(|n| {
            let row = &self.rows[*n];
            is_looked_at(row)
                && self.wait(*n) != Wait::Nobody
                && row
                    .arrival
                    .asking()
                    .waits_for(sender, &self.answered_by(*n))
        });
        let question = |n: usize| CandidateQuestion {
            id: self.rows[n].arrival.id().to_owned(),
            sender: self.rows[n].arrival.sender.clone(),
        };
        open.map(question).collect()
    }

    fn again(&mut self, place: usize, new: &Arrival) -> StoreOutcome {
        let improved = new.improves(self.rows[place].arrival.verdict);
        if improved {
            let old = &mut self.rows[place].arrival;
            (old.verdict, old.pkid, old.text) = (new.verdict, new.pkid.clone(), new.text.clone());
            self.gather(place);
            self.take_as_answer(place);
        }
        let row = &self.rows[place];
        StoreOutcome::Known {
            id: row.arrival.id().to_owned(),
            thread: row.thread.clone(),
            since: row.arrival.at,
            improved,
        }
    }

    fn hints(&self, new: &Arrival) -> ThreadHints {
        let thread = |row: &Row| row.thread.clone();
        let parents = self
            .rows
            .iter()
            .filter(|r| Some(r.arrival.id()) == new.answered());
        let session = |r: &&Row| r.arrival.session.is_some() && r.arrival.session == new.session;
        let sessions = || self.rows.iter().rev().filter(session);
        let answer = self.rows.iter().filter(|r| {
            let leads =
                new.verdict != VerdictWord::Verified || r.arrival.verdict == VerdictWord::Verified;
            r.arrival.answered() == Some(new.id()) && !is_named(r) && leads
        });
        ThreadHints {
            of_parent: parents.map(thread).next(),
            named_is_known: self
                .rows
                .iter()
                .any(|r| Some(&r.thread) == new.thread.as_ref()),
            of_session: sessions()
                .find(|r| r.arrival.counts())
                .or_else(|| sessions().next())
                .map(thread),
            of_answer: answer.map(thread).min(),
        }
    }

    fn gather(&mut self, place: usize) {
        let (id, thread) = (
            self.rows[place].arrival.id().to_owned(),
            self.rows[place].thread.clone(),
        );
        let is_verified = |n: usize| self.rows[n].arrival.verdict == VerdictWord::Verified;
        if !self.rows[place].arrival.counts() {
            return;
        }
        let child = |n: &usize| {
            let r = &self.rows[*n];
            let follows = is_verified(place) || !is_verified(*n);
            r.arrival.answered() == Some(id.as_str())
                && !is_named(r)
                && r.thread != thread
                && follows
        };
        let mut moved: BTreeSet<usize> = (0..self.rows.len()).filter(child).collect();
        loop {
            let follows = |n: &usize| {
                moved.iter().any(|m| {
                    let (row, above) = (&self.rows[*n], &self.rows[*m]);
                    row.thread == above.thread
                        && row.arrival.answered() == Some(above.arrival.id())
                        && (is_verified(*m) || !is_verified(*n))
                })
            };
            let more: Vec<usize> = (0..self.rows.len())
                .filter(|n| !moved.contains(n))
                .filter(follows)
                .collect();
            if more.is_empty() {
                break;
            }
            moved.extend(more);
        }
        for n in moved {
            self.rows[n].thread.clone_from(&thread);
        }
    }

    fn course(&self, thread: &str) -> Course {
        let mut course = Course::default();
        let mut parties: BTreeSet<String> = BTreeSet::new();
        for (n, row) in self.rows.iter().enumerate() {
            let a = &row.arrival;
            if row.thread != thread || !a.counts() {
                continue;
            }
            let is_mine = a.side == Side::Mine;
            match a.meaning {
                Some(Intent::Close) if is_mine || parties.contains(&party(&a.sender)) => {
                    course.closed_at = course.closed_at.or(Some(a.at));
                    course.closed = Some(n);
                    if is_mine || a.verdict == VerdictWord::Verified {
                        course.firm = Some(n);
                    }
                }
                Some(Intent::Close) => {}
                _ if is_mine => course.closed_at = None,
                _ => {}
            }
            let is_sure = is_mine || (a.verdict == VerdictWord::Verified && a.way != Way::Relayed);
            let begins = parties.is_empty() && a.meaning != Some(Intent::Close);
            if is_sure || begins || parties.contains(&party(&a.sender)) {
                let names = [&a.sender, &a.receiver].into_iter().chain(&a.targets);
                parties.extend(names.map(|name| party(name)));
            }
        }
        course
    }

    fn wait(&self, place: usize) -> Wait {
        let row = &self.rows[place];
        let course = self.course(&row.thread);
        let closed = match row.arrival.verdict {
            VerdictWord::Verified => course.firm,
            _ => course.closed,
        };
        let is_closed = closed.is_some_and(|last| last > place);
        let is_settled = self.answered_by(place).len() >= row.arrival.answers_needed();
        match row.dismissed || is_closed || is_settled {
            true => Wait::Nobody,
            false => row.arrival.wait(),
        }
    }

    fn forget_message(&mut self, id: &str) -> bool {
        let before = self.rows.len();
        self.rows.retain(|r| r.arrival.id() != id);
        before != self.rows.len()
    }

    fn forget(&mut self, thread: &str) -> u64 {
        let before = self.rows.len();
        self.rows.retain(|r| r.thread != thread);
        (before - self.rows.len()) as u64
    }
}

fn is_named(row: &Row) -> bool {
    row.arrival.thread.as_ref() == Some(&row.thread)
}

/// What can be asked, in one value.
#[derive(Debug, PartialEq)]
struct Answers {
    threads: Vec<Thread>,
    messages: BTreeMap<String, Vec<Record>>,
    inbox: Vec<Record>,
    asked: Vec<AskedMessage>,
    found: Vec<u64>,
    with: Vec<Vec<String>>,
}

fn answers(store: &SqliteStore) -> Answers {
    let page = Page::first(1000);
    let threads = store.threads(&ThreadFilter::default(), page).unwrap().items;
    let of = |t: &Thread| {
        (
            t.id.clone(),
            store.messages(&t.id, None, 1000).unwrap().items,
        )
    };
    let found = store
        .search(&Search::parse("common").unwrap(), page)
        .unwrap()
        .items;
    let with = NAMES.iter().map(|name| {
        let filter = ThreadFilter {
            with: Some((*name).to_owned()),
            open: true,
            ..ThreadFilter::default()
        };
        store
            .threads(&filter, page)
            .unwrap()
            .items
            .into_iter()
            .map(|t| t.id)
            .collect()
    });
    Answers {
        messages: threads.iter().map(of).collect(),
        inbox: store.inbox(page).unwrap().items,
        asked: store.asked(page).unwrap().items,
        found: found.into_iter().map(|r| r.seq).collect(),
        with: with.collect(),
        threads,
    }
}

fn compare(store: &SqliteStore, model: &Model) {
    let got = answers(store);
    let mut records: Vec<&Record> = got.messages.values().flatten().collect();
    records.sort_by_key(|r| r.seq);
    let seen: Vec<_> = records
        .iter()
        .map(|r| {
            (
                r.id.as_str(),
                r.thread.as_str(),
                r.verdict,
                r.wait,
                r.text.as_str(),
                (r.parent.as_deref(), r.carries_id),
            )
        })
        .collect();
    let wanted: Vec<_> = model
        .rows
        .iter()
        .enumerate()
        .map(|(n, r)| {
            (
                r.arrival.id(),
                r.thread.as_str(),
                r.arrival.verdict,
                model.wait(n),
                r.arrival.text.as_str(),
                (r.arrival.answered(), r.arrival.message.is_some()),
            )
        })
        .collect();
    assert_eq!(seen, wanted);
    for thread in &got.threads {
        let rows: Vec<usize> = (0..model.rows.len())
            .filter(|n| model.rows[*n].thread == thread.id)
            .collect();
        let waits = |who: &[Wait]| {
            rows.iter()
                .filter(|n| who.contains(&model.wait(**n)))
                .count() as u64
        };
        assert_eq!(thread.messages, rows.len() as u64);
        assert_eq!(
            thread.waiting,
            waits(&[Wait::Me, Wait::Carry]),
            "{}",
            thread.id
        );
        assert_eq!(thread.asked, waits(&[Wait::Them]), "{}", thread.id);
        let closed = model.course(&thread.id).closed_at;
        assert_eq!(thread.closed_at, closed, "{}", thread.id);
        let last = rows
            .iter()
            .max_by_key(|n| (model.rows[**n].arrival.at, **n))
            .unwrap();
        assert_eq!(thread.last, model.rows[*last].arrival.id());
        let mut parties: Vec<String> = Vec::new();
        for row in rows.iter().map(|n| &model.rows[*n].arrival) {
            for name in [&row.sender, &row.receiver].into_iter().chain(&row.targets) {
                if !parties.iter().any(|p| party(p) == party(name)) {
                    parties.push(name.clone());
                }
            }
        }
        assert_eq!(thread.parties, parties, "{}", thread.id);
    }
    let inbox: Vec<u64> = got.inbox.iter().map(|r| r.seq).collect();
    let waiting = records
        .iter()
        .rev()
        .filter(|r| matches!(r.wait, Wait::Me | Wait::Carry));
    assert_eq!(inbox, waiting.map(|r| r.seq).collect::<Vec<_>>());
    let mut asked: Vec<u64> = got.asked.iter().map(|a| a.record.seq).collect();
    asked.sort_unstable();
    let open = records.iter().filter(|r| r.wait == Wait::Them);
    assert_eq!(asked, open.map(|r| r.seq).collect::<Vec<_>>());
    assert_eq!(
        got.found,
        records.iter().rev().map(|r| r.seq).collect::<Vec<_>>()
    );
}

const NAMES: [&str; 5] = ["ANN", "ann", "BOB", "AGENT", "agent://x/eve"];
const INTENTS: [&str; 9] = [
    "REQUEST", "RESPOND", "POLL", "NOTE", "ANSWER", "CLOSE", "ESCALATE", "NACK", "ACK",
];
const ULIDS: [&str; 2] = ["01J9J3D3M6A4M3WQX8G1ZQ0S7K", "01J9J3D3M6A4M3WQX8G1ZQ0S7M"];

#[derive(Clone, Debug)]
enum Deed {
    Accept(Vec<Letter>),
    Dismiss(usize),
    Move(usize, usize),
    Forget(usize),
    ForgetMessage(usize),
}

fn a_letter() -> impl Strategy<Value = Letter> {
    let ids = (0..9_usize, 0..12_usize, 0..8_usize, 0..6_usize);
    let what = (
        0..5_usize,
        0..5_usize,
        0..INTENTS.len(),
        0..3_usize,
        0..20_usize,
    );
    let how = (0..7_usize, 0..3_usize, 0..50_i64, 0..12_usize);
    (ids, what, how).prop_map(
        |(
            (id, parent, thread, session),
            (from, to, intent, body, targets),
            (word, side, at, other),
        )| {
            let mut one = if id == 8 {
                nameless()
            } else {
                letter(&format!("M{id}"))
            };
            if parent < 8 && thread != 7 {
                one = one.parent(&format!("M{parent}"));
            }
            one = match thread {
                0 | 1 => one.thread(ULIDS[thread]),
                2 => one.thread("T2"),
                _ => one,
            };
            if session < 2 || (thread > 2 && parent > 7) {
                one = one.session(&format!("S{}", session % 2));
            }
            one = one.between(NAMES[from], NAMES[to]).intent(INTENTS[intent]);
            one = one
                .body(&format!("common {}", if body == 0 { id } else { 0 }))
                .at(at);
            if targets < 3 {
                one = one.targets(&NAMES[targets..]);
            }
            let word = [
                VerdictWord::Unsigned,
                VerdictWord::Unsigned,
                VerdictWord::Unsigned,
                VerdictWord::Verified,
                VerdictWord::FirstContact,
                VerdictWord::NotVerified,
                VerdictWord::Damaged,
            ][word];
            let key = ["k1", "k2"][at as usize % 2];
            one = one.verdict(word, (word < VerdictWord::Unsigned).then_some(key));
            one = match other {
                0 => one.own_id(&format!("own-{at}")),
                1 => one.answers(&format!("M{}", at % 8)),
                2 => one.thread("<as above>"),
                3 | 4 => one.way(Way::Imported),
                _ => one,
            };
            one.side([Side::Mine, Side::ToMe, Side::Between][side])
        },
    )
}

fn a_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        12 => prop::collection::vec(a_letter(), 1..4).prop_map(Deed::Accept),
        1 => (0..8_usize).prop_map(Deed::Dismiss),
        2 => (0..8_usize, 0..8_usize).prop_map(|(one, other)| Deed::Move(one, other)),
        1 => (0..100_usize).prop_map(Deed::Forget),
        1 => (0..100_usize).prop_map(Deed::ForgetMessage),
    ]
}

/// Files an answer with the question that it means; the ones that it may mean, if they are several.
fn choose(answer: &mut Arrival, open: &[CandidateQuestion]) -> Vec<String> {
    match answer.choose_question(open) {
        Meant::None => Vec::new(),
        Meant::One(id) => {
            answer.answers = Some(id);
            Vec::new()
        }
        Meant::Several(several) => several,
    }
}

/// What is told of a message at once. Whether an answer that joined in the same batch had closed the thread is not: threads
/// are gone through once for a batch.
fn within_a_batch(outcome: StoreOutcome) -> StoreOutcome {
    match outcome {
        StoreOutcome::Filed {
            id,
            thread,
            settled,
            displaced,
            candidates,
            ..
        } => StoreOutcome::Filed {
            id,
            thread,
            settled,
            closed: None,
            displaced,
            candidates,
        },
        other => other,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: tier::size(24, 96), failure_persistence: None, ..ProptestConfig::default() })]

    /// Every answer along the way, everything at the end, and the same when it is derived again.
    #[test]
    fn a_store_does_what_a_list_would_do(deeds in prop::collection::vec(a_deed(), 1..24)) {
        let (mut made, mut model) = (Sqlite::new(), Model::default());
        for deed in deeds {
            match deed {
                Deed::Accept(letters) => {
                    let batch: Vec<Arrival> = letters.iter().map(Letter::arrival).collect();
                    let wanted: Vec<StoreOutcome> = batch.iter().map(|a| model.accept(a)).collect();
                    let outcomes = made.store.accept(&batch).unwrap();
                    let outcomes: Vec<StoreOutcome> = outcomes.into_iter().map(within_a_batch).collect();
                    let wanted: Vec<StoreOutcome> = wanted.into_iter().map(within_a_batch).collect();
                    assert_eq!(outcomes, wanted);
                }
                Deed::Dismiss(number) => {
                    let id = format!("M{number}");
                    let in_box: Vec<usize> = (0..model.rows.len())
                        .filter(|n| model.rows[*n].arrival.id() == id)
                        .filter(|n| model.wait(*n) != Wait::Nobody)
                        .collect();
                    assert_eq!(made.store.dismiss(&id).unwrap(), !in_box.is_empty());
                    in_box.into_iter().for_each(|n| model.rows[n].dismissed = true);
                }
                Deed::Move(one, other) => {
                    let (one, other) = (format!("M{one}"), format!("M{other}"));
                    let moved = made.store.relocate(&one, Some(&other)).unwrap();
                    assert_eq!(matches!(moved, Moved::Done { .. }), model.relocate(&one, &other));
                }
                Deed::Forget(number) => {
                    let Some(row) = model.rows.get(number % 20) else { continue };
                    let thread = row.thread.clone();
                    assert_eq!(made.store.forget(&thread).unwrap(), model.forget(&thread));
                }
                Deed::ForgetMessage(number) => {
                    let Some(row) = model.rows.get(number % 20) else { continue };
                    let id = row.arrival.id().to_owned();
                    assert!(made.store.forget_message(&id).unwrap());
                    assert!(model.forget_message(&id));
                    assert!(!made.store.forget_message(&id).unwrap());
                }
            }
        }
        compare(&made.store, &model);
        let before = answers(&made.store);
        made.store.rebuild().unwrap();
        assert_eq!(answers(&made.store), before);
        assert!(made.store.check().unwrap().is_empty());
    }
}
