//! Conversations on a real terminal: at two widths, with hostile texts, and with an editor.

use crate::run::Home;
use crosstalk_testing::tmux::Tmux;
use crosstalk_testing::xvfb::Xvfb;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use unicode_width::UnicodeWidthStr as _;

/// A terminal in a home of its own, with the program on its path.
fn terminal(home: &Home, columns: u16, rows: u16, more: &[(&str, &str)]) -> Tmux {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_crosstalk"));
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let kept = home.path("crosstalk");
    let mut env = vec![
        ("PATH", path.as_str()),
        ("CROSSTALK_HOME", kept.to_str().unwrap()),
        ("CROSSTALK_USER", "kalle"),
        ("CROSSTALK_CLIPBOARD", "none"),
    ];
    env.extend(more);
    Tmux::start_with(columns, rows, &env)
}

fn paste(home: &Home, text: &str) {
    let ended = home.run_with(&[("CROSSTALK_USER", "kalle")], &["paste", "-"], text);
    assert_eq!(ended.code, 0, "{}", ended.err);
}

fn envelope(body: &str) -> String {
    let lines: String = body.lines().map(|l| format!("  {l}\n")).collect();
    format!(
        "[[CLAUDE→KALLE v1]]\nuser: kalle\nsession: 2025-10-09T16Z abc123\nthread: 01K74V6R0074G0T7MAHPXVDNXW\n\
         message: 01K74V6VX0S86Z5JATM52C3M7Z\ncontext: a terminal of any width\nintent: REQUEST\nbody: |\n{lines}sig: none\n[[END]]\n"
    )
}

/// Runs a command and gives the screen when it is done: it ends with a line of its own, another one each time.
fn run(terminal: &Tmux, line: &str) -> String {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    terminal.type_text(&format!("clear; {line}; echo DO''NE{number}.\n"));
    let mark = format!("DONE{number}.");
    let screen = terminal.wait_for(&mark);
    screen
        .lines()
        .take_while(|l| *l != mark)
        .map(|l| format!("{l}\n"))
        .collect()
}

#[test]
fn a_conversation_fits_the_terminal() {
    let home = Home::new("widths");
    let words = "Every word of this line should be there, whatever the width of the terminal is. "
        .repeat(3);
    paste(
        &home,
        &envelope(&format!(
            "{}\n\n    fn main() {{}}\n日本語のテキスト",
            words.trim_end()
        )),
    );
    for columns in [80, 200] {
        let terminal = terminal(&home, columns, 50, &[]);
        for command in [
            "crosstalk show 01K74V6VX0S86Z5JATM52C3M7Z",
            "crosstalk show 01K74V6R0074G0T7MAHPXVDNXW",
            "crosstalk threads",
            "crosstalk inbox",
            "crosstalk waiting",
            "crosstalk search width",
        ] {
            let screen = run(&terminal, command);
            let widest = screen.lines().map(|l| l.width()).max().unwrap();
            assert!(
                widest <= columns.into(),
                "{command} at {columns}:\n{screen}"
            );
            // The terminal broke no line: each begins where we began one.
            let is_ours = |l: &str| {
                !l.trim_start().starts_with("width of the") || l.contains('┆') || l.contains('│')
            };
            assert!(
                screen.lines().all(is_ours),
                "{command} at {columns}:\n{screen}"
            );
        }
        let screen = run(&terminal, "crosstalk show 01K74V6VX0S86Z5JATM52C3M7Z");
        let rule = screen.lines().find(|l| l.starts_with('─')).unwrap();
        assert_eq!(rule.width(), usize::from(columns), "{screen}");
        let title = screen
            .lines()
            .find(|l| l.starts_with("CLAUDE → KALLE  [REQUEST]"));
        let title = title.unwrap_or_else(|| panic!("{screen}"));
        let (before, age) = title.rsplit_once(" · ").unwrap();
        assert!(before.ends_with("○ unsigned"), "{screen}");
        assert!(age == "just now" || age.ends_with(" min ago"), "{screen}");
        assert_eq!(title.width(), usize::from(columns), "{screen}");
        let body: Vec<&str> = screen
            .lines()
            .filter(|l| l.starts_with(['│', '┆']))
            .collect();
        let joined: String = body
            .iter()
            .map(|l| l.chars().skip(2).collect::<String>())
            .collect::<Vec<_>>()
            .join("");
        assert!(
            joined.replace(' ', "").contains(&words.replace(' ', "")),
            "{screen}"
        );
        assert!(
            body.contains(&"│     fn main() {}") && body.contains(&"│ 日本語のテキスト"),
            "{screen}"
        );
    }
}

