//! A poll of a command, of a chat that a person carries it to, and of an agent; counted by the relay, and again from files.

use super::{Person, Relay, binary, header};
use crate::schema::{assert_valid, validator};
use crosstalk_testing::wait::wait_until;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const ME: &str = "human://acme.example/kalle";

/// A thread, as it leaves the relay.
fn exported(relay: &Relay, thread: &str) -> String {
    let address = relay.url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(
        stream,
        "GET /crosstalk/threads/{thread} HTTP/1.1\r\nHost: {address}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// The key that a relay signs its hops with.
fn key_of(relay: &Relay) -> String {
    let mut command = binary();
    let command = command.env("CROSSTALK_HOME", relay.data());
    let listed = command.args(["key", "list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    listed["keys"][0]["public"].as_str().unwrap().to_owned()
}

#[test]
fn count_of_the_relay_can_be_repeated() {
    let kalle = Person::new("poll", "kalle");
    let config = kalle.home.path("relay.toml");
    std::fs::write(
        &config,
        "[[route]]\nto = \"bot://*\"\nby = \"exec\"\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; echo 'Monolith.'\"]\n",
    )
    .unwrap();
    let relay = Relay::start(&kalle.home, &["--config", config.to_str().unwrap()]);
    let url = relay.url.as_str();
    let sent = kalle.does(&[
        "poll",
        "new",
        "What do we build?",
        "--option",
        "Monolith",
        "--option",
        "Microservices",
        "--type",
        "majority",
        "--quorum",
        "2-of-3",
        "--target",
        "bot://review",
        "--target",
        "gemini",
        "--target",
        "claude://code/api",
        "--from",
        ME,
        "--relay",
        url,
    ]);
    let (id, thread) = (header(&sent.out, "message"), header(&sent.out, "thread"));
    let form = validator("poll");
    let status = || {
        let shown = kalle
            .does(&["poll", "status", &id, "--relay", url, "--json"])
            .out;
        assert_valid(&form, &shown, "poll status")
    };
    wait_until("the command has answered", || {
        status()["quorum"]["counted"] == 1
    });
    assert_eq!(status()["state"], "open");
    // A person brings it to a chat, and its answer back.
    let next = kalle.does(&["carry", "--next", "--relay", url]);
    assert!(
        next.out.contains("Begin your answer with one of these"),
        "{}",
        next.out
    );
    kalle.does_with(
        &["carry", "--done", &id, "--paste", "--relay", url],
        "Microservices, because they scale.\n",
    );
    let chart = kalle.does(&["poll", "status", &id, "--relay", url]).out;
    assert!(
        chart.contains("Microservices") && chart.contains("█"),
        "{chart}"
    );
    // An agent answers with a ballot.
    kalle.does(&[
        "send",
        ME,
        "One team.",
        "--from",
        "claude://code/api",
        "--reply-to",
        &id,
        "--intent",
        "RESPOND",
        "--meta",
        "vote.Choice=Monolith",
        "--relay",
        url,
    ]);
    wait_until("the poll is closed", || status()["state"] == "closed");
    let closed = status();
    assert_eq!(closed["outcome"], "Monolith");
    // The result is in the inbox of who asked.
    let inbox = kalle
        .does(&["inbox", "--relay", url, "--for", ME, "--json"])
        .out;
    let inbox: Value = serde_json::from_str(&inbox).unwrap();
    let envelopes = inbox["messages"].as_array().unwrap().iter();
    let results: Vec<&str> = envelopes
        .filter_map(|m| m["envelope"].as_str())
        .filter(|e| e.contains("\nmeta: collation\n"))
        .collect();
    let [result] = results.as_slice() else {
        panic!("not one result: {results:?}");
    };
    // From the text of the thread alone, with the key of the relay: the same bytes, so the same id.
    let file = kalle.home.path("thread.crosstalk");
    std::fs::write(&file, exported(&relay, &thread)).unwrap();
    let key = key_of(&relay);
    let again = kalle.does(&[
        "poll",
        "collate",
        "--envelope",
        "--at",
        &header(result, "At"),
        "--relay-key",
        &key,
        file.to_str().unwrap(),
    ]);
    assert_eq!(
        header(&again.out, "message"),
        header(result, "message"),
        "{}\n{result}",
        again.out
    );
    let body = |text: &str| text.split_once("\nbody: |\n").unwrap().1.to_owned();
    assert_eq!(body(&again.out), body(result));
    let json = kalle
        .does(&["poll", "collate", "--json", file.to_str().unwrap()])
        .out;
    let json = assert_valid(&form, &json, "poll collate");
    assert_eq!(json["tally"], closed["tally"]);
    relay.stop();
}

#[test]
fn a_poll_by_paste_is_counted_corrected_and_closed_here() {
    let kalle = Person::new("poll-paste", "kalle");
    let sent = kalle.does(&[
        "poll", "new", "When?", "--option", "Friday", "--option", "Monday", "--target", "claude",
        "--target", "gemini", "--secret",
    ]);
    let (id, thread) = (header(&sent.out, "message"), header(&sent.out, "thread"));
    let answer = |from: &str, number: u8, body: &str| {
        format!(
            "[[{from}→KALLE v1]]\nuser: x\nthread: {thread}\nparent: {id}\nmessage: answer-{number}\ncontext: x\nintent: \
             RESPOND\nbody: |\n  {body}\nsig: none\n[[END]]\n"
        )
    };
    kalle.does_with(
        &["paste", "-"],
        &answer("CLAUDE", 1, "Friday, because the tests are green."),
    );
    let open = kalle.does(&["poll", "status", &id]).out;
    assert!(
        open.contains("CLAUDE: has answered") && !open.contains("Friday: "),
        "{open}"
    );
    kalle.does_with(
        &["paste", "-"],
        &answer("GEMINI", 2, "I would say the earlier one."),
    );
    let status = kalle.does(&["poll", "status", &id, "--json"]).out;
    let status = assert_valid(&validator("poll"), &status, "poll status");
    assert_eq!(status["not_counted"][0]["why"], "unreadable");
    assert_eq!(
        status["tally"],
        serde_json::json!({}),
        "it is secret and open"
    );
    kalle.does(&[
        "reply",
        &id,
        "It means Friday.",
        "--intent",
        "RESPOND",
        "--meta",
        "vote.For=GEMINI",
        "--meta",
        "vote.Corrects=answer-2",
        "--meta",
        "vote.Choice=Friday",
    ]);
    let closed = kalle.does(&["poll", "close", &id, "--json"]).out;
    let closed: Value = serde_json::from_str(&closed).unwrap();
    assert_eq!(closed["tally"]["Friday"], 2, "{closed:#}");
    assert_eq!(closed["counted"][1]["corrected"]["by"], "KALLE");
    // Closed is closed, and the same again.
    let again = kalle.does(&["poll", "close", &thread, "--json"]).out;
    assert_eq!(serde_json::from_str::<Value>(&again).unwrap(), closed);
    // From the exported text, the same comes out.
    let file = kalle.home.path("thread.crosstalk");
    kalle.does(&["export", &thread, "--out", file.to_str().unwrap()]);
    let at = closed["at"].as_str().unwrap();
    let collated = kalle.does(&[
        "poll",
        "collate",
        "--envelope",
        "--at",
        at,
        file.to_str().unwrap(),
    ]);
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(&collated.out), "{}\n{text}", collated.out);
}
