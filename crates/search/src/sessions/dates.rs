//! Finds the dates that a question names, and says how near a session is to them.

use std::ops::Range;
use std::sync::LazyLock;

use jiff::civil::{self, Date};
use regex::Regex;

/// Days after the end of a named span on which a session counts in full: people write about things
/// afterwards.
const FULL_DAYS_AFTER: f64 = 3.0;

/// Days over which the value falls to nothing after [`FULL_DAYS_AFTER`].
const FADING_DAYS: f64 = 11.0;

/// Days before a named day on which a session counts half.
const DAYS_BEFORE: f64 = 3.0;

/// What a session counts on the days before a named day.
const VALUE_BEFORE: f64 = 0.5;

const MICROSECONDS_A_DAY: f64 = 86_400e6;

/// A day or month that a question names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NamedDate {
    /// `None` if the question names none.
    year: Option<i16>,
    /// From 1.
    month: i8,
    /// `None` if a whole month is named.
    day: Option<i8>,
}

/// A date in the text of a question.
pub(crate) struct DateMention {
    pub(crate) date: NamedDate,
    /// The bytes of its day and its year.
    pub(crate) numbers: Vec<Range<usize>>,
}

/// A month as a name, with a day before or after it and perhaps a year.
static DATES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        (?: \b (\d{1,2}) (?:st|nd|rd|th)? (?:\s+of)? \s+ )?
        \b ( january|february|march|april|may|june|july|august|september|october|november|december
           | jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec ) \b \.?
        (?: \s+ (\d{1,2}) (?:st|nd|rd|th)? \b )?
        (?: ,? \s* (?:of\s+)? (\d{4}) \b )?",
    )
    .ok()
});

/// Words before `may` and `march` that show that a month is meant.
const WORDS_BEFORE_MONTH: &[&str] =
    &["in", "on", "of", "during", "by", "since", "early", "late", "mid", "last", "this"];

/// The parts of a day.
const TIMES_OF_DAY: &[&str] = &["afternoon", "evening", "midday", "morning", "night", "noon"];

/// Returns the dates that a question names.
pub(crate) fn find_dates(question: &str) -> Vec<DateMention> {
    let Some(pattern) = &*DATES else { return Vec::new() };
    let mut dates = Vec::new();
    for found in pattern.captures_iter(question) {
        let Some(name) = found.get(2) else { continue };
        let number = |group: usize| found.get(group).and_then(|text| text.as_str().parse().ok());
        let day = number(1).or_else(|| number(3)).filter(|day| (1..=31).contains(day));
        let year = found.get(4).and_then(|year| year.as_str().parse().ok());
        let lower = name.as_str().to_ascii_lowercase();
        let is_ambiguous = matches!(lower.as_str(), "may" | "march" | "mar");
        let word_before = question[..name.start()].split_whitespace().next_back().unwrap_or("");
        if is_ambiguous
            && day.is_none()
            && year.is_none()
            && !WORDS_BEFORE_MONTH.contains(&word_before.to_ascii_lowercase().as_str())
        {
            continue;
        }
        let Some(month) = month_number(&lower) else { continue };
        let numbers = [1, 3, 4].into_iter().filter_map(|group| found.get(group));
        dates.push(DateMention {
            date: NamedDate { year, month, day },
            numbers: numbers.map(|number| number.range()).collect(),
        });
    }
    dates
}

/// Returns the number of a month, given its name or the beginning of it in lower case.
fn month_number(name: &str) -> Option<i8> {
    let months =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let position = months.iter().position(|month| name.starts_with(month))?;
    i8::try_from(position + 1).ok()
}

/// True if a lowercase word says when something happened: the name of the month of one of these dates or,
/// if there is a date, a part of a day.
pub(crate) fn is_time_word(dates: &[NamedDate], word: &str) -> bool {
    if dates.is_empty() {
        return false;
    }
    let named = find_dates(&format!("in {word}"));
    let is_month =
        named.iter().any(|named| dates.iter().any(|date| date.month == named.date.month));
    is_month || TIMES_OF_DAY.contains(&word)
}

