//! An envelope in a paste: where it stands, and what stands around it.

use super::clean;
use super::frame::{Frame, Wrapping};
use super::marker::{Brackets, DirectionMarker, NOISE};
use crate::diagnostic::{Diagnostic, Severity};
use crate::registry::{Rule, rule};
use std::ops::Range;

/// An envelope in a paste; all places are in the whole text.
#[derive(Debug)]
pub(super) struct Region {
    /// From the start of its direction line to the end of its last line.
    pub(super) span: Range<usize>,
    pub(super) frame: Frame,
    /// Its place is relative to the direction line.
    pub(super) marker: DirectionMarker,
    /// Where the line below the direction line begins.
    pub(super) below: usize,
    /// Line ends were lost.
    pub(super) collapsed: bool,
    /// The open code fence around it.
    pub(super) fence: Option<Range<usize>>,
    /// Text behind the direction marker that is left out.
    pub(super) behind: Option<Range<usize>>,
    /// Only Markdown follows the direction marker.
    pub(super) markdown_behind: bool,
    /// The first direction line that its body quotes.
    pub(super) quoted: Option<Range<usize>>,
    /// Lines were passed over because the head declares their number.
    pub(super) counted: bool,
    /// There is a `sig:` right before its end.
    pub(super) signed_off: bool,
    /// The body of a message without beginning stands before it.
    pub(super) after_open_body: bool,
    /// It has no `[[END]]`: the line that tells its end.
    pub(super) ended_by: Option<Range<usize>>,
    /// How many lines stand below an end marker with a bracket too few, up to the next message.
    pub(super) left_out: usize,
    /// It has no `[[END]]`, and nothing else tells its end.
    pub(super) is_cut: bool,
}

impl Region {
    /// Whether the `[[END]]` has to be added.
    pub(super) fn lacks_end(&self) -> bool {
        self.ended_by.is_some() || self.is_cut
    }

    /// Whether the text between the markers needs no unwrapping.
    pub(super) fn is_plain(&self) -> bool {
        self.frame.is_trivial()
            && !self.lacks_end()
            && !self.collapsed
            && !self.counted
            && self.marker.span.start == 0
            && self.marker.is_plain()
    }

