//! Envelopes in a paste that the grammar takes as they are.

use super::repair::Repaired;
use super::{clean, head};
use crate::diagnostic::Diagnostic;
use crate::document::Document;
use crate::grammar::CoreHeader;
use crate::registry::rule;

/// The document as the result of the paste reading, unless something in it needs repair.
pub(super) fn accept(strict: Document<'_>) -> Option<Document<'_>> {
    if !strict.is_accepted() {
        return None;
    }
    let padding = padding_in(strict.source());
    // An envelope that was signed in this form stays in this form.
    if !is_signed(&strict) && (padding.is_some() || needs_repair(&strict)) {
        return None;
    }
    let start = strict.span().start;
    let what = "spaces at the ends of lines were removed";
    let report = |at: usize| Diagnostic::repair(&rule::PADDING, start + at..start + at + 1, what);
    let repairs: Vec<Diagnostic> = padding.map(report).into_iter().collect();
    Some(strict.into_clean_paste(repairs))
}

/// A signed envelope that is well-formed as soon as it is unwrapped: nothing else in it is touched.
pub(super) fn accept_signed(
    source: &str,
    start: usize,
    unwrapped: Repaired,
) -> Option<Document<'_>> {
    let document = Document::read_repaired(source, start, unwrapped);
    (document.is_accepted() && document.is_well_formed() && is_signed(&document))
        .then_some(document)
}

fn is_signed(document: &Document<'_>) -> bool {
    document.sig().is_some_and(|s| s != "none")
}

/// Whether the paste reading would mend an envelope that the grammar takes: PST-005, PST-006, PST-012, PST-014,
/// PST-015, PST-019 and PST-020.
fn needs_repair(document: &Document<'_>) -> bool {
    let text = document.text();
    let body = document.parts().body;
    let head = text.get(..body.map_or(0, |b| b.mark.start())).unwrap_or("");
    let tail = text
        .get(body.map_or(0, |b| b.content.end())..)
        .unwrap_or("");
    let ids = [CoreHeader::Thread, CoreHeader::Parent, CoreHeader::Message];
    let is_broken = |value: &str| value.starts_with("//");
    clean::needs_cleaning(head)
        || clean::needs_cleaning(tail)
        || ids
            .iter()
            .filter_map(|id| document.header(*id))
            .any(|v| head::comment_in(v).is_some() || head::unquoted(v).is_some())
        || document.header(CoreHeader::Intent).is_some_and(|i| {
            head::intent_in_another_case(i).is_some() || head::unquoted(i).is_some()
        })
        || document.headers().any(|(_, value)| is_broken(value))
        || document
            .blocks()
            .any(|b| b.fields().any(|(_, value)| is_broken(value)))
}

/// Where the first line ends with a space beyond ASCII. Spaces and tabs there are none of the line (ENV-002).
fn padding_in(source: &str) -> Option<usize> {
    let ends = memchr::memchr_iter(b'\n', source.as_bytes());
    let mut lines = ends.chain([source.len()]).filter_map(|end| {
        let line = source.get(..end)?;
        let is_suspect = matches!(line.as_bytes().last(), Some(b'\r' | b' ' | b'\t' | 0x80..));
        is_suspect.then_some(line)
    });
    lines.find_map(|line| {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let bare = line.trim_end_matches([' ', '\t']);
        bare.ends_with(clean::is_padding).then(|| line.len() - 1)
    })
}
