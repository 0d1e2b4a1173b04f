//! Figures of a relay, for people: `cargo test --release -p crosstalk-store --test it rate -- --ignored --nocapture`.

use super::Sqlite;
use crate::letter::letter;
use crate::parcel::parcel;
use crosstalk_protocol::relay::port::InboxQuery;
use crosstalk_protocol::relay::{Admission, DeliveryState};
use std::time::Instant;

const WORDS: [&str; 12] = [
    "token", "port", "cache", "expiry", "review", "deploy", "schema", "latency", "retry", "budget",
    "owner", "draft",
];

/// About 1.1 KB each, eight to a thread; every second one is an answer.
fn parcels(from: usize, count: usize) -> Vec<Admission> {
    let one = |n: usize| {
        let thread = format!("01KA{:022}", n / 8);
        let mut body = format!("Message {n} asks about number{n}.\n");
        for k in 0..130 {
            body.push_str(WORDS[(n * 7 + k * 5 + k * k) % WORDS.len()]);
            body.push(if k % 12 == 11 { '\n' } else { ' ' });
        }
        let base = letter(&format!("01KB{n:022}")).thread(&thread);
        let base = base.body(&body).context(&format!("topic {}", n % 97));
        let agent = format!("agent://a{}.example/x", n / 2 % 50);
        parcel(match n % 2 {
            0 => base.between("KALLE", &agent),
            _ => base
                .between(&agent, "KALLE")
                .parent(&format!("01KB{:022}", n - 1))
                .intent("RESPOND"),
        })
    };
    (from..from + count).map(one).collect()
}

/// The time that this process has spent on processors, in seconds: what does not depend on who else is busy.
fn spent() -> f64 {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = line
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks = fields.skip(11).take(2).map(|f| f.parse::<f64>().unwrap());
    ticks.sum::<f64>() / 100.0
}

#[test]
#[ignore = "prints figures"]
fn rate() {
    let mut made = Sqlite::new();
    let store = &mut made.store;
    let _owned = store.own().unwrap();
    let (mut taking, mut filing) = (0.0, 0.0);
    let (mut cpu_taking, mut cpu_filing) = (0.0, 0.0);
    let mut count = 0;
    for round in 1..=10 {
        let all: Vec<Vec<Admission>> = (0..156).map(|n| parcels(count + n * 64, 64)).collect();
        count += 156 * 64;
        let (begin, cpu) = (Instant::now(), spent());
        for batch in &all {
            store.accept_batch(batch).unwrap();
        }
        let took = begin.elapsed().as_secs_f64();
        cpu_taking += spent() - cpu;
        let (begin, cpu) = (Instant::now(), spent());
        while store.index(512).unwrap().left > 0 {}
        let filed = begin.elapsed().as_secs_f64();
        cpu_filing += spent() - cpu;
        (taking, filing) = (taking + took, filing + filed);
        let per_second = |seconds: f64| 156.0 * 64.0 / seconds;
        println!(
            "round {round}: take {:.0} /s, file {:.0} /s",
            per_second(took),
            per_second(filed)
        );
    }
    let all = count as f64;
    println!(
        "take in batches of 64: {:.0} a second, {:.1} µs of a processor each",
        all / taking,
        cpu_taking / all * 1e6
    );
    println!(
        "file in batches of 512: {:.0} a second, {:.1} µs of a processor each",
        all / filing,
        cpu_filing / all * 1e6
    );
    let again = parcels(0, 1000);
    let begin = Instant::now();
    for _ in 0..10 {
        store.accept_batch(&again).unwrap();
    }
    let replayed = begin.elapsed().as_secs_f64();
    println!("take again: {:.0} a second", 10_000.0 / replayed);
    let asked = InboxQuery {
        address: "KALLE".to_owned(),
        after: None,
        limit: 100,
    };
    let begin = Instant::now();
    let mut acknowledged = 0;
    while let entries = store.inbox_of(&asked).unwrap()
        && !entries.is_empty()
        && acknowledged < 10_000
    {
        let ids: Vec<String> = entries.into_iter().map(|e| e.record.id).collect();
        let now = crate::at(1_000_000);
        acknowledged += store
            .mark("KALLE", &ids, DeliveryState::Acknowledged, now)
            .unwrap()
            .len();
    }
    let read = begin.elapsed().as_secs_f64();
    println!(
        "read and acknowledge by 100: {:.0} a second",
        acknowledged as f64 / read
    );
    let size = std::fs::metadata(made.place.home().store()).unwrap().len();
    println!("{} MiB for {count} messages", size >> 20);
}
