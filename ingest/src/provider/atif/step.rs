//! Reads the steps of a trajectory into parts.
//!
//! ```text
//! {"step_id":2,"timestamp":"...","source":"agent","model_name":"...","message":"Found it.",
//!  "reasoning_content":"...","tool_calls":[{"tool_call_id":"c1","function_name":"Bash","arguments":{}}],
//!  "observation":{"results":[{"source_call_id":"c1","content":"..."}]},
//!  "metrics":{"prompt_tokens":120,"completion_tokens":9},"is_copied_context":true}
//! ```

use std::collections::VecDeque;

use schemas::{EventType, Usage};
use serde::Deserialize as _;
use serde_json::Value as Json;

use super::known::count_unknown_step;
use super::metrics::{read_cost, read_usage};
use super::part::Part;
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::document::RecordSpan;
use crate::provider::shared::machine_text::{MachineText, find_machine_text};
use crate::provider::{claude, codex, qwen};
use crate::stream::{Stream, parse_micros};
use crate::text::json::{LineItem, Parser};

/// What joins the texts of a step that `sessions` wrote.
const SEPARATOR: &str = "\n\n";

/// What all steps of a trajectory share.
pub(super) struct TrajectoryFacts {
    agent: String,
    /// As [`Part::sidechain`].
    pub(super) sidechain: Option<Option<String>>,
    machine_texts: &'static [MachineText],
}

impl TrajectoryFacts {
    /// Returns the facts of a trajectory of this agent. `sidechain` is set for a subagent, with its id
    /// if that is known.
    pub(super) fn of_agent(agent: &Json, sidechain: Option<Option<&str>>) -> Self {
        let agent = agent["name"].as_str().unwrap_or("");
        let machine_texts = match agent {
            "claude-code" | "claude" => claude::FORMAT.quirks.machine_texts,
            "codex" => codex::FORMAT.quirks.machine_texts,
            "qwen-coder" | "qwen-code" | "qwen" => qwen::FORMAT.quirks.machine_texts,
            _ => &[],
        };
        let sidechain = sidechain.map(|id| id.map(str::to_owned));
        Self { agent: agent.to_owned(), sidechain, machine_texts }
    }
}

/// Reads the steps of the trajectories of one document.
#[derive(Default)]
pub(super) struct StepReader {
    parser: Parser,
    /// The number of the present trajectory. A part of a session has the number of the session.
    trajectory: usize,
    /// The number of trajectories so far.
    trajectories: usize,
    /// The number of steps so far, which number the responses of other documents.
    steps: i64,
}

impl StepReader {
    /// Begins an embedded trajectory. `is_own` is true if it is a part of the session.
    pub(super) fn begin_trajectory(&mut self, is_own: bool) {
        if !is_own {
            self.trajectories += 1;
            self.trajectory = self.trajectories;
        }
    }

    /// Appends the parts of a step.
    pub(super) fn read_step(
        &mut self,
        step: &Json,
        span: RecordSpan,
        facts: &TrajectoryFacts,
        parts: &mut Vec<Part>,
        out: &mut Stream,
    ) {
        self.steps += 1;
        count_unknown_step(step, out);
        let mut contents = self.read_contents(step, span, facts);
        let events = step["extra"]["events"].as_array();
        if let Some(events) = events
            && let Some(exported) = self.match_events(events, step, &contents, span, facts)
        {
            parts.extend(exported);
            return;
        }
        self.begin_foreign_step(step, facts, &mut contents);
        parts.append(&mut contents);
    }

    /// Appends the counts that belong to no response of a document that `sessions` wrote.
    pub(super) fn read_outside_events(
        &mut self,
        extra: &Json,
        whole: RecordSpan,
        facts: &TrajectoryFacts,
        parts: &mut Vec<Part>,
    ) {
        for event in extra["events"].as_array().into_iter().flatten() {
            let mut part = Part::new(EventType::TokenUsage, whole);
            part.content = Some(event.to_string().into());
            part.sidechain.clone_from(&facts.sidechain);
            self.read_event(event, &Json::Null, &mut part);
            if part.event_index.is_some() {
                parts.push(part);
            }
        }
    }

