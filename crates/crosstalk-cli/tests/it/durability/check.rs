//! Checks of a relay that was killed or lost its power: nothing is lost, twice, half there or stuck, and erased words
//! are gone.

use super::load::{INBOXES, inbox, is_letter, is_question, letter, secret, thread_of, word_of};
use super::{Told, faults, listed};
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::Relay;
use crosstalk_testing::wait::{wait_for_ok, wait_until};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Messages of a cycle that are looked at one by one.
const SAMPLE: usize = 40;
/// Messages of a cycle that are searched for.
const SEARCHED: usize = 10;
/// Log entries that are asked for at once.
const LOG_PAGE: usize = 500;

/// How far the checks of one relay are.
#[derive(Debug)]
pub(super) struct Checked {
    all: Told,
    /// The cursor of each inbox.
    cursors: Vec<Option<String>>,
    /// How many entries of the audit log were read.
    log: usize,
    /// The words of revoked messages.
    erased: Vec<String>,
}

impl Checked {
    pub(super) fn new() -> Self {
        Self {
            all: Told::default(),
            cursors: vec![None; INBOXES],
            log: 0,
            erased: Vec::new(),
        }
    }

    /// Checks a relay that was started again after a cycle of load.
    pub(super) fn check(&mut self, relay: &Relay, mut told: Told) {
        let mut connection = relay.connect();
        // Before anything else is done: an acknowledged revocation holds from the first answer on.
        for number in told
            .revocations
            .keys()
            .filter(|number| told.is_revoked(number))
        {
            assert_erased(&mut connection, number);
        }
        self.finish(&mut connection, &mut told);
        wait_until_settled(relay);
        let step = (told.accepted.len() / SAMPLE).max(1);
        for (id, answer) in told
            .accepted
            .iter()
            .step_by(step)
            .filter(|(id, _)| id.starts_with('K'))
        {
            let again = connection.receive(&letter(id)).unwrap();
            assert_eq!((again.status, &again.text()), (200, answer), "{id}");
        }
        for id in &told.marked {
            assert_eq!(state(&mut connection, id), "acknowledged", "{id}");
        }
        self.check_inboxes(&mut connection, &told);
        check_threads(&mut connection, &told);
        self.check_log(&mut connection, &told);
        check_search(&mut connection, &told);
        self.erased
            .extend(told.revocations.keys().map(|n| word_of(&format!("S{n}"))));
        wait_until_gone(&relay.data(), &self.erased);
        self.all.add(told);
    }

    /// Checks all cycles together, and ends the relay.
    pub(super) fn finish_all(mut self, relay: &mut Relay) {
        let mut connection = relay.connect();
        let told = std::mem::take(&mut self.all);
        self.cursors = vec![None; INBOXES];
        self.check_inboxes(&mut connection, &told);
        assert!(relay.stop().success(), "{}", relay.log());
        super::check_store(relay);
    }

    /// Clients that got no answer try again, as they would do.
    fn finish(&self, connection: &mut Connection, told: &mut Told) {
        let mut is_marked = |id: &String| state(connection, id) == "acknowledged";
        let unsure = std::mem::take(&mut told.mark_unsure);
        told.marked
            .extend(unsure.into_iter().filter(&mut is_marked));
        for id in std::mem::take(&mut told.unsure) {
            if id.starts_with('R') {
                continue;
            }
            let text = match id.strip_prefix('S') {
                Some(number) => secret(number),
                None => letter(&id),
            };
            let answer = connection.receive(&text).unwrap();
            assert_eq!(answer.status, 200, "{id}: {}", answer.text());
            told.accepted.insert(id, answer.text());
        }
        // The second time, the answer is the same.
        for (number, text) in &told.revocations {
            let answer = connection.receive(text).unwrap();
            assert_eq!(answer.status, 200, "{number}: {}", answer.text());
            told.accepted.insert(format!("R{number}"), answer.text());
            assert_erased(connection, number);
        }
    }