#[test]
fn a_hostile_text_does_no_harm_to_the_screen() {
    let home = Home::new("hostile-screen");
    let long = "x".repeat(10_000);
    let wide = "漢".repeat(5_000);
    let body = format!(
        "red \\u{{1b}} \u{202e}desrever\u{202c} \u{2066}isolated\u{2069}\n{long}\n{wide}\ntag\u{e0041}\u{e0042} zero\u{200b}width\n\
         e{}\n[[END]]\n$ rm -rf /\nlast line",
        "\u{301}".repeat(300)
    );
    paste(&home, &envelope(&body));
    // Escape sequences can't be in an envelope: the reading takes them out, and says so.
    let raw = envelope("clear \u{1b}[2J\u{1b}[31m\u{9b}5m\u{7}screen").replace("C3M7Z", "C3M8Z");
    let ended = home.run_with(&[("CROSSTALK_USER", "kalle")], &["paste", "-"], raw);
    assert!(
        !ended.out.contains(['\u{1b}', '\u{9b}', '\u{7}']),
        "{:?}",
        ended.out
    );
    for columns in [80, 200] {
        let terminal = terminal(&home, columns, 60, &[]);
        run(&terminal, "echo before");
        for command in [
            "crosstalk show 01K74V6VX0S86Z5JATM52C3M7Z",
            "crosstalk show 01K74V6R0074G0T7MAHPXVDNXW --full",
            "crosstalk show 01K74V6VX0S86Z5JATM52C3M7Z --envelope",
            "crosstalk show 01K74V6VX0S86Z5JATM52C3M7Z --json",
            "crosstalk inbox",
        ] {
            let screen = run(&terminal, command);
            assert!(
                screen.lines().all(|l| l.width() <= columns.into()),
                "{command}:\n{screen}"
            );
            let hidden = |c: char| {
                crosstalk_envelope::unicode::is_hidden(c) || (c.is_control() && c != '\n')
            };
            assert!(!screen.contains(hidden), "{command}: {screen:?}");
        }
        // The end of the long message: every line of it stands behind the bar.
        let screen = run(&terminal, "crosstalk show 01K74V6VX0S86Z5JATM52C3M7Z");
        let rows: Vec<&str> = screen.lines().collect();
        assert!(rows.len() > 20, "{screen}");
        assert!(rows.iter().all(|l| l.starts_with(['│', '┆'])), "{screen}");
        assert!(
            screen.contains("│ [[END]]\n│ $ rm -rf /\n│ last line"),
            "{screen}"
        );
        let screen = run(&terminal, "echo after");
        assert!(screen.contains("after"), "{screen}");
    }
}

