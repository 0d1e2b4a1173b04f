//! SIGKILL under load, again and again: nothing that was answered for is lost, nothing is there twice, and every state
//! is one that somebody was told.

use super::{
    INBOXES, Told, check_store, faults, inbox, letter, listed, load, relay_on_disk, sender_of,
};
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::Relay;
use crosstalk_testing::tier;
use crosstalk_testing::wait::wait_until;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Kills in a run of all tests and in a full one; `cargo xtask relay-kill N` sets the variable for more.
const CYCLES: usize = 5;
const FULL_CYCLES: usize = 500;
/// Messages that are answered for before the kill, at least.
const FEW: usize = 30;
/// Messages of a cycle that are looked at one by one.
const SAMPLE: usize = 40;

#[test]
fn acknowledged_messages_survive_kills_under_load() {
    let wanted = std::env::var("CROSSTALK_KILL_CYCLES").ok();
    let cycles = wanted.map_or(tier::size(CYCLES, FULL_CYCLES), |c| c.parse().unwrap());
    let mut relay = relay_on_disk().start();
    let mut all = Told::default();
    let mut acknowledged = BTreeSet::new();
    let mut places = vec![None; INBOXES];
    for cycle in 0..cycles {
        let (told, Marked { mut marked, unsure }) = killed(&mut relay, cycle);
        assert!(told.refused.is_empty(), "{:?}", told.refused);
        relay.start();
        let mut connection = relay.connect();
        // Of what was being acknowledged, some is and some is not: nobody was told.
        let is_marked = |id: &String| state(&mut connection, id) == "acknowledged";
        marked.extend(unsure.into_iter().filter(is_marked));
        // What got no answer is sent again, as a sender would do; what did, too.
        let mut told = told;
        let unsure = std::mem::take(&mut told.unsure);
        for id in &unsure {
            let answer = connection.receive(&letter(id, sender_of(id))).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.text());
            told.taken.insert(id.clone(), answer.text());
        }
        let step = (told.taken.len() / SAMPLE).max(1);
        for (id, answer) in told.taken.iter().step_by(step) {
            let again = connection.receive(&letter(id, sender_of(id))).unwrap();
            assert_eq!((again.status, &again.text()), (200, answer), "{id}");
            let state = state(&mut connection, id);
            let is_marked = marked.contains(id);
            assert!(!is_marked || state == "acknowledged", "{id} is {state}");
        }
        for id in &marked {
            assert_eq!(state(&mut connection, id), "acknowledged", "{id}");
        }
        let mut there: Vec<String> = Vec::new();
        for (number, place) in places.iter_mut().enumerate() {
            let (ids, end) = listed(&mut connection, &inbox(number), place.as_deref());
            there.extend(ids);
            *place = end;
        }
        // Acknowledged ones have left the inbox; that they are there was seen above. Some are of earlier cycles.
        there.retain(|id| !marked.contains(id));
        let cycle_begins = format!("K{cycle:04}-");
        there.extend(
            marked
                .iter()
                .filter(|id| id.starts_with(&cycle_begins))
                .cloned(),
        );
        let wrong = faults(&told, &there);
        assert!(
            wrong.is_empty(),
            "cycle {cycle}: {wrong:?}\n{}",
            relay.log()
        );
        let done = format!("{} answered for, {} unsure", told.taken.len(), unsure.len());
        all.add(told);
        acknowledged.extend(marked);
        if cycles > CYCLES {
            let _ = writeln!(std::io::stderr(), "cycle {cycle}: {done}");
        }
    }
    // All cycles together, from the beginning.
    let mut connection = relay.connect();
    let mut there: Vec<String> = (0..INBOXES)
        .flat_map(|number| listed(&mut connection, &inbox(number), None).0)
        .filter(|id| !acknowledged.contains(id))
        .collect();
    there.extend(acknowledged);
    let wrong = faults(&all, &there);
    assert!(wrong.is_empty(), "{wrong:?}");
    relay.stop();
    check_store(&relay);
}

/// What a reader has acknowledged.
#[derive(Debug, Default)]
struct Marked {
    /// The relay has confirmed it.
    marked: BTreeSet<String>,
    /// The relay was gone before it answered.
    unsure: BTreeSet<String>,
}

/// Load, and a kill in the midst of it: what senders were told, and which messages a reader has acknowledged.
fn killed(relay: &mut Relay, cycle: usize) -> (Told, Marked) {
    let (stop, dark) = (AtomicBool::new(false), AtomicBool::new(false));
    let taken = AtomicUsize::new(0);
    let address = relay.address();
    std::thread::scope(|scope| {
        let senders = scope.spawn(|| load(address, cycle, &stop, &dark, &taken));
        let reader = scope.spawn(|| acknowledging(address));
        wait_until("the first answers", || {
            assert!(!senders.is_finished(), "{}", relay.log());
            taken.load(Ordering::Relaxed) >= FEW
        });
        // Every place in the work of the relay is hit sooner or later.
        std::thread::sleep(Duration::from_micros((cycle as u64 * 7919) % 150_000));
        relay.kill();
        stop.store(true, Ordering::Relaxed);
        (senders.join().unwrap(), reader.join().unwrap())
    })
}

/// Reads an inbox and acknowledges what it finds, until the relay is gone.
fn acknowledging(address: SocketAddr) -> Marked {
    let mut marked = Marked::default();
    if let Ok(mut connection) = Connection::open(address) {
        while acknowledge(&mut connection, &mut marked).is_ok() {}
    }
    marked
}

fn acknowledge(connection: &mut Connection, marked: &mut Marked) -> std::io::Result<()> {
    let path = format!(
        "/crosstalk/inbox?for={}&limit=20&wait=1",
        inbox(0).replace(':', "%3A").replace('/', "%2F")
    );
    let answer = connection.request("GET", &path, "Accept: application/json\r\n", b"")?;
    let page: Value = serde_json::from_slice(&answer.body)?;
    let messages = page["messages"].as_array().unwrap();
    let ids: Vec<String> = messages
        .iter()
        .map(|m| m["id"].as_str().unwrap().to_owned())
        .collect();
    if ids.is_empty() {
        return Ok(());
    }
    marked.unsure = ids.iter().cloned().collect();
    let body = json!({"for": inbox(0), "ids": ids, "state": "acknowledged"}).to_string();
    let answer = connection.post_json("/crosstalk/ack", &body)?;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let changed: Value = serde_json::from_slice(&answer.body)?;
    let changed = changed["changed"].as_array().unwrap();
    assert_eq!(changed.len(), ids.len(), "{changed:?}");
    marked.marked.append(&mut marked.unsure);
    Ok(())
}

/// How far the only delivery of a message is.
fn state(connection: &mut Connection, id: &str) -> String {
    let answer = connection.get(&format!("/crosstalk/messages/{id}/status"));
    let answer = answer.unwrap();
    assert_eq!(answer.status, 200, "{id}: {}", answer.text());
    let status: Value = serde_json::from_slice(&answer.body).unwrap();
    let deliveries = status["deliveries"].as_array().unwrap();
    assert_eq!(deliveries.len(), 1, "{status}");
    let one = &deliveries[0];
    let state = one["state"].as_str().unwrap();
    let time = |name: &str| one[name].is_string();
    let expected = match state {
        "queued" => (true, false, false),
        "delivered" => (true, true, false),
        "acknowledged" => (true, time("delivered_at"), true),
        other => panic!("{id} is {other}"),
    };
    let times = (
        time("queued_at"),
        time("delivered_at"),
        time("acknowledged_at"),
    );
    assert_eq!(times, expected, "{status}");
    state.to_owned()
}
