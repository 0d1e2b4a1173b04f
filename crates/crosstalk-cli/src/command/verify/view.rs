//! A verdict for people: the word, who to whom, the sentence, what to do, and the key.

use crate::console::{BOLD, DIM, GREEN, RED, YELLOW, styled};
use crate::failure::Failure;
use crate::json;
use crate::paragraph::{width, wrap};
use crate::render;
use anstyle::Style;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Document, LineIndex};
use crosstalk_protocol::{Verdict, Word};
use serde_json::Value;

/// What stands above a restored text.
pub(super) const RESTORED: &str = "What follows on stdout is the message with its original line breaks, restored. It verifies; the paste does not.\n";

/// The columns of a name, with the space behind it.
const NAMES: usize = 13;

/// A verdict, rendered with styles. `place` says where the envelope was found.
pub(super) fn verdict(
    verdict: &Verdict,
    document: &Document<'_>,
    lines: &LineIndex<'_>,
    place: &str,
) -> Result<String, Failure> {
    let report = json::value(&verdict.report())?;
    let mut out = told(verdict.word(), &report, place);
    for finding in render::findings(document) {
        if finding.rule.drops || render::is_worth_telling(&finding) {
            out.push_str(&render::remark(&finding, lines));
        }
    }
    Ok(out)
}

/// What a report says, without remarks on the reading.
pub(super) fn told(word: Word, report: &Value, place: &str) -> String {
    let text = |name: &str| report.get(name).and_then(Value::as_str);
    let mut out = title(word, (text("sender"), text("receiver")), place);
    out.push_str(&format!(
        "{}\n",
        wrap(&escape(text("sentence").unwrap_or("")), 0, 0)
    ));
    let next = wrap(&escape(text("next").unwrap_or("")), 6, 6);
    out.push_str(&format!("{} {next}\n", styled(BOLD, "Next:")));
    let mut line = |name: &str, value: &str| {
        let pad = " ".repeat(NAMES.saturating_sub(name.len()));
        out.push_str(&format!("{}{pad}{}\n", styled(DIM, name), escape(value)));
    };
    let change = |name: &str| report.pointer(&format!("/key_change/{name}"));
    match (change("known"), change("offered")) {
        (Some(Value::String(known)), Some(Value::String(offered))) => {
            line("known key", known);
            line("other key", offered);
        }
        _ => {
            if let Some(fingerprint) = text("fingerprint") {
                line("fingerprint", fingerprint);
            }
        }
    }
    if let (Some(at), Some(_)) = (text("signed_at"), text("fingerprint")) {
        line("signed at", at);
    }
    if let Some(rule) = text("rule") {
        let code = text("code").map_or(String::new(), |code| format!(" {code}"));
        line("rule", &format!("{rule}{code}"));
    }
    out
}

/// `VERIFIED  CLAUDE → CHATGPT                 pasted.txt:3`
fn title(word: Word, sides: (Option<&str>, Option<&str>), place: &str) -> String {
    let badge = badge(word);
    let sides = match sides {
        (Some(sender), Some(receiver)) => format!("{} → {}", escape(sender), escape(receiver)),
        _ => String::new(),
    };
    let used = badge.chars().count() + 2 + sides.chars().count() + place.chars().count();
    // Where the place does not fit behind the sides, it stands below them.
    let gap = match width().saturating_sub(used) {
        0 | 1 => "\n".to_owned(),
        free => " ".repeat(free),
    };
    format!(
        "{}  {}{gap}{}\n",
        styled(style(word), &badge),
        styled(BOLD, &sides),
        styled(DIM, place)
    )
}

/// The word as it catches the eye.
fn badge(word: Word) -> String {
    word.as_str().replace('-', " ").to_uppercase()
}

const fn style(word: Word) -> Style {
    match word {
        Word::Verified => GREEN,
        Word::FirstContact | Word::Unbound | Word::Unsigned | Word::UnknownKey => YELLOW,
        Word::Damaged | Word::NotVerified | Word::Revoked => RED,
    }
}
