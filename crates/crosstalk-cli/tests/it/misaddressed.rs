//! Answers that models addressed wrongly: whose they are, and which question they mean.

use crate::run::{Ended, Home};
use serde_json::Value;

const ME: [(&str, &str); 2] = [("CROSSTALK_USER", "kalle"), ("CROSSTALK_CLIPBOARD", "none")];

struct Person(Home);

impl Person {
    fn does(&self, arguments: &[&str], stdin: &str) -> Ended {
        self.0.run_with(&ME, arguments, stdin)
    }

    fn json(&self, arguments: &[&str], stdin: &str) -> Value {
        let ended = self.does(arguments, stdin);
        assert_eq!(ended.code, 0, "{arguments:?}: {}", ended.err);
        serde_json::from_str(&ended.out).unwrap()
    }

    /// Asks something; the id and the thread of the question.
    fn asks(&self, receiver: &str, text: &str) -> (String, String) {
        let sent = self.json(&["send", receiver, text, "--json"], "");
        let of = |key: &str| sent["message"][key].as_str().unwrap().to_owned();
        (of("id"), of("thread"))
    }

    fn pastes(&self, text: &str) -> Value {
        let pasted = self.json(&["paste", "--json", "-"], text);
        pasted["messages"][0]["message"].clone()
    }

    fn states(&self) -> Vec<String> {
        let threads = self.json(&["threads", "--json"], "");
        let threads = threads["threads"].as_array().unwrap().iter();
        threads
            .map(|t| t["state"].as_str().unwrap().to_owned())
            .collect()
    }
}

fn answer(direction: &str, ids: &str, body: &str) -> String {
    format!(
        "[[{direction} v1]]\nuser: kalle\n{ids}context: ports\nintent: RESPOND\nbody: |\n  {body}\nsig: none\n[[END]]\n"
    )
}

#[test]
fn sides_that_were_not_swapped_are_put_right() {
    let kalle = Person(Home::new("not-swapped"));
    let (id, thread) = kalle.asks("claude", "Which port?");
    let ids = format!("thread: {thread}\nparent: {id}\n");
    let ended = kalle.does(&["paste", "-"], &answer("KALLE→CLAUDE", &ids, "8443."));
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(
        ended.err.contains("filed as the answer of CLAUDE"),
        "{}",
        ended.err
    );
    assert_eq!(kalle.states(), ["answered"]);
}

#[test]
fn ids_that_were_made_up_twice_mean_the_question_that_waits() {
    let kalle = Person(Home::new("made-up-twice"));
    let ids = "session: 2025-01-01T00Z aaaaaa\nthread: 01JZZZZZZZG0T7MAHPXVDNXWZZ\nparent: 01JZZZZZZZS86Z5JATM52C3MZZ\n";
    for (question, body) in [("Which port?", "8443."), ("Which host?", "Mars.")] {
        let (id, thread) = kalle.asks("claude", question);
        let kept = kalle.pastes(&answer("CLAUDE→KALLE", ids, body));
        assert_eq!(kept["parent"], id, "{kept}");
        assert_eq!(kept["thread"], thread, "{kept}");
    }
    assert_eq!(kalle.states(), ["answered", "answered"]);
}

#[test]
fn an_answer_under_another_name_is_filed_as_that_of_a_chat() {
    let kalle = Person(Home::new("other-name"));
    let (id, thread) = kalle.asks("chatgpt", "Which port?");
    let text = answer(
        "GPT-4O→KALLE",
        &format!("thread: {thread}\nparent: {id}\n"),
        "8443.",
    );
    let file = kalle.0.path("answer.txt");
    std::fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    let ended = kalle.does(&["paste", file], "");
    assert!(ended.err.contains("GPT-4O was not asked"), "{}", ended.err);
    let hint = ended.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, command) = hint.split_once("`crosstalk ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    assert!(command.ends_with("--from CHATGPT"), "{hint}");
    assert_eq!(kalle.states(), ["waiting"]);
    // A move alone does not make it the answer, and says so.
    let moved = kalle.does(&["move", "last", "--answers", &id], "");
    assert!(moved.err.contains("GPT-4O was not asked"), "{}", moved.err);
    let ended = kalle.does(&command.split(' ').collect::<Vec<_>>(), "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert_eq!(kalle.states(), ["answered"]);
    // It took the place of the first one.
    let shown = kalle.json(&["show", "--json", &thread], "");
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2, "{shown:#}");
    assert_eq!(shown["messages"][1]["from"], "CHATGPT");
}

