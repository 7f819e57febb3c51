//! Decodes Qwen Code's `ui_telemetry` records, three quarters of a log (docs/formats.md#qwen-code).
//! Most of their content is in other records too. The decoder keeps the rest: how long a tool or a
//! request took, the id of a response, who refused a call, and errors of the API.
//!
//! Telemetry precedes the record that it describes: that of a response precedes its `assistant`
//! record, that of the calls of a step precedes their `tool_result` records.

use std::collections::VecDeque;

use schemas::{Confidence, EventType, Usage};
use serde::{Deserialize, Serialize};

use crate::provider::format::RecordOutcome;
use crate::stream::{DecodedEvent, Stream, push_bounded};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

/// Maximum number of calls that are remembered until their results follow. One step seldom has more
/// than a dozen.
const MAX_CALLS: usize = 64;

/// Names of the token counts in `usageMetadata`: prompt, answer, cached, thoughts, results of
/// built-in tools, total.
pub(super) const METADATA_COUNTS: [&str; 6] = [
    "promptTokenCount",
    "candidatesTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "totalTokenCount",
];

/// Names of the same counts in telemetry.
const TELEMETRY_COUNTS: [&str; 6] = [
    "input_token_count",
    "output_token_count",
    "cached_content_token_count",
    "thoughts_token_count",
    "tool_token_count",
    "total_token_count",
];

/// Telemetry about records that have not been read yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct QwenTelemetry {
    tools: VecDeque<FinishedCall>,
    request: Option<AnsweredRequest>,
    /// Size of the last response whose tokens were counted.
    counted: Option<(i64, i64)>,
}

/// A call that ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FinishedCall {
    name: String,
    pub(super) duration_ms: Option<i64>,
    /// True if the user refused the call.
    pub(super) rejected: bool,
}

/// A request that was answered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct AnsweredRequest {
    pub(super) id: String,
    pub(super) duration_ms: Option<i64>,
    /// The model that answered, if the telemetry names it.
    #[serde(default)]
    model: Option<String>,
    usage: Usage,
}

impl QwenTelemetry {
    /// Decodes one telemetry event.
    pub(super) fn decode_event(&mut self, event: Value<'_>, out: &mut Stream) -> RecordOutcome {
        if event.field("error_message").is_some() {
            return push_api_error(event, out);
        }

        let is_subagent = event.non_empty("subagent_name").is_some();
        if let Some(name) = event.text("function_name") {
            if !is_subagent {
                self.remember_call(name, event);
            }
        } else if let Some(id) = event.text("response_id") {
            self.remember_request(id, event, is_subagent, out);
        }
        if out.pushed_count() > 0 {
            return RecordOutcome::Events;
        }
        RecordOutcome::Merged("telemetry")
    }

    fn remember_call(&mut self, name: &str, event: Value<'_>) {
        push_bounded(
            &mut self.tools,
            MAX_CALLS,
            FinishedCall {
                name: name.to_owned(),
                duration_ms: event.int("duration_ms"),
                rejected: event.text("decision") == Some("reject"),
            },
        );
    }

    /// Remembers an answered request until the record of its response follows.
    fn remember_request(
        &mut self,
        id: &str,
        event: Value<'_>,
        is_subagent: bool,
        out: &mut Stream,
    ) {
        let usage = read_usage(event, TELEMETRY_COUNTS);
        if self.counted.take() == Some(usage_size(usage)) {
            return;
        }

        let request = AnsweredRequest {
            id: id.to_owned(),
            duration_ms: event.int("duration_ms"),
            model: event.non_empty("model").map(str::to_owned),
            usage,
        };
        if is_subagent {
            // The log of the subagent has the counts, if there is one.
            if usage.total() > 0 {
                out.set_confidence(Confidence::Partial);
            }
        } else if let Some(uncounted) = self.request.replace(request) {
            push_own_request(&uncounted, out);
        }
    }

    /// Returns the request that gave a response with these counts, if telemetry reported it. A
    /// record without counts is the first part of a response, and a later record of that response
    /// has the counts.
    pub(super) fn take_request(
        &mut self,
        usage: Usage,
        out: &mut Stream,
    ) -> Option<AnsweredRequest> {
        self.tools.clear();
        if usage.is_unknown() {
            return None;
        }
        let Some(request) = self.request.take() else {
            self.counted = Some(usage_size(usage));
            return None;
        };
        if usage_size(request.usage) == usage_size(usage) {
            return Some(request);
        }
        if request.usage.total() > 0 {
            out.set_confidence(Confidence::Partial);
        }
        None
    }

