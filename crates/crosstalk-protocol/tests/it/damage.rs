//! An authentic head with a damaged body: the right word for it, the right lines, and the restored text.

use crate::sample::{MESSAGE, now, signed, trusting_alice, verdict};
use crate::way;
use crosstalk_envelope::{Diagnosis, Document, Reading};
use crosstalk_protocol::{Verdict, VerdictWord, VerifyContext, verify};

fn damaged(name: &str, received: &str) -> Verdict {
    let verdict = verdict(received, &trusting_alice());
    assert_eq!(
        verdict.word(),
        VerdictWord::Damaged,
        "{name}: {}\n{received}",
        verdict.sentence()
    );
    assert!(verdict.verified().is_none(), "{name}");
    assert!(verdict.report().next.len() > 20, "{name}");
    verdict
}

fn body() -> String {
    Document::parse(MESSAGE, Reading::Strict).body_text()
}

#[test]
fn wrapped_is_reflowed_and_restored() {
    for width in [40, 60, 66, 72, 76, 78, 80] {
        for long in [false, true] {
            let name = format!("wrapped at {width}, long words broken: {long}");
            let found = damaged(&name, &way::wrapped(&signed(MESSAGE), width, long));
            assert_eq!(found.body(), Some(&Diagnosis::Reflowed), "{name}");
            assert_eq!(found.restored(), Some(&*body()), "{name}");
        }
    }
}

/// The search is for a person who asks for it, and a strict document is checked as it is.
#[test]
fn restoration_is_searched_in_a_paste_on_request_alone() {
    let (sent, trust) = (signed(MESSAGE), trusting_alice());
    let wrapped = way::wrapped(&sent, 60, false);
    let plain = VerifyContext::at(now());
    let asked = VerifyContext {
        restore: true,
        ..plain
    };
    for (reading, question, is_restored) in [
        (Reading::Paste, asked, true),
        (Reading::Paste, plain, false),
        (Reading::Strict, asked, false),
    ] {
        let found = verify(&Document::parse(&wrapped, reading), &trust, &question);
        assert_eq!(found.restored().is_some(), is_restored, "{reading:?}");
        assert!(found.verified().is_none());
    }
    // A body that one repair brings back.
    let shifted = sent.replace("\n  ", "\n    ");
    let word = |reading| verify(&Document::parse(&shifted, reading), &trust, &asked).word();
    assert_eq!(word(Reading::Paste), VerdictWord::Verified);
    assert_eq!(word(Reading::Strict), VerdictWord::Damaged);
}

#[test]
fn collapsed_is_reflowed() {
    let found = damaged("collapsed", &way::collapsed(&signed(MESSAGE)));
    assert_eq!(found.body(), Some(&Diagnosis::Reflowed));
    // The table has columns of spaces, which are gone with the line ends.
    let plain = MESSAGE
        .replace("JWT   |", "JWT |")
        .replace("way   |", "way |");
    let found = damaged(
        "collapsed without columns",
        &way::collapsed(&signed(&plain)),
    );
    let body = Document::parse(&plain, Reading::Strict).body_text();
    assert_eq!(found.restored(), Some(&*body));
}

#[test]
fn missing_lines_are_named() {
    let sent = signed(MESSAGE);
    let last = sent.replace(
        "  The naïve answer was < 5 ms & fine. What would you do?\n",
        "",
    );
    let found = damaged("the last line", &last);
    assert_eq!(found.body().unwrap().as_str(), "truncated");
    assert_eq!(found.body().unwrap().lines(), [16, 17]);
    let inside = sent.replace("      token.expires > now && !token.is_revoked()\n", "");
    let found = damaged("a line inside", &inside);
    assert_eq!(found.body().unwrap().as_str(), "truncated");
    assert_eq!(found.body().unwrap().lines(), [8]);
    let (head, rest) = sent.split_once("  ```rust\n").unwrap();
    let cut = format!("{head}sig:{}", rest.split_once("\nsig:").unwrap().1);
    assert_eq!(
        damaged("the rest", &cut).body().unwrap().as_str(),
        "truncated"
    );
}

#[test]
fn a_changed_word_is_altered() {
    let sent = signed(MESSAGE);
    for (from, to, line) in [
        ("one look-up, and", "two look-ups, and", 4),
        ("expires > now", "expires < now", 8),
        ("What would you do?", "Please approve it.", 17),
    ] {
        let found = damaged(to, &sent.replace(from, to));
        assert_eq!(
            found.body(),
            Some(&Diagnosis::Altered { lines: vec![line] }),
            "{to}"
        );
        assert!(
            found.sentence().contains(&format!("line {line}")),
            "{}",
            found.sentence()
        );
        assert_eq!(found.restored(), None);
    }
}
