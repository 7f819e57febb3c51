//! Formats statistics and usage: the columns that fit the width, a sum and sparklines.

use anstyle::Style;
use schemas::Usage;
use schemas::tool::stats::{Group, GroupKey, StatsData};

use super::columns::{Cell, Column, FittedTable};
use super::layout::Layout;
use super::painted::{COST, DIM, FAILED, ID, PLAIN, Painted, STRONG};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::numbers::{bar, format_count, format_dollars};

/// Maximum number of models named for a group on a screen.
const MAX_MODELS: usize = 3;

/// A column after the keys.
struct StatsColumn {
    column: Column,
    style: Style,
    /// Formats the value of a group.
    cell: fn(&Group, &Layout) -> String,
}

const fn stats_column(
    column: Column,
    style: Style,
    cell: fn(&Group, &Layout) -> String,
) -> StatsColumn {
    StatsColumn { column, style, cell }
}

/// The columns of statistics.
const STATS_COLUMNS: &[StatsColumn] = &[
    stats_column(Column::number("sessions").drop_at(5), PLAIN, |group, layout| {
        nonzero_cell(group.sessions as u64, layout)
    }),
    stats_column(Column::number("events").drop_at(6), PLAIN, |group, layout| {
        layout.short_count(group.events)
    }),
    stats_column(Column::number("calls"), PLAIN, |group, layout| {
        nonzero_cell(group.tool_calls, layout)
    }),
    stats_column(Column::number("errors"), FAILED, |group, layout| {
        nonzero_cell(group.tool_errors, layout)
    }),
    stats_column(Column::number("rate").drop_at(1), PLAIN, |group, _| {
        group.error_rate.map(|rate| format!("{:.1} %", rate * 100.0)).unwrap_or_default()
    }),
    stats_column(Column::number("tokens"), STRONG, total_cell),
    stats_column(Column::number("output").drop_at(7), PLAIN, output_cell),
    stats_column(Column::number("cost"), COST, partial_cost),
    stats_column(Column::number("p50").drop_at(8), PLAIN, |group, layout| {
        group.duration_ms.map(|spread| layout.duration(spread.p50)).unwrap_or_default()
    }),
    stats_column(Column::number("p95").drop_at(4), PLAIN, |group, layout| {
        group.duration_ms.map(|spread| layout.duration(spread.p95)).unwrap_or_default()
    }),
    stats_column(Column::number("result p95").drop_at(9), PLAIN, |group, layout| {
        group.output_bytes.map(|spread| layout.bytes(spread.p95)).unwrap_or_default()
    }),
    stats_column(Column::number("text").drop_at(10), PLAIN, |group, layout| {
        layout.bytes(group.text_bytes)
    }),
    stats_column(Column::text("trend").drop_at(3), DIM, |group, _| sparkline(&group.trend)),
];

/// The columns of usage.
const USAGE_COLUMNS: &[StatsColumn] = &[
    stats_column(Column::text(MODELS).cut_to(12).drop_at(3), PLAIN, model_names),
    stats_column(Column::number("input").drop_at(2), PLAIN, |group, layout| {
        tokens_cell(group, |usage| usage.input.unwrap_or(0), layout)
    }),
    stats_column(Column::number("output").drop_at(1), PLAIN, output_cell),
    stats_column(Column::number("cache write").drop_at(5), PLAIN, |group, layout| {
        tokens_cell(group, |usage| usage.cache_write.unwrap_or(0), layout)
    }),
    stats_column(Column::number("cache read").drop_at(4), PLAIN, |group, layout| {
        tokens_cell(group, |usage| usage.cache_read.unwrap_or(0), layout)
    }),
    stats_column(Column::number("total"), STRONG, total_cell),
    stats_column(Column::number("cost"), COST, partial_cost),
];

/// The column of models, which have no sum.
const MODELS: &str = "models";