    /// Returns the parts of a step in the order in which another program means them.
    fn read_contents(
        &mut self,
        step: &Json,
        span: RecordSpan,
        facts: &TrajectoryFacts,
    ) -> Vec<Part> {
        let time = parse_micros(step["timestamp"].as_str());
        let is_copied = step["is_copied_context"].as_bool() == Some(true);
        let extra = &step["extra"];
        let new = |kind: EventType| Part {
            time,
            is_copied,
            sidechain: facts.sidechain.clone(),
            ..Part::new(kind, span)
        };
        let mut parts = Vec::new();
        let message = content_text(&step["message"]);
        if let Some(text) = step["reasoning_content"].as_str() {
            parts.push(Part { text: text.to_owned(), ..new(EventType::Reasoning) });
        }
        match step["source"].as_str() {
            Some("agent") => parts.push(Part { text: message, ..new(EventType::Message) }),
            Some("user") => parts.push(Part { text: message, ..new(EventType::User) }),
            source => {
                let subtype = extra["subtype"].as_str().or(source).unwrap_or("system");
                let is_error = extra["is_error"].as_bool();
                let subtype = Some(subtype.to_owned());
                parts.push(Part {
                    text: message,
                    subtype,
                    is_error,
                    ..new(EventType::Notification)
                });
            }
        }

        for call in step["tool_calls"].as_array().into_iter().flatten() {
            let mut part = new(EventType::ToolCall);
            part.tool_name = call["function_name"].as_str().map(str::to_owned);
            part.tool_call_id = call["tool_call_id"].as_str().map(str::to_owned);
            let arguments = self.read_arguments(&call["arguments"]);
            let decoded = arguments.decoded();
            part.text = decoded.text.to_owned();
            part.files = decoded.files.to_vec();
            part.command = decoded.command.to_owned();
            parts.push(part);
        }
        let metrics = &step["metrics"];
        let usage = read_usage(metrics, &facts.agent, false);
        if !usage.is_unknown() {
            let cost = read_cost(&metrics["cost_usd"]);
            parts.push(Part { usage, cost, ..new(EventType::TokenUsage) });
        }
        for result in step["observation"]["results"].as_array().into_iter().flatten() {
            let extra = &result["extra"];
            let mut part = new(EventType::ToolResult);
            part.text = content_text(&result["content"]);
            part.tool_call_id = result["source_call_id"].as_str().map(str::to_owned);
            part.is_error = read_failure(extra);
            part.exit_code = extra["exit_code"].as_i64().and_then(|code| i32::try_from(code).ok());
            part.duration_ms = extra["duration_ms"].as_i64().filter(|ms| *ms >= 0);
            // The time of the step is that of its calls, so it says nothing about their duration.
            part.time = parse_micros(extra["timestamp"].as_str());
            for subagent in result["subagent_trajectory_ref"].as_array().into_iter().flatten() {
                part.spawned_agent_id = part.spawned_agent_id.or_else(|| name_subagent(subagent));
                part.subagents.extend(subagent["trajectory_id"].as_str().map(str::to_owned));
            }
            parts.push(part);
        }
        parts
    }

