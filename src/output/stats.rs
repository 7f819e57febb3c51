//! Formats statistics as tables with sparklines.

use schemas::tool::stats::{Group, GroupKey, Spread, StatsData};

use super::show::Show;
use crate::base::sanitize::one_line;
use crate::base::text_table::aligned;

/// A column: its name, whether it holds numbers, and the function that formats its value for a
/// group.
type Column = (&'static str, bool, fn(&Group) -> String);

/// The columns after the keys; columns that are empty in every row are left out.
const COLUMNS: &[Column] = &[
    ("sessions", true, |group| count(group.sessions as u64)),
    ("events", true, |group| count(group.events)),
    ("calls", true, |group| some(group.tool_calls)),
    ("errors", true, |group| some(group.tool_errors)),
    ("error rate", true, |group| group.error_rate.map(percent).unwrap_or_default()),
    ("tokens", true, |group| tokens(group, total)),
    ("output", true, |group| tokens(group, output)),
    ("cost", true, |group| group.cost_usd.map(dollars).unwrap_or_default()),
    ("p50", true, |group| group.duration_ms.map(|d| milliseconds(d.p50)).unwrap_or_default()),
    ("p95", true, |group| group.duration_ms.map(|d| milliseconds(d.p95)).unwrap_or_default()),
    ("result p95", true, |group| group.output_bytes.map(p95_bytes).unwrap_or_default()),
    ("text", true, |group| bytes(group.text_bytes)),
    ("trend", false, |group| sparkline(&group.trend)),
];

/// The columns of `sessions usage`.
const USAGE: &[Column] = &[
    ("models", false, models),
    ("input", true, |group| tokens(group, input)),
    ("output", true, |group| tokens(group, output)),
    ("cache write", true, |group| tokens(group, cache_write)),
    ("cache read", true, |group| tokens(group, cache_read)),
    ("total", true, |group| tokens(group, total)),
    ("cost", true, cost_in_part),
];

/// Formats the cost, marked with `*` if it does not cover all tokens.
fn cost_in_part(group: &Group) -> String {
    let cost = group.cost_usd.map(dollars).unwrap_or_default();
    if group.unpriced_tokens > 0 { format!("{cost}*") } else { cost }
}

/// Maximum number of model names shown for a day.
const MODELS: usize = 2;

fn models(group: &Group) -> String {
    let more = group.models.len().saturating_sub(MODELS);
    let names = group.models.iter().take(MODELS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{names} +{more}") } else { names }
}

impl Show for StatsData {
    fn show(&self) -> String {
        let mut out = table(self, &self.groups, COLUMNS);
        if self.group_by.first().is_some_and(|key| key.is_time()) && self.group_by.len() == 1 {
            let spark = |name: &str, of: fn(&Group) -> u64| {
                let values: Vec<_> = self.groups.iter().map(of).collect();
                let line = sparkline(&values);
                if line.is_empty() { line } else { format!("{name:<8}{line}\n") }
            };
            out.push('\n');
            out.push_str(&spark("events", |group| group.events));
            out.push_str(&spark("tokens", |group| u64::try_from(total(group)).unwrap_or(0)));
            out.push_str(&spark("errors", |group| group.tool_errors));
        }
        out
    }
}

/// Formats the table of tokens and cost by day, week or month, with the total at the end.
pub fn usage_table(data: &StatsData) -> String {
    let used: Vec<_> = data.groups.iter().filter(|group| group.tokens.is_some()).cloned().collect();
    let mut all = Group::default();
    for group in &used {
        let tokens = all.tokens.get_or_insert_default();
        tokens.counted_once =
            tokens.counted_once.plus(group.tokens.unwrap_or_default().counted_once);
        all.unpriced_tokens += group.unpriced_tokens;
        if let Some(cost) = group.cost_usd {
            *all.cost_usd.get_or_insert(0.0) += cost;
        }
    }
    let values: Vec<_> =
        used.iter().map(|group| u64::try_from(total(group)).unwrap_or(0)).collect();
    let unpriced = all.unpriced_tokens;
    let mut rows = used;
    if rows.len() > 1 {
        if let Some(key) = data.group_by.first() {
            all.group.insert(key.to_string(), "total".into());
        }
        rows.push(all);
    }
    let mut out = table(data, &rows, USAGE);
    let line = sparkline(&values);
    if !line.is_empty() {
        out.push_str(&format!("\n{line}\n"));
    }
    if unpriced > 0 {
        let sum = count(u64::try_from(unpriced).unwrap_or(0));
        out.push_str(&format!("\n* without the {sum} tokens of models that have no known price\n"));
    }
    out
}

fn table(data: &StatsData, groups: &[Group], columns: &[Column]) -> String {
    let mut names: Vec<&str> = data.group_by.iter().map(|key| key.as_str()).collect();
    let mut right = vec![false; names.len()];
    let mut rows: Vec<Vec<String>> =
        groups.iter().map(|group| keys(group, &data.group_by)).collect();
    if data.group_by.contains(&GroupKey::Session) {
        names.push("title");
        right.push(false);
        for (row, group) in rows.iter_mut().zip(groups) {
            row.push(short(group.title.as_deref().unwrap_or(""), 40));
        }
    }
    for (name, number, cell) in columns {
        let cells: Vec<_> = groups.iter().map(cell).collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        names.push(name);
        right.push(*number);
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }
    aligned(&names, &right, &rows)
}

fn keys(group: &Group, group_by: &[GroupKey]) -> Vec<String> {
    let value = |key: &GroupKey| group.group.get(key.as_str()).and_then(|value| value.as_str());
    group_by.iter().map(|key| short(value(key).unwrap_or("(none)"), 60)).collect()
}

/// Shortens a text to one line by cutting its end. Paths are cut at the beginning, which is less
/// informative.
fn short(text: &str, most: usize) -> String {
    let line = one_line(text);
    let chars = line.chars().count();
    if chars <= most {
        return line;
    }
    if line.starts_with('/') {
        let end: String = line.chars().skip(chars - most + 1).collect();
        return format!("…{end}");
    }
    let start: String = line.chars().take(most - 1).collect();
    format!("{start}…")
}

fn input(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.input).unwrap_or(0)
}

fn output(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.output).unwrap_or(0)
}

