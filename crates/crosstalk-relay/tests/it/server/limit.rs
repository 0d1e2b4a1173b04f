//! How much, how many, how fast.

use crate::house::{House, Plan, secret, text};
use crate::http::{Ask, Line};
use crosstalk_protocol::relay::Role;
use crosstalk_testing::wait::{wait_for, wait_until};
use std::time::{Duration, Instant};

const TO: &str = "chatgpt://x/y";

/// An envelope of exactly so many bytes.
fn sized(bytes: usize, id: &str) -> String {
    let (head, tail) = (text("A", TO, id), "  Are they ripe?\nsig: none\n[[END]]\n");
    let head = head.strip_suffix(tail).unwrap();
    let line = format!("  {}\n", "x".repeat(60_000));
    let mut body = String::new();
    while head.len() + body.len() + tail.len() + 2 * line.len() < bytes {
        body.push_str(&line);
    }
    // Two lines more, the last one as long as it takes.
    let left = bytes - head.len() - body.len() - tail.len();
    for length in [left / 2, left - left / 2] {
        body.push_str(&format!("  {}\n", "y".repeat(length - 3)));
    }
    let text = format!("{head}{body}{tail}");
    assert_eq!(text.len(), bytes);
    text
}

/// Threat 16: at the limit it is taken, one byte more and it is not.
#[test]
fn an_envelope_has_at_most_a_mebibyte() {
    let house = House::local();
    let most = 1 << 20;
    house.take(&sized(most, "M1"));
    house.take(&sized(most - 1, "M2"));
    for (ask, id) in [(sized(most + 1, "M3"), "M3"), (sized(3 * most, "M4"), "M4")] {
        let answer = house.ask(&Ask::send(&ask));
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (413, "E-TOO-LARGE"),
            "{id}"
        );
        // Without a length, it is found out while it comes.
        let mut line = house.line();
        line.send("POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n");
        for part in ask.as_bytes().chunks(100_000) {
            line.send(format!("{:x}\r\n", part.len()));
            line.send(part);
            line.send("\r\n");
        }
        line.send("0\r\n\r\n");
        let answer = line.answer();
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (413, "E-TOO-LARGE"),
            "{id}"
        );
    }
    // Whoever says beforehand that it is too large is not asked for it.
    let mut line = house.line();
    let head = format!(
        "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        most + 1
    );
    line.send(head);
    assert_eq!(line.head().unwrap().status, 413);
    // What grows beyond it in NFC is too large as well: a character of four bytes becomes one of eight.
    let sent = text("A", TO, "M5");
    for (count, status) in [(130_000, 200), (132_000, 413)] {
        let lines: String = (0..count / 4000)
            .map(|_| format!("  {}\n", "\u{1d15e}".repeat(4000)))
            .collect();
        let grows = sent.replace("  Are they ripe?\n", &lines);
        assert!(grows.len() < most);
        assert_eq!(house.ask(&Ask::send(grows)).status, status, "{count}");
    }
    assert_eq!(house.inbox(TO).len(), 3);
}

#[test]
fn a_head_is_small() {
    let house = House::local();
    for (size, status) in [(10_000, 200), (20_000, 431)] {
        let answer = house.ask(&Ask::get("/").header("X-Long", &"x".repeat(size)));
        assert_eq!(answer.status, status);
        if status != 200 {
            assert_eq!(answer.code(), "E-TOO-LARGE");
        }
    }
    let answer = house.ask(&Ask::get(&format!(
        "/crosstalk/search?q={}",
        "x".repeat(9000)
    )));
    assert_eq!(
        (answer.status, answer.code().as_str()),
        (414, "E-TOO-LARGE")
    );
    let mut line = house.line();
    line.send(Ask::get("/").header("X-Long", &"x".repeat(200_000)).bytes());
    assert_eq!(line.head().unwrap().status, 431);
    for nonsense in [
        "\x16\x03\x01\x02\x00\x01",
        "GET / HTTP/9\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/1.1\r\nHost localhost\r\n\r\n",
    ] {
        let mut line = house.line();
        line.send(nonsense);
        let status = line.head().map(|a| a.status);
        assert_eq!(status, Some(400), "{nonsense:?}");
    }
    // Two lengths, or a length and parts: nobody can tell where the next request begins.
    for odd in [
        "Content-Length: 3\r\nContent-Length: 4",
        "Content-Length: x",
        "Transfer-Encoding: x",
    ] {
        let mut line = house.line();
        line.send(format!(
            "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\n{odd}\r\n\r\nabc"
        ));
        assert_eq!(line.head().map(|a| a.status), Some(400), "{odd}");
    }
}

