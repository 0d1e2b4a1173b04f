//! The time: of the clock, or the one that was asked for.

use crosstalk_envelope::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, to the second: envelopes write no finer time.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(exact().as_millis() / 1000 * 1000)
}

/// Now, as exactly as consents end.
pub(crate) fn exact() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Timestamp::from_millis(since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(0)))
}

/// A number of days after a time.
pub(crate) const fn days_after(time: Timestamp, days: u32) -> Timestamp {
    Timestamp::from_millis(time.as_millis() + days as i64 * 86_400_000)
}

/// Reads a time of the command line.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "write it as 2025-10-09T16:00:04Z".to_owned())
}

/// Reads when something ends: `90d`, `12h`, `8w`, a date or a time.
pub(crate) fn end(text: &str) -> Result<Timestamp, String> {
    let now = now();
    let span = hours(text).map(|hours| {
        Timestamp::from_millis(
            now.as_millis()
                .saturating_add(hours.saturating_mul(3_600_000)),
        )
    });
    let date = || Timestamp::parse(&format!("{text}T00:00:00Z"));
    let end = span.or_else(|| Timestamp::parse(text)).or_else(date);
    end.ok_or_else(|| "write it as 90d, 12h, 8w, 2027-01-31 or 2027-01-31T12:00:00Z".to_owned())
}

/// The same of what is not over yet.
pub(crate) fn until(text: &str) -> Result<Timestamp, String> {
    match end(text)? {
        until if until > now() => Ok(until),
        _ => Err("that time has passed".to_owned()),
    }
}

/// A number of hours, days or weeks, in hours.
fn hours(text: &str) -> Option<i64> {
    let unit = text.chars().last()?;
    let number = text.strip_suffix(unit)?.parse().ok();
    let number: i64 = number.filter(|n| (1..=100_000).contains(n))?;
    let hours = match unit {
        'h' => 1,
        'd' => 24,
        'w' => 7 * 24,
        _ => return None,
    };
    number.checked_mul(hours)
}

const MINUTE: i64 = 60_000;

/// `just now`, `5 min ago`, `3 h ago`, `2 d ago`, then the date; a time that is still to come is written out.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    let passed = now.as_millis().saturating_sub(then.as_millis());
    if passed <= -MINUTE {
        return then.to_string();
    }
    let (number, unit) = match passed / MINUTE {
        ..1 => return "just now".to_owned(),
        minutes @ 1..60 => (minutes, "min"),
        minutes @ 60..1440 => (minutes / 60, "h"),
        minutes if minutes < 30 * 1440 => (minutes / 1440, "d"),
        _ => return then.to_string().chars().take(10).collect(),
    };
    format!("{number} {unit} ago")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grace_period_is_counted_in_days() {
        let from = time("2025-02-27T09:00:00Z").unwrap();
        assert_eq!(days_after(from, 30).to_string(), "2025-03-29T09:00:00Z");
        assert!(time("soon").is_err());
        assert_eq!(now().as_millis() % 1000, 0);
    }

    #[test]
    fn ends_are_read() {
        let now = now().as_millis();
        let in_days = |t: &str| (until(t).unwrap().as_millis() - now + 500) / 86_400_000;
        assert_eq!((in_days("90d"), in_days("8w"), in_days("48h")), (90, 56, 2));
        assert_eq!(
            until("2999-01-31").unwrap().to_string(),
            "2999-01-31T00:00:00Z"
        );
        for wrong in ["", "d", "0d", "-3d", "90x", "soon", "999999999999d"] {
            assert!(end(wrong).is_err() && until(wrong).is_err(), "{wrong}");
        }
        assert!(end("2001-01-01").is_ok() && until("2001-01-01").is_err());
    }

    #[test]
    fn ages_are_short_and_never_wrong() {
        let now = Timestamp::parse("2025-10-09T16:00:00Z").unwrap();
        for (then, shown) in [
            ("2025-10-09T15:59:30Z", "just now"),
            ("2025-10-09T16:00:30Z", "just now"),
            ("2025-10-09T15:59:00Z", "1 min ago"),
            ("2025-10-09T15:00:01Z", "59 min ago"),
            ("2025-10-09T15:00:00Z", "1 h ago"),
            ("2025-10-08T16:00:00Z", "1 d ago"),
            ("2025-09-09T15:00:00Z", "2025-09-09"),
            ("2025-10-09T17:00:00Z", "2025-10-09T17:00:00Z"),
        ] {
            assert_eq!(age(Timestamp::parse(then).unwrap(), now), shown, "{then}");
        }
    }
}