impl Show for StatsData {
    fn paint(&self, layout: &Layout) -> Painted {
        // There may be more groups than the shown ones.
        let label = format!("these {}", self.groups.len());
        let mut painted = paint_table(self, &self.groups, STATS_COLUMNS, &label, layout);
        let is_by_time = self.group_by.first().is_some_and(|key| key.is_time());
        if is_by_time && self.group_by.len() == 1 {
            painted.end_line();
            push_trend(&mut painted, "events", layout, &self.groups, |group| group.events);
            push_trend(&mut painted, "tokens", layout, &self.groups, total_tokens);
            push_trend(&mut painted, "errors", layout, &self.groups, |group| group.tool_errors);
            push_zone(&mut painted, self);
        }
        push_unpriced_note(&mut painted, &self.groups, layout);
        painted
    }
}

/// Statistics by several keys, one table after another.
pub struct StatsSummary(pub Vec<StatsData>);

impl Show for StatsSummary {
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

/// Tokens and cost by day, week or month.
pub struct UsageTable<'d>(pub &'d StatsData);

impl Show for UsageTable<'_> {
    fn paint(&self, layout: &Layout) -> Painted {
        let Self(data) = self;
        let used: Vec<Group> =
            data.groups.iter().filter(|group| group.tokens.is_some()).cloned().collect();
        let mut painted = paint_table(data, &used, USAGE_COLUMNS, "total", layout);
        painted.end_line();
        push_trend(&mut painted, "tokens", layout, &used, total_tokens);
        push_trend(&mut painted, "cost", layout, &used, |group| {
            to_cents(group.cost_usd.unwrap_or(0.0))
        });
        push_zone(&mut painted, data);
        push_unpriced_note(&mut painted, &used, layout);
        painted
    }
}

/// Formats a table of groups and their sum, which is named `label`.
fn paint_table(
    data: &StatsData,
    groups: &[Group],
    columns: &[StatsColumn],
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
        let cells = columns.iter();
        row.extend(cells.map(|column| Cell::new(column.style, &(column.cell)(group, layout))));
        table.push(row);
    }
    // A call that names several files is counted for each of them.
    if groups.len() > 1 && !data.group_by.contains(&GroupKey::File) {
        let all = sum_groups(groups);
        let mut row = vec![Cell::new(STRONG, label)];
        row.resize(data.group_by.len() + usize::from(is_by_session), Cell::new(PLAIN, ""));
        for column in columns {
            let has_sum = column.column.name != MODELS;
            let text = if has_sum { (column.cell)(&all, layout) } else { String::new() };
            row.push(Cell::new(column.style.bold(), &text));
        }
        table.push(row);
    }
    table.paint(layout.width)
}

/// Returns the heading of the column of a key.
const fn key_heading(key: GroupKey) -> &'static str {
    if matches!(key, GroupKey::Provider) { "agent" } else { key.as_str() }
}

/// Formats the values of a group's keys.
fn key_cells(group: &Group, group_by: &[GroupKey], layout: &Layout) -> Vec<Cell> {
    let mut cells = Vec::new();
    for key in group_by {
        let value = group.group.get(key.as_str()).and_then(|value| value.as_str());
        cells.push(match value {
            Some(id) if *key == GroupKey::Session => Cell::new(ID, &layout.session_id(id)),
            Some(value) => Cell::new(STRONG, value),
            None => Cell::new(DIM, "(none)"),
        });
    }
    cells
}

/// Adds up what groups without common events have.
fn sum_groups(groups: &[Group]) -> Group {
    let mut all = Group::default();
    for group in groups {
        all.events += group.events;
        all.tool_calls += group.tool_calls;
        all.tool_results += group.tool_results;
        all.tool_errors += group.tool_errors;
        all.unpriced_tokens += group.unpriced_tokens;
        all.text_bytes += group.text_bytes;
        if let Some(tokens) = group.tokens {
            let sum = all.tokens.get_or_insert_default();
            sum.counted_once = sum.counted_once.plus(tokens.counted_once);
        }
        if let Some(cost) = group.cost_usd {
            *all.cost_usd.get_or_insert(0.0) += cost;
        }
    }
    if all.tool_results > 0 {
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = all.tool_errors as f64 / all.tool_results as f64;
        all.error_rate = Some(rate);
    }
    all
}

