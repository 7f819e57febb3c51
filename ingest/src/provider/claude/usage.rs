//! Reads the token counts of model responses (docs/formats.md#claude-code). Every line of a response
//! repeats its usage:
//!
//! ```text
//! "usage":{"input_tokens":9,"output_tokens":7,"cache_read_input_tokens":5,"speed":"standard",
//!          "service_tier":"standard","inference_geo":"global",
//!          "server_tool_use":{"web_search_requests":0},
//!          "iterations":[{"type":"advisor_message","model":"...","input_tokens":3,...}]}
//! ```

use schemas::{EventType, Usage};

use super::ClaudeDecoder;
use super::response::{ApiMessage, ResponseLine, extra_request_id};
use crate::stream::{DecodedEvent, ModeWords, Stream, push_bounded};
use crate::text::json::{JsonFields, Value};

/// Maximum number of API messages that are remembered. The lines of one message are mostly close
/// together.
const MAX_API_MESSAGES: usize = 256;

/// Kinds of iterations whose tokens are in the counts of the response.
const INCLUDED_ITERATIONS: &[&str] = &["message", "fallback_message", "iteration"];

/// Kinds of iterations that are requests next to the response.
const EXTRA_ITERATIONS: &[&str] = &["advisor_message", "compaction"];

impl ClaudeDecoder {
    /// Returns whether the counts of a line are larger than those of earlier lines of its response.
    /// False if no earlier line is remembered.
    pub(super) fn has_larger_counts(&self, message: Value<'_>, known: Option<usize>) -> bool {
        let usage = message.object("usage").map(read_usage).unwrap_or_default();
        known.is_some_and(|at| usage.total() > self.state.messages[at].usage.total())
    }

    /// Pushes the token usage of a line. Every line of a request repeats its usage, and the largest
    /// record counts. An event holds only the increase over the lines before.
    pub(super) fn push_usage(&mut self, message: Value<'_>, line: ResponseLine, out: &mut Stream) {
        let counts = message.object("usage");
        let usage = counts.map(read_usage).unwrap_or_default();
        let before = line.known.map(|at| self.state.messages[at].usage).unwrap_or_default();
        let has_grown =
            !usage.is_unknown() && (line.known.is_none() || usage.total() > before.total());
        if has_grown {
            let decoded = DecodedEvent {
                usage: usage.minus(before),
                request_id: line.id.as_deref(),
                mode: counts.map(read_mode).unwrap_or_default(),
                ..DecodedEvent::default()
            };
            out.push_in_step(EventType::TokenUsage, line.step, decoded);
        }

        let mut extra = line.known.map(|at| self.state.messages[at].extra.clone());
        let extra_counts = extra.get_or_insert_default();
        if let Some(counts) = counts {
            push_extra_requests(message, counts, &line, extra_counts, out);
        }
        let extra = extra.unwrap_or_default();
        if let Some(at) = line.known {
            if has_grown {
                self.state.messages[at].usage = usage;
            }
            self.state.messages[at].extra = extra;
        } else if let Some(id) = line.id {
            push_bounded(
                &mut self.state.messages,
                MAX_API_MESSAGES,
                ApiMessage { id, step: line.step, usage, extra },
            );
        }
    }
}

/// Pushes the requests that were made next to a response, such as those of an advisor, which is
/// another model. `counted` holds what was counted of each before.
fn push_extra_requests(
    message: Value<'_>,
    counts: Value<'_>,
    line: &ResponseLine,
    counted: &mut Vec<Usage>,
    out: &mut Stream,
) {
    let mut position = 0;
    for iteration in counts.items("iterations") {
        let kind = iteration.text("type").unwrap_or("untyped");
        if !EXTRA_ITERATIONS.contains(&kind) {
            if !INCLUDED_ITERATIONS.contains(&kind) {
                out.count_unknown("iteration", kind);
            }
            continue;
        }

        let usage = read_usage(iteration);
        if counted.len() == position {
            counted.push(Usage::default());
        }
        let before = std::mem::replace(&mut counted[position], usage);
        position += 1;
        if usage.total() <= before.total() {
            counted[position - 1] = before;
            continue;
        }

        let id = line.id.as_deref().map(|id| extra_request_id(id, kind, position));
        let own = read_mode(iteration);
        let shared = read_mode(counts);
        let mode = ModeWords {
            service_tier: own.service_tier.or(shared.service_tier),
            inference_geo: own.inference_geo.or(shared.inference_geo),
            speed: own.speed,
        };
        let decoded = DecodedEvent {
            subtype: Some(kind),
            usage: usage.minus(before),
            request_id: id.as_deref(),
            mode,
            ..DecodedEvent::default()
        };
        out.set_model(iteration.text("model"));
        out.push_in_step(EventType::TokenUsage, line.step, decoded);
        out.set_model(message.text("model"));
    }
}

/// Reads the mode in which a request was served.
fn read_mode<'a>(usage: Value<'a>) -> ModeWords<'a> {
    ModeWords {
        service_tier: usage.non_empty("service_tier"),
        speed: usage.non_empty("speed"),
        inference_geo: usage.non_empty("inference_geo"),
    }
}

/// Parses the token counts of one line. Cache writes are the sum of the two lifetimes if those are
/// given.
fn read_usage(usage: Value<'_>) -> Usage {
    let lifetimes = usage.object("cache_creation");
    let five_minutes = lifetimes.and_then(|counts| counts.int("ephemeral_5m_input_tokens"));
    let one_hour = lifetimes.and_then(|counts| counts.int("ephemeral_1h_input_tokens"));
    let cache_write = match (five_minutes, one_hour) {
        (None, None) => usage.int("cache_creation_input_tokens"),
        _ => Some(five_minutes.unwrap_or(0) + one_hour.unwrap_or(0)),
    };
    let searches = usage.object("server_tool_use").and_then(|used| used.int("web_search_requests"));
    Usage {
        input: usage.int("input_tokens"),
        output: usage.int("output_tokens"),
        cache_read: usage.int("cache_read_input_tokens"),
        cache_write,
        cache_write_1h: one_hour,
        reasoning: usage.object("output_tokens_details").and_then(|d| d.int("thinking_tokens")),
        web_search: searches.filter(|searches| *searches > 0),
    }
}
