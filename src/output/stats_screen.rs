//! Formats statistics and usage for a screen: the columns that fit its width, short numbers, a total
//! and sparklines.

use anstyle::Style;
use schemas::tool::stats::{Group, GroupKey, StatsData};

use super::columns::{Cell, Column, FittedTable};
use super::group_values::{
    cache_read_tokens, cache_write_tokens, format_nonzero, format_percent, input_tokens,
    key_heading, output_tokens, sparkline, sum_groups, total_tokens, total_tokens_or_zero,
    unpriced_note,
};
use super::layout::Layout;
use super::numbers::{format_bytes, format_dollars, format_milliseconds, format_short_count};
use super::painted::{COST, DIM, FAILED, ID, PLAIN, Painted, STRONG};

/// Maximum number of models named for a group.
const MAX_MODELS: usize = 3;

/// A column after the keys.
struct ScreenColumn {
    column: Column,
    style: Style,
    /// Formats the value of a group.
    cell: fn(&Group) -> String,
}

const fn screen_column(column: Column, style: Style, cell: fn(&Group) -> String) -> ScreenColumn {
    ScreenColumn { column, style, cell }
}

/// The columns of statistics.
const STATS_COLUMNS: &[ScreenColumn] = &[
    screen_column(Column::number("sessions").drop_at(5), PLAIN, |group| {
        if group.sessions == 0 { String::new() } else { group.sessions.to_string() }
    }),
    screen_column(Column::number("events").drop_at(6), PLAIN, |group| {
        format_short_count(group.events)
    }),
    screen_column(Column::number("calls"), PLAIN, |group| format_nonzero(group.tool_calls)),
    screen_column(Column::number("errors"), FAILED, |group| format_nonzero(group.tool_errors)),
    screen_column(Column::number("rate").drop_at(1), PLAIN, |group| {
        group.error_rate.map(format_percent).unwrap_or_default()
    }),
    screen_column(Column::number("tokens"), STRONG, |group| tokens_cell(group, total_tokens)),
    screen_column(Column::number("output").drop_at(7), PLAIN, |group| {
        tokens_cell(group, output_tokens)
    }),
    screen_column(Column::number("cost"), COST, partial_cost),
    screen_column(Column::number("p50").drop_at(8), PLAIN, |group| {
        group.duration_ms.map(|spread| format_milliseconds(spread.p50)).unwrap_or_default()
    }),
    screen_column(Column::number("p95").drop_at(4), PLAIN, |group| {
        group.duration_ms.map(|spread| format_milliseconds(spread.p95)).unwrap_or_default()
    }),
    screen_column(Column::number("result p95").drop_at(9), PLAIN, |group| {
        group.output_bytes.map(|spread| format_bytes(spread.p95)).unwrap_or_default()
    }),
    screen_column(Column::number("text").drop_at(10), PLAIN, |group| {
        format_bytes(group.text_bytes)
    }),
    screen_column(Column::text("trend").drop_at(3), DIM, |group| sparkline(&group.trend)),
];

/// The columns of usage.
const USAGE_COLUMNS: &[ScreenColumn] = &[
    screen_column(Column::text("models").cut_to(12).drop_at(3), PLAIN, model_names),
    screen_column(Column::number("input").drop_at(2), PLAIN, |group| {
        tokens_cell(group, input_tokens)
    }),
    screen_column(Column::number("output").drop_at(1), PLAIN, |group| {
        tokens_cell(group, output_tokens)
    }),
    screen_column(Column::number("cache write").drop_at(5), PLAIN, |group| {
        tokens_cell(group, cache_write_tokens)
    }),
    screen_column(Column::number("cache read").drop_at(4), PLAIN, |group| {
        tokens_cell(group, cache_read_tokens)
    }),
    screen_column(Column::number("total"), STRONG, |group| tokens_cell(group, total_tokens)),
    screen_column(Column::number("cost"), COST, partial_cost),
];

/// Formats the groups of statistics, with the sum at the end where groups have no common events.
pub(super) fn paint_groups(data: &StatsData, layout: &Layout) -> Painted {
    // There may be more groups than the shown ones.
    let label = format!("these {}", data.groups.len());
    let mut painted = paint_table(data, &data.groups, STATS_COLUMNS, &label, layout);
    let is_by_time = data.group_by.first().is_some_and(|key| key.is_time());
    if is_by_time && data.group_by.len() == 1 {
        painted.end_line();
        push_trend(&mut painted, "events", layout, data.groups.iter().map(|group| group.events));
        let tokens = data.groups.iter().map(total_tokens_or_zero);
        push_trend(&mut painted, "tokens", layout, tokens);
        let errors = data.groups.iter().map(|group| group.tool_errors);
        push_trend(&mut painted, "errors", layout, errors);
        push_zone(&mut painted, data);
    }
    painted
}

/// Formats tokens and cost by period, with the total and a sparkline.
pub fn paint_usage(data: &StatsData, layout: &Layout) -> Painted {
    let used: Vec<Group> =
        data.groups.iter().filter(|group| group.tokens.is_some()).cloned().collect();
    let mut painted = paint_table(data, &used, USAGE_COLUMNS, "total", layout);
    painted.end_line();
    push_trend(&mut painted, "tokens", layout, used.iter().map(total_tokens_or_zero));
    let cents = used.iter().map(|group| to_cents(group.cost_usd.unwrap_or(0.0)));
    push_trend(&mut painted, "cost", layout, cents);
    push_zone(&mut painted, data);
    let unpriced = used.iter().map(|group| group.unpriced_tokens).sum();
    if unpriced > 0 {
        for line in textwrap::wrap(&unpriced_note(unpriced), layout.width) {
            painted.push(DIM, &line);
            painted.end_line();
        }
    }
    painted
}

