//! Agents that ask a person, that fail, and that nobody listens for.

use super::client::json;
use super::{Person, Relay, header};
use crosstalk_cli::exit;
use crosstalk_testing::wait::wait_until;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

const BOT: &str = "agent://localhost/deployer";
const QUEUE: &str = "human://localhost/queue";

/// An agent that asks a person about each question, and passes on what the person decided.
const DEPLOYER: &str = r#"#!/bin/sh
if [ "$CROSSTALK_MESSAGE_INTENT" = REQUEST ]; then
  cat > /dev/null
  cat <<X
[[AGENT→human://localhost/queue v1]]
user: deployer
context: deploy
intent: ESCALATE
body: |
  May I deploy on a Friday?
sig: none
[[END]]
X
else
  echo "The person says: $(sed -n 's/^  \(Only.*\)$/\1/p')"
fi
"#;

fn script(person: &Person, name: &str, text: &str) -> String {
    let path = person.home.path(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
    path.to_str().unwrap().to_owned()
}

fn waiting(person: &Person, url: &str, address: &str) -> Vec<Value> {
    let inbox = person.does(&["inbox", "--relay", url, "--for", address, "--json"]);
    json(&inbox.out)["messages"].as_array().unwrap().clone()
}

/// Hands an envelope in, which has to be taken.
fn post(url: &str, envelope: &str) {
    let host = url.strip_prefix("http://").unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /crosstalk/receive HTTP/1.1\r\nHost: {host}\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{envelope}",
        envelope.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// The person replies, and the asker gets the answer of the agent: also if each process ends in between.
#[test]
fn agent_that_listens_asks_a_person_and_answers_whoever_asked() {
    let kalle = Person::new("human-loop", "kalle");
    let agent = Person::new("human-loop", "agent");
    let boss = Person::new("human-loop", "boss");
    let deployer = script(&agent, "deployer.sh", DEPLOYER);
    let data = kalle.home.path("relay");
    let relay = Relay::start_at(&data, &[]);
    let listen = |url: &str| {
        let words = [
            "listen", "--relay", url, "--for", BOT, "--once", "--exec", &deployer,
        ];
        agent.does(&words)
    };
    let sent = kalle.does(&["send", BOT, "Deploy v2?", "--relay", &relay.url]);
    let id = header(&sent.out, "message");
    listen(&relay.url);
    let asked = boss.does(&["inbox", "--relay", &relay.url, "--for", QUEUE, "--take"]);
    assert!(
        asked.out.contains("May I deploy on a Friday?"),
        "{}",
        asked.out
    );
    // The person sees what it is about, wherever the ESCALATE is shown.
    let local = boss.does(&["inbox", "--local"]);
    let shown = boss.does(&["show", "last"]);
    for text in [&asked.out, &shown.out, &local.out] {
        assert!(text.contains("Deploy v2?"), "{text}");
    }
    assert!(!local.out.contains("carry it"), "{}", local.out);
    relay.stop();

    let relay = Relay::start_at(&data, &[]);
    let url = relay.url.as_str();
    let reply = boss.does(&["reply", "last", "Only before noon.", "--relay", url]);
    assert_eq!(header(&reply.out, "intent"), "RESPOND");
    let listened = listen(url);
    assert!(
        listened
            .err
            .contains("the reply of human://localhost/queue: KALLE is answered with"),
        "{}",
        listened.err
    );
    let answered = kalle.does(&["relay", "deliver", &id, "--relay", url, "--wait", "60"]);
    assert!(
        answered.out.contains("The person says: Only before noon."),
        "{}",
        answered.out
    );
    let shown = kalle.does(&["show", "last", "--envelope"]);
    assert_eq!(header(&shown.out, "parent"), id);
    assert_eq!(header(&shown.out, "intent"), "RESPOND");
    assert_eq!(header(&shown.out, "thread"), header(&sent.out, "thread"));
    assert_eq!(header(&shown.out, "user"), "deployer");
    assert!(
        shown
            .out
            .starts_with("[[agent://localhost/deployer→KALLE v1]]"),
        "{}",
        shown.out
    );
    relay.stop();
}

/// What anybody else says in that thread is no reply of the person.
#[test]
fn only_the_person_who_was_asked_closes_the_loop() {
    let kalle = Person::new("not-human", "kalle");
    let agent = Person::new("not-human", "agent");
    let deployer = script(&agent, "deployer.sh", DEPLOYER);
    let relay = Relay::start(&kalle.home, &[]);
    let url = relay.url.as_str();
    let listen = || {
        agent.does(&[
            "listen", "--relay", url, "--for", BOT, "--once", "--exec", &deployer,
        ])
    };
    kalle.does(&["send", BOT, "Deploy v2?", "--relay", url]);
    listen();
    let escalation = waiting(&kalle, url, QUEUE).remove(0);
    let (id, thread) = (
        escalation["id"].as_str().unwrap(),
        escalation["thread"].as_str().unwrap(),
    );
    for from in ["EVE", "human://localhost/eve"] {
        post(
            url,
            &format!(
                "[[{from}→{BOT} v1]]\nuser: eve\nthread: {thread}\nparent: {id}\nmessage: {}\ncontext: x\nintent: RESPOND\nbody: |\n  \
             Only now.\nsig: none\n[[END]]\n",
                from.replace('/', "-")
            ),
        );
        let listened = listen();
        assert!(
            listened.err.contains("given to the program"),
            "{}",
            listened.err
        );
    }
    assert!(waiting(&kalle, url, "KALLE").is_empty());
    relay.stop();
}

/// A program that fails is tried again; the asker sees it, and gets an ERROR in the end.
#[test]
fn failing_program_is_tried_again_and_whoever_asked_learns_of_it() {
    let kalle = Person::new("failing", "kalle");
    let agent = Person::new("failing", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let url = relay.url.as_str();
    let sent = kalle.does(&["send", BOT, "Deploy v2?", "--relay", url]);
    let id = header(&sent.out, "message");
    let listen = |more: &[&str]| {
        let words = [
            "listen",
            "--relay",
            url,
            "--for",
            BOT,
            "--once",
            "--attempts",
            "3",
        ];
        agent.run(&[&words[..], more].concat())
    };
    let status = || {
        let status = kalle.run(&["status", &id, "--relay", url, "--json"]);
        let delivery = json(&status.out)["deliveries"][0].clone();
        (status.code, delivery)
    };
    for attempt in 1..=2 {
        let failed = listen(&["--exec", "sh", "-c", "echo 'key: secret' >&2; exit 3"]);
        assert_eq!(failed.code, 1, "{}", failed.err);
        assert!(
            failed
                .err
                .contains("comes again when you listen again; the relay tells KALLE"),
            "{}",
            failed.err
        );
        let (code, delivery) = status();
        assert_eq!(
            (code, &delivery["state"], &delivery["attempts"]),
            (0, &"delivered".into(), &attempt.into())
        );
        assert_eq!(
            delivery["reason"],
            "the program that answers for this address failed and will be retried"
        );
        // It is said once.
        let told = waiting(&kalle, url, "KALLE");
        assert_eq!((told.len(), &told[0]["intent"]), (1, &"BROADCAST".into()));
        let notice = told[0]["envelope"].as_str().unwrap();
        assert_eq!(header(notice, "parent"), id);
        assert!(
            notice.contains("failed and will be retried") && !notice.contains("secret"),
            "{notice}"
        );
    }
    let shown = kalle.does(&["status", &id, "--relay", url]);
    assert!(
        shown.out.contains("2 attempts") && shown.out.contains("failed and will be retried"),
        "{}",
        shown.out
    );
    let vain = kalle.run(&["relay", "deliver", &id, "--relay", url, "--wait", "1"]);
    assert_eq!(vain.code, i32::from(exit::TIMEOUT));
    assert!(
        vain.err.contains("failed and will be retried"),
        "{}",
        vain.err
    );
    // Empty output is no answer either.
    let failed = listen(&["--exec", "true"]);
    assert!(
        failed
            .err
            .contains("a dead letter after 3 attempts: KALLE gets an ERROR"),
        "{}",
        failed.err
    );
    let (code, delivery) = status();
    assert_eq!((code, &delivery["state"]), (1, &"failed".into()));
    assert_eq!(
        delivery["reason"],
        "E-ROUTE: the program that answers for this address failed"
    );
    let told = waiting(&kalle, url, "KALLE");
    let error = told.last().unwrap();
    assert_eq!((&error["intent"], told.len()), (&"ERROR".into(), 1));
    assert!(
        waiting(&kalle, url, BOT).is_empty(),
        "it is not handed out any more"
    );
    relay.stop();
}

/// An operator requeues a dead letter: a listener gets it once more.
#[test]
fn listener_gets_what_was_queued_again() {
    let kalle = Person::new("requeue", "kalle");
    let agent = Person::new("requeue", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let url = relay.url.as_str();
    let works = agent.home.path("works");
    let text = format!(
        "#!/bin/sh\ncat > /dev/null\n[ -e '{}' ] || exit 1\necho Done.\n",
        works.display()
    );
    let program = script(&agent, "program.sh", &text);
    let mut listener = agent.starts(&[
        "listen",
        "--relay",
        url,
        "--for",
        BOT,
        "--attempts",
        "1",
        "--exec",
        &program,
    ]);
    let sent = kalle.does(&["send", BOT, "Deploy?", "--relay", url]);
    let id = header(&sent.out, "message");
    let state = || {
        let status = kalle.run(&["status", &id, "--relay", url, "--json"]);
        json(&status.out)["deliveries"][0]["state"].clone()
    };
    wait_until("it is given up", || state() == "failed");
    std::fs::write(&works, "").unwrap();
    kalle.does(&["dead", "requeue", &id, "--relay", url]);
    // The next message that comes makes the listener look.
    kalle.does(&["send", BOT, "And this?", "--relay", url]);
    wait_until("it is answered", || state() == "acknowledged");
    listener.kill().unwrap();
    listener.wait().unwrap();
    relay.stop();
}

/// An agent that asks another one answers the asker, when the reply has come.
#[test]
fn agent_that_listens_asks_another_and_answers_whoever_asked() {
    let kalle = Person::new("two-agents", "kalle");
    let agent = Person::new("two-agents", "agent");
    let other = Person::new("two-agents", "other");
    let asks = DEPLOYER
        .replace(QUEUE, "agent://localhost/other")
        .replace("ESCALATE", "REQUEST");
    let deployer = script(&agent, "deployer.sh", &asks);
    let relay = Relay::start(&kalle.home, &[]);
    let url = relay.url.as_str();
    let listen = |who: &Person, address: &str, program: &[&str]| {
        let words = [
            "listen", "--relay", url, "--for", address, "--once", "--exec",
        ];
        who.does(&[&words[..], program].concat())
    };
    let sent = kalle.does(&["send", BOT, "Deploy v2?", "--relay", url]);
    let id = header(&sent.out, "message");
    listen(&agent, BOT, &[&deployer]);
    listen(
        &other,
        "agent://localhost/other",
        &["echo", "Only before noon."],
    );
    listen(&agent, BOT, &[&deployer]);
    let answered = kalle.does(&["relay", "deliver", &id, "--relay", url, "--wait", "60"]);
    assert!(
        answered.out.contains("The person says: Only before noon."),
        "{}",
        answered.out
    );
    relay.stop();
}

/// Who goes on listening tries again without being told to.
#[test]
fn listener_tries_a_program_again_by_itself() {
    let kalle = Person::new("retry", "kalle");
    let agent = Person::new("retry", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let count = agent.home.path("count");
    let text = format!(
        "#!/bin/sh\ncat > /dev/null\necho x >> '{0}'\n[ $(wc -l < '{0}') -gt 1 ] || exit 1\necho Done.\n",
        count.display()
    );
    let program = script(&agent, "second.sh", &text);
    let mut listener = agent.starts(&[
        "listen", "--relay", &relay.url, "--for", BOT, "--exec", &program,
    ]);
    let sent = kalle.does(&[
        "send", BOT, "Deploy?", "--relay", &relay.url, "--wait", "60",
    ]);
    assert!(sent.out.contains("Done."), "{}{}", sent.out, sent.err);
    listener.kill().unwrap();
    listener.wait().unwrap();
    assert_eq!(std::fs::read_to_string(count).unwrap().lines().count(), 2);
    relay.stop();
}

#[test]
fn message_to_an_inbox_that_nobody_reads_says_so() {
    let kalle = Person::new("unread", "kalle");
    let agent = Person::new("unread", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let url = relay.url.as_str();
    kalle.does(&["relay", "add", url]);
    let api = "claude://code/api";
    let first = kalle.does(&["send", api, "Are you there?"]);
    assert!(
        first.err.contains("No one has read claude://code/api yet."),
        "{}",
        first.err
    );
    let listened = agent.does(&[
        "listen", "--relay", url, "--for", api, "--once", "--exec", "echo", "Yes.",
    ]);
    assert!(listened.err.contains("answered"), "{}", listened.err);
    let typo = kalle.does(&["send", "claude://code/apj", "And now?"]);
    let hint = "No one has read claude://code/apj yet; did you mean claude://code/api?";
    assert!(typo.err.contains(hint), "{}", typo.err);
    let id = header(&typo.out, "message");
    let status = kalle.does(&["status", &id]);
    assert!(status.out.contains(hint), "{}", status.out);
    let report = json(&kalle.does(&["status", &id, "--json"]).out);
    let delivery = &report["deliveries"][0];
    assert_eq!(
        (&delivery["never_read"], &delivery["did_you_mean"]),
        (&true.into(), &api.into())
    );
    let again = kalle.does(&["send", api, "Still there?"]);
    assert!(!again.err.contains("No one has read"), "{}", again.err);
    relay.stop();
    // It is known after a restart, too.
    let relay = Relay::start(&kalle.home, &[]);
    let known = header(&again.out, "message");
    let report = json(
        &kalle
            .does(&["status", &known, "--relay", &relay.url, "--json"])
            .out,
    );
    assert_eq!(report["deliveries"][0]["never_read"], false);
    relay.stop();
}

/// A program is told what it got, and gets none of the settings of its parent process.
#[test]
fn programs_know_the_message_and_no_setting() {
    let kalle = Person::new("variables", "kalle");
    let agent = Person::new("variables", "agent");
    let relay = Relay::start(&kalle.home, &[]);
    let sent = kalle.does(&["send", BOT, "Work?", "--relay", &relay.url]);
    let words = [
        "listen", "--relay", &relay.url, "--for", BOT, "--once", "--exec", "env",
    ];
    let variables = [
        ("CROSSTALK_USER", "agent"),
        ("CROSSTALK_CLIPBOARD", "none"),
        ("CROSSTALK_SENDER", "AGENT"),
        ("CROSSTALK_PASSPHRASE", "correct horse"),
        ("CROSSTALK_MESSAGE_FROM", "human://localhost/boss"),
        ("OF_THE_PROGRAM", "yes"),
    ];
    let listened = agent.home.run_with(&variables, &words, "");
    assert_eq!(listened.code, 0, "{}", listened.err);
    let got = waiting(&kalle, &relay.url, "KALLE");
    let answer = got[0]["envelope"].as_str().unwrap();
    let said: Vec<&str> = answer
        .lines()
        .map(str::trim)
        .filter(|l| l.starts_with("CROSSTALK_"))
        .collect();
    let mut wanted = vec![
        "CROSSTALK_MESSAGE_FROM=KALLE".to_owned(),
        format!("CROSSTALK_MESSAGE_ID={}", header(&sent.out, "message")),
        format!("CROSSTALK_MESSAGE_THREAD={}", header(&sent.out, "thread")),
        "CROSSTALK_MESSAGE_INTENT=REQUEST".to_owned(),
        "CROSSTALK_MESSAGE_VERIFICATION=unsigned".to_owned(),
        "CROSSTALK_MESSAGE_ATTEMPT=1".to_owned(),
    ];
    let mut said: Vec<String> = said.into_iter().map(str::to_owned).collect();
    said.sort();
    wanted.sort();
    assert_eq!(said, wanted, "{answer}");
    assert!(answer.contains("OF_THE_PROGRAM=yes"), "{answer}");
    assert_eq!(header(answer, "user"), "deployer");
    // They set nothing where a program runs crosstalk itself.
    let settings = agent.home.run_with(
        &[
            ("CROSSTALK_MESSAGE_FROM", "EVE"),
            ("CROSSTALK_USER", "agent"),
        ],
        &["config", "show"],
        "",
    );
    assert_eq!(settings.code, 0, "{}", settings.err);
    assert!(!settings.out.contains("EVE"), "{}", settings.out);
    relay.stop();
}

/// The block of a page that is a file.
fn block(page: &str, name: &str) -> String {
    let head = format!("file={name}\n");
    let (_, rest) = page.split_once(&head).unwrap_or_else(|| panic!("{name}"));
    rest.split_once("```").unwrap().0.to_owned()
}

/// The example of the guide: two relays that know each other by routes, with tokens and without DNS.
#[test]
fn two_relays_reach_each_other_by_routes() {
    let page = std::fs::read_to_string(crate::run::folder("../../docs/guide/relay.md")).unwrap();
    let kalle = Person::new("routes", "kalle");
    let ip = crosstalk_testing::loopback::own_ip();
    let (north, south) = (format!("{ip}:8799"), format!("{ip}:8800"));
    let folder = |name: &str| kalle.home.path(name).to_str().unwrap().to_owned();
    for name in ["north", "south"] {
        std::fs::create_dir_all(kalle.home.path(name)).unwrap();
        let toml = block(&page, &format!("{name}.toml"));
        let toml = toml
            .replace("127.0.0.1:8799", &north)
            .replace("127.0.0.1:8800", &south);
        let toml = toml.replace("/etc/crosstalk/", &format!("{}/", folder("")));
        std::fs::write(kalle.home.path(&format!("{name}.toml")), toml).unwrap();
    }
    let create = |data: &str, name: &str, role: &str, address: &str, out: &str| {
        kalle.does(&[
            "token",
            "create",
            name,
            "--role",
            role,
            "--for",
            address,
            "--data",
            &folder(data),
            "--out",
            &folder(out),
        ]);
    };
    create(
        "south",
        "north",
        "person",
        "human://north.example/*",
        "south.token",
    );
    create(
        "north",
        "south",
        "agent",
        "agent://south.example/*",
        "north.token",
    );
    create(
        "north",
        "kalle",
        "person",
        "human://north.example/kalle",
        "kalle.token",
    );
    let serve = |name: &str| {
        let data = kalle.home.path(name);
        let mut command = crate::run::binary();
        command
            .args([
                "serve",
                "--config",
                &folder(&format!("{name}.toml")),
                "--data",
            ])
            .arg(&data);
        Relay::of(command, &data)
    };
    let (first, second) = (serve("north"), serve("south"));
    kalle.does(&[
        "relay",
        "add",
        &first.url,
        "--token-file",
        &folder("kalle.token"),
    ]);
    kalle.does(&["config", "set", "sender", "human://north.example/kalle"]);
    let sent = kalle.does(&[
        "send",
        "agent://south.example/reviewer",
        "Is the plan sound?",
        "--wait",
        "60",
    ]);
    assert!(
        sent.out.contains("Read: Is the plan sound?"),
        "{}{}",
        sent.out,
        sent.err
    );
    first.stop();
    second.stop();
}

/// A relay that is killed while a program runs starts the program again at its next start, and not when the lease is over.
#[test]
fn program_of_a_killed_relay_runs_again_at_the_next_start() {
    let ann = Person::new("killed", "ann");
    let marker = ann.home.path("began");
    let marker = marker.to_str().unwrap();
    let program = script(
        &ann,
        "slow.sh",
        &format!(
            "#!/bin/sh\ncat > /dev/null\nif [ -e {marker} ]; then echo done; else touch {marker}; sleep 60; fi\n"
        ),
    );
    let config = ann.home.path("relay.toml");
    let route = format!("[[route]]\nto = \"{BOT}\"\nby = \"exec\"\ncommand = [\"{program}\"]\n");
    std::fs::write(&config, route).unwrap();
    let options = ["--config", config.to_str().unwrap()];
    let mut relay = Relay::start(&ann.home, &options);
    let sent = ann.does(&["send", BOT, "Go.", "--relay", &relay.url, "--json"]);
    let id = json(&sent.out)["message"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let url = relay.url.clone();
    wait_until("the program runs", || std::path::Path::new(marker).exists());
    let status = ann.run(&["status", &id, "--relay", &url]);
    assert!(
        status.out.contains("the program is running since"),
        "{}",
        status.out
    );
    assert!(!status.out.contains("next attempt"), "{}", status.out);
    relay.process.kill().unwrap();
    relay.process.wait().unwrap();
    let relay = Relay::start(&ann.home, &options);
    wait_until("the answer", || {
        !waiting(&ann, &relay.url, "ANN").is_empty()
    });
    assert!(
        relay
            .stop()
            .contains("interrupted deliveries are tried again")
    );
}

#[test]
fn listen_needs_a_program_that_is_there() {
    let ann = Person::new("no-program", "ann");
    let ended = ann.run(&[
        "listen",
        "--relay",
        "http://127.0.0.1:1",
        "--exec",
        "nosuchprogram",
    ]);
    assert_eq!(ended.code, i32::from(exit::USAGE), "{}", ended.err);
    assert!(
        ended.err.contains("`nosuchprogram` does not exist"),
        "{}",
        ended.err
    );
}

#[test]
fn unregistered_intent_is_told_and_sent() {
    let ann = Person::new("intent", "ann");
    let sent = ann.does(&["send", "claude", "Hello", "--intent", "REQEUST"]);
    let told = sent.err.replace('\n', " ");
    assert!(told.contains("did you mean REQUEST?"), "{told}");
    let message =
        r#"{"sender":"A","receiver":"B","user":"u","context":"c","intent":"request","body":"x"}"#;
    let built = ann.does_with(&["build"], message);
    assert!(built.out.contains("intent: request"), "{}", built.out);
    assert!(built.err.contains("did you mean REQUEST?"), "{}", built.err);
}

#[test]
fn rejection_is_logged_with_its_reason() {
    let ann = Person::new("rejected", "ann");
    let relay = Relay::start(&ann.home, &[]);
    let refused = ann.run(&["status", "NOSUCH", "--relay", &relay.url]);
    assert_ne!(refused.code, 0);
    let log = relay.stop();
    let line = log
        .lines()
        .find(|l| l.contains("NOSUCH"))
        .unwrap_or_default();
    assert!(
        line.contains("E-ROUTE") && line.contains("There is no such message"),
        "{log}"
    );
}
