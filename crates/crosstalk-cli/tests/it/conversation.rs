//! Conversations by copy and paste: sending, pasting, answering, and what becomes of a thread.

use crate::run::{Ended, Home};
use crosstalk_testing::xvfb::Xvfb;
use serde_json::Value;

const ME: [(&str, &str); 2] = [("CROSSTALK_USER", "kalle"), ("CROSSTALK_CLIPBOARD", "none")];

/// Runs a command as kalle, without a clipboard.
fn kalle(home: &Home, arguments: &[&str], stdin: &str) -> Ended {
    home.run_with(&ME, arguments, stdin)
}

/// Runs a command that has to go well, and gives its JSON.
fn json(home: &Home, arguments: &[&str], stdin: &str) -> Value {
    let ended = kalle(home, arguments, stdin);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    serde_json::from_str(&ended.out).unwrap()
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    let found = value.pointer(path).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("{path} in {value:#}"))
}

/// Sends a message and gives its id and its thread.
fn sent(home: &Home, to: &str, body: &str) -> (String, String) {
    let sent = json(home, &["send", to, "--json", body], "");
    let own = |path| text(&sent, path).to_owned();
    (own("/message/id"), own("/message/thread"))
}

/// An envelope to paste, with further lines in its head.
fn envelope(from: &str, to: &str, intent: &str, head: &str, body: &str) -> String {
    format!(
        "[[{from}→{to} v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\n{head}context: auth\nintent: {intent}\n\
         body: |\n  {body}\nsig: none\n[[END]]\n"
    )
}

/// An answer to a message that was sent.
fn answer(parent: &str, id: &str, body: &str) -> String {
    let head = format!("parent: {parent}\nmessage: {id}\n");
    envelope("CHATGPT", "KALLE", "RESPOND", &head, body)
}

#[test]
fn a_message_goes_round_over_a_real_clipboard() {
    let screen = Xvfb::start();
    let home = Home::new("clipboard-round");
    let env = [
        ("CROSSTALK_USER", "kalle"),
        ("DISPLAY", screen.display()),
        ("CROSSTALK_CLIPBOARD", "auto"),
    ];
    let sent = home.run_with(&env, &["send", "chatgpt", "Should we use JWT?"], "");
    assert_eq!(sent.code, 0, "{}", sent.err);
    let primed = "Copied to the clipboard, with the primer";
    assert!(sent.err.contains(primed), "{}", sent.err);
    // The program has ended; what it copied is still there, byte for byte: the primer, and the envelope in a fence.
    let copied = String::from_utf8(screen.pasted()).unwrap();
    let prompt = home.run_with(&env, &["prompt", "--for", "chatgpt"], "").out;
    assert_eq!(copied, format!("{prompt}\n```\n{}```\n", sent.out));
    let id = sent
        .out
        .lines()
        .find_map(|l| l.strip_prefix("message: "))
        .unwrap();
    let reply = answer(id, "01K74V8QF8570V52F7A8GSBCV2", "Yes.");
    screen.copy(
        "UTF8_STRING",
        format!("Here you are:\n\n{reply}\nBye").as_bytes(),
    );
    let pasted = home.run_with(&env, &["paste", "--json"], "");
    assert_eq!(pasted.code, 0, "{}", pasted.err);
    let pasted: Value = serde_json::from_str(&pasted.out).unwrap();
    assert_eq!(text(&pasted, "/messages/0/settles"), id);
    let copied = home.run_with(&env, &["show", "last", "--copy"], "");
    assert_eq!(copied.code, 0, "{}", copied.err);
    let fenced = String::from_utf8(screen.pasted()).unwrap();
    assert_eq!(fenced, format!("```\n{reply}```\n"));
    // The chat knows the format now.
    let sent = home.run_with(&env, &["send", "chatgpt", "For how long?"], "");
    let told = "Copied to the clipboard: paste it to CHATGPT.";
    assert!(sent.err.contains(told), "{}", sent.err);
    assert_eq!(String::from_utf8(screen.pasted()).unwrap(), sent.out);
}