/// A terminal is sent nothing that it would act on or hide, and a program gets every byte.
#[test]
fn texts_are_escaped_for_a_terminal_and_exact_for_a_program() {
    let home = Home::new("raw-texts");
    let plain = "before \u{1b}[2J\u{1b}]0;owned\u{7}after \u{202e}abc\u{e0041}\n";
    std::fs::write(home.path("plain.txt"), plain).unwrap();
    let deceiving = "over \u{202e}abc\u{2066} and \u{e0041}\u{e0042}";
    let message = envelope(deceiving)
        .replace("user: kalle", "user:kalle")
        .replace("a terminal of any width", deceiving);
    std::fs::write(home.path("message.txt"), &message).unwrap();
    let hidden =
        |c: char| crosstalk_envelope::unicode::is_hidden(c) || (c.is_control() && c != '\n');
    let terminal = terminal(&home, 120, 40, &[]);
    run(&terminal, &format!("cd {}", home.path("").display()));
    for (command, shown) in [
        (
            "redact plain.txt",
            r"before \u{1b}[2J\u{1b}]0;owned\u{7}after \u{202e}abc\u{e0041}",
        ),
        (
            "redact message.txt",
            r"over \u{202e}abc\u{2066} and \u{e0041}\u{e0042}",
        ),
        (
            "fmt message.txt",
            r"over \u{202e}abc\u{2066} and \u{e0041}\u{e0042}",
        ),
        (
            "canonical message.txt",
            r"over \u{202e}abc\u{2066} and \u{e0041}\u{e0042}",
        ),
    ] {
        let screen = run(&terminal, &format!("crosstalk {command}"));
        assert!(screen.contains(shown), "{command}: {screen}");
        assert!(!screen.contains(hidden), "{command}: {screen:?}");
    }
    let exact = |args: &[&str]| home.run(args, "").out;
    let (plain_file, file) = (home.path("plain.txt"), home.path("message.txt"));
    let (plain_file, file) = (plain_file.to_str().unwrap(), file.to_str().unwrap());
    assert_eq!(exact(&["redact", plain_file]), plain);
    assert_eq!(exact(&["redact", file]), message);
    let formed = exact(&["fmt", file]);
    assert_eq!(formed, message.replace("user:kalle", "user: kalle"));
    let canonical = exact(&["canonical", file]);
    assert!(
        canonical.contains(&format!("context: {deceiving}\n")),
        "{canonical:?}"
    );
}

#[test]
fn a_message_is_written_and_answered_in_an_editor() {
    let home = Home::new("editor-flow");
    let screen = Xvfb::start();
    let env = [
        ("VISUAL", "vi"),
        ("DISPLAY", screen.display()),
        ("CROSSTALK_CLIPBOARD", "system"),
    ];
    let terminal = terminal(&home, 80, 40, &env);
    terminal.type_text("crosstalk send claude --context editor\n");
    terminal.wait_for("~");
    terminal.type_text("iWhich port?\n\n    code");
    terminal.send_keys(&["Escape"]);
    terminal.type_text(":wq\n");
    let shown = terminal.wait_for("Kept as");
    assert!(shown.contains("  Which port?\n\n      code\n"), "{shown}");
    let copied = String::from_utf8(screen.pasted()).unwrap();
    assert!(
        copied.contains("\n  Which port?\n\n      code\nsig: none\n[[END]]\n"),
        "{copied}"
    );
    paste(&home, &envelope("Which host?"));
    terminal.type_text("clear; crosstalk reply\n");
    let editor = terminal.wait_for(">8");
    assert!(editor.contains("Which host?"), "{editor}");
    terminal.type_text("ilocalhost");
    terminal.send_keys(&["Escape"]);
    terminal.type_text(":wq\n");
    let shown = terminal.wait_for("Kept as");
    assert!(
        shown.contains("parent: 01K74V6VX0S86Z5JATM52C3M7Z") && shown.contains("intent: RESPOND"),
        "{shown}"
    );
    // Nothing written, nothing sent.
    terminal.type_text("clear; crosstalk send claude\n");
    terminal.wait_for("~");
    terminal.type_text(":q!\n");
    terminal.wait_for("nothing was sent");
    let threads = home.run(&["threads", "--json"], "");
    let threads: serde_json::Value = serde_json::from_str(&threads.out).unwrap();
    assert_eq!(
        threads["threads"].as_array().unwrap().len(),
        2,
        "{threads:#}"
    );
}

