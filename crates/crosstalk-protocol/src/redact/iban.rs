//! International bank account numbers: the length of the country and the remainder by 97 (RED-013).

use super::view::View;
use super::{Candidate, Pii};

/// The countries of the register and how long their numbers are.
const LENGTHS: &str = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 \
    DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 \
    IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 \
    OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 \
    UA29 VA22 VG24 XK20 YE30";

/// Finds the account numbers of a view.
pub(super) fn scan(view: &View, out: &mut Vec<Candidate>) {
    let mut at = 0;
    while at < view.len() {
        let starts = view.at(at).is_ascii_lowercase() && !view.follows_word(at);
        match starts.then(|| end(view, at)).flatten() {
            Some(end) => {
                out.push(Candidate::new(Pii::Iban, at..end));
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
    let length = LENGTHS
        .split(' ')
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
