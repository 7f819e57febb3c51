//! Time zones: the day, week, month and hour that a time falls into, and the time that a user means
//! by a date or a span. The zone database is part of the program.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::{self, TimeZone};

use crate::day_words::parse_day_words;
use crate::error::{ErrorCode, ToolError};
use crate::time::Timestamp;

/// The forms that `since` and `until` accept, for messages and help.
pub const ACCEPTED: &str = "a span back from now such as '30m', '24h', '7d', '2w', a date '2026-11-01', RFC 3339 '2026-11-01T09:30:00Z', or 'today', 'yesterday', 'monday', 'last week'";

/// Maximum number of names that an error suggests.
const MAX_SUGGESTIONS: usize = 3;

/// Maximum number of edits between a mistyped zone or city and a suggested one.
const MAX_EDITS: usize = 2;

/// Maximum number of characters of a mistyped name that is compared with the known names.
const MAX_COMPARED_CHARS: usize = 60;

/// A time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

impl Zone {
    /// Coordinated Universal Time.
    pub const UTC: Self = Self(TimeZone::UTC);

    /// Returns the zone that the system uses.
    pub fn from_system(zone: TimeZone) -> Self {
        Self(zone)
    }

    /// Finds a zone by its IANA name, in any case.
    ///
    /// # Errors
    /// Returns an error that names `field` and the nearest zones if there is no zone of this name.
    ///
    /// # Examples
    /// ```rust
    /// use schemas::{Timestamp, Zone};
    ///
    /// let zone = Zone::find("timezone", "america/los_angeles").expect("a zone");
    /// let evening = Timestamp::parse("2026-11-02T03:30:00Z").expect("RFC 3339");
    /// assert_eq!(zone.name(), "America/Los_Angeles");
    /// assert_eq!(zone.day(evening).as_deref(), Some("2026-11-01"));
    /// assert_eq!(Zone::UTC.day(evening).as_deref(), Some("2026-11-02"));
    /// ```
    pub fn find(field: &str, name: &str) -> Result<Self, ToolError> {
        let name = name.trim();
        if name.eq_ignore_ascii_case("utc") {
            return Ok(Self::UTC);
        }
        tz::db().get(name).map(Self).map_err(|_| unknown_zone(field, name))
    }

