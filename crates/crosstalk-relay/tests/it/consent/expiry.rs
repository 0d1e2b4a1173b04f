//! From its end on, nothing of a message is handed out, by any path, though its text is not erased yet (CON-005).

use super::{plan, time};
use crate::house::{House, letter};
use crate::http::Ask;
use crosstalk_envelope::Builder;
use crosstalk_envelope::meta::Digest;

const ASKER: &str = "agent://here.example/asker";
const BOT: &str = "agent://here.example/bot";
const NEXT: &str = "agent://here.example/next";
const SECRET: &str = "persimmon";

/// A message whose consent ends after a minute.
fn ending(from: &str, to: &str, id: &str) -> Builder {
    letter(from, to, id)
        .body(format!("It is a {SECRET}."))
        .context(SECRET)
        .meta("privacy", "Consent", "explicit_yes")
        .meta("privacy", "Expires", time(60))
}

fn attached(builder: Builder, digest: &Digest) -> String {
    let value = format!("text/plain;name=a.txt;digest={digest}");
    builder.meta("attachments", "A1", value).build().unwrap()
}

/// Everything that a stream of events says until a message is in it.
fn streamed(house: &House, address: &str, last: &str) -> String {
    let path = format!("/crosstalk/inbox?for={address}");
    let mut line = house.line();
    line.send(Ask::get(&path).accept("text/event-stream").bytes());
    assert_eq!(line.head().unwrap().status, 200);
    let (mut said, last) = (String::new(), format!("\"id\":\"{last}\""));
    while !said.contains(&last) {
        said.push_str(&line.line());
    }
    said
}

/// What every path hands out, with its name.
fn handed_out(house: &House, question: &str, digests: &[Digest]) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for (accept, path) in [
        ("application/json", format!("/crosstalk/inbox?for={ASKER}")),
        ("text/plain", format!("/crosstalk/inbox?for={ASKER}")),
        (
            "application/json",
            format!("/crosstalk/inbox?for={ASKER}&wait=9"),
        ),
        // The history of a hand-off.
        ("application/json", format!("/crosstalk/inbox?for={NEXT}")),
        ("application/json", "/crosstalk/messages/A1".into()),
        ("text/plain", "/crosstalk/messages/A1".into()),
        ("application/json", "/crosstalk/threads/T1".into()),
        ("text/plain", "/crosstalk/threads/T1".into()),
        ("text/markdown", "/crosstalk/threads/T1".into()),
        ("application/json", "/crosstalk/threads".into()),
        ("application/json", format!("/crosstalk/search?q={SECRET}")),
        ("application/json", "/crosstalk/courier".into()),
        ("application/json", "/crosstalk/approvals".into()),
        ("application/json", "/crosstalk/approvals/H1".into()),
        ("application/json", "/crosstalk/messages/H1".into()),
        ("text/plain", "/crosstalk/messages/H1".into()),
    ] {
        let answer = house.ask(&Ask::get(&path).accept(accept));
        out.push((format!("{accept} {path}"), answer.text().to_owned()));
    }
    for digest in digests {
        let path = format!("/crosstalk/blobs/{digest}");
        let answer = house.get(&path);
        out.push((path, answer.text().to_owned()));
    }
    for (address, last) in [(ASKER, "Z1"), (NEXT, "Z2")] {
        let name = format!("the stream of {address}");
        out.push((name, streamed(house, address, last)));
    }
    let again = house.ask(&Ask::send(question).header("Prefer", "wait=1"));
    out.push(("Prefer: wait".into(), again.text().to_owned()));
    out
}

#[test]
fn no_path_hands_out_expired_messages() {
    let hold = "[[hold]]\nto = [\"agent://here.example/held\"]\npeople = true\n";
    let house = plan().config(hold).open();
    let put = |content: String| {
        let digest = Digest::of(content.as_bytes());
        let path = format!("/crosstalk/blobs/{digest}");
        let answer = house.ask(&Ask::new("PUT", &path).body(content));
        assert_eq!(answer.status, 201);
        digest
    };
    let digests = [put(format!("A {SECRET}.")), put(format!("One {SECRET}."))];
    let opening = ending(BOT, ASKER, "O1").thread("T0").build().unwrap();
    house.take(&opening);
    let question = letter(ASKER, BOT, "Q1").build().unwrap();
    house.take(&question);
    let answer = ending(BOT, ASKER, "A1").intent("RESPOND").parent("Q1");
    house.take(&attached(answer, &digests[0]));
    house.take(&ending(BOT, "NOBODY", "C1").build().unwrap());
    let held = ending(BOT, "agent://here.example/held", "H1");
    house.take(&attached(held, &digests[1]));
    let handoff = letter(ASKER, NEXT, "N1").intent("HANDOFF");
    house.take(&handoff.build().unwrap());
    for (to, id) in [(ASKER, "Z1"), (NEXT, "Z2")] {
        house.take(&letter(BOT, to, id).thread("T2").build().unwrap());
    }

    for (path, text) in handed_out(&house, &question, &digests) {
        assert!(text.contains(SECRET), "{path}: {text}");
    }
    house.later(60);
    for (path, text) in handed_out(&house, &question, &digests) {
        // A search is told what it looked for.
        assert!(!text.contains(SECRET), "{path}: {text}");
    }
    let store = house.store();
    assert!(store.record("A1").unwrap().is_some(), "not erased yet");
}
