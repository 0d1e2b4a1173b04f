//! `crosstalk setup` changes one entry of a client's settings, and nothing else.

use crate::run::{Ended, Home};
use std::fs;

fn setup(home: &Home, arguments: &[&str]) -> Ended {
    let scratch = home.path(".");
    let environment = [
        ("HOME", scratch.to_str().unwrap()),
        ("XDG_CONFIG_HOME", ""),
        ("CLAUDE_CONFIG_DIR", ""),
        ("CODEX_HOME", ""),
    ];
    home.run_with(&environment, &[&["setup"], arguments].concat(), "")
}

const FILES: [(&str, &str); 5] = [
    (
        ".claude.json",
        "{\n  \"numStartups\": 3, // mine\n  \"mcpServers\": {\n    \"other\": {\"command\": \"x\"}\n  }\n}\n",
    ),
    (
        ".codex/config.toml",
        "# mine\nmodel = \"m\" # the best\n\n[mcp_servers.other]\ncommand = \"x\"\n",
    ),
    (
        ".gemini/settings.json",
        "{\n\t// mine\n\t\"theme\": \"x\",\n}\n",
    ),
    (".cursor/mcp.json", "{}"),
    (
        ".config/Code/User/mcp.json",
        "{\"servers\": {}, /* mine */ \"inputs\": []}",
    ),
];

fn write(home: &Home, path: &str, text: &str) {
    let path = home.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn settings_keep_everything_but_the_entry() {
    let home = Home::new("setup-all");
    for (path, text) in FILES {
        write(&home, path, text);
    }
    let ended = setup(&home, &["--yes"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let mut first = Vec::new();
    for (path, text) in FILES {
        let after = fs::read_to_string(home.path(path)).unwrap();
        assert!(
            after.contains("crosstalk") && after.contains("mcp"),
            "{path}: {after}"
        );
        for part in [
            "mine",
            "the best",
            "\"other\"",
            "numStartups",
            "inputs",
            "theme",
        ] {
            assert_eq!(
                text.contains(part),
                after.contains(part),
                "{path}: {part}: {after}"
            );
        }
        assert!(
            ended
                .err
                .contains(&format!("{}", home.path(path).display()))
                || ended.err.contains(path),
            "{}",
            ended.err
        );
        first.push(after);
    }
    let again = setup(&home, &["--yes"]);
    assert_eq!(
        again.err.matches("is set up already").count(),
        5,
        "{}",
        again.err
    );
    for ((path, _), before) in FILES.iter().zip(&first) {
        assert_eq!(fs::read_to_string(home.path(path)).unwrap(), *before);
    }
    let removed = setup(&home, &["--remove", "--yes"]);
    assert_eq!(removed.code, 0, "{}", removed.err);
    for (path, text) in FILES {
        let after = fs::read_to_string(home.path(path)).unwrap();
        assert!(!after.contains("crosstalk"), "{path}: {after}");
        if path.contains("codex") {
            assert_eq!(after.trim_end(), text.trim_end());
        }
    }
}

#[test]
fn settings_that_cant_be_read_stay_as_they_are() {
    let home = Home::new("setup-broken");
    let broken = [
        (".claude.json", "{\"mcpServers\": [] }"),
        (".codex/config.toml", "model = \n"),
        (".gemini/settings.json", "{ <<<<<<< HEAD\n}"),
    ];
    for (path, text) in broken {
        write(&home, path, text);
    }
    write(&home, ".cursor/mcp.json", "{}");
    let ended = setup(&home, &["claude", "codex", "gemini", "cursor", "--yes"]);
    assert_ne!(ended.code, 0);
    assert_eq!(
        ended.err.matches("nothing was changed").count(),
        3,
        "{}",
        ended.err
    );
    for (path, text) in broken {
        assert_eq!(fs::read_to_string(home.path(path)).unwrap(), text);
    }
    // Each failure names its file.
    for (path, _) in broken {
        assert!(ended.err.contains(path), "{path}: {}", ended.err);
    }
    // The one that can be read is set up.
    assert!(
        fs::read_to_string(home.path(".cursor/mcp.json"))
            .unwrap()
            .contains("crosstalk")
    );
}

#[test]
fn nothing_is_written_without_a_yes() {
    let home = Home::new("setup-ask");
    let ended = setup(&home, &["claude"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.err.contains("+") && ended.err.contains("--yes"),
        "{}",
        ended.err
    );
    assert!(!home.path(".claude.json").exists());
    let none = setup(&home, &["--remove"]);
    assert!(none.code == 1 || none.code == 0, "{}", none.err);
}

#[test]
fn clients_with_other_messages_are_named() {
    let home = Home::new("setup-homes");
    assert_eq!(setup(&home, &["claude", "--yes"]).code, 0);
    let same = setup(&home, &["cursor", "--yes"]);
    assert!(!same.err.contains("another CROSSTALK_HOME"), "{}", same.err);
    let scratch = home.path(".");
    let environment = [
        ("HOME", scratch.to_str().unwrap()),
        ("CLAUDE_CONFIG_DIR", ""),
        ("CODEX_HOME", ""),
        ("CROSSTALK_HOME", home.path("other").to_str().unwrap()),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let environment = environment
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    let other = home.run_with(&environment, &["setup", "codex", "--yes"], "");
    let count = other.err.matches("has another CROSSTALK_HOME").count();
    assert_eq!(count, 2, "Claude Code and Cursor: {}", other.err);
}

#[cfg(unix)]
#[test]
fn a_linked_file_stays_a_link_with_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new("setup-link");
    write(&home, "dotfiles/claude.json", "{}\n");
    let real = home.path("dotfiles/claude.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&real, home.path(".claude.json")).unwrap();
    assert_eq!(setup(&home, &["claude", "--yes"]).code, 0);
    assert!(
        fs::symlink_metadata(home.path(".claude.json"))
            .unwrap()
            .is_symlink()
    );
    assert!(fs::read_to_string(&real).unwrap().contains("crosstalk"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o600
    );
}
