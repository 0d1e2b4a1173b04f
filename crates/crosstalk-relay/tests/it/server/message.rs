//! Messages and threads, by id and by words.

use crate::house::{House, Plan, ids, letter, secret, text};
use crate::http::{Ask, strict};
use crosstalk_envelope::{Reading, scan};
use crosstalk_protocol::relay::Role;
use crosstalk_testing::wait::wait_until;
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
    assert_eq!((found.documents.len(), found.rejected.len()), (6, 0));
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
/// Expired messages are not handed out, also before it is erased.
#[test]
fn nothing_is_handed_out_after_its_end() {
    const BOB: &str = "human://acme.example/bob";
    let house = House::local();
    let to = "chatgpt://x/y";
    let soon = |to: &str, id: &str| {
        let soon = letter("A", to, id).meta("privacy", "Consent", "explicit_yes");
        let soon = soon.meta("privacy", "Expires", "2026-09-21T15:00:00Z");
        house.take(&soon.build().unwrap());
    };
    soon(to, "M1");
    soon("CHAT", "M2");
    let stays = |to: &str, id: &str| letter("A", to, id).context("pears").body("Still ripe?");
    house.take(&stays(to, "M3").build().unwrap());
    house.take(&stays(BOB, "M4").intent("ESCALATE").build().unwrap());
    let texts = || {
        [
            format!("/crosstalk/inbox?for={to}"),
            format!("/crosstalk/inbox?for={BOB}"),
            "/crosstalk/courier".into(),
            "/crosstalk/search?q=ripe".into(),
            "/crosstalk/threads/T1".into(),
            "/crosstalk/threads".into(),
        ]
        .map(|path| get(&house, &path).to_string())
    };
    let hidden = |text: &String| !text.contains("Are they") && !text.contains("plums");
    assert!(!texts().iter().any(hidden), "{:?}", texts());
    let long = house.get("/crosstalk/threads/T1").text().len();
    house.later(3600);
    for text in texts() {
        assert!(hidden(&text), "{text}");
    }
    for id in ["M1", "M2"] {
        let path = format!("/crosstalk/messages/{id}");
        assert_eq!(house.get(&path).status, 404, "{id}");
    }
    assert_eq!(house.inbox(to), ["M3"]);
    let file = Ask::get("/crosstalk/threads/T1").accept("text/plain");
    let file = house.ask(&file);
    assert!(
        file.text().contains("Still")
            && !file.text().contains("Are they")
            && file.text().len() < long
    );
    let document = Ask::get("/crosstalk/threads/T1").accept("text/markdown");
    let document = house.ask(&document);
    assert!(hidden(&document.text().to_owned()), "{}", document.text());
    // Who waits does not get an empty answer because of it.
    let mut line = house.line();
    line.send(
        Ask::get("/crosstalk/inbox?for=CHAT&wait=60")
            .accept("application/json")
            .bytes(),
    );
    house.take(&stays("CHAT", "M5").build().unwrap());
    assert_eq!(ids(&line.answer().json()["messages"]), ["M5"]);
}

/// Threat 37: a look at a thread costs as much as the thread is long.
#[test]
fn a_thread_that_was_handed_on_often_is_read_as_fast() {
    const BOB: &str = "human://acme.example/bob";
    let house = Plan::default()
        .config("[limits]\nrequests_per_minute = 0")
        .token("all", Role::Agent, &["*"])
        .token("bob", Role::Person, &[BOB])
        .open();
    let talk = (0..1500).map(|n| text("A", "chatgpt://x/y", &format!("M{n}")));
    let up = (0..600).map(|n| letter("mal://z", BOB, &format!("E{n}")).intent("ESCALATE"));
    let batch: String = talk.chain(up.map(|l| l.build().unwrap())).collect();
    let batch = Ask::send(batch).header("Content-Type", "application/vnd.crosstalk.batch");
    assert_eq!(house.ask(&batch.token(&secret("all"))).status, 200);
    // A client gives up after half a minute.
    let thread = Ask::get("/crosstalk/threads/T1").token(&secret("bob"));
    let thread = house.ask(&thread.accept("application/json")).json();
    let seen = ids(&thread["messages"]);
    assert_eq!((seen.len(), seen[0].as_str()), (600, "E0"));
}

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
    // How far the index is, whatever was found.
    for q in ["ripe", "apples"] {
        let answer = get(&house, &format!("/crosstalk/search?q={q}"));
        assert_eq!(answer["indexed_through"], 2, "{q}");
    }
}

