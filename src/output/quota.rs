//! Formats quotas as text.

use schemas::Timestamp;

use super::show::Show;
use base::sanitize::one_line;
use tools::quota::{QuotaData, QuotaWindow};

impl Show for QuotaData {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for window in &self.windows {
            let resets = window.resets_at.as_deref().unwrap_or("not begun");
            let seen = window.seen_at.as_deref().unwrap_or("");
            out.push_str(&format!(
                "{:<8} {:>5} {:>6.1}% used  resets {resets}  seen {seen}{}\n",
                window.provider.to_string(),
                format_minutes(window.window_minutes),
                window.used_percent,
                window.limit.as_deref().map(|limit| format!("  {limit}")).unwrap_or_default()
            ));
        }
        out
    }
}

/// Joins the parts of a status line.
pub fn join_status(parts: &[String]) -> String {
    let parts: Vec<String> = parts.iter().map(|part| one_line(part.trim())).collect();
    parts.join(" | ")
}

/// Returns a window in a few words: `5h 24% (2h10m)`, with the time until it begins again.
pub fn quota_summary(window: &QuotaWindow, now: Timestamp) -> String {
    let name = format_minutes(window.window_minutes);
    let used = window.used_percent;
    let resets_at = window.resets_at.as_deref().and_then(Timestamp::parse);
    match resets_at.map(|time| (time.0 - now.0) / 60_000_000) {
        Some(minutes) => format!("{name} {used:.0}% ({})", format_minutes(minutes)),
        None => format!("{name} {used:.0}%"),
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
