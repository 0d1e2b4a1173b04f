//! Many envelopes in one request, beside a bare loop over the same store: it reads, verifies and admits the same texts on one
//! thread, and has each batch on disk before it goes on. Neither waits for the index; what is left of it is printed.

use super::letter::{Letters, envelope, inbox, now_millis};
use super::load::{self, Plan};
use super::report::median;
use super::{Bench, indexed, whole};
use crate::goal;
use crosstalk_envelope::{Document, Reading, Timestamp, id};
use crosstalk_protocol::consent::Proof;
use crosstalk_protocol::relay::{
    AcceptOutcome, Admission, AdmissionCandidate, Peer, RelayRules, admit,
};
use crosstalk_protocol::{Trust, VerifyContext, verify};
use crosstalk_store::SqliteStore;
use crosstalk_testing::folder::Folder;
use std::io::{Error, Result};
use std::time::{Duration, Instant};

/// Envelopes of a request, and messages of a transaction.
const BATCH: usize = 512;
/// Requests on their way at once.
const CONNECTIONS: usize = 4;
/// The goal.
const SHARE: f64 = 0.8;

/// Prints the table.
pub(super) fn run(bench: &Bench) -> Result<()> {
    let plan = Plan {
        connections: CONNECTIONS,
        batch: BATCH,
        ..bench.scale.plan(CONNECTIONS)
    };
    let letters = Letters::Fresh {
        batch: BATCH,
        receivers: 16,
    };
    let (mut bare, mut relayed, mut left, mut filing) = (vec![], vec![], vec![], vec![]);
    for _ in 0..bench.scale.rounds {
        bare.push(loop_of(bench, plan.time)?);
        let relay = bench.relay();
        let measured = whole(load::run(relay.address(), plan, &letters)?)?;
        relayed.push(measured.rate());
        let (rest, time) = indexed(&relay)?;
        left.push(rest as f64);
        filing.push(time);
    }
    println!("\nbatches of {BATCH}, {CONNECTIONS} requests at once\n");
    println!(
        "{:<24} {:>9.0} msg/s",
        "bare loop (floor)",
        median(bare.iter().copied())
    );
    println!(
        "{:<24} {:>9.0} msg/s, {:.0} left, filed in {:.2} s\n",
        "batch requests",
        median(relayed.iter().copied()),
        median(left),
        median(filing)
    );
    let ratio = median(relayed.iter().zip(&bare).map(|(r, b)| r / b));
    goal("batch requests ÷ bare loop", ratio, "at least", SHARE);
    Ok(())
}

/// Messages a second of the loop. The texts are there before the clock starts, as those of the requests are.
fn loop_of(bench: &Bench, time: Duration) -> Result<f64> {
    let rules = RelayRules::default();
    let folder = Folder::within(bench.place.path(), "bare");
    let mut store = SqliteStore::open(folder.path().join("relay.db")).map_err(Error::other)?;
    let (mut taken, mut spent) = (0, Duration::ZERO);
    while spent < time {
        let texts: Vec<String> = (0..BATCH).map(text).collect();
        let began = Instant::now();
        let batch = texts.iter().map(|t| admission(t, &rules));
        let batch = batch.collect::<Result<Vec<_>>>()?;
        let outcomes = store.accept_batch(&batch).map_err(Error::other)?;
        spent += began.elapsed();
        if outcomes
            .iter()
            .any(|o| !matches!(o, AcceptOutcome::Accepted { .. }))
        {
            return Err(Error::other("the store refused a message"));
        }
        taken += BATCH;
    }
    Ok(taken as f64 / spent.as_secs_f64())
}

fn text(number: usize) -> String {
    let thread = id::ulid_of(now_millis(), number as u128 / 16);
    envelope(&id::new_ulid(), &thread, number, &inbox(number % 16))
}

/// What a relay without rules of its own makes of it.
pub fn admission(text: &str, rules: &RelayRules) -> Result<Admission> {
    let document = Document::parse(text, Reading::Strict);
    let at = Timestamp::from_millis(i64::try_from(now_millis()).unwrap_or(0));
    let candidate = AdmissionCandidate {
        document: &document,
        verdict: &verify(&document, &Trust::default(), &VerifyContext::at(at)),
        proof: Proof::default(),
        peer: &Peer::local(),
        was_asked: false,
        at,
    };
    admit(candidate, rules).map_err(|refusal| Error::other(format!("{refusal:?}")))
}
