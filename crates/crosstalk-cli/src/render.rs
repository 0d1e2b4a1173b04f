//! An envelope for people: sender, receiver, intent, the text, and the diagnostics.
//!
//! A bar precedes each line of the body, so that nothing in it can pass for a line of ours; everything is escaped.

use crate::console::{BLUE, BOLD, DIM, GREEN, RED, YELLOW, severity_style, styled};
use crate::paragraph::{width, wrap, wrap_to};
use anstyle::{AnsiColor, Style};
use crosstalk_binding::document_findings;
use crosstalk_envelope::registry::{Rule, rule};
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Diagnostic, Document, Envelope, Intent, LineIndex, Severity, Signature};

/// The columns of a core name, with the space behind it.
const NAMES: usize = 10;
/// Longer names don't push the values of the others away.
const LONGEST: usize = 24;

/// An envelope, rendered with styles. `place` says where it was found.
pub(crate) fn envelope(document: &Document<'_>, lines: &LineIndex<'_>, place: &str) -> String {
    let mut out = String::with_capacity(document.source().len() * 2 + 512);
    title(&mut out, &document.envelope(), place);
    let headers = document.headers().filter(|(name, _)| *name != "intent");
    fields(&mut out, &headers.collect::<Vec<_>>(), 0, width());
    for block in document.blocks() {
        out.push_str(&format!(
            "\n{} {}\n",
            styled(DIM, "meta:"),
            styled(BOLD, &escape(block.namespace()))
        ));
        fields(&mut out, &block.fields().collect::<Vec<_>>(), 2, width());
    }
    out.push('\n');
    for line in document.body_lines() {
        let text = escape(line);
        let space = if text.is_empty() { "" } else { " " };
        out.push_str(&format!("{}{space}{text}\n", styled(DIM, "│")));
    }
    if document.body_lines().next().is_none() {
        out.push_str(&styled(DIM, "(no body)\n"));
    }
    out.push('\n');
    let sig = signature(&document.envelope());
    fields(&mut out, &[("sig", &sig)], 0, width());
    remarks(&mut out, document, lines);
    out
}

/// A fact in a line: its name, and from `column` on its value.
pub(crate) fn field(name: &str, column: usize, value: &str) -> String {
    let pad = " ".repeat(column.saturating_sub(name.len()));
    format!("{}{pad}{}\n", styled(DIM, name), escape(value))
}

/// `CLAUDE → CHATGPT  REQUEST                 chat.txt:3`, and a line below it.
fn title(out: &mut String, envelope: &Envelope<'_>, place: &str) {
    let sides = format!(
        "{} → {}",
        escape(envelope.sender.as_str()),
        escape(envelope.receiver.as_str())
    );
    let (badge, color) = intent(envelope);
    let used = sides.chars().count() + 2 + badge.chars().count();
    let free = width().saturating_sub(used + place.chars().count());
    // Where the place does not fit behind the sides, it stands below them.
    let gap = if free >= 2 {
        " ".repeat(free)
    } else {
        "\n".to_owned()
    };
    out.push_str(&format!(
        "{}  {}{gap}{}\n{}\n",
        styled(BOLD, &sides),
        styled(color, &badge),
        styled(DIM, place),
        styled(DIM, &"─".repeat(width()))
    ));
}

/// The intent as it was written, and what it means if that is another word; with the style that it is shown in.
pub(crate) fn intent(envelope: &Envelope<'_>) -> (String, Style) {
    let text = match envelope.intent {
        None => match envelope.meaning() {
            Some(meaning) => format!("[{meaning}]"),
            None => "[no intent]".to_owned(),
        },
        Some(intent) if intent.written == intent.meaning_str() => {
            format!("[{}]", escape(intent.written))
        }
        Some(intent) => format!(
            "[{}: {}]",
            escape(intent.written),
            escape(intent.meaning_str())
        ),
    };
    (text, color(envelope.meaning()))
}

/// The color of an intent: what went well, what went wrong, what wants something.
fn color(meaning: Option<Intent>) -> Style {
    match meaning {
        Some(Intent::Respond | Intent::Ack) => GREEN,
        Some(Intent::Error | Intent::Revoke) => RED,
        Some(Intent::Nack | Intent::Escalate) => YELLOW,
        Some(Intent::Request) => BLUE,
        Some(_) => AnsiColor::Magenta.on_default().bold(),
        None => BOLD,
    }
}

