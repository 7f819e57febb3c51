//! Reads token counts, which producers of trajectories count differently (docs/formats.md#atif).

use schemas::{EventType, Usage};
use serde_json::Value as Json;

use super::part::Part;
use crate::provider::shared::document::RecordSpan;

/// Fields of `extra` with the tokens written to a cache that are a part of the prompt.
const WRITES_INSIDE: &[&str] = &["cache_creation_input_tokens", "cache_write_input_tokens"];

/// The field of `extra` with the tokens written to a cache, which some agents count apart from the
/// prompt.
const WRITES: &str = "cache_write_tokens";

/// Agents whose tokens written to a cache are not a part of the prompt.
const WRITES_OUTSIDE_AGENTS: &[&str] = &["openclaw", "opencode"];

/// Agents whose reasoning is not a part of the output.
const REASONING_OUTSIDE_AGENTS: &[&str] = &["opencode"];

/// A count beyond this is not one.
const MAX_COUNT: i64 = 1 << 40;

/// Reads the counts of a step of an agent. `is_exported` is true if `sessions` wrote them.
pub(super) fn read_usage(metrics: &Json, agent: &str, is_exported: bool) -> Usage {
    let extra = &metrics["extra"];
    let inside = WRITES_INSIDE.iter().find_map(|key| read_count(&extra[*key]));
    let other = read_count(&extra[WRITES]);
    let is_outside = !is_exported && WRITES_OUTSIDE_AGENTS.contains(&agent);
    let cache_write = inside.or(other);
    let written_in_prompt = if inside.is_none() && is_outside { None } else { cache_write };

    let cache_read = read_count(&metrics["cached_tokens"]);
    let prompt = read_count(&metrics["prompt_tokens"]);
    let cached = cache_read.unwrap_or(0) + written_in_prompt.unwrap_or(0);
    let reasoning = ["reasoning_tokens", "reasoning_output_tokens"]
        .iter()
        .find_map(|key| read_count(&extra[*key]));
    let mut output = read_count(&metrics["completion_tokens"]);
    if !is_exported && REASONING_OUTSIDE_AGENTS.contains(&agent) {
        output = output.map(|output| output + reasoning.unwrap_or(0));
    }
    Usage {
        input: prompt.map(|prompt| (prompt - cached).max(0)),
        output,
        cache_read,
        cache_write,
        cache_write_1h: read_count(&extra["cache_write_1h_tokens"]),
        reasoning,
        web_search: read_count(&extra["web_search_requests"]),
    }
}

/// Reads the sums of a trajectory whose steps have no counts. `None` if there are none. `counted` are
/// the tokens of its subagents, which its sums include.
pub(super) fn read_total(total: &Json, whole: RecordSpan, counted: Usage) -> Option<Part> {
    let prompt = read_count(&total["total_prompt_tokens"]);
    let cache_read = read_count(&total["total_cached_tokens"]);
    let input = prompt.map(|prompt| (prompt - cache_read.unwrap_or(0)).max(0));
    let rest = |count: Option<i64>, counted: Option<i64>| {
        count.map(|count| (count - counted.unwrap_or(0)).max(0))
    };
    let usage = Usage {
        input: rest(input, counted.input),
        output: rest(read_count(&total["total_completion_tokens"]), counted.output),
        cache_read: rest(cache_read, counted.cache_read),
        ..Usage::default()
    };
    let cost = read_cost(&total["total_cost_usd"]);
    (!usage.is_unknown() || cost.is_some()).then(|| Part {
        usage,
        cost,
        ..Part::new(EventType::TokenUsage, whole)
    })
}

/// Reads a cost in US dollars. Producers write 0 where they know no price.
pub(super) fn read_cost(value: &Json) -> Option<f64> {
    value.as_f64().filter(|cost| *cost > 0.0 && *cost < 1e6)
}

/// Reads a count. Some producers write whole numbers as `1000.0`.
fn read_count(value: &Json) -> Option<i64> {
    let whole = || value.as_f64().filter(|count| count.fract() == 0.0 && count.abs() < 1e15);
    let count = value.as_i64().or_else(|| whole().map(|count| count as i64));
    count.filter(|count| (0..=MAX_COUNT).contains(count))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tokens(agent: &str, metrics: &Json) -> [Option<i64>; 4] {
        let usage = read_usage(metrics, agent, false);
        [usage.input, usage.output, usage.cache_read, usage.cache_write]
    }

    #[test]
    fn agents_count_the_cache_in_their_own_way() {
        let counts = |extra: Json| json!({ "prompt_tokens": 100, "cached_tokens": 60, "completion_tokens": 9, "extra": extra });
        let claude = counts(json!({ "cache_creation_input_tokens": 30 }));
        assert_eq!(tokens("claude-code", &claude), [Some(10), Some(9), Some(60), Some(30)]);
        let opencode = counts(json!({ "cache_write_tokens": 30, "reasoning_tokens": 5 }));
        assert_eq!(tokens("opencode", &opencode), [Some(40), Some(14), Some(60), Some(30)]);
        let none =
            json!({ "prompt_tokens": "100", "cached_tokens": -1, "completion_tokens": null });
        assert_eq!(tokens("x", &none), [None; 4]);
    }
}
