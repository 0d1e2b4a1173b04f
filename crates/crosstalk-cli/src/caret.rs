//! A finding, with the line that it is about and carets under the fault.

use crate::console::{BLUE, Console, DIM, severity_style, styled};
use crate::failure::Failure;
use crate::paragraph::width;
use crosstalk_envelope::registry::rule;
use crosstalk_envelope::unicode::escape;
use crosstalk_envelope::{Diagnostic, LineIndex, Severity};
use std::ops::Range;
use unicode_width::UnicodeWidthStr as _;

/// How much of a long line is shown at most, in characters, and how much of that before the fault.
const WINDOW: usize = 66;
const BEFORE: usize = 24;
/// The columns beside the line: its number, the bar, and the marks where it was cut.
const BESIDE: usize = 14;

/// Draws findings of one text, with styles.
#[derive(Debug)]
pub(crate) struct Carets<'t> {
    file: &'t str,
    text: &'t str,
    lines: LineIndex<'t>,
}

impl<'t> Carets<'t> {
    /// For findings in `text`, which `file` holds; the name is escaped already.
    pub(crate) fn new(file: &'t str, text: &'t str) -> Self {
        Self {
            file,
            text,
            lines: LineIndex::new(text),
        }
    }

    /// Tells the errors and warnings among some findings on stderr.
    pub(crate) fn tell<'d>(
        &self,
        console: &mut Console,
        findings: impl IntoIterator<Item = &'d Diagnostic>,
    ) -> Result<(), Failure> {
        let mut findings = findings.into_iter();
        findings.try_for_each(|finding| match finding.severity >= Severity::Warning {
            true => console.talk(&self.draw(finding)),
            false => Ok(()),
        })
    }

    /// Draws one finding, with an empty line after it.
    pub(crate) fn draw(&self, finding: &Diagnostic) -> String {
        let position = self.lines.position(finding.span.start);
        let style = severity_style(finding.severity);
        let code = finding.code().map(|c| format!(" {c}")).unwrap_or_default();
        let head = format!("{}[{}{code}]", finding.severity.as_str(), finding.rule.id);
        let number = position.line.to_string();
        let gutter = " ".repeat(number.len());
        let place = format!("{}:{}:{}", self.file, position.line, position.column);
        let mut out = format!(
            "{}: {}\n{gutter}{} {place}\n",
            styled(style, &head),
            escape(&finding.message),
            styled(BLUE, "-->")
        );
        let bar = styled(BLUE, "|");
        if has_a_place(finding) {
            let (shown, span) = self.window(&finding.span);
            let wide = |range: Range<usize>| shown.get(range).unwrap_or("").width();
            let indent = " ".repeat(wide(0..span.start));
            let carets = "^".repeat(wide(span).max(1));
            out.push_str(&format!(
                "{gutter} {bar}\n{} {bar} {shown}\n{gutter} {bar} {indent}{}\n",
                styled(BLUE, &number),
                styled(style, &carets)
            ));
        }
        if !finding.help().is_empty() {
            let help = styled(DIM, "help:");
            out.push_str(&format!("{gutter} = {help} {}\n", finding.help()));
        }
        out.push('\n');
        out
    }

    /// The line of a span, escaped and cut to the window, and the position of the span in it.
    fn window(&self, span: &Range<usize>) -> (String, Range<usize>) {
        let room = width().saturating_sub(BESIDE).clamp(8, WINDOW);
        let before_fault = BEFORE.min(room / 2);
        let start = self.text.floor_char_boundary(span.start);
        let before = self.text.get(..start).unwrap_or("");
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let skipped = before
            .get(line_start..)
            .map_or(0, |head| head.chars().count().saturating_sub(before_fault));
        let line = self.text.get(line_start..).unwrap_or("");
        let line = line.split('\n').next().unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);

        let mut shown = String::from(if skipped > 0 { "…" } else { "" });
        let (mut from, mut to) = (None, None);
        let mut buffer = [0; 4];
        let mut left = room;
        for (at, c) in line.char_indices().skip(skipped) {
            let at = line_start + at;
            if at >= span.start && from.is_none() {
                from = Some(shown.len());
            }
            if at >= span.end && to.is_none() {
                to = Some(shown.len());
            }
            if left == 0 {
                shown.push('…');
                break;
            }
            let piece = escape(c.encode_utf8(&mut buffer));
            left = left.saturating_sub(piece.len());
            // A tab takes one column: carets stay under their place.
            shown.push_str(if c == '\t' { " " } else { &piece });
        }
        let from = from.unwrap_or(shown.len());
        let to = to.unwrap_or(shown.len()).max(from);
        (shown, from..to)
    }
}

/// Some findings are about the text as a whole.
fn has_a_place(finding: &Diagnostic) -> bool {
    ![&rule::PASTE_TOO_LARGE, &rule::NO_ENVELOPE].contains(&finding.rule)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str, span: Range<usize>) -> (String, String) {
        let (shown, place) = Carets::new("x", text).window(&span);
        let under = shown.get(place).unwrap().to_owned();
        (shown, under)
    }

    #[test]
    fn the_place_stays_under_the_carets() {
        assert_eq!(
            window("one\ntwo three\n", 8..13),
            ("two three".into(), "three".into())
        );
        assert_eq!(
            window("a\u{1b}[0m b", 6..7),
            ("a\\u{1b}[0m b".into(), "b".into())
        );
        assert_eq!(window("\u{202e}", 0..3).1, "\\u{202e}");
        let long = format!("{}fault{}", "x".repeat(60_000), "y".repeat(60_000));
        let (shown, under) = window(&long, 60_000..60_005);
        assert_eq!(under, "fault");
        assert!(shown.chars().count() < 80, "{shown}");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let finding = Diagnostic {
            rule: &rule::HEADER_MALFORMED,
            severity: crosstalk_envelope::Severity::Error,
            span: 6..12,
            message: "x".into(),
        };
        let drawn = Carets::new("x", "日本語文字").draw(&finding);
        let drawn = anstream::adapter::strip_str(&drawn).to_string();
        assert!(
            drawn.contains("\n1 | 日本語文字\n  |     ^^^^\n"),
            "{drawn}"
        );
    }

    #[test]
    fn messages_are_escaped() {
        let finding = Diagnostic {
            rule: &rule::HEADER_MALFORMED,
            severity: crosstalk_envelope::Severity::Error,
            span: 0..1,
            message: "the key `\u{202e}\u{1b}[2J`".into(),
        };
        let drawn = Carets::new("x", "y").draw(&finding);
        assert!(drawn.contains("the key `\\u{202e}\\u{1b}[2J`"), "{drawn}");
    }

    #[test]
    fn places_beyond_the_line_are_cut() {
        assert_eq!(window("ab\ncd", 1..5), ("ab".into(), "b".into()));
        assert_eq!(window("ab", 7..9), ("ab".into(), String::new()));
        assert_eq!(window("", 0..0), (String::new(), String::new()));
    }
}
