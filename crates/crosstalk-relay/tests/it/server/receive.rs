//! `POST /crosstalk/receive`.

use crate::house::{House, letter, text};
use crate::http::{Ask, strict};
use serde_json::{Value, json};

#[test]
fn a_message_is_acknowledged_and_in_the_inbox() {
    let house = House::local();
    let sent = text("claude://code/api", "chatgpt://thread/x", "M1");
    let answer = house.take(&sent);
    assert_eq!(answer.intent(), "ACK");
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let ack = strict(answer.text());
    let envelope = ack.envelope();
    assert_eq!(envelope.sender.as_str(), "chatgpt://thread/x");
    assert_eq!(envelope.receiver.as_str(), "claude://code/api");
    assert_eq!(
        (envelope.user, envelope.parent),
        (Some("relay"), Some("M1"))
    );
    assert_eq!(ack.meta("receipt", "Received-By"), Some("localhost"));
    let digest = strict(&sent).digest().unwrap().to_string();
    assert_eq!(ack.meta("receipt", "Digest"), Some(digest.as_str()));
    assert_eq!(house.inbox("chatgpt://thread/x"), ["M1"]);
    assert!(house.inbox("claude://code/api").is_empty());
}

/// Threat 9: whoever sends it again gets the first answer, byte for byte; other content under the same id is refused.
#[test]
fn the_same_message_gets_the_same_answer() {
    let house = House::local();
    let sent = text("CLAUDE", "chatgpt://thread/x", "M1");
    let first = house.take(&sent);
    let mut line = house.line();
    for _ in 0..500 {
        house.later(1);
        let again = Ask::send(&sent).on(&mut line);
        assert_eq!((again.status, again.text()), (200, first.text()));
    }
    let batch = Ask::send(&sent).header("Content-Type", "application/vnd.crosstalk.batch");
    assert_eq!(house.ask(&batch).text(), first.text());
    let other = letter("CLAUDE", "chatgpt://thread/x", "M1").body("Or pears?");
    let refused = house.ask(&Ask::send(other.build().unwrap()));
    assert_eq!((refused.status, refused.code().as_str()), (403, "E-PERM"));
    assert_eq!(house.inbox("chatgpt://thread/x"), ["M1"]);
    // After a restart as well.
    let data = house.close();
    let house = House::open(crate::house::Plan::default(), data).unwrap();
    assert_eq!(house.take(&sent).text(), first.text());
}

#[test]
fn a_sender_can_wait_for_the_answer() {
    let house = House::local();
    let question = text("ANN", "claude://code/api", "M1");
    let mut line = house.line();
    line.send(Ask::send(&question).header("Prefer", "wait=60").bytes());
    // The question is there when somebody who waits for it is told so.
    let path = "/crosstalk/inbox?for=claude%3A%2F%2Fcode%2Fapi&wait=60";
    let got = house.ask(&Ask::get(path).accept("application/json"));
    assert_eq!(got.json()["messages"][0]["id"], "M1");
    let answer = letter("claude://code/api", "ANN", "M2")
        .intent("RESPOND")
        .parent("M1");
    house.take(&answer.build().unwrap());
    let answer = line.answer();
    assert_eq!((answer.status, answer.intent().as_str()), (200, "RESPOND"));
    assert_eq!(answer.header("preference-applied"), Some("wait=60"));
    let document = strict(answer.text());
    assert_eq!(document.envelope().message, Some("M2"));
    assert_eq!(document.envelope().hops().count(), 1);
    // It stays in the inbox, and whoever asks again gets it again.
    assert_eq!(house.inbox("ANN"), ["M2"]);
    let again = house.ask(&Ask::send(&question).header("Prefer", "wait=1"));
    assert_eq!(again.intent(), "RESPOND");
}

/// Anybody can name a message as the one that theirs answers.
#[test]
fn only_who_was_asked_ends_a_wait() {
    let house = House::local();
    let question = text("ANN", "claude://code/api", "M1");
    let mut line = house.line();
    line.send(Ask::send(&question).header("Prefer", "wait=60").bytes());
    let path = "/crosstalk/inbox?for=claude%3A%2F%2Fcode%2Fapi&wait=60";
    house.ask(&Ask::get(path).accept("application/json"));
    for (id, from, to) in [
        ("S1", "mal://x", "mal://y"),
        ("S2", "mal://x", "ANN"),
        ("S3", "claude://code/api", "mal://x"),
    ] {
        let answer = letter(from, to, id).intent("RESPOND").parent("M1");
        house.take(&answer.build().unwrap());
    }
    let right = letter("claude://code/api", "ANN", "M2")
        .intent("RESPOND")
        .parent("M1");
    house.take(&right.build().unwrap());
    assert_eq!(strict(line.answer().text()).envelope().message, Some("M2"));
    let again = house.ask(&Ask::send(&question).header("Prefer", "wait=1"));
    assert_eq!(strict(again.text()).envelope().message, Some("M2"));
}

