//! Envelopes whose line ends were collapsed into spaces (PST-011).

use super::line::PasteLine;
use super::marker::NOISE;
use crate::grammar::{Reserved, is_key_style, is_name};
use crate::registry::Namespace;
use std::ops::Range;

/// Cuts a line of the head into headers, told apart by their names.
pub(super) fn pieces<'t>(line: &PasteLine<'t>, namespace: Option<&str>) -> Vec<PasteLine<'t>> {
    let mut pieces = Vec::new();
    let mut start = 0;
    let mut namespace = namespace.map(str::to_ascii_lowercase);
    for word in words(&line.text) {
        let text = line.text.get(word.clone()).unwrap_or("");
        let Some(name) = text.trim_matches(NOISE).strip_suffix(':') else {
            continue;
        };
        let name = name.trim_matches(NOISE);
        let reserved = Reserved::named(name).map(|(r, _)| r);
        if reserved.is_none() && !is_key(namespace.as_deref(), name) {
            continue;
        }
        push(line, start..word.start, &mut pieces);
        start = word.start;
        match reserved {
            Some(Reserved::Meta) => {
                let behind = line.text.get(word.end..).unwrap_or("").trim_start();
                let value = behind.split([' ', '\t']).next().unwrap_or("");
                namespace = Some(value.to_ascii_lowercase());
            }
            Some(Reserved::Body(_)) => break,
            _ => {}
        }
    }
    push(line, start..line.text.len(), &mut pieces);
    pieces
}

fn push<'t>(line: &PasteLine<'t>, range: Range<usize>, pieces: &mut Vec<PasteLine<'t>>) {
    let piece = line.slice(range);
    if !piece.text.is_empty() {
        pieces.push(piece);
    }
}

fn is_key(namespace: Option<&str>, name: &str) -> bool {
    namespace.is_some_and(|n| {
        (is_name(name.as_bytes()) && is_key_style(name))
            || Namespace::find(n).is_some_and(|n| n.kind_of(name).is_some())
    })
}

/// The places of the words of a text.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    text.split([' ', '\t', '\u{a0}'])
        .filter(|w| !w.is_empty())
        .map(|w| {
            let start = w.as_ptr() as usize - text.as_ptr() as usize;
            start..start + w.len()
        })
}

/// Parts the last line of a collapsed body from the `sig:` behind it.
pub(super) fn split_sig(lines: &mut Vec<PasteLine<'_>>) {
    while lines.last().is_some_and(PasteLine::is_blank) {
        lines.pop();
    }
    let Some(last) = lines.last() else { return };
    let Some(at) = sig_in(&last.text) else { return };
    if at > 0 {
        let sig = last.slice(at..last.text.len());
        let body = last.slice(0..at);
        lines.pop();
        lines.push(body);
        lines.push(sig);
    }
}

/// Where the last word `sig:` stands that can begin a signature.
fn sig_in(text: &str) -> Option<usize> {
    let bare = |r: &Range<usize>| text.get(r.clone()).unwrap_or("").trim_matches(NOISE);
    let word = words(text)
        .filter(|r| bare(r).eq_ignore_ascii_case("sig:"))
        .last()?;
    let value = text.get(word.end..)?.trim();
    let is_one = !value.contains([' ', '\t']);
    (is_one || value.contains(":pkid=")).then_some(word.start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_at_its_names() {
        let line = PasteLine {
            text: "user: kalle context: a b: c meta: routing X-Priority: high Foo-Bar: x lower: y body: | user: z"
                .into(),
            span: 0..97,
        };
        let found: Vec<String> = pieces(&line, None)
            .into_iter()
            .map(|l| l.text.into())
            .collect();
        assert_eq!(
            found,
            [
                "user: kalle",
                "context: a b: c",
                "meta: routing",
                "X-Priority: high",
                "Foo-Bar: x lower: y",
                "body: | user: z"
            ]
        );
    }

    #[test]
    fn the_last_sig_counts() {
        assert_eq!(sig_in("text sig: none"), Some(5));
        assert_eq!(sig_in("a sig: none b sig: none"), Some(14));
        assert_eq!(sig_in("put the sig: at the end"), None);
    }
}
