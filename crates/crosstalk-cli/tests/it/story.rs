//! Pages that tell a story: what is typed, what comes back, and the files in between, in one home from top to bottom.
//!
//! Ids, sessions and times are other ones each time. So a page names them as it likes, and what it calls
//! `01K9XQ…` once is the same everywhere: a value of the page stands for the first real one that is met in its
//! place, and files get the real ones put in before they are used.
//!
//! ````text
//! ```shell-session        commands after `$ `, and below each what it prints (stdout and stderr as a terminal
//!                         mixes them); `? 12` is the exit code; `…` alone on a line is any number of lines
//! ```text file=chat.txt   a file that is there from here on
//! ````

use crate::run::{Home, folder};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A part of a page that does something.
enum Step {
    File(String, String),
    Command { line: String, expected: String, code: i32 },
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let fence: String = line.chars().take_while(|c| *c == '`').collect();
        if fence.len() < 3 {
            continue;
        }
        let info = line.trim_start_matches('`');
        let block: Vec<&str> = lines.by_ref().take_while(|l| *l != fence).collect();
        if let Some((_, file)) = info.split_once("file=") {
            steps.push(Step::File(file.to_owned(), block.join("\n") + "\n"));
        } else if info == "shell-session" {
            for line in block {
                match (line.strip_prefix("$ "), steps.last_mut()) {
                    (Some(line), _) => steps.push(Step::Command {
                        line: line.to_owned(),
                        expected: String::new(),
                        code: 0,
                    }),
                    (None, Some(Step::Command { expected, code, .. })) => {
                        match line.strip_prefix("? ") {
                            Some(number) => *code = number.parse().unwrap(),
                            None => expected.push_str(&format!("{line}\n")),
                        }
                    }
                    (None, _) => panic!("output before a command: {line}"),
                }
            }
        }
    }
    steps
}

/// The words that are other ones each time: ids and their beginnings, sessions, times.
fn is_variable(word: &str) -> bool {
    let is_ulid = |w: &str| {
        (8..=26).contains(&w.len())
            && w.starts_with("01")
            && w.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase())
    };
    let is_time = |w: &str| {
        w.len() >= 14 && w.starts_with("20") && w.contains('T') && w.ends_with('Z')
    };
    let is_session = |w: &str| w.len() == 6 && w.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()) && w.bytes().any(|b| b.is_ascii_digit());
    is_ulid(word) || is_time(word) || is_session(word)
}

/// A text in words and what stands between them.
fn words(text: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == ':';
    let mut out = Vec::new();
    let mut start = 0;
    let mut inside = None;
    for (at, c) in text.char_indices() {
        let part = is_part(c);
        if inside.is_some_and(|was| was != part) {
            out.push(&text[start..at]);
            start = at;
        }
        inside = Some(part);
    }
    out.push(&text[start..]);
    out
}

#[derive(Default)]
struct Names(HashMap<String, String>);

impl Names {
    /// Whether a line of the page stands for a real one; what is met for the first time gets its name.
    fn fits(&mut self, page: &str, real: &str) -> bool {
        let (page, real) = (words(page), words(real));
        if page.len() != real.len() {
            return false;
        }
        let mut met = Vec::new();
        for (word, found) in page.iter().zip(&real) {
            if !is_variable(word) {
                if word != found {
                    return false;
                }
                continue;
            }
            match self.0.get(*word) {
                Some(known) if known != found => return false,
                Some(_) => {}
                None if is_variable(found) => met.push((word.to_string(), found.to_string())),
                None => return false,
            }
        }
        self.0.extend(met);
        true
    }

    fn put_in(&self, text: &str) -> String {
        let put = |w: &str| self.0.get(w).cloned().unwrap_or_else(|| w.to_owned());
        words(text).into_iter().map(put).collect()
    }
}

/// What a command prints, both streams in the order in which they were written.
fn printed(line: &str, place: &Path, env: &[(&str, &str)]) -> (String, i32) {
    let program = env!("CARGO_BIN_EXE_crosstalk");
    let line = line.replacen("crosstalk ", &format!("'{program}' "), 1);
    let output = Command::new("sh")
        .args(["-c", &format!("{{ {line} ; }} 2>&1")])
        .current_dir(place)
        .envs(env.iter().copied())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, output.status.code().unwrap())
}

/// Plays a page and compares.
fn play(page: &Path, env: &[(&str, &str)]) {
    let text = fs::read_to_string(page).unwrap();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("api design");
    fs::create_dir(&folder).unwrap();
    let home = place.path().join("home");
    let home = home.to_str().unwrap();
    let mut all = vec![("CROSSTALK_HOME", home), ("CROSSTALK_USER", "kalle"), ("NO_COLOR", "1")];
    all.extend(env);
    let mut names = Names::default();
    let mut played = 0;
    for step in steps(&text) {
        match step {
            Step::File(name, content) => {
                fs::write(folder.join(name), names.put_in(&content)).unwrap();
            }
            Step::Command { line, expected, code } => {
                played += 1;
                let (real, ended) = printed(&names.put_in(&line), &folder, &all);
                let same = compare(&mut names, expected.trim_end(), real.trim_end());
                assert!(
                    same && ended == code,
                    "{}: $ {line}\nexit {ended}, the page says {code}\n--- the page\n{expected}\n--- the program\n{real}",
                    page.display()
                );
            }
        }
    }
    assert!(played > 3, "{} tells no story", page.display());
}

fn compare(names: &mut Names, page: &str, real: &str) -> bool {
    let mut real = real.lines().peekable();
    let mut page = page.lines().peekable();
    while let Some(line) = page.next() {
        if line == "…" {
            let Some(next) = page.peek() else {
                return true;
            };
            while let Some(found) = real.peek() {
                if names.fits(next, found) {
                    break;
                }
                real.next();
            }
            continue;
        }
        let Some(found) = real.next() else {
            return line.is_empty() && page.peek().is_none();
        };
        if !names.fits(line, found) {
            return false;
        }
    }
    real.peek().is_none()
}
