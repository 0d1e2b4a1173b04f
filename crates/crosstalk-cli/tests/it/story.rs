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
//!
//! A command that ends with `&` is started, runs as long as the page does, and is waited for until its port is open. Where a
//! page says 127.0.0.1:8799, a free port is used, so that pages can be played at the same time.
//!
//! `STORY=overwrite cargo test` writes the pages anew, with what the program prints now.

use crate::run::folder;
use crosstalk_testing::http::Connection;
use crosstalk_testing::wait::wait_for;
use crosstalk_testing::xvfb::Xvfb;
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A part of a page.
enum Step {
    /// What is only read.
    Prose(String),
    /// A file that is there from here on.
    File {
        head: String,
        name: String,
        content: String,
        fence: String,
    },
    /// The begin or the end of commands.
    Fence(String),
    Command {
        line: String,
        expected: String,
        code: i32,
    },
}

fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let fence: String = line.chars().take_while(|c| *c == '`').collect();
        let info = line.trim_start_matches('`');
        if fence.len() < 3 {
            steps.push(Step::Prose(line.to_owned()));
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|l| *l != fence).collect();
        if let Some((_, file)) = info.split_once("file=") {
            steps.push(Step::File {
                head: line.to_owned(),
                name: file.to_owned(),
                content: block.join("\n") + "\n",
                fence,
            });
        } else if info == "shell-session" {
            steps.push(Step::Fence(line.to_owned()));
            steps.extend(commands(&block));
            steps.push(Step::Fence(fence));
        } else {
            steps.push(Step::Prose(
                [&[line], &block[..], &[&fence]].concat().join("\n"),
            ));
        }
    }
    steps
}

fn commands(block: &[&str]) -> Vec<Step> {
    let mut steps = Vec::new();
    for line in block {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(line), _) => steps.push(Step::Command {
                line: line.to_owned(),
                expected: String::new(),
                code: 0,
            }),
            (None, Some(Step::Command { expected, code, .. })) => match line.strip_prefix("? ") {
                Some(number) => *code = number.parse().unwrap(),
                None => expected.push_str(&format!("{line}\n")),
            },
            (None, _) => panic!("output before a command: {line}"),
        }
    }
    steps
}

/// The words that are other ones each time: ids and their beginnings, and times.
fn is_variable(word: &str) -> bool {
    let is_id = (8..=26).contains(&word.len())
        && word.starts_with("01")
        && word
            .bytes()
            .all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    is_id || is_time(word)
}

fn is_time(word: &str) -> bool {
    word.len() >= 14 && word.starts_with("20") && word.contains('T') && word.ends_with('Z')
}

/// Where the variable words are. What follows a time in a session is one, too.
fn variables(words: &[&str]) -> Vec<bool> {
    let is_session = |at: usize| at >= 4 && words[at - 4] == "session:" && is_time(words[at - 2]);
    (0..words.len())
        .map(|at| is_variable(words[at]) || is_session(at))
        .collect()
}

/// A text in words and what stands between them.
fn words(text: &str) -> Vec<&str> {
    let is_part = |at: usize, c: char| {
        let next = text[at..].chars().nth(1);
        c.is_ascii_alphanumeric()
            || "-:".contains(c)
            || (c == '.' && next.is_some_and(|n| n.is_ascii_digit()))
    };
    let mut out = Vec::new();
    let mut start = 0;
    let mut inside = None;
    for (at, c) in text.char_indices() {
        let part = is_part(at, c);
        if inside.is_some_and(|was| was != part) {
            out.push(&text[start..at]);
            start = at;
        }
        inside = Some(part);
    }
    out.push(&text[start..]);
    out
}

/// A text with one space for several: the room between columns depends on how long the ids are.
fn narrow(text: &str) -> String {
    let mut out = text.to_owned();
    while out.contains("  ") {
        out = out.replace("  ", " ");
    }
    out
}

/// Whether two words are the same id: as many characters of it are shown as it takes to tell it from others.
fn is_same(one: &str, other: &str) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// The ids and times of a page, and the real ones that they stand for.
#[derive(Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// Whether a line of the page stands for a real one; what is met for the first time gets its name.
    pub(crate) fn fits(&mut self, page: &str, real: &str) -> bool {
        let (page, real) = (words(page), words(real));
        let (named, found) = (variables(&page), variables(&real));
        if named != found {
            return false;
        }
        let mut met = Vec::new();
        for ((word, found), is_variable) in page.iter().zip(&real).zip(named) {
            if !is_variable {
                if narrow(word) != narrow(found) {
                    return false;
                }
                continue;
            }
            // Times pass, also from one hour to the next. Only that of a session is a name, which files use.
            if is_time(word) && is_time(found) {
                if page.first() == Some(&"session:") {
                    met.push((word.to_string(), found.to_string()));
                }
                continue;
            }
            match self.0.get(*word) {
                Some(known) if !is_same(known, found) => return false,
                Some(known) if known.len() >= found.len() => {}
                _ => met.push((word.to_string(), found.to_string())),
            }
        }
        self.0.extend(met);
        true
    }

    /// Names what stands in lines that are still the same.
    fn guess(&mut self, page: &str, real: &str) {
        let mut rest: Vec<&str> = real.lines().collect();
        for line in page.lines() {
            if let Some(at) = rest.iter().position(|found| self.fits(line, found)) {
                rest.drain(..=at);
            }
        }
    }

    /// A text with the real words, as long as they were shown.
    fn as_named(&self, text: &str) -> String {
        let put = |word: &str| self.0.get(word).cloned().unwrap_or_else(|| word.to_owned());
        words(text).into_iter().map(put).collect()
    }

    /// A text with the real words; of an id, as much as is known.
    fn put_in(&self, text: &str) -> String {
        let put = |word: &str| match self.0.get(word) {
            Some(real) => {
                let all = self.0.values().filter(|v| v.starts_with(real.as_str()));
                all.max_by_key(|v| v.len()).unwrap_or(real).clone()
            }
            None => word.to_owned(),
        };
        words(text).into_iter().map(put).collect()
    }
}