#[test]
fn an_answer_with_the_id_of_another_chats_copy_is_filed_with_its_own() {
    let kalle = Person(Home::new("other-copy"));
    let sent = kalle.json(&["send", "chatgpt,claude", "Cats or dogs?", "--json"], "");
    let ids: Vec<&str> = (0..2)
        .map(|n| sent["messages"][n]["message"]["id"].as_str().unwrap())
        .collect();
    let thread = sent["thread"].as_str().unwrap();
    let head = format!("thread: {thread}\nparent: {}\n", ids[0]);
    let kept = kalle.pastes(&answer("CLAUDE→KALLE", &head, "Cats."));
    assert_eq!(kept["parent"], ids[1], "{kept}");
    let waiting = kalle.json(&["waiting", "--json", "--local"], "");
    assert_eq!(waiting["messages"][0]["waits_for"][0], "CHATGPT");
}

#[test]
fn a_message_with_the_wrong_intent_is_the_answer_where_a_person_says_so() {
    let kalle = Person(Home::new("wrong-intent"));
    let (id, thread) = kalle.asks("claude", "Which port?");
    let head = format!("thread: {thread}\nparent: {id}\n");
    let text = answer("CLAUDE→KALLE", &head, "8443.");
    let asked = text.replace("intent: RESPOND", "intent: REQUEST");
    assert_eq!(kalle.pastes(&asked)["parent"], id);
    assert_eq!(kalle.states(), ["your-turn"]);
    let moved = kalle.does(&["move", "last", "--answers", &id], "");
    assert_eq!(moved.code, 0, "{}", moved.err);
    assert_eq!(kalle.states(), ["answered"]);
    // A word that nobody knows needs no person.
    let (id, thread) = kalle.asks("claude", "Which host?");
    let head = format!("thread: {thread}\nparent: {id}\n");
    let text = answer("CLAUDE→KALLE", &head, "Mars.");
    kalle.pastes(&text.replace("intent: RESPOND", "intent: ANTWORT"));
    assert_eq!(kalle.states(), ["answered", "answered"]);
}

#[test]
fn a_person_ends_the_waiting_for_an_answer() {
    let kalle = Person(Home::new("waiting-done"));
    let (id, _) = kalle.asks("claude", "Which port?");
    let inbox = kalle.does(&["inbox", "--done", &id], "");
    assert_eq!(inbox.code, 1);
    assert!(inbox.err.contains("waiting --done"), "{}", inbox.err);
    let done = kalle.does(&["waiting", "--done", &id], "");
    assert_eq!(done.code, 0, "{}", done.err);
    let waiting = kalle.does(&["waiting", "--local"], "");
    assert!(
        waiting.err.contains("You wait for nothing."),
        "{}",
        waiting.err
    );
}

#[test]
fn an_unreadable_answer_is_filed_with_the_command_that_is_printed() {
    let kalle = Person(Home::new("unreadable"));
    let (first, _) = kalle.asks("claude", "Which port?");
    let (_, _) = kalle.asks("chatgpt", "Which host?");
    let file = kalle.0.path("answer.txt");
    let text = format!("[CLAUDE→KALLE v1]\nparent: {first}\nbody: 8443.\n");
    std::fs::write(&file, text).unwrap();
    let pasted = kalle.does(&["paste", file.to_str().unwrap()], "");
    assert_eq!(pasted.code, 12);
    let hint = pasted.err.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, command) = hint.split_once("file it with `crosstalk ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let filed = kalle.does(&command.split(' ').collect::<Vec<_>>(), "");
    assert_eq!(filed.code, 0, "{command}: {}", filed.err);
    let shown = kalle.json(&["show", "--json", "last"], "");
    assert_eq!(shown["messages"][0]["parent"], first, "{command}");
}