#[test]
fn watch_keeps_copied_messages() {
    let home = Home::new("watch");
    let screen = Xvfb::start();
    let env = [
        ("DISPLAY", screen.display()),
        ("CROSSTALK_CLIPBOARD", "system"),
        ("VISUAL", "sh -c 'printf 8080. > \"$0\"'"),
    ];
    screen.copy("UTF8_STRING", envelope("It was there before.").as_bytes());
    let terminal = terminal(&home, 100, 50, &env);
    terminal.type_text("crosstalk watch --reply\n");
    terminal.wait_for("Watching the clipboard");
    screen.copy("UTF8_STRING", b"a secret that is no message");
    screen.copy(
        "UTF8_STRING",
        envelope("Which port?").replace('\n', "\r\n").as_bytes(),
    );
    terminal.wait_for("│ Which port?");
    terminal.wait_for("Kept as");
    let copied = String::from_utf8(screen.pasted()).unwrap();
    assert!(
        copied.contains("\nparent: 01K74V6VX0S86Z5JATM52C3M7Z\n") && copied.contains("\n  8080.\n"),
        "{copied}"
    );
    terminal.send_keys(&["C-c"]);
    let messages = home.run(&["search", "--json", "port"], "");
    assert_eq!(messages.code, 0);
    assert_eq!(home.run(&["search", "secret"], "").code, 1);
    assert_eq!(home.run(&["search", "before"], "").code, 1);
    assert_eq!(
        home.run(&["inbox", "--json"], "")
            .out
            .matches("\"id\"")
            .count(),
        0
    );
}

#[test]
fn forget_says_what_will_go_and_asks() {
    let home = Home::new("forget-asks");
    paste(&home, &envelope("Which port?"));
    let terminal = terminal(&home, 80, 24, &[]);
    for (options, what) in [
        ("last", "Erase 1 message about a terminal of any width"),
        (
            "--thread last",
            "Erase the thread about a terminal of any width with 1 message",
        ),
    ] {
        terminal.type_text(&format!("clear; crosstalk forget {options}\n"));
        let asked = terminal.wait_for("[y/N]");
        assert!(asked.contains(what), "{asked}");
        terminal.type_text("n\n");
        terminal.wait_for("Nothing was erased.");
        // The question is gone from the screen.
        run(&terminal, "true");
    }
    terminal.type_text("clear; crosstalk forget last\n");
    terminal.wait_for("[y/N]");
    terminal.type_text("y\n");
    terminal.wait_for("Erased: 1 message");
    let shown = run(&terminal, "crosstalk show last");
    assert!(shown.contains("nothing is kept here yet"), "{shown}");
}

#[test]
fn the_start_screen_fits_a_page() {
    let home = Home::new("start-screen");
    paste(&home, &envelope("Which port?"));
    let terminal = terminal(&home, 80, 24, &[]);
    let screen = run(&terminal, "crosstalk");
    assert!(screen.starts_with("Crosstalk: "), "{screen}");
    assert!(screen.contains("Waiting for you: 1 message"), "{screen}");
}

/// Two questions wait for one sender, and the ids of the answer are unknown: the person picks the question.
#[test]
fn a_person_picks_the_question_of_an_answer() {
    let home = Home::new("pick");
    let user = [("CROSSTALK_USER", "kalle"), ("CROSSTALK_CLIPBOARD", "none")];
    for question in ["Which port?", "Which database?"] {
        let ended = home.run_with(&user, &["send", "chatgpt", question], "");
        assert_eq!(ended.code, 0, "{}", ended.err);
    }
    let lost = "[[CHATGPT→KALLE v1]]\nuser: chatgpt\nthread: 01JZZZZZZZG0T7MAHPXVDNXWZZ\n\
                parent: 01JZZZZZZZS86Z5JATM52C3MZZ\ncontext: ports\nintent: RESPOND\nbody: |\n  8443.\nsig: none\n[[END]]\n";
    let file = home.path("lost.txt");
    std::fs::write(&file, lost).unwrap();
    let terminal = terminal(&home, 80, 40, &[]);
    terminal.type_text(&format!("clear; crosstalk paste {}\n", file.display()));
    let screen = terminal.wait_for("Enter for none:");
    assert!(
        screen.contains("  1  ") && screen.contains("Which database?"),
        "{screen}"
    );
    terminal.type_text("2\n");
    terminal.wait_for("Moved");
    let shown = run(&terminal, "crosstalk threads");
    assert!(shown.contains("2  Which port?"), "{shown}");
    assert!(!shown.contains("01JZZZZZZZ"), "{shown}");
}
