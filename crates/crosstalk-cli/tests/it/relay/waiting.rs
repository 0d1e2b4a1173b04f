//! What waits at relays is listed with what waits here, and relays that do not answer hold nobody up.

use super::client::json;
use super::{Person, Relay, header};
use crate::schema::{assert_valid, validator};
use serde_json::Value;
use std::net::TcpListener;

const QUEUE: &str = "human://localhost/queue";

fn inbox(person: &Person, more: &[&str]) -> Value {
    let ended = person.does(&[&["inbox", "--json"], more].concat());
    assert_valid(&validator("inbox"), &ended.out, &ended.err)
}

#[test]
fn the_inbox_lists_what_waits_at_relays_and_in_queues_of_people() {
    let kalle = Person::new("waiting", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    let bot = Person::new("waiting", "bot");
    bot.does(&["relay", "add", &relay.url]);
    let ask = ["send", "--from", "claude://code/api"];
    let asked = bot.does(&[&ask[..], &["KALLE", "May I merge?"]].concat());
    let id = header(&asked.out, "message");
    bot.does(&[&ask[..], &[QUEUE, "Who knows the password?"]].concat());
    bot.does(&[&ask[..], &["CHATGPT", "Carry me."]].concat());

    let found = inbox(&kalle, &[]);
    assert_eq!(found["messages"], Value::Array(vec![]));
    let at = &found["relays"][0];
    assert_eq!(
        (&at["url"], &at["error"]),
        (&relay.url.clone().into(), &Value::Null)
    );
    let inboxes = at["inboxes"].as_array().unwrap();
    let addresses: Vec<&str> = inboxes
        .iter()
        .map(|i| i["address"].as_str().unwrap())
        .collect();
    assert_eq!(addresses, ["KALLE", QUEUE], "{found:#}");
    assert_eq!(inboxes[0]["messages"][0]["id"], id.as_str());
    assert_eq!(at["to_carry"], 1, "{found:#}");
    let shown = kalle.does(&["inbox"]);
    assert!(shown.out.contains("May I merge?"), "{}", shown.out);
    assert_eq!(inbox(&kalle, &["--local"])["relays"], Value::Array(vec![]));

    // Each command that it names fetches what it says.
    for fetched in inboxes {
        let command = fetched["fetch"].as_str().unwrap();
        assert!(shown.out.contains(command), "{}", shown.out);
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        kalle.does(&words);
    }
    let after = inbox(&kalle, &[]);
    assert_eq!(after["relays"][0]["inboxes"], Value::Array(vec![]));
    assert_eq!(after["messages"].as_array().unwrap().len(), 2, "{after:#}");
    relay.stop();
}

#[test]
fn a_relay_that_does_not_answer_is_a_line() {
    let kalle = Person::new("silent", "kalle");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = (format!("http://{}", silent.local_addr().unwrap()), silent);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", gone.local_addr().unwrap());
    let relay = Relay::start(&kalle.home, &[]);
    for (url, addresses) in [(&silent.0, "a*"), (&gone, "b*"), (&relay.url, "*")] {
        kalle.does(&["relay", "add", url, "--for", addresses]);
    }
    let bot = Person::new("silent", "bot");
    bot.does(&["relay", "add", &relay.url]);
    bot.does(&["send", "KALLE", "May I merge?"]);
    let shown = kalle.does(&["inbox"]);
    assert!(
        shown.out.contains("May I merge?"),
        "{}{}",
        shown.out,
        shown.err
    );
    for url in [&silent.0, &gone] {
        assert!(shown.err.contains(url), "{}", shown.err);
    }
    let found = inbox(&kalle, &[]);
    let errors: Vec<bool> = (0..3)
        .map(|n| found["relays"][n]["error"].is_string())
        .collect();
    assert_eq!(errors, [true, true, false], "{found:#}");
    relay.stop();
}

#[test]
fn the_most_specific_relay_gets_a_message_in_any_order() {
    for order in [["*", "claude://*"], ["claude://*", "*"]] {
        let kalle = Person::new(&format!("specific-{}", order[0].len()), "kalle");
        let folder = |name: &str| kalle.home.path(name);
        let all = Relay::start_at(&folder("all"), &[]);
        let claude = Relay::start_at(&folder("claude"), &[]);
        for pattern in order {
            let relay = if pattern == "*" { &all } else { &claude };
            kalle.does(&["relay", "add", &relay.url, "--for", pattern]);
        }
        for (to, relay) in [("claude://code/api", &claude), ("gemini://x/1", &all)] {
            kalle.does(&["send", to, "Which port?"]);
            let waits = kalle.does(&["inbox", "--relay", &relay.url, "--for", to, "--json"]);
            let number = json(&waits.out)["messages"].as_array().unwrap().len();
            assert_eq!(number, 1, "{order:?} {to}: {}", waits.out);
        }
        all.stop();
        claude.stop();
    }
}