#[test]
fn the_last_message_is_that_of_somebody_else_where_one_answers() {
    let kalle = Person(Home::new("last-of-others"));
    let (id, thread) = kalle.asks("claude", "Which port?");
    let head = format!("thread: {thread}\nparent: {id}\n");
    let said = kalle.pastes(&answer("CLAUDE→KALLE", &head, "8443."));
    for text in ["And the host?", "And the name?"] {
        let sent = kalle.json(&["reply", "last", text, "--json"], "");
        assert_eq!(sent["message"]["parent"], said["id"], "{sent:#}");
    }
}

#[test]
fn personal_data_does_not_become_the_context() {
    let kalle = Person(Home::new("personal-context"));
    let sent = kalle.json(&["send", "claude", "Call bob@example.com", "--json"], "");
    let context = sent["message"]["context"].as_str().unwrap();
    assert!(!context.contains("bob"), "{context}");
}

#[test]
fn a_mistyped_name_is_asked_about_and_sent_all_the_same() {
    let kalle = Person(Home::new("mistyped"));
    let sent = kalle.does(&["send", "chatgtp", "Which port?"], "");
    assert_eq!(sent.code, 0, "{}", sent.err);
    assert!(sent.err.contains("did you mean CHATGPT?"), "{}", sent.err);
}

#[test]
fn a_vote_in_the_name_of_the_list_counts_for_the_one_who_is_named() {
    let kalle = Person(Home::new("vote-of-voters"));
    let poll = kalle.json(
        &[
            "poll", "new", "When?", "-o", "Friday", "-o", "Monday", "-t", "chatgpt", "-t",
            "claude", "--json",
        ],
        "",
    );
    let (id, thread) = (&poll["message"]["id"], &poll["message"]["thread"]);
    let (id, thread) = (id.as_str().unwrap(), thread.as_str().unwrap());
    let text = answer(
        "VOTERS→KALLE",
        &format!("thread: {thread}\nparent: {id}\n"),
        "Friday",
    );
    let ended = kalle.does(&["paste", "-"], &text);
    assert!(ended.err.contains("VOTERS was not asked"), "{}", ended.err);
    let ended = kalle.does(
        &["paste", "--as-reply-to", id, "--from", "chatgpt", "-"],
        &text,
    );
    assert_eq!(ended.code, 0, "{}", ended.err);
    let status = kalle.does(&["poll", "status", id], "");
    assert!(status.out.contains("CHATGPT: Friday"), "{}", status.out);
    // After the end nothing is counted any more, and no hint says so.
    let unclear = answer(
        "CLAUDE→KALLE",
        &format!("thread: {thread}\nparent: {id}\n"),
        "Early in the week.",
    );
    let unclear = kalle.pastes(&unclear);
    assert_eq!(kalle.does(&["poll", "close", id], "").code, 0);
    let status = kalle.does(&["poll", "status", id], "");
    assert!(!status.out.contains("poll count"), "{}", status.out);
    let late = kalle.does(
        &[
            "poll",
            "count",
            unclear["id"].as_str().unwrap(),
            "--as",
            "Monday",
        ],
        "",
    );
    assert_eq!(late.code, 14, "{}", late.err);
    assert!(late.err.contains("closed"), "{}", late.err);
}

#[test]
fn a_text_in_the_place_of_the_receiver_is_no_name() {
    let kalle = Person(Home::new("text-first"));
    for receiver in ["Which pasta for soup?", "chatgpt,"] {
        let ended = kalle.does(&["send", receiver, "chatgpt"], "");
        assert_eq!(ended.code, 2, "{}", ended.err);
        assert!(
            ended.err.contains("the receiver comes first"),
            "{}",
            ended.err
        );
    }
}
