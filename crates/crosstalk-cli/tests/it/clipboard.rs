//! A real clipboard: an X server, and another program that copies and pastes.

use crate::run::{Ended, Home};
use crosstalk_cli::exit;
use crosstalk_testing::tmux::Tmux;
use crosstalk_testing::wait::wait_until;
use crosstalk_testing::xvfb::Xvfb;
use std::process::{Command, Stdio};

const TEXT: &str =
    "[[CLAUDE→CHATGPT v1]]\nuser: kalle\n\tå\u{301}  \r\nbody: |\n  日本\n[[END]]\n\n";

fn on(server: &Xvfb, arguments: &[&str], stdin: impl AsRef<[u8]>) -> Ended {
    let environment = [
        ("DISPLAY", server.display()),
        ("CROSSTALK_PASSPHRASE", "correct horse"),
    ];
    Home::new(&format!("clipboard{}", server.display())).run_with(&environment, arguments, stdin)
}

fn copied(server: &Xvfb, text: &str) {
    let ended = on(server, &["clip", "copy"], text);
    assert_eq!(
        (ended.code, ended.err.as_str()),
        (0, "copied to the clipboard\n")
    );
    assert_eq!(ended.out, "");
}

/// A display, and who said to hold its clipboard before it was there: another one may have had its number.
struct Display {
    server: Xvfb,
    before: Vec<u32>,
}

impl Display {
    fn start() -> Self {
        let server = Xvfb::start();
        let before = holders(server.display());
        Self { server, before }
    }

    /// The processes that hold its clipboard.
    fn holders(&self) -> Vec<u32> {
        let mut found = holders(self.server.display());
        found.retain(|process| !self.before.contains(process));
        found
    }
}

/// The processes that hold the clipboard of a display of this name.
fn holders(display: &str) -> Vec<u32> {
    let wanted = format!("DISPLAY={display}\0");
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |name| std::fs::read(entry.path().join(name)).unwrap_or_default();
        let read = |name| String::from_utf8_lossy(&read(name)).into_owned();
        if read("cmdline").contains("clipboard-hold") && read("environ").contains(&wanted) {
            found.push(entry.file_name().to_str().unwrap().parse().unwrap());
        }
    }
    found
}

#[test]
fn what_is_copied_stays_byte_for_byte_until_something_else_is_copied() {
    let display = Display::start();
    let server = &display.server;
    assert_eq!(server.pasted(), b"");
    // The command has ended, and its pipes are closed: nobody else has them.
    copied(server, TEXT);
    assert_eq!(String::from_utf8(server.pasted()).unwrap(), TEXT);
    assert_eq!(on(server, &["clip", "show"], "").out, TEXT);
    let first = display.holders();
    assert_eq!(first.len(), 1);

    copied(server, "another");
    assert_eq!(server.pasted(), b"another");
    wait_until("one holder", || display.holders().len() == 1);
    assert_ne!(display.holders(), first);

    server.copy("UTF8_STRING", TEXT.as_bytes());
    wait_until("no holder", || display.holders().is_empty());
    assert_eq!(on(server, &["clip", "show"], "").out, TEXT);
}

#[test]
fn a_holder_has_nothing_of_the_session_and_ends_with_the_display() {
    let display = Display::start();
    let server = &display.server;
    copied(server, TEXT);
    let [holder] = display.holders()[..] else {
        panic!("one holder");
    };
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{holder}/{name}")).unwrap();
    assert!(
        !read("environ").contains("PASSPHRASE"),
        "{}",
        read("environ")
    );
    // Process, state, parent, group, session: its own.
    let stat = read("stat");
    let after_name = stat.rsplit_once(')').unwrap().1;
    let session = after_name.split_whitespace().nth(3).unwrap();
    assert_eq!(session, holder.to_string());
    assert_eq!(
        std::fs::read_link(format!("/proc/{holder}/cwd")).unwrap(),
        std::path::Path::new("/")
    );
    let Display { server, .. } = display;
    drop(server);
    let is_gone =
        || !std::fs::read_to_string(format!("/proc/{holder}/cmdline")).is_ok_and(|c| !c.is_empty());
    wait_until("the end of the holder", is_gone);
}

#[test]
fn large_texts_go_both_ways() {
    let server = Xvfb::start();
    let line =
        "All 412 tests pass; zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich.\n";
    let large = line.repeat((1 << 20) / line.len() + 1);
    copied(&server, &large);
    assert!(server.pasted() == large.as_bytes());
    // xclip sends this much in pieces.
    let larger = large.repeat(4);
    server.copy("UTF8_STRING", larger.as_bytes());
    let ended = on(&server, &["clip", "show"], "");
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert!(ended.out == larger);
}

#[test]
fn what_does_not_arrive_is_not_said_to_be_copied() {
    let display = Display::start();
    let server = &display.server;
    // More than the display takes at once.
    let ended = on(server, &["clip", "copy"], vec![b'x'; 20 << 20]);
    assert_eq!(
        (ended.code, ended.out.as_str()),
        (i32::from(exit::FAILURE), "")
    );
    assert!(
        ended.err.contains("the text is not on the clipboard"),
        "{}",
        ended.err
    );
    wait_until("no holder", || display.holders().is_empty());
}

