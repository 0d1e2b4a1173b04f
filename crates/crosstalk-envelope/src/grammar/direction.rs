//! The direction line `[[SENDER→RECEIVER v1]]` (ENV-010 to ENV-013).

use super::part::{Direction, Span};
use crate::diagnostic::Sink;
use crate::registry::rule;
use crate::text::trim;

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
    if inner.starts_with('[')
        || inner.contains("[[")
        || inner.contains("]]")
        || inner.ends_with(']')
    {
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
    let body = inner.trim_end_matches([' ', '\t']);
    let (parties, version) = body.rsplit_once([' ', '\t']).unwrap_or((body, ""));
    if version != "v1" {
        version_fault(version, place(version), span, sink);
        return None;
    }
    let mut arrows = arrows(parties);
    let (Some((at, width)), None) = (arrows.next(), arrows.next()) else {
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
    Some(Direction {
        sender: place(sender),
        receiver: place(receiver),
        version: place(version),
        line: span,
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

/// Position and width of the first arrow, `→` or `->`.
pub(crate) fn arrow_in(text: &str) -> Option<(usize, usize)> {
    arrows(text).next()
}

fn arrows(text: &str) -> impl Iterator<Item = (usize, usize)> + '_ {
    text.bytes()
        .enumerate()
        .filter_map(|(at, byte)| match byte {
            b'-' if text.as_bytes().get(at + 1) == Some(&b'>') => Some((at, 2)),
            0xe2 if text.as_bytes().get(at..at + 3) == Some("→".as_bytes()) => Some((at, 3)),
            _ => None,
        })
}
