//! Messages and threads, by id and by words.

use crate::house::{House, ids, letter, text};
use crate::http::{Ask, strict};
use crosstalk_envelope::{Reading, scan};
use serde_json::{Value, json};

const ME: &str = "claude://code/api";

fn get(house: &House, path: &str) -> Value {
    house.ask(&Ask::get(path).accept("application/json")).json()
}

#[test]
fn a_message_is_found_by_its_id_at_once() {
    let house = House::local();
    for n in 0..50 {
        let id = format!("M{n}");
        house.take(&text("ANN", ME, &id));
        let answer = house.get(&format!("/crosstalk/messages/{id}"));
        let document = strict(answer.text());
        assert_eq!(document.envelope().message, Some(id.as_str()));
        assert_eq!(document.envelope().hops().count(), 1);
        let view = get(&house, &format!("/crosstalk/messages/{id}"));
        assert_eq!(
            (&view["id"], &view["to"], view.get("state")),
            (&json!(id), &json!(ME), None)
        );
        let status = get(&house, &format!("/crosstalk/messages/{id}/status"));
        assert_eq!(status["deliveries"][0]["state"], "queued");
        let thread = get(&house, "/crosstalk/threads/T1");
        assert_eq!(thread["thread"]["messages"], n + 1);
    }
    // Ids that have to be encoded.
    house.take(
        &letter("ANN", ME, "a/b?c#d ä")
            .build()
            .unwrap_or_else(|_| text("ANN", ME, "a/b?c#d")),
    );
    let found = house.inbox(ME).pop().unwrap();
    let encoded: String = found.bytes().map(|b| format!("%{b:02X}")).collect();
    assert_eq!(
        get(&house, &format!("/crosstalk/messages/{encoded}"))["id"],
        found
    );
}

#[test]
fn a_thread_is_a_tree_a_file_and_a_document() {
    let house = House::local();
    let answer = |id: &str, parent: &str| {
        house.take(
            &letter(ME, "ANN", id)
                .parent(parent)
                .intent("NOTE")
                .body("<script>")
                .build()
                .unwrap(),
        );
    };
    house.take(&text("ANN", ME, "M1"));
    answer("M2", "M1");
    answer("M3", "M2");
    answer("M4", "M1");
    answer("M5", "elsewhere");
    answer("M6", "M6");
    let thread = get(&house, "/crosstalk/threads/T1");
    let head = &thread["thread"];
    assert_eq!(
        (&head["id"], &head["context"], &head["open"]),
        (&json!("T1"), &json!("plums"), &json!(true))
    );
    assert_eq!(
        (&head["messages"], &head["parties"]),
        (&json!(6), &json!(["ANN", ME]))
    );
    assert_eq!(ids(&thread["messages"]), ["M1", "M5", "M6"]);
    let first = &thread["messages"][0];
    assert_eq!(ids(&first["answers"]), ["M2", "M4"]);
    assert_eq!(ids(&first["answers"][0]["answers"]), ["M3"]);
    let file = house.ask(&Ask::get("/crosstalk/threads/T1").accept("text/plain"));
    let found = scan(file.text(), Reading::Strict);
    assert_eq!((found.documents.len(), found.refused.len()), (6, 0));
    let document = house.ask(&Ask::get("/crosstalk/threads/T1").accept("text/markdown"));
    assert_eq!(
        document.header("content-type"),
        Some("text/markdown; charset=utf-8")
    );
    assert!(document.text().starts_with("# plums\n"));
    // Closed.
    house.take(&letter("ANN", ME, "C1").intent("CLOSE").build().unwrap());
    assert_eq!(
        get(&house, "/crosstalk/threads/T1")["thread"]["open"],
        false
    );
    for (query, count) in [
        ("", 1),
        ("?open=true", 0),
        ("?open=false", 1),
        ("?with=ann", 1),
        ("?with=BOB", 0),
        ("?skip=1", 0),
    ] {
        let list = get(&house, &format!("/crosstalk/threads{query}"));
        assert_eq!(list["threads"].as_array().unwrap().len(), count, "{query}");
    }
}

/// However long a chain of answers is, nothing recurses with it.
#[test]
fn a_long_chain_of_answers_is_a_tree_of_bounded_depth() {
    let house = House::local();
    let mut all = text("ANN", ME, "M0");
    for n in 1..1500 {
        let parent = format!("M{}", n - 1);
        all += &letter(ME, "ANN", &format!("M{n}"))
            .parent(parent)
            .intent("NOTE")
            .build()
            .unwrap();
    }
    let batch = Ask::send(all).header("Content-Type", "application/vnd.crosstalk.batch");
    assert_eq!(house.ask(&batch).status, 200);
    let thread = get(&house, "/crosstalk/threads/T1");
    fn count(nodes: &Value, depth: usize) -> usize {
        assert!(depth < 60);
        let nodes = nodes.as_array().unwrap().iter();
        nodes.map(|n| 1 + count(&n["answers"], depth + 1)).sum()
    }
    assert_eq!(count(&thread["messages"], 0), 1500);
    let file = house.ask(&Ask::get("/crosstalk/threads/T1").accept("text/plain"));
    assert_eq!(scan(file.text(), Reading::Strict).documents.len(), 1500);
}

#[test]
fn messages_are_found_by_their_words() {
    let house = House::local();
    house.take(&text("ANN", ME, "M1"));
    house.take(
        &letter("ANN", ME, "M2")
            .body("Pears are ripe.")
            .build()
            .unwrap(),
    );
    let found = |q: &str| ids(&get(&house, &format!("/crosstalk/search?q={q}"))["messages"]);
    assert_eq!(found("ripe"), ["M2", "M1"]);
    assert_eq!(found("pears+ripe"), ["M2"]);
    assert_eq!(found("ripe&limit=1"), ["M2"]);
    assert!(found("apples").is_empty());
}

#[test]
fn a_poll_goes_to_its_targets() {
    let house = House::local();
    let poll = letter("ANN", "ALL", "P1").intent("POLL").meta(
        "routing",
        "Targets",
        "[\"claude://a/1\",\"gemini://b/2\"]",
    );
    let poll = poll
        .meta("poll", "Question", "Which?")
        .meta("poll", "Options", "[\"a\",\"b\"]")
        .build()
        .unwrap();
    house.take(&poll);
    assert_eq!(
        (house.inbox("claude://a/1"), house.inbox("gemini://b/2")),
        (vec!["P1".into()], vec!["P1".into()])
    );
    assert!(house.inbox("ALL").is_empty());
    let status = get(&house, "/crosstalk/messages/P1/status");
    assert_eq!(status["deliveries"].as_array().unwrap().len(), 2);
}