/// The port that pages write.
const PORT: &str = "127.0.0.1:8799";

/// Something that runs until the page is over.
struct Background(Child);

impl Background {
    /// Starts a relay, and waits until it says where it listens.
    fn start(line: &str, place: &Path, env: &[(&str, &str)]) -> (Self, String) {
        let program = env!("CARGO_BIN_EXE_crosstalk");
        let relay = format!("exec '{program}' serve --listen 127.0.0.1:0");
        let line = line.trim_end_matches('&').trim_end();
        let line = line.replacen("crosstalk serve", &relay, 1);
        let process = Command::new("sh")
            .args(["-c", &line])
            .current_dir(place)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // The page sends its output there.
        let log = place.join("relay.log");
        let port = wait_for(&line, || {
            let log = fs::read_to_string(&log).unwrap_or_default();
            let rest = log.split_once("http://127.0.0.1:")?.1;
            let (port, _) = rest.split_once(|c: char| !c.is_ascii_digit())?;
            Some(format!("127.0.0.1:{port}"))
        });
        (Self(process), port)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until the relay has no delivery to a program left. An answer is with its reader before the relay notes in its log
/// that the program is done.
fn wait_for_programs(port: &str) {
    let Ok(address) = port.parse() else { return };
    wait_for("the programs of the relay", || {
        let metrics = Connection::open(address).ok()?.get("/metrics").ok()?;
        let is_idle = metrics
            .text()
            .contains("crosstalk_deliveries_queued{queue=\"exec\"} 0\n");
        (is_idle || metrics.status != 200).then_some(())
    });
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

/// Plays a page and compares, or gives it with what the program prints now.
fn play(page: &Path, env: &[(&str, &str)], overwrite: bool) -> String {
    let text = fs::read_to_string(page).unwrap();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("api design");
    fs::create_dir(&folder).unwrap();
    let home = place.path().join("home");
    let home = home.to_str().unwrap();
    let mut all = vec![
        ("CROSSTALK_HOME", home),
        ("CROSSTALK_USER", "kalle"),
        ("NO_COLOR", "1"),
    ];
    all.extend(env);
    let mut names = Names::default();
    let mut port = PORT.to_owned();
    let mut running = Vec::new();
    let (mut out, mut played) = (String::new(), 0);
    for step in steps(&text) {
        match step {
            Step::Prose(line) => out.push_str(&format!("{line}\n")),
            Step::Fence(line) => {
                out.truncate(out.trim_end().len());
                let gap = if line.contains("shell-session") {
                    "\n\n"
                } else {
                    "\n"
                };
                out.push_str(&format!("{gap}{line}\n"));
            }
            Step::File {
                head,
                name,
                content,
                fence,
            } => {
                let content = names.put_in(&content);
                fs::write(folder.join(name), content.replace(PORT, &port)).unwrap();
                out.push_str(&format!("{head}\n{content}{fence}\n"));
            }
            Step::Command {
                line,
                expected,
                code,
            } => {
                played += 1;
                let typed = names.put_in(&line).replace(PORT, &port);
                let (real, ended) = match typed.ends_with('&') {
                    true => {
                        let (relay, listens) = Background::start(&typed, &folder, &all);
                        running.push(relay);
                        port = listens;
                        (String::new(), 0)
                    }
                    false => {
                        if typed.starts_with("crosstalk audit") {
                            wait_for_programs(&port);
                        }
                        printed(&typed, &folder, &all)
                    }
                };
                let real = real.replace(&port, PORT);
                if overwrite {
                    names.guess(&expected, &real);
                    let code = if ended == 0 {
                        String::new()
                    } else {
                        format!("? {ended}\n")
                    };
                    let typed = names.as_named(&line);
                    out.push_str(&format!("$ {typed}\n{code}{}\n\n", real.trim_end()));
                    continue;
                }
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
    out
}

/// Whether pages and pictures are written anew instead of compared.
pub(crate) fn wants_new_pages() -> bool {
    std::env::var_os("STORY").is_some_and(|v| v == "overwrite")
}

/// Plays a page with a real clipboard.
fn tell(page: &str) {
    let page = folder(page);
    let screen = Xvfb::start();
    let env = [("DISPLAY", screen.display()), ("WAYLAND_DISPLAY", "")];
    let told = play(&page, &env, wants_new_pages());
    if wants_new_pages() {
        fs::write(&page, told).unwrap();
    }
}

#[test]
fn the_stories_of_the_readme_are_as_it_tells() {
    tell("../../README.md");
}

#[test]
fn the_guide_to_conversations_is_as_it_tells() {
    tell("../../docs/guide/conversations.md");
}

#[test]
fn the_guide_to_consent_is_as_it_tells() {
    tell("../../docs/guide/consent.md");
}

#[test]
fn the_guide_to_relays_is_as_it_tells() {
    tell("../../docs/guide/relay.md");
}

#[test]
fn the_guide_to_the_api_is_as_it_tells() {
    tell("../../docs/guide/api.md");
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
