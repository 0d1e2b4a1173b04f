//! How much, how many, how fast.

use crate::house::{House, Plan, secret, text};
use crate::http::{Ask, Line};
use crosstalk_protocol::relay::Role;

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

fn quick() -> Plan {
    Plan::default().config("[limits]\nhead_seconds = 1\nbody_seconds = 1\nidle_seconds = 1")
}

/// Threat 17: who is too slow is cut off, and others are served meanwhile.
#[test]
fn who_is_too_slow_is_cut_off() {
    let house = quick().open();
    let mut slow: Vec<Line> = (0..50).map(|_| house.line()).collect();
    for line in &mut slow {
        line.send("POST /crosstalk/receive HTTP/1.1\r\nHost: local");
    }
    let sent = Ask::send(text("A", TO, "M9")).bytes();
    let mut half: Vec<Line> = (0..50).map(|_| house.line()).collect();
    for line in &mut half {
        line.send(&sent[..sent.len() - 5]);
    }
    let mut silent: Vec<Line> = (0..50).map(|_| house.line()).collect();
    let mut idle = house.line();
    assert_eq!(Ask::get("/healthz").on(&mut idle).status, 200);
    for n in 0..20 {
        house.take(&text("A", TO, &format!("M{n}")));
    }
    for (what, lines) in [("head", &mut slow), ("body", &mut half)] {
        for line in lines {
            let answer = line.answer();
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (408, "E-TIMEOUT"),
                "{what}"
            );
            assert!(line.is_closed(), "{what}");
        }
        println!("{what} is cut off");
    }
    assert!(idle.is_closed());
    println!("idle ones are cut off");
    assert!(silent.iter_mut().all(Line::is_closed));
}

/// One byte at a time does not help.
#[test]
fn a_drip_is_too_slow() {
    let house = quick().open();
    let mut line = house.line();
    let sent = Ask::send(text("A", TO, "M1")).bytes();
    let mut sender = sent.into_iter();
    while let Some(byte) = sender.next() {
        line.send([byte]);
        std::thread::sleep(std::time::Duration::from_millis(20));
        if sender.len() < 10 {
            break;
        }
    }
    assert_eq!(line.head().unwrap().status, 408);
}

/// Who takes no answer is cut off as well.
#[test]
fn who_does_not_read_is_cut_off() {
    let house = quick().open();
    let bytes = vec![7; 30 << 20];
    let digest = crosstalk_envelope::meta::Digest::of(&bytes);
    let path = format!("/crosstalk/blobs/{digest}");
    assert_eq!(house.ask(&Ask::new("PUT", &path).body(&bytes)).status, 201);
    let mut line = house.line();
    line.send(Ask::get(&path).bytes());
    let open = || {
        let metrics = house.get("/metrics");
        let line = metrics
            .text()
            .lines()
            .find(|l| l.starts_with("crosstalk_connections "))
            .unwrap();
        line.rsplit(' ').next().unwrap().parse::<u32>().unwrap()
    };
    while open() > 1 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
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
    let mut tries = (0..200).map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let mut line = house.line();
        line.send(Ask::get("/healthz").bytes());
        line.head().map(|a| a.status)
    });
    assert!(tries.any(|status| status == Some(200)));
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
    let house = Plan::default()
        .config("[limits]\nrequests_per_minute = 3")
        .token("one", Role::Agent, &["A"])
        .token("two", Role::Agent, &["B"])
        .open();
    let ask = |name: &str| house.ask(&Ask::get("/crosstalk/agents").token(&secret(name)));
    let statuses = |name: &str| (0..5).map(|_| ask(name).status).collect::<Vec<_>>();
    assert_eq!(statuses("one"), [200, 200, 200, 429, 429]);
    assert_eq!(statuses("two"), [200, 200, 200, 429, 429]);
    // Whoever tries out tokens is counted by address.
    assert_eq!(statuses("guess"), [401, 401, 401, 429, 429]);
    assert_eq!(house.get("/crosstalk/agents").status, 429);
    let answer = ask("one");
    assert_eq!(
        (answer.code().as_str(), answer.header("ratelimit-policy")),
        ("E-RATE", Some("\"requests\";q=3;w=60"))
    );
    assert!(
        answer
            .header("retry-after")
            .unwrap()
            .parse::<u32>()
            .unwrap()
            <= 20
    );
    assert_eq!(house.get("/healthz").status, 200);
}
