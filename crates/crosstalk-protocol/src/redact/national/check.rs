//! The checks of national numbers. Each takes letters and digits in upper case, of the length of its form.

use super::super::card::is_luhn;
use crosstalk_envelope::registry::{NationalCheck, NationalNumber};

/// Whether the letters and digits are a number of this kind.
pub(super) fn holds(number: &NationalNumber, signs: &[u8]) -> bool {
    match number.check {
        NationalCheck::UnitedStates => united_states(signs),
        NationalCheck::Britain => britain(signs),
        NationalCheck::Germany => germany(signs),
        NationalCheck::Croatia => croatia(signs),
        NationalCheck::France => france(signs),
        NationalCheck::Spain => spain(signs, number),
        NationalCheck::SpainForeign => spain_foreign(signs, number),
        NationalCheck::Italy => italy(signs, number),
        NationalCheck::Netherlands => netherlands(signs, number),
        NationalCheck::Sweden => sweden(signs),
        NationalCheck::Finland => finland(signs, number),
        NationalCheck::Denmark => denmark(signs),
        NationalCheck::Norway => norway(signs, number),
        NationalCheck::Poland => poland(signs, number),
        NationalCheck::Switzerland => switzerland(signs, number),
        NationalCheck::Brazil => brazil(signs, number),
        NationalCheck::India => india(signs),
        NationalCheck::Canada => canada(signs),
        NationalCheck::Belgium => belgium(signs),
        NationalCheck::Czechia => czechia(signs),
        NationalCheck::Romania => romania(signs, number),
        NationalCheck::Turkey => turkey(signs, number),
        NationalCheck::China => china(signs, number),
        NationalCheck::Korea => korea(signs),
        NationalCheck::Singapore => singapore(signs, number),
        NationalCheck::SouthAfrica => south_africa(signs),
        NationalCheck::Australia => australia(signs, number),
        NationalCheck::Ireland => ireland(signs, number),
        NationalCheck::Portugal => portugal(signs, number),
        NationalCheck::Austria => austria(signs, number),
    }
}

/// The values of the digits; a letter counts as 0.
fn digits(signs: &[u8]) -> Vec<u8> {
    let value = |s: &u8| if s.is_ascii_digit() { s - b'0' } else { 0 };
    signs.iter().map(value).collect()
}

/// Some digits as a number.
fn number(signs: &[u8]) -> u64 {
    let add = |n: u64, d: &u8| n.saturating_mul(10).saturating_add(u64::from(*d));
    digits(signs).iter().fold(0, add)
}

/// The number of `length` digits from `start` on.
fn part(signs: &[u8], start: usize, length: usize) -> u64 {
    number(signs.get(start..start + length).unwrap_or(&[]))
}

/// The sum of the digits, each with its weight in a list of the registry.
fn weighted(signs: &[u8], by: &NationalNumber, list: usize) -> u64 {
    let weights = by.weights.get(list).copied().unwrap_or_default();
    let pairs = digits(signs).into_iter().zip(weights);
    pairs.map(|(d, w)| u64::from(d) * w).sum()
}

fn last(signs: &[u8]) -> u64 {
    part(signs, signs.len().saturating_sub(1), 1)
}

/// An alphabet of the registry.
fn alphabet(by: &NationalNumber, list: usize) -> &'static [u8] {
    by.alphabets.get(list).map_or(&[], |text| text.as_bytes())
}

/// Whether the last sign is the one of an alphabet.
fn ends_with(signs: &[u8], alphabet: &[u8], index: u64) -> bool {
    let wanted = usize::try_from(index).ok().and_then(|i| alphabet.get(i));
    wanted.is_some() && signs.last() == wanted
}

fn is_day(month: u64, day: u64) -> bool {
    let longest = match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    (1..=longest).contains(&day)
}

/// Year, month and day, two digits each.
fn begins_with_birth(signs: &[u8]) -> bool {
    is_day(part(signs, 2, 2), part(signs, 4, 2))
}

