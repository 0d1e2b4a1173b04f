//! Words near a number that say what it is (RED-005).

use super::view::{BARRIER, View, is_word};
use crosstalk_envelope::registry::{LABEL_BEFORE, LABEL_BEHIND};
use crosstalk_envelope::unicode::nfd;
use std::ops::Range;

/// Whether one of some labels stands near, on the same line.
pub(super) fn is_near(view: &View, place: &Range<usize>, labels: &[&str]) -> bool {
    let stays = |i: &usize| !matches!(view.at(*i), '\n' | BARRIER);
    let lowest = place.start.saturating_sub(LABEL_BEFORE);
    let mut before: Vec<char> = (lowest..place.start)
        .rev()
        .take_while(stays)
        .map(|i| view.at(i))
        .collect();
    before.reverse();
    let behind: Vec<char> = (place.end..place.end + LABEL_BEHIND)
        .take_while(stays)
        .map(|i| view.at(i))
        .collect();
    labels
        .iter()
        .any(|label| holds(&before, label) || holds(&behind, label))
}

/// Whether a text has a label as a word of its own.
fn holds(text: &[char], label: &str) -> bool {
    let label = nfd(label.chars());
    let is_free = |i: Option<usize>| i.and_then(|i| text.get(i)).is_none_or(|c| !is_word(*c));
    let ends_in_word = label.last().is_some_and(|c| is_word(*c));
    text.windows(label.len()).enumerate().any(|(at, window)| {
        window == label
            && is_free(at.checked_sub(1))
            && (!ends_in_word || is_free(Some(at + label.len())))
    })
}

/// Whether one of some labels stands right before a place, with a colon, a dot or a space between at most.
pub(super) fn right_before(view: &View, at: usize, labels: &[&str]) -> bool {
    let mut end = at;
    while end > 0 && at - end < 3 && matches!(view.before(end), ' ' | ':' | '.' | '=' | '(' | '#') {
        end -= 1;
    }
    let mut start = end;
    while start > 0 && end - start < 20 && view.follows_word(start) {
        start -= 1;
    }
    let word: Vec<char> = (start..end).map(|i| view.at(i)).collect();
    !word.is_empty() && labels.iter().any(|label| nfd(label.chars()) == word)
}
