//! Envelopes in a paste that the grammar takes as they are.

use super::repair::Repaired;
use super::{clean, head, repaired};
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
    let beyond_ascii = padding.is_some_and(|(_, beyond_ascii)| beyond_ascii);
    // What was signed in this form stays in this form.
    if !is_signed(&strict) && (beyond_ascii || needs_repair(&strict)) {
        return None;
    }
    let at = strict.span().start;
    let repairs: Vec<Diagnostic> = padding
        .map(|(i, _)| {
            repaired(
                &rule::PADDING,
                at + i..at + i + 1,
                "spaces at the ends of lines were removed",
            )
        })
        .into_iter()
        .collect();
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

/// What the grammar takes and the paste reading would still mend: PST-005, PST-006, PST-012, PST-014,
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
            .any(|v| head::comment_in(v).is_some())
        || document
            .header(CoreHeader::Intent)
            .is_some_and(|i| head::intent_in_another_case(i).is_some())
        || document.headers().any(|(_, value)| is_broken(value))
        || document
            .blocks()
            .any(|b| b.fields().any(|(_, value)| is_broken(value)))
}

/// The first white space at the end of a line, and whether some line ends with a space beyond ASCII.
fn padding_in(source: &str) -> Option<(usize, bool)> {
    let mut first = None;
    let ends = memchr::memchr_iter(b'\n', source.as_bytes());
    for end in ends.chain([source.len()]) {
        let line = source.get(..end).unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);
        match line.as_bytes().last() {
            Some(b' ' | b'\t') => {
                first.get_or_insert((line.len() - 1, false));
                let bare = line.trim_end_matches([' ', '\t']);
                if bare.ends_with(clean::is_padding) {
                    return Some((line.len() - 1, true));
                }
            }
            Some(0x80..) if line.ends_with(clean::is_padding) => {
                return Some((line.len() - 1, true));
            }
            _ => {}
        }
    }
    first
}
