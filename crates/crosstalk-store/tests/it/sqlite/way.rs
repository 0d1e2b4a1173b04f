//! Random messages to a relay, taken and filed and brought on their way at random, against a list.

use super::Sqlite;
use crate::at;
use crate::letter::letter;
use crate::parcel::{Parcel as _, file_all, inbox, parcel};
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, Attempt, DeliveryState, Handler, Priority,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

const NAMES: [&str; 3] = ["ANN", "BOB", "EVE"];

#[derive(Clone, Debug)]
enum Act {
    Take(Vec<(usize, Admission)>),
    File(usize),
    Mark(usize, usize, DeliveryState),
    Due(usize),
    /// The last one says how many steps ago the lease began that it was made under; 0 is without one.
    Attempted(usize, usize, u8, i64),
    Requeue(usize),
    Rebuild,
}

/// A message of a few: the number is its id and what it says, so that the same number is the same message.
fn message() -> impl Strategy<Value = (usize, Admission)> {
    (0..12_usize, 0..3_usize).prop_map(|(id, body)| {
        let thread = ["T1", "T2"][id % 2];
        // Some threads end.
        let intent = if id == 11 { "CLOSE" } else { "REQUEST" };
        let one = letter(&format!("M{id:02}"))
            .at(1)
            .thread(thread)
            .intent(intent);
        let one = one
            .body(&format!("Words {body}."))
            .between("ANN", NAMES[id % 3]);
        let ways = match id % 4 {
            0 => vec![(NAMES[id % 3], Handler::Inbox)],
            1 => vec![("BOB", Handler::Http), ("EVE", Handler::CopyPaste)],
            2 => vec![("ANN", Handler::File)],
            _ => NAMES.map(|n| (n, Handler::Relay)).to_vec(),
        };
        let priority = Priority::ALL[id / 4];
        (id * 3 + body, parcel(one).to(&ways).priority(priority))
    })
}

fn act() -> impl Strategy<Value = Act> {
    let state = prop::sample::select(DeliveryState::ALL.to_vec());
    prop_oneof![
        4 => prop::collection::vec(message(), 1..4).prop_map(Act::Take),
        3 => (1..4_usize).prop_map(Act::File),
        3 => (0..12_usize, 0..3_usize, state).prop_map(|(m, n, s)| Act::Mark(m, n, s)),
        2 => (1..4_usize).prop_map(Act::Due),
        2 => (0..12_usize, 0..3_usize, 0..3_u8, 0..4_i64).prop_map(|(m, n, a, l)| Act::Attempted(m, n, a, l)),
        1 => (0..12_usize).prop_map(Act::Requeue),
        1 => Just(Act::Rebuild),
    ]
}

#[derive(Clone, Debug)]
struct Way {
    to: String,
    by: Handler,
    state: DeliveryState,
    attempts: u32,
    /// Until when it is leased, or when it is tried again.
    next: i64,
    /// Since when it is leased.
    leased: Option<i64>,
}

#[derive(Clone, Debug)]
struct Row {
    id: String,
    number: usize,
    priority: Priority,
    ways: Vec<Way>,
}

#[derive(Default)]
struct Model {
    rows: Vec<Row>,
    begun: BTreeSet<String>,
    closed: BTreeSet<String>,
    filed: usize,
}

impl Model {
    fn take(&mut self, number: usize, parcel: &Admission) -> &'static str {
        let id = parcel.arrival.id();
        let thread = parcel.arrival.thread.clone().unwrap();
        if let Some(row) = self.rows.iter().find(|r| r.id == id) {
            return match row.number == number {
                true => "known",
                false => "refused",
            };
        }
        if self.closed.contains(&thread) {
            return "refused";
        }
        if parcel.arrival.closes() {
            if !self.begun.contains(&thread) {
                return "refused";
            }
            self.closed.insert(thread.clone());
        }
        self.begun.insert(thread);
        let way = |r: &crosstalk_protocol::relay::Recipient| Way {
            to: r.address.clone(),
            by: r.by,
            state: DeliveryState::Queued,
            attempts: 0,
            next: 0,
            leased: None,
        };
        self.rows.push(Row {
            id: id.to_owned(),
            number,
            priority: parcel.priority,
            ways: parcel.recipients.iter().map(way).collect(),
        });
        "new"
    }

    /// The way of a message to somebody.
    fn way(&mut self, id: &str, name: &str) -> Option<&mut Way> {
        let row = self.rows.iter_mut().find(|r| r.id == id)?;
        row.ways.iter_mut().find(|w| w.to == name)
    }

    /// What is due, in the order in which it is given out.
    fn due(&mut self, now: i64, lease: i64, most: usize) -> Vec<(String, String)> {
        let mut due = Vec::new();
        for (place, row) in self.rows.iter().enumerate() {
            for (number, way) in row.ways.iter().enumerate() {
                if way.by.is_active() && way.state == DeliveryState::Queued && way.next <= now {
                    due.push((row.priority, way.next, place, way.to.clone(), number));
                }
            }
        }
        due.sort();
        due.truncate(most);
        let given = due.into_iter().map(|(_, _, place, to, number)| {
            let way = &mut self.rows[place].ways[number];
            (way.next, way.leased) = (lease, Some(now));
            (self.rows[place].id.clone(), to)
        });
        given.collect()
    }
}