/// Names and values, the values below each other.
pub(crate) fn fields(out: &mut String, fields: &[(&str, &str)], indent: usize, columns: usize) {
    let names = fields.iter().map(|(name, _)| escape(name).chars().count());
    let width = names.filter(|w| *w <= LONGEST).max().unwrap_or(0);
    let width = width.max(NAMES - 2 - indent);
    for (name, value) in fields {
        let name = escape(name);
        let pad = width.saturating_sub(name.chars().count()) + 2;
        let column = indent + name.chars().count() + pad;
        out.push_str(&format!(
            "{}{}{}{}\n",
            " ".repeat(indent),
            styled(DIM, &name),
            " ".repeat(pad),
            wrap_to(columns, &escape(value), column, indent + width + 2)
        ));
    }
}

fn signature(envelope: &Envelope<'_>) -> String {
    match (envelope.signature, envelope.document().sig()) {
        (Some(Signature::None), _) | (None, None) => "none".to_owned(),
        (
            Some(Signature::Signed {
                algorithm, pkid, ..
            }),
            _,
        ) => format!("{algorithm} by {pkid} (not verified here)"),
        (None, Some(written)) => format!("unreadable, counts as none: {written}"),
    }
}

fn remarks(out: &mut String, document: &Document<'_>, lines: &LineIndex<'_>) {
    let findings = document_findings(document);
    if !findings.is_empty() {
        out.push('\n');
    }
    for finding in findings {
        out.push_str(&remark(&finding, lines));
    }
}

/// `repaired  line 3: the arrow of the direction line was read as → (PST-007)`
pub(crate) fn remark(finding: &Diagnostic, lines: &LineIndex<'_>) -> String {
    remark_with(finding, lines, "")
}

fn remark_with(finding: &Diagnostic, lines: &LineIndex<'_>, times: &str) -> String {
    let position = lines.position(finding.span.start);
    let style = severity_style(finding.severity);
    let word = match finding.severity {
        Severity::Repair => "repaired",
        other => other.as_str(),
    };
    let pad = " ".repeat(NAMES.saturating_sub(word.len()));
    let text = format!(
        "line {}: {} ({}){times}",
        position.line,
        escape(&finding.message),
        finding.rule.id
    );
    format!(
        "{}{pad}{}\n",
        styled(style, word),
        wrap(&text, NAMES, NAMES)
    )
}

/// The findings, with those of one kind in one line: the first of them, and how many there are.
pub(crate) fn remarks_by_kind(findings: &[Diagnostic], lines: &LineIndex<'_>) -> String {
    let mut out = String::new();
    let mut has_more = false;
    for (number, finding) in findings.iter().enumerate() {
        let is_same =
            |f: &&Diagnostic| f.rule.id == finding.rule.id && f.severity == finding.severity;
        if findings.iter().take(number).any(|f| is_same(&f)) {
            continue;
        }
        let more = findings.iter().skip(number + 1).filter(is_same).count();
        has_more |= more > 0;
        let times = match more {
            0 => String::new(),
            more => format!(", and {more} more of this kind"),
        };
        out.push_str(&remark_with(finding, lines, &times));
    }
    if has_more {
        out.push_str(&format!("{}\n", styled(DIM, "-v lists all of them")));
    }
    out
}

/// Repairs that could not keep everything.
pub(crate) const LOSSY: [&Rule; 5] = [
    &rule::BODY_UNINDENTED,
    &rule::COLLAPSED,
    &rule::TEXT_AROUND,
    &rule::DUPLICATE_DROPPED,
    &rule::CONTROLS,
];

/// Whether a finding is worth a word where only the result is wanted: a warning, or a repair that may have lost
/// something.
pub(crate) fn is_worth_telling(finding: &Diagnostic) -> bool {
    finding.severity >= Severity::Warning || LOSSY.contains(&finding.rule)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosstalk_envelope::Reading;

    #[test]
    fn nothing_from_outside_reaches_the_screen_as_it_is() {
        let hostile = "x\u{202e}\u{e0041}\u{200b}y";
        let text = format!(
            "[[{hostile}→B{hostile} v1]]\nuser: {hostile}\nsession: {hostile}\ncontext: {hostile}\n\
             intent: {hostile}\nMood: {hostile}\n\nmeta: custom-x\nKey: {hostile}\n\nbody: |\n  {hostile}\nsig: {hostile}\n[[END]]\n"
        );
        let document = Document::parse(&text, Reading::Paste);
        let shown = envelope(&document, &LineIndex::new(&text), "x:1");
        let plain = anstream::adapter::strip_str(&shown).to_string();
        assert!(plain.contains("\\u{202e}\\u{e0041}"), "{plain}");
        let hidden =
            |c: char| (c.is_control() && c != '\n') || crosstalk_envelope::unicode::is_hidden(c);
        assert!(!plain.contains(hidden), "{plain:?}");
    }
}
