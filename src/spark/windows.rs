//! The windows of time in which a lake is searched, the nearest first.

use std::ops::RangeInclusive;

use super::pruning::CandidateObject;

/// Microseconds of a day.
const DAY_US: i64 = 86_400_000_000;

/// The days of each window; after them everything is searched.
const WINDOW_DAYS: [i64; 3] = [1, 7, 30];

/// A part of the candidate objects, by their days.
pub(super) struct SearchWindow<'c> {
    pub(super) objects: Vec<&'c CandidateObject>,
    /// The number of days; `None` for all of them.
    pub(super) days: Option<i64>,
    /// The first and the last of these days, counted from 1970-01-01.
    span: RangeInclusive<i64>,
}

impl SearchWindow<'_> {
    /// Returns whether an event of this time, in microseconds since the epoch, is in the window: all events of
    /// its days were searched.
    pub(super) fn includes(&self, time: Option<i64>) -> bool {
        let day = time.map(|time| time.div_euclid(DAY_US));
        self.days.is_none() || day.is_some_and(|day| self.span.contains(&day))
    }
}

/// Returns the windows, each of which contains the one before. They end at the newest day of a
/// candidate, or begin at the oldest one if `is_oldest_first`. A window that adds nothing is left out,
/// and the last one has all objects.
pub(super) fn split_windows(
    objects: &[CandidateObject],
    is_oldest_first: bool,
) -> Vec<SearchWindow<'_>> {
    let days = objects.iter().filter_map(|object| object.day);
    let edge = if is_oldest_first { days.min() } else { days.max() };
    let mut windows: Vec<SearchWindow<'_>> = Vec::new();
    for days in WINDOW_DAYS {
        let Some(edge) = edge else { break };
        let span = if is_oldest_first { edge..=edge + days - 1 } else { edge - days + 1..=edge };
        let is_inside =
            |object: &&CandidateObject| object.day.is_some_and(|day| span.contains(&day));
        let objects: Vec<_> = objects.iter().filter(is_inside).collect();
        if windows.last().is_none_or(|last| last.objects.len() < objects.len()) {
            windows.push(SearchWindow { objects, days: Some(days), span });
        }
    }
    match windows.last_mut() {
        Some(last) if last.objects.len() == objects.len() => last.days = None,
        _ => {
            let objects = objects.iter().collect();
            windows.push(SearchWindow { objects, days: None, span: i64::MIN..=i64::MAX });
        }
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::super::pruning::parse_day;
    use super::*;

    fn objects(dates: &[&str]) -> Vec<CandidateObject> {
        let object = |date: &&str| CandidateObject {
            session: 0,
            path: String::new(),
            day: parse_day(date),
            joined: None,
        };
        dates.iter().map(object).collect()
    }

    fn sizes(objects: &[CandidateObject], is_oldest_first: bool) -> Vec<(Option<i64>, usize)> {
        let windows = split_windows(objects, is_oldest_first);
        windows.iter().map(|window| (window.days, window.objects.len())).collect()
    }

    #[test]
    fn windows_grow_until_everything_is_in_one() {
        let all = objects(&["2026-01-01", "2026-10-01", "2026-10-20", "2026-10-21", "2026-10-21"]);
        assert_eq!(sizes(&all, false), [(Some(1), 2), (Some(7), 3), (Some(30), 4), (None, 5)]);
        assert_eq!(sizes(&all, true), [(Some(1), 1), (None, 5)]);
        let near = objects(&["2026-10-20", "2026-10-21"]);
        assert_eq!(sizes(&near, false), [(Some(1), 1), (None, 2)]);
        let windows = split_windows(&near, false);
        let of_day = |day: &str| parse_day(day).map(|day| day * DAY_US + 1);
        assert!(windows[0].includes(of_day("2026-10-21")) && !windows[0].includes(None));
        assert!(!windows[0].includes(of_day("2026-10-20")) && windows[1].includes(None));
        assert_eq!(sizes(&objects(&["2026-10-21"]), false), [(None, 1)]);
        assert_eq!(sizes(&[], false), [(None, 0)]);
    }
}
