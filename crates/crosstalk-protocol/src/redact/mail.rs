//! Mail addresses (RED-010).

use super::view::View;
use super::{PiiKind, PiiMatch};
use std::ops::Range;

/// How long a quoted left side or a bracketed right side may be.
const MOST_QUOTED: usize = 64;

/// Finds the mail addresses of a view.
pub(super) fn scan(view: &View, out: &mut Vec<PiiMatch>) {
    for at in 0..view.len() {
        if view.at(at) == '@'
            && let Some(start) = local(view, at)
            && let Some(end) = domain(view, at + 1)
            && !is_repository(view, start..at, end)
        {
            out.push(PiiMatch::new(PiiKind::Email, start..end));
        }
    }
}

/// Where the left side begins.
fn local(view: &View, at: usize) -> Option<usize> {
    if view.before(at) == '"' {
        return quoted(view, at - 1);
    }
    let mut start = at;
    while start > 0 && is_local(view, start - 1) {
        start -= 1;
    }
    while start < at && !view.is_word(start) && view.at(start) != '_' {
        start += 1;
    }
    (start < at).then_some(start)
}

fn is_local(view: &View, at: usize) -> bool {
    match view.at(at) {
        '.' | '_' | '%' | '+' | '-' => true,
        '\'' => view.is_word(at + 1) && view.follows_word(at),
        c => super::view::is_word(c),
    }
}

/// Where a quoted left side begins: `"jane doe"@example.com`.
fn quoted(view: &View, close: usize) -> Option<usize> {
    let lowest = close.saturating_sub(MOST_QUOTED);
    let open = (lowest..close).rev().take_while(|i| view.at(*i) != '\n');
    let mut open = open.skip_while(|i| view.at(*i) != '"');
    open.next().filter(|open| open + 1 < close)
}

/// The end of the right side.
fn domain(view: &View, start: usize) -> Option<usize> {
    if view.at(start) == '[' {
        return bracketed(view, start);
    }
    let mut end = start;
    while view.is_word(end) || matches!(view.at(end), '.' | '-') {
        if view.at(end) == '.' && view.at(end + 1) == '.' {
            break;
        }
        end += 1;
    }
    while end > start && matches!(view.before(end), '.' | '-') {
        end -= 1;
    }
    let labels = labels(view, start..end);
    let last = labels.iter().rposition(|label| is_top(view, label))?;
    let numbers = labels.iter().take(2).filter(|l| is_number(view, l)).count();
    let is_version = numbers == 2 || is_scale(view, labels.first()?);
    let top = labels.get(last)?;
    (last > 0 && !is_version && !labels.iter().take(last).any(Range::is_empty)).then_some(top.end)
}

fn labels(view: &View, domain: Range<usize>) -> Vec<Range<usize>> {
    let mut labels: Vec<Range<usize>> = Vec::new();
    labels.push(domain.start..domain.start);
    for at in domain {
        if view.at(at) == '.' {
            labels.push(at + 1..at + 1);
        } else if let Some(label) = labels.last_mut() {
            label.end = at + 1;
        }
    }
    labels
}

/// Whether a domain can end with a label: it begins with two letters.
fn is_top(view: &View, label: &Range<usize>) -> bool {
    let is_letter = |i: usize| view.is_word(i) && !view.is_digit(i);
    label.len() >= 2 && is_letter(label.start) && is_letter(label.start + 1)
}

fn is_number(view: &View, label: &Range<usize>) -> bool {
    !label.is_empty() && label.clone().all(|i| view.is_digit(i))
}

/// `icon@2x.png` is a picture for a dense screen.
fn is_scale(view: &View, label: &Range<usize>) -> bool {
    label.len() == 2 && view.is_digit(label.start) && view.at(label.start + 1) == 'x'
}

/// `user@[192.0.2.1]`.
fn bracketed(view: &View, open: usize) -> Option<usize> {
    let inside = open + 1..open + MOST_QUOTED;
    let close = inside.clone().find(|i| view.at(*i) == ']')?;
    let is_address =
        |i: usize| view.at(i).is_ascii_alphanumeric() || matches!(view.at(i), '.' | ':');
    let is_sound = close > open + 1 && (open + 1..close).all(is_address);
    is_sound.then_some(close + 1)
}

/// `git@host:path` is the place of a repository.
fn is_repository(view: &View, local: Range<usize>, end: usize) -> bool {
    let name = local.map(|i| view.at(i));
    let is_path = |c: char| c.is_ascii_alphanumeric() || matches!(c, '~' | '/');
    name.eq("git".chars()) && view.at(end) == ':' && is_path(view.at(end + 1))
}