    /// Returns whether a request was answered whose tokens no record has counted so far.
    pub(super) fn has_uncounted_request(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.usage.total() > 0)
    }

    /// Takes the telemetry about the call whose result is being decoded.
    pub(super) fn take_call(&mut self, name: Option<&str>) -> Option<FinishedCall> {
        let at = self.tools.iter().position(|tool| Some(tool.name.as_str()) == name)?;
        self.tools.remove(at)
    }
}

/// Pushes the tokens of a request that is in no `assistant` record, because the client itself made
/// it.
fn push_own_request(request: &AnsweredRequest, out: &mut Stream) {
    if request.usage.total() == 0 {
        return;
    }
    let decoded = DecodedEvent {
        subtype: Some("api_response"),
        usage: request.usage,
        request_id: Some(&request.id),
        ..DecodedEvent::default()
    };
    let before = out.session.model.clone();
    out.set_model(request.model.as_deref());
    out.push(EventType::TokenUsage, decoded);
    out.session.model = before.or(out.session.model.take());
}

/// Returns the counts by which two records of the same response are matched: input and output.
fn usage_size(usage: Usage) -> (i64, i64) {
    let input = usage.input.unwrap_or(0) + usage.cache_read.unwrap_or(0);
    (input, usage.output.unwrap_or(0))
}

/// Reads token counts with these names. The prompt includes cached tokens. Thoughts are included in
/// the answer if the model was reached by OpenAI's protocol, and come in addition to it if by
/// Gemini's. The total shows which.
pub(super) fn read_usage(object: Value<'_>, names: [&str; 6]) -> Usage {
    let [prompt, answer, cached, thoughts, tools, total] = names.map(|name| object.int(name));
    let answer_tokens = answer.unwrap_or(0);
    let thought_tokens = thoughts.unwrap_or(0);

    // Tokens of the total that are neither in the prompt nor in the answer.
    let mut unassigned = match total.filter(|total| *total > 0) {
        Some(total) => total - prompt.unwrap_or(0) - answer_tokens,
        None if thought_tokens > answer_tokens => thought_tokens,
        None => 0,
    };
    let added_thoughts = take_if_enough(thought_tokens, &mut unassigned);
    let added_tools = take_if_enough(tools.unwrap_or(0), &mut unassigned);

    Usage {
        input: prompt.map(|prompt| (prompt - cached.unwrap_or(0)).max(0) + added_tools),
        output: answer.map(|answer| answer + added_thoughts),
        cache_read: cached,
        reasoning: thoughts,
        ..Usage::default()
    }
}

/// Subtracts `count` from `available` and returns it. Returns 0 if less is available.
fn take_if_enough(count: i64, available: &mut i64) -> i64 {
    if count > *available {
        return 0;
    }
    *available -= count;
    count
}

/// Pushes a notification of a failed request, which leaves no other trace in the log.
fn push_api_error(event: Value<'_>, out: &mut Stream) -> RecordOutcome {
    let mut text = event.text("error_message").unwrap_or("").to_owned();
    for key in ["error_type", "status_code", "model"] {
        if let Some(value) = event.field(key) {
            text.push_str(&format!("\n{key}: "));
            render::append_value(value, &mut text);
        }
    }
    let decoded = DecodedEvent {
        subtype: Some("api_error"),
        text: &text,
        is_error: Some(true),
        duration_ms: event.int("duration_ms"),
        request_id: event.non_empty("response_id"),
        ..DecodedEvent::default()
    };
    out.push(EventType::Notification, decoded);
    RecordOutcome::Events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{LineItem, Parser};

    /// `counts`: prompt, answer, cached, thoughts, tools, total; `want`: input, output.
    fn check(counts: [i64; 6], want: (i64, i64)) {
        let pairs: Vec<_> = METADATA_COUNTS
            .iter()
            .zip(counts)
            .map(|(name, count)| format!("\"{name}\":{count}"))
            .collect();
        let json = format!("{{{}}}", pairs.join(","));
        Parser::default().for_each_item(json.as_bytes(), &mut |found| {
            let LineItem::Object(object, _) = found else { panic!("{json}") };
            let usage = read_usage(object, METADATA_COUNTS);
            assert_eq!((usage.input, usage.output), (Some(want.0), Some(want.1)), "{json}");
        });
    }

    #[test]
    fn the_total_tells_whether_thoughts_are_part_of_the_answer() {
        check([1000, 50, 400, 20, 0, 1050], (600, 50));
        check([1000, 50, 400, 20, 0, 1070], (600, 70));
        check([1000, 50, 0, 20, 5, 1075], (1005, 70));
        check([1000, 50, 0, 20, 5, 1050], (1000, 50));
        check([1000, 20, 0, 80, 0, 0], (1000, 100));
    }
}
