//! Settings in a person's own file, and what an editor does to them.

use crate::run::{Home, folder};
use serde_json::Value;

const MINE: &str = "# mine\nuser = \"kalle\" # me\ncontext = \"tests\"\nbanana = 1\nsginer = true\n\n[names] # people\n\
    CLAUDE = \"claude://a\"\n\n[profile.work]\nuser = \"anna\"\n";

fn home(name: &str, text: &str) -> Home {
    let home = Home::new(name);
    std::fs::create_dir_all(home.path("crosstalk")).unwrap();
    write(&home, text);
    home
}

fn write(home: &Home, text: &str) {
    let file = home.path("crosstalk/config.toml");
    std::fs::write(&file, text).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

fn file(home: &Home) -> String {
    std::fs::read_to_string(home.path("crosstalk/config.toml")).unwrap()
}

/// Where a failed edit left the text, out of what was said about it.
fn kept(said: &str) -> String {
    let path = said.split("your text is in `").nth(1);
    let path = path.and_then(|p| p.split('`').next()).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::remove_file(path).unwrap();
    text
}

/// The page is written by hand; the table of the program decides what has to stand there.
#[test]
fn every_setting_stands_in_the_documentation() {
    let shown = Home::new("config-page")
        .run(&["config", "show", "--json"], "")
        .out;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let page = std::fs::read_to_string(folder("../../docs/cli.md")).unwrap();
    let settings = shown["settings"].as_array().unwrap();
    assert!(settings.len() >= 17);
    for setting in settings {
        let row = format!("| `{}` | ", setting["key"].as_str().unwrap());
        assert!(page.contains(&row), "{row}");
    }
}

#[test]
fn what_is_not_known_is_told_and_does_no_harm() {
    let home = home("config-unknown", MINE);
    let ended = home.run(&["config", "get", "user"], "");
    assert_eq!((ended.code, ended.out.as_str()), (0, "kalle\n"));
    let lines: Vec<&str> = ended.err.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].ends_with("line 4: there is no setting `banana`"));
    assert!(lines[1].contains("line 5: there is no setting `sginer`"));

    let ended = home.run(&["config", "show", "--json"], "");
    assert_eq!(ended.err, "");
    let value: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(value["warnings"].as_array().unwrap().len(), 2);
}

#[test]
fn a_wrong_file_is_an_error_with_its_line_for_every_command_that_reads_it() {
    let home = home("config-wrong", "user = \"k\"\nsign = \"yes\"\n");
    for arguments in [
        &["config", "show"][..],
        &["config", "get", "user"],
        &["name"],
        &["address", "resolve", "X"],
        &["config", "set", "user", "x"],
        &["name", "X", "claude://x"],
    ] {
        let ended = home.run(arguments, "");
        assert_eq!(ended.code, 12, "{arguments:?}: {}", ended.err);
        let said = "line 2: `sign` is `yes`, and has to be true or false";
        assert!(ended.err.contains(said), "{arguments:?}: {}", ended.err);
    }
    assert!(file(&home).contains("user = \"k\""));
    // What is wrong can be set right.
    assert_eq!(home.run(&["config", "set", "sign", "true"], "").code, 0);
    assert_eq!(file(&home), "user = \"k\"\nsign = true\n");
    write(&home, "user =\n");
    let ended = home.run(&["config", "set", "user", "x"], "");
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("config edit"), "{}", ended.err);
    assert_eq!(file(&home), "user =\n");
}

#[test]
fn a_change_leaves_the_rest_alone() {
    let home = home("config-change", MINE);
    for (key, value) in [
        ("user", "bo"),
        ("names.claude", "claude://b"),
        ("profile.work.user", "eva"),
    ] {
        let ended = home.run(&["config", "set", key, value], "");
        assert_eq!(ended.code, 0, "{key}: {}", ended.err);
        let told = format!("Set {key} to `{value}` in ");
        assert!(ended.err.starts_with(&told), "{key}: {}", ended.err);
    }
    let expected = MINE.replace("kalle", "bo");
    let expected = expected.replace("//a", "//b").replace("anna", "eva");
    assert_eq!(file(&home), expected);
    assert_eq!(home.run(&["config", "unset", "names.Claude"], "").code, 0);
    assert_eq!(
        file(&home),
        expected.replace("CLAUDE = \"claude://b\"\n", "")
    );
}

#[test]
#[cfg(unix)]
fn a_file_that_others_can_change_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home("config-exposed", "editor = \"vi\"\n");
    let path = home.path("crosstalk/config.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let ended = home.run(&["config", "show"], "");
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("others on this machine"),
        "{}",
        ended.err
    );
}

#[test]
#[cfg(unix)]
fn an_edited_text_takes_the_place_of_the_file_only_if_it_can_be_read() {
    let home = home("config-edit", MINE);
    let edit = |editor: &str| {
        home.run_with(
            &[("VISUAL", ""), ("EDITOR", editor)],
            &["config", "edit"],
            "",
        )
    };

    let ended = edit("sed -i s/kalle/bo/");
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    let now = MINE.replace("kalle", "bo");
    assert_eq!(file(&home), now);

    let ended = edit("true");
    assert_eq!(ended.err, "nothing was changed\n");

    let ended = edit("sed -i 's/\"tests\"/tests/'");
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("line 3: this is not TOML"),
        "{}",
        ended.err
    );
    assert!(kept(&ended.err).contains("context = tests"));
    assert_eq!(file(&home), now);

    // The editor fails after it wrote something.
    let ended = edit("sh -c 'echo half > \"$1\"; exit 3' x");
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.contains("ended with exit code 3"),
        "{}",
        ended.err
    );
    assert_eq!(kept(&ended.err), "half\n");
    assert_eq!(file(&home), now);

    // Somebody else changes the file meanwhile.
    let path = home.path("crosstalk/config.toml");
    let other = format!("sh -c 'echo sign = true > \"$1\"; echo pin = true > {path:?}' x");
    let ended = edit(&other);
    assert_eq!(ended.code, 1);
    assert!(ended.err.contains("meanwhile"), "{}", ended.err);
    assert_eq!(kept(&ended.err), "sign = true\n");
    assert_eq!(file(&home), "pin = true\n");

    // The setting comes before the variables, and settings that can't be read can be repaired.
    write(
        &home,
        "editor = \"sed -i s/kalle/eva/\"\nuser = \"kalle\"\n",
    );
    assert_eq!(edit("false").code, 0);
    assert!(file(&home).contains("user = \"eva\""));
    write(&home, "user = 3\n");
    assert_eq!(edit("sed -i s/3/\"'k'\"/").code, 0);
    assert_eq!(file(&home), "user = 'k'\n");
}

#[test]
#[cfg(unix)]
fn git_says_who_somebody_is_and_the_login_name_does_if_it_does_not() {
    let home = Home::new("config-git");
    let git = home.path("gitconfig");
    std::fs::write(&git, "[user]\n\tname = Kalle Svensson\n").unwrap();
    let nothing = home.path("nothing");
    std::fs::write(&nothing, "").unwrap();
    let ask = |file: &std::path::Path, key: &str| {
        let environment = [
            ("GIT_CONFIG_GLOBAL", file.to_str().unwrap()),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_DIR", "/nonexistent"),
            ("USER", "Anna"),
        ];
        home.run_with(&environment, &["config", "get", key], "").out
    };
    assert_eq!(ask(&git, "user"), "kalle\n");
    assert_eq!(ask(&git, "sender"), "KALLE\n");
    assert_eq!(ask(&nothing, "user"), "anna\n");
}
