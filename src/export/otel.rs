//! Writes a session as spans in OTLP's JSON, with the names of OpenTelemetry's semantic conventions for
//! generative AI (<https://opentelemetry.io/docs/specs/semconv/gen-ai/>), from its trajectory.
//!
//! ```text
//! invoke_agent claude            the session, or a subagent
//!   chat claude-opus-4-6         a response, with its tokens
//!   execute_tool Bash            a call and its result
//! ```
//!
//! A line is one `TracesData`. Copied history is left out: it is in the trace of its session.

use schemas::{Timestamp, ToolError};
use serde_json::{Value, json};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::atif::model::{Metrics, Step, StepSource, ToolCall, ToolResult, Trajectory};
use tools::encoding_error;

/// `SPAN_KIND_INTERNAL` and `SPAN_KIND_CLIENT`.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;

/// `STATUS_CODE_ERROR`.
const ERROR: u8 = 2;

/// The makers of models as the conventions name them, by the beginnings of the names of models.
const MAKERS: &[(&str, &str)] = &[
    ("claude", "anthropic"),
    ("gpt", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("codex", "openai"),
    ("gemini", "gcp.gemini"),
    ("grok", "x_ai"),
    ("mistral", "mistral_ai"),
    ("deepseek", "deepseek"),
];

/// Returns a session as one line.
pub(super) fn format_line(trajectory: &Trajectory, has_content: bool) -> Result<String, ToolError> {
    let top = trajectory.extra.parent_session_id.as_deref();
    let is_subagent = trajectory.extra.relation.as_deref() == Some("subagent_of");
    let parent = top.filter(|_| is_subagent);
    let mut spans = SpanWriter {
        trace_id: format!(
            "{:032x}",
            xxh3_128(parent.unwrap_or(&trajectory.trajectory_id).as_bytes()).max(1)
        ),
        conversation_id: &trajectory.trajectory_id,
        has_content,
        spans: Vec::new(),
    };
    spans.append_agent(trajectory, parent.map(span_id), 0);
    let agent = &trajectory.agent;
    let data = json!({ "resourceSpans": [{
        "resource": { "attributes": [
            text("service.name", &agent.name),
            text("service.version", &agent.version),
        ] },
        "scopeSpans": [{
            "scope": { "name": "sessions", "version": env!("CARGO_PKG_VERSION") },
            "spans": spans.spans,
        }],
    }] });
    let mut line = serde_json::to_string(&data).map_err(encoding_error)?;
    line.push('\n');
    Ok(line)
}

/// Returns the id of a span, by what it is the span of.
fn span_id(name: &str) -> String {
    format!("{:016x}", xxh3_64(name.as_bytes()).max(1))
}

/// The spans of one session.
struct SpanWriter<'t> {
    trace_id: String,
    conversation_id: &'t str,
    has_content: bool,
    spans: Vec<Value>,
}

/// A span whose attributes are still collected.
struct NewSpan {
    id: String,
    parent: Option<String>,
    name: String,
    kind: u8,
    /// In microseconds since the epoch.
    start: i64,
    end: i64,
    has_failed: bool,
    attributes: Vec<Value>,
}

