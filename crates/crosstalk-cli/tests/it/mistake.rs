//! What models get wrong, and what strangers try: messages are kept where they belong, and change no more than they may.

use crate::run::{Ended, Home};
use serde_json::Value;

fn kalle(home: &Home, arguments: &[&str], stdin: &str) -> Ended {
    let me = [("CROSSTALK_USER", "kalle"), ("CROSSTALK_CLIPBOARD", "none")];
    home.run_with(&me, arguments, stdin)
}

fn json(home: &Home, arguments: &[&str], stdin: &str) -> Value {
    let ended = kalle(home, arguments, stdin);
    assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
    serde_json::from_str(&ended.out).unwrap()
}

/// A question, and what of it an answer may repeat.
struct Asked {
    home: Home,
    id: String,
    thread: String,
    session: String,
}

impl Asked {
    fn new(name: &str) -> Self {
        let home = Home::new(name);
        let sent = json(&home, &["send", "chatgpt", "--json", "JWT?"], "");
        let own = |key: &str| sent["message"][key].as_str().unwrap().to_owned();
        Self {
            id: own("id"),
            thread: own("thread"),
            session: own("session"),
            home,
        }
    }

    /// An answer with these lines in its head; `ID`, `THREAD` and `SESSION` are those of the question.
    fn answer(&self, head: &str) -> String {
        let head = head
            .replace("ID", &self.id)
            .replace("THREAD", &self.thread)
            .replace("SESSION", &self.session);
        format!(
            "[[CHATGPT→KALLE v1]]\nuser: chatgpt\n{head}\ncontext: auth\nintent: RESPOND\nbody: |\n  Yes.\nsig: none\n[[END]]\n"
        )
    }

    /// Whether there is one thread with this many messages, and what it waits for.
    fn state(&self, messages: u64) -> (bool, u64) {
        let threads = json(&self.home, &["threads", "--json"], "");
        let all = threads["threads"].as_array().unwrap();
        (
            all.len() == 1 && all[0]["messages"] == messages,
            all[0]["asked"].as_u64().unwrap(),
        )
    }
}

#[test]
fn an_answer_finds_its_question_whatever_a_model_did_to_the_ids() {
    for (number, (head, remark)) in [
        ("session: SESSION\nthread: THREAD\nparent: ID", ""),
        ("session: SESSION", ""),
        ("session: SESSION\nthread: 01HZX3ABCDEFGHJKMNPQRSTVWY\nparent: 01HZX3ABCDEFGHJKMNPQRSTVWX", "is not here"),
        ("session: SESSION\nthread: THREAD\nparent: 01HZX3ABCDEFGHJKMNPQRSTVWX", "is not here"),
        ("session: SESSION\nthread: <same>\nparent: <the id above>\nmessage: <new ULID>", "one of its own here"),
        ("session: SESSION\nthread: THREAD\nparent: ID\nmessage: ID", "one of its own here"),
        ("session: SESSION\nthread: THREAD\nparent: ID\nmessage: last", "one of its own here"),
    ]
    .into_iter()
    .enumerate()
    {
        let asked = Asked::new(&format!("mistake-{number}"));
        let pasted = kalle(&asked.home, &["paste", "-"], &asked.answer(head));
        assert_eq!(pasted.code, 0, "{head}: {}", pasted.err);
        let told = pasted.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(remark), "{head}: {told}");
        assert_eq!(asked.state(2), (true, 0), "{head}: {}", pasted.err);
        let again = kalle(&asked.home, &["paste", "-"], &asked.answer(head));
        assert!(again.err.contains("Already filed as"), "{head}: {}", again.err);
    }
}

#[test]
fn a_message_that_was_filed_wrongly_can_be_filed_again() {
    let asked = Asked::new("refile");
    let answer = asked.answer("session: 2025-01-01T00Z zzzzzz\nmessage: 01K74V8QF8570V52F7A8GSBCV2\nparent: 01HZX3ABCDEFGHJKMNPQRSTVWX");
    let filed = json(
        &asked.home,
        &["paste", "--json", "--as-reply-to", &asked.id, "-"],
        &answer,
    );
    assert_eq!(
        filed["messages"][0]["message"]["thread"],
        asked.thread.as_str()
    );
    assert_eq!(filed["messages"][0]["message"]["parent"], asked.id.as_str());
    assert_eq!(asked.state(2), (true, 0));
}