#[test]
fn the_same_thing_twice_is_noticed_and_another_one_under_its_id_refused() {
    let home = Home::new("twice");
    let (asked, thread) = sent(&home, "chatgpt", "JWT?");
    let first = answer(&asked, "01K74V8QF8570V52F7A8GSBCV2", "Yes.");
    let filed = json(&home, &["paste", "--json"], &first);
    assert_eq!(text(&filed, "/messages/0/outcome"), "filed");
    assert_eq!(text(&filed, "/messages/0/message/thread"), thread);
    let known = json(
        &home,
        &["paste", "--json"],
        &format!("> {}", first.trim_end().replace('\n', "\n> ")),
    );
    assert_eq!(text(&known, "/messages/0/outcome"), "known");
    let other = first.replace("Yes.", "No.");
    let refused = kalle(&home, &["paste"], &other);
    assert_eq!(refused.code, 14);
    assert!(refused.err.contains("--new-id"), "{}", refused.err);
    let kept = json(&home, &["paste", "--new-id", "--json"], &other);
    assert_eq!(text(&kept, "/messages/0/outcome"), "filed");
    assert_ne!(text(&kept, "/messages/0/id"), "01K74V8QF8570V52F7A8GSBCV2");
    assert_eq!(text(&kept, "/messages/0/message/envelope"), other);
    let again = json(&home, &["paste", "--new-id", "--json"], &other);
    assert_eq!(text(&again, "/messages/0/outcome"), "known", "{again:#}");
    let threads = json(&home, &["threads", "--json"], "");
    assert_eq!(threads["threads"].as_array().unwrap().len(), 1);
    assert_eq!(threads["threads"][0]["messages"], 3);
}

#[test]
fn a_plain_answer_is_filed_under_what_it_answers() {
    let home = Home::new("plain");
    let none = kalle(&home, &["paste"], "Yes, go ahead.");
    assert_eq!(none.code, 12);
    assert!(none.err.contains("crosstalk send NAME"), "{}", none.err);
    let (asked, thread) = sent(&home, "claude", "May I?");
    let filed = json(
        &home,
        &["paste", "--json", "--as-reply-to", "last", "-"],
        "Yes,\n\n  [[go]] ahead.\n",
    );
    let message = &filed["messages"][0]["message"];
    assert_eq!(message["way"], "filed");
    assert_eq!(
        (&message["from"], &message["to"]),
        (&"CLAUDE".into(), &"KALLE".into())
    );
    assert_eq!(
        (&message["parent"], &message["thread"]),
        (&asked.into(), &thread.into())
    );
    assert_eq!(message["body"], "Yes,\n\n  [[go]] ahead.");
    let nobody = kalle(&home, &["paste", "--as-reply-to", "last", "-"], "More.");
    assert_eq!(nobody.code, 1, "{}", nobody.err);
}

#[test]
fn question_is_in_the_inbox_until_it_is_answered() {
    let home = Home::new("inbox");
    let to_me = envelope(
        "CLAUDE",
        "kalle",
        "QUESTION",
        "message: 01K74V6VX0S86Z5JATM52C3M7Z\n",
        "Which port?",
    );
    let to_other = envelope(
        "CLAUDE",
        "GEMINI",
        "REQUEST",
        "message: 01K74V6VX0S86Z5JATM52C3M80\n",
        "Check it.",
    );
    assert_eq!(
        kalle(&home, &["paste"], &format!("{to_me}\n{to_other}")).code,
        0
    );
    let waits = |home: &Home| -> Vec<(String, String)> {
        let inbox = json(home, &["inbox", "--json"], "");
        let messages = inbox["messages"].as_array().unwrap().iter();
        messages
            .map(|m| {
                (
                    text(m, "/id")[22..].to_owned(),
                    text(m, "/waits_for").to_owned(),
                )
            })
            .collect()
    };
    assert_eq!(
        waits(&home),
        [
            ("3M80".into(), "carry".into()),
            ("3M7Z".into(), "me".into())
        ]
    );
    // Without an id, the one that waits for an answer of mine.
    let reply = json(&home, &["reply", "--json", "--body", "8080."], "");
    assert_eq!(
        text(&reply, "/message/parent"),
        "01K74V6VX0S86Z5JATM52C3M7Z"
    );
    assert_eq!(text(&reply, "/message/from"), "kalle");
    assert_eq!(text(&reply, "/message/intent"), "RESPOND");
    assert_eq!(waits(&home), [("3M80".into(), "carry".into())]);
    assert_eq!(
        kalle(
            &home,
            &["inbox", "--done", "01K74V6VX0S86Z5JATM52C3M80"],
            ""
        )
        .code,
        0
    );
    assert_eq!(waits(&home), []);
    assert_eq!(
        kalle(
            &home,
            &["inbox", "--done", "01K74V6VX0S86Z5JATM52C3M80"],
            ""
        )
        .code,
        1
    );
    assert_eq!(
        kalle(&home, &["reply", "--body", "x"], "").code,
        1,
        "nothing waits"
    );
}

