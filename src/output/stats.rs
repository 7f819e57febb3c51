//! Formats statistics as tables with sparklines.

use schemas::tool::stats::{Group, GroupKey, Spread, StatsData};

use super::show::Show;
use crate::base::sanitize::one_line;
use crate::base::text_table::format_table;

/// A column of a table.
struct StatsColumn {
    name: &'static str,
    /// True if the column is aligned to the right.
    is_number: bool,
    /// Formats the value of a group.
    cell: fn(&Group) -> String,
}

const fn number_column(name: &'static str, cell: fn(&Group) -> String) -> StatsColumn {
    StatsColumn { name, is_number: true, cell }
}

const fn text_column(name: &'static str, cell: fn(&Group) -> String) -> StatsColumn {
    StatsColumn { name, is_number: false, cell }
}

/// The columns after the keys; columns that are empty in every row are left out.
const STATS_COLUMNS: &[StatsColumn] = &[
    number_column("sessions", |group| format_count(group.sessions as u64)),
    number_column("events", |group| format_count(group.events)),
    number_column("calls", |group| format_nonzero(group.tool_calls)),
    number_column("errors", |group| format_nonzero(group.tool_errors)),
    number_column("error rate", |group| group.error_rate.map(format_percent).unwrap_or_default()),
    number_column("tokens", |group| token_cell(group, total_tokens)),
    number_column("output", |group| token_cell(group, output_tokens)),
    number_column("cost", |group| group.cost_usd.map(format_dollars).unwrap_or_default()),
    number_column("p50", |group| {
        group.duration_ms.map(|d| format_milliseconds(d.p50)).unwrap_or_default()
    }),
    number_column("p95", |group| {
        group.duration_ms.map(|d| format_milliseconds(d.p95)).unwrap_or_default()
    }),
    number_column("result p95", |group| {
        group.output_bytes.map(format_p95_bytes).unwrap_or_default()
    }),
    number_column("text", |group| format_bytes(group.text_bytes)),
    text_column("trend", |group| sparkline(&group.trend)),
];

/// The columns of `sessions usage`.
const USAGE_COLUMNS: &[StatsColumn] = &[
    text_column("models", model_names),
    number_column("input", |group| token_cell(group, input_tokens)),
    number_column("output", |group| token_cell(group, output_tokens)),
    number_column("cache write", |group| token_cell(group, cache_write_tokens)),
    number_column("cache read", |group| token_cell(group, cache_read_tokens)),
    number_column("total", |group| token_cell(group, total_tokens)),
    number_column("cost", partial_cost),
];

/// Formats the cost, marked with `*` if it does not cover all tokens.
fn partial_cost(group: &Group) -> String {
    let cost = group.cost_usd.map(format_dollars).unwrap_or_default();
    if group.unpriced_tokens > 0 { format!("{cost}*") } else { cost }
}

/// Maximum number of model names shown for a group.
const MAX_MODELS: usize = 2;

/// Maximum number of characters of a session's title.
const MAX_TITLE_CHARS: usize = 40;

/// Maximum number of characters of a group's key.
const MAX_KEY_CHARS: usize = 60;

fn model_names(group: &Group) -> String {
    let more = group.models.len().saturating_sub(MAX_MODELS);
    let names =
        group.models.iter().take(MAX_MODELS).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{names} +{more}") } else { names }
}

impl Show for StatsData {
    fn to_text(&self) -> String {
        let mut out = format_groups(self, &self.groups, STATS_COLUMNS);
        if self.group_by.first().is_some_and(|key| key.is_time()) && self.group_by.len() == 1 {
            out.push('\n');
            append_trend(&mut out, "events", self.groups.iter().map(|group| group.events));
            append_trend(&mut out, "tokens", self.groups.iter().map(total_tokens_or_zero));
            append_trend(&mut out, "errors", self.groups.iter().map(|group| group.tool_errors));
        }
        out
    }
}