/// Formats a table of groups and their sum, which is named `label`.
fn paint_table(
    data: &StatsData,
    groups: &[Group],
    columns: &[ScreenColumn],
    label: &str,
    layout: &Layout,
) -> Painted {
    let is_by_session = data.group_by.contains(&GroupKey::Session);
    let key_width = if data.group_by.len() == 1 { 16 } else { 10 };
    let mut shown: Vec<Column> =
        data.group_by.iter().map(|key| Column::text(key_heading(*key)).cut_to(key_width)).collect();
    if is_by_session {
        shown.push(Column::text("title").cut_to(12));
    }
    shown.extend(columns.iter().map(|column| column.column));

    let mut table = FittedTable::new(&shown);
    for group in groups {
        let mut row = key_cells(group, &data.group_by, layout);
        if is_by_session {
            row.push(Cell::new(PLAIN, group.title.as_deref().unwrap_or("")));
        }
        row.extend(columns.iter().map(|column| Cell::new(column.style, &(column.cell)(group))));
        table.push(row);
    }
    // A call that names several files is counted for each of them.
    if groups.len() > 1 && !data.group_by.contains(&GroupKey::File) {
        let all = sum_groups(groups);
        let mut row = vec![Cell::new(STRONG, label)];
        row.resize(data.group_by.len() + usize::from(is_by_session), Cell::new(PLAIN, ""));
        let cells = columns.iter().map(|column| {
            let text =
                if column.column.name == "models" { String::new() } else { (column.cell)(&all) };
            Cell::new(column.style.bold(), &text)
        });
        row.extend(cells);
        table.push(row);
    }
    table.paint(layout.width)
}

/// Formats the values of a group's keys.
fn key_cells(group: &Group, group_by: &[GroupKey], layout: &Layout) -> Vec<Cell> {
    let mut cells = Vec::new();
    for key in group_by {
        let value = group.group.get(key.as_str()).and_then(|value| value.as_str());
        cells.push(match value {
            Some(id) if *key == GroupKey::Session => Cell::new(ID, &layout.short_id(id)),
            Some(value) => Cell::new(STRONG, value),
            None => Cell::new(DIM, "(none)"),
        });
    }
    cells
}

/// Appends a line with the sparkline of a value over time, if there are enough values for one. Of
/// more than fit into a line, the latest are shown.
fn push_trend(
    painted: &mut Painted,
    name: &str,
    layout: &Layout,
    values: impl Iterator<Item = u64>,
) {
    const NAME_WIDTH: usize = 8;
    let values: Vec<u64> = values.collect();
    let skipped = values.len().saturating_sub(layout.width - NAME_WIDTH);
    let line = sparkline(values.get(skipped..).unwrap_or_default());
    if !line.is_empty() {
        painted.push(DIM, &format!("{name:<NAME_WIDTH$}")).push(PLAIN, &line);
        painted.end_line();
    }
}

/// Appends the zone of the days, once.
fn push_zone(painted: &mut Painted, data: &StatsData) {
    if let Some(zone) = &data.timezone {
        let zone = zone.strip_prefix("Etc/").unwrap_or(zone);
        painted.push(DIM, &format!("times in {zone}"));
        painted.end_line();
    }
}

/// Formats a count of tokens; empty if the logs do not record any.
fn tokens_cell(group: &Group, count_tokens: fn(&Group) -> i64) -> String {
    if group.tokens.is_none() {
        return String::new();
    }
    format_short_count(u64::try_from(count_tokens(group)).unwrap_or(0))
}

/// Formats the cost, marked with `*` if it does not cover all tokens.
fn partial_cost(group: &Group) -> String {
    let cost = group.cost_usd.map(format_dollars).unwrap_or_default();
    if group.unpriced_tokens > 0 { format!("{cost}*") } else { cost }
}

/// Names the models of a group in short.
fn model_names(group: &Group) -> String {
    let names: Vec<String> =
        group.models.iter().take(MAX_MODELS).map(|name| short_model(name)).collect();
    let more = group.models.len().saturating_sub(MAX_MODELS);
    let names = names.join(", ");
    if more > 0 { format!("{names} +{more}") } else { names }
}

/// Shortens the name of a model: without its vendor, and without the date of its release.
fn short_model(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let name = name.strip_prefix("claude-").unwrap_or(name);
    match name.rsplit_once('-') {
        Some((model, date))
            if date.len() == 8 && date.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            model.to_owned()
        }
        _ => name.to_owned(),
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the height of a bar")]
fn to_cents(dollars: f64) -> u64 {
    (dollars * 100.0).max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_have_short_names() {
        for (name, short) in [
            ("claude-sonnet-4-5-20250929", "sonnet-4-5"),
            ("anthropic/claude-opus-4.8-fast", "opus-4.8-fast"),
            ("mistralai/voxtral-small-24b-2507", "voxtral-small-24b-2507"),
            ("gpt-5.4-mini", "gpt-5.4-mini"),
        ] {
            assert_eq!(short_model(name), short);
        }
    }
}
