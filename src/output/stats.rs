//! Formats statistics as tables with sparklines.

use schemas::tool::stats::{Group, GroupKey, Spread, StatsData};

use super::group_values::{
    cache_read_tokens, cache_write_tokens, format_nonzero, format_percent, input_tokens,
    key_heading, output_tokens, sparkline, sum_groups, total_tokens, total_tokens_or_zero,
    unpriced_note,
};
use super::layout::Layout;
use super::numbers::{format_bytes, format_count, format_dollars, format_milliseconds};
use super::painted::Painted;
use super::show::Show;
use super::stats_screen::paint_groups;
use base::cells::truncate;
use base::sanitize::one_line;
use base::text_table::format_table;

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

/// Maximum number of cells of a session's title.
const MAX_TITLE_WIDTH: usize = 40;

/// Maximum number of cells of a group's key.
const MAX_KEY_WIDTH: usize = 60;

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

    fn paint(&self, layout: &Layout) -> Painted {
        paint_groups(self, layout)
    }
}

/// Statistics by several keys, one table after another.
pub struct StatsSummary(pub Vec<StatsData>);

impl Show for StatsSummary {
    fn to_text(&self) -> String {
        self.0.iter().map(Show::to_text).collect::<Vec<_>>().join("\n")
    }

    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        for (at, table) in self.0.iter().filter(|table| !table.groups.is_empty()).enumerate() {
            if at > 0 {
                painted.end_line();
            }
            painted.append(&table.paint(layout));
        }
        painted
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
    let mut rows: Vec<_> =
        data.groups.iter().filter(|group| group.tokens.is_some()).cloned().collect();
    let mut all = sum_groups(&rows);
    let values: Vec<_> = rows.iter().map(total_tokens_or_zero).collect();
    let unpriced = all.unpriced_tokens;
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
        out.push_str(&format!("\n{}\n", unpriced_note(unpriced)));
    }
    out
}

/// Formats the groups as a table: their keys, then the columns that are not empty in every row.
fn format_groups(data: &StatsData, groups: &[Group], columns: &[StatsColumn]) -> String {
    let mut names: Vec<&str> = data.group_by.iter().map(|key| key_heading(*key)).collect();
    let mut right = vec![false; names.len()];
    let mut rows: Vec<Vec<String>> =
        groups.iter().map(|group| key_cells(group, &data.group_by)).collect();
    if data.group_by.contains(&GroupKey::Session) {
        names.push("title");
        right.push(false);
        for (row, group) in rows.iter_mut().zip(groups) {
            row.push(truncate(&one_line(group.title.as_deref().unwrap_or("")), MAX_TITLE_WIDTH));
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
        cells.push(truncate(&one_line(value.unwrap_or("(none)")), MAX_KEY_WIDTH));
    }
    cells
}

/// Formats a count of tokens; empty if the logs do not record any.
fn token_cell(group: &Group, count_tokens: fn(&Group) -> i64) -> String {
    if group.tokens.is_none() {
        return String::new();
    }
    format_count(u64::try_from(count_tokens(group)).unwrap_or(0))
}

fn format_p95_bytes(spread: Spread) -> String {
    format_bytes(spread.p95)
}