/// Day, month and year, two digits each.
fn begins_with_birthday(signs: &[u8]) -> bool {
    is_day(part(signs, 2, 2), part(signs, 0, 2))
}

/// ISO 7064, MOD 11,10.
fn is_mod_11_10(signs: &[u8]) -> bool {
    let values = digits(signs);
    let rest = values.iter().take(values.len().saturating_sub(1));
    let product = rest.fold(10, |product, d| match (product + u64::from(*d)) % 10 {
        0 => 9,
        sum => sum * 2 % 11,
    });
    (11 - product) % 10 == last(signs)
}

/// The check of Verhoeff: the dihedral group of order ten.
fn is_verhoeff(signs: &[u8]) -> bool {
    let product = |a: u8, b: u8| match (a < 5, b < 5) {
        (true, true) => (a + b) % 5,
        (true, false) => (a + b - 5) % 5 + 5,
        (false, true) => (a - 5 + 5 - b) % 5 + 5,
        (false, false) => (a + 5 - b) % 5,
    };
    let turned = |d: u8| {
        [1, 5, 7, 6, 2, 8, 3, 0, 9, 4]
            .get(usize::from(d))
            .copied()
            .unwrap_or(0)
    };
    let values = digits(signs);
    let check = values.iter().rev().enumerate().fold(0, |check, (i, d)| {
        product(check, (0..i % 8).fold(*d, |d, _| turned(d)))
    });
    check == 0
}

fn united_states(signs: &[u8]) -> bool {
    let (area, group, serial) = (part(signs, 0, 3), part(signs, 3, 2), part(signs, 5, 4));
    let is_social = !matches!(area, 0 | 666 | 900..);
    let is_tax = area >= 900 && matches!(group, 50..=65 | 70..=88 | 90..=92 | 94..=99);
    (is_social || is_tax) && group != 0 && serial != 0
}

fn britain(signs: &[u8]) -> bool {
    let [first, second, .., suffix] = signs else {
        return false;
    };
    let is_prefix = !b"DFIQUV".contains(first) && !b"DFIOQUV".contains(second);
    let is_taken = [b"BG", b"GB", b"KN", b"NK", b"NT", b"TN", b"ZZ"].contains(&&[*first, *second]);
    is_prefix && !is_taken && matches!(suffix, b'A'..=b'D')
}

/// Of the first ten digits, one occurs two or three times and no other more than once.
fn germany(signs: &[u8]) -> bool {
    let mut counts = [0; 10];
    for digit in digits(signs).into_iter().take(10) {
        if let Some(count) = counts.get_mut(usize::from(digit)) {
            *count += 1;
        }
    }
    let repeated: Vec<i32> = counts.into_iter().filter(|n| *n > 1).collect();
    signs.first() != Some(&b'0') && matches!(repeated.as_slice(), [2 | 3]) && is_mod_11_10(signs)
}

fn croatia(signs: &[u8]) -> bool {
    is_mod_11_10(signs)
}

fn france(signs: &[u8]) -> bool {
    // The departments of Corsica count as 19 and 18.
    let department = signs.get(5..7).unwrap_or(&[]);
    let mut plain = signs.to_vec();
    if let (b"2A" | b"2B", Some(place)) = (department, plain.get_mut(5..7)) {
        place.copy_from_slice(if department == b"2A" { b"19" } else { b"18" });
    } else if !department.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let month = part(signs, 3, 2);
    let is_birth =
        matches!(part(signs, 0, 1), 1..=4 | 7 | 8) && matches!(month, 1..=12 | 20..=42 | 50..=99);
    is_birth && part(&plain, 0, 13) % 97 + part(signs, 13, 2) == 97
}

fn spain(signs: &[u8], by: &NationalNumber) -> bool {
    ends_with(signs, alphabet(by, 0), part(signs, 0, 8) % 23)
}