fn run(acts: Vec<Act>) {
    let mut made = Sqlite::new();
    let store = &mut made.store;
    let mut model = Model::default();
    for (step, act) in acts.into_iter().enumerate() {
        // Long after all messages came; leases last for a few steps.
        let now = 1_000_000_000 + step as i64;
        match act {
            Act::Take(batch) => {
                let parcels: Vec<Admission> = batch.iter().map(|(_, p)| p.clone()).collect();
                let taken = store.accept_batch(&parcels).unwrap();
                let shape = |t: &AcceptOutcome| match t {
                    AcceptOutcome::Accepted { .. } => "new",
                    AcceptOutcome::Known { .. } => "known",
                    AcceptOutcome::Held { .. } => "held",
                    AcceptOutcome::Rejected(_) => "refused",
                };
                let taken: Vec<&str> = taken.iter().map(shape).collect();
                let expected: Vec<&str> = batch.iter().map(|(n, p)| model.take(*n, p)).collect();
                assert_eq!(taken, expected);
            }
            Act::File(most) => {
                let filed = store.index(most).unwrap().filed;
                assert_eq!(filed, most.min(model.rows.len() - model.filed));
                model.filed += filed;
            }
            Act::Mark(message, name, state) => {
                let (id, name) = (format!("M{message:02}"), NAMES[name]);
                let marked = store
                    .mark(name, std::slice::from_ref(&id), state, at(now))
                    .unwrap();
                let way = model.way(&id, name);
                assert_eq!(!marked.is_empty(), way.is_some());
                if let Some(way) = way.filter(|w| state.follows(w.state)) {
                    way.state = state;
                    way.leased = None;
                }
            }
            Act::Due(most) => {
                let given = store.due(at(now), at(now + 5), most).unwrap();
                let given = given.into_iter().map(|d| (d.lease.id, d.lease.to));
                let given: Vec<(String, String)> = given.collect();
                assert_eq!(given, model.due(now, now + 5, most));
            }
            Act::Attempted(message, name, kind, since) => {
                let (id, name) = (format!("M{message:02}"), NAMES[name]);
                let reason = "x".to_owned();
                let attempt = match kind {
                    0 => Attempt::Delivered,
                    1 => Attempt::Failed { reason },
                    _ => Attempt::Later {
                        at: at(now + 3),
                        reason,
                    },
                };
                let leased = (since > 0).then_some(now - since);
                let counted = store.attempted(&id, name, leased.map(at), &attempt, at(now));
                let way = model.way(&id, name);
                let is_held = |w: &&mut Way| w.state == DeliveryState::Queued && w.leased == leased;
                let way = way.filter(is_held);
                let counted = counted.unwrap();
                assert_eq!(counted, way.is_some());
                if let Some(way) = way {
                    way.attempts += 1;
                    way.leased = None;
                    match kind {
                        0 => way.state = DeliveryState::Delivered,
                        1 => way.state = DeliveryState::Failed,
                        _ => way.next = now + 3,
                    }
                }
            }
            Act::Requeue(message) => {
                let id = format!("M{message:02}");
                let count = store.requeue(&id, at(now)).unwrap();
                let row = model.rows.iter_mut().find(|r| r.id == id);
                let ways = row.into_iter().flat_map(|r| &mut r.ways);
                let dead: Vec<&mut Way> =
                    ways.filter(|w| w.state == DeliveryState::Failed).collect();
                assert_eq!(count as usize, dead.len());
                for way in dead {
                    (way.state, way.attempts, way.next) = (DeliveryState::Queued, 0, now);
                    way.leased = None;
                }
            }
            Act::Rebuild => {
                store.rebuild().unwrap();
                model.filed = model.rows.len();
            }
        }
    }
    file_all(store);
    for row in &model.rows {
        assert!(store.message(&row.id).unwrap().is_some());
        let mut ways: Vec<_> = row
            .ways
            .iter()
            .map(|w| (&w.to, w.by, w.state, w.attempts))
            .collect();
        ways.sort();
        let deliveries = store.deliveries(&row.id).unwrap();
        let kept = deliveries
            .iter()
            .map(|d| (&d.to, d.by, d.state, d.attempts));
        assert_eq!(kept.collect::<Vec<_>>(), ways, "{}", row.id);
    }
    for name in NAMES {
        let is_processed = |w: &Way| w.by == Handler::Exec && w.state != DeliveryState::Queued;
        let is_in =
            |w: &Way| w.to == name && w.state < DeliveryState::Acknowledged && !is_processed(w);
        let rows = model.rows.iter().filter(|r| r.ways.iter().any(is_in));
        let expected: Vec<&str> = rows.map(|r| r.id.as_str()).collect();
        assert_eq!(inbox(store, name), expected, "{name}");
    }
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_relay_keeps_what_a_list_keeps(acts in prop::collection::vec(act(), 1..40)) {
        run(acts);
    }
}
