//! No line for people is wider than the terminal.

use crate::run::{Ended, Home};
use unicode_width::UnicodeWidthStr as _;

/// Every line of a text that is wider than the terminal.
fn wide(text: &str, columns: usize) -> Vec<&str> {
    text.lines().filter(|l| l.width() > columns).collect()
}

fn answer(lines: &str, body: &str) -> String {
    format!(
        "[[CHATGPT=>KALLE v1]]\n**User:** chatgpt\n**Context:** ports\nIntent: respond\n{lines}body: |\n{body}\n"
    )
}

/// A home in which something of everything is kept.
fn home(columns: usize) -> Home {
    let home = Home::new(&format!("width-{columns}"));
    let config = home.path("crosstalk");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(
        config.join("config.toml"),
        "user = \"kalle\"\nclipboard = \"none\"\n",
    )
    .unwrap();
    home
}

#[test]
fn no_line_passes_the_width_of_the_terminal() {
    for columns in [40, 60, 80] {
        let home = home(columns);
        let width = columns.to_string();
        let run = |arguments: &[&str], stdin: &str| -> Ended {
            home.run_with(&[("COLUMNS", &width)], arguments, stdin)
        };
        let check = |what: &str, text: &str| {
            let wide = wide(text, columns);
            assert!(wide.is_empty(), "{what} at {columns}: {wide:#?}");
        };
        let words = "Which port does the API use, and where is that written down so that everybody can find it?";
        let long = "8443 ".repeat(40) + &"x".repeat(120);
        let whole = answer("", &format!("  {long}\nsig: none\n[[END]]"));
        let cut = answer("", &long);
        let plain = "Just 8443.";
        // What a command is asked, what it reads, and whether its stdout is an envelope or another text for programs.
        let commands: &[(&[&str], &str, bool)] = &[
            (&["send", "chatgpt", words], "", true),
            (&["send", "claude", words], "", true),
            (&["paste", "-"], &cut, false),
            (&["paste", "-", "--accept-truncated"], &cut, false),
            (&["paste", "-"], &whole, false),
            (&["paste", "-"], &whole, false),
            (&["paste", "-"], plain, false),
            (&["paste", "-", "--as-reply-to", "last"], plain, false),
            (&["paste", "-", "--as-reply-to", "last"], plain, false),
            (&["send", "chatgpt", words], "", true),
            (&["paste", "-", "--as-reply-to", "last"], &whole, false),
            (&["paste", "-"], "no envelope at all", false),
            (&["threads"], "", false),
            (&["inbox"], "", false),
            (&["search", "port"], "", false),
            (&["show", "last"], "", false),
            (&["show", "last", "--full"], "", false),
            (
                &[
                    "show",
                    "nothing-of-this-name-is-kept-here-at-all-or-anywhere",
                ],
                "",
                false,
            ),
            (&["move", "last", "--back"], "", false),
            (
                &["consent", "grant", "--from", "chatgpt", "--scope", "share"],
                "",
                true,
            ),
            (&["consent", "list"], "", false),
            (&["key", "new", "--no-passphrase"], "", false),
            (&["key", "list"], "", false),
            (&["trust", "list"], "", false),
            (
                &[
                    "name",
                    "add",
                    "boss",
                    "human://example.com/somebody-with-a-long-name",
                ],
                "",
                false,
            ),
            (&["name"], "", false),
            (&["config", "show"], "", false),
            (&["fsck"], "", false),
            (&["lint", "-"], &cut, false),
            (&["parse", "-"], &whole, false),
            (&["verify", "-"], &whole, false),
            (&["explain", "ENV-052"], "", false),
            (&["--help"], "", false),
            (&["paste", "--help"], "", false),
            (&["verify", "--help"], "", false),
            (&["pst"], "", false),
            (&["paste", "--no-such-flag-at-all"], "", false),
        ];
        for (arguments, stdin, is_data) in commands {
            let ended = run(arguments, stdin);
            let what = arguments.join(" ");
            check(&what, &ended.err);
            if !is_data {
                check(&what, &ended.out);
            }
        }
        let thread = run(&["threads", "--json"], "").out;
        let thread: serde_json::Value = serde_json::from_str(&thread).unwrap();
        let thread = thread["threads"][0]["id"].as_str().unwrap();
        check("show THREAD", &run(&["show", thread], "").out);
    }
}

/// A pipe without a width gets whole lines: other programs go by them.
#[test]
fn lines_stay_whole_in_a_pipe() {
    let home = home(0);
    home.run(&["send", "chatgpt", "Which port?"], "");
    let long = "8443 ".repeat(40);
    let whole = answer("", &format!("  {long}\nsig: none\n[[END]]"));
    let ended = home.run(&["paste", "-"], &whole);
    assert!(ended.out.contains(long.trim_end()), "{}", ended.out);
}
