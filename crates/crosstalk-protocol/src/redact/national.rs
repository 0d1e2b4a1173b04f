//! National identification, insurance and tax numbers of people (RED-015).

mod check;

use super::view::View;
use super::{PiiKind, PiiMatch, label};
use crosstalk_envelope::registry::{NATIONAL_NUMBERS, NationalNumber};

/// Finds the national numbers of a view.
pub(super) fn scan(view: &View, out: &mut Vec<PiiMatch>) {
    let mut at = 0;
    while at < view.len() {
        let starts = view.at(at).is_ascii_alphanumeric() && is_free_before(view, at);
        match starts.then(|| longest(view, at)).flatten() {
            Some(end) => {
                out.push(PiiMatch::new(PiiKind::Nin, at..end));
                at = end;
            }
            None => at += 1,
        }
    }
}

/// The end of the longest national number that begins here.
fn longest(view: &View, start: usize) -> Option<usize> {
    let end = |number: &NationalNumber| {
        let fits = |form: &&str| {
            let (end, signs) = read(form, view, start)?;
            (is_free_behind(view, end) && check::holds(number, &signs)).then_some(end)
        };
        let is_called = |end: &usize| label::is_near(view, &(start..*end), number.labels);
        let labelled = number.labelled.iter().filter_map(fits).filter(is_called);
        number.forms.iter().filter_map(fits).chain(labelled).max()
    };
    NATIONAL_NUMBERS.iter().filter_map(end).max()
}

/// Whether a number may begin here: no word and no other number goes on.
fn is_free_before(view: &View, at: usize) -> bool {
    let before = view.before(at);
    let is_inside = matches!(before, '-' | '.' | '/' | '+') && at > 1 && view.is_digit(at - 2);
    !view.follows_word(at) && !is_inside && before != '+'
}

/// Whether a number may end here.
fn is_free_behind(view: &View, at: usize) -> bool {
    let goes_on = match view.at(at) {
        '-' | '/' => view.is_word(at + 1),
        '.' => view.is_digit(at + 1),
        _ => false,
    };
    !view.is_word(at) && !goes_on
}

/// The end of what is written in a form from a place on, and its letters and digits in upper case.
///
/// In a form `d` is a digit, `l` a letter, `u` a letter in upper case, `a` a letter or a digit, `c` the sign of a century
/// as in Finland, `_` a space, hyphen or dot that may be missing. Anything else stands for itself.
fn read(form: &str, view: &View, start: usize) -> Option<(usize, Vec<u8>)> {
    let mut at = start;
    let mut signs = Vec::new();
    for wanted in form.chars() {
        let sign = view.at(at);
        let fits = match wanted {
            'd' => sign.is_ascii_digit(),
            'l' => sign.is_ascii_lowercase(),
            'u' => sign.is_ascii_lowercase() && view.is_upper(at),
            'a' => sign.is_ascii_alphanumeric(),
            'c' => matches!(sign, '-' | '+' | 'a'..='f' | 'u'..='y'),
            '_' if matches!(sign, ' ' | '-' | '.') => {
                at += 1;
                continue;
            }
            '_' => continue,
            sign_itself => sign == sign_itself,
        };
        if !fits {
            return None;
        }
        if sign.is_ascii_alphanumeric() || wanted == 'c' {
            signs.push(u8::try_from(sign.to_ascii_uppercase()).ok()?);
        }
        at += 1;
    }
    Some((at, signs))
}