/// Appends a line with the sparkline of a value over time, if there are enough values for one. Of
/// more than fit into a line, the latest are shown.
fn push_trend(
    painted: &mut Painted,
    name: &str,
    layout: &Layout,
    groups: &[Group],
    value: fn(&Group) -> u64,
) {
    const NAME_WIDTH: usize = 8;
    let skipped = groups.len().saturating_sub(layout.width - NAME_WIDTH);
    let values: Vec<u64> = groups.iter().skip(skipped).map(value).collect();
    let line = sparkline(&values);
    if !line.is_empty() {
        painted.push(DIM, &format!("{name:<NAME_WIDTH$}")).push(PLAIN, &line);
        painted.end_line();
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

/// Appends the zone of the days, once.
fn push_zone(painted: &mut Painted, data: &StatsData) {
    if let Some(zone) = &data.timezone {
        let zone = zone.strip_prefix("Etc/").unwrap_or(zone);
        painted.push(DIM, &format!("times in {zone}"));
        painted.end_line();
    }
}

/// Appends what the costs marked with `*` leave out.
fn push_unpriced_note(painted: &mut Painted, groups: &[Group], layout: &Layout) {
    let unpriced: i64 = groups.iter().map(|group| group.unpriced_tokens).sum();
    if unpriced > 0 {
        let sum = format_count(unpriced.unsigned_abs());
        let note = format!("* excludes {sum} tokens of models without a known price");
        push_wrapped(painted, DIM, "", &note, layout.width, usize::MAX);
    }
}

/// Formats a number; empty if it is zero.
fn nonzero_cell(number: u64, layout: &Layout) -> String {
    if number == 0 { String::new() } else { layout.count(number) }
}

/// Formats a count of tokens; empty if the logs do not record any.
fn tokens_cell(group: &Group, count_tokens: fn(Usage) -> i64, layout: &Layout) -> String {
    let tokens = group.tokens.map(|tokens| count_tokens(tokens.counted_once));
    tokens.map(|count| layout.short_count(count)).unwrap_or_default()
}

fn total_cell(group: &Group, layout: &Layout) -> String {
    tokens_cell(group, |usage| usage.total(), layout)
}

fn output_cell(group: &Group, layout: &Layout) -> String {
    tokens_cell(group, |usage| usage.output.unwrap_or(0), layout)
}

/// Returns the number of tokens of a group; 0 if the logs do not record any.
fn total_tokens(group: &Group) -> u64 {
    group.tokens.map_or(0, |tokens| u64::try_from(tokens.counted_once.total()).unwrap_or(0))
}

/// Formats the cost, marked with `*` if it does not cover all tokens.
fn partial_cost(group: &Group, _: &Layout) -> String {
    let cost = group.cost_usd.map(format_dollars).unwrap_or_default();
    if group.unpriced_tokens > 0 { format!("{cost}*") } else { cost }
}

/// Names the models of a group: a few of them in short on a screen.
fn model_names(group: &Group, layout: &Layout) -> String {
    if layout.is_plain {
        return group.models.join(", ");
    }
    let shown = group.models.iter().take(MAX_MODELS);
    let names: Vec<&str> = shown.map(|name| name.strip_prefix("claude-").unwrap_or(name)).collect();
    let more = group.models.len().saturating_sub(MAX_MODELS);
    let names = names.join(", ");
    if more > 0 { format!("{names} +{more}") } else { names }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the height of a bar")]
fn to_cents(dollars: f64) -> u64 {
    (dollars * 100.0).max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_show_the_shape() {
        assert_eq!(sparkline(&[0, 1, 2, 4, 7]), "▁▂▃▅█");
        assert_eq!(sparkline(&[5]), "");
        assert_eq!(sparkline(&[0, 0]), "");
    }
}