#[test]
fn a_stripped_signature_settles_nothing() {
    let home = Home::new("stripped");
    let (asked, _) = sent(&home, "chatgpt", "JWT?");
    let head = format!("parent: {asked}\nmessage: 01K74V8QF8570V52F7A8GSBCV2\n");
    let forged = envelope("CHATGPT", "KALLE", "RESPOND", &head, "No.").replace(
        "intent: RESPOND\n",
        "intent: RESPOND\n\nmeta: integrity\nSigned-At: 2025-10-09T16:00:04Z\nLines: 1\n\n",
    );
    let pasted = kalle(&home, &["paste"], &forged);
    assert_eq!(pasted.code, 24, "{}", pasted.err);
    assert!(pasted.out.contains("Don't act on this"), "{}", pasted.out);
    let threads = json(&home, &["threads", "--json"], "");
    assert_eq!(threads["threads"][0]["asked"], 1, "{threads:#}");
}

#[test]
fn a_closed_thread_takes_no_new_message_and_keeps_what_comes() {
    let home = Home::new("closed");
    let (asked, thread) = sent(&home, "chatgpt", "JWT?");
    let closed = json(
        &home,
        &["close", &thread, "--reason", "decided", "--json"],
        "",
    );
    assert_eq!(text(&closed, "/message/intent"), "CLOSE");
    assert_eq!(kalle(&home, &["reply", &asked, "More?"], "").code, 14);
    assert_eq!(kalle(&home, &["close", &thread], "").code, 14);
    let late = kalle(
        &home,
        &["paste"],
        &answer(&asked, "01K74V8QF8570V52F7A8GSBCV2", "Late."),
    );
    assert_eq!(late.code, 0, "{}", late.err);
    assert!(
        late.err.contains("the thread was closed on"),
        "{}",
        late.err
    );
    let threads = json(&home, &["threads", "--json", "--open"], "");
    assert_eq!(threads["threads"].as_array().unwrap().len(), 0);
    json(&home, &["reply", &asked, "--reopen", "--json", "More?"], "");
    let threads = json(&home, &["threads", "--json", "--open"], "");
    assert_eq!(threads["threads"].as_array().unwrap().len(), 1);
}

/// The files of the store in which a word stands.
fn files_with(home: &Home, word: &str) -> usize {
    let folder = std::fs::read_dir(home.path("crosstalk")).unwrap();
    let files = folder.map(|e| e.unwrap().path()).filter(|p| p.is_file());
    let has = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(word.len()).any(|w| w == word.as_bytes())
    };
    files.filter(has).count()
}

#[test]
fn one_message_is_forgotten_and_the_rest_of_the_thread_stays() {
    let home = Home::new("forget-one");
    let (asked, thread) = sent(&home, "chatgpt", "Which port?");
    let answer = json(
        &home,
        &["paste", "--json", "--as-reply-to", &asked, "-"],
        "Take xylomarimba.",
    );
    let answer = answer["messages"][0]["id"].as_str().unwrap().to_owned();
    let state = || {
        let threads = json(&home, &["threads", "--json"], "");
        let one = &threads["threads"][0];
        (
            one["messages"].clone(),
            one["state"].clone(),
            one["waits_for"].clone(),
        )
    };
    assert_eq!(
        state(),
        (2.into(), "answered".into(), serde_json::json!([]))
    );
    assert_eq!(
        kalle(&home, &["forget", &answer], "").code,
        2,
        "not a terminal"
    );
    assert_eq!(kalle(&home, &["forget", &answer, "--yes"], "").code, 0);
    assert_eq!(files_with(&home, "xylomarimba"), 0);
    assert_eq!(files_with(&home, &answer), 0);
    let waiting = serde_json::json!(["CHATGPT"]);
    assert_eq!(state(), (1.into(), "waiting".into(), waiting));
    // The question is open again, and takes the answer once more.
    let again = json(
        &home,
        &["paste", "--json", "--as-reply-to", &asked, "-"],
        "Take 443.",
    );
    assert_eq!(again["messages"][0]["settles"], asked.as_str());
    // An answer stands without its question.
    assert_eq!(kalle(&home, &["forget", &asked, "--yes"], "").code, 0);
    let shown = json(&home, &["show", "--json", &thread], "");
    assert_eq!(shown["messages"].as_array().unwrap().len(), 1);
    assert_eq!(kalle(&home, &["fsck"], "").code, 0);
}