#[test]
fn a_whole_answer_takes_the_place_of_a_truncated_one_without_an_id() {
    let asked = Asked::new("whole-without-id");
    let whole = asked
        .answer("session: SESSION")
        .replace("  Yes.", "  Yes, because it is short.");
    let (cut, _) = whole.split_once(" it is short").unwrap();
    let kept = json(
        &asked.home,
        &["paste", "--json", "--accept-truncated", "-"],
        cut,
    );
    let id = kept["messages"][0]["id"].as_str().unwrap();
    let pasted = kalle(&asked.home, &["paste", "-"], &whole);
    assert!(
        pasted.err.contains("it replaces the truncated message"),
        "{}",
        pasted.err
    );
    let shown = json(&asked.home, &["show", "--json", id], "");
    assert_eq!(shown["messages"][0]["body"], "Yes, because it is short.");
    assert_eq!(shown["messages"][0]["parent"], asked.id.as_str());
    assert_eq!(shown["messages"][0]["truncated"], false);
    let again = kalle(&asked.home, &["paste", "-"], &whole);
    assert!(again.err.contains("Already filed as"), "{}", again.err);
}

#[test]
fn an_empty_answer_leaves_the_question_open() {
    let asked = Asked::new("empty-answer");
    let answer = asked.answer(
        "session: SESSION\nthread: THREAD\nparent: ID\nmessage: 01K74V8QF8570V52F7A8GSBCV2",
    );
    let empty = kalle(
        &asked.home,
        &["paste", "-"],
        &answer.replace("  Yes.\n", "\n"),
    );
    assert_eq!(empty.code, 0, "{}", empty.err);
    let told = empty.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("the answer is empty, so the question still waits"),
        "{told}"
    );
    assert_eq!(asked.state(2), (true, 1));
    // The hint can be followed, though the id is the same.
    let full = kalle(&asked.home, &["paste", "-"], &answer);
    assert_eq!(full.code, 0, "{}", full.err);
    assert_eq!(asked.state(2), (true, 0));
}

#[test]
fn the_same_words_answer_the_next_question_where_a_model_copies_the_ids_of_the_primer() {
    let asked = Asked::new("yes-twice");
    let example = "session: 2025-10-09T16Z abc123\nthread: 01K74V6VX0S86Z5JATM52C3M7Z\nparent: 01K74V70T0C4NWGX9QSZPNV2PB";
    let answer = asked.answer(example);
    let first = json(&asked.home, &["paste", "--json", "-"], &answer);
    assert_eq!(first["messages"][0]["settles"], asked.id.as_str());
    assert_eq!(
        json(&asked.home, &["paste", "--json", "-"], &answer)["messages"][0]["outcome"],
        "known"
    );
    let next = json(&asked.home, &["send", "chatgpt", "--json", "Cookies?"], "");
    let second = json(&asked.home, &["paste", "--json", "-"], &answer);
    assert_eq!(second["messages"][0]["outcome"], "filed");
    assert_eq!(second["messages"][0]["settles"], next["message"]["id"]);
}

#[test]
fn the_example_of_the_primer_is_no_message() {
    let home = Home::new("primer-example");
    let sent = json(&home, &["send", "claude", "--json", "Which port?"], "");
    assert_eq!(sent["primer"], true);
    let pasted = kalle(&home, &["paste", "-"], sent["text"].as_str().unwrap());
    // The clipboard still holds what was sent.
    let told = pasted.err.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("This is your own message")
            && told.contains("Copy the answer in the chat first"),
        "{told}"
    );
    let threads = json(&home, &["threads", "--json"], "");
    assert_eq!(
        threads["threads"].as_array().unwrap().len(),
        1,
        "{threads:#}"
    );
    let prompt = kalle(&home, &["prompt", "--for", "gemini"], "").out;
    let alone = kalle(&home, &["paste", "-"], &prompt);
    assert!(
        alone.err.contains("the example of the primer"),
        "{}",
        alone.err
    );
}

#[test]
fn a_follow_up_of_mine_does_not_answer_my_question() {
    let asked = Asked::new("follow-up");
    let more = json(
        &asked.home,
        &["reply", &asked.id, "--json", "PS: for mobile clients."],
        "",
    );
    assert_eq!(more["message"]["to"], "CHATGPT");
    assert_eq!(more["message"]["intent"], "REQUEST");
    assert_eq!(asked.state(2), (true, 2));
}

