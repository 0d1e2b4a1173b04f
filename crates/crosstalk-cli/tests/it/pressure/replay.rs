//! The same message again and again: one is kept, and every time the answer is the first one, byte for byte.

use super::{listed, relay};
use crosstalk_testing::http::Connection;
use crosstalk_testing::relay::envelope;
use crosstalk_testing::tier;
use std::collections::BTreeSet;

/// How often it is sent, in a run of all tests and in a full one.
const REPLAYS: usize = 1_000;
const FULL_REPLAYS: usize = 10_000;
const SENDERS: usize = 8;
const INBOX: &str = "claude://replay/inbox";

#[test]
fn thousands_of_replays_are_one_message() {
    let replays = tier::size(REPLAYS, FULL_REPLAYS);
    let relay = relay().start();
    let address = relay.address();
    let letter = envelope("REPLAYED-1", "T-1", "chatgpt://replay/s", INBOX);
    let letter = &letter;
    let answers: BTreeSet<(u16, String)> = std::thread::scope(|scope| {
        let replay = |_: usize| {
            scope.spawn(move || {
                let mut connection = Connection::open(address).unwrap();
                let answers = (0..replays / SENDERS).map(|_| {
                    let answer = connection.receive(letter).unwrap();
                    (answer.status, answer.text())
                });
                answers.collect::<BTreeSet<_>>()
            })
        };
        let senders: Vec<_> = (0..SENDERS).map(replay).collect();
        senders
            .into_iter()
            .flat_map(|s| s.join().unwrap())
            .collect()
    });
    assert_eq!(answers.len(), 1, "{answers:?}");
    let (status, answer) = answers.first().unwrap();
    assert_eq!(*status, 200, "{answer}");
    assert!(
        answer.contains("intent: ACK\n") && answer.contains("parent: REPLAYED-1\n"),
        "{answer}"
    );
    let mut connection = relay.connect();
    assert_eq!(listed(&mut connection, INBOX, None).0, ["REPLAYED-1"]);
    // The same id with another content is another message, and refused.
    let other = letter.replace("under load?", "under water?");
    let refused = connection.receive(&other).unwrap();
    assert_eq!(refused.status, 403, "{}", refused.text());
    assert!(refused.text().contains("E-PERM"), "{}", refused.text());
    assert_eq!(connection.receive(letter).unwrap().text(), *answer);
    assert_eq!(listed(&mut connection, INBOX, None).0, ["REPLAYED-1"]);
}
