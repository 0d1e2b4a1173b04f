//! Nothing from outside reaches the screen as it is: no escape sequence, nothing hidden, nothing reordered.

use crate::run::{fixtures, run};
use crosstalk_envelope::unicode::is_hidden;
use crosstalk_testing::tier;

fn is_harmful(c: char) -> bool {
    (c.is_control() && c != '\n') || is_hidden(c)
}

/// A text with something harmful in every place that a text has.
const HOSTILE: &str = "\u{1b}[2J[[A\u{202e}\u{9b}31m→B\u{e0041} v1]]\nuser: u\u{7}\u{2066}\n\
    session: \u{200b}s\u{200f}\nthread: \u{e0001}\ncontext: \u{1b}]0;x\u{7}c\u{2028}\nintent: X\u{202e}Y\n\
    X-\u{202e}: \u{ad}\nMood: \u{3164}\nmeta: custom\u{202e}\nKey\u{200d}: \u{202d}v\nFlow: [\u{202e}\n\
    body: |\n  \u{1b}[31m\u{e0048}\u{e0069}\u{2029}\nsig: \u{202e}none\n[[END]]\u{feff}\n";

const PLAIN: &str = "[[A→B v1]]\nuser: u\nsession: s\nthread: t\ncontext: c\nintent: REQUEST\nX-Y: z\n\
    meta: custom-x\nKey: v\nbody: |\n  x\nsig: none\n[[END]]\n";

const VIEWS: [&[&str]; 11] = [
    &["parse"],
    &["parse", "--strict"],
    &["lint"],
    &["lint", "--strict"],
    &["doctor"],
    &["parse", "--json"],
    &["lint", "--json"],
    &["verify"],
    &["verify", "--json"],
    &["redact", "--check"],
    &["redact", "--json"],
];

#[test]
fn views_are_clean() {
    // A full run shows every file; the texts below are shown in each.
    let files = fixtures().into_iter().step_by(tier::size(4, 1));
    let mut inputs: Vec<Vec<u8>> = files.map(|p| std::fs::read(p).unwrap()).collect();
    inputs.push(HOSTILE.into());
    // Each harmful character alone, in every line of an envelope.
    for c in [
        '\u{1b}',
        '\u{7f}',
        '\u{9b}',
        '\u{202e}',
        '\u{e0041}',
        '\u{200b}',
        '\u{2028}',
    ] {
        inputs.push(PLAIN.replace('\n', &format!(" {c}x\n")).into());
        inputs.push(PLAIN.replace(": ", &format!(": {c}")).into());
    }
    for input in inputs {
        let what = String::from_utf8_lossy(&input).into_owned();
        for arguments in VIEWS {
            let ended = run(arguments, &input);
            let (out, err) = (ended.out, ended.err);
            assert!(!out.contains(is_harmful), "{arguments:?} {what:?}: {out:?}");
            assert!(!err.contains(is_harmful), "{arguments:?} {what:?}: {err:?}");
        }
        for command in ["fmt", "migrate", "canonical", "build"] {
            let ended = run(&[command], &input);
            let (out, err) = (ended.out, ended.err);
            assert!(!err.contains(is_harmful), "{command} {what:?}: {err:?}");
            // What these write is data, and yet no envelope holds a control character. Line ends stay as they came.
            let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
            let lines = out.replace("\r\n", "\n");
            assert!(!lines.contains(is_control), "{command} {what:?}: {out:?}");
        }
    }
}

#[test]
fn names_of_files_and_arguments_are_escaped() {
    for arguments in [
        &["parse", "no\u{1b}[31m\u{202e}file"][..],
        &["fmt", "--write", "\u{202e}"],
        &["redact", "--names", "\u{1b}[31m\u{202e}"],
        &["explain", "\u{1b}[31m"],
        &["address", "parse", "a\u{1b}[31m\u{202e}\u{e0041}"],
        &["address", "parse", "\u{202e}x://y"],
        &["address", "parse", "a", "--schemes", "\u{1b}c"],
        &["verify", "--key", "\u{1b}[31m"],
        &["key", "show", "\u{202e}"],
        &[
            "sign",
            "--key",
            "\u{1b}[31m\u{202e}",
            "tests/cmd/examples/question.crosstalk",
        ],
        &["trust", "distrust", "\u{1b}[31m"],
        &["trust", "remove", "\u{1b}[31m\u{202e}"],
        &["trust", "check", "\u{1b}[31m\u{202e}"],
        &["trust", "pin", "\u{1b}[31m\u{202e}"],
    ] {
        let ended = run(arguments, "");
        let all = ended.out + &ended.err;
        assert!(!all.contains(is_harmful), "{arguments:?}: {all:?}");
        assert!(all.contains("\\u{"), "{arguments:?}: {all:?}");
    }
}

#[test]
fn hidden_characters_are_shown() {
    let text = PLAIN
        .replace("[[A", "[[A\u{202e}")
        .replace(": u\n", ": \u{e0041}\n");
    let shown = run(&["parse"], &text).out;
    assert!(shown.contains("A\\u{202e} → B"), "{shown}");
    assert!(shown.contains("user      \\u{e0041}\n"), "{shown}");
    let json = run(&["parse", "--json"], &text).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["envelopes"][0]["sender"], "A\u{202e}");
}
