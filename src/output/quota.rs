//! Formats quotas.

use std::fmt::Write as _;

use schemas::Timestamp;

use super::layout::Layout;
use super::painted::Painted;
use super::show::Show;
use base::sanitize::one_line;
use tools::quota::{QuotaData, QuotaWindow};

impl Show for QuotaData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut out = String::new();
        for window in &self.windows {
            let _ = write!(out, "{} {}", window.provider, describe_limit(window.window_minutes));
            if let Some(limit) = &window.limit {
                let _ = write!(out, " of {limit}");
            }
            if window.has_begun_again {
                out.push_str(": has reset");
            } else {
                let _ = write!(out, ": {} used", format_used(window.used_percent));
            }
            if let Some(time) = &window.resets_at {
                let _ = write!(out, ", resets {}", layout.time(Some(time)));
            }
            if let Some(time) = &window.seen_at {
                let _ = write!(out, ", last seen {}", layout.time(Some(time)));
            }
            out.push('\n');
        }
        Painted::from_text(&out)
    }
}

/// Names the limit of a window: `5-hour limit`, `7-day limit`.
fn describe_limit(minutes: i64) -> String {
    match minutes {
        _ if minutes % 1440 == 0 => format!("{}-day limit", minutes / 1440),
        _ if minutes % 60 == 0 => format!("{}-hour limit", minutes / 60),
        _ => format!("{minutes}-minute limit"),
    }
}

/// Formats the used part of a window, with a decimal if it has one.
fn format_used(percent: f64) -> String {
    let text = format!("{percent:.1}");
    format!("{} %", text.strip_suffix(".0").unwrap_or(&text))
}

/// Joins the parts of a status line.
pub fn join_status(parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| one_line(part.trim())).collect();
    parts.join(" | ")
}

/// Returns a window in a few words: `codex 5h 24 % (2h10m left)`, with the time until it begins again.
pub fn quota_summary(window: &QuotaWindow, now: Timestamp) -> String {
    let name = match window.window_minutes {
        1_440 => "day".to_owned(),
        10_080 => "week".to_owned(),
        minutes => format_minutes(minutes),
    };
    let summary = format!("{} {name} {:.0} %", window.provider, window.used_percent);
    let resets_at = window.resets_at.as_deref().and_then(Timestamp::parse);
    match resets_at.map(|time| (time.0 - now.0) / 60_000_000) {
        Some(minutes) => format!("{summary} ({} left)", format_minutes(minutes)),
        None => summary,
    }
}

/// Returns a time in minutes with its two largest units: `5h`, `2h10m`, `7d`, `3d4h`.
fn format_minutes(minutes: i64) -> String {
    let units = [(minutes / 1440, 'd'), (minutes / 60 % 24, 'h'), (minutes % 60, 'm')];
    let first = units.iter().position(|(count, _)| *count > 0).unwrap_or(units.len() - 1);
    let mut text = String::new();
    for (count, unit) in units.iter().skip(first).take(2) {
        if *count > 0 || text.is_empty() {
            text.push_str(&format!("{count}{unit}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::format_minutes;

    #[test]
    fn minutes_have_two_units() {
        for (minutes, text) in
            [(0, "0m"), (59, "59m"), (130, "2h10m"), (300, "5h"), (10_080, "7d"), (4_560, "3d4h")]
        {
            assert_eq!(format_minutes(minutes), text);
        }
    }
}
