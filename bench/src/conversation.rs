//! The program on a store with 1,000 and with 100,000 messages, as a person starts it: `threads`, `show`, `search` and
//! `inbox`, and what starting costs.

use super::goal;
use crate::measure::{Subject, measure};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const FEW: usize = 1_000;
const MANY: usize = 100_000;
/// Messages of a thread.
const THREAD: usize = 10;
/// Messages of a file.
const FILE: usize = 500;
const ROUNDS: usize = 60;

/// Measures, or says what is missing.
pub fn run() {
    let Some(program) = program() else {
        println!("\nconversations: build the program first: `cargo xtask bench` does");
        return;
    };
    let place = std::env::temp_dir().join(format!("crosstalk-bench-{}", std::process::id()));
    let stores = [FEW, MANY, 0].map(|messages| Store::filled(&program, &place, messages));
    let [Ok(few), Ok(many), Ok(empty)] = stores else {
        println!(
            "\nconversations: the archives can't be written to {}",
            place.display()
        );
        return;
    };
    println!("\nconversations: milliseconds of the whole program, best of {ROUNDS}\n");
    compare(&few, &many);
    starting(&empty);
    let _ = std::fs::remove_dir_all(place);
}

/// The binary that was built beside this one.
fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().ok()?;
    let program = own.parent()?.join("crosstalk");
    program.is_file().then_some(program)
}

/// A home with messages in it.
struct Store {
    program: PathBuf,
    home: PathBuf,
}

impl Store {
    fn filled(program: &Path, place: &Path, messages: usize) -> std::io::Result<Self> {
        let archive = place.join(format!("archive-{messages}"));
        let store = Self {
            program: program.to_owned(),
            home: place.join(format!("home-{messages}")),
        };
        std::fs::create_dir_all(&archive)?;
        std::fs::write(archive.join("README.md"), "")?;
        for file in 0..messages.div_ceil(FILE) {
            let first = file * FILE;
            let texts: Vec<String> = (first..(first + FILE).min(messages))
                .map(envelope)
                .collect();
            let path = archive.join(format!("{file:05}.crosstalk"));
            std::fs::write(path, texts.join("\n"))?;
        }
        let start = Instant::now();
        store.run(&["import", &archive.to_string_lossy()]);
        let taken = start.elapsed().as_secs_f64();
        if messages > 0 {
            println!("{messages} messages imported in {taken:.1} s");
        }
        Ok(store)
    }

    fn run(&self, arguments: &[&str]) {
        let status = Command::new(&self.program)
            .args(arguments)
            .env("CROSSTALK_HOME", &self.home)
            .env("CROSSTALK_USER", "kalle")
            .env("CROSSTALK_CLIPBOARD", "none")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        assert!(status.is_ok_and(|s| s.code() != Some(2)), "{arguments:?}");
    }
}

/// A message: of ten in a thread the first asks, and all but the last are answered.
fn envelope(number: usize) -> String {
    let (thread, place) = (number / THREAD, number % THREAD);
    let id = |n: usize| format!("01K9{n:022}");
    let asks = place % 2 == 0;
    let (sender, receiver, intent) = match asks {
        true => ("CLAUDE", "KALLE", "REQUEST"),
        false => ("KALLE", "CLAUDE", "RESPOND"),
    };
    let mut text = format!(
        "[[{sender}→{receiver} v1]]\nuser: kalle\nsession: 2025-10-09T16Z s{thread}\nthread: 01K8{thread:022}\n"
    );
    if place > 0 {
        let _ = writeln!(text, "parent: {}", id(number - 1));
    }
    let _ = write!(
        text,
        "message: {}\ncontext: topic {}\nintent: {intent}\nbody: |\n  Question {number} about tokens, sessions and expiry.\n",
        id(number),
        thread % 97
    );
    for line in 0..12 {
        let _ = writeln!(
            text,
            "  Line {line}: word{} word{} and some more of the text.",
            number % 1009,
            line * 31
        );
    }
    text.push_str("sig: none\n[[END]]\n");
    text
}

const COMMANDS: [(&str, &[&str]); 7] = [
    ("threads", &["threads"]),
    ("show THREAD", &["show", "01K80000000000000000000042"]),
    (
        "search, a rare word and a common one",
        &["search", "777", "expiry"],
    ),
    ("search, a word of every message", &["search", "tokens"]),
    ("search, a short beginning", &["search", "sess*"]),
    ("search, a long beginning", &["search", "session*"]),
    ("inbox", &["inbox"]),
];

fn compare(few: &Store, many: &Store) {
    println!("{:<38} {:>9} {:>9} {:>7}", "", FEW, MANY, "ratio");
    let mut worst: f64 = 0.0;
    for (name, arguments) in COMMANDS {
        let mut subjects = [
            Subject::new("few", || few.run(arguments)),
            Subject::new("many", || many.run(arguments)),
        ];
        let times = measure(&mut subjects, ROUNDS, Duration::ZERO);
        let [few, many] = times.as_slice() else {
            return;
        };
        println!(
            "{name:<38} {:>9.2} {:>9.2} {:>7.2}",
            few / 1e6,
            many / 1e6,
            many / few
        );
        worst = worst.max(many / few);
    }
    println!();
    goal(
        "100,000 messages ÷ 1,000 messages, the worst",
        worst,
        "at most",
        1.5,
    );
}

fn starting(empty: &Store) {
    let mut subjects = [
        Subject::new("version", || empty.run(&["--version"])),
        Subject::new("threads", || empty.run(&["threads"])),
    ];
    let times = measure(&mut subjects, ROUNDS * 3, Duration::ZERO);
    let [version, threads] = times.as_slice() else {
        return;
    };
    let (version, threads) = (version / 1e6, threads / 1e6);
    println!(
        "\ncrosstalk --version {version:.2} ms, crosstalk threads on an empty store {threads:.2} ms"
    );
    goal(
        "milliseconds more than --version",
        threads - version,
        "at most",
        5.0,
    );
}