impl NamedDate {
    /// Returns how near `time`, in microseconds since the epoch, is to the date: 1 within it and
    /// shortly after it, 0 if it is far. A date without a year is the one of that year or of the year
    /// before.
    pub(crate) fn nearness(&self, time: i64) -> f64 {
        let Ok(at) = jiff::Timestamp::from_microsecond(time) else { return 0.0 };
        let now = at.to_zoned(jiff::tz::TimeZone::UTC).date();
        let years = match self.year {
            Some(year) => vec![year],
            None => vec![now.year(), now.year() - 1],
        };
        let values = years.into_iter().filter_map(|year| self.span_in(year));
        values.map(|(start, end)| self.value_at(time, start, end)).fold(0.0, f64::max)
    }

    /// Returns the first day and the day after the last; `None` if there is no such day.
    fn span_in(&self, year: i16) -> Option<(Date, Date)> {
        let start = Date::new(year, self.month, self.day.unwrap_or(1)).ok()?;
        let end = match self.day {
            Some(_) => start.tomorrow().ok()?,
            None => start.last_of_month().tomorrow().ok()?,
        };
        Some((start, end))
    }

    fn value_at(&self, time: i64, start: Date, end: Date) -> f64 {
        let days = |date: civil::Date| -> f64 {
            let midnight = date.to_zoned(jiff::tz::TimeZone::UTC);
            midnight.map_or(0.0, |day| day.timestamp().as_microsecond() as f64 / MICROSECONDS_A_DAY)
        };
        let now = time as f64 / MICROSECONDS_A_DAY;
        let before = days(start) - now;
        if before > 0.0 {
            if self.day.is_some() && before < DAYS_BEFORE { VALUE_BEFORE } else { 0.0 }
        } else {
            (1.0 - (now - days(end) - FULL_DAYS_AFTER) / FADING_DAYS).clamp(0.0, 1.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(year: Option<i16>, month: i8, day: Option<i8>) -> NamedDate {
        NamedDate { year, month, day }
    }

    #[test]
    fn dates_are_read_in_the_ways_people_write_them() {
        let dates = |question: &str| -> Vec<NamedDate> {
            find_dates(question).into_iter().map(|mention| mention.date).collect()
        };
        assert_eq!(dates("on 7 May 2023"), [date(Some(2023), 5, Some(7))]);
        assert_eq!(dates("What happened July 3rd, 2023?"), [date(Some(2023), 7, Some(3))]);
        assert_eq!(
            dates("in august of 2022 or early mar"),
            [date(Some(2022), 8, None), date(None, 3, None)]
        );
        assert_eq!(dates("how may I march on"), []);
    }

    #[test]
    fn words_of_time_belong_to_a_date() {
        let dates = [date(None, 4, Some(14))];
        for word in ["april", "apr", "afternoon"] {
            assert!(is_time_word(&dates, word) && !is_time_word(&[], word), "{word}");
        }
        for word in ["may", "aprilia", "calendar"] {
            assert!(!is_time_word(&dates, word), "{word}");
        }
    }

    #[test]
    fn nearness_falls_with_the_days() {
        let at = |text: &str| text.parse::<jiff::Timestamp>().expect("a time").as_microsecond();
        let day = date(Some(2023), 5, Some(7));
        assert_eq!(day.nearness(at("2023-05-07T12:00:00Z")), 1.0);
        assert_eq!(day.nearness(at("2023-05-10T12:00:00Z")), 1.0);
        assert_eq!(day.nearness(at("2023-05-06T00:00:00Z")), VALUE_BEFORE);
        assert_eq!(day.nearness(at("2023-05-01T00:00:00Z")), 0.0);
        assert_eq!(day.nearness(at("2023-07-01T00:00:00Z")), 0.0);
        let later = day.nearness(at("2023-05-15T00:00:00Z"));
        assert!(later > 0.3 && later < 0.7, "{later}");
        assert_eq!(date(None, 12, None).nearness(at("2024-01-02T00:00:00Z")), 1.0);
        assert_eq!(date(Some(2023), 2, Some(31)).nearness(0), 0.0);
    }
}