#[test]
fn what_is_no_text_is_refused_in_a_sentence() {
    let server = Xvfb::start();
    let show = || {
        let ended = on(&server, &["clip", "show"], "");
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (i32::from(exit::FAILURE), "")
        );
        ended.err
    };
    assert_eq!(
        show(),
        "error: there is no text on the clipboard; copy the message again\n"
    );
    server.copy("image/png", b"\x89PNG\r\n\x1a\n");
    assert_eq!(
        show(),
        "error: the clipboard has no text; copy the message again, as text\n"
    );
    server.copy("text/uri-list", b"file:///etc/passwd\r\n");
    assert!(show().contains("there are files on the clipboard, and no text"));
    server.copy("UTF8_STRING", b"caf\xe9");
    assert!(show().contains("has no text"));
    server.copy("UTF8_STRING", b"");
    assert!(show().contains("there is no text"));
}

#[test]
fn without_a_display_it_is_said_what_to_do() {
    let home = Home::new("clipboard-none");
    for action in ["copy", "show"] {
        let ended = home.run(&["clip", action], "text");
        assert_eq!(
            (ended.code, ended.out.as_str()),
            (i32::from(exit::FAILURE), "")
        );
        for part in [
            "no clipboard here: neither DISPLAY nor WAYLAND_DISPLAY is set",
            "`crosstalk paste -` reads a text that you paste",
            "`crosstalk paste FILE` a file",
            "over SSH, CROSSTALK_CLIPBOARD=terminal",
        ] {
            assert!(ended.err.contains(part), "{}", ended.err);
        }
    }
    for nobody in [":64999", ":9999", ":", "unix", ":1:2.3", "::"] {
        let ended = home.run_with(&[("DISPLAY", nobody)], &["clip", "show"], "");
        let says = "the display that DISPLAY names can't be reached";
        assert!(ended.err.contains(says), "{nobody}: {}", ended.err);
    }
    let wrong = [("CROSSTALK_CLIPBOARD", "Sistem")];
    let ended = home.run_with(&wrong, &["clip", "show"], "");
    assert_eq!(ended.code, i32::from(exit::USAGE));
    assert!(
        ended.err.contains("auto, system, terminal, none"),
        "{}",
        ended.err
    );
    let off = [("CROSSTALK_CLIPBOARD", "none")];
    let ended = home.run_with(&off, &["clip", "copy"], "");
    assert!(ended.err.contains("switched off"), "{}", ended.err);
}

/// Copies from a shell on a terminal, and gives the screen when that has ended.
fn copy_on(terminal: &Tmux, number: usize, before: &str, file: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_crosstalk");
    // The sum is on the screen when the shell has computed it, and not when it was typed.
    terminal.type_text(&format!(
        "clear; {before} {binary} clip copy {file}; echo code $? of $((1000 + {number}))\n"
    ));
    terminal.wait_for(&format!("of {}", 1000 + number))
}

#[test]
fn a_far_terminal_gets_the_text() {
    let home = Home::new("clipboard-terminal");
    let file = home.path("message");
    let path = file.to_str().unwrap();
    let terminal = Tmux::start(80, 24);
    for (number, before) in [
        // tmux copies when it is asked; by the sequence alone it is a terminal like any other.
        "CROSSTALK_CLIPBOARD=terminal",
        "TMUX= CROSSTALK_CLIPBOARD=terminal",
        "TMUX= SSH_TTY=/dev/pts/0",
    ]
    .into_iter()
    .enumerate()
    {
        let text = format!("{TEXT}{number}");
        std::fs::write(&file, &text).unwrap();
        let screen = copy_on(&terminal, number, before, path);
        assert!(screen.contains("code 0"), "{screen}");
        assert!(screen.contains("sent to the terminal"), "{screen}");
        wait_until("the text in the terminal", || terminal.clipboard() == text);
    }
    // Nobody is asked who is not known to be there.
    let screen = copy_on(&terminal, 8, "TMUX=", path);
    assert!(screen.contains("no clipboard here"), "{screen}");

    std::fs::write(&file, "x".repeat(74_995)).unwrap();
    let screen = copy_on(&terminal, 9, "CROSSTALK_CLIPBOARD=terminal", path);
    assert!(
        screen.contains("at most 74994") && screen.contains("code 13"),
        "{screen}"
    );
}

#[test]
fn where_no_terminal_is_there_it_is_not_written_to() {
    let home = Home::new("clipboard-no-terminal");
    let file = home.path("message");
    std::fs::write(&file, TEXT).unwrap();
    // In a session of its own there is no terminal, whoever runs the test.
    let output = Command::new("setsid")
        .args(["--wait", env!("CARGO_BIN_EXE_crosstalk"), "clip", "copy"])
        .args(["--clipboard", "terminal"])
        .arg(file)
        .env_remove("TMUX")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(i32::from(exit::FAILURE)));
    assert!(output.stdout.is_empty());
    assert!(err.contains("there is no terminal ("), "{err}");
}