#[test]
fn a_poll_counts_without_a_ballot_that_was_forgotten() {
    let home = Home::new("forget-ballot");
    let poll = [
        "poll", "new", "Which?", "--option", "A", "--option", "B", "--target", "CHATGPT",
        "--target", "CLAUDE", "--json",
    ];
    let poll = json(&home, &poll, "");
    let id = poll["message"]["id"].as_str().unwrap().to_owned();
    let thread = poll["message"]["thread"].as_str().unwrap().to_owned();
    let ballot = |who: &str, number: u8| {
        format!(
            "[[{who}→KALLE v1]]\nuser: x\nsession: s\nthread: {thread}\nparent: {id}\nmessage: 01K74V8QF8570V52F7A8GSBCV{number}\n\
             context: poll\nintent: RESPOND\nbody: |\n  A\nsig: none\n[[END]]\n"
        )
    };
    json(&home, &["paste", "--json", "-"], &ballot("CHATGPT", 1));
    json(&home, &["paste", "--json", "-"], &ballot("CLAUDE", 2));
    let waits = || json(&home, &["waiting", "--json"], "")["messages"].clone();
    assert_eq!(waits(), serde_json::json!([]));
    let forget = ["forget", "01K74V8QF8570V52F7A8GSBCV1", "--yes"];
    assert_eq!(kalle(&home, &forget, "").code, 0);
    assert_eq!(waits()[0]["waits_for"], serde_json::json!(["CHATGPT"]));
    let status = json(&home, &["poll", "status", &id, "--here", "--json"], "");
    assert_eq!(status["tally"]["A"], 1, "{status:#}");
}

#[test]
fn forgotten_text_is_gone_from_every_file() {
    let home = Home::new("forget");
    let (_, thread) = sent(&home, "chatgpt", "The word is xylomarimba.");
    let (_, other) = sent(&home, "claude", "Something else.");
    assert_eq!(kalle(&home, &["search", "xylomarimba"], "").code, 0);
    let named = kalle(&home, &["forget", &thread, "--yes"], "");
    assert_eq!(named.code, 2, "{}", named.err);
    assert!(
        named.err.contains("crosstalk forget --thread"),
        "{}",
        named.err
    );
    let forget = ["forget", "--thread", &thread];
    assert_eq!(kalle(&home, &forget, "").code, 2, "not a terminal");
    let forget = [&forget[..], &["--yes"]].concat();
    assert_eq!(kalle(&home, &forget, "").code, 0);
    assert_eq!(kalle(&home, &["search", "xylomarimba"], "").code, 1);
    assert_eq!(kalle(&home, &["show", &thread], "").code, 1);
    assert_eq!(kalle(&home, &["show", &other], "").code, 0);
    let mut files = 0;
    for entry in std::fs::read_dir(home.path("crosstalk")).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            files += 1;
            let bytes = std::fs::read(&path).unwrap();
            let found = |word: &str| bytes.windows(word.len()).any(|w| w == word.as_bytes());
            assert!(
                !found("xylomarimba") && !found(&thread),
                "{}",
                path.display()
            );
        }
    }
    assert!(files > 0);
}

#[test]
fn an_exported_thread_is_imported_byte_for_byte() {
    let (home, other) = (Home::new("export"), Home::new("export-there"));
    let (asked, thread) = sent(&home, "chatgpt", "JWT?\n\n    code\n\n[[END]]");
    assert_eq!(
        kalle(
            &home,
            &["paste"],
            &answer(&asked, "01K74V8QF8570V52F7A8GSBCV2", "Yes.")
        )
        .code,
        0
    );
    let folder = home.path("archive");
    let folder = folder.to_str().unwrap();
    assert_eq!(
        kalle(
            &home,
            &["export", &thread, "--format", "files", "--out", folder],
            ""
        )
        .code,
        0
    );
    let imported = json(&other, &["import", "--json", folder], "");
    assert_eq!(
        (&imported["filed"], &imported["known"]),
        (&2.into(), &0.into())
    );
    let again = json(&other, &["import", "--json", folder], "");
    assert_eq!((&again["filed"], &again["known"]), (&0.into(), &2.into()));
    let texts = |home: &Home| kalle(home, &["export", &thread], "").out;
    assert_eq!(texts(&home), texts(&other));
    let exists = kalle(
        &home,
        &["export", &thread, "--format", "files", "--out", folder],
        "",
    );
    assert_eq!(exists.code, 1, "nothing is overwritten");
}

