//! The direction line `[[SENDER→RECEIVER v1]]` (ENV-010 to ENV-013).

use super::part::{Direction, Span};
use crate::diagnostic::Sink;
use crate::registry::rule;
use crate::text::{trim, trim_end, trim_start};
use unicode_normalization::char::canonical_combining_class;

/// Reads the line, which begins at byte `start` of the text.
pub(crate) fn read(line: &str, start: usize, sink: &mut Sink) -> Option<Direction> {
    let span = Span::new(start, line.len());
    let Some(inner) = line.strip_prefix("[[").and_then(|l| l.strip_suffix("]]")) else {
        sink.error(
            &rule::DIRECTION_MALFORMED,
            span.range(),
            "the text does not begin with a line [[SENDER→RECEIVER v1]]",
        );
        return None;
    };
    let shape = Shape::of(inner);
    // Blanks may stand between the brackets and the sender, but another bracket may not.
    if shape.brackets || trim_start(inner).starts_with('[') {
        sink.error(
            &rule::DIRECTION_MALFORMED,
            span.range(),
            "the direction line has brackets inside its brackets",
        );
        return None;
    }
    let place = |part: &str| {
        Span::new(
            start + (part.as_ptr() as usize - line.as_ptr() as usize),
            part.len(),
        )
    };
    let body = trim_end(inner);
    let blank = body.bytes().rposition(|b| matches!(b, b' ' | b'\t'));
    // Without a blank there is no version: nothing, at the end of the line.
    let (parties, version) = body.split_at(blank.unwrap_or(body.len()));
    let version = trim_start(version);
    if version != "v1" {
        version_fault(version, place(version), span, sink);
        return None;
    }
    let Some((at, width)) = shape.arrow.filter(|_| shape.arrows == 1) else {
        sink.error(
            &rule::DIRECTION_ARROW,
            place(parties).range(),
            "the direction line does not have exactly one arrow",
        );
        return None;
    };
    let sender = trim(parties.get(..at).unwrap_or(""));
    let receiver = trim(parties.get(at + width..).unwrap_or(""));
    if sender.is_empty() || receiver.is_empty() {
        let side = if sender.is_empty() {
            "sender"
        } else {
            "receiver"
        };
        sink.error(
            &rule::DIRECTION_PARTY,
            place(parties).range(),
            format!("the {side} is empty"),
        );
        return None;
    }
    if !is_party(sender) || !is_party(receiver) {
        let what =
            "a side begins with a character that does not show, or that would change the arrow";
        sink.error(&rule::DIRECTION_PARTY, place(parties).range(), what);
        return None;
    }
    Some(Direction {
        sender: place(sender),
        receiver: place(receiver),
        version: place(version),
        line: span,
    })
}

/// Whether a line is a direction line.
pub(crate) fn is_direction(line: &str) -> bool {
    read(line, 0, &mut Sink::default()).is_some()
}

/// Whether a side begins with something that shows and does not change the arrow before it.
fn is_party(text: &str) -> bool {
    text.chars().next().is_some_and(|c| {
        let is_shown = !c.is_whitespace() && !crate::unicode::is_invisible(c);
        c.is_ascii() || (is_shown && canonical_combining_class(c) == 0)
    })
}

fn version_fault(version: &str, place: Span, line: Span, sink: &mut Sink) {
    if looks_like_version(version) {
        sink.error(
            &rule::VERSION_UNSUPPORTED,
            place.range(),
            format!("version {version} is not supported"),
        );
    } else {
        sink.error(
            &rule::DIRECTION_MALFORMED,
            line.range(),
            "the direction line does not end with a version",
        );
    }
}

/// `v`, then digits, with or without further numbers: `v2`, `v1.1`.
pub(crate) fn looks_like_version(token: &str) -> bool {
    token.strip_prefix('v').is_some_and(|rest| {
        rest.bytes().next().is_some_and(|b| b.is_ascii_digit())
            && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    })
}

/// The text between the brackets of a direction line.
#[derive(Default)]
struct Shape {
    /// `[[` or `]]`, or a bracket beside those of the line.
    brackets: bool,
    arrows: usize,
    /// Position and width of the first arrow.
    arrow: Option<(usize, usize)>,
}

impl Shape {
    fn of(inner: &str) -> Self {
        let mut shape = Self::default();
        let mut rest = inner.as_bytes();
        shape.brackets = rest.first() == Some(&b'[') || rest.last() == Some(&b']');
        while let [first, tail @ ..] = rest {
            match (first, tail) {
                (b'[', [b'[', ..]) | (b']', [b']', ..]) => shape.brackets = true,
                (b'-', [b'>', ..]) => shape.arrow_at(inner.len() - rest.len(), 2),
                (0xe2, [0x86, 0x92, ..]) => shape.arrow_at(inner.len() - rest.len(), 3),
                _ => {}
            }
            rest = tail;
        }
        shape
    }

    fn arrow_at(&mut self, at: usize, width: usize) {
        self.arrows += 1;
        self.arrow.get_or_insert((at, width));
    }
}

/// Position and width of the first arrow, `→` or `->`.
pub(crate) fn arrow_in(text: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    memchr::memchr2_iter(b'-', 0xe2, bytes).find_map(|at| match bytes.get(at..)? {
        [b'-', b'>', ..] => Some((at, 2)),
        [0xe2, 0x86, 0x92, ..] => Some((at, 3)),
        _ => None,
    })
}
