//! Figures, for people: `cargo test --release -p crosstalk-store --test it measure -- --ignored --nocapture`.

use super::Sqlite;
use crate::letter::letter;
use crosstalk_protocol::store::{Arrival, Page, Search, Side, ThreadFilter};
use crosstalk_store::SqliteStore;
use std::time::Instant;

const WORDS: [&str; 12] = [
    "token", "port", "cache", "expiry", "review", "deploy", "schema", "latency", "retry", "budget",
    "owner", "draft",
];

/// About a kilobyte each, eight to a thread; every second one is an answer.
fn arrivals(from: usize, count: usize) -> Vec<Arrival> {
    let one = |n: usize| {
        let thread = format!("01KA{:022}", n / 8);
        let mut body = format!("Message {n} asks about number{n}.\n");
        for k in 0..120 {
            body.push_str(WORDS[(n * 7 + k * 5 + k * k) % WORDS.len()]);
            body.push(if k % 12 == 11 { '\n' } else { ' ' });
        }
        let id = format!("01KB{n:022}");
        let base = letter(&id).thread(&thread).body(&body).at(n as i64);
        let base = base.context(&format!("topic {}", n % 97));
        match n % 2 {
            0 => base
                .between("KALLE", &format!("agent://a{}.example/x", n / 2 % 50))
                .side(Side::Mine),
            _ => base
                .between(&format!("agent://a{}.example/x", n / 2 % 50), "KALLE")
                .parent(&format!("01KB{:022}", n - 1))
                .intent(if n % 64 == 1 { "REQUEST" } else { "RESPOND" })
                .side(Side::ToMe),
        }
        .arrival()
    };
    (from..from + count).map(one).collect()
}

fn reads(store: &SqliteStore, count: usize) {
    let mut figures = Vec::new();
    let mut time = |name: &str, read: &dyn Fn()| {
        let mut best = f64::MAX;
        for _ in 0..20 {
            let begin = Instant::now();
            read();
            best = best.min(begin.elapsed().as_secs_f64() * 1e6);
        }
        figures.push(format!("{name} {best:.0}"));
    };
    let page = Page::first(50);
    let middle = format!("01KA{:022}", count / 16);
    let with = ThreadFilter {
        with: Some("agent://a7.example/x".to_owned()),
        ..Default::default()
    };
    let search = |text: &str| Search::parse(text).unwrap();
    let (common, rare) = (
        search("latency budget"),
        search(&format!("number{}", count / 2)),
    );
    let (prefix, phrase) = (search("lat*"), search("from:a7 \"message\""));
    time("threads", &|| {
        drop(store.threads(&ThreadFilter::default(), page).unwrap())
    });
    time("threads with", &|| {
        drop(store.threads(&with, page).unwrap())
    });
    time("inbox", &|| drop(store.inbox(page).unwrap()));
    time("show thread", &|| {
        drop(store.messages(&middle, None, 50).unwrap())
    });
    time("find", &|| drop(store.find(&middle).unwrap()));
    time("shortest", &|| {
        assert!(store.shortest(&middle).unwrap() > 0)
    });
    time("search common", &|| {
        drop(store.search(&common, page).unwrap())
    });
    time("search rare", &|| drop(store.search(&rare, page).unwrap()));
    time("search prefix", &|| {
        drop(store.search(&prefix, page).unwrap())
    });
    time("search field", &|| {
        drop(store.search(&phrase, page).unwrap())
    });
    println!("{count} messages, best of 20, µs: {}", figures.join(", "));
}

fn opening(made: &Sqlite) {
    let path = made.place.home().store();
    let mut best = f64::MAX;
    for _ in 0..50 {
        let begin = Instant::now();
        let store = SqliteStore::open_existing(&path).unwrap().unwrap();
        store.inbox(Page::first(1)).unwrap();
        drop(store);
        best = best.min(begin.elapsed().as_secs_f64() * 1e6);
    }
    println!("open, read, close: best of 50: {best:.0} µs");
}

#[test]
#[ignore = "prints figures"]
fn measure() {
    let mut made = Sqlite::new();
    let mut spent = 0.0;
    for batch in 0..200 {
        let arrivals = arrivals(batch * 500, 500);
        let begin = Instant::now();
        made.store.accept(&arrivals).unwrap();
        spent += begin.elapsed().as_secs_f64();
        if batch == 1 {
            reads(&made.store, 1000);
        }
        if batch % 20 == 19 {
            println!("{} messages: {spent:.1} s", (batch + 1) * 500);
        }
    }
    println!("accept: {:.0} messages a second", 100_000.0 / spent);
    reads(&made.store, 100_000);
    opening(&made);
    let begin = Instant::now();
    for single in arrivals(100_000, 100) {
        made.store.accept(&[single]).unwrap();
    }
    println!(
        "accept one by one: {:.2} ms each",
        begin.elapsed().as_secs_f64() * 10.0
    );
    let size = std::fs::metadata(made.place.home().store()).unwrap().len();
    println!("{} MiB for 100,000 messages", size >> 20);
    let begin = Instant::now();
    made.store.rebuild().unwrap();
    println!("rebuild: {:.1} s", begin.elapsed().as_secs_f64());
    let begin = Instant::now();
    made.store.forget(&format!("01KA{:022}", 77)).unwrap();
    println!(
        "forget a thread: {:.1} ms",
        begin.elapsed().as_secs_f64() * 1e3
    );
}
