//! The pictures of the README: what the program prints, in colour, as SVG.
//!
//! `STORY=overwrite cargo test -p crosstalk-cli --test it picture::` draws them anew. Ids and times differ in each run, so the
//! comparison takes any id and any time for the one in the picture.

use crate::run::{Home, folder};
use crate::story::{Names, wants_new_pages};
use anstyle::RgbColor;
use std::fs;

/// What `crosstalk` prints on a terminal of 80 columns.
fn print_in_color(home: &Home, args: &[&str]) -> String {
    let args = [args, &["--color", "always"]].concat();
    let ended = home.run_with(&[("CROSSTALK_USER", "kalle"), ("COLUMNS", "80")], &args, "");
    assert_eq!(ended.code, 0, "{}", ended.err);
    ended.out
}

/// Compares a picture with the one in `docs/picture`, or writes it there.
fn check_picture(name: &str, printed: &str) {
    let path = folder("../../docs/picture").join(format!("{name}.svg"));
    let mut palette = anstyle_svg::WIN10_CONSOLE;
    // Its blue is hard to read on a dark ground.
    palette.0[4] = RgbColor(0x6c, 0x9e, 0xff);
    let drawn = anstyle_svg::Term::new()
        .palette(palette)
        .fg_color(RgbColor(0xd8, 0xdb, 0xe2).into())
        .bg_color(RgbColor(0x1b, 0x1e, 0x26).into())
        .render_svg(printed);
    if wants_new_pages() {
        fs::write(&path, drawn).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap();
    let mut names = Names::default();
    let same = kept.lines().count() == drawn.lines().count()
        && kept
            .lines()
            .zip(drawn.lines())
            .all(|(kept, drawn)| names.fits(kept, drawn));
    assert!(
        same,
        "{name}.svg is not what the program prints:\n{printed}"
    );
}

#[test]
fn thread_picture_is_current() {
    let home = Home::new("picture-thread");
    let sent = home.run_with(
        &[("CROSSTALK_USER", "kalle")],
        &[
            "send",
            "chatgpt,claude",
            "Should we use JWT for sessions?",
            "--json",
        ],
        "",
    );
    assert_eq!(sent.code, 0, "{}", sent.err);
    let sent: serde_json::Value = serde_json::from_str(&sent.out).unwrap();
    let answers = [
        (
            "CHATGPT",
            "Yes, but keep them short-lived: 15 minutes, with a refresh token.",
        ),
        (
            "CLAUDE",
            "No. You have one server: a session cookie is simpler, and you can revoke it.",
        ),
    ];
    for (number, (chat, text)) in answers.into_iter().enumerate() {
        let thread = sent["thread"].as_str().unwrap();
        let parent = sent["messages"][number]["message"]["id"].as_str().unwrap();
        let answer = format!(
            "[[{chat}→KALLE v1]]\nuser: kalle\nthread: {thread}\nparent: {parent}\nintent: RESPOND\nbody: |\n  {text}\nsig: none\n[[END]]\n"
        );
        let pasted = home.run_with(&[("CROSSTALK_USER", "kalle")], &["paste", "-"], &answer);
        assert_eq!(pasted.code, 0, "{}", pasted.err);
    }
    let thread = sent["thread"].as_str().unwrap();
    check_picture("thread", &print_in_color(&home, &["show", thread]));
}

#[test]
fn demo_picture_is_current() {
    let home = Home::new("picture-demo");
    let printed = print_in_color(&home, &["demo"]);
    let chapter = printed.split_once("Ann and Scout send ballots.").unwrap().1;
    let poll = chapter.split_once("\n\n").unwrap().1;
    let poll = poll.split_once("4  A person is asked").unwrap().0;
    let end = poll.rfind("the id of the message.\n").unwrap() + "the id of the message.\n".len();
    check_picture("demo", &poll[..end]);
}
