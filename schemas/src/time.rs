//! Represents time as microseconds since the Unix epoch, and prints it as RFC 3339 in UTC with
//! milliseconds.

use crate::error::ToolError;

/// A time in microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// The forms that `since` and `until` accept, for messages and help.
pub const ACCEPTED: &str = "a span back from now such as '30m', '24h', '7d', '2w', a date '2026-11-01', or RFC 3339 '2026-11-01T09:30:00Z' (UTC)";

impl Timestamp {
    /// Returns the current time.
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_microsecond())
    }

    /// Parses RFC 3339. Returns `None` for any other text.
    ///
    /// ```rust
    /// use schemas::Timestamp;
    ///
    /// let time = Timestamp::parse("2026-10-01T12:00:00.5+02:00").expect("RFC 3339");
    /// assert_eq!(time.0, 1_790_848_800_500_000);
    /// assert_eq!(time.to_string(), "2026-10-01T10:00:00.500Z");
    /// assert_eq!(Timestamp::parse("yesterday"), None);
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|time| Self(time.as_microsecond()))
    }

    /// Returns the day in UTC as `2026-11-01`, or `None` if the time is outside jiff's range.
    pub fn day(self) -> Option<String> {
        Some(self.date()?.to_string())
    }

    /// Returns the Monday of the week in UTC as `2026-10-26`, or `None` if the time is outside jiff's
    /// range.
    pub fn week(self) -> Option<String> {
        let date = self.date()?;
        let since_monday = jiff::Span::new().days(date.weekday().to_monday_zero_offset());
        Some(date.checked_sub(since_monday).ok()?.to_string())
    }

    /// Returns the month in UTC as `2026-11`, or `None` if the time is outside jiff's range.
    pub fn month(self) -> Option<String> {
        let date = self.date()?;
        Some(format!("{:04}-{:02}", date.year(), date.month()))
    }

    /// Returns the day in UTC, or `None` if the time is outside jiff's range.
    fn date(self) -> Option<jiff::civil::Date> {
        let time = jiff::Timestamp::from_microsecond(self.0).ok()?;
        Some(time.to_zoned(jiff::tz::TimeZone::UTC).date())
    }

    /// Parses the forms of [`ACCEPTED`]. Spans are counted back from `now`, and dates are midnight
    /// UTC.
    ///
    /// # Errors
    /// Returns an error that names `field` and the accepted forms if the text has none of them.
    pub fn parse_since(field: &str, text: &str, now: Self) -> Result<Self, ToolError> {
        let text = text.trim();
        if let Some(time) = Self::parse(text) {
            return Ok(time);
        }
        if let Ok(date) = text.parse::<jiff::civil::Date>() {
            let zoned =
                date.to_zoned(jiff::tz::TimeZone::UTC).map_err(|_| invalid_time(field, text))?;
            return Ok(Self(zoned.timestamp().as_microsecond()));
        }

        let span = parse_span(text).ok_or_else(|| invalid_time(field, text))?;
        Ok(Self(now.0.saturating_sub(span)))
    }
}

/// Parses a span of time such as `30m` or `7d` into microseconds.
fn parse_span(text: &str) -> Option<i64> {
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = text.split_at(unit_at);
    let seconds: i64 = match unit {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3_600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    let count: i64 = count.parse().ok()?;
    count.checked_mul(seconds * 1_000_000)
}

/// Returns the error of a time in none of the accepted forms.
fn invalid_time(field: &str, text: &str) -> ToolError {
    ToolError::invalid_value(field, text, &[ACCEPTED])
}

impl std::fmt::Display for Timestamp {
    /// Writes RFC 3339 in UTC with milliseconds. A time outside jiff's range is written as its
    /// number.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(time) => write!(f, "{time:.3}"),
            Err(_) => write!(f, "{}us", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_utc_with_milliseconds() {
        let time = Timestamp::parse("2026-10-01T12:00:00.5+02:00").expect("valid");
        assert_eq!(time.to_string(), "2026-10-01T10:00:00.500Z");
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn days_weeks_and_months_are_those_of_utc() {
        let time = Timestamp::parse("2026-11-01T23:30:00-02:00").expect("valid");
        assert_eq!(time.day().as_deref(), Some("2026-11-02"));
        assert_eq!(time.week().as_deref(), Some("2026-11-02"));
        assert_eq!(Timestamp(time.0 - 86_400_000_000).week().as_deref(), Some("2026-10-26"));
        assert_eq!(time.month().as_deref(), Some("2026-11"));
        assert_eq!(Timestamp(i64::MAX).day(), None);
    }

    #[test]
    fn since_takes_spans_dates_and_instants() {
        let now = Timestamp::parse("2026-10-08T12:00:00Z").expect("valid");
        let since = |text| Timestamp::parse_since("since", text, now).map(|t| t.to_string());
        assert_eq!(since("7d").as_deref().ok(), Some("2026-10-01T12:00:00.000Z"));
        assert_eq!(since("90m").as_deref().ok(), Some("2026-10-08T10:30:00.000Z"));
        assert_eq!(since("2026-10-02").as_deref().ok(), Some("2026-10-02T00:00:00.000Z"));
        for text in ["", "yesterday", "7", "d", "99999999999999999999d", "2026-13-01"] {
            let error = since(text).expect_err(text);
            assert!(error.message.contains("'7d'"), "{error}");
        }
    }
}
