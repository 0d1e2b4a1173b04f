//! IPv4 and IPv6 addresses, but those that name no machine and version numbers (RED-014).

use super::view::View;
use super::{PiiKind, PiiMatch};
use crosstalk_envelope::registry::VERSION_WORDS;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// The longest IPv6 address.
const MOST_SIGNS: usize = 45;

/// Finds the addresses of a view.
pub(super) fn scan(view: &View, out: &mut Vec<PiiMatch>) {
    let mut at = 0;
    while at < view.len() {
        if view.follows_word(at) {
            at += 1;
            continue;
        }
        let found = if view.is_digit(at) {
            v4(view, at).or_else(|| v6(view, at))
        } else if matches!(view.at(at), 'a'..='f' | ':') {
            v6(view, at)
        } else {
            None
        };
        match found {
            Some((end, true)) => {
                out.push(PiiMatch::new(PiiKind::Ip, at..end));
                at = end;
            }
            Some((end, false)) => at = end,
            None => at += 1,
        }
    }
}

/// The end of a dotted quad, and whether it names a machine.
fn v4(view: &View, start: usize) -> Option<(usize, bool)> {
    let mut octets = [0; 4];
    let mut at = start;
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            if view.at(at) != '.' {
                return None;
            }
            at += 1;
        }
        let end = view.digits_end(at);
        let digits: String = (at..end.min(at + 4)).map(|i| view.at(i)).collect();
        if digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        *octet = digits.parse().ok()?;
        at = end;
    }
    let goes_on = view.is_word(at) || view.at(at) == '.' && view.is_word(at + 1);
    let is_suffixed = view.at(at) == '-' && view.is_word(at + 1) && !view.is_digit(at + 1);
    let before = view.before(start);
    let is_glued = matches!(before, '.' | '-' | '_')
        && view.follows_word(start - 1)
        && !(before == '-' && start > 1 && view.is_digit(start - 2));
    if goes_on || is_suffixed || is_glued || is_numbered(view, start) {
        return None;
    }
    Some((at, names_a_machine(Ipv4Addr::from(octets))))
}

/// Loopback, nothing, everything and masks name no machine.
fn names_a_machine(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    let is_mask = bits >> 24 == 255 && bits.leading_ones() + bits.trailing_zeros() == 32;
    !(address.is_loopback() || address.is_unspecified() || address.is_broadcast() || is_mask)
}

/// Whether the word before says that a version or a section follows.
fn is_numbered(view: &View, start: usize) -> bool {
    let mut end = start;
    while end > 0
        && start - end < 3
        && matches!(view.before(end), ' ' | ':' | '=' | '"' | '\'' | '§')
    {
        if view.before(end) == '§' {
            return true;
        }
        end -= 1;
    }
    let mut word: Vec<char> = Vec::new();
    while word.len() < 12 && end > 0 && view.follows_word(end) {
        end -= 1;
        word.push(view.at(end));
    }
    let is = |name: &&str| name.chars().rev().eq(word.iter().copied());
    VERSION_WORDS.iter().any(is)
}

/// The end of an IPv6 address, and whether it names a machine.
fn v6(view: &View, start: usize) -> Option<(usize, bool)> {
    if matches!(view.before(start), ':' | '.') {
        return None;
    }
    let mut end = start;
    let mut colons = 0;
    while end - start <= MOST_SIGNS && matches!(view.at(end), '0'..='9' | 'a'..='f' | ':' | '.') {
        colons += usize::from(view.at(end) == ':');
        end += 1;
    }
    if colons < 2 || view.is_word(end) {
        return None;
    }
    // The full stop or the colon of the sentence.
    while end > start
        && (view.before(end) == '.' || view.before(end) == ':' && view.before(end - 1) != ':')
    {
        end -= 1;
    }
    let text: String = (start..end).map(|i| view.at(i)).collect();
    let address: Ipv6Addr = text.parse().ok()?;
    // `a::b` is a path of a program more often than an address.
    let is_long = text.split(':').filter(|g| !g.is_empty()).count() > 2;
    if !is_long && !text.contains(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let names = !(address.is_loopback() || address.is_unspecified());
    Some((zone(view, end), names))
}

/// The end of `%eth0` behind an address.
fn zone(view: &View, end: usize) -> usize {
    let mut to = end + 1;
    while to - end < 16 && view.at(to).is_ascii_alphanumeric() {
        to += 1;
    }
    let name: Range<usize> = end + 1..to;
    if view.at(end) == '%' && !name.is_empty() && !view.is_word(to) {
        to
    } else {
        end
    }
}