/// Appends a line with the sparkline of a value over time, if there are enough values for one.
fn append_trend(out: &mut String, name: &str, values: impl Iterator<Item = u64>) {
    let line = sparkline(&values.collect::<Vec<_>>());
    if !line.is_empty() {
        out.push_str(&format!("{name:<8}{line}\n"));
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

    let values: Vec<_> = used.iter().map(total_tokens_or_zero).collect();
    let unpriced = all.unpriced_tokens;
    let mut rows = used;
    if rows.len() > 1 {
        if let Some(key) = data.group_by.first() {
            all.group.insert(key.to_string(), "total".into());
        }
        rows.push(all);
    }
    let mut out = format_groups(data, &rows, USAGE_COLUMNS);
    let line = sparkline(&values);
    if !line.is_empty() {
        out.push_str(&format!("\n{line}\n"));
    }
    if unpriced > 0 {
        let sum = format_count(u64::try_from(unpriced).unwrap_or(0));
        out.push_str(&format!("\n* without the {sum} tokens of models that have no known price\n"));
    }
    out
}

/// Formats the groups as a table: their keys, then the columns that are not empty in every row.
fn format_groups(data: &StatsData, groups: &[Group], columns: &[StatsColumn]) -> String {
    let mut names: Vec<&str> = data.group_by.iter().map(|key| key.as_str()).collect();
    let mut right = vec![false; names.len()];
    let mut rows: Vec<Vec<String>> =
        groups.iter().map(|group| key_cells(group, &data.group_by)).collect();
    if data.group_by.contains(&GroupKey::Session) {
        names.push("title");
        right.push(false);
        for (row, group) in rows.iter_mut().zip(groups) {
            row.push(shorten_line(group.title.as_deref().unwrap_or(""), MAX_TITLE_CHARS));
        }
    }

    for column in columns {
        let cells: Vec<_> = groups.iter().map(column.cell).collect();
        if cells.iter().all(String::is_empty) {
            continue;
        }
        names.push(column.name);
        right.push(column.is_number);
        for (row, cell) in rows.iter_mut().zip(cells) {
            row.push(cell);
        }
    }
    format_table(&names, &right, &rows)
}

/// Formats the values of a group's keys.
fn key_cells(group: &Group, group_by: &[GroupKey]) -> Vec<String> {
    let mut cells = Vec::new();
    for key in group_by {
        let value = group.group.get(key.as_str()).and_then(|value| value.as_str());
        cells.push(shorten_line(value.unwrap_or("(none)"), MAX_KEY_CHARS));
    }
    cells
}

/// Shortens a text to one line by cutting its end. Paths are cut at the beginning, which is less
/// informative.
fn shorten_line(text: &str, max_chars: usize) -> String {
    let line = one_line(text);
    let chars = line.chars().count();
    if chars <= max_chars {
        return line;
    }
    if line.starts_with('/') {
        let end: String = line.chars().skip(chars - max_chars + 1).collect();
        return format!("…{end}");
    }
    let start: String = line.chars().take(max_chars - 1).collect();
    format!("{start}…")
}

fn input_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.input).unwrap_or(0)
}

fn output_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.output).unwrap_or(0)
}

fn cache_read_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.cache_read).unwrap_or(0)
}

fn cache_write_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.cache_write).unwrap_or(0)
}

fn total_tokens(group: &Group) -> i64 {
    group.tokens.map_or(0, |tokens| tokens.counted_once.total())
}

fn total_tokens_or_zero(group: &Group) -> u64 {
    u64::try_from(total_tokens(group)).unwrap_or(0)
}

/// Formats a count of tokens; empty if the logs do not record any.
fn token_cell(group: &Group, count_tokens: fn(&Group) -> i64) -> String {
    if group.tokens.is_none() {
        return String::new();
    }
    format_count(u64::try_from(count_tokens(group)).unwrap_or(0))
}

/// Formats a count; empty if it is zero.
fn format_nonzero(number: u64) -> String {
    if number == 0 { String::new() } else { format_count(number) }
}

/// Formats a number with its digits in groups of three.
fn format_count(number: u64) -> String {
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

fn format_percent(rate: f64) -> String {
    format!("{:.1} %", rate * 100.0)
}

fn format_dollars(cost: f64) -> String {
    format!("${cost:.2}")
}

fn format_milliseconds(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} ms"),
        1_000..60_000 => format!("{}.{} s", number / 1000, number % 1000 / 100),
        _ => format!("{} min", number / 60_000),
    }
}

fn format_p95_bytes(spread: Spread) -> String {
    format_bytes(spread.p95)
}

fn format_bytes(number: u64) -> String {
    match number {
        0..1_000 => format!("{number} B"),
        1_000..1_000_000 => format!("{} KB", number / 1000),
        _ => format!("{}.{} MB", number / 1_000_000, number % 1_000_000 / 100_000),
    }
}

/// Draws bars as high as the values; empty for fewer than two values.
fn sparkline(values: &[u64]) -> String {
    let max = values.iter().max().copied().unwrap_or(0);
    if values.len() < 2 || max == 0 {
        return String::new();
    }
    values.iter().map(|value| bar(*value, max)).collect()
}

/// Returns the bar of a value, where the bar of `max` is the highest.
fn bar(value: u64, max: u64) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = u128::from(value) * (BARS.len() as u128 - 1) / u128::from(max);
    usize::try_from(height).ok().and_then(|height| BARS.get(height)).copied().unwrap_or(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_readable() {
        assert_eq!(format_count(1_234_567), "1,234,567");
        assert_eq!((format_count(12), format_count(123)), ("12".to_owned(), "123".to_owned()));
        assert_eq!(
            (format_milliseconds(950), format_milliseconds(1_250)),
            ("950 ms".into(), "1.2 s".into())
        );
        assert_eq!((format_bytes(999), format_bytes(2_500_000)), ("999 B".into(), "2.5 MB".into()));
        assert_eq!(
            (format_percent(0.125), format_dollars(1.005)),
            ("12.5 %".into(), "$1.00".into())
        );
        assert_eq!(shorten_line("/a/very/long/path", 10), "…long/path");
    }

    #[test]
    fn sparklines_show_the_shape() {
        assert_eq!(sparkline(&[0, 1, 2, 4, 7]), "▁▂▃▅█");
        assert_eq!(sparkline(&[5]), "");
        assert_eq!(sparkline(&[0, 0]), "");
    }
}
