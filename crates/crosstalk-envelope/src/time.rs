//! Points in time as envelopes write them: ISO 8601 in UTC or with an offset, to the hour or finer.

use std::fmt;

/// Milliseconds since 1970-01-01T00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From milliseconds since 1970-01-01T00:00Z.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00Z.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Reads `2025-10-09`, `2025-10-09T16Z`, `2025-10-09T16:00Z`, `2025-10-09T16:00:00.5+02:00` and so on.
    ///
    /// ```
    /// use crosstalk_envelope::Timestamp;
    /// let hour = Timestamp::parse("2025-10-09T16Z").unwrap();
    /// assert_eq!(hour, Timestamp::parse("2025-10-09T18:00:00+02:00").unwrap());
    /// assert_eq!(hour.to_string(), "2025-10-09T16:00:00Z");
    /// assert!(Timestamp::parse("tomorrow").is_none());
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let (date, mut rest) = text.as_bytes().split_first_chunk::<10>()?;
        let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = date else {
            return None;
        };
        let year = pair(*y1, *y2)? * 100 + pair(*y3, *y4)?;
        let (month, day) = (pair(*m1, *m2)?, pair(*d1, *d2)?);
        if !(1..=12).contains(&month) || day < 1 || day > days_in(year, month) {
            return None;
        }
        let midnight = days_from_civil(year, month, day) * 86_400_000;
        if rest.is_empty() {
            return Some(Self(midnight));
        }
        match rest.split_first()? {
            (b'T' | b't' | b' ', tail) => rest = tail,
            _ => return None,
        }
        let hour = two_digits(&mut rest)?;
        let (mut minute, mut second, mut millis) = (0, 0, 0);
        if literal(&mut rest, b':').is_some() {
            minute = two_digits(&mut rest)?;
            if literal(&mut rest, b':').is_some() {
                second = two_digits(&mut rest)?;
                if literal(&mut rest, b'.').is_some() {
                    millis = fraction(&mut rest)?;
                }
            }
        }
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let offset = offset_minutes(rest)?;
        let clock = ((hour * 60 + minute - offset) * 60 + second.min(59)) * 1000 + millis;
        Some(Self(midnight + clock))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 in UTC, with milliseconds only where there are some.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (days, clock) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let (year, month, day) = civil_from_days(days);
        let (h, m, s) = (clock / 3_600_000, clock / 60_000 % 60, clock / 1000 % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}")?;
        if clock % 1000 != 0 {
            write!(f, ".{:03}", clock % 1000)?;
        }
        f.write_str("Z")
    }
}

/// The value of two digits.
fn pair(tens: u8, ones: u8) -> Option<i64> {
    let digit = |b: u8| b.is_ascii_digit().then(|| i64::from(b - b'0'));
    Some(digit(tens)? * 10 + digit(ones)?)
}

/// The two digits that a text begins with.
fn two_digits(rest: &mut &[u8]) -> Option<i64> {
    let ([tens, ones], tail) = rest.split_first_chunk::<2>()?;
    *rest = tail;
    pair(*tens, *ones)
}

fn literal(rest: &mut &[u8], wanted: u8) -> Option<()> {
    let (first, tail) = rest.split_first()?;
    (*first == wanted).then(|| *rest = tail)
}

/// The digits after the point as milliseconds; finer digits are dropped.
fn fraction(rest: &mut &[u8]) -> Option<i64> {
    let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let (head, tail) = rest.split_at_checked(count)?;
    *rest = tail;
    let mut padded = head
        .iter()
        .map(|b| i64::from(b - b'0'))
        .chain(std::iter::repeat(0));
    let mut next = || padded.next().unwrap_or(0);
    (count > 0).then(|| next() * 100 + next() * 10 + next())
}

fn offset_minutes(rest: &[u8]) -> Option<i64> {
    let (sign, mut rest) = match rest.split_first()? {
        (b'Z' | b'z', []) => return Some(0),
        (b'+', tail) => (1, tail),
        (b'-', tail) => (-1, tail),
        _ => return None,
    };
    let hours = two_digits(&mut rest)?;
    let _ = literal(&mut rest, b':');
    let minutes = if rest.is_empty() {
        0
    } else {
        two_digits(&mut rest)?
    };
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

const fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar; years begin in March here.
const fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

const fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + if month <= 2 { 1 } else { 0 };
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_round_trip() {
        for day in (-800_000..800_000).step_by(37) {
            let (y, m, d) = civil_from_days(day);
            assert_eq!(days_from_civil(y, m, d), day);
        }
        assert_eq!(Timestamp::parse("1970-01-01T00:00Z"), Some(Timestamp(0)));
        assert_eq!(
            Timestamp::parse("2000-02-29").unwrap().as_millis(),
            951_782_400_000
        );
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "2025",
            "2025-13-01",
            "2025-02-30",
            "2025-10-09T24Z",
            "2025-10-09T16",
            "2025-10-09T16:00:00.Z",
            "2025-10-09T16Zx",
            "2025-10-09T16:00+25:00",
        ] {
            assert_eq!(Timestamp::parse(text), None, "{text}");
        }
    }
}
