//! The body of a pasted envelope and the `sig:` line below it (PST-010, PST-013, PST-016, PST-022).

use super::clean;
use super::head;
use super::line::PasteLine;
use super::name;
use super::repair::Repaired;
use crate::registry::rule;
use crate::signature::Signature;
use crate::text::trim;
use std::ops::Range;

/// The line that opens the body.
#[derive(Debug)]
pub(super) struct Opener<'t> {
    /// `body` or `response`.
    pub(super) name: &'static str,
    pub(super) origin: Range<usize>,
    /// Text on the line of the name.
    pub(super) inline: Option<PasteLine<'t>>,
}

/// Writes the body and the signature; `end` is the place of the `[[END]]`.
pub(super) fn emit(
    opener: &Opener<'_>,
    lines: &[PasteLine<'_>],
    declared: Option<usize>,
    end: Range<usize>,
    out: &mut Repaired,
) {
    out.emit(&format!("{}: |", opener.name), opener.origin.clone());
    let declared = declared.and_then(|count| declared_sig(lines, count));
    let sig = find_sig(lines, declared);
    let buried = || declared.or_else(|| buried_signature(lines));
    if let Some(at) = sig.is_none().then(buried).flatten() {
        // A signature is never taken for text: the grammar rejects the lines behind it.
        let (body, behind) = lines.split_at_checked(at).unwrap_or((lines, &[]));
        emit_lines(body, opener.inline.is_some(), out);
        for line in behind {
            out.emit(line.text.trim_end(), line.span.clone());
        }
        return;
    }
    let body = lines.get(..sig.unwrap_or(lines.len())).unwrap_or(&[]);
    emit_lines(body, opener.inline.is_some(), out);
    match sig.and_then(|at| lines.get(at..)) {
        Some(sig) => emit_sig(sig, out),
        None if opener.name == "response" => {}
        None => {
            let what = "there is no sig: line; the message counts as unsigned";
            out.note(&rule::SIG_ADDED, end.clone(), what);
            out.emit("sig: none", end);
        }
    }
}

/// The lines of the body, the inline one first.
fn emit_lines(body: &[PasteLine<'_>], has_inline: bool, out: &mut Repaired) {
    let below = body.iter().skip(usize::from(has_inline));
    let first = below.clone().find(|l| !l.is_blank());
    let indented = first.is_none_or(|l| indent_of(&l.text).is_some());
    for (number, line) in body.iter().enumerate() {
        let is_inline = has_inline && number == 0;
        if line.text.contains(clean::is_separator) {
            let what = "a line separator was read as the end of a line";
            out.note_once(&rule::LINE_SEPARATORS, line.span.clone(), what);
        }
        for part in line.text.split(clean::is_separator) {
            emit_line(part, line, indented && !is_inline, !has_inline, out);
        }
    }
}

fn emit_line(text: &str, line: &PasteLine<'_>, indented: bool, must: bool, out: &mut Repaired) {
    let text = text.trim_end_matches(clean::is_padding);
    let origin = line.span.clone();
    if text.is_empty() {
        return out.emit("", origin);
    }
    let (width, exact) = indent_of(text).filter(|_| indented).unwrap_or((0, true));
    if width == 0 && must {
        let what = "a body line was not indented";
        out.note_once(&rule::BODY_UNINDENTED, origin.clone(), what);
    }
    if !exact {
        let what = "no-break spaces in the indent were read as spaces";
        out.note_once(&rule::NBSP, line.byte(0), what);
    }
    out.emit_indented(text.get(width..).unwrap_or(""), origin);
}

/// The bytes of the indent of a body line, and whether it is one of the grammar's.
fn indent_of(line: &str) -> Option<(usize, bool)> {
    if line.starts_with("  ") {
        return Some((2, true));
    }
    if line.starts_with('\t') {
        return Some((1, true));
    }
    let blank = |c: &char| *c == ' ' || clean::is_nbsp(*c);
    let mut chars = line.chars();
    let (first, second) = (chars.next().filter(blank)?, chars.next().filter(blank)?);
    Some((first.len_utf8() + second.len_utf8(), false))
}

/// The index of the `sig:` line: the declared or the last one, with nothing but its own rest behind it.
fn find_sig(lines: &[PasteLine<'_>], declared: Option<usize>) -> Option<usize> {
    let index = declared.or_else(|| lines.iter().rposition(|l| name::is_sig(&l.text)))?;
    let (_, value) = lines
        .get(index)?
        .text
        .split_once([':', '：'])
        .unwrap_or(("", ""));
    let may_go_on = value.trim().is_empty() || value.contains(":pkid=");
    let mut behind = lines.iter().skip(index + 1).filter(|l| !l.is_blank());
    behind
        .all(|l| may_go_on && is_rest_of_sig(&l.text))
        .then_some(index)
}

/// The index of the `sig:` line right behind as many lines as the body has.
fn declared_sig(lines: &[PasteLine<'_>], count: usize) -> Option<usize> {
    let mut behind = lines.iter().enumerate().skip(count);
    let (index, line) = behind.find(|(_, l)| !l.is_blank())?;
    name::is_sig(&line.text).then_some(index)
}

/// Whether a line can be the rest of a wrapped signature.
pub(super) fn is_rest_of_sig(line: &str) -> bool {
    let mut bytes = line.trim().bytes();
    bytes.all(|b| b.is_ascii_alphanumeric() || b"+/=;:@._-".contains(&b))
}

/// The index of the last whole signature, if other text follows it.
fn buried_signature(lines: &[PasteLine<'_>]) -> Option<usize> {
    lines.iter().rposition(|line| {
        let value = line.text.strip_prefix("sig:").map(trim);
        value.is_some_and(|v| Signature::parse(v).is_ok_and(|s| s.is_signed()))
    })
}

/// Writes the `sig:` line, joined if it was wrapped.
fn emit_sig(lines: &[PasteLine<'_>], out: &mut Repaired) {
    let Some(first) = lines.first() else { return };
    let cleaned = clean::head_line(&first.text);
    head::note_cleaning(first, &cleaned, out);
    let Some(named) = name::named(&cleaned.text) else {
        return;
    };
    name::note(first, &named, "sig", out);
    let mut value = trim(named.value).to_owned();
    for line in lines.iter().skip(1).filter(|l| !l.is_blank()) {
        let cleaned = clean::head_line(line.text.trim());
        head::note_cleaning(line, &cleaned, out);
        let what = "a wrapped signature was joined again";
        out.note_once(&rule::WRAPPED, line.span.clone(), what);
        value.push_str(&cleaned.text);
    }
    if value.is_empty() {
        let what = "the empty sig: line was read as none";
        out.note(&rule::SIG_ADDED, first.span.clone(), what);
        "none".clone_into(&mut value);
    } else if value != "none" && value.eq_ignore_ascii_case("none") {
        let what = "`none` was read in another spelling";
        out.note(&rule::MARKER_SPELLING, first.span.clone(), what);
        "none".clone_into(&mut value);
    }
    out.emit(&format!("sig: {value}"), first.span.clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sig_of(text: &str, declared: Option<usize>) -> Option<usize> {
        let lines: Vec<PasteLine<'_>> = text
            .split('\n')
            .map(|l| PasteLine {
                text: l.into(),
                span: 0..l.len(),
            })
            .collect();
        find_sig(
            &lines,
            declared.and_then(|count| declared_sig(&lines, count)),
        )
    }

    #[test]
    fn the_last_sig_with_nothing_behind_it_counts() {
        assert_eq!(sig_of("text\nsig: none\n", None), Some(1));
        assert_eq!(sig_of("sig: none\ntext\nsig: none", None), Some(2));
        assert_eq!(
            sig_of("text\nsig: ed25519:pkid=a;sig=AA\nBB==", None),
            Some(1)
        );
        assert_eq!(sig_of("text\nsig: see below\nThanks", None), None);
        assert_eq!(sig_of("text\n  sig: none", None), None);
        assert_eq!(sig_of("sig: none\nmore words", None), None);
        assert_eq!(sig_of("a\nsig: none\n\n", Some(1)), Some(1));
        assert_eq!(sig_of("a\nsig: x\nsig: none", Some(1)), None);
    }
}
