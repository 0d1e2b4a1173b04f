//! What programs, chats and people answer: with which intent, from whom and to whom.

use super::client::{http, json};
use super::{Person, Relay, header};
use crosstalk_cli::exit;
use crosstalk_testing::wait::wait_until;
use std::io::Write as _;

/// An envelope as a model writes it: without ids of its own.
fn written(sender: &str, receiver: &str, intent: &str, body: &str) -> String {
    format!(
        "Sure:\n\n```\n[[{sender}→{receiver} v1]]\nuser: bot\ncontext: x\nintent: {intent}\nbody: |\n  {body}\nsig: none\n[[END]]\n```\n"
    )
}

/// A program that prints a text, whatever it reads.
fn program(person: &Person, name: &str, text: &str) -> String {
    let path = person.home.path(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Everything that waits for an address.
fn waiting(person: &Person, url: &str, address: &str) -> Vec<serde_json::Value> {
    let inbox = person.does(&["inbox", "--relay", url, "--for", address, "--json"]);
    json(&inbox.out)["messages"].as_array().unwrap().clone()
}

#[test]
fn a_program_says_what_it_means_and_to_whom() {
    let kalle = Person::new("intents", "kalle");
    let agent = Person::new("intents", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let listen = |text: &str| {
        let file = program(&agent, "answer.txt", text);
        let start = [
            "listen",
            "--relay",
            &relay.url,
            "--for",
            "claude://bot",
            "--once",
        ];
        agent.run(&[&start[..], &["--exec", "cat", &file]].concat())
    };
    for (intent, receiver, body) in [
        ("REQUEST", "KALLE", "Which one?"),
        ("NACK", "KALLE", "I refuse."),
        (
            "ESCALATE",
            "human://localhost/queue",
            "A person has to decide.",
        ),
        ("RESPOND", "KALLE", "The second one."),
    ] {
        let sent = kalle.does(&["send", "claude://bot", "Work?", "--relay", &relay.url]);
        let id = header(&sent.out, "message");
        // Models sign with a simple name.
        let listened = listen(&written("CLAUDE", receiver, intent, body));
        assert_eq!(listened.code, 0, "{}", listened.err);
        let got = waiting(&kalle, &relay.url, receiver);
        let got = got.last().unwrap();
        assert_eq!(got["intent"], intent);
        assert_eq!(
            (&got["from"], &got["to"]),
            (&"claude://bot".into(), &receiver.into())
        );
        let envelope = got["envelope"].as_str().unwrap();
        assert!(envelope.contains(body), "{envelope}");
        assert_eq!(header(envelope, "parent"), id);
        assert_eq!(header(envelope, "thread"), header(&sent.out, "thread"));
    }
    // It speaks for the address that was asked, whatever name it writes.
    for (sender, receiver) in [
        ("GEMINI", "KALLE"),
        ("YOU", "USER"),
        ("KALLE", "claude://bot"),
    ] {
        kalle.does(&["send", "claude://bot", "Work?", "--relay", &relay.url]);
        let listened = listen(&written(sender, receiver, "RESPOND", "The third one."));
        assert_eq!(listened.code, 0, "{}", listened.err);
        let note = format!(
            "wrote the sender {sender} into its envelope, which goes out from claude://bot"
        );
        let told = listened.err.replace('\n', " ");
        assert!(told.contains(&note), "{told}");
        let got = waiting(&kalle, &relay.url, "KALLE");
        let got = got.last().unwrap();
        assert_eq!(
            (&got["from"], &got["intent"]),
            (&"claude://bot".into(), &"RESPOND".into())
        );
        assert!(got.to_string().contains("The third one."));
    }
    relay.stop();
}

#[test]
fn answer_of_another_chat_is_rejected() {
    let kalle = Person::new("chats", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    let sent = kalle.does(&[
        "send",
        "chatgpt",
        "Is JWT fine?",
        "--from",
        "claude://code/api",
    ]);
    let id = header(&sent.out, "message");
    let done = |text: &str| kalle.say(&["carry", "--done", &id, "--paste"], text);
    let foreign = done(&written("GEMINI", "claude://code/api", "NACK", "I refuse"));
    assert_eq!(foreign.code, i32::from(exit::PERM), "{}", foreign.err);
    assert!(
        foreign.err.contains("from GEMINI") && foreign.err.contains("CHATGPT was asked"),
        "{}",
        foreign.err
    );
    let own = done(&written("ChatGPT", "CLAUDE", "NACK", "I refuse"));
    assert_eq!(own.code, 0, "{}", own.err);
    assert!(!own.out.contains("filed from plain text"), "{}", own.out);
    let got = waiting(&kalle, &relay.url, "claude://code/api");
    assert_eq!((&got[0]["intent"], got.len()), (&"NACK".into(), 1));
    relay.stop();
}

#[test]
fn exit_code_of_waiting_is_that_of_the_answer() {
    let kalle = Person::new("ends", "kalle");
    let error = written("claude://error", "KALLE", "ERROR", "Gone.").replace(
        "body: |",
        "meta: error\n  Code: E-UNSUPPORTED\n  Reason: no such thing\nbody: |",
    );
    let nack = written("claude://nack", "KALLE", "NACK", "I refuse.");
    let [error, nack] = [error, nack].map(|text| {
        text.replace(
            "context: x",
            "session: 2026-11-16T10Z abc123\nparent: PARENT\ncontext: x",
        )
    });
    let config = ["error", "nack", "fails", "fine"].map(|name| {
        let text = match name {
            "error" => &error,
            "nack" => &nack,
            _ => "Fine.",
        };
        let file = program(&kalle, name, text);
        let command = match name {
            "fails" => "[\"false\"]".to_owned(),
            _ => format!(
                "[\"sh\", \"-c\", \"id=$(sed -n 's/^message: //p'); sed s/PARENT/$id/ '{file}'\"]\ninput = \"envelope\""
            ),
        };
        format!("[[route]]\nto = \"claude://{name}\"\nby = \"exec\"\ncommand = {command}\n")
    });
    let config = format!("{}[retry]\nattempts = 1\n", config.concat());
    let config = program(&kalle, "relay.toml", &config);
    let relay = Relay::start(&kalle.home, &["--config", &config]);
    for (name, code) in [
        ("fine", exit::OK),
        ("error", exit::UNSUPPORTED),
        ("nack", exit::FAILURE),
        ("fails", exit::ROUTE),
    ] {
        let to = format!("claude://{name}");
        let words = ["send", &to, "Work?", "--relay", &relay.url, "--wait", "60"];
        let sent = kalle.run(&words);
        assert_eq!(
            sent.code,
            i32::from(code),
            "{name}: {}{}",
            sent.out,
            sent.err
        );
        let sent = kalle.run(&[&words[..], &["--json"]].concat());
        assert_eq!(sent.code, i32::from(code), "{name}: {}", sent.err);
        let error = &json(&sent.out)["relay"]["error"];
        match code {
            exit::OK => assert!(error.is_null(), "{error}"),
            code => assert_eq!(error["exit"], code, "{error}"),
        }
        // Answers without an id are known by the one that the relay gave them.
        let left = waiting(&kalle, &relay.url, "KALLE");
        assert!(left.is_empty(), "{name}: {left:?}");
    }
    relay.stop();
}

#[test]
fn a_person_answers_under_the_address_that_was_asked() {
    let kalle = Person::new("person", "kalle");
    let agent = Person::new("person", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    let queue = "human://localhost/queue";
    let sent = agent.does(&[
        "send",
        queue,
        "Which one stays?",
        "--intent",
        "ESCALATE",
        "--from",
        "claude://a/1",
        "--relay",
        &relay.url,
    ]);
    let id = header(&sent.out, "message");
    let taken = kalle.does(&["inbox", "--relay", "--for", queue, "--take"]);
    assert!(
        taken.err.contains("answer with `crosstalk reply"),
        "{}",
        taken.err
    );
    let reply = kalle.does(&["reply", "last", "Keep v2."]);
    assert!(
        reply
            .out
            .starts_with("[[human://localhost/queue→claude://a/1 v1]]"),
        "{}",
        reply.out
    );
    assert_eq!(header(&reply.out, "intent"), "RESPOND");
    assert_eq!(header(&reply.out, "parent"), id);
    wait_until("the agent has the answer", || {
        let got = waiting(&agent, &relay.url, "claude://a/1");
        got.len() == 1 && got[0]["intent"] == "RESPOND"
    });
    relay.stop();
}

#[test]
fn a_message_without_an_id_has_the_one_of_the_relay() {
    let kalle = Person::new("ids", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    let text = "[[claude://a/1→KALLE v1]]\nuser: bot\nsession: 2026-11-16T10Z abc123\ncontext: x\nintent: REQUEST\nbody: |\n  Which one?\nsig: none\n[[END]]\n";
    let host = relay.url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /crosstalk/receive HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
    .unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).unwrap();
    let got = waiting(&kalle, &relay.url, "KALLE");
    let (id, thread) = (
        got[0]["id"].as_str().unwrap(),
        got[0]["thread"].as_str().unwrap(),
    );
    kalle.does(&["inbox", "--relay", "--take"]);
    let reply = kalle.does(&["reply", "last", "The second."]);
    assert_eq!(
        (header(&reply.out, "parent"), header(&reply.out, "thread")),
        (id.into(), thread.into())
    );
    kalle.does(&["status", id]);
    let tree = http(&relay.url, &format!("/crosstalk/threads/{thread}"));
    assert_eq!(
        json(&tree)["messages"][0]["answers"]
            .as_array()
            .unwrap()
            .len(),
        1,
        "{tree}"
    );
    relay.stop();
}

/// A program gets the message and its own surroundings, and not the passphrase of the person's keys.
#[test]
fn program_does_not_get_the_passphrase() {
    let kalle = Person::new("passphrase", "kalle");
    let agent = Person::new("passphrase", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["send", "claude://bot", "Work?", "--relay", &relay.url]);
    let words = [
        "listen",
        "--relay",
        &relay.url,
        "--for",
        "claude://bot",
        "--once",
        "--exec",
        "env",
    ];
    let variables = [
        ("CROSSTALK_USER", "agent"),
        ("CROSSTALK_CLIPBOARD", "none"),
        ("CROSSTALK_PASSPHRASE", "correct horse"),
        ("CROSSTALK_NEW_PASSPHRASE", "battery staple"),
        ("OF_THE_PROGRAM", "yes"),
    ];
    let listened = agent.home.run_with(&variables, &words, "");
    assert_eq!(listened.code, 0, "{}", listened.err);
    let got = waiting(&kalle, &relay.url, "KALLE");
    let answer = got[0]["envelope"].as_str().unwrap();
    assert!(answer.contains("OF_THE_PROGRAM=yes"), "{answer}");
    for secret in ["PASSPHRASE", "correct horse", "battery staple"] {
        assert!(!answer.contains(secret), "{answer}");
    }
    relay.stop();
}