fn spain_foreign(signs: &[u8], by: &NationalNumber) -> bool {
    let head = match signs.first() {
        Some(b'X') => 0,
        Some(b'Y') => 1,
        Some(b'Z') => 2,
        _ => return false,
    };
    ends_with(
        signs,
        alphabet(by, 0),
        (head * 10_000_000 + part(signs, 1, 7)) % 23,
    )
}

fn italy(signs: &[u8], by: &NationalNumber) -> bool {
    let is_number = |i: usize| {
        signs
            .get(i)
            .is_some_and(|s| s.is_ascii_digit() || alphabet(by, 1).contains(s))
    };
    let is_month = signs.get(8).is_some_and(|s| alphabet(by, 2).contains(s));
    let real = signs.iter().filter(|s| s.is_ascii_digit()).count();
    if !is_month || real < 3 || ![6, 7, 9, 10, 12, 13, 14].into_iter().all(is_number) {
        return false;
    }
    let value = |s: u8| {
        u64::from(if s.is_ascii_digit() {
            s - b'0'
        } else {
            s.saturating_sub(b'A')
        })
    };
    // What a sign counts at an odd place, for 0 to 9 and for A to Z.
    let weights = by.weights.first().copied().unwrap_or_default();
    let odd = |s: u8| {
        let weight = usize::try_from(value(s)).ok().and_then(|i| weights.get(i));
        weight.copied().unwrap_or(0)
    };
    let sum: u64 = signs
        .iter()
        .take(15)
        .enumerate()
        .map(|(i, s)| if i % 2 == 0 { odd(*s) } else { value(*s) })
        .sum();
    ends_with(signs, alphabet(by, 0), sum % 26)
}

fn netherlands(signs: &[u8], by: &NationalNumber) -> bool {
    let sum = weighted(signs, by, 0);
    number(signs) > 0 && sum % 11 == last(signs)
}

/// A coordination number has a day that is 60 higher.
fn sweden(signs: &[u8]) -> bool {
    let short = signs.get(signs.len().saturating_sub(10)..).unwrap_or(&[]);
    let day = part(short, 4, 2);
    let century = part(signs, 0, 2);
    is_day(part(short, 2, 2), if day > 60 { day - 60 } else { day })
        && (signs.len() == 10 || (18..=20).contains(&century))
        && is_luhn(&digits(short))
}

fn finland(signs: &[u8], by: &NationalNumber) -> bool {
    let value = part(signs, 0, 6) * 1000 + part(signs, 7, 3);
    let is_number = part(signs, 7, 3) >= 2;
    begins_with_birthday(signs) && is_number && ends_with(signs, alphabet(by, 0), value % 31)
}

fn denmark(signs: &[u8]) -> bool {
    begins_with_birthday(signs)
}

fn norway(signs: &[u8], by: &NationalNumber) -> bool {
    let day = part(signs, 0, 2);
    let first = weighted(signs, by, 0);
    let second = weighted(signs, by, 1);
    is_day(part(signs, 2, 2), if day > 40 { day - 40 } else { day })
        && first.is_multiple_of(11)
        && second.is_multiple_of(11)
}

fn poland(signs: &[u8], by: &NationalNumber) -> bool {
    let sum = weighted(signs, by, 0);
    is_day(part(signs, 2, 2) % 20, part(signs, 4, 2)) && sum.is_multiple_of(10)
}

fn switzerland(signs: &[u8], by: &NationalNumber) -> bool {
    let sum = weighted(signs, by, 0);
    part(signs, 0, 3) == 756 && sum.is_multiple_of(10)
}

fn brazil(signs: &[u8], by: &NationalNumber) -> bool {
    let check = |sum: u64| sum * 10 % 11 % 10;
    let first = weighted(signs, by, 0);
    let second = weighted(signs, by, 1);
    let is_one_digit = signs.iter().all(|s| Some(s) == signs.first());
    !is_one_digit && check(first) == part(signs, 9, 1) && check(second) == part(signs, 10, 1)
}

fn india(signs: &[u8]) -> bool {
    part(signs, 0, 1) >= 2 && is_verhoeff(signs)
}

