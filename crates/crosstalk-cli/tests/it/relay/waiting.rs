//! What waits at relays is listed with what waits here, and relays that do not answer hold nobody up.

use super::client::json;
use super::{Person, Relay, header};
use crate::schema::{assert_valid, validator};
use crosstalk_cli::exit;
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

#[test]
fn waiting_tells_what_was_not_handed_over_and_what_nobody_read() {
    let kalle = Person::new("reach", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    kalle.does(&["send", "claude://code/api", "Are you there?"]);
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = format!("http://{}", gone.local_addr().unwrap());
    let lost = kalle.run(&["send", "BOT", "Lost?", "--relay", &gone]);
    let lost = header(&lost.out, "message");

    let shown = kalle.does(&["waiting"]).out;
    assert!(
        shown.contains("No one has read claude://code/api yet."),
        "{shown}"
    );
    assert!(shown.contains("crosstalk relay deliver"), "{shown}");
    let found = kalle.does(&["waiting", "--json"]);
    let found = assert_valid(&validator("waiting"), &found.out, &found.err);
    for waiting in found["messages"].as_array().unwrap() {
        let state = match waiting["message"]["id"] == lost.as_str() {
            true => "not_handed_over",
            false => "queued",
        };
        assert_eq!(waiting["delivery"]["state"], state, "{found:#}");
    }
    let local = kalle.does(&["waiting", "--local"]).out;
    assert!(
        local.contains("not handed over") && !local.contains("No one has read"),
        "{local}"
    );
    relay.stop();
}

#[test]
fn waiting_sender_learns_of_a_wrong_address_early() {
    let kalle = Person::new("early", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let ask = [
        "send",
        "claude://code/apj",
        "Which port?",
        "--relay",
        &relay.url,
    ];
    let sent = kalle.run(&[&ask[..], &["--wait", "3"]].concat());
    assert_eq!(sent.code, i32::from(exit::TIMEOUT), "{}", sent.err);
    let hint = "No one has read claude://code/apj yet.";
    let told = sent.err.find(hint).expect(&sent.err);
    assert!(
        told < sent.err.find("No answer yet").unwrap(),
        "{}",
        sent.err
    );
    assert_eq!(sent.err.matches(hint).count(), 1, "{}", sent.err);
    // A person who has to carry it is named, too.
    let ask = ["send", "CHATGPT", "Which port?", "--relay", &relay.url];
    let carried = kalle.run(&[&ask[..], &["--wait", "1"]].concat());
    let carry = format!("crosstalk carry --relay {}", relay.url);
    assert!(carried.err.contains(&carry), "{}", carried.err);
    relay.stop();
}

#[test]
fn the_last_status_is_of_what_was_sent_and_not_of_the_answer() {
    let kalle = Person::new("last-status", "kalle");
    let agent = Person::new("last-status", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let mut listener = agent.starts(&[
        "listen", "--relay", &relay.url, "--for", "BOT", "--exec", "echo", "443",
    ]);
    let ask = ["send", "BOT", "Which port?", "--relay", &relay.url];
    let sent = json(
        &kalle
            .does(&[&ask[..], &["--wait", "60", "--json"]].concat())
            .out,
    );
    let id = sent["message"]["id"].as_str().unwrap();
    let status = kalle.does(&["status", "last", "--relay", &relay.url]);
    assert!(status.out.contains(id), "{}", status.out);
    listener.kill().unwrap();
    listener.wait().unwrap();
    relay.stop();
}

#[test]
fn an_inbox_that_no_relay_could_fill_is_a_failure() {
    let kalle = Person::new("refused", "kalle");
    let data = kalle.home.path("relay");
    let data = data.to_str().unwrap();
    let make = [
        "token", "create", "kalle", "--role", "person", "--for", "KALLE",
    ];
    let secret = kalle.does(&[&make[..], &["--data", data]].concat()).out;
    let file = |name: &str, text: &str| {
        let file = kalle.home.path(name);
        std::fs::write(&file, text).unwrap();
        file.to_str().unwrap().to_owned()
    };
    let (right, wrong) = (file("right", &secret), file("wrong", &"x".repeat(46)));
    let relay = Relay::start(&kalle.home, &[]);
    let add = ["relay", "add", &relay.url, "--token-file"];
    kalle.does(&[&add[..], &[&wrong]].concat());
    let empty = kalle.run(&["inbox"]);
    assert_eq!(
        empty.code,
        i32::from(exit::PERM),
        "{}{}",
        empty.out,
        empty.err
    );
    assert!(
        empty.err.contains("no relay could be asked"),
        "{}",
        empty.err
    );
    kalle.does(&["inbox", "--local"]);
    kalle.does(&["relay", "remove", &relay.url]);
    kalle.does(&[&add[..], &[&right]].concat());
    kalle.does(&["inbox"]);

    // The same message is never taken: the hint names what can be done.
    let wrong = kalle.run(&["send", "BOT", "Hello?", "--from", "ANN"]);
    assert_eq!(wrong.code, i32::from(exit::PERM), "{}", wrong.err);
    assert!(
        wrong.err.contains("--from NAME") && wrong.err.contains("crosstalk forget "),
        "{}",
        wrong.err
    );
    assert!(!wrong.err.contains("relay deliver"), "{}", wrong.err);
    relay.stop();
}
