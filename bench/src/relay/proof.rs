//! Proofs from a log of a million entries, beside the hashes that their reader computes.

use super::Bench;
use super::report::median;
use crate::goal;
use crosstalk_envelope::Timestamp;
use crosstalk_envelope::meta::Digest;
use crosstalk_protocol::audit::{Event, EventKind};
use crosstalk_store::SqliteStore;
use crosstalk_testing::folder::Folder;
use std::hint::black_box;
use std::io::{Error, Result};
use std::time::Instant;

/// The goals: microseconds and bytes.
const TIME: f64 = 1000.0;
const SIZE: f64 = 1024.0;
/// How many entries are written in one transaction, and how many proofs are made.
const BATCH: usize = 10_000;
const PROOFS: u64 = 2000;

/// Prints time and size of an inclusion proof.
pub fn run(bench: &Bench) -> Result<()> {
    let folder = Folder::within(bench.place.path(), "log");
    let mut store = SqliteStore::open(folder.path().join("relay.db")).map_err(Error::other)?;
    let entries = bench.scale.million;
    let began = Instant::now();
    for first in (0..entries).step_by(BATCH) {
        let ids: Vec<String> = (first..entries.min(first + BATCH))
            .map(|number| format!("01K{number:023}"))
            .collect();
        let events: Vec<Event<'_>> = ids.iter().map(|id| event(id)).collect();
        store.log(&events).map_err(Error::other)?;
    }
    while store.store_hashes(64).map_err(Error::other)? {}
    let written = began.elapsed().as_secs_f64();
    let size = store.log_size().map_err(Error::other)?;
    let (mut times, mut floors, mut largest) = (Vec::new(), Vec::new(), 0);
    for number in 0..PROOFS {
        // Everywhere in the log, in no order.
        let index = number.wrapping_mul(2_654_435_761) % size;
        let began = Instant::now();
        let path = store.log_inclusion(index, size).map_err(Error::other)?;
        times.push(began.elapsed().as_secs_f64() * 1e6);
        let path = path.ok_or_else(|| Error::other("there is no proof"))?;
        let began = Instant::now();
        for hash in &path {
            black_box(Digest::of(&[hash.as_ref(), hash.as_ref()].concat()));
        }
        floors.push(began.elapsed().as_secs_f64() * 1e6);
        // As text: an index, and a line of base64 for each hash.
        largest = largest.max("index 18446744073709551615\n".len() + path.len() * 45);
    }
    let time = median(times.iter().copied());
    println!("\na log of {size} entries (written and hashed in {written:.1} s)\n");
    println!(
        "{:<24} {:>9.1} µs",
        "hashes of a reader",
        median(floors.iter().copied())
    );
    println!(
        "{:<24} {time:>9.1} µs, {largest} bytes\n",
        "inclusion proof"
    );
    let ratio = median(times.iter().zip(&floors).map(|(time, floor)| time / floor));
    println!("{:<24} {ratio:>9.1}", "proof ÷ floor");
    goal("inclusion proof in µs", time, "at most", TIME);
    goal("inclusion proof in bytes", largest as f64, "at most", SIZE);
    Ok(())
}

fn event(id: &str) -> Event<'_> {
    Event {
        id: Some(id),
        canonical: Some(Digest::of(id.as_bytes())),
        raw: Some(Digest::of(id.as_bytes())),
        ..Event::new(
            EventKind::Accepted,
            Timestamp::from_millis(1_790_000_000_000),
        )
    }
}
