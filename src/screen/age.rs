//! The age of a time in at most four characters.

use schemas::Timestamp;

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// Returns how long ago a time was: `now`, `5m`, `3h`, `2d`, `6w`, `4mo` or `2y`.
pub(super) fn describe_age(time: Timestamp, now: Timestamp) -> String {
    let minutes = now.0.saturating_sub(time.0) / MICROS_PER_MINUTE;
    let hours = minutes / 60;
    let days = hours / 24;
    match (minutes, hours, days) {
        (..1, _, _) => "now".to_owned(),
        (1..60, _, _) => format!("{minutes}m"),
        (_, ..24, _) => format!("{hours}h"),
        (_, _, ..14) => format!("{days}d"),
        (_, _, 14..60) => format!("{}w", days / 7),
        (_, _, 60..730) => format!("{}mo", days / 30),
        (_, _, 730..) => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let day = 24 * 60;
        let ages = [0, 5, 90, 2 * day, 20 * day, 100 * day, 800 * day]
            .map(|minutes| describe_age(Timestamp(0), Timestamp(minutes * MICROS_PER_MINUTE)));
        assert_eq!(ages, ["now", "5m", "1h", "2d", "2w", "3mo", "2y"]);
    }
}