impl SpanWriter<'_> {
    /// Appends the span of an agent and those of its responses, calls and subagents. Steps without a time
    /// get that of the session, or else `began`, when the agent of the span `parent` began.
    fn append_agent(&mut self, trajectory: &Trajectory, parent: Option<String>, began: i64) {
        let id = span_id(&trajectory.trajectory_id);
        let times = trajectory.steps.iter().filter_map(|step| micros(step.timestamp.as_deref()));
        let began = micros(trajectory.extra.started_at.as_deref()).unwrap_or(began);
        let first = times.clone().min().unwrap_or(began);
        let mut last = times.max().unwrap_or(began);
        let mut before = first;
        // What the next response answers.
        let mut input = Vec::new();
        for step in trajectory.steps.iter().filter(|step| !step.is_copied_context) {
            let start = micros(step.timestamp.as_deref()).unwrap_or(before);
            if step.source == StepSource::Agent {
                self.append_response(trajectory, step, before.min(start), &input, &id);
                input.clear();
            } else {
                input.push(message_of(step));
            }
            let end = self.append_calls(trajectory, step, start, &id, &mut input);
            before = end;
            last = last.max(end);
        }

        let agent = &trajectory.agent;
        let metrics = &trajectory.final_metrics;
        let mut attributes = self.common("invoke_agent", trajectory, agent.model_name.as_deref());
        attributes.push(text("gen_ai.agent.name", &agent.name));
        attributes.push(text("gen_ai.agent.version", &agent.version));
        if let Some(agent_id) = &trajectory.extra.agent_id {
            attributes.push(text("gen_ai.agent.id", agent_id));
        }
        attributes.extend(count("gen_ai.usage.input_tokens", metrics.total_prompt_tokens));
        attributes.extend(count("gen_ai.usage.output_tokens", metrics.total_completion_tokens));
        self.push(NewSpan {
            id: id.clone(),
            parent,
            name: format!("invoke_agent {}", agent.name),
            kind: INTERNAL,
            start: first,
            end: last,
            has_failed: false,
            attributes,
        });
        for subagent in &trajectory.subagent_trajectories {
            self.append_agent(subagent, Some(id.clone()), first);
        }
    }

    /// Appends the span of a response. `start` is when its model could begin.
    fn append_response(
        &mut self,
        trajectory: &Trajectory,
        step: &Step,
        start: i64,
        input: &[Value],
        parent: &str,
    ) {
        let model = step.model_name.as_deref();
        let mut attributes = self.common("chat", trajectory, model);
        if let Some(model) = model {
            attributes.push(text("gen_ai.response.model", model));
        }
        let mut requests = step.extra.events.iter().filter_map(|event| event.request_id.as_ref());
        if let Some(request) = requests.next_back() {
            attributes.push(text("gen_ai.response.id", request));
        }
        attributes.extend(step.metrics.iter().flat_map(count_tokens));
        if self.has_content {
            let output = json!([message_of(step)]);
            attributes.push(text("gen_ai.input.messages", &json!(input).to_string()));
            attributes.push(text("gen_ai.output.messages", &output.to_string()));
        }
        self.push(NewSpan {
            id: span_id(&format!("{}#{}", trajectory.trajectory_id, step.step_id)),
            parent: Some(parent.to_owned()),
            name: name_with("chat", model),
            kind: CLIENT,
            start,
            end: micros(step.timestamp.as_deref()).unwrap_or(start),
            has_failed: false,
            attributes,
        });
    }

    /// Appends the spans of the calls of a step that began at `start`, and their results to the input of
    /// the next response. Returns the time of the last result.
    fn append_calls(
        &mut self,
        trajectory: &Trajectory,
        step: &Step,
        start: i64,
        parent: &str,
        input: &mut Vec<Value>,
    ) -> i64 {
        let results: &[ToolResult] = step.observation.as_ref().map_or(&[], |seen| &seen.results);
        let mut last = start;
        for (at, call) in step.tool_calls.iter().enumerate() {
            let id = Some(&call.tool_call_id);
            let result = results.iter().find(|result| result.source_call_id.as_ref() == id);
            let extra = result.and_then(|result| result.extra.as_ref());
            let end = extra.and_then(|extra| micros(extra.timestamp.as_deref())).unwrap_or(start);
            let duration = extra.and_then(|extra| extra.duration_ms).unwrap_or(end - start);
            let has_failed = extra.is_some_and(|extra| match extra.is_error {
                Some(is_error) => is_error,
                None => extra.exit_code.is_some_and(|code| code != 0),
            });
            let mut attributes = self.call_attributes(trajectory, call);
            if has_failed {
                attributes.push(text("error.type", "tool_error"));
            }
            if let Some(result) = result.filter(|_| self.has_content) {
                attributes.push(text("gen_ai.tool.call.result", &result.content));
            }
            let began = end.saturating_sub(duration.saturating_mul(1000)).max(start).min(end);
            self.push(NewSpan {
                id: span_id(&format!("{}#{}#{at}", trajectory.trajectory_id, step.step_id)),
                parent: Some(parent.to_owned()),
                name: name_with("execute_tool", Some(&call.function_name)),
                kind: INTERNAL,
                start: began,
                end,
                has_failed,
                attributes,
            });
            last = last.max(end);
        }
        for result in results {
            input.push(json!({ "role": "tool", "parts": [{
                "type": "tool_call_response",
                "id": result.source_call_id,
                "response": result.content,
            }] }));
        }
        last
    }

    fn call_attributes(&self, trajectory: &Trajectory, call: &ToolCall) -> Vec<Value> {
        let mut attributes = self.common("execute_tool", trajectory, None);
        attributes.push(text("gen_ai.tool.name", &call.function_name));
        attributes.push(text("gen_ai.tool.call.id", &call.tool_call_id));
        if self.has_content {
            attributes.push(text("gen_ai.tool.call.arguments", &call.arguments.to_string()));
        }
        attributes
    }

    /// Returns the attributes that all spans have.
    fn common(&self, operation: &str, trajectory: &Trajectory, model: Option<&str>) -> Vec<Value> {
        let known = model.or(trajectory.agent.model_name.as_deref());
        let mut attributes = vec![
            text("gen_ai.operation.name", operation),
            text("gen_ai.provider.name", maker_of(known).unwrap_or(&trajectory.agent.name)),
            text("gen_ai.conversation.id", self.conversation_id),
        ];
        attributes.extend(model.map(|model| text("gen_ai.request.model", model)));
        attributes
    }

    fn push(&mut self, new_span: NewSpan) {
        let mut span = json!({
            "traceId": self.trace_id,
            "spanId": new_span.id,
            "name": new_span.name,
            "kind": new_span.kind,
            "attributes": new_span.attributes,
        });
        // Zero is a time that is not known, not one in 1970.
        if new_span.start > 0 {
            span["startTimeUnixNano"] = json!(nanos(new_span.start));
            span["endTimeUnixNano"] = json!(nanos(new_span.end.max(new_span.start)));
        }
        if let Some(parent) = new_span.parent {
            span["parentSpanId"] = json!(parent);
        }
        if new_span.has_failed {
            span["status"] = json!({ "code": ERROR });
        }
        self.spans.push(span);
    }
}

