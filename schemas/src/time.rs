//! Represents time as microseconds since the Unix epoch, and prints it as RFC 3339 in UTC with
//! milliseconds.

/// A time in microseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

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

    /// Returns the day in UTC, as `2026-10-01`.
    pub fn utc_day(self) -> String {
        self.to_string().chars().take(10).collect()
    }
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
}
