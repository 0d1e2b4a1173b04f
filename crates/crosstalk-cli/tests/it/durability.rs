//! What a relay has answered for is on disk: it survives being killed, and the power going out.

mod check;
mod kill;
pub(crate) mod load;
mod mail;
#[cfg(target_os = "linux")]
mod power;
#[cfg(target_os = "linux")]
mod recorded;
#[cfg(target_os = "linux")]
mod trace;

use crosstalk_store::SqliteStore;
use crosstalk_testing::http::{Answer, Connection};
use crosstalk_testing::relay::{Relay, Setup};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;

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

/// What the clients of a relay were told. Ids that begin with K are of messages to inboxes and programs, with S of personal
/// data under a consent, with R of the revocation of the consent.
#[derive(Debug, Default)]
struct Told {
    /// Messages that the relay answered for, with the answer.
    accepted: BTreeMap<String, String>,
    /// Messages that got another answer: its status.
    refused: BTreeMap<String, u16>,
    /// Messages that got none, because the relay was gone. They may be there or not.
    unsure: BTreeSet<String>,
    /// Messages that a recipient acknowledged.
    marked: BTreeSet<String>,
    /// Messages that a recipient was acknowledging when the relay was gone.
    mark_unsure: BTreeSet<String>,
    /// The revocations that were sent, by their number.
    revocations: BTreeMap<String, String>,
}

impl Told {
    fn add(&mut self, other: Self) {
        self.accepted.extend(other.accepted);
        self.refused.extend(other.refused);
        self.unsure.extend(other.unsure);
        self.marked.extend(other.marked);
        self.mark_unsure.extend(other.mark_unsure);
        self.revocations.extend(other.revocations);
    }

    /// Whether the relay answered for a revocation.
    fn is_revoked(&self, number: &str) -> bool {
        self.accepted.contains_key(&format!("R{number}"))
    }

    /// What senders of messages to inboxes were told.
    fn letters(&self) -> Self {
        let is_ours = |id: &&String| load::is_letter(id);
        let accepted = self.accepted.iter().filter(|(id, _)| is_ours(id));
        let refused = self.refused.iter().filter(|(id, _)| is_ours(id));
        Self {
            accepted: accepted
                .map(|(id, text)| (id.clone(), text.clone()))
                .collect(),
            refused: refused.map(|(id, status)| (id.clone(), *status)).collect(),
            unsure: self.unsure.iter().filter(is_ours).cloned().collect(),
            ..Self::default()
        }
    }
}

/// Senders that were told to come again are not sure: a commit may have been on the disk when it was not known to be.
#[cfg(target_os = "linux")]
fn as_unsure(mut told: Told) -> Told {
    told.unsure
        .extend(std::mem::take(&mut told.refused).into_keys());
    told
}

/// That the store of a relay is sound.
fn check_store(relay: &Relay) {
    let store = SqliteStore::open_existing(relay.store()).unwrap().unwrap();
    assert_eq!(store.check().unwrap(), Vec::<String>::new());
}

/// Asks for a page of an inbox.
pub(crate) fn inbox_page(
    connection: &mut Connection,
    address: &str,
    parameters: &str,
) -> std::io::Result<Answer> {
    let address = address.replace(':', "%3A").replace('/', "%2F");
    let path = format!("/crosstalk/inbox?for={address}{parameters}");
    connection.request("GET", &path, "Accept: application/json\r\n", b"")
}

/// What is in an inbox after a place: ids in their order, and the place where it ends.
pub(crate) fn listed(
    connection: &mut Connection,
    address: &str,
    after: Option<&str>,
) -> (Vec<String>, Option<String>) {
    let mut cursor = after.map(str::to_owned);
    let mut ids = Vec::new();
    loop {
        let after = cursor.as_ref().map(|c| format!("&after={c}"));
        let parameters = format!("&limit={PAGE}{}", after.unwrap_or_default());
        let answer = inbox_page(connection, address, &parameters).unwrap();
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
        let is_ours = told.accepted.contains_key(id) || told.unsure.contains(id);
        if !is_ours && !told.refused.contains_key(id) {
            faults.push(format!("{id} is there and was never sent"));
        }
    }
    for id in told.accepted.keys() {
        if !once.contains(id.as_str()) {
            faults.push(format!("{id} was answered for and is lost"));
        }
    }
    faults
}

#[test]
fn the_check_sees_what_is_lost_doubled_refused_or_made_up() {
    let told = Told {
        accepted: [("A".into(), "ack".into()), ("B".into(), "ack".into())].into(),
        refused: [("R".into(), 503)].into(),
        unsure: ["U".into()].into(),
        ..Told::default()
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
    let answer = relay.connect().receive(&load::letter("K0000-01-000000"));
    assert!(answer.map_or(true, |answer| answer.status == 503));
    let ended = relay.wait_for_end();
    assert!(!ended.success(), "{ended:?}\n{}", relay.log());
}
