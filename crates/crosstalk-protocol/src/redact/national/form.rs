//! How a national number is written.

use super::super::view::View;

/// A way to write a number, and what makes it one.
pub(in super::super) struct Form {
    /// `d` a digit, `l` a letter, `u` a letter in upper case, `a` a letter or a digit, `c` the sign of a century as in
    /// Finland, `_` a space, hyphen or dot that may be missing. Anything else stands for itself.
    pub(in super::super) pattern: &'static str,
    /// Whether the letters and digits are a number, in upper case and without the signs between them.
    pub(in super::super) check: fn(&[u8]) -> bool,
    /// Without one of these near it, it is none.
    pub(in super::super) labels: &'static [&'static str],
}

impl Form {
    /// The end of what is written so from a place on, and its letters and digits.
    pub(in super::super) fn read(&self, view: &View, start: usize) -> Option<(usize, Vec<u8>)> {
        let mut at = start;
        let mut signs = Vec::new();
        for wanted in self.pattern.chars() {
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
}
