//! The values of a group of events that tables show, and the sums over groups.

use schemas::tool::stats::{Group, GroupKey};

use super::numbers::format_count;

/// Returns the heading of the column of a key.
pub(super) const fn key_heading(key: GroupKey) -> &'static str {
    if matches!(key, GroupKey::Provider) { "agent" } else { key.as_str() }
}

/// Describes the tokens that the costs marked with `*` leave out.
pub(super) fn unpriced_note(tokens: i64) -> String {
    let sum = format_count(u64::try_from(tokens).unwrap_or(0));
    format!("* excludes {sum} tokens of models without a known price")
}

/// Adds up what groups without common events have.
pub(super) fn sum_groups(groups: &[Group]) -> Group {
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

pub(super) fn input_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.input).unwrap_or(0)
}

pub(super) fn output_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.output).unwrap_or(0)
}

pub(super) fn cache_read_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.cache_read).unwrap_or(0)
}

pub(super) fn cache_write_tokens(group: &Group) -> i64 {
    group.tokens.and_then(|tokens| tokens.counted_once.cache_write).unwrap_or(0)
}

pub(super) fn total_tokens(group: &Group) -> i64 {
    group.tokens.map_or(0, |tokens| tokens.counted_once.total())
}

pub(super) fn total_tokens_or_zero(group: &Group) -> u64 {
    u64::try_from(total_tokens(group)).unwrap_or(0)
}

/// Formats a count; empty if it is zero.
pub(super) fn format_nonzero(number: u64) -> String {
    if number == 0 { String::new() } else { format_count(number) }
}

pub(super) fn format_percent(rate: f64) -> String {
    format!("{:.1} %", rate * 100.0)
}

/// Draws bars as high as the values; empty for fewer than two values.
pub(super) fn sparkline(values: &[u64]) -> String {
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
    fn sparklines_show_the_shape() {
        assert_eq!(sparkline(&[0, 1, 2, 4, 7]), "▁▂▃▅█");
        assert_eq!(sparkline(&[5]), "");
        assert_eq!(sparkline(&[0, 0]), "");
    }
}