/// Threat 17: slow clients do not hold up others.
#[test]
fn slow_clients_hold_nobody_up() {
    let house = House::local();
    let mut slow: Vec<Line> = (0..150).map(|_| house.line()).collect();
    let sent = Ask::send(text("A", TO, "M99")).bytes();
    for (number, line) in slow.iter_mut().enumerate() {
        match number % 3 {
            0 => line.send("POST /crosstalk/receive HTTP/1.1\r\nHost: local"),
            1 => line.send(&sent[..sent.len() - 5]),
            // Not a word.
            _ => {}
        }
    }
    for n in 0..20 {
        house.take(&text("A", TO, &format!("M{n}")));
    }
    assert!(!slow.iter_mut().any(Line::has_come));
}

fn quick() -> Plan {
    Plan::default().config("[limits]\nhead_seconds = 1\nbody_seconds = 1\nidle_seconds = 1")
}

/// The relay tells a client that it was too slow, and closes the connection. On a busy machine the deadline may pass
/// before the client sends anything: then the relay only closes it, and another client tries.
fn assert_slow_client_is_told(what: &str, house: &House, send: impl Fn(&mut Line)) {
    wait_until(&format!("408 for a slow {what}"), || {
        let mut line = house.line();
        send(&mut line);
        let answer = line.try_answer(true);
        assert!(line.is_closed(), "{what}");
        let code = answer.map(|a| (a.status, a.code()));
        assert!(
            matches!(&code, None | Some((408, _))),
            "a slow {what}: {code:?}"
        );
        code.is_some_and(|(_, code)| code == "E-TIMEOUT")
    });
}

/// Sends one byte after the other until there is an answer.
fn drip(line: &mut Line) {
    wait_until("the end of a drip", || {
        line.send("x");
        line.has_come()
    });
}

/// Threat 17: clients that are too slow are cut off, and one byte at a time does not help.
#[test]
fn slow_clients_are_cut_off() {
    let house = &quick().open();
    let head = "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\n";
    std::thread::scope(|scope| {
        scope.spawn(|| assert_slow_client_is_told("head", house, |line| line.send(head)));
        scope.spawn(|| {
            assert_slow_client_is_told("dripping head", house, |line| {
                line.send(format!("{head}X-Long: "));
                drip(line);
            });
        });
        let body = format!("{head}Content-Length: 4000\r\n\r\n[[A");
        let drips = body.clone();
        scope.spawn(move || assert_slow_client_is_told("body", house, |line| line.send(&body)));
        scope.spawn(move || {
            assert_slow_client_is_told("dripping body", house, |line| {
                line.send(&drips);
                drip(line);
            });
        });
        scope.spawn(|| assert!(house.line().is_closed(), "a silent one"));
        scope.spawn(|| {
            let mut idle = wait_for("an answer", || {
                let mut line = house.line();
                line.send(Ask::get("/healthz").bytes());
                let answer = line.try_answer(true)?;
                (answer.status == 200).then_some(line)
            });
            assert!(idle.is_closed(), "an idle one");
        });
    });
}