#[test]
fn wait_without_an_answer_ends_with_the_ack() {
    let house = House::local();
    let question = text("ANN", "claude://code/api", "M1");
    let answer = house.ask(&Ask::send(&question).header("Prefer", "wait=1"));
    assert_eq!(
        (
            answer.intent().as_str(),
            answer.header("preference-applied")
        ),
        ("ACK", Some("wait=1"))
    );
    assert_eq!(house.take(&question).text(), answer.text());
}

#[test]
fn wrong_content_type_is_rejected() {
    let house = House::local();
    let sent = text("CLAUDE", "chatgpt://thread/x", "M1");
    for good in [
        "text/plain",
        "text/plain; charset=utf-8",
        "Text/Plain;charset=\"UTF-8\"",
        "application/vnd.crosstalk",
        "application/vnd.crosstalk; charset=utf-8",
    ] {
        let answer = house.ask(&Ask::send(&sent).header("Content-Type", good));
        assert_eq!(answer.status, 200, "{good}");
    }
    assert_eq!(
        house.ask(&Ask::send(&sent).without("Content-Type")).status,
        200
    );
    for bad in [
        "text/html",
        "text/plain; charset=iso-8859-1",
        "application/json; charset=iso-8859-1",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "text/plainx",
    ] {
        let answer = house.ask(&Ask::send(&sent).header("Content-Type", bad));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (415, "E-UNSUPPORTED"),
            "{bad}"
        );
    }
    for (encoding, status) in [
        ("identity", 200),
        ("gzip", 415),
        ("br", 415),
        ("identity, gzip", 415),
    ] {
        let answer = house.ask(&Ask::send(&sent).header("Content-Encoding", encoding));
        assert_eq!(answer.status, status, "{encoding}");
    }
}

#[test]
fn a_refusal_is_an_envelope_or_json() {
    let house = House::local();
    let answer = house.ask(&Ask::send("hello"));
    assert_eq!((answer.status, answer.code().as_str()), (400, "E-FORMAT"));
    assert!(answer.text().starts_with("[[SYSTEM→UNKNOWN v1]]\n"));
    let answer = house.ask(&Ask::send("hello").accept("application/json"));
    let error = &answer.json()["error"];
    assert_eq!((answer.status, &error["code"]), (400, &json!("E-FORMAT")));
    assert_eq!((&error["line"], &error["column"]), (&json!(1), &json!(1)));
    assert!(
        error["rule"].is_string() && error["reason"].is_string() && error["detail"].is_string()
    );
    let (what, help) = (error["what"].as_str(), error["help"].as_str());
    assert!(what.is_some_and(|w| w.starts_with("Line 1, column 1: ")));
    assert!(help.is_some_and(|h| !h.is_empty()));
}

/// A message as `crosstalk build` reads it.
fn message() -> Value {
    json!({
        "sender": "ANN", "receiver": "claude://code/api", "user": "ann", "context": "api", "intent": "REQUEST",
        "message": "M1", "meta": {"routing": {"X-Priority": "high"}}, "body": "Which endpoint stays?",
    })
}

#[test]
fn json_is_accepted_as_the_envelope_that_it_describes() {
    let house = House::local();
    let sent = Ask::json("POST", "/crosstalk/receive", &message());
    let ack = house.ask(&sent);
    assert_eq!((ack.status, ack.intent().as_str()), (200, "ACK"));
    let got = house.ask(&Ask::get("/crosstalk/messages/M1").accept("text/plain"));
    let document = strict(got.text());
    let envelope = document.envelope();
    assert_eq!(
        (document.sender(), document.receiver()),
        ("ANN", "claude://code/api")
    );
    assert_eq!(envelope.thread.map(str::len), Some(26));
    assert_eq!(document.body_text(), "Which endpoint stays?");
    assert!(got.text().contains("meta: routing\nX-Priority: high\n"));
}

#[test]
fn messages_of_one_session_share_a_thread_in_json_too() {
    let house = House::local();
    let thread = |id: &str| {
        let mut message = message();
        message["session"] = json!("2025-10-09T16Z abc123");
        message["message"] = json!(id);
        let sent = Ask::json("POST", "/crosstalk/receive", &message).accept("application/json");
        house.ask(&sent).json()["ack"]["thread"].clone()
    };
    assert_eq!(thread("M1"), thread("M2"));
}

