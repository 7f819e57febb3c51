//! Numbers as a user reads them.

use std::collections::BTreeMap;
use std::fmt::Display;

/// Formats an amount of money; less than a cent is `<$0.01`.
pub fn format_dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.01 {
        return "<$0.01".to_owned();
    }
    let text = format!("{cost:.2}");
    let (whole, cents) = text.split_once('.').unwrap_or((&text, "00"));
    let whole: u64 = whole.parse().unwrap_or(0);
    format!("${}.{cents}", format_count(whole))
}

/// Formats a number with its digits in groups of three.
pub fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats counts by name in one line.
pub fn list_counts(counts: &BTreeMap<impl Display, impl Display>) -> String {
    let counts: Vec<_> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    counts.join(", ")
}

/// Formats a number in at most six characters: `940`, `62.3K`, `174.1M`, `1.02B`.
#[expect(clippy::cast_precision_loss, reason = "a rounded number for people")]
pub fn format_short_count(number: u64) -> String {
    let exact = number as f64;
    match number {
        0..1_000 => number.to_string(),
        1_000..999_950 => format!("{:.1}K", exact / 1e3),
        999_950..999_950_000 => format!("{:.1}M", exact / 1e6),
        999_950_000.. => format!("{:.2}B", exact / 1e9),
    }
}

/// Returns the bar of a number, where the bar of `peak` is the highest.
pub fn bar(number: u64, peak: u64) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = u128::from(number) * (BARS.len() as u128 - 1) / u128::from(peak.max(1));
    usize::try_from(height).ok().and_then(|height| BARS.get(height)).copied().unwrap_or(' ')
}

/// Returns a count with its noun: `1 error`, `2 errors`.
pub fn count_of(count: impl std::fmt::Display, noun: &str) -> String {
    let count = count.to_string();
    let plural = if count == "1" { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a size in bytes.
pub fn format_bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{} KB", number / 1000),
        _ => format!("{}.{} MB", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Formats a duration in milliseconds with its two largest units.
pub fn format_duration(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    let minutes = seconds / 60;
    match milliseconds {
        0..1000 => format!("{milliseconds} ms"),
        1000..60_000 => format!("{seconds}.{} s", milliseconds % 1000 / 100),
        60_000..3_600_000 => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

/// Returns a number of bytes in megabytes.
#[expect(clippy::cast_precision_loss, reason = "sizes for people")]
pub fn to_megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(format_count(1_234_567), "1,234,567");
        assert_eq!((format_count(12), format_count(123)), ("12".to_owned(), "123".to_owned()));
        let short = [940, 1_000, 62_253, 999_949, 999_950, 174_123_456, 1_020_866_783];
        let short = short.map(format_short_count);
        assert_eq!(short, ["940", "1.0K", "62.3K", "999.9K", "1.0M", "174.1M", "1.02B"]);
        let money = [0.0, 0.009, 0.01, 0.125, 1.005, 12_345.678].map(format_dollars);
        assert_eq!(money, ["$0.00", "<$0.01", "$0.01", "$0.12", "$1.00", "$12,345.68"]);
        assert_eq!((format_bytes(999), format_bytes(2_500_000)), ("999 B".into(), "2.5 MB".into()));
        let times = [350, 1_250, 61_000, 3_720_000].map(format_duration);
        assert_eq!(times, ["350 ms", "1.2 s", "1 min 1 s", "1 h 2 min"]);
        assert_eq!(
            (count_of(1, "error"), count_of(0, "error")),
            ("1 error".into(), "0 errors".into())
        );
    }
}
