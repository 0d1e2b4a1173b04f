//! A person decides about what waits at a relay: what they saw, once.

use super::{Person, Relay, header};
use crosstalk_testing::wait::wait_until;

const HOLD: &str = "[[hold]]\nwhy = \"agents write to chats\"\nfrom = [\"claude://*\"]\n";

/// A relay that holds what Claude sends, and somebody who uses it.
fn setting(test: &str) -> (Person, Relay) {
    let ann = Person::new(test, "ann");
    let config = ann.home.path("relay.toml");
    std::fs::write(&config, HOLD).unwrap();
    let relay = Relay::start(&ann.home, &["--config", config.to_str().unwrap()]);
    ann.does(&["relay", "add", &relay.url]);
    (ann, relay)
}

fn send(ann: &Person, body: &str) -> String {
    let from = "claude://code/api";
    let sent = ann.does(&["send", "gemini://app/1", body, "--from", from]);
    assert!(sent.err.contains("waits for a person"), "{}", sent.err);
    assert!(!sent.err.contains("on its way"), "{}", sent.err);
    header(&sent.out, "message")
}

#[test]
fn what_waits_is_shown_exactly_and_decided_once() {
    let (ann, _relay) = setting("approve");
    let nothing = ann.does(&["approve"]);
    assert!(
        nothing.err.contains("No messages are held"),
        "{}",
        nothing.err
    );
    let id = send(&ann, "Delete \u{202e}everything.");
    let inbox = ["inbox", "--relay", "--for", "gemini://app/1", "--json"];
    assert!(!ann.does(&inbox).out.contains(&id));
    assert!(ann.does(&["status", &id]).out.contains("held"));
    let list = ann.does(&["approve"]);
    assert!(
        list.out.contains(&id) && list.out.contains("agents write to chats"),
        "{}",
        list.out
    );
    // Nobody is asked where nobody can answer, and nothing is decided.
    let asked = ann.run(&["approve", &id]);
    assert_eq!(asked.code, 2, "{}", asked.err);
    assert!(asked.err.contains("--yes"), "{}", asked.err);
    assert!(asked.out.contains("│ intent: REQUEST"), "{}", asked.out);
    assert!(asked.out.contains("unsigned"), "{}", asked.out);
    assert!(!asked.out.contains('\u{202e}'), "{:?}", asked.out);
    let other = format!("sha256:{}", "0".repeat(64));
    let wrong = ann.run(&["approve", &id, "--yes", "--raw", &other]);
    assert_eq!(wrong.code, 14, "{}", wrong.err);
    assert!(!ann.does(&inbox).out.contains(&id));
    let done = ann.does(&["approve", &id, "--yes"]);
    assert!(done.err.contains("Approved"), "{}", done.err);
    assert!(ann.does(&inbox).out.contains(&id));
    for again in [
        ann.run(&["approve", &id, "--yes"]),
        ann.run(&["refuse", &id, "--reason", "late", "--yes"]),
    ] {
        assert_eq!(again.code, 14, "{}", again.err);
        assert!(again.err.contains("was already"), "{}", again.err);
    }
    assert_eq!(ann.run(&["approve", "01KNOSUCH", "--yes"]).code, 10);
    let (one, _other) = (send(&ann, "And now?"), send(&ann, "And then?"));
    let several = ann.run(&["approve", &one[..4], "--yes"]);
    assert_eq!(several.code, 2, "{}", several.err);
}

#[test]
fn what_is_refused_goes_nowhere_and_its_sender_reads_why() {
    let (ann, _relay) = setting("refuse");
    let words = ["send", "gemini://app/1", "Delete everything.", "--from"];
    let sent = ann.does(&[&words[..], &["claude://code/api", "--json"]].concat());
    let sent: serde_json::Value = serde_json::from_str(&sent.out).unwrap();
    assert_eq!(
        (&sent["relay"]["taken"], &sent["relay"]["held"]),
        (&true.into(), &true.into())
    );
    let id = sent["message"]["id"].as_str().unwrap().to_owned();
    let refused = ann.does(&[
        "refuse",
        // As it is shown elsewhere, by its beginning.
        &id.to_lowercase()[..20],
        "--reason",
        "Not without Bob.",
        "--yes",
        "--json",
    ]);
    let value: serde_json::Value = serde_json::from_str(&refused.out).unwrap();
    assert_eq!(value["schema"], "crosstalk.approval/1");
    assert_eq!(value["decided"]["decision"], "refused");
    assert_eq!(value["intent"], "REQUEST");
    let inbox = ["inbox", "--relay", "--for", "claude://code/api", "--json"];
    let why = || ann.does(&inbox).out;
    wait_until("the reason", || why().contains("Not without Bob."));
    assert!(!why().contains("Bob.."), "{}", why());
    let inbox = ["inbox", "--relay", "--for", "gemini://app/1", "--json"];
    assert!(!ann.does(&inbox).out.contains("Delete everything."));
    let list = ann.does(&["approve", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(
        value,
        serde_json::json!({"schema": "crosstalk.approvals/1", "approvals": []})
    );
}

/// The suite of relays, by rule, against one that holds what the suite wants held: as the person at this machine, and
/// as an administrator who makes the credentials that it takes.
#[test]
fn the_rules_of_approvals_hold() {
    let ann = Person::new("approve-conform", "ann");
    let config = ann.home.path("relay.toml");
    std::fs::write(&config, "[[hold]]\nscopes = [\"conform-hold\"]\n").unwrap();
    let config = config.to_str().unwrap();
    let data = ann.home.path("relay");
    let relay = Relay::start_at(&data, &["--config", config]);
    let rules: Vec<String> = (60..68).map(|n| format!("CON-0{n}")).collect();
    let run = |relay: &Relay, more: &[&str]| {
        let only = rules.join(",");
        let words = ["conform", &relay.url, "--format", "json", "--only", &only];
        let ended = ann.run(&[&words[..], more].concat());
        assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
        ended.out.matches("\"skipped\"").count()
    };
    let local = run(&relay, &[]);
    relay.stop();
    let data = data.to_str().unwrap();
    let words = [
        "token", "create", "ops", "--role", "admin", "--for", "*", "--data", data,
    ];
    let file = ann.home.path("ops.token");
    std::fs::write(&file, ann.does(&words).out).unwrap();
    let relay = Relay::start_at(data.as_ref(), &["--config", config]);
    let admin = run(&relay, &["--token-file", file.to_str().unwrap()]);
    // Where there are no credentials, nobody is an agent.
    assert_eq!(admin + 1, local);
}
