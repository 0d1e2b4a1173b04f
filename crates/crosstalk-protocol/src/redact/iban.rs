//! International bank account numbers: the length of the country and the remainder by 97 (RED-013).

use super::view::View;
use super::{PiiKind, PiiMatch};
use crosstalk_envelope::registry::IBAN_LENGTHS;

/// Finds the account numbers of a view.
pub(super) fn scan(view: &View, out: &mut Vec<PiiMatch>) {
    let mut at = 0;
    while at < view.len() {
        let starts = view.at(at).is_ascii_lowercase() && !view.follows_word(at);
        match starts.then(|| end(view, at)).flatten() {
            Some(end) => {
                out.push(PiiMatch::new(PiiKind::Iban, at..end));
                at = end;
            }
            None => at += 1,
        }
    }
}

/// The end of the account number that begins here.
fn end(view: &View, start: usize) -> Option<usize> {
    if !view.is_digit(start + 2) || !view.is_digit(start + 3) {
        return None;
    }
    let country: String = (start..start + 2)
        .map(|i| view.at(i).to_ascii_uppercase())
        .collect();
    let length = IBAN_LENGTHS
        .iter()
        .find_map(|entry| entry.strip_prefix(&country))?;
    let length: usize = length.parse().ok()?;
    let mut signs = Vec::with_capacity(length);
    let mut at = start;
    while signs.len() < length {
        let sign = view.at(at);
        if sign.is_ascii_alphanumeric() {
            signs.push(sign);
            at += 1;
        } else if matches!(sign, ' ' | '-' | '.') && view.at(at + 1).is_ascii_alphanumeric() {
            at += 1;
        } else {
            return None;
        }
    }
    (!view.is_word(at) && is_sound(&signs)).then_some(at)
}

/// Whether the number, its first four signs put last and its letters read as 10 to 35, leaves 1 when divided by 97.
fn is_sound(signs: &[char]) -> bool {
    let turned = signs.iter().skip(4).chain(signs.iter().take(4));
    let rest = turned.fold(0, |rest, sign| {
        let value = sign.to_digit(36).unwrap_or(0);
        (if value > 9 { rest * 100 } else { rest * 10 } + value) % 97
    });
    rest == 1
}
