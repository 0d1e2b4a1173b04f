//! What could not be handed over: where it was meant to go, with its files.

use super::client::{http, json};
use super::{Person, Relay, header};
use crosstalk_cli::exit;

/// A URL where nobody listens.
fn nowhere() -> String {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", free.local_addr().unwrap())
}

#[test]
fn a_message_goes_where_it_was_meant_and_nowhere_else() {
    let kalle = Person::new("meant", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    let gone = nowhere();
    let sent = kalle.run(&["send", "BOT", "Secret?", "--relay", &gone]);
    assert_eq!(sent.code, i32::from(exit::ROUTE), "{}", sent.err);
    let id = header(&sent.out, "message");
    for words in [vec!["show", &id], vec!["status", &id]] {
        let told = kalle.run(&words);
        assert!(
            told.err.contains("not handed over") && told.err.contains(&gone),
            "{words:?}: {}",
            told.err
        );
    }
    let again = kalle.run(&["relay", "deliver", &id]);
    assert_eq!(again.code, i32::from(exit::ROUTE), "{}", again.err);
    let all = kalle.run(&["relay", "deliver", "--all"]);
    assert_eq!(all.code, i32::from(exit::ROUTE), "{}", all.err);
    let inbox = kalle.does(&["inbox", "--relay", "--for", "BOT", "--json"]);
    assert_eq!(json(&inbox.out)["messages"].as_array().unwrap().len(), 0);
    // Another one, if that is said.
    kalle.does(&["relay", "deliver", &id, "--relay", &relay.url]);
    assert!(!kalle.does(&["show", &id]).err.contains("not handed over"));
    let all = kalle.does(&["relay", "deliver", "--all"]);
    assert!(
        all.err.contains("everything was handed over"),
        "{}",
        all.err
    );
    relay.stop();
}

#[test]
fn a_file_that_is_missing_is_told_and_one_that_is_there_is_fetched() {
    let kalle = Person::new("file", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let file = kalle.home.path("plan.md");
    let name = file.to_str().unwrap();
    std::fs::write(&file, "# The plan\n").unwrap();
    let gone = nowhere();
    let sent = kalle.run(&[
        "send",
        "BOT",
        "See the plan.",
        "--attach",
        name,
        "--relay",
        &gone,
    ]);
    let id = header(&sent.out, "message");
    let digest = sent
        .out
        .split("digest=")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap();
    let elsewhere = kalle.home.path("moved.md");
    std::fs::rename(&file, &elsewhere).unwrap();
    let deliver = ["relay", "deliver", &id, "--relay", &relay.url];
    let without = kalle.does(&deliver);
    assert!(
        without.err.contains("plan.md") && without.err.contains("--attach"),
        "{}",
        without.err
    );
    let fetch = ["relay", "fetch", digest, "--relay", &relay.url];
    assert_eq!(kalle.run(&fetch).code, i32::from(exit::ROUTE));
    let with = kalle.does(&[&deliver[..], &["--attach", elsewhere.to_str().unwrap()]].concat());
    assert!(!with.err.contains("plan.md"), "{}", with.err);
    assert_eq!(kalle.does(&fetch).out, "# The plan\n");
    assert_eq!(
        http(&relay.url, &format!("/crosstalk/blobs/{digest}")),
        "# The plan\n"
    );
    let to_file = [&fetch[..], &["--out", name]].concat();
    kalle.does(&to_file);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# The plan\n");
    // Nothing that is there is overwritten.
    assert_eq!(kalle.run(&to_file).code, 1);
    assert_eq!(
        kalle.run(&["relay", "fetch", "sha256:12"]).code,
        i32::from(exit::USAGE)
    );
    relay.stop();
}
