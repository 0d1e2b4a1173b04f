//! Inboxes: text, JSON, streams, long polls, acknowledgements.

use crate::house::{House, Plan, START, ids, letter, text};
use crate::http::{Ask, strict};
use crosstalk_protocol::relay::DeliveryState;
use serde_json::{Value, json};

const ME: &str = "claude://code/api";

fn state(house: &House, id: &str) -> String {
    let status = house
        .get(&format!("/crosstalk/messages/{id}/status"))
        .json();
    status["deliveries"][0]["state"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn an_inbox_goes_from_cursor_to_cursor_and_looking_consumes_nothing() {
    let house = House::local();
    let all: Vec<String> = (0..25).map(|n| format!("M{n:02}")).collect();
    for id in &all {
        house.take(&text("ANN", ME, id));
    }
    for _ in 0..2 {
        assert_eq!(house.inbox(ME), all);
    }
    for step in [1, 7, 16, 17, 25, 500] {
        let (mut seen, mut after): (Vec<String>, String) = (Vec::new(), String::new());
        loop {
            let path = format!("/crosstalk/inbox?for={ME}&limit={step}{after}");
            let page = house
                .ask(&Ask::get(&path).accept("application/json"))
                .json();
            let some = ids(&page["messages"]);
            assert!(some.len() <= step);
            after = format!("&after={}", page["cursor"].as_str().unwrap());
            if some.is_empty() {
                break;
            }
            seen.extend(some);
        }
        assert_eq!(seen, all, "{step}");
        // The cursor of an empty answer works as well.
        house.take(&text("ANN", ME, &format!("N{step}")));
        let path = format!("/crosstalk/inbox?for={ME}{after}");
        let page = house
            .ask(&Ask::get(&path).accept("application/json"))
            .json();
        assert_eq!(ids(&page["messages"]), [format!("N{step}")]);
        let ack = json!({"for": ME, "ids": [format!("N{step}")]});
        assert_eq!(
            house.ask(&Ask::json("POST", "/crosstalk/ack", &ack)).status,
            200
        );
    }
}

#[test]
fn an_entry_says_what_it_is() {
    let house = House::local();
    house.take(&letter("ANN", ME, "M1").intent("QUESTION").build().unwrap());
    let page =
        house.ask(&Ask::get(&format!("/crosstalk/inbox?for={ME}")).accept("application/json"));
    let entry = &page.json()["messages"][0];
    assert_eq!(
        (&entry["id"], &entry["thread"], &entry["from"], &entry["to"]),
        (&json!("M1"), &json!("T1"), &json!("ANN"), &json!(ME))
    );
    assert_eq!(
        (&entry["intent"], &entry["state"]),
        (&json!("REQUEST"), &json!("queued"))
    );
    assert_eq!(entry["received_at"], "2026-09-21T14:13:20Z");
    assert!(entry.get("history").is_none());
    let envelope = entry["envelope"].as_str().unwrap();
    let document = strict(envelope);
    let hop = document.envelope().hops().last().unwrap();
    assert_eq!((hop.number, hop.received_by), (Some(1), Some("localhost")));
    let text = house.get(&format!("/crosstalk/inbox?for={ME}"));
    assert_eq!(
        text.header("content-type"),
        Some("text/plain; charset=utf-8")
    );
    assert_eq!(text.text(), envelope);
    assert_eq!(
        text.header("crosstalk-cursor"),
        page.json()["cursor"].as_str()
    );
    house.take(&self::text("ANN", ME, "M2"));
    let two = house.get(&format!("/crosstalk/inbox?for={ME}"));
    let scan = crosstalk_envelope::scan(two.text(), crosstalk_envelope::Reading::Strict);
    assert_eq!((scan.documents.len(), scan.rejected.len()), (2, 0));
    assert!(two.text().contains("[[END]]\n\n[["));
    let empty = house.get("/crosstalk/inbox?for=nobody://here");
    assert_eq!(
        (empty.status, empty.text(), empty.header("crosstalk-cursor")),
        (200, "", Some("0"))
    );
}

#[test]
fn queued_delivered_read_and_acknowledged_are_four_states() {
    let house = House::local();
    house.take(&text("ANN", ME, "M1"));
    assert_eq!(state(&house, "M1"), "queued");
    let first =
        house.ask(&Ask::get(&format!("/crosstalk/inbox?for={ME}")).accept("application/json"));
    assert_eq!(first.json()["messages"][0]["state"], "queued");
    assert_eq!(state(&house, "M1"), "delivered");
    let ack = |state: Option<&str>, ids: Value| {
        let mut body = json!({"for": ME, "ids": ids});
        if let Some(state) = state {
            body["state"] = state.into();
        }
        house
            .ask(&Ask::json("POST", "/crosstalk/ack", &body))
            .json()
    };
    house.later(60);
    assert_eq!(
        ack(Some("read"), json!(["M1", "M9"])),
        json!({"changed": ["M1"], "unknown": ["M9"]})
    );
    assert_eq!(state(&house, "M1"), "read");
    assert_eq!(house.inbox(ME), ["M1"]);
    house.later(60);
    assert_eq!(
        ack(None, json!(["M1"])),
        json!({"changed": ["M1"], "unknown": []})
    );
    assert_eq!(
        ack(Some("read"), json!(["M1"])),
        json!({"changed": ["M1"], "unknown": []})
    );
    assert_eq!(state(&house, "M1"), "acknowledged");
    assert!(house.inbox(ME).is_empty());
    let status = house.get("/crosstalk/messages/M1/status").json();
    assert_eq!(
        (&status["id"], &status["thread"], &status["sender"]),
        (&json!("M1"), &json!("T1"), &json!("ANN"))
    );
    let delivery = &status["deliveries"][0];
    assert_eq!(
        (&delivery["to"], &delivery["by"]),
        (&json!(ME), &json!("inbox"))
    );
    let times = ["queued_at", "delivered_at", "read_at", "acknowledged_at"]
        .map(|t| delivery[t].as_str().unwrap());
    assert!(
        times.is_sorted() && times[1] < times[2] && times[2] < times[3],
        "{times:?}"
    );
    assert_eq!(
        (&delivery["failed_at"], &delivery["reason"]),
        (&json!(null), &json!(null))
    );
}

#[test]
fn waiting_reader_gets_a_message_when_it_comes() {
    let house = House::local();
    let path = format!("/crosstalk/inbox?for={ME}&wait=60");
    let mut lines: Vec<_> = (0..8).map(|_| house.line()).collect();
    for line in &mut lines {
        line.send(Ask::get(&path).accept("application/json").bytes());
    }
    // Others are told nothing.
    let mut other = house.line();
    other.send(
        Ask::get("/crosstalk/inbox?for=gemini://x&wait=1")
            .accept("application/json")
            .bytes(),
    );
    house.take(&text("ANN", ME, "M1"));
    for line in &mut lines {
        assert_eq!(ids(&line.answer().json()["messages"]), ["M1"]);
    }
    assert!(ids(&other.answer().json()["messages"]).is_empty());
}

#[test]
fn a_stream_brings_what_is_there_and_what_comes() {
    let mut house = House::local();
    house.take(&text("ANN", ME, "M1"));
    let path = format!("/crosstalk/inbox?for={ME}");
    let ask = Ask::get(&path).accept("text/event-stream");
    let mut line = house.line();
    line.send(ask.bytes());
    let head = line.head().unwrap();
    assert_eq!(
        (head.status, head.header("content-type")),
        (200, Some("text/event-stream"))
    );
    let event = |line: &mut crate::http::Line| {
        let (mut name, mut place) = (String::new(), String::new());
        loop {
            let text = line.line();
            if let Some(n) = text.strip_prefix("event: ") {
                name = n.to_owned();
            } else if let Some(p) = text.strip_prefix("id: ") {
                place = p.to_owned();
            } else if let Some(data) = text.strip_prefix("data: ") {
                assert_eq!(name, "message");
                let data: Value = serde_json::from_str(data).unwrap();
                return (place, data["id"].as_str().unwrap().to_owned());
            }
        }
    };
    let (first, id) = event(&mut line);
    assert_eq!(id, "M1");
    house.take(&text("ANN", ME, "M2"));
    house.take(&text("ANN", ME, "M3"));
    assert_eq!(
        (event(&mut line).1, event(&mut line).1),
        ("M2".into(), "M3".into())
    );
    // Whoever lost the line goes on where it was.
    let mut other = house.line();
    other.send(ask.clone().header("Last-Event-ID", &first).bytes());
    assert_eq!(
        (event(&mut other).1, event(&mut other).1),
        ("M2".into(), "M3".into())
    );
    assert_eq!(house.ask(&ask.header("Last-Event-ID", "x")).status, 400);
    assert_eq!(state(&house, "M3"), "delivered");
    // A stream ends with the relay, and does not hold it up.
    house.begin_stop();
    loop {
        if line.line() == "0" {
            break;
        }
    }
    house.end().unwrap();
}

#[test]
fn recipient_of_a_handover_gets_the_thread_so_far() {
    let house = House::local();
    house.take(&text("ANN", ME, "M1"));
    let mut last = "M1".to_owned();
    for n in 2..80 {
        let id = format!("M{n}");
        house.take(
            &letter(ME, "ANN", &id)
                .parent(&last)
                .intent("NOTE")
                .build()
                .unwrap(),
        );
        last = id;
    }
    house.take(
        &letter(ME, "human://acme.example/bob", "E1")
            .intent("ESCALATE")
            .build()
            .unwrap(),
    );
    house.take(
        &letter(ME, "gemini://x/y", "H1")
            .intent("HANDOFF")
            .build()
            .unwrap(),
    );
    for (address, count) in [("human://acme.example/bob", 64), ("gemini://x/y", 64)] {
        let path = format!("/crosstalk/inbox?for={address}");
        let entry = house
            .ask(&Ask::get(&path).accept("application/json"))
            .json();
        let history = entry["messages"][0]["history"].as_array().unwrap();
        assert_eq!(history.len(), count, "{address}");
        let ids: Vec<String> = history
            .iter()
            .map(|t| {
                strict(t.as_str().unwrap())
                    .envelope()
                    .message
                    .unwrap()
                    .to_owned()
            })
            .collect();
        let from = 80 - count + usize::from(address.starts_with("gemini"));
        assert_eq!(ids[0], format!("M{from}"));
        assert_eq!(
            ids.last().unwrap(),
            if address.starts_with("gemini") {
                "E1"
            } else {
                "M79"
            }
        );
    }
    // An ESCALATE to somebody who is no person goes to the person of the configuration.
    house.take(
        &letter(ME, "chatgpt://x/y", "E2")
            .intent("ESCALATE")
            .build()
            .unwrap(),
    );
    assert_eq!(house.inbox("human://localhost/queue"), ["E2"]);
    assert!(house.inbox("chatgpt://x/y").is_empty());
}

/// Threat 37: a long thread in which the sender has no part is not read whole.
#[test]
fn history_looks_at_the_latest_messages_of_a_thread_alone() {
    const BOB: &str = "human://acme.example/bob";
    let house = House::local();
    let send = |from: &str, to: &str, id: &str, intent: &str| {
        house.take(&letter(from, to, id).intent(intent).build().unwrap());
    };
    let history = || {
        let path = format!("/crosstalk/inbox?for={BOB}&limit=9");
        let page = house.ask(&Ask::get(&path).accept("application/json"));
        let page = page.json();
        let last = page["messages"].as_array().unwrap().last().unwrap();
        let texts = last["history"].as_array().unwrap().iter();
        let id = |text: &str| strict(text).envelope().message.unwrap().to_owned();
        texts
            .map(|t| id(t.as_str().unwrap()))
            .collect::<Vec<String>>()
    };
    send("ANN", ME, "M0", "REQUEST");
    for n in 1..1024 {
        send("ANN", "BEN", &format!("M{n}"), "NOTE");
    }
    send(ME, BOB, "E1", "ESCALATE");
    assert_eq!(history(), ["M0"]);
    send("ANN", "BEN", "M1024", "NOTE");
    send(ME, BOB, "E2", "ESCALATE");
    assert_eq!(history(), ["E1"]);
}

/// Threat 37: what comes with a message counts as well.
#[test]
fn a_history_is_bounded_by_its_size() {
    const BOB: &str = "human://acme.example/bob";
    let house = House::local();
    let body = ("plum ".repeat(10_000) + "\n").repeat(4);
    for n in 0..10 {
        let large = letter("ANN", ME, &format!("M{n}")).body(&body);
        house.take(&large.build().unwrap());
    }
    let all: Vec<String> = (0..30).map(|n| format!("E{n:02}")).collect();
    for id in &all {
        house.take(&letter(ME, BOB, id).intent("ESCALATE").build().unwrap());
    }
    let (mut seen, mut after) = (Vec::new(), "0".to_owned());
    while seen.len() < all.len() {
        let path = format!("/crosstalk/inbox?for={BOB}&limit=500&after={after}");
        let page = house.ask(&Ask::get(&path).accept("application/json"));
        assert!(page.body.len() < 6 << 20, "{}", page.body.len());
        let page = page.json();
        for entry in page["messages"].as_array().unwrap() {
            let history = entry["history"].as_array().unwrap();
            let before = history.iter().map(|t| t.as_str().unwrap());
            let before: Vec<&str> = before.collect();
            let size: usize = before.iter().map(|t| t.len()).sum();
            assert!(size > 800_000 && size < 1_100_000, "{size}");
            // The newest, in their order.
            let last = strict(before.last().unwrap())
                .envelope()
                .message
                .unwrap()
                .to_owned();
            let id = entry["id"].as_str().unwrap();
            let place = all.iter().position(|i| i == id).unwrap();
            let wanted = place.checked_sub(1).map_or("M9", |p| all[p].as_str());
            assert_eq!(last, wanted);
        }
        // Nothing counts as handed out that was not.
        let some = ids(&page["messages"]);
        assert!(!some.is_empty());
        seen.extend(some);
        if let Some(next) = all.get(seen.len()) {
            assert_eq!(state(&house, next), "queued");
        }
        after = page["cursor"].as_str().unwrap().to_owned();
    }
    assert_eq!(seen, all);
}

#[test]
fn a_cursor_that_was_never_given_out_is_none() {
    let house = House::local();
    house.take(&text("ANN", ME, "M1"));
    let ask = |after: &str| house.get(&format!("/crosstalk/inbox?for={ME}&after={after}"));
    let given = house.get(&format!("/crosstalk/inbox?for={ME}"));
    let given = given.header("crosstalk-cursor").unwrap();
    assert_eq!((ask(given).status, ask("0").status), (200, 200));
    let next: u64 = given.parse::<u64>().unwrap() + 1;
    for after in [next.to_string().as_str(), "9223372036854775807"] {
        assert_eq!(ask(after).code(), "E-FORMAT", "{after}");
        let events = Ask::get(&format!("/crosstalk/inbox?for={ME}"))
            .accept("text/event-stream")
            .header("Last-Event-ID", after);
        assert_eq!(house.ask(&events).code(), "E-FORMAT", "{after}");
    }
}

#[test]
fn a_listing_is_bounded_by_its_size() {
    let house = House::local();
    let body = "plum ".repeat(12_000) + "\n";
    let body = body.repeat(15);
    for n in 0..12 {
        house.take(
            &letter("ANN", ME, &format!("M{n:02}"))
                .body(&body)
                .build()
                .unwrap(),
        );
    }
    let page = house
        .ask(&Ask::get(&format!("/crosstalk/inbox?for={ME}&limit=500")).accept("application/json"));
    let page = page.json();
    let some = ids(&page["messages"]);
    assert!(!some.is_empty(), "{}", some.len());
    let mut seen = some;
    let mut after = page["cursor"].as_str().unwrap().to_owned();
    while seen.len() < 12 {
        let path = format!("/crosstalk/inbox?for={ME}&limit=500&after={after}");
        let page = house
            .ask(&Ask::get(&path).accept("application/json"))
            .json();
        seen.extend(ids(&page["messages"]));
        after = page["cursor"].as_str().unwrap().to_owned();
    }
    assert!(seen.is_sorted());
}

/// Messages that expire while an answer is written are not in it, and only those that are in it count as handed out.
#[test]
fn only_the_messages_of_the_answer_count_as_handed_out() {
    for accept in ["application/json", "text/plain"] {
        let house = Plan::default().ticking(1).open();
        let end = crosstalk_envelope::Timestamp::from_millis(START + 60_000).to_string();
        let short: Vec<String> = (0..40).map(|n| format!("S{n:02}")).collect();
        for id in &short {
            let letter = letter("ANN", ME, id).meta("privacy", "Consent", "explicit_yes");
            house.take(&letter.meta("privacy", "Expires", &end).build().unwrap());
        }
        house.take(&text("ANN", ME, "Z99"));
        house.set_clock(60_000 - 20);
        let path = format!("/crosstalk/inbox?for={ME}&limit=500");
        let page = house.ask(&Ask::get(&path).accept(accept)).text().to_owned();
        let is_in = |id: &str| page.contains(&format!("message: {id}"));
        let given = short.iter().filter(|id| is_in(id)).count();
        assert!(given < 40 && is_in("Z99"), "none expired meanwhile");
        let store = house.store();
        // The note that messages were handed out is written before the status is read.
        assert_eq!(state(&house, "Z99"), "delivered", "{accept}");
        for id in &short {
            let state = &store.deliveries(id).unwrap()[0].state;
            assert_eq!(
                *state == DeliveryState::Delivered,
                is_in(id),
                "{accept} {id}"
            );
        }
    }
}

/// Looking is no attempt; a failure that the recipient reports is one.
#[test]
fn entries_say_which_attempt_they_are() {
    let house = House::local();
    house.take(&text("ANN", ME, "M1"));
    let attempt = || {
        let path = format!("/crosstalk/inbox?for={ME}");
        let page = house
            .ask(&Ask::get(&path).accept("application/json"))
            .json();
        page["messages"][0]["attempt"].clone()
    };
    assert_eq!((attempt(), attempt()), (json!(1), json!(1)));
    let ack = json!({"for": ME, "ids": ["M1"], "state": "retrying"});
    assert_eq!(
        house.ask(&Ask::json("POST", "/crosstalk/ack", &ack)).status,
        200
    );
    assert_eq!(attempt(), json!(2));
}