/// The search file is gone when a relay starts: everything is searchable again, and no request fails.
#[test]
fn search_index_is_made_again_while_the_relay_runs() {
    let house = House::local();
    for number in 0..30 {
        house.take(&text("ANN", ME, &format!("M{number}")));
    }
    let found = |house: &House| {
        let answer = get(house, "/crosstalk/search?q=ripe&limit=100");
        ids(&answer["messages"]).len()
    };
    assert_eq!(found(&house), 30);
    let data = house.close();
    let file = data.path().join("relay.search.db");
    std::fs::remove_file(&file).unwrap();
    let house = House::open(Plan::default(), data).unwrap();
    wait_until("everything is searchable", || found(&house) == 30);
    let data = house.close();
    std::fs::write(&file, "no database ".repeat(1000)).unwrap();
    let house = House::open(Plan::default(), data).unwrap();
    wait_until("everything is searchable", || found(&house) == 30);
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

/// Why a delivery failed may say much about the machine: that is for the operator.
#[test]
fn status_hides_details_of_the_machine_from_the_sender() {
    let config = "[[route]]\nto = \"bot://*\"\nby = \"exec\"\ncommand = [\"true\"]\n";
    let house = crate::house::Plan::default()
        .config(config)
        .token("ann", Role::Person, &["ANN"])
        .token("bot", Role::Agent, &["bot://x"])
        .token("ops", Role::Admin, &[])
        .open();
    let sent = Ask::send(text("ANN", "bot://x", "M1")).token(&secret("ann"));
    assert_eq!(house.ask(&sent).status, 200);
    let status = |name: &str| {
        let ask = Ask::get("/crosstalk/messages/M1/status").token(&secret(name));
        house.ask(&ask).json()["deliveries"][0].clone()
    };
    status("ops");
    let at = crosstalk_envelope::Timestamp::from_millis(crate::house::START);
    let later = crosstalk_protocol::relay::Attempt::Later {
        at,
        reason: "the command ended with exit status: 3; it says: hunter2".into(),
    };
    let failed = crosstalk_protocol::relay::Attempt::Failed {
        reason: "E-TIMEOUT: the command /srv/hunter2 was killed".into(),
    };
    for (attempt, state) in [(later, "queued"), (failed, "failed")] {
        assert!(
            house
                .store()
                .own()
                .attempted("M1", "bot://x", None, &attempt, at)
                .unwrap()
        );
        for (name, sees) in [("ops", true), ("ann", false), ("bot", false)] {
            let delivery = status(name);
            assert_eq!(delivery["state"], state, "{name}");
            let reason = delivery["reason"].as_str().unwrap();
            assert_eq!(reason.contains("hunter2"), sees, "{name}: {reason}");
        }
    }
    assert!(
        status("ann")["reason"]
            .as_str()
            .unwrap()
            .starts_with("E-TIMEOUT: ")
    );
}

/// Whoever is denied a message does not make the relay read its thread: a part of it that can't be read is not noticed.
#[test]
fn a_denied_look_reads_nothing_of_the_thread() {
    let house = Plan::default()
        .token("one", Role::Agent, &["chatgpt://one"])
        .token("two", Role::Agent, &["chatgpt://two"])
        .token("eve", Role::Agent, &["chatgpt://eve"])
        .open();
    let as_ = |name: &str, ask: Ask| house.ask(&ask.token(&secret(name)));
    for (id, intent) in [("M1", "REQUEST"), ("M2", "REQUEST"), ("M3", "HANDOFF")] {
        let sent = letter("chatgpt://one", "chatgpt://two", id).intent(intent);
        let answer = as_("one", Ask::send(sent.build().unwrap()));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let look = |name: &str, id: &str| {
        let path = format!("/crosstalk/messages/{id}");
        as_(name, Ask::get(&path)).status
    };
    // All of it is filed then.
    assert_eq!((look("two", "M1"), look("eve", "M1")), (200, 404));
    let path = "/crosstalk/threads/T1";
    assert_eq!(as_("two", Ask::get(path)).status, 200);
    let broken = house.execute("UPDATE intake SET verdict = 'broken' WHERE id <> 'M1'");
    assert_eq!(broken, 2);
    assert_eq!(look("two", "M2"), 503, "a part of it can't be read");
    assert_eq!(look("eve", "M1"), 404);
}

/// From cursor to cursor, every thread is listed once, for those who see all of them and for those who see some.
#[test]
fn threads_go_from_cursor_to_cursor() {
    let plan = Plan::default()
        .ticking(1)
        .token("ops", Role::Admin, &[])
        .token("ann", Role::Person, &["human://x/ann"])
        .token("bob", Role::Person, &["human://x/bob"]);
    let house = plan.open();
    let all: Vec<String> = (0..11).map(|n| format!("T{n:02}")).collect();
    for (number, thread) in all.iter().enumerate() {
        let from = ["ann", "bob"][number % 2];
        let (sender, id) = (format!("human://x/{from}"), format!("M{number:02}"));
        let text = letter(&sender, "agent://x/bot", &id).thread(thread);
        let ask = Ask::send(text.build().unwrap()).token(&secret(from));
        assert_eq!(house.ask(&ask).status, 200);
    }
    let list = |who: &str, query: &str| {
        let path = format!("/crosstalk/threads?{query}");
        house.ask(&Ask::get(&path).token(&secret(who)))
    };
    let mut wanted = all.clone();
    wanted.reverse();
    let own: Vec<String> = wanted.iter().step_by(2).cloned().collect();
    for (who, wanted) in [("ops", &wanted), ("ann", &own)] {
        for limit in [1, 3, wanted.len(), 500] {
            let (mut seen, mut query) = (Vec::new(), format!("limit={limit}"));
            loop {
                let page = list(who, &query).json();
                seen.extend(ids(&page["threads"]));
                let Some(cursor) = page["cursor"].as_str() else {
                    break;
                };
                query = format!("limit={limit}&after={cursor}");
            }
            assert_eq!(&seen, wanted, "{who} {limit}");
        }
    }
    for cursor in [
        "x",
        "1",
        "1.",
        ".1",
        "1.x",
        "-1.1",
        "1.1.1",
        "99999999999999999999.1",
    ] {
        assert_eq!(
            list("ops", &format!("after={cursor}")).status,
            400,
            "{cursor}"
        );
    }
}
