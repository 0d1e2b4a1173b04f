//! A person between the relay and a chat, with a real clipboard.

use super::{Person, Relay, header};
use crosstalk_cli::exit;
use crosstalk_testing::wait::wait_until;

#[test]
fn messages_are_carried_step_by_step() {
    let kalle = Person::new("steps", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    kalle.does(&["relay", "add", &relay.url]);
    assert!(
        kalle
            .does(&["carry", "--next"])
            .err
            .contains("nothing waits")
    );
    let sent = kalle.does(&[
        "send",
        "chatgpt",
        "Is JWT fine?",
        "--from",
        "claude://code/api",
    ]);
    let id = header(&sent.out, "message");
    let next = kalle.does(&["carry", "--next"]);
    assert!(
        next.out.starts_with("Verification: unsigned; ")
            && next.out.contains("\n\n```\n[[")
            && next.out.contains("Is JWT fine?"),
        "{}",
        next.out
    );
    assert!(!next.out.contains("meta: audit"), "{}", next.out);
    let with_primer = kalle.does(&["carry", "--next", "--primer"]).out;
    assert!(with_primer.len() > next.out.len() + 200);

    let itself = kalle.say(&["carry", "--done", &id, "--paste"], &next.out);
    assert!(
        itself.code == 1 && itself.err.contains("the message itself"),
        "{}",
        itself.err
    );
    assert_eq!(
        kalle.run(&["carry", "--done", "01KNOSUCH", "--paste"]).code,
        1
    );
    let done = kalle.does_with(
        &["carry", "--done", &id, "--paste"],
        "Yes, with a short expiry.\n",
    );
    assert!(
        done.out.contains("│ Yes, with a short expiry."),
        "{}",
        done.out
    );
    assert!(
        kalle
            .does(&["carry", "--next"])
            .err
            .contains("nothing waits")
    );
    let inbox = kalle.does(&["inbox", "--relay", "--for", "claude://code/api"]);
    assert!(
        inbox.out.contains("Yes, with a short expiry."),
        "{}",
        inbox.out
    );
    let status = kalle.does(&["status", &id]);
    assert!(status.out.contains("delivered"), "{}", status.out);

    let sent = kalle.does(&["send", "gemini", "Anybody there?"]);
    let id = header(&sent.out, "message");
    kalle.does(&["carry", "--fail", &id, "--reason", "the chat is gone"]);
    let status = kalle.run(&["status", &id]);
    assert!(
        status.code == 1 && status.out.contains("the chat is gone"),
        "{}",
        status.out
    );
    let dead = kalle.does(&["dead"]);
    assert!(
        dead.out.contains(&id) && dead.out.contains("the chat is gone"),
        "{}",
        dead.out
    );
    kalle.does(&["dead", "requeue", &id[..20]]);
    assert!(
        kalle
            .does(&["carry", "--next"])
            .out
            .contains("Anybody there?")
    );
    assert_eq!(
        kalle.run(&["dead", "requeue", "01KNOSUCH"]).code,
        i32::from(exit::ROUTE)
    );

    let usage = kalle.run(&["carry"]);
    assert_eq!(usage.code, i32::from(exit::USAGE), "{}", usage.err);
    relay.stop();
}

/// With tokens, a person carries their own messages, and those of others where the operator said so; the answer of the chat
/// comes back either way. A token counts as soon as it is made, and no longer once it is revoked.
#[test]
fn messages_are_carried_with_tokens() {
    let kalle = Person::new("tokens", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let token = |name: &str, more: &[&str]| {
        let file = kalle.home.path(&format!("{name}.token"));
        let file = file.to_str().unwrap().to_owned();
        let words = [
            "token",
            "create",
            name,
            "--data",
            relay.data(),
            "--out",
            &file,
        ];
        kalle.does(&[&words[..], more].concat());
        file
    };
    let own = token("kalle", &["--role", "person", "--for", "KALLE"]);
    let bot = token("bot", &["--role", "agent", "--for", "claude://code/api"]);
    let errand = ["--role", "person", "--for", "CARL", "--courier", "CHATGPT"];
    let carl = token("carl", &errand);
    let with = |token: &str, words: &[&str], input: &str| {
        let through = ["--relay", &relay.url, "--token-file", token];
        kalle.say(&[words, &through[..]].concat(), input)
    };
    let send = |token: &str, from: &str, to: &str, text: &str| {
        let sent = with(token, &["send", to, text, "--from", from], "");
        assert_eq!(sent.code, 0, "{}", sent.err);
        header(&sent.out, "message")
    };
    let mine = send(&own, "KALLE", "GEMINI", "Mine?");
    let theirs = send(&bot, "claude://code/api", "CHATGPT", "Theirs?");
    for (token, sees, other) in [(&own, "Mine?", "Theirs?"), (&carl, "Theirs?", "Mine?")] {
        let next = with(token, &["carry", "--next"], "");
        assert!(
            next.out.contains(sees) && !next.out.contains(other),
            "{}",
            next.out
        );
    }
    for (token, id, to) in [
        (&own, &mine, "KALLE"),
        (&carl, &theirs, "claude://code/api"),
    ] {
        let done = with(
            token,
            &["carry", "--done", id, "--paste"],
            "Said the chat.\n",
        );
        assert_eq!(done.code, 0, "{}", done.err);
        let reader = if to == "KALLE" { &own } else { &bot };
        let inbox = with(reader, &["inbox", "--for", to], "");
        assert!(
            inbox.out.contains("Said the chat."),
            "{}{}",
            inbox.out,
            inbox.err
        );
        let left = with(token, &["carry", "--next"], "");
        assert!(
            left.err.contains("nothing waits"),
            "{}{}",
            left.out,
            left.err
        );
    }
    let listed = kalle.does(&["token", "list", "--data", relay.data(), "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!(
        listed["tokens"][1]["courier"],
        serde_json::json!(["CHATGPT"])
    );
    kalle.does(&["token", "revoke", "carl", "--data", relay.data()]);
    let refused = with(&carl, &["carry", "--next"], "");
    assert_eq!(refused.code, i32::from(exit::PERM), "{}", refused.err);
    let agent = [
        "token",
        "create",
        "x",
        "--role",
        "agent",
        "--for",
        "X",
        "--courier",
        "*",
    ];
    let agent = kalle.run(&[&agent[..], &["--data", relay.data()]].concat());
    assert_eq!(agent.code, i32::from(exit::USAGE), "{}", agent.err);
    relay.stop();
}

/// What a chat answers, in an envelope.
#[cfg(target_os = "linux")]
fn answer(question: &str, from: &str, text: &str) -> String {
    format!(
        "[[{from}→claude://code/api v1]]\nuser: kalle\nthread: {}\nparent: {}\nmessage: 01K{from}ANSWER\ncontext: x\nintent: RESPOND\nbody: |\n  {text}\nsig: none\n[[END]]\n",
        header(question, "thread"),
        header(question, "message")
    )
}

/// A terminal where `crosstalk carry` walks through the queue.
#[cfg(target_os = "linux")]
fn walking(kalle: &Person, display: &str) -> crosstalk_testing::tmux::Tmux {
    let home = kalle.home.path("crosstalk");
    let environment = [
        ("DISPLAY", display),
        ("WAYLAND_DISPLAY", ""),
        ("CROSSTALK_HOME", home.to_str().unwrap()),
        ("CROSSTALK_USER", "kalle"),
    ];
    let terminal = crosstalk_testing::tmux::Tmux::start_with(120, 60, &environment);
    terminal.type_text(&format!("'{}' carry", env!("CARGO_BIN_EXE_crosstalk")));
    terminal.send_keys(&["Enter"]);
    terminal
}

#[cfg(target_os = "linux")]
#[test]
fn a_copied_answer_is_noticed_after_the_display_was_gone() {
    let kalle = Person::new("display", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let mut screen = crosstalk_testing::xvfb::Xvfb::start_apart();
    kalle.does(&["relay", "add", &relay.url]);
    let words = ["send", "gemini", "Still there?"];
    let sent = kalle.does(&[&words[..], &["--from", "claude://code/api"]].concat());
    let terminal = walking(&kalle, screen.display());
    terminal.wait_for("It is on the clipboard");
    screen.restart();
    screen.copy(
        "UTF8_STRING",
        answer(&sent.out, "GEMINI", "I am.").as_bytes(),
    );
    terminal.wait_for("Carried");
    let inbox = kalle.does(&["inbox", "--relay", "--for", "claude://code/api"]);
    assert!(inbox.out.contains("I am."), "{}", inbox.out);
    relay.stop();
}

#[cfg(target_os = "linux")]
#[test]
fn messages_are_carried_with_the_clipboard() {
    use crosstalk_testing::xvfb::Xvfb;
    let kalle = Person::new("walk", "kalle");
    let relay = Relay::start(&kalle.home, &[]);
    let screen = Xvfb::start();
    kalle.does(&["relay", "add", &relay.url]);
    for (whom, text) in [
        ("chatgpt", "Is JWT fine?"),
        ("gemini", "And you?"),
        ("grok", "Or you?"),
        ("perplexity", "Last?"),
    ] {
        kalle.does(&["send", whom, text, "--from", "claude://code/api"]);
    }
    let terminal = walking(&kalle, screen.display());

    // A plain answer: copied, and taken with Enter.
    terminal.wait_for("It is on the clipboard");
    let copied = String::from_utf8(screen.pasted()).unwrap();
    assert!(
        copied.starts_with("Verification: unsigned") && copied.contains("Is JWT fine?"),
        "{copied}"
    );
    screen.copy("UTF8_STRING", b"Yes, it is.");
    terminal.send_keys(&["Enter"]);
    terminal.wait_for("Yes, it is.");

    // An answer in an envelope is noticed as soon as it is copied: also before the program has seen its own message there.
    terminal.wait_for("And you?");
    wait_until("the second one on the clipboard", || {
        String::from_utf8_lossy(&screen.pasted()).contains("And you?")
    });
    let question = String::from_utf8(screen.pasted()).unwrap();
    screen.copy(
        "UTF8_STRING",
        answer(&question, "GEMINI", "Me too.").as_bytes(),
    );
    terminal.wait_for("Me too.");

    terminal.wait_for("Or you?");
    terminal.type_text("s");
    terminal.send_keys(&["Enter"]);
    terminal.wait_for("Last?");
    terminal.type_text("f no account there");
    terminal.send_keys(&["Enter"]);
    terminal.wait_for("1 message that you skipped");

    let inbox = kalle
        .does(&["inbox", "--relay", "--for", "claude://code/api"])
        .out;
    assert!(
        inbox.contains("Yes, it is.") && inbox.contains("Me too."),
        "{inbox}"
    );
    assert!(
        kalle
            .does(&["carry", "--next", "--no-copy"])
            .out
            .contains("Or you?")
    );
    assert!(kalle.does(&["dead"]).out.contains("no account there"));
    relay.stop();
}
