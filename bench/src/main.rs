//! `cargo xtask bench`: how fast envelopes are read, signed and verified, as ratios within one run.
//!
//! Absolute times differ from machine to machine and from minute to minute; the ratios hold.

#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark prints its result"
)]

mod conversation;
mod import;
mod mail;
mod mcp;
mod measure;
mod relay;
mod store;
mod subject;
mod trust;

use crosstalk_envelope::{Document, Reading};
use measure::{Subject, measure};
use std::hint::black_box;
use std::io::{Error, Result};
use std::process::ExitCode;
use std::time::Duration;
use subject::{ENVELOPE, envelope_of, read_envelope, read_json, read_mail, scan_lines};

const ROUND: Duration = Duration::from_millis(4);

/// The benches, by the names that choose one.
const BENCHES: [&str; 9] = [
    "envelope",
    "trust",
    "conversation",
    "import",
    "store",
    "relay",
    "mcp",
    "peers",
    "mail",
];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let is_quick = words.iter().any(|w| w == "--quick");
    let words: Vec<&str> = words
        .iter()
        .map(String::as_str)
        .filter(|w| *w != "--quick")
        .collect();
    let done = match words.as_slice() {
        // The bench of the relay starts itself again as the server that it compares with.
        ["floor", address, size] => relay::floor::serve(address, size),
        // For a profiler: the load alone, on a server that runs already.
        ["load", address, connections, seconds] => relay::aim(address, connections, seconds),
        [] => BENCHES
            .iter()
            .try_for_each(|name| bench(name, is_quick, None)),
        [name] if BENCHES.contains(name) => bench(name, is_quick, None),
        ["relay", part] => bench("relay", is_quick, Some(part)),
        other => Err(Error::other(format!(
            "there is no bench `{}`: there are {}",
            other.join(" "),
            BENCHES.join(", ")
        ))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn bench(name: &str, is_quick: bool, part: Option<&str>) -> Result<()> {
    match name {
        "envelope" => {
            small();
            lengths();
        }
        "trust" => trust::run(),
        "conversation" => conversation::run(),
        "import" => return import::run(is_quick),
        "store" => return store::run(is_quick),
        "mcp" => return mcp::run(is_quick),
        "mail" => return mail::run(&relay::own_program()?, is_quick),
        "peers" => return relay::beside_peers(is_quick),
        _ => return relay::run(is_quick, part),
    }
    Ok(())
}

/// One message of 1.1 KB, read in every way.
fn small() {
    let (json, mail) = (subject::json(), subject::mail());
    println!(
        "one message: envelope {} bytes, JSON {}, mail {}\n",
        ENVELOPE.len(),
        json.len(),
        mail.len()
    );
    let mut subjects = [
        Subject::new("bare scan (floor)", || scan_lines(ENVELOPE)),
        Subject::new("strict parse + typed view", || {
            read_envelope(ENVELOPE, Reading::Strict)
        }),
        Subject::new("strict parse alone", || {
            black_box(Document::parse(black_box(ENVELOPE), Reading::Strict));
        }),
        Subject::new("paste reading + typed view", || {
            read_envelope(ENVELOPE, Reading::Paste)
        }),
        Subject::new("canonical form", || {
            black_box(
                Document::parse(black_box(ENVELOPE), Reading::Strict)
                    .canonical()
                    .is_ok(),
            );
        }),
        Subject::new("serde_json into a struct", || read_json(&json)),
        Subject::new("mail-parser", || read_mail(&mail)),
    ];
    let times = measure(&mut subjects, 200, ROUND);
    let [floor, strict, _, paste, _, serde, mail] = times.as_slice() else {
        return;
    };
    println!("{:<28} {:>9} {:>9} {:>9}", "", "ns", "× floor", "× strict");
    for (subject, time) in subjects.iter().zip(&times) {
        println!(
            "{:<28} {time:>9.0} {:>9.2} {:>9.2}",
            subject.name,
            time / floor,
            time / strict
        );
    }
    println!();
    goal(
        "strict parse + typed view ÷ bare scan",
        strict / floor,
        "at most",
        3.5,
    );
    goal(
        "serde_json ÷ strict parse + typed view",
        serde / strict,
        "at least",
        1.6,
    );
    goal(
        "mail-parser ÷ strict parse + typed view",
        mail / strict,
        "at least",
        2.0,
    );
    goal("paste reading ÷ strict", paste / strict, "at most", 5.0);
}

/// Time per byte from 1 KB to 1 MB.
fn lengths() {
    let texts: Vec<String> = [1, 4, 16, 64, 256, 1023]
        .into_iter()
        .map(|kb| envelope_of(kb * 1024))
        .collect();
    let mut subjects: Vec<Subject<'_>> = texts
        .iter()
        .map(|t| Subject::new("", || read_envelope(t, Reading::Strict)))
        .collect();
    let times = measure(&mut subjects, 60, ROUND);
    println!("\ntime per byte, strict parse + typed view");
    let per_byte: Vec<f64> = times
        .iter()
        .zip(&texts)
        .map(|(t, text)| t / text.len() as f64)
        .collect();
    for (text, ns) in texts.iter().zip(&per_byte) {
        println!("{:>9} bytes {ns:>7.3} ns/byte", text.len());
    }
    let first = per_byte.first().copied().unwrap_or(f64::NAN);
    let worst = per_byte.iter().copied().fold(0.0, f64::max);
    println!();
    goal(
        "worst ns/byte ÷ ns/byte at 1 KB",
        worst / first,
        "at most",
        1.1,
    );
}

fn goal(what: &str, ratio: f64, bound: &str, goal: f64) {
    let met = if bound == "at most" {
        ratio <= goal
    } else {
        ratio >= goal
    };
    println!(
        "{} {what}: {ratio:.2} (goal: {bound} {goal})",
        if met { "✓" } else { "✗" }
    );
}
