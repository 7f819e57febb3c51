//! Times as a user reads them: the age of a time of today, and a date and a clock of an older one.

use crate::time::Timestamp;
use crate::zone::Zone;

const MICROS_PER_MINUTE: i64 = 60_000_000;
const MINUTES_PER_DAY: i64 = 24 * 60;

impl Zone {
    /// Formats a time in at most 15 characters, seen from `now`: `now`, `5m ago` and `3h ago` within a
    /// day, then `yesterday 21:10`, `Jul 29 04:45` in the same year, and `2025-07-29` otherwise.
    /// Clocks are those of the zone. Times after `now` have a date.
    ///
    /// # Examples
    /// ```rust
    /// use schemas::{Timestamp, Zone};
    ///
    /// let now = Timestamp::parse("2026-11-26T12:00:00Z").expect("RFC 3339");
    /// let time = Timestamp::parse("2026-07-29T04:45:00Z").expect("RFC 3339");
    /// assert_eq!(Zone::UTC.short_time(time, now), "Jul 29 04:45");
    /// ```
    pub fn short_time(&self, time: Timestamp, now: Timestamp) -> String {
        let minutes = now.0.saturating_sub(time.0) / MICROS_PER_MINUTE;
        if now >= time && minutes < MINUTES_PER_DAY {
            return match minutes {
                0 => "now".to_owned(),
                1..60 => format!("{minutes}m ago"),
                _ => format!("{}h ago", minutes / 60),
            };
        }
        let (Some(at), Some(today)) = (self.civil_time(time), self.date(now)) else {
            return time.to_string();
        };
        if today.yesterday().is_ok_and(|yesterday| yesterday == at.date()) {
            return at.strftime("yesterday %H:%M").to_string();
        }
        if at.year() == today.year() {
            return at.strftime("%b %e %H:%M").to_string();
        }
        at.strftime("%Y-%m-%d").to_string()
    }

    /// Formats a time as the clocks of the zone show it: `21:10`.
    pub fn clock(&self, time: Timestamp) -> String {
        let at = self.civil_time(time);
        at.map(|at| at.strftime("%H:%M").to_string()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short_and_local() {
        let time = |text| Timestamp::parse(text).expect("valid");
        let now = time("2026-11-26T12:00:00Z");
        let tokyo = Zone::find("timezone", "Asia/Tokyo").expect("a zone");
        for (text, utc, local) in [
            ("2026-11-26T11:59:40Z", "now", "now"),
            ("2026-11-26T11:55:00Z", "5m ago", "5m ago"),
            ("2026-11-25T12:30:00Z", "23h ago", "23h ago"),
            ("2026-11-25T11:10:00Z", "yesterday 11:10", "yesterday 20:10"),
            ("2026-11-24T16:00:00Z", "Nov 24 16:00", "yesterday 01:00"),
            ("2026-07-09T04:45:00Z", "Jul  9 04:45", "Jul  9 13:45"),
            ("2025-12-31T20:00:00Z", "2025-12-31", "Jan  1 05:00"),
            ("2026-11-26T13:00:00Z", "Nov 26 13:00", "Nov 26 22:00"),
        ] {
            assert_eq!(Zone::UTC.short_time(time(text), now), utc, "{text}");
            assert_eq!(tokyo.short_time(time(text), now), local, "{text}");
        }
    }
}