    /// Every accepted message is in its inbox once, unless its recipient has acknowledged it.
    fn check_inboxes(&mut self, connection: &mut Connection, told: &Told) {
        let mut there: Vec<String> = Vec::new();
        for (number, cursor) in self.cursors.iter_mut().enumerate() {
            let (ids, end) = listed(connection, &inbox(number), cursor.as_deref());
            let marked = ids.iter().find(|id| told.marked.contains(*id));
            assert_eq!(marked, None, "it was acknowledged");
            there.extend(ids);
            *cursor = end;
        }
        there.extend(
            told.marked
                .iter()
                .filter(|id| told.accepted.contains_key(*id))
                .cloned(),
        );
        let wrong = faults(&told.letters(), &there);
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    /// The audit log has every accepted message once, and every question to the program is delivered once.
    fn check_log(&mut self, connection: &mut Connection, told: &Told) {
        let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
        loop {
            let path = format!(
                "/crosstalk/audit/entries?from={}&limit={LOG_PAGE}",
                self.log
            );
            let page = json_of(connection, &path);
            let entries = page["entries"].as_array().unwrap();
            for entry in entries {
                assert_eq!(entry["index"].as_u64(), Some(self.log as u64), "{entry}");
                self.log += 1;
                if let Some(id) = entry["message"].as_str() {
                    let kind = entry["kind"].as_str().unwrap().to_owned();
                    *counts.entry((kind, id.to_owned())).or_default() += 1;
                }
            }
            if entries.is_empty() {
                break;
            }
        }
        let count = |kind: &str, id: &String| counts.get(&(kind.to_owned(), id.clone())).copied();
        for id in told.accepted.keys() {
            assert_eq!(count("accepted", id), Some(1), "{id} in the log");
        }
        for id in told.accepted.keys().filter(|id| is_question(id)) {
            assert_eq!(count("delivered", id), Some(1), "{id} in the log");
        }
        for number in told.revocations.keys() {
            assert_eq!(
                count("erased", &format!("S{number}")),
                Some(1),
                "S{number} in the log"
            );
        }
        let twice = counts.iter().find(|(_, count)| **count > 1);
        assert_eq!(twice, None, "it is in the log twice");
    }
}

/// Starts a relay again and says whether a message to an inbox is lost that the relay answered for.
#[cfg(target_os = "linux")]
pub(super) fn is_lost(relay: &mut Relay, told: Told) -> bool {
    if relay.try_start().is_err() {
        return true;
    }
    let mut connection = relay.connect();
    let there = (0..INBOXES).flat_map(|number| listed(&mut connection, &inbox(number), None).0);
    // A reader may have taken it out.
    let there: BTreeSet<String> = there.chain(told.marked).chain(told.mark_unsure).collect();
    let mut letters = told.accepted.keys().filter(|id| is_letter(id));
    letters.any(|id| !there.contains(id))
}

fn json_of(connection: &mut Connection, path: &str) -> Value {
    let answer = connection.get(path).unwrap();
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    serde_json::from_slice(&answer.body).unwrap()
}

/// Waits until nothing is left to index, and every delivery to a program is finished.
fn wait_until_settled(relay: &Relay) {
    let mut connection = relay.connect();
    wait_for_ok(|| {
        let metrics = connection.get("/metrics").unwrap().text();
        let is_there = |line: &str| metrics.lines().any(|l| l == line);
        let is_settled = is_there("crosstalk_index_backlog 0")
            && is_there("crosstalk_deliveries_queued{queue=\"exec\"} 0");
        is_settled
            .then_some(())
            .ok_or_else(|| format!("an empty backlog and queue:\n{metrics}\n{}", relay.log()))
    });
}

/// How far the only delivery of a message is.
fn state(connection: &mut Connection, id: &str) -> String {
    let status = json_of(connection, &format!("/crosstalk/messages/{id}/status"));
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

/// Every thread has its messages once; every question to the program has one answer.
fn check_threads(connection: &mut Connection, told: &Told) {
    let mut threads: BTreeMap<String, BTreeSet<&String>> = BTreeMap::new();
    for id in told.accepted.keys().filter(|id| id.starts_with('K')) {
        threads.entry(thread_of(id)).or_default().insert(id);
    }
    for (thread, expected) in threads {
        let tree = json_of(connection, &format!("/crosstalk/threads/{thread}"));
        assert_eq!(tree["more"], false, "{thread}");
        let nodes = tree["messages"].as_array().unwrap();
        let ids: Vec<&str> = nodes.iter().map(|n| n["id"].as_str().unwrap()).collect();
        assert!(
            ids.iter().eq(expected.iter().copied()),
            "{thread}: {ids:?}, not {expected:?}"
        );
        let mut answers = 0;
        for node in nodes {
            let count = node["answers"].as_array().unwrap().len();
            let id = node["id"].as_str().unwrap();
            assert_eq!(count, usize::from(is_question(id)), "answers to {node}");
            answers += count;
        }
        assert_eq!(
            tree["thread"]["messages"].as_u64(),
            Some((ids.len() + answers) as u64)
        );
    }
}

/// A search finds a message by its word, once.
fn check_search(connection: &mut Connection, told: &Told) {
    let letters: Vec<&String> = told.accepted.keys().filter(|id| is_letter(id)).collect();
    for id in letters.iter().step_by((letters.len() / SEARCHED).max(1)) {
        let path = format!("/crosstalk/search?q={}", word_of(id));
        let mut found = Vec::new();
        wait_until("the message to be searchable", || {
            let answer = json_of(connection, &path);
            let ids = answer["messages"].as_array().unwrap().iter();
            found = ids.map(|m| m["id"].as_str().unwrap().to_owned()).collect();
            !found.is_empty()
        });
        assert_eq!(found, [(*id).as_str()]);
    }
}

/// No answer of the relay has a message whose consent was revoked.
fn assert_erased(connection: &mut Connection, number: &str) {
    let id = format!("S{number}");
    let found = json_of(connection, &format!("/crosstalk/search?q={}", word_of(&id)));
    assert_eq!(found["messages"].as_array().unwrap().len(), 0, "{found}");
    let message = connection
        .get(&format!("/crosstalk/messages/{id}"))
        .unwrap();
    assert_eq!(message.status, 404, "{id}: {}", message.text());
}

/// Waits until none of the words is in any file of a folder. The relay takes them out of logs and free pages in steps.
fn wait_until_gone(folder: &Path, words: &[String]) {
    // An index of words leaves out the beginning that a word shares with the one before it.
    let patterns: Vec<&str> = words.iter().map(|word| &word[4..]).collect();
    wait_for_ok(|| match files_with(folder, &patterns) {
        files if files.is_empty() => Ok(()),
        files => Err(format!("erased words to leave {files}")),
    });
}

/// The names of the files in which one of the patterns stands.
fn files_with(folder: &Path, patterns: &[&str]) -> String {
    if patterns.is_empty() {
        return String::new();
    }
    let mut grep = Command::new("grep")
        .args(["-rlaiF", "-f", "-"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = grep.stdin.take().unwrap();
    input.write_all(patterns.join("\n").as_bytes()).unwrap();
    drop(input);
    let output = grep.wait_with_output().unwrap();
    // 2 is an error: a file may vanish while it is read.
    assert!(output.status.code().is_some_and(|code| code <= 2));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_word_in_a_file_is_found() {
    let folder = crosstalk_testing::folder::Folder::new("words");
    folder.write("a", "nothing");
    folder.write("b", "\0\0SOMETHING\0");
    assert_eq!(files_with(folder.path(), &["absent"]), "");
    let found = files_with(folder.path(), &["absent", "something"]);
    assert!(found.ends_with("/b\n"), "{found}");
}
