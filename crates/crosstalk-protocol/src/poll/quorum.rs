//! The quorum: the number of ballots that a poll needs (POL-003).

/// How many ballots are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quorum {
    /// This many.
    Number(u64),
    /// This many of so many: `2-of-3`.
    Of(u64, u64),
    /// This part of those who are invited, in thousandths of a percent.
    Percent(u64),
    /// The value can't be read.
    Unreadable(String),
}

/// Thousandths of a percent in a whole.
const WHOLE: u64 = 100_000;

impl Quorum {
    /// Reads `2`, `2-of-3`, `2 of 3`, `60%`, `66.7 %`.
    ///
    /// ```
    /// use crosstalk_protocol::poll::Quorum;
    /// assert_eq!(Quorum::parse("2-of-3"), Quorum::Of(2, 3));
    /// assert_eq!(Quorum::parse("60%").required(4), Some(3));
    /// assert_eq!(Quorum::parse("most of us").required(4), None);
    /// ```
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        Self::read(text).unwrap_or_else(|| Self::Unreadable(text.to_owned()))
    }

    fn read(text: &str) -> Option<Self> {
        if let Some(percent) = text.strip_suffix('%') {
            return percent_of(percent.trim_end()).map(Self::Percent);
        }
        let lower = text.to_ascii_lowercase();
        match lower.split_once("of") {
            None => number(&lower).map(Self::Number),
            Some((some, all)) => {
                let is_gap = |c: char| c == '-' || c == ' ';
                let (some, all) = (
                    some.trim_end_matches(is_gap),
                    all.trim_start_matches(is_gap),
                );
                let (some, all) = (number(some)?, number(all)?);
                (some <= all).then_some(Self::Of(some, all))
            }
        }
    }

    /// How many ballots that is, with so many who are invited; nothing if nobody can say.
    pub fn required(&self, invited: usize) -> Option<u64> {
        let invited = u64::try_from(invited).ok()?;
        match self {
            Self::Number(number) | Self::Of(number, _) => Some(*number),
            Self::Percent(part) => Some(part.checked_mul(invited)?.div_ceil(WHOLE)),
            Self::Unreadable(_) => None,
        }
    }
}

/// A whole number in plain digits.
fn number(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|n| plain && *n <= 1_000_000)
}

/// A percentage from 0 to 100 with at most three places, in thousandths.
fn percent_of(text: &str) -> Option<u64> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = places.bytes().all(|b| b.is_ascii_digit());
    if places.len() > 3 || !is_digits || (places.is_empty() && text.contains('.')) {
        return None;
    }
    let places: u64 = format!("{places:0<3}").parse().ok()?;
    let value = number(whole)? * 1000 + places;
    (value <= WHOLE).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorum_is_read_as_written() {
        for (text, invited, required) in [
            ("2", 5, Some(2)),
            ("0", 5, Some(0)),
            ("2-of-3", 3, Some(2)),
            ("2 of 3", 7, Some(2)),
            ("3 Of 5", 5, Some(3)),
            ("60%", 5, Some(3)),
            ("60%", 4, Some(3)),
            ("60 %", 10, Some(6)),
            ("100%", 3, Some(3)),
            ("0%", 3, Some(0)),
            ("66.7%", 3, Some(3)),
            ("66.666%", 3, Some(2)),
            ("33.3%", 3, Some(1)),
            ("101%", 3, None),
            ("4-of-3", 3, None),
            ("-1", 3, None),
            ("+2", 3, None),
            ("1.5", 3, None),
            ("6.%", 3, None),
            ("", 3, None),
            ("%", 3, None),
            ("of", 3, None),
            ("all", 3, None),
            ("99999999999999999999", 3, None),
        ] {
            assert_eq!(Quorum::parse(text).required(invited), required, "{text}");
        }
    }
}