/// Clients that do not read their answer are cut off as well.
#[test]
fn clients_that_do_not_read_are_cut_off() {
    let house = House::local();
    let bytes = vec![7; 30 << 20];
    let digest = crosstalk_envelope::meta::Digest::of(&bytes);
    let path = format!("/crosstalk/blobs/{digest}");
    assert_eq!(house.ask(&Ask::new("PUT", &path).body(&bytes)).status, 201);
    // Now as one that waits for no client. Only this deadline counts for an answer.
    let plan = Plan::default().config("[limits]\nbody_seconds = 1");
    let house = House::open(plan, house.close()).unwrap();
    let mut line = house.line();
    line.send(Ask::get(&path).bytes());
    assert_eq!(line.head().unwrap().status, 200);
    wait_until("the end of the connection", || {
        let metrics = house.get("/metrics");
        let mut lines = metrics.text().lines();
        lines.any(|l| l == "crosstalk_connections 1")
    });
}

#[test]
fn there_is_room_for_so_many_connections_and_no_more() {
    let house = Plan::default().config("[limits]\nconnections = 3").open();
    let mut seated: Vec<Line> = (0..3).map(|_| house.line()).collect();
    for line in &mut seated {
        assert_eq!(Ask::get("/healthz").on(line).status, 200);
    }
    let answer = house.line().answer();
    assert_eq!((answer.status, answer.code().as_str()), (503, "E-RATE"));
    assert!(answer.header("retry-after").is_some());
    drop(seated.pop());
    // The seat is free when the relay has seen that its owner is gone.
    wait_until("a free seat", || {
        let mut line = house.line();
        line.send(Ask::get("/healthz").bytes());
        line.head().is_some_and(|a| a.status == 200)
    });
    let house = Plan::default()
        .config("[limits]\nconnections_per_peer = 2")
        .open();
    let mut seated: Vec<Line> = (0..2).map(|_| house.line()).collect();
    for line in &mut seated {
        assert_eq!(Ask::get("/healthz").on(line).status, 200);
    }
    assert_eq!(house.line().answer().status, 503);
}

/// Threat 37: each credential has its own bucket, wherever it comes from; who has none is counted by address.
#[test]
fn requests_are_counted_for_each_credential() {
    // A bucket gets one request more in half a minute. A machine that is slower than that tries again.
    while !is_quick(requests_are_counted) {}
}

/// Runs a test, and returns whether it took less than half a minute. It may fail only then.
pub(super) fn is_quick(test: fn()) -> bool {
    let began = Instant::now();
    let outcome = std::panic::catch_unwind(test);
    let is_quick = began.elapsed() < Duration::from_secs(30);
    match outcome {
        Err(fault) if is_quick => std::panic::resume_unwind(fault),
        _ => is_quick,
    }
}

fn requests_are_counted() {
    let house = Plan::default()
        .config("[limits]\nrequests_per_minute = 2")
        .token("one", Role::Agent, &["A"])
        .token("two", Role::Agent, &["B"])
        .open();
    let ask = |name: &str| house.ask(&Ask::get("/crosstalk/agents").token(&secret(name)));
    let statuses = |name: &str| (0..4).map(|_| ask(name).status).collect::<Vec<_>>();
    assert_eq!(statuses("one"), [200, 200, 429, 429]);
    assert_eq!(statuses("two"), [200, 200, 429, 429]);
    // Whoever tries out tokens is counted by address.
    assert_eq!(statuses("guess"), [401, 401, 429, 429]);
    assert_eq!(house.get("/crosstalk/agents").status, 429);
    let answer = ask("one");
    assert_eq!(
        (answer.code().as_str(), answer.header("ratelimit-policy")),
        ("E-RATE", Some("\"requests\";q=2;w=60"))
    );
    assert!(
        answer
            .header("retry-after")
            .unwrap()
            .parse::<u32>()
            .unwrap()
            <= 30
    );
    assert_eq!(house.get("/healthz").status, 200);
}