fn canada(signs: &[u8]) -> bool {
    !matches!(part(signs, 0, 1), 0 | 8) && is_luhn(&digits(signs))
}

/// Born in 2000 or later, a 2 stands before the digits that are divided.
fn belgium(signs: &[u8]) -> bool {
    let check = part(signs, 9, 2);
    let fits = |century: u64| 97 - (century * 1_000_000_000 + part(signs, 0, 9)) % 97 == check;
    is_day(part(signs, 2, 2) % 20, part(signs, 4, 2)) && (fits(0) || fits(2))
}

/// The month of a woman is 50 higher, and 20 more where the numbers of a day ran out.
fn czechia(signs: &[u8]) -> bool {
    let month = part(signs, 2, 2) % 50;
    let month = if month > 20 { month - 20 } else { month };
    is_day(month, part(signs, 4, 2)) && number(signs).is_multiple_of(11)
}

fn romania(signs: &[u8], by: &NationalNumber) -> bool {
    let sum = weighted(signs, by, 0) % 11;
    let is_birth = is_day(part(signs, 3, 2), part(signs, 5, 2));
    part(signs, 0, 1) > 0 && is_birth && (if sum == 10 { 1 } else { sum }) == last(signs)
}

fn turkey(signs: &[u8], by: &NationalNumber) -> bool {
    let odd = weighted(signs, by, 0);
    let even = weighted(signs, by, 1);
    let sum = weighted(signs, by, 2);
    part(signs, 0, 1) > 0
        && (odd * 7 + 90 - even) % 10 == part(signs, 9, 1)
        && sum % 10 == last(signs)
}

fn china(signs: &[u8], by: &NationalNumber) -> bool {
    let sum = weighted(signs, by, 0);
    let is_birth =
        (1850..2100).contains(&part(signs, 6, 4)) && is_day(part(signs, 10, 2), part(signs, 12, 2));
    is_birth && ends_with(signs, alphabet(by, 0), sum % 11)
}

fn korea(signs: &[u8]) -> bool {
    begins_with_birth(signs) && matches!(part(signs, 6, 1), 1..=8)
}

fn singapore(signs: &[u8], by: &NationalNumber) -> bool {
    let sum = weighted(signs.get(1..).unwrap_or(&[]), by, 0);
    match signs.first() {
        Some(b'S') => ends_with(signs, alphabet(by, 0), sum % 11),
        Some(b'T') => ends_with(signs, alphabet(by, 0), (sum + 4) % 11),
        Some(b'F') => ends_with(signs, alphabet(by, 1), sum % 11),
        Some(b'G') => ends_with(signs, alphabet(by, 1), (sum + 4) % 11),
        Some(b'M') => ends_with(signs, alphabet(by, 2), (sum + 3) % 11),
        _ => false,
    }
}

fn south_africa(signs: &[u8]) -> bool {
    begins_with_birth(signs) && is_luhn(&digits(signs))
}

fn australia(signs: &[u8], by: &NationalNumber) -> bool {
    number(signs) > 0 && weighted(signs, by, 0).is_multiple_of(11)
}

fn ireland(signs: &[u8], by: &NationalNumber) -> bool {
    let second = signs
        .get(8)
        .map_or(0, |s| u64::from(s.saturating_sub(b'A') + 1) % 23);
    let sum = weighted(signs, by, 0) + second * 9;
    let head = signs.get(..8).unwrap_or(&[]);
    ends_with(head, alphabet(by, 0), sum % 23)
}

fn portugal(signs: &[u8], by: &NationalNumber) -> bool {
    let check = 11 - weighted(signs, by, 0) % 11;
    part(signs, 0, 1) > 0 && (if check > 9 { 0 } else { check }) == last(signs)
}

fn austria(signs: &[u8], by: &NationalNumber) -> bool {
    let sum = weighted(signs, by, 0);
    part(signs, 0, 1) > 0 && sum % 11 == part(signs, 3, 1)
}
