//! A flood: who sends too much is told so, and when to come again.

use super::{comes_again, relay};
use crosstalk_protocol::relay::port::InboxQuery;
use crosstalk_store::SqliteStore;
use crosstalk_testing::relay::envelope;

const MINUTE: usize = 120;
/// Refusals that are enough. The relay makes room for two messages a second, so that they come however slow the machine is.
const REFUSED: usize = 100;
const INBOX: &str = "claude://flood/inbox";

#[test]
fn flooding_client_gets_retry_after() {
    let config = format!("[limits]\nlocal_requests_per_minute = {MINUTE}\n");
    let mut relay = relay().config(config).start();
    let mut connection = relay.connect();
    let (mut taken, mut refused) = (Vec::new(), 0);
    for number in 0..100_000 {
        if refused == REFUSED {
            break;
        }
        let id = format!("FLOOD-{number:04}");
        let letter = envelope(&id, "T-FLOOD", "chatgpt://flood/s", INBOX);
        let answer = connection.receive(&letter).unwrap();
        match answer.status {
            200 => taken.push(id),
            429 => {
                let (code, wait) = comes_again(&answer);
                assert_eq!(code, "E-RATE");
                assert!((1..=60).contains(&wait), "{wait}");
                refused += 1;
            }
            other => panic!("{other}: {}", answer.text()),
        }
    }
    // All that a minute has room for, and what the passing time adds; the rest is not there.
    assert!(
        taken.len() >= MINUTE / 2 && refused == REFUSED,
        "{} {refused}",
        taken.len()
    );
    relay.stop();
    let store = SqliteStore::open_existing(relay.store());
    let inbox = InboxQuery {
        address: INBOX.to_owned(),
        after: None,
        limit: usize::MAX,
    };
    let there = store.unwrap().unwrap().inbox_of(&inbox).unwrap();
    let there: Vec<String> = there.into_iter().map(|e| e.record.id).collect();
    assert_eq!(there, taken);
}
