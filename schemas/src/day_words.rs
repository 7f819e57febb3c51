//! The days that words such as `yesterday`, `monday` and `last week` name.

use jiff::Span;
use jiff::civil::{Date, Weekday};

/// Returns the first day that the words name, seen from `today`. A day of the week is the latest one
/// up to today, and weeks begin on Monday.
pub(crate) fn parse_day_words(text: &str, today: Date) -> Option<Date> {
    let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let monday = latest_weekday(Weekday::Monday, today)?;
    match words.as_slice() {
        ["today"] => Some(today),
        ["yesterday"] => today.yesterday().ok(),
        ["tomorrow"] => today.tomorrow().ok(),
        ["this", "week"] => Some(monday),
        ["last", "week"] => monday.checked_sub(Span::new().weeks(1)).ok(),
        ["this", "month"] => Some(today.first_of_month()),
        ["last", "month"] => today.first_of_month().checked_sub(Span::new().months(1)).ok(),
        ["this", "year"] => Some(today.first_of_year()),
        [day] => latest_weekday(parse_weekday(day)?, today),
        ["last", day] => latest_weekday(parse_weekday(day)?, today.yesterday().ok()?),
        _ => None,
    }
}

/// Parses the English name of a day of the week, or its first three letters.
fn parse_weekday(name: &str) -> Option<Weekday> {
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let at = names.iter().position(|known| *known == name || known[..3] == *name)?;
    Weekday::from_monday_zero_offset(i8::try_from(at).ok()?).ok()
}

/// Returns the latest day that is `weekday`, up to `today`.
fn latest_weekday(weekday: Weekday, today: Date) -> Option<Date> {
    let days = today.weekday().since(weekday);
    today.checked_sub(Span::new().days(days)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_days() {
        // A Thursday.
        let today: Date = "2026-11-26".parse().expect("a date");
        for (words, day) in [
            ("today", "2026-11-26"),
            ("Yesterday", "2026-11-25"),
            ("monday", "2026-11-23"),
            ("thu", "2026-11-26"),
            ("last thursday", "2026-11-19"),
            ("friday", "2026-11-20"),
            ("this week", "2026-11-23"),
            ("last  week", "2026-11-16"),
            ("this month", "2026-11-01"),
            ("last month", "2026-10-01"),
            ("this year", "2026-01-01"),
        ] {
            let parsed = parse_day_words(words, today).map(|date| date.to_string());
            assert_eq!(parsed.as_deref(), Some(day), "{words}");
        }
        for words in ["", "week", "last", "mondays", "next week", "mon day"] {
            assert_eq!(parse_day_words(words, today), None, "{words}");
        }
    }
}