    fn read_arguments(&mut self, arguments: &Json) -> Arguments {
        let mut read = Arguments::default();
        match arguments {
            Json::Object(_) => {
                let json = arguments.to_string();
                self.parser.for_each_item(json.as_bytes(), &mut |item| {
                    if let LineItem::Object(object, _) = item {
                        read.read_value(object);
                    }
                });
            }
            Json::String(text) => read.read_plain_text(text),
            Json::Array(_) => read.read_plain_text(&arguments.to_string()),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
        read
    }

    /// Completes the parts of a step that another program wrote.
    fn begin_foreign_step(&self, step: &Json, facts: &TrajectoryFacts, parts: &mut Vec<Part>) {
        let model = step["model_name"].as_str();
        // Without a call of a model, as when an orchestrator starts a subagent.
        let is_response = step["source"] == "agent" && step["llm_call_count"] != 0;
        parts.retain(|part| part.kind != EventType::Message || !part.text.trim().is_empty());
        parts.retain(|part| {
            !matches!(part.kind, EventType::User | EventType::Notification | EventType::Reasoning)
                || !part.text.is_empty()
        });
        for part in parts {
            if is_response {
                part.response = Some((self.trajectory, self.steps));
                part.model = model.map(str::to_owned);
            }
            if part.kind == EventType::User {
                // Harbor's converters copy all records of the user's role.
                match find_machine_text(facts.machine_texts, &part.text) {
                    Some(machine) => {
                        part.kind = EventType::Notification;
                        part.subtype = Some(machine.subtype.to_owned());
                    }
                    None => part.begins_turn = facts.sidechain.is_none(),
                }
            }
        }
    }

    /// Returns the parts of the events that a step was exported from. `None` if the step has other
    /// parts, as when another program changed it.
    fn match_events(
        &mut self,
        events: &[Json],
        step: &Json,
        contents: &[Part],
        span: RecordSpan,
        facts: &TrajectoryFacts,
    ) -> Option<Vec<Part>> {
        let mut texts: [VecDeque<Part>; 5] = Default::default();
        let slot = |kind: EventType| match kind {
            EventType::User | EventType::Notification | EventType::Message => 0,
            EventType::Reasoning => 1,
            EventType::ToolCall => 2,
            EventType::ToolResult => 3,
            EventType::TokenUsage => 4,
        };
        for part in contents {
            texts[slot(part.kind)].push_back(part.clone());
        }

        let mut parts = Vec::with_capacity(events.len());
        for event in events {
            let kind: EventType = event["event_type"].as_str()?.parse().ok()?;
            let queue = &mut texts[slot(kind)];
            let mut part = match kind {
                EventType::TokenUsage => Part {
                    time: parse_micros(step["timestamp"].as_str()),
                    is_copied: step["is_copied_context"].as_bool() == Some(true),
                    sidechain: facts.sidechain.clone(),
                    ..Part::new(kind, span)
                },
                EventType::Message | EventType::Reasoning => {
                    take_text(queue, event["bytes"].as_u64())?
                }
                EventType::User
                | EventType::Notification
                | EventType::ToolCall
                | EventType::ToolResult => queue.pop_front()?,
            };
            part.kind = kind;
            if kind == EventType::ToolCall && event["is_text"].as_bool() == Some(true) {
                let call = &step["tool_calls"][count_kind(&parts, kind)];
                part.text = call["arguments"]["input"].as_str()?.to_owned();
                part.files = Vec::new();
                part.command = String::new();
            }
            self.read_event(event, step, &mut part);
            part.event_index?;
            parts.push(part);
        }
        // The message of a response that has none is empty.
        let rest = &texts[0];
        let has_rest = rest.iter().any(|part| !part.text.is_empty());
        let is_whole =
            !has_rest && texts[1].is_empty() && texts[2].is_empty() && texts[3].is_empty();
        is_whole.then_some(parts)
    }

    /// Reads what an export says about an event besides its step.
    fn read_event(&mut self, event: &Json, step: &Json, part: &mut Part) {
        let extra = &step["extra"];
        let text = |key: &str| event[key].as_str().map(str::to_owned);
        part.event_index = event["event_index"].as_i64();
        part.turn_index = event["turn_index"].as_i64().or_else(|| extra["turn_index"].as_i64());
        let is_outside = matches!(part.kind, EventType::User | EventType::Notification);
        let step_index = extra["step_index"].as_i64().filter(|index| *index > 0);
        part.response = step_index.map(|index| (self.trajectory, index));
        if let Some(is_replay) = event["is_replay"].as_bool() {
            part.is_copied = is_replay;
        }
        let own = parse_micros(event["timestamp"].as_str()).or(part.time);
        part.time = own.or_else(|| parse_micros(step["timestamp"].as_str()));
        // A prompt and a notice are a step each.
        let subtype = if is_outside { &extra["subtype"] } else { &event["subtype"] };
        part.subtype = subtype.as_str().map(str::to_owned);
        part.model = text("model");
        part.git_branch = text("git_branch");
        part.spawned_agent_id = text("spawned_agent_id");
        if extra["is_sidechain"].as_bool() == Some(true) {
            part.sidechain = Some(part.spawned_agent_id.clone());
        }
        part.tool_name = text("tool_name").or(part.tool_name.take());
        if event["has_no_call_id"].as_bool() == Some(true) {
            part.tool_call_id = None;
        }
        if event["has_no_tool_name"].as_bool() == Some(true) {
            part.tool_name = None;
        }
        part.tool_call_id = text("tool_call_id").or(part.tool_call_id.take());
        if let Some(files) = event["files"].as_array() {
            part.files = files.iter().filter_map(|file| file.as_str().map(str::to_owned)).collect();
        }
        if let Some(command) = event["command"].as_str() {
            part.command = command.to_owned();
        }
        let outcome = &event["outcome"];
        if outcome.is_object() {
            part.is_error = outcome["is_error"].as_bool();
            part.exit_code =
                outcome["exit_code"].as_i64().and_then(|code| i32::try_from(code).ok());
            part.duration_ms = outcome["duration_ms"].as_i64();
        }
        if part.kind == EventType::TokenUsage {
            part.usage = Usage::deserialize(&event["usage"]).unwrap_or_default();
            part.text = text("text").unwrap_or_default();
        }
        part.request_id = text("request_id");
        part.service_tier = text("service_tier");
        part.speed = text("speed");
        part.inference_geo = text("inference_geo");
    }
}

fn count_kind(parts: &[Part], kind: EventType) -> usize {
    parts.iter().filter(|part| part.kind == kind).count()
}

/// Takes the next text of a joined one: of this length, or all of it. `None` if it has another form.
fn take_text(queue: &mut VecDeque<Part>, bytes: Option<u64>) -> Option<Part> {
    let Some(bytes) = bytes else { return queue.pop_front() };
    let joined = queue.front_mut()?;
    let bytes = usize::try_from(bytes).ok()?;
    let text = joined.text.get(..bytes)?.to_owned();
    let rest = &joined.text[bytes..];
    if rest.is_empty() {
        let part = queue.pop_front()?;
        return Some(Part { text, ..part });
    }
    let rest = rest.strip_prefix(SEPARATOR)?.to_owned();
    let part = Part { text, ..joined.clone() };
    joined.text = rest;
    Some(part)
}

/// Returns whether a result failed, in the ways in which producers say so. ATIF has no field for it.
fn read_failure(extra: &Json) -> Option<bool> {
    let flags = [
        &extra["is_error"],
        &extra["tool_result_is_error"],
        &extra["tool_result_metadata"]["is_error"],
    ];
    if let Some(is_error) = flags.into_iter().find_map(Json::as_bool) {
        return Some(is_error);
    }
    if let Some(success) = extra["success"].as_bool() {
        return Some(!success);
    }
    match &extra["error"] {
        Json::Bool(is_error) => Some(*is_error),
        Json::String(error) => Some(!error.is_empty()),
        Json::Object(_) => Some(true),
        Json::Null | Json::Number(_) | Json::Array(_) => None,
    }
}

/// Returns the name by which a reference calls a subagent.
fn name_subagent(subagent: &Json) -> Option<String> {
    let id = subagent["trajectory_id"].as_str().or_else(|| subagent["session_id"].as_str());
    let path = subagent["trajectory_path"].as_str();
    let stem = path.map(|path| path.rsplit(['/', '\\']).next().unwrap_or(path));
    let name = id.or_else(|| stem.map(|name| name.strip_suffix(".json").unwrap_or(name)))?;
    Some(name.to_owned())
}

/// Returns the text of a message or of a result: a string, or a list of parts, of which media are
/// named by their type and place.
fn content_text(content: &Json) -> String {
    match content {
        Json::String(text) => text.clone(),
        Json::Array(parts) => {
            let texts = parts.iter().map(|part| match part["text"].as_str() {
                Some(text) => text.to_owned(),
                None => {
                    let source = &part["source"];
                    let kind = source["media_type"].as_str().or_else(|| part["type"].as_str());
                    let place = source["path"].as_str().unwrap_or("");
                    format!("[{} {place}]", kind.unwrap_or("media")).replace(" ]", "]")
                }
            });
            texts.collect::<Vec<_>>().join("\n")
        }
        Json::Null => String::new(),
        Json::Bool(_) | Json::Number(_) | Json::Object(_) => content.to_string(),
    }
}