fn cache_read(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.cache_read).unwrap_or(0)
}

fn cache_write(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.cache_write).unwrap_or(0)
}

fn total(group: &Group) -> i64 {
    group.tokens.map_or(0, |tokens| tokens.counted_once.total())
}

/// Formats a count of tokens; empty if the logs do not record any.
fn tokens(group: &Group, of: fn(&Group) -> i64) -> String {
    let known = group.tokens.is_some();
    if known { count(u64::try_from(of(group)).unwrap_or(0)) } else { String::new() }
}

fn some(number: u64) -> String {
    if number == 0 { String::new() } else { count(number) }
}

/// Formats a number with its digits in groups of three.
fn count(number: u64) -> String {
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

fn percent(rate: f64) -> String {
    format!("{:.1} %", rate * 100.0)
}

fn dollars(cost: f64) -> String {
    format!("${cost:.2}")
}

fn milliseconds(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} ms"),
        1_000..60_000 => format!("{}.{} s", number / 1000, number % 1000 / 100),
        _ => format!("{} min", number / 60_000),
    }
}

fn p95_bytes(spread: Spread) -> String {
    bytes(spread.p95)
}

fn bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{} KB", number / 1000),
        _ => format!("{}.{} MB", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Draws bars as high as the values; empty for fewer than two values.
fn sparkline(values: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().max().copied().unwrap_or(0);
    if values.len() < 2 || most == 0 {
        return String::new();
    }
    let bar = |value: &u64| {
        let height = u128::from(*value) * (BARS.len() as u128 - 1) / u128::from(most);
        usize::try_from(height).ok().and_then(|height| BARS.get(height)).copied().unwrap_or(' ')
    };
    values.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!((count(12), count(123)), ("12".to_owned(), "123".to_owned()));
        assert_eq!((milliseconds(950), milliseconds(1_250)), ("950 ms".into(), "1.2 s".into()));
        assert_eq!((bytes(999), bytes(2_500_000)), ("999 B".into(), "2.5 MB".into()));
        assert_eq!((percent(0.125), dollars(1.005)), ("12.5 %".into(), "$1.00".into()));
        assert_eq!(short("/a/very/long/path", 10), "…long/path");
    }

    #[test]
    fn sparklines_show_the_shape() {
        assert_eq!(sparkline(&[0, 1, 2, 4, 7]), "▁▂▃▅█");
        assert_eq!(sparkline(&[5]), "");
        assert_eq!(sparkline(&[0, 0]), "");
    }
}
