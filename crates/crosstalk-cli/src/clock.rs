//! The time: of the clock, or the one that was asked for.

use crosstalk_envelope::Timestamp;
use std::time::{SystemTime, UNIX_EPOCH};

/// Now, to the second: envelopes write no finer time.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.map_or(0, |d| i64::try_from(d.as_secs()).unwrap_or(0));
    Timestamp::from_millis(seconds.saturating_mul(1000))
}

/// A number of days after a time.
pub(crate) const fn days_after(time: Timestamp, days: u32) -> Timestamp {
    Timestamp::from_millis(time.as_millis() + days as i64 * 86_400_000)
}

/// Reads a time of the command line.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    Timestamp::parse(text).ok_or_else(|| "write it as 2025-10-09T16:00:04Z".to_owned())
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
}