#[test]
fn personal_data_without_consent_is_warned_about_or_redacted() {
    let home = Home::new("personal");
    let body = "Write to ann@example.com.";
    let warned = kalle(&home, &["send", "chatgpt", body], "");
    assert_eq!(warned.code, 0);
    assert!(
        warned.err.contains("1 email") && warned.out.contains("ann@example.com"),
        "{}",
        warned.err
    );
    let agreed = kalle(
        &home,
        &[
            "send",
            "chatgpt",
            body,
            "--consent",
            "explicit_yes",
            "--scope",
            "pii",
        ],
        "",
    );
    assert!(!agreed.err.contains("warning"), "{}", agreed.err);
    assert!(
        agreed.out.contains("\nConsent: explicit_yes_2"),
        "{}",
        agreed.out
    );
    let redacted = kalle(&home, &["send", "chatgpt", body, "--redact"], "");
    assert!(
        redacted.out.contains("Write to [EMAIL]."),
        "{}",
        redacted.out
    );
    assert!(
        redacted
            .out
            .contains("\nPII: redacted\nRedacted-Fields: email\n"),
        "{}",
        redacted.out
    );
    let denied = kalle(
        &home,
        &["send", "chatgpt", body, "--consent", "explicit_no"],
        "",
    );
    assert_eq!(denied.code, 11);
}

#[test]
fn a_message_says_what_was_asked_for() {
    let home = Home::new("content");
    let file = home.path("plan.md");
    std::fs::write(&file, "hello").unwrap();
    let sent = kalle(
        &home,
        &[
            "send",
            "chatgpt",
            "--context",
            "auth",
            "--intent",
            "poll",
            "--priority",
            "HIGH",
            "--target",
            "claude://a/b",
            "--meta",
            "custom-acme.Ticket=4711",
            "--attach",
            file.to_str().unwrap(),
            "--from",
            "ann",
            "--user",
            "ann b",
            "--body",
            "-",
        ],
        "A or B?\n",
    );
    assert_eq!(sent.code, 0, "{}", sent.err);
    for line in [
        "[[ANN→CHATGPT v1]]",
        "user: ann b",
        "context: auth",
        "intent: POLL",
        "X-Priority: high",
        "Targets: [\"CHATGPT\",\"claude://a/b\"]",
        "A1: text/markdown;name=plan.md;digest=sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "Ticket: 4711",
        "  A or B?",
    ] {
        assert!(
            sent.out.lines().any(|l| l == line),
            "{line} in\n{}",
            sent.out
        );
    }
    let strict = kalle(&home, &["parse", "--strict"], &sent.out);
    assert_eq!(strict.code, 0, "{}", strict.err);
    for wrong in [
        &["send", "chatgpt", "--meta", "no-dot=x", "Hi"][..],
        &["send", "chatgpt", "--body", "x", "y"],
        &[
            "send",
            "chatgpt",
            "Hi",
            "--reply-to",
            "01K74V6VX0S86Z5JATM52C3M7Z",
        ],
        &["send", "chatgpt", "--context", "two\nlines", "Hi"],
        &["send", "chatgpt", "   "],
    ] {
        assert_ne!(kalle(&home, wrong, "").code, 0, "{wrong:?}");
    }
}

#[test]
fn a_store_of_a_newer_version_is_refused_politely() {
    let home = Home::new("newer");
    sent(&home, "chatgpt", "JWT?");
    let path = home.path("crosstalk").join("crosstalk.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    db.pragma_update(None, "user_version", 999).unwrap();
    drop(db);
    for arguments in [&["threads"][..], &["send", "chatgpt", "Hi"]] {
        let refused = kalle(&home, arguments, "");
        assert_eq!(refused.code, 15, "{}", refused.err);
        assert!(
            refused.err.contains("999") && refused.err.contains("newer"),
            "{}",
            refused.err
        );
    }
}
