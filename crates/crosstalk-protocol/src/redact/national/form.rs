//! How a national number is written.

use super::super::view::View;

/// The end of what is written in a form from a place on, and its letters and digits in upper case.
///
/// In a form `d` is a digit, `l` a letter, `u` a letter in upper case, `a` a letter or a digit, `c` the sign of a century
/// as in Finland, `_` a space, hyphen or dot that may be missing. Anything else stands for itself.
pub(super) fn read(form: &str, view: &View, start: usize) -> Option<(usize, Vec<u8>)> {
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