#[test]
fn a_stranger_settles_closes_and_hides_nothing() {
    let asked = Asked::new("stranger");
    let stranger = |intent: &str, head: &str| {
        asked
            .answer(head)
            .replace("[[CHATGPT→KALLE", "[[MALLORY→ZED")
            .replace("RESPOND", intent)
    };
    for intent in ["RESPOND", "NACK", "ERROR", "CLOSE", "HANDOFF"] {
        let mut text = stranger(intent, "session: SESSION\nthread: THREAD\nparent: ID");
        if intent == "ERROR" {
            text = text.replace("body: |", "\nmeta: error\nCode: E-ROUTE\n\nbody: |");
        }
        assert_eq!(
            kalle(&asked.home, &["paste", "-"], &text).code,
            0,
            "{intent}"
        );
    }
    let thread = json(&asked.home, &["show", "--json", &asked.thread], "");
    assert_eq!(thread["thread"]["asked"], 1, "{thread:#}");
    assert_eq!(thread["thread"]["closed_at"], Value::Null);
    // A thread that is named after my message does not take its place.
    let named = stranger("REQUEST", "session: 2025-01-01T00Z zzzzzz\nthread: ID");
    assert_eq!(kalle(&asked.home, &["paste", "-"], &named).code, 0);
    let shown = json(&asked.home, &["show", "--json", &asked.id], "");
    assert_eq!(shown["messages"][0]["from"], "KALLE");
}

#[test]
fn nothing_hidden_of_others_goes_into_a_message_of_mine_or_onto_the_screen() {
    let home = Home::new("hidden");
    let hidden = "\u{202e}\u{200b}\u{e0041}";
    let text = format!(
        "[[CLAUDE→KALLE v1]]\nuser: x{hidden}\nsession: 2025-10-09T16Z abc{hidden}\nthread: 01K74V6R0074{hidden}X\n\
         message: 01K74V6VX0S8{hidden}Z\ncontext: rel{hidden}ease\nintent: REQUEST\n\nmeta: privacy\nJurisdiction: GDPR{hidden}\n\n\
         body: |\n  May I?\nsig: none\n[[END]]\n"
    );
    let is_hidden = crosstalk_envelope::unicode::is_hidden;
    let pasted = kalle(&home, &["paste", "-"], &text);
    assert_eq!(pasted.code, 0, "{}", pasted.err);
    for arguments in [
        &["show", "last"][..],
        &["show", "last", "--json"],
        &["inbox"],
        &["threads"],
        &["search", "may"],
        &["reply", "last", "--body", "Yes."],
        &["handoff", "last", "--to", "gemini", "--note", "Go."],
        &["escalate", "last", "--to", "ANNA", "--reason", "x"],
        &["close", "last"],
        &["forget", "last", "--yes"],
    ] {
        let ended = kalle(&home, arguments, "");
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
        assert!(
            !ended.out.contains(is_hidden) && !ended.err.contains(is_hidden),
            "{arguments:?}: {:?}",
            ended.out
        );
    }
    assert!(!pasted.out.contains(is_hidden) && !pasted.err.contains(is_hidden));
}

#[test]
fn what_stands_against_a_message_is_said_before_it_is_written() {
    let home = Home::new("before");
    let editor = home.path("opened");
    let editor = format!("touch '{}'; true", editor.display());
    for arguments in [
        &["send", "claude", "--attach", "/no/such/file"][..],
        &["send", "claude", "--attach", "/dev/zero"],
        &["send", "claude", "--sign"],
        &["send", "claude", "--intent", "respond"],
        &["send", "claude", "--consent", "explicit_no"],
        &["send", "claude", "--consent", "yes"],
        &[
            "send",
            "claude",
            "--consent",
            "explicit_yes",
            "--expires",
            "2020-01-01",
        ],
        &["send", "claude", "--priority", "urgent"],
        &["send", "claude", "--meta", "integrity.Digest=1"],
    ] {
        let me = [("CROSSTALK_USER", "kalle"), ("VISUAL", editor.as_str())];
        let ended = home.run_with(&me, arguments, "");
        assert_ne!(ended.code, 0, "{arguments:?}");
        assert!(
            !home.path("opened").exists(),
            "{arguments:?}: the editor was opened"
        );
    }
    let odd = kalle(&home, &["send", "claude", "--intent", "SING", "La."], "");
    assert!(odd.err.contains("SING"), "{}", odd.err);
}
