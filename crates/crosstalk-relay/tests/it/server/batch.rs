//! Many envelopes in one request.

use super::limit::is_quick;
use crate::house::{House, Plan, key, letter, secret, signed, text};
use crate::http::{Answer, Ask, strict};
use crosstalk_envelope::{Algorithm, PrivateKey, Reading, scan};
use crosstalk_protocol::relay::Role;
use crosstalk_testing::tier;

const TYPE: &str = "application/vnd.crosstalk.batch";

fn batch(text: impl AsRef<[u8]>) -> Ask {
    Ask::send(text).header("Content-Type", TYPE)
}

/// The intent, or the code, of each answer.
fn outcomes(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.header("content-type"), Some(TYPE));
    let scan = scan(answer.text(), Reading::Strict);
    assert!(scan.rejected.is_empty(), "{}", answer.text());
    let outcome = |d: &crosstalk_envelope::Document<'_>| {
        let code = d.meta("error", "Code").map(str::to_owned);
        let parent = d.envelope().parent.unwrap_or("-").to_owned();
        code.unwrap_or(parent)
    };
    scan.documents.iter().map(outcome).collect()
}

#[test]
fn each_envelope_gets_its_answer_in_its_place() {
    let house = House::local();
    let to = "chatgpt://x/y";
    let close = letter("A", to, "C1").intent("CLOSE").build().unwrap();
    let pieces = [
        text("A", to, "M1"),
        "hello\n[[END]]\n".into(),
        text("A", to, "M2"),
        text("A", to, "M1"),
        letter("A", to, "M1").body("other").build().unwrap(),
        text("SYSTEM", to, "M3"),
        close,
        // The order counts: it is closed now.
        text("A", to, "M4"),
    ];
    let wanted = [
        "M1", "E-FORMAT", "M2", "M1", "E-PERM", "E-PERM", "C1", "E-PERM",
    ];
    let answer = house.ask(&batch(pieces.join("\n")));
    assert_eq!(
        (answer.status, outcomes(&answer)),
        (200, wanted.map(str::to_owned).to_vec())
    );
    assert_eq!(house.inbox(to), ["M1", "M2", "C1"]);
    // Alone, each gets the same answer.
    let first = answer.text().split_inclusive("[[END]]\n").next().unwrap();
    assert_eq!(house.take(&pieces[0]).text(), first);
    strict(first);
}

#[test]
fn a_batch_may_come_in_any_parts() {
    let house = House::local();
    let to = "chatgpt://x/y";
    let all: Vec<String> = (0..1200)
        .map(|n| text("A", to, &format!("M{n:04}")))
        .collect();
    let mut line = house.line();
    line.send(format!(
        "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nTransfer-Encoding: chunked\r\n\r\n"
    ));
    for part in all.concat().as_bytes().chunks(10_007) {
        line.send(format!("{:x}\r\n", part.len()));
        line.send(part);
        line.send("\r\n");
    }
    line.send("0\r\n\r\n");
    let answer = line.answer();
    let wanted: Vec<String> = (0..1200).map(|n| format!("M{n:04}")).collect();
    assert_eq!(outcomes(&answer), wanted);
    let mut seen = Vec::new();
    let mut after = "0".to_owned();
    while seen.len() < 1200 {
        let path = format!("/crosstalk/inbox?for={to}&limit=500&after={after}");
        let page = house
            .ask(&Ask::get(&path).accept("application/json"))
            .json();
        seen.extend(crate::house::ids(&page["messages"]));
        after = page["cursor"].as_str().unwrap().to_owned();
    }
    assert_eq!(seen, wanted);
}

#[test]
fn a_batch_has_its_limits() {
    let house = House::local();
    let to = "chatgpt://x/y";
    for empty in ["", "\n \n"] {
        let answer = house.ask(&batch(empty));
        assert_eq!((answer.status, answer.code().as_str()), (400, "E-FORMAT"));
    }
    // Too many: what came before is taken, and answered.
    let piece = text("A", to, "M1");
    let answer = house.ask(&batch(piece.repeat(10_000)));
    assert_eq!((answer.status, outcomes(&answer).len()), (200, 10_000));
    // Who sends much more reads the answer as well.
    let much_more = "x\n".repeat(10_000_000);
    for more in tier::size(&[much_more.as_str()][..], &[&much_more, ""]) {
        let answer = house.ask(&batch(piece.repeat(10_001) + more));
        let outcomes = outcomes(&answer);
        assert_eq!((answer.status, outcomes.len()), (413, 10_001));
        assert_eq!(outcomes.last().unwrap(), "E-TOO-LARGE");
    }
    // One that is too large does not refuse the others.
    let large = letter("A", to, "M2")
        .build()
        .unwrap()
        .replace("  Are", &format!("  {}", "x\n  ".repeat(300_000)));
    let answer = house.ask(&batch([piece.clone(), large, text("A", to, "M3")].concat()));
    assert_eq!(
        (answer.status, outcomes(&answer)),
        (200, vec!["M1".into(), "E-TOO-LARGE".into(), "M3".into()])
    );
    let mut line = house.line();
    line.send(format!(
        "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nContent-Length: {}\r\n\r\n",
        (64 << 20) + 1
    ));
    assert_eq!(line.answer().status, 413);
}

#[test]
fn each_envelope_of_a_batch_counts() {
    while !is_quick(envelopes_are_counted) {}
}

fn envelopes_are_counted() {
    let house = Plan::default()
        .config("[limits]\nlocal_requests_per_minute = 2")
        .open();
    let to = "chatgpt://x/y";
    let all: String = (0..3).map(|n| text("A", to, &format!("M{n}"))).collect();
    let wanted = ["M0", "E-RATE", "E-RATE"];
    assert_eq!(outcomes(&house.ask(&batch(all))), wanted);
}

/// A batch that stops coming keeps no turn that others wait for: neither to have a signature checked nor to read.
#[test]
fn unfinished_batch_holds_nobody_up() {
    let house = Plan::default()
        .config("[limits]\nbody_seconds = 300\n")
        .token("eve", Role::Person, &["EVE"])
        .token("bob", Role::Person, &["BOB"])
        .open();
    let as_bob = |ask: Ask| house.ask(&ask.token(&secret("bob")));
    assert_eq!(as_bob(Ask::send(text("BOB", "CLAUDE", "Q1"))).status, 200);
    let answers = (0..64).map(|n| {
        let answer = letter("NOBODY", "EVE", &format!("A{n}")).intent("RESPOND");
        answer.parent("Q1").build().unwrap()
    });
    let signed = (0..64).map(|n| signed(&text("EVE", "BOB", &format!("S{n}")), &key(), "eve"));
    for pieces in [answers.collect::<String>(), signed.collect()] {
        let mut line = house.line();
        line.send(format!(
            "POST /crosstalk/receive HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nAuthorization: Bearer {}\r\n\
             Content-Length: {}\r\n\r\n{pieces}",
            secret("eve"),
            pieces.len() + 1_000_000,
        ));
        // Every one of them is at work when the last is.
        for n in 0..8 {
            let id = format!("B{n}-{}", pieces.len());
            let sent = signed_by_bob(&id);
            assert_eq!(as_bob(Ask::send(sent)).status, 200);
            let look = as_bob(Ask::get("/crosstalk/inbox?for=BOB").accept("application/json"));
            assert_eq!(look.status, 200);
        }
    }
}

fn signed_by_bob(id: &str) -> String {
    let other = PrivateKey::from_seed(Algorithm::Ed25519, &[8; 32]).unwrap();
    signed(&text("BOB", "CLAUDE", id), &other, "bob-key")
}