#[test]
fn answers_are_json_for_a_caller_who_accepts_it() {
    let house = House::local();
    let mut line = house.line();
    let question = Ask::json("POST", "/crosstalk/receive", &message()).accept("application/json");
    line.send(question.header("Prefer", "wait=60").bytes());
    let path = "/crosstalk/inbox?for=claude%3A%2F%2Fcode%2Fapi&wait=60";
    house.ask(&Ask::get(path).accept("application/json"));
    let answer = letter("claude://code/api", "ANN", "M2")
        .intent("RESPOND")
        .parent("M1");
    house.take(&answer.build().unwrap());
    let answer = line.answer().json();
    assert_eq!(answer["schema"], "crosstalk.receive/1");
    assert_eq!(answer["ack"]["intent"]["meaning"], "ACK");
    assert_eq!(answer["ack"]["parent"], "M1");
    assert_eq!(answer["answer"]["intent"]["meaning"], "RESPOND");
    assert_eq!(answer["answer"]["message"], "M2");
    let unanswered = Ask::send(text("A", "chatgpt://x/y", "M3")).accept("application/json");
    assert_eq!(house.ask(&unanswered).json()["answer"], Value::Null);
}

#[test]
fn malformed_json_is_rejected_with_a_reason() {
    let house = House::local();
    let rejected = |body: &str, status: u16, code: &str| {
        let sent = Ask::send(body)
            .header("Content-Type", "application/json")
            .accept("application/json");
        let answer = house.ask(&sent);
        let error = answer.json()["error"].clone();
        assert_eq!(
            (answer.status, error["code"].as_str()),
            (status, Some(code)),
            "{body}"
        );
        assert!(
            error["what"].is_string() && error["help"].is_string(),
            "{error}"
        );
        error
    };
    rejected("hello", 400, "E-FORMAT");
    rejected("[]", 400, "E-FORMAT");
    rejected("{\"sender\": \"A\"}", 400, "E-FORMAT");
    rejected(&json!([message(), message()]).to_string(), 400, "E-FORMAT");
    let mut newer = message();
    newer["version"] = json!("v2");
    rejected(&newer.to_string(), 422, "E-UNSUPPORTED");
    let mut unnamed = message();
    unnamed["sender"] = json!("A\n[[END]]");
    let error = rejected(&unnamed.to_string(), 400, "E-FORMAT");
    assert!(error["rule"].is_string());
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let house = House::local();
    let mut line = house.line();
    for n in 0..20 {
        let sent = text("A", "chatgpt://x/y", &format!("M{n}"));
        assert_eq!(Ask::send(sent).on(&mut line).status, 200);
        assert_eq!(Ask::send("x").on(&mut line).status, 400);
        assert_eq!(Ask::get("/nothing").on(&mut line).status, 404);
    }
    // Two at once, and one in pieces.
    let two = [Ask::get("/healthz").bytes(), Ask::get("/readyz").bytes()].concat();
    line.send(two);
    assert_eq!(
        (line.answer().text(), line.answer().text()),
        ("ok\n", "ready\n")
    );
    let bytes = Ask::send(text("A", "chatgpt://x/y", "M77")).bytes();
    for part in bytes.chunks(7) {
        line.send(part);
    }
    assert_eq!(line.answer().status, 200);
    // Without a length.
    line.send(
        "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
    );
    let sent = text("A", "chatgpt://x/y", "M78");
    for part in sent.as_bytes().chunks(50) {
        line.send(format!("{:x}\r\n", part.len()));
        line.send(part);
        line.send("\r\n");
    }
    line.send("0\r\n\r\n");
    assert_eq!(line.answer().status, 200);
}

#[test]
fn ack_of_an_unregistered_intent_says_which_one_may_be_meant() {
    let house = House::local();
    let message = text("ANN", "CLAUDE", "M1").replace("intent: REQUEST", "intent: request");
    let answer = house.take(&message);
    let ack = strict(answer.text());
    let told = ack.meta("receipt", "Diagnostic").unwrap();
    assert!(
        told.starts_with("INT-003") && told.ends_with("did you mean REQUEST?"),
        "{told}"
    );
    let answer = house.take(&text("ANN", "CLAUDE", "M2"));
    let ack = strict(answer.text());
    assert_eq!(ack.meta("receipt", "Diagnostic"), None);
}
