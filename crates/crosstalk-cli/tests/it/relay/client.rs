//! Sending, listening, waiting and answering.

use super::{Person, Relay, header, output, wait_for_lines};
use crosstalk_cli::exit;
use crosstalk_testing::wait::wait_until;
use serde_json::Value;

pub(super) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

#[test]
fn a_message_goes_out_is_answered_by_a_program_and_comes_back() {
    let kalle = Person::new("round", "kalle");
    let agent = Person::new("round", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    let sent = kalle.does(&["send", "claude://code/api", "Which endpoint stays?"]);
    assert!(
        sent.err.contains(&format!("Handed to {}", relay.url)),
        "{}",
        sent.err
    );
    let id = header(&sent.out, "message");

    let inbox = kalle.does(&[
        "inbox",
        "--relay",
        &relay.url,
        "--for",
        "claude://code/api",
        "--json",
    ]);
    let inbox = json(&inbox.out);
    assert_eq!(inbox["messages"][0]["id"], id.as_str());
    assert_eq!(inbox["messages"][0]["taken"], false);
    // Looking takes nothing away.
    let again = kalle.does(&["inbox", "--relay", "--for", "claude://code/api"]);
    assert!(
        again.out.contains(&id) && again.out.contains("Which endpoint stays?"),
        "{}",
        again.out
    );

    let place = agent.home.path("seen.txt");
    let script = format!("tee '{}' | sed -n 's/^  /Heard: /p'", place.display());
    let listen = [
        "listen",
        "--relay",
        &relay.url,
        "--for",
        "claude://code/api",
        "--once",
        "--input",
        "envelope",
        "--exec",
        "sh",
        "-c",
        &script,
    ];
    let listened = agent.does(&listen);
    assert!(listened.err.contains("answered with"), "{}", listened.err);
    let seen = std::fs::read_to_string(place).unwrap();
    assert!(
        seen.starts_with("[[KALLE→claude://code/api v1]]") && seen.contains(&id),
        "{seen}"
    );

    let status = json(&kalle.does(&["status", &id, "--json"]).out);
    assert_eq!(status["deliveries"][0]["state"], "acknowledged");
    let taken = kalle.does(&["inbox", "--relay", "--take"]);
    assert!(
        taken.out.contains("Heard: Which endpoint stays?"),
        "{}",
        taken.out
    );
    assert!(
        kalle
            .does(&["inbox", "--relay"])
            .err
            .contains("nothing waits there")
    );
    // The question is settled here, too.
    let threads = json(&kalle.does(&["threads", "--json"]).out);
    assert_eq!(
        (
            &threads["threads"][0]["messages"],
            &threads["threads"][0]["asked"]
        ),
        (&2.into(), &0.into())
    );
    // What the agent heard and said is kept where it listens.
    assert_eq!(
        json(&agent.does(&["threads", "--json"]).out)["threads"][0]["messages"],
        2
    );
    relay.stop();
}

#[test]
fn waiting_ends_with_the_answer_or_a_timeout() {
    let kalle = Person::new("wait", "kalle");
    let agent = Person::new("wait", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let mut listener = agent.starts(&[
        "listen",
        "--relay",
        &relay.url,
        "--for",
        "BOT",
        "--input",
        "body",
        "--exec",
        "sed",
        "s/^/Yes: /",
    ]);
    let sent = kalle.does(&[
        "send", "bot", "Ready?", "--relay", &relay.url, "--wait", "60",
    ]);
    assert!(
        sent.out.contains("│ Yes: Ready?") && !sent.out.contains("[[KALLE"),
        "{}",
        sent.out
    );
    // The answer is here and acknowledged: it does not wait at the relay any more.
    assert!(
        kalle
            .does(&["inbox", "--relay", &relay.url])
            .err
            .contains("nothing waits there")
    );
    let sent = kalle.does(&[
        "send", "bot", "Again?", "--relay", &relay.url, "--wait", "60", "--json",
    ]);
    let sent = json(&sent.out);
    assert_eq!(sent["relay"]["taken"], true);
    assert!(
        sent["relay"]["answer"]
            .as_str()
            .unwrap()
            .contains("Yes: Again?")
    );
    wait_for_lines(&mut listener, "answered with", 2);
    listener.kill().unwrap();
    listener.wait().unwrap();

    let vain = kalle.run(&[
        "send", "nobody", "Hello?", "--relay", &relay.url, "--wait", "1",
    ]);
    assert_eq!(vain.code, i32::from(exit::TIMEOUT), "{}", vain.err);
    assert!(vain.err.contains("crosstalk relay deliver"), "{}", vain.err);
    let usage = kalle.run(&["send", "nobody", "Hello?", "--wait", "1"]);
    assert_eq!(usage.code, i32::from(exit::USAGE), "{}", usage.err);
    relay.stop();
}

#[test]
fn a_program_that_fails_acknowledges_nothing() {
    let kalle = Person::new("fail", "kalle");
    let agent = Person::new("fail", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let sent = kalle.does(&["send", "claude://bot", "Work?", "--relay", &relay.url]);
    let id = header(&sent.out, "message");
    let listen = |words: &[&str]| {
        let start = [
            "listen",
            "--relay",
            &relay.url,
            "--for",
            "claude://bot",
            "--once",
            "--exec",
        ];
        agent.run(&[&start, words].concat())
    };
    let failed = listen(&["sh", "-c", "echo half; exit 3"]);
    assert_eq!(failed.code, 1, "{}", failed.err);
    assert!(failed.err.contains("not acknowledged"), "{}", failed.err);
    let status = json(
        &kalle
            .does(&["status", &id, "--relay", &relay.url, "--json"])
            .out,
    );
    assert_eq!(status["deliveries"][0]["state"], "delivered");
    let worked = listen(&["echo", "Done."]);
    assert_eq!(worked.code, 0, "{}", worked.err);
    let status = json(
        &kalle
            .does(&["status", &id, "--relay", &relay.url, "--json"])
            .out,
    );
    assert_eq!(status["deliveries"][0]["state"], "acknowledged");
    // A broadcast is given to the program, and never answered.
    kalle.does(&[
        "send",
        "claude://bot",
        "--intent",
        "BROADCAST",
        "News.",
        "--relay",
        &relay.url,
    ]);
    let given = listen(&["echo", "Thanks!"]);
    assert!(given.err.contains("given to the program"), "{}", given.err);
    let answers = json(&kalle.does(&["inbox", "--relay", &relay.url, "--json"]).out);
    let answers = answers["messages"].as_array().unwrap().iter();
    let intents: Vec<&str> = answers.map(|m| m["intent"].as_str().unwrap()).collect();
    // That it failed is settled by the answer.
    assert_eq!(intents, ["RESPOND"]);
    relay.stop();
}

/// A sender that waits for an answer keeps waiting when the relay restarts, however it ended.
#[test]
fn waiting_continues_when_the_relay_restarts() {
    for signal in ["TERM", "KILL"] {
        let kalle = Person::new(&format!("restart-{signal}"), "kalle");
        let agent = Person::new(&format!("restart-{signal}"), "agent");
        let data = kalle.home.path("relay");
        let serve = |listen: &str| {
            let mut command = crate::run::binary();
            command
                .args(["serve", "--listen", listen, "--data"])
                .arg(&data);
            Relay::of(command, &data)
        };
        let mut relay = serve(&format!("{}:0", crosstalk_testing::loopback::own_ip()));
        let url = relay.url.clone();
        let mut waiting = kalle.starts(&[
            "send", "BOT", "Ready?", "--relay", &url, "--wait", "600", "--json",
        ]);
        wait_until("the relay has it", || {
            let inbox = agent.does(&["inbox", "--relay", &url, "--for", "BOT", "--json"]);
            json(&inbox.out)["messages"].as_array().unwrap().len() == 1
        });
        relay.signal(signal);
        relay.ended();
        let talk = std::io::BufReader::new(waiting.stderr.take().unwrap());
        let mut talk = std::io::BufRead::lines(talk).map(Result::unwrap);
        let mut told = String::new();
        while !told.contains("waiting for the relay to come back") {
            told = format!("{told} {}", talk.next().unwrap());
        }
        // It is not called undelivered: the relay had said that it has it.
        let due = kalle.does(&["relay", "deliver", "--all"]);
        assert!(
            due.err.contains("everything was handed over"),
            "{}",
            due.err
        );
        let relay = serve(url.strip_prefix("http://").unwrap());
        agent.does(&[
            "listen", "--relay", &url, "--for", "BOT", "--once", "--exec", "echo", "Yes.",
        ]);
        let rest: Vec<String> = talk.collect();
        let ended = waiting.wait_with_output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{signal}: {rest:?}");
        let sent = json(&String::from_utf8(ended.stdout).unwrap());
        assert_eq!(sent["relay"]["taken"], true);
        let answer = sent["relay"]["answer"].as_str().unwrap();
        assert!(answer.contains("  Yes.\n"), "{answer}");
        relay.stop();
    }
}

#[test]
fn listen_continues_after_the_relay_was_gone() {
    let kalle = Person::new("again", "kalle");
    let anna = Person::new("again", "anna");
    let data = kalle.home.path("relay");
    let serve = |listen: &str| {
        let mut command = crate::run::binary();
        command
            .args(["serve", "--listen", listen, "--data"])
            .arg(&data);
        Relay::of(command, &data)
    };
    // Nobody else takes its port while it is gone.
    let relay = serve(&format!("{}:0", crosstalk_testing::loopback::own_ip()));
    let url = relay.url.clone();
    let mut listener = anna.starts(&["listen", "--relay", &url, "--for", "ANNA", "--json"]);
    kalle.does(&["send", "ANNA", "One", "--relay", &url]);
    let got = |text: &str| {
        wait_until(text, || anna.run(&["search", text]).out.contains(text));
    };
    got("One");
    relay.stop();
    let relay = serve(url.strip_prefix("http://").unwrap());
    kalle.does(&["send", "ANNA", "Two", "--relay", &url]);
    got("Two");
    wait_until("everything is acknowledged", || {
        let left = kalle.does(&["inbox", "--relay", &url, "--for", "ANNA", "--json"]);
        json(&left.out)["messages"].as_array().unwrap().is_empty()
    });
    listener.kill().unwrap();
    let (_, text) = output(listener);
    let lines: Vec<Value> = text
        .lines()
        .filter(|l| l.starts_with('{'))
        .map(json)
        .collect();
    let bodies: Vec<&str> = lines
        .iter()
        .map(|l| l["envelope"].as_str().unwrap())
        .collect();
    assert_eq!(bodies.len(), 2, "{text}");
    assert!(
        bodies[0].contains("  One\n") && bodies[1].contains("  Two\n"),
        "{text}"
    );
    relay.stop();
}

#[test]
fn a_refusal_keeps_the_message_and_says_what_to_do() {
    let kalle = Person::new("refusal", "kalle");
    let url = format!("http://{}", crosstalk_testing::loopback::silent());
    let sent = kalle.run(&["send", "BOT", "Hello?", "--relay", &url]);
    assert_eq!(sent.code, i32::from(exit::ROUTE), "{}", sent.err);
    let id = header(&sent.out, "message");
    assert!(sent.err.contains("crosstalk relay deliver"), "{}", sent.err);
    assert!(kalle.does(&["show", &id]).out.contains("Hello?"));
    let report = kalle.run(&["send", "BOT", "Hello?", "--relay", &url, "--json"]);
    assert_eq!(report.code, i32::from(exit::ROUTE));
    let report = json(&report.out);
    assert_eq!(
        (&report["relay"]["taken"], &report["relay"]["error"]["exit"]),
        (&false.into(), &10.into())
    );

    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "deliver", &id, "--relay", &relay.url]);
    // Once more does no harm.
    kalle.does(&["relay", "deliver", &id, "--relay", &relay.url]);
    let inbox = json(
        &kalle
            .does(&["inbox", "--relay", &relay.url, "--for", "BOT", "--json"])
            .out,
    );
    assert_eq!(inbox["messages"].as_array().unwrap().len(), 1);
    let unknown = kalle.run(&["status", "01KNOBODYKNOWS", "--relay", &relay.url]);
    assert_eq!(unknown.code, i32::from(exit::ROUTE), "{}", unknown.err);
    let by_mail = [
        "send",
        "BOT",
        "By mail?",
        "--meta",
        "routing.X-Delivery=pigeon",
        "--relay",
    ];
    let denied = kalle.run(&[&by_mail[..], &[&relay.url]].concat());
    assert_eq!(denied.code, i32::from(exit::UNSUPPORTED), "{}", denied.err);
    let said = &denied.err;
    assert!(
        said.contains("E-UNSUPPORTED") && said.contains("What to do"),
        "{said}"
    );
    assert!(said.contains("crosstalk relay deliver"), "{said}");
    relay.stop();
}

#[test]
fn without_a_relay_nothing_goes_anywhere() {
    let kalle = Person::new("none", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url, "--for", "claude://*"]);
    kalle.does(&["send", "chatgpt", "For the clipboard"]);
    kalle.does(&["send", "claude://a", "Stays here", "--no-relay"]);
    kalle.does(&["send", "claude://a", "Goes out"]);
    let metrics = http(&relay.url, "/metrics");
    let taken: Vec<&str> = metrics
        .lines()
        .filter(|l| l.contains("taken") && !l.starts_with('#'))
        .collect();
    assert!(taken.iter().any(|l| l.ends_with(" 1")), "{taken:?}");
    kalle.does(&["relay", "remove", &relay.url]);
    assert_eq!(kalle.run(&["relay", "remove", &relay.url]).code, 1);
    assert_eq!(
        json(&kalle.does(&["relay", "list", "--json"]).out)["relays"],
        Value::Array(vec![])
    );
    relay.stop();
}

#[test]
fn attachments_are_uploaded() {
    let kalle = Person::new("attach", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let file = kalle.home.path("plan.md");
    std::fs::write(&file, "# The plan\n").unwrap();
    let sent = kalle.does(&[
        "send",
        "BOT",
        "See the plan.",
        "--attach",
        file.to_str().unwrap(),
        "--relay",
        &relay.url,
    ]);
    assert!(!sent.err.contains("give them to the chat"), "{}", sent.err);
    let digest = sent
        .out
        .split("digest=")
        .nth(1)
        .unwrap()
        .lines()
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(
        http(&relay.url, &format!("/crosstalk/blobs/{digest}")),
        "# The plan\n"
    );
    relay.stop();
}

/// The body of what is there.
pub(super) fn http(url: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    match head
        .to_ascii_lowercase()
        .contains("transfer-encoding: chunked")
    {
        // One chunk is enough for what is looked at here.
        true => body.split_once("\r\n").unwrap().1.to_owned(),
        false => body.to_owned(),
    }
}
