//! Help, completions and manual pages.

use crate::run::{folder, run};
use crosstalk_testing::folder::Folder;

/// All commands that people call, with the words that lead to them.
fn commands() -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![(Vec::new(), crosstalk_cli::command())];
    while let Some((words, command)) = open.pop() {
        for inner in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            let mut path: Vec<String> = words.clone();
            path.push(inner.get_name().to_owned());
            open.push((path.clone(), inner.clone()));
            found.push(path);
        }
    }
    found
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let commands = commands();
    assert!(commands.len() >= 35);
    for path in commands {
        let mut arguments: Vec<&str> = path.iter().map(String::as_str).collect();
        arguments.push("--help");
        let ended = run(&arguments, "");
        assert_eq!(ended.code, 0);
        let example = format!("  crosstalk {}", path.join(" "));
        assert!(ended.out.contains("\nExample"), "{path:?}");
        assert!(ended.out.contains(&example), "{path:?}: {}", ended.out);
        assert!(
            ended.out.lines().all(|l| l.chars().count() <= 100),
            "{path:?}"
        );
    }
}

#[test]
fn exit_codes_stand_in_the_help_after_the_commands_and_in_the_documentation() {
    let help = run(&["--help"], "").out;
    let page = std::fs::read_to_string(folder("../../docs/cli.md")).unwrap();
    let codes = help.split_once("\nExit codes:\n").unwrap().1;
    assert!(help.find("\nConversations:\n").unwrap() < help.find("\nExit codes:\n").unwrap());
    for code in crosstalk_envelope::ErrorCode::ALL {
        let number = code.exit_code();
        assert!(codes.contains(&format!("  {number}  {code}: ")), "{code}");
        assert!(page.contains(&format!("| {number} | {code} |")), "{code}");
    }
    for word in crosstalk_protocol::VerdictWord::ALL {
        let (number, name) = (word.exit_code(), word.as_str());
        assert!(page.contains(&format!("| {number} | {name} |")), "{name}");
        let help = run(&["verify", "--help"], "").out;
        assert!(help.contains(&format!("{number:>2}  {name}")), "{name}");
    }
    for path in commands() {
        assert!(
            page.contains(&format!("crosstalk {}", path.join(" "))),
            "{path:?}"
        );
    }
}

#[test]
fn every_shell_gets_its_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let ended = run(&["completions", shell], "");
        assert_eq!(ended.code, 0, "{shell}");
        for word in [
            "parse",
            "doctor",
            "canonical",
            "deny-warnings",
            "rotate",
            "require-dnssec",
        ] {
            assert!(ended.out.contains(word), "{shell}: {word}");
        }
    }
    assert_eq!(run(&["completions", "tcsh"], "").code, 2);
}

#[test]
fn every_command_has_a_manual_page() {
    let page = run(&["man"], "").out;
    assert!(
        page.contains(".TH crosstalk 1") && page.contains("E\\-TOO\\-LARGE"),
        "{page}"
    );
    let place = Folder::new("man");
    let out = place.path().join("man");
    let ended = run(&["man", "--out", out.to_str().unwrap()], "");
    assert_eq!((ended.code, ended.out.as_str()), (0, ""));
    for path in commands() {
        let file = out.join(format!("crosstalk-{}.1", path.join("-")));
        let page = std::fs::read_to_string(&file).unwrap();
        assert!(page.contains("Example"), "{file:?}");
    }
}
