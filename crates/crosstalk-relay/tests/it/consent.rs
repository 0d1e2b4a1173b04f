//! Consent at a relay that runs: the tables of the specification, cell by cell, and revocation while others read.

mod erasure;
mod expiry;
mod handover;
mod interleaving;
mod matrix;
mod revocation;

use crate::house::{Plan, START, key, letter, signed};
use crosstalk_envelope::{Builder, Timestamp};

const ANN: &str = "human://here.example/ann";
const KEY: &str = "ann@here.example";

/// A relay that knows the key of Ann, because somebody has compared it.
fn plan() -> Plan {
    Plan::default()
        .config("name = \"here.example\"")
        .pin(KEY, &key(), ANN)
}

/// A message of Ann, in a conversation of its own.
fn from_ann(to: &str, id: &str) -> Builder {
    letter(ANN, to, id).thread(format!("T-{id}"))
}

/// A signed REVOKE of Ann.
fn revoke(consent: &str, to: &str, id: &str) -> String {
    let text = as_revoke(from_ann(to, id).meta("revocation", "Consent-ID", consent));
    signed(&text, &key(), KEY)
}

/// A REVOKE that nobody has signed yet, which a builder does not make.
fn as_revoke(builder: Builder) -> String {
    let text = builder.intent("BROADCAST").build().unwrap();
    text.replace("intent: BROADCAST", "intent: REVOKE")
}

fn time(seconds: i64) -> String {
    Timestamp::from_millis(START + seconds * 1000).to_string()
}
