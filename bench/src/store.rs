//! `cargo xtask bench store`: what a message costs in the SQLite store of a relay, phase by phase.
//!
//! A relay accepts, indexes and fills the search index on threads of its own, beside those that serve requests. Here one thread
//! does the same in turn, and what counts is its processor time: that of other work on the machine is not in it.

use crate::relay::batch::admission;
use crate::relay::letter::{envelope, inbox};
use crate::relay::million::bytes_of;
use crosstalk_envelope::id;
use crosstalk_protocol::relay::{AcceptOutcome, RelayRules};
use crosstalk_store::SqliteStore;
use crosstalk_testing::folder::Folder;
use rustix::time::{ClockId, clock_gettime};
use std::io::{Error, Result};

/// Messages of a transaction: what 64 senders have on the way at once.
const BATCH: usize = 64;
/// Each sender begins another thread after so many messages.
const THREAD: usize = 16;
/// How many batches a relay under load indexes together.
const INDEX_BATCHES: usize = 8;
/// How many batches are accepted and indexed before the search index is filled. A relay does that five times a second.
const FILL_BATCHES: usize = 32;

/// The phases, in the order in which a message passes them.
const PHASES: [&str; 4] = ["parse, verify and admit", "accept", "index", "search"];

/// Prints the processor time of each phase, and the bytes on disk.
pub fn run(is_quick: bool) -> Result<()> {
    let batches = if is_quick { 64 } else { 640 };
    let program = std::env::current_exe()?;
    let place = program.parent().ok_or_else(|| Error::other("no folder"))?;
    let folder = Folder::within(place, "store");
    let mut store = SqliteStore::open(folder.path().join("relay.db")).map_err(Error::other)?;
    let owned = store.own().map_err(Error::other)?;
    let mut seconds = [0.0; PHASES.len()];
    let rules = RelayRules::default();
    let mut bytes = 0;
    let mut threads = Vec::new();
    for number in 1..=batches {
        if number % THREAD == 1 {
            threads = (0..BATCH).map(|_| id::new_ulid()).collect();
        }
        let text = |(sender, thread): (usize, &String)| {
            envelope(&id::new_ulid(), thread, sender, &inbox(sender % THREAD))
        };
        let texts: Vec<String> = threads.iter().enumerate().map(text).collect();
        bytes += texts.iter().map(String::len).sum::<usize>();
        let [admitting, accepting, indexing, searching] = &mut seconds;
        let batch = timed(admitting, || {
            texts
                .iter()
                .map(|t| admission(t, &rules))
                .collect::<Result<Vec<_>>>()
        })?;
        let outcomes = timed(accepting, || store.accept_batch(&batch)).map_err(Error::other)?;
        let is_accepted = |o: &AcceptOutcome| matches!(o, AcceptOutcome::Accepted { .. });
        if !outcomes.iter().all(is_accepted) {
            return Err(Error::other("the store rejected a message"));
        }
        if number % INDEX_BATCHES == 0 {
            let limit = BATCH * INDEX_BATCHES;
            let progress = timed(indexing, || store.index(limit)).map_err(Error::other)?;
            if progress.filed != limit {
                return Err(Error::other("the store indexed another number of messages"));
            }
        }
        if number % FILL_BATCHES == 0 {
            let limit = BATCH * FILL_BATCHES;
            timed(searching, || store.fill_search(limit)).map_err(Error::other)?;
        }
    }
    let messages = (batches * BATCH) as f64;
    println!("\n{messages} messages, {BATCH} in a transaction\n");
    for (phase, seconds) in PHASES.iter().zip(seconds) {
        println!("{phase:<24} {:>6.1} µs a message", seconds * 1e6 / messages);
    }
    // The logs are moved into the files when the last handle is closed.
    drop((owned, store));
    let ratio = bytes_of(folder.path())? as f64 / bytes as f64;
    println!("{:<24} {ratio:>6.2} × the envelopes", "bytes on disk");
    Ok(())
}

/// Does something, and adds the processor time that this thread took for it.
fn timed<T>(seconds: &mut f64, run: impl FnOnce() -> T) -> T {
    let before = processor_seconds();
    let done = run();
    *seconds += processor_seconds() - before;
    done
}

/// The processor time that this thread has used. The files in `/proc` are too coarse for a batch.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