/// Returns the name of a span: the operation, and what it is about if that is known.
fn name_with(operation: &str, target: Option<&str>) -> String {
    target.map_or_else(|| operation.to_owned(), |target| format!("{operation} {target}"))
}

/// Returns the maker of a model as the conventions name it.
fn maker_of(model: Option<&str>) -> Option<&'static str> {
    let model = model?.rsplit('/').next()?;
    MAKERS.iter().find(|(start, _)| model.starts_with(start)).map(|(_, maker)| *maker)
}

/// Returns a step as a message of the conventions.
fn message_of(step: &Step) -> Value {
    let role = match step.source {
        StepSource::System => "system",
        StepSource::User => "user",
        StepSource::Agent => "assistant",
    };
    let mut parts = Vec::new();
    if let Some(reasoning) = &step.reasoning_content {
        parts.push(json!({ "type": "reasoning", "content": reasoning }));
    }
    if !step.message.is_empty() {
        parts.push(json!({ "type": "text", "content": step.message }));
    }
    for call in &step.tool_calls {
        parts.push(json!({
            "type": "tool_call",
            "id": call.tool_call_id,
            "name": call.function_name,
            "arguments": call.arguments,
        }));
    }
    let mut message = json!({ "role": role, "parts": parts });
    if step.source == StepSource::Agent {
        let reason = if step.tool_calls.is_empty() { "stop" } else { "tool_call" };
        message["finish_reason"] = json!(reason);
    }
    message
}

/// Returns the attributes for the tokens of a response.
fn count_tokens(metrics: &Metrics) -> Vec<Value> {
    let written = metrics.extra.as_ref().and_then(|extra| extra.cache_write_tokens);
    let counts = [
        count("gen_ai.usage.input_tokens", metrics.prompt_tokens),
        count("gen_ai.usage.output_tokens", metrics.completion_tokens),
        count("gen_ai.usage.cache_read.input_tokens", metrics.cached_tokens),
        count("gen_ai.usage.cache_creation.input_tokens", written),
    ];
    counts.into_iter().flatten().collect()
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// Returns the attribute of a count, if it is known. OTLP writes whole numbers as text.
fn count(key: &str, value: Option<i64>) -> Option<Value> {
    let value = value?;
    Some(json!({ "key": key, "value": { "intValue": value.to_string() } }))
}

fn micros(time: Option<&str>) -> Option<i64> {
    Timestamp::parse(time?).map(|time| time.0)
}

/// Returns a time in nanoseconds since the epoch as OTLP writes it. A time before the epoch is 0.
fn nanos(micros: i64) -> String {
    (i128::from(micros.max(0)) * 1000).to_string()
}