    /// The text before the direction marker on its line.
    fn before<'t>(&self, text: &'t str) -> &'t str {
        let end = self.span.start + self.marker.span.start;
        text.get(self.span.start..end).unwrap_or("")
    }

    /// The repairs of the region as a whole, and other findings about it.
    pub(super) fn findings(&self, text: &str) -> Vec<Diagnostic> {
        let mut out = Vec::new();
        if let Some(at) = &self.fence {
            out.push(Diagnostic::repair(
                &rule::CODE_FENCE,
                at.clone(),
                "the code fence was left out",
            ));
        }
        let place = self.span.start..self.span.start + self.marker.span.start;
        for wrapping in self.frame.wrappings() {
            let (rule, what) = describe(wrapping);
            out.push(Diagnostic::repair(rule, place.clone(), what));
        }
        if self.frame.has_nbsp() {
            let what = "no-break spaces before the lines were read as spaces";
            out.push(Diagnostic::repair(&rule::NBSP, place.clone(), what));
        }
        self.before_marker(text, place, &mut out);
        self.around_marker(&mut out);
        if let Some(span) = &self.ended_by {
            let what = match self.left_out {
                0 => "the [[END]] that the message lacks was added".to_owned(),
                1 => {
                    "the [[END]] was completed here, and the line below it was left out".to_owned()
                }
                lines => format!(
                    "the [[END]] was completed here, and the {lines} lines below it were left out"
                ),
            };
            out.push(Diagnostic::repair(&rule::END_ADDED, span.clone(), what));
        }
        if self.is_cut {
            let source = text.get(self.span.clone()).unwrap_or("").trim_end();
            let end = self.span.start + source.len();
            out.push(Diagnostic::new(
                &rule::END_MISSING,
                Severity::Warning,
                end..end,
                "the message may be cut off here: it was read as far as it goes",
            ));
        }
        if let Some(span) = &self.quoted {
            out.push(Diagnostic::new(
                &rule::QUOTED_INSIDE,
                Severity::Note,
                span.clone(),
                "the body quotes another message; it was not taken as one of its own",
            ));
        }
        out
    }

    /// Reports text before the marker that is no prefix of the other lines.
    fn before_marker(&self, text: &str, place: Range<usize>, out: &mut Vec<Diagnostic>) {
        let before = self.before(text);
        let bare = clean::without_controls(before);
        if bare.contains(clean::is_zero_width) {
            let what = "zero-width characters before the direction line were removed";
            out.push(Diagnostic::repair(&rule::ZERO_WIDTH, place.clone(), what));
        }
        let noise_at = bare.trim_end_matches(NOISE).len();
        let noise = bare.get(noise_at..).unwrap_or("");
        let rest = if self.frame.covers_direction() {
            noise
        } else {
            bare.trim_matches(|c: char| c.is_whitespace() || clean::is_zero_width(c))
        };
        if rest.is_empty() {
            let indented =
                !bare.is_empty() && self.frame.is_trivial() && !bare.starts_with('\u{feff}');
            if indented && bare.starts_with([' ', '\t', '\u{a0}']) {
                let what = "the indent of the direction line was removed";
                out.push(Diagnostic::repair(&rule::EXTRA_INDENT, place, what));
            }
        } else if noise.starts_with("```") || noise.starts_with("~~~") {
            out.push(Diagnostic::repair(
                &rule::CODE_FENCE,
                place,
                "the code fence was left out",
            ));
        } else if is_list_mark(rest) {
            let what = "Markdown before the direction line was removed";
            out.push(Diagnostic::repair(&rule::MARKDOWN, place, what));
        } else {
            let what = "the text before the direction line was left out";
            out.push(Diagnostic::repair(&rule::TEXT_AROUND, place, what));
        }
    }

    fn around_marker(&self, out: &mut Vec<Diagnostic>) {
        let at = self.span.start + self.marker.span.start..self.span.start + self.marker.span.end;
        let marker = &self.marker;
        let other_spelling = marker.other_version || marker.brackets == Brackets::Wide;
        for (done, rule, what) in [
            (
                marker.other_arrow,
                &rule::ARROW,
                "the arrow of the direction line was read as →",
            ),
            (
                other_spelling,
                &rule::MARKER_SPELLING,
                "the direction line was read in another spelling",
            ),
            (
                marker.no_version,
                &rule::MARKER_SPELLING,
                "the direction line has no version; it was read as v1",
            ),
            (
                marker.escapes,
                &rule::ESCAPES,
                "escapes in the direction line were resolved",
            ),
            (
                marker.nbsp,
                &rule::NBSP,
                "no-break spaces were read as spaces",
            ),
            (
                marker.zero_width,
                &rule::ZERO_WIDTH,
                "zero-width characters were removed",
            ),
            (
                marker.controls,
                &rule::CONTROLS,
                "control characters in the direction line were removed",
            ),
            (
                self.collapsed,
                &rule::COLLAPSED,
                "line ends were lost; the headers were told apart by their names",
            ),
        ] {
            if done {
                out.push(Diagnostic::repair(rule, at.clone(), what));
            }
        }
        let has_markdown = out.iter().any(|d| d.rule.id == rule::MARKDOWN.id);
        if self.markdown_behind && !has_markdown {
            let what = "Markdown behind the direction line was removed";
            out.push(Diagnostic::repair(&rule::MARKDOWN, at, what));
        }
        if let Some(behind) = &self.behind {
            let what = "the text behind the direction line was left out";
            out.push(Diagnostic::repair(&rule::TEXT_AROUND, behind.clone(), what));
        }
    }
}

fn describe(wrapping: Wrapping) -> (&'static Rule, &'static str) {
    match wrapping {
        Wrapping::Indent => (&rule::EXTRA_INDENT, "an extra indent was removed"),
        Wrapping::Quote => (
            &rule::QUOTE_PREFIX,
            "the prefix before each line was removed",
        ),
        Wrapping::Numbers => (&rule::LINE_NUMBERS, "the line numbers were removed"),
        Wrapping::Box => (&rule::BOX, "the frame around the lines was removed"),
    }
}

/// A bullet, a heading mark, emphasis, or the number of a list item.
fn is_list_mark(text: &str) -> bool {
    let number = text.trim_end_matches(['.', ')']);
    !text.chars().any(char::is_alphanumeric)
        || (number.len() < text.len() && number.bytes().all(|b| b.is_ascii_digit()))
}
