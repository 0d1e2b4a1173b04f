//! `cargo xtask bench import`: a person's archive of 100,000 messages goes into an empty store, beside a loop that only
//! reads the messages and has them on disk; and beside another program, such as an older build.

use crate::goal;
use crate::relay::letter::{envelope, inbox, now_millis};
use crate::relay::report::median;
use crate::relay::{OTHER, other_program, own_program};
use crosstalk_envelope::{Document, Reading, id};
use crosstalk_testing::folder::Folder;
use serde_json::Value;
use std::fs::{self, File};
use std::io::{Error, Result, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Messages of a file, and messages of a thread.
const FILE: usize = 1000;
const THREAD: usize = 16;
/// The privacy block of the messages.
const PRIVACY: &str = "meta: privacy\nPII: redacted\nScope: general\n\n";
/// How many times as long as the floor an import may take.
const SLOWER: f64 = 40.0;
/// How many times as fast as the other program it is, if that is the one before the index of words had a file of its own.
const FASTER: f64 = 3.0;

/// Prints how long each takes: for messages with and without a privacy block, since consent is looked at for the former.
pub fn run(is_quick: bool) -> Result<()> {
    let (messages, rounds) = if is_quick { (2000, 1) } else { (100_000, 2) };
    compare("messages", messages, rounds, false)?;
    compare("messages with a privacy block", messages, rounds, true)
}

fn compare(what: &str, messages: usize, rounds: usize, is_private: bool) -> Result<()> {
    let program = own_program()?;
    let other = other_program()?;
    let place = program.parent().ok_or_else(|| Error::other("no folder"))?;
    let place = Folder::within(place, "import");
    let archive = place.path().join("archive");
    write_archive(&archive, messages, is_private)?;
    let (mut floors, mut own, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        floors.push(floor(&archive, place.path())?);
        own.push(import(&program, &archive, place.path(), messages)?);
        if let Some(other) = &other {
            others.push(import(other, &archive, place.path(), messages)?);
        }
    }
    println!("\nimport of {messages} {what}, {FILE} in a file\n");
    for (name, times) in [
        ("read and synced (floor)", &floors),
        ("import", &own),
        ("import, the other program", &others),
    ] {
        let time = median(times.iter().copied());
        if !times.is_empty() {
            println!(
                "{name:<28} {time:>8.2} s {:>9.0} msg/s",
                messages as f64 / time
            );
        }
    }
    println!();
    let ratio = |below: &[f64]| median(own.iter().zip(below).map(|(own, below)| own / below));
    goal("import ÷ floor", ratio(&floors), "at most", SLOWER);
    if others.is_empty() {
        println!("set {OTHER} to another `crosstalk` to compare with");
    } else {
        let faster = ratio(&others).recip();
        goal("the other program ÷ import", faster, "at least", FASTER);
    }
    Ok(())
}

fn write_archive(folder: &Path, messages: usize, is_private: bool) -> Result<()> {
    fs::create_dir(folder)?;
    let mut thread = String::new();
    for first in (0..messages).step_by(FILE) {
        let mut text = String::new();
        for number in first..first + FILE {
            if number % THREAD == 0 {
                thread = id::ulid_of(now_millis(), number as u128);
            }
            let one = envelope(&id::new_ulid(), &thread, number, &inbox(number % THREAD));
            if is_private {
                text.push_str(&one);
            } else {
                text.push_str(&one.replace(PRIVACY, ""));
            }
            text.push('\n');
        }
        fs::write(folder.join(format!("{first:06}.crosstalk")), text)?;
    }
    Ok(())
}

/// Seconds to read every message strictly and to have it on disk.
fn floor(archive: &Path, place: &Path) -> Result<f64> {
    let path = place.join("floor");
    let mut copy = File::create(&path)?;
    let began = Instant::now();
    for file in fs::read_dir(archive)? {
        let text = fs::read_to_string(file?.path())?;
        for envelope in text.split_inclusive("[[END]]\n") {
            let envelope = envelope.trim_start();
            if !envelope.is_empty() && !Document::parse(envelope, Reading::Strict).is_accepted() {
                return Err(Error::other(envelope.to_owned()));
            }
        }
        copy.write_all(text.as_bytes())?;
        copy.sync_data()?;
    }
    let spent = began.elapsed().as_secs_f64();
    fs::remove_file(path)?;
    Ok(spent)
}

/// Seconds of an import into an empty store.
fn import(program: &Path, archive: &Path, place: &Path, messages: usize) -> Result<f64> {
    let home = Folder::within(place, "home");
    let began = Instant::now();
    let output = Command::new(program)
        .args(["import", "--json"])
        .arg(archive)
        .env("CROSSTALK_HOME", home.path())
        .stdin(Stdio::null())
        .output()?;
    let spent = began.elapsed().as_secs_f64();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let filed = report.get("filed").and_then(Value::as_u64);
    if filed == Some(messages as u64) {
        return Ok(spent);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::other(format!(
        "{messages} were to be imported: {report} {said}"
    )))
}