    /// Returns the IANA name; `local` for a zone of the system that has none.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("local")
    }

    /// Returns the day as `2026-11-01`, or `None` if the time is outside jiff's range.
    pub fn day(&self, time: Timestamp) -> Option<String> {
        Some(self.date(time)?.to_string())
    }

    /// Returns the Monday of the week as `2026-10-26`, or `None` if the time is outside jiff's
    /// range.
    pub fn week(&self, time: Timestamp) -> Option<String> {
        let date = self.date(time)?;
        let since_monday = jiff::Span::new().days(date.weekday().to_monday_zero_offset());
        Some(date.checked_sub(since_monday).ok()?.to_string())
    }

    /// Returns the month as `2026-11`, or `None` if the time is outside jiff's range.
    pub fn month(&self, time: Timestamp) -> Option<String> {
        let date = self.date(time)?;
        Some(format!("{:04}-{:02}", date.year(), date.month()))
    }

    /// Returns the hour of the day from `00` to `23`, or `None` if the time is outside jiff's
    /// range.
    pub fn hour(&self, time: Timestamp) -> Option<String> {
        Some(format!("{:02}", self.civil_time(time)?.hour()))
    }

    /// Returns the time at which clocks show `civil_time`. If clocks skip it, the time is as much
    /// later. If they show it twice, it is the first of both.
    pub(crate) fn time_of(&self, civil_time: DateTime) -> Option<Timestamp> {
        let zoned = civil_time.to_zoned(self.0.clone()).ok()?;
        Some(Timestamp(zoned.timestamp().as_microsecond()))
    }

    /// Parses the forms of [`ACCEPTED`]. Spans are counted back from `now`. Dates and words such as
    /// `yesterday` are midnight in this zone, and a time without an offset is of this zone as well.
    ///
    /// # Errors
    /// Returns an error that names `field` and the accepted forms if the text has none of them.
    pub fn parse_since(
        &self,
        field: &str,
        text: &str,
        now: Timestamp,
    ) -> Result<Timestamp, ToolError> {
        let text = text.trim();
        if let Some(time) = Timestamp::parse(text) {
            return Ok(time);
        }
        if let Ok(civil_time) = text.parse::<jiff::civil::DateTime>() {
            return self.time_of(civil_time).ok_or_else(|| invalid_time(field, text));
        }

        if let Some(day) = self.date(now).and_then(|today| parse_day_words(text, today)) {
            let midnight = self.time_of(day.to_datetime(Time::midnight()));
            return midnight.ok_or_else(|| invalid_time(field, text));
        }

        let span = parse_span(text).ok_or_else(|| invalid_time(field, text))?;
        Ok(Timestamp(now.0.saturating_sub(span)))
    }

    pub(crate) fn date(&self, time: Timestamp) -> Option<Date> {
        Some(self.civil_time(time)?.date())
    }

    /// Returns what clocks show at a time.
    pub(crate) fn civil_time(&self, time: Timestamp) -> Option<DateTime> {
        let time = jiff::Timestamp::from_microsecond(time.0).ok()?;
        Some(self.0.to_datetime(time))
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

/// Returns the error of a name that no zone has.
fn unknown_zone(field: &str, name: &str) -> ToolError {
    let shown: String = name.chars().take(MAX_COMPARED_CHARS).collect();
    let near = nearest_zones(name);
    let advice = if near.is_empty() {
        "Give an IANA name such as 'Europe/Berlin', or 'utc'".to_owned()
    } else {
        format!("Did you mean {}?", near.join(", "))
    };
    let message = format!("{field}: '{shown}' is not a known time zone. {advice}");
    let error = ToolError::new(ErrorCode::InvalidArgument, message)
        .with_detail("field", field)
        .with_detail("value", shown);
    match near.into_iter().next() {
        Some(nearest) => error.with_detail("did_you_mean", nearest),
        None => error,
    }
}

/// Returns the names nearest to a mistyped one: of its whole name, or of its city.
fn nearest_zones(name: &str) -> Vec<String> {
    if name.chars().count() > MAX_COMPARED_CHARS {
        return Vec::new();
    }
    let wanted = name.replace(' ', "_").to_lowercase();
    let mut found: Vec<(usize, String)> = Vec::new();
    for zone in tz::db().available() {
        let known = zone.as_str().to_lowercase();
        let city = known.rsplit('/').next().unwrap_or(&known);
        let wanted_city = wanted.rsplit('/').next().unwrap_or(&wanted);
        let edits =
            strsim::osa_distance(&wanted, &known).min(1 + strsim::osa_distance(wanted_city, city));
        if edits <= MAX_EDITS && edits < wanted.chars().count() {
            found.push((edits, zone.as_str().to_owned()));
        }
    }
    found.sort();
    found.into_iter().take(MAX_SUGGESTIONS).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("valid")
    }

    #[test]
    fn days_weeks_months_and_hours_are_those_of_the_zone() {
        let late = time("2026-11-01T23:30:00-02:00");
        assert_eq!(Zone::UTC.day(late).as_deref(), Some("2026-11-02"));
        assert_eq!(Zone::UTC.week(late).as_deref(), Some("2026-11-02"));
        assert_eq!(Zone::UTC.hour(late).as_deref(), Some("01"));

        let zone = Zone::find("timezone", "America/Sao_Paulo").expect("a zone");
        assert_eq!(zone.day(late).as_deref(), Some("2026-11-01"));
        assert_eq!(zone.week(late).as_deref(), Some("2026-10-26"));
        assert_eq!(zone.month(late).as_deref(), Some("2026-11"));
        assert_eq!(zone.hour(late).as_deref(), Some("22"));
        assert_eq!(zone.day(Timestamp(i64::MAX)), None);
    }

    #[test]
    fn a_day_may_have_23_or_25_hours() {
        let zone = Zone::find("timezone", "America/Los_Angeles").expect("a zone");
        let begin = |day: &str| zone.time_of(day.parse().expect("date")).expect("in range").0;
        let hours = |from, to| (begin(to) - begin(from)) / 3_600_000_000;
        assert_eq!(hours("2026-03-08", "2026-03-09"), 23);
        assert_eq!(hours("2026-11-01", "2026-11-02"), 25);
        assert_eq!(hours("2026-07-01", "2026-07-02"), 24);
    }

    #[test]
    fn an_unknown_zone_names_the_nearest() {
        assert_eq!(Zone::find("timezone", "utc").expect("a zone"), Zone::UTC);
        for (wrong, near) in [
            ("America/Los_Angles", "America/Los_Angeles"),
            ("Berlin", "Europe/Berlin"),
            ("los angeles", "America/Los_Angeles"),
            ("Europe/Kolkata", "Asia/Kolkata"),
        ] {
            let error = Zone::find("timezone", wrong).expect_err(wrong);
            assert!(error.message.contains(near), "{error}");
        }
        let error = Zone::find("timezone", "Moon/Tranquility").expect_err("no zone");
        assert!(error.message.contains("'Europe/Berlin', or 'utc'"), "{error}");
    }

    #[test]
    fn since_takes_spans_dates_and_instants() {
        let now = Timestamp::parse("2026-10-08T12:00:00Z").expect("valid");
        let since = |text| Zone::UTC.parse_since("since", text, now).map(|time| time.to_string());
        assert_eq!(since("7d").as_deref().ok(), Some("2026-10-01T12:00:00.000Z"));
        assert_eq!(since("90m").as_deref().ok(), Some("2026-10-08T10:30:00.000Z"));
        assert_eq!(since("2026-10-02").as_deref().ok(), Some("2026-10-02T00:00:00.000Z"));
        assert_eq!(since("2026-10-02T09:30").as_deref().ok(), Some("2026-10-02T09:30:00.000Z"));
        for text in ["", "yesterdayish", "7", "d", "99999999999999999999d", "2026-13-01"] {
            let error = since(text).expect_err(text);
            assert!(error.message.contains("'7d'"), "{error}");
        }
    }

    #[test]
    fn dates_and_times_without_offset_are_of_the_zone() {
        let zone = Zone::find("timezone", "America/Los_Angeles").expect("a zone");
        for (text, expected) in [
            ("2026-10-02", "2026-10-02T07:00:00.000Z"),
            ("2026-11-02", "2026-11-02T08:00:00.000Z"),
            ("2026-10-02T20:30", "2026-10-03T03:30:00.000Z"),
            ("2026-10-02T20:30:00Z", "2026-10-02T20:30:00.000Z"),
            ("yesterday", "2026-10-31T07:00:00.000Z"),
            ("tomorrow", "2026-11-02T08:00:00.000Z"),
        ] {
            let now = time("2026-11-02T03:30:00Z");
            let time = zone.parse_since("since", text, now);
            assert_eq!(time.expect(text).to_string(), expected);
        }
    }
}
