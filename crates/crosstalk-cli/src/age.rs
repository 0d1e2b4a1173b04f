//! How long ago something was, for people.

use crosstalk_envelope::Timestamp;

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
