//! Every command line that the program tells people to type is one that it takes.

use crate::run::folder;
use clap::error::ErrorKind;
use std::fs;
use std::path::{Path, PathBuf};

/// The Rust files below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// A command line in a text of the program.
#[derive(Debug)]
struct Hint {
    line: String,
    /// Where it stands.
    place: String,
    /// Whether people are told to type it: not in comments, and not where the form of an answer is described.
    is_told: bool,
}

/// The commands in backticks of a source file.
fn hints(path: &Path) -> Vec<Hint> {
    let source = fs::read_to_string(path).unwrap();
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let is_form = path.components().any(|c| {
        let name = c.as_os_str().to_string_lossy();
        name == "schema" || name == "schema.rs"
    });
    let mut found = Vec::new();
    for (at, start) in source.match_indices("`crosstalk ") {
        let rest = &source[at + 1..];
        // Which command it is, the program finds out among those that there are.
        if source[at + start.len()..].starts_with('{') {
            continue;
        }
        let Some(end) = rest.find('`') else { continue };
        let before = source[..at].rsplit('\n').next().unwrap().trim_start();
        let is_comment = before.starts_with("//");
        let mut line = String::new();
        for part in rest[..end].lines() {
            let part = part
                .trim_start()
                .trim_start_matches("///")
                .trim_start_matches("//!");
            line.push_str(part.trim_start().trim_end_matches('\\'));
            line.push(if part.ends_with('\\') || !is_comment {
                '\0'
            } else {
                ' '
            });
        }
        let line = line.replace('\0', "").replace("\\\"", "\"");
        let number = source[..at].lines().count();
        found.push(Hint {
            line: line.trim().to_owned(),
            place: format!("{}:{number}", path.display()),
            is_told: !is_comment && !is_form,
        });
    }
    // Commands that get the options of a relay: `data.command("token list")`, and those of its start.
    for (at, start) in source.match_indices("command(\"") {
        let words = source[at + start.len()..].split('"').next().unwrap();
        let is_start = words.is_empty() || words.starts_with("--");
        let number = source[..at].lines().count();
        found.push(Hint {
            line: format!("crosstalk {}{words}", if is_start { "serve " } else { "" }),
            place: format!("{}:{number}", path.display()),
            is_told: true,
        });
    }
    found
}

/// Something for each thing that a hint leaves open.
fn filled(word: &str) -> String {
    let mut word = word.to_owned();
    if word == "{url}" {
        return filled("URL");
    }
    // What stands right behind a word is not always there.
    if let Some(start) = word.find('{').filter(|start| *start > 0) {
        word.truncate(start);
    }
    while let (Some(start), Some(end)) = (word.find('{'), word.find('}')) {
        word.replace_range(start..=end, "01K74V8QF8");
    }
    match word.as_str() {
        "…" | "TEXT" => "some words".to_owned(),
        "URL" => "https://relay.example".to_owned(),
        "TIME" => "2027-01-01T00:00:00Z".to_owned(),
        "SECONDS" | "N" => "5".to_owned(),
        _ => word.replace("sha256:2cf24dba…", &format!("sha256:{}", "0".repeat(64))),
    }
}

/// The words of a command line, as a shell would split them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), String::new(), None);
    let mut is_word = false;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                is_word = true;
            }
            (None, ' ') if is_word => {
                words.push(filled(&std::mem::take(&mut word)));
                is_word = false;
            }
            (None, ' ') => {}
            _ => {
                word.push(c);
                is_word = true;
            }
        }
    }
    if is_word {
        words.push(filled(&word));
    }
    words
}

/// Why a command line is not one; nothing if it is.
fn fault(line: &str, is_told: bool) -> Option<String> {
    let fault = crosstalk_cli::command()
        .try_get_matches_from(words(line))
        .err()?;
    let is_fine = match fault.kind() {
        // A command with commands of its own shows them.
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        // A command that is only named needs no arguments.
        ErrorKind::MissingRequiredArgument => !is_told,
        _ => false,
    };
    (!is_fine).then(|| {
        fault
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

#[test]
fn every_hint_can_be_followed() {
    let mut faults = Vec::new();
    let mut number = 0;
    for crate_ in fs::read_dir(folder("..")).unwrap() {
        for path in sources(&crate_.unwrap().path().join("src")) {
            for hint in hints(&path) {
                for line in hint.line.split(" | ") {
                    number += 1;
                    if let Some(why) = fault(line, hint.is_told) {
                        faults.push(format!("{}: `{line}`: {why}", hint.place));
                    }
                }
            }
        }
    }
    assert!(number > 150, "{number}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_example_of_the_help_can_be_called() {
    let mut faults = Vec::new();
    let mut open = vec![crosstalk_cli::command()];
    let mut number = 0;
    while let Some(command) = open.pop() {
        open.extend(
            command
                .get_subcommands()
                .filter(|c| !c.is_hide_set())
                .cloned(),
        );
        let help = command.get_after_help().map(ToString::to_string);
        let help = help.unwrap_or_default();
        for line in help.lines().filter_map(|l| l.strip_prefix("  ")) {
            let ends = [" # ", "  #", " | ", " > ", " < ", " && ", "$("];
            let end = ends.iter().filter_map(|e| line.find(e)).min();
            let line = line[..end.unwrap_or(line.len())].trim_end();
            if line.starts_with("crosstalk ") {
                number += 1;
                let why = fault(line, true);
                faults.extend(why.map(|why| format!("{}: `{line}`: {why}", command.get_name())));
            }
        }
    }
    assert!(number > 100, "{number}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
