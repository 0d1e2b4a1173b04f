//! What a relay has answered for is on disk: it survives being killed, and the power going out.

mod kill;
#[cfg(target_os = "linux")]
mod power;
#[cfg(target_os = "linux")]
mod recorded;
#[cfg(target_os = "linux")]
mod trace;

use crosstalk_store::SqliteStore;
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::{Relay, Setup, envelope};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Senders at once.
const SENDERS: usize = 12;
/// Inboxes that they send to.
const INBOXES: usize = 3;
/// How many entries are asked for at once.
const PAGE: usize = 200;

/// A relay whose data are among the temporary files, which may be in memory.
pub(crate) fn relay() -> Setup {
    Relay::of(Path::new(env!("CARGO_BIN_EXE_crosstalk")))
        .argument("--log")
        .argument("warn")
}

/// A relay whose data are on the disk that the target folder is on.
fn relay_on_disk() -> Setup {
    relay().within(env!("CARGO_TARGET_TMPDIR"))
}

/// Says why something can't be tested here, where a person sees it.
pub(crate) fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "{test}: skipped: {reason}");
}

/// The address of an inbox.
fn inbox(number: usize) -> String {
    format!("claude://durable/inbox-{}", number % INBOXES)
}

/// A message of a sender.
fn letter(id: &str, sender: usize) -> String {
    let thread = format!("T-{}", &id[..id.len() - 2]);
    let from = format!("chatgpt://durable/s{sender}");
    envelope(id, &thread, &from, &inbox(sender))
}

/// What senders were told.
#[derive(Debug, Default)]
struct Told {
    /// Messages that were answered for, with the answer.
    taken: BTreeMap<String, String>,
    /// Messages that got another answer: its status.
    refused: BTreeMap<String, u16>,
    /// Messages that got none, because the relay was gone. They may be there or not.
    unsure: BTreeSet<String>,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.taken.extend(other.taken);
        self.refused.extend(other.refused);
        self.unsure.extend(other.unsure);
    }
}

/// Senders that were told to come again are not sure: a commit may have been on the disk when it was not known to be.
#[cfg(target_os = "linux")]
fn as_unsure(told: Told) -> Told {
    let unsure = told.unsure.into_iter().chain(told.refused.into_keys());
    Told {
        unsure: unsure.collect(),
        taken: told.taken,
        ..Told::default()
    }
}

/// That the store of a relay is sound.
fn check_store(relay: &Relay) {
    let store = SqliteStore::open_existing(relay.store()).unwrap().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Sends from many connections at once until the relay is gone, or until it is enough.
fn load(
    address: SocketAddr,
    cycle: usize,
    stop: &AtomicBool,
    dark: &AtomicBool,
    taken: &AtomicUsize,
) -> Told {
    let mut told = Told::default();
    std::thread::scope(|scope| {
        let send = |sender: usize| {
            scope.spawn(move || {
                let mut told = Told::default();
                let Ok(mut connection) = Connection::open(address) else {
                    return told;
                };
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let id = format!("K{cycle:04}-{sender:02}-{number:06}");
                    match connection.receive(&letter(&id, sender)) {
                        // With the power, the one who answers would be gone as well.
                        Ok(_) if dark.load(Ordering::SeqCst) => {
                            told.unsure.insert(id);
                        }
                        Ok(answer) if answer.status == 200 => {
                            told.taken.insert(id, answer.text());
                            taken.fetch_add(1, Ordering::Relaxed);
                        }
                        Ok(answer) => {
                            told.refused.insert(id, answer.status);
                        }
                        Err(_) => {
                            told.unsure.insert(id);
                            break;
                        }
                    }
                }
                told
            })
        };
        let senders: Vec<_> = (0..SENDERS).map(send).collect();
        for sender in senders {
            told.add(sender.join().unwrap());
        }
    });
    told
}

/// The sender of a message of [`load`].
fn sender_of(id: &str) -> usize {
    id.split('-').nth(1).unwrap().parse().unwrap()
}

/// What is in an inbox after a place: ids in their order, and the place where it ends.
pub(crate) fn listed(
    connection: &mut Connection,
    address: &str,
    after: Option<&str>,
) -> (Vec<String>, Option<String>) {
    let address = address.replace(':', "%3A").replace('/', "%2F");
    let mut cursor = after.map(str::to_owned);
    let mut ids = Vec::new();
    loop {
        let after = cursor.as_ref().map(|c| format!("&after={c}"));
        let path = format!(
            "/crosstalk/inbox?for={address}&limit={PAGE}{}",
            after.unwrap_or_default()
        );
        let accept = "Accept: application/json\r\n";
        let answer = connection.request("GET", &path, accept, b"").unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        let page: Value = serde_json::from_slice(&answer.body).unwrap();
        let messages = page["messages"].as_array().unwrap();
        ids.extend(
            messages
                .iter()
                .map(|m| m["id"].as_str().unwrap().to_owned()),
        );
        if let Some(next) = page["cursor"].as_str() {
            cursor = Some(next.to_owned());
        }
        if messages.is_empty() {
            return (ids, cursor);
        }
    }
}

/// What is wrong with what is there, beside what senders were told.
fn faults(told: &Told, there: &[String]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut once = BTreeSet::new();
    for id in there {
        if !once.insert(id.as_str()) {
            faults.push(format!("{id} is there twice"));
        }
        if told.refused.contains_key(id) {
            faults.push(format!("{id} was refused and is there"));
        }
        let is_ours = told.taken.contains_key(id) || told.unsure.contains(id);
        if !is_ours && !told.refused.contains_key(id) {
            faults.push(format!("{id} is there and was never sent"));
        }
    }
    for id in told.taken.keys() {
        if !once.contains(id.as_str()) {
            faults.push(format!("{id} was answered for and is lost"));
        }
    }
    faults
}

#[test]
fn the_check_sees_what_is_lost_doubled_refused_or_made_up() {
    let told = Told {
        taken: [("A".into(), "ack".into()), ("B".into(), "ack".into())].into(),
        refused: [("R".into(), 503)].into(),
        unsure: ["U".into()].into(),
    };
    let check = |there: &[&str]| {
        let there: Vec<String> = there.iter().map(|t| (*t).to_owned()).collect();
        faults(&told, &there)
    };
    assert_eq!(check(&["A", "B"]), [""; 0]);
    assert_eq!(check(&["A", "U", "B"]), [""; 0]);
    assert_eq!(check(&["A"]), ["B was answered for and is lost"]);
    assert_eq!(check(&["A", "B", "A"]), ["A is there twice"]);
    assert_eq!(check(&["A", "B", "R"]), ["R was refused and is there"]);
    assert_eq!(check(&["A", "B", "X"]), ["X is there and was never sent"]);
}

#[test]
fn a_relay_whose_readers_find_the_store_damaged_stops() {
    let mut relay = relay().start();
    let store = rusqlite::Connection::open(relay.store()).unwrap();
    store.execute_batch("DROP TABLE token").unwrap();
    // Who asks has to be known first: no request gets as far as to the writer.
    let answer = relay.connect().receive(&letter("UNREAD-1", 1));
    assert!(answer.map_or(true, |answer| answer.status == 503));
    let ended = relay.wait_for_end();
    assert!(!ended.success(), "{ended:?}\n{}", relay.log());
}
