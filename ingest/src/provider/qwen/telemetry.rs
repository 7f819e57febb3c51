//! Decodes Qwen Code's `ui_telemetry` records, three quarters of a log (docs/formats.md#qwen-code).
//! Most of their content is in other records too. The decoder keeps the rest: how long a tool or a
//! request took, the id of a response, who refused a call, and errors of the API.
//!
//! Telemetry precedes the record that it describes: a response precedes its `assistant` record, the
//! calls of a step precede their `tool_result` records.

use std::collections::VecDeque;

use schemas::{Confidence, EventType, Usage};
use serde::{Deserialize, Serialize};

use crate::provider::format::Outcome;
use crate::stream::{Draft, Stream};
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Most calls remembered until their results come. One step seldom has more than a dozen.
const TOOLS: usize = 64;

/// Names of the token counts in `usageMetadata`: prompt, answer, cached, thoughts, results of
/// built-in tools, total.
pub(super) const METADATA: [&str; 6] = [
    "promptTokenCount",
    "candidatesTokenCount",
    "cachedContentTokenCount",
    "thoughtsTokenCount",
    "toolUsePromptTokenCount",
    "totalTokenCount",
];

/// Names of the same counts in telemetry.
const TELEMETRY: [&str; 6] = [
    "input_token_count",
    "output_token_count",
    "cached_content_token_count",
    "thoughts_token_count",
    "tool_token_count",
    "total_token_count",
];

/// Telemetry about records that have not been read yet.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Telemetry {
    tools: VecDeque<Tool>,
    request: Option<Request>,
    /// Size of the last response whose tokens were counted.
    counted: Option<(i64, i64)>,
}

/// A call that ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tool {
    name: String,
    pub(super) duration_ms: Option<i64>,
    /// True if the user refused the call.
    pub(super) rejected: bool,
}

/// A request that was answered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Request {
    pub(super) id: String,
    pub(super) duration_ms: Option<i64>,
    usage: Usage,
}

impl Telemetry {
    /// Decodes one telemetry event.
    pub(super) fn event(&mut self, event: Value<'_>, out: &mut Stream) -> Outcome {
        let of_subagent = event.non_empty("subagent_name").is_some();
        if event.field("error_message").is_some() {
            return api_error(event, out);
        }
        if let Some(name) = event.text("function_name") {
            if !of_subagent {
                if self.tools.len() == TOOLS {
                    self.tools.pop_front();
                }
                self.tools.push_back(Tool {
                    name: name.to_owned(),
                    duration_ms: event.int("duration_ms"),
                    rejected: event.text("decision") == Some("reject"),
                });
            }
        } else if let Some(id) = event.text("response_id") {
            self.answered(id, event, of_subagent, out);
        }
        Outcome::Merged("telemetry")
    }

    fn answered(&mut self, id: &str, event: Value<'_>, of_subagent: bool, out: &mut Stream) {
        let usage = usage(event, TELEMETRY);
        if self.counted.take() == Some(size(usage)) {
            return;
        }
        let request = Request { id: id.to_owned(), duration_ms: event.int("duration_ms"), usage };
        // Requests of subagents and of the client itself are in no `assistant` record of this log.
        let uncounted = if of_subagent { Some(request) } else { self.request.replace(request) };
        if uncounted.is_some_and(|request| request.usage.total() > 0) {
            out.set_confidence(Confidence::Partial);
        }
    }

    /// Returns the request that gave a response with these counts. A record without counts is the
    /// first part of a response, and a later record of that response has the counts.
    pub(super) fn response(&mut self, usage: Usage, out: &mut Stream) -> Option<Request> {
        self.tools.clear();
        if usage.is_unknown() {
            return None;
        }
        let request = self.request.take();
        if request.is_none() {
            self.counted = Some(size(usage));
        }
        let (same, other) = match request {
            Some(request) if size(request.usage) == size(usage) => (Some(request), None),
            request => (None, request),
        };
        if other.is_some_and(|request| request.usage.total() > 0) {
            out.set_confidence(Confidence::Partial);
        }
        same
    }

    /// Takes the telemetry about the call whose result is being decoded.
    pub(super) fn tool(&mut self, name: Option<&str>) -> Option<Tool> {
        let at = self.tools.iter().position(|tool| Some(tool.name.as_str()) == name)?;
        self.tools.remove(at)
    }
}

/// Returns the counts by which two records of the same response are matched.
fn size(usage: Usage) -> (i64, i64) {
    let count = |count: Option<i64>| count.unwrap_or(0);
    (count(usage.input) + count(usage.cache_read), count(usage.output))
}

/// Reads token counts. The prompt includes cached tokens. Thoughts are included in the answer if
/// the model was reached by OpenAI's protocol, and added to it if by Gemini's; the total shows
/// which.
pub(super) fn usage(object: Value<'_>, names: [&str; 6]) -> Usage {
    let [prompt, answer, cached, thoughts, tools, total] = names.map(|name| object.int(name));
    let said = |count: Option<i64>| count.unwrap_or(0);
    let mut beside = match total.filter(|total| *total > 0) {
        Some(total) => total - said(prompt) - said(answer),
        None if said(thoughts) > said(answer) => said(thoughts),
        None => 0,
    };
    let mut take = |count: Option<i64>| {
        let part = said(count);
        if part > beside {
            return 0;
        }
        beside -= part;
        part
    };
    let thoughts_beside = take(thoughts);
    let tools_beside = take(tools);
    Usage {
        input: prompt.map(|prompt| (prompt - said(cached)).max(0) + tools_beside),
        output: answer.map(|answer| answer + thoughts_beside),
        cache_read: cached,
        reasoning: thoughts,
        ..Usage::default()
    }
}

/// Appends a notification of a failed request, which leaves no other trace in the log.
fn api_error(event: Value<'_>, out: &mut Stream) -> Outcome {
    let mut text = event.text("error_message").unwrap_or("").to_owned();
    for key in ["error_type", "status_code", "model"] {
        if let Some(value) = event.field(key) {
            text.push_str(&format!("\n{key}: "));
            render::value(value, &mut text);
        }
    }
    let draft = Draft {
        subtype: Some("api_error"),
        text: &text,
        is_error: Some(true),
        duration_ms: event.int("duration_ms"),
        request_id: event.non_empty("response_id"),
        ..Draft::default()
    };
    out.push(EventType::Notification, draft);
    Outcome::Events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Found, Parser};

    /// `counts`: prompt, answer, cached, thoughts, tools, total; `want`: input, output.
    fn check(counts: [i64; 6], want: (i64, i64)) {
        let pairs: Vec<_> = METADATA
            .iter()
            .zip(counts)
            .map(|(name, count)| format!("\"{name}\":{count}"))
            .collect();
        let json = format!("{{{}}}", pairs.join(","));
        Parser::default().each(json.as_bytes(), &mut |found| {
            let Found::Object(object, _) = found else { panic!("{json}") };
            let usage = usage(object, METADATA);
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
