//! Groups the events of a session into the steps of a trajectory: a prompt and a notice are a step
//! each, a response is one with its calls and their results.

use std::collections::HashMap;

use ingest::provider::call_arguments::CallArguments;
use schemas::session::EventRow;
use schemas::{EventId, EventType, Timestamp, Usage};
use serde_json::json;

use super::model::{
    EventExtra, Metrics, ResultExtra, Step, StepExtra, StepSource, SubagentRef, ToolCall,
    ToolResult, UsageExtra,
};

/// The name of a tool that the log does not name; ATIF requires one.
const UNKNOWN_TOOL: &str = "unknown";

/// What joins the texts of a step.
const SEPARATOR: &str = "\n\n";

/// An event with what the steps need to know besides its row.
pub(super) struct SessionEvent<'r> {
    pub(super) row: &'r EventRow,
    /// The cost of its tokens in US dollars.
    pub(super) cost: Option<f64>,
    /// The arguments of a call; `None` if only their text is known.
    pub(super) arguments: Option<CallArguments>,
    pub(super) has_new_model: bool,
    pub(super) has_new_branch: bool,
}

/// The steps of a trajectory.
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    /// Token counts that belong to no response.
    pub(super) outside: Vec<EventExtra>,
}

/// Finds the trajectory of the subagent with this id.
pub(super) type FindSubagent<'f> = dyn Fn(&str) -> Option<SubagentRef> + 'f;

/// Groups events, which are in order. The steps are in the order of their first events.
pub(super) fn build_steps(events: &[&SessionEvent<'_>], find_subagent: &FindSubagent<'_>) -> Steps {
    let mut groups: Vec<Vec<&SessionEvent<'_>>> = Vec::new();
    let mut responses: HashMap<i32, usize> = HashMap::new();
    let mut outside = Vec::new();
    for event in events {
        let row = event.row;
        let is_outside = matches!(row.event_type, EventType::User | EventType::Notification);
        if is_outside || row.step_index <= 0 {
            if row.event_type == EventType::TokenUsage {
                outside.push(event_extra(event));
            } else {
                groups.push(vec![event]);
            }
            continue;
        }
        let at = *responses.entry(row.step_index).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(event),
            None => groups.push(vec![event]),
        }
    }
    let numbered = groups.iter().zip(1..);
    let steps = numbered.map(|(group, step_id)| build_step(step_id, group, find_subagent));
    Steps { steps: steps.collect(), outside }
}

/// Builds the step of events, of which there is at least one.
fn build_step(step_id: usize, group: &[&SessionEvent<'_>], find: &FindSubagent<'_>) -> Step {
    let first = group[0].row;
    let source = match first.event_type {
        EventType::User => StepSource::User,
        EventType::Notification => StepSource::System,
        EventType::ToolResult if first.step_index <= 0 => StepSource::System,
        EventType::ToolResult
        | EventType::Message
        | EventType::Reasoning
        | EventType::ToolCall
        | EventType::TokenUsage => StepSource::Agent,
    };
    let is_agent = source == StepSource::Agent;
    let is_copied = is_copied(group);
    let is_response = group.iter().any(|event| event.row.event_type != EventType::ToolResult);
    let mut step = Step {
        step_id,
        timestamp: format_time(first.timestamp),
        source,
        model_name: first.model.clone().filter(|_| is_agent),
        message: join_texts(group, &[EventType::User, EventType::Notification, EventType::Message])
            .unwrap_or_default(),
        reasoning_content: join_texts(group, &[EventType::Reasoning]),
        tool_calls: Vec::new(),
        observation: None,
        metrics: if is_agent { sum_metrics(group, is_copied) } else { None },
        is_copied_context: is_copied,
        llm_call_count: (is_agent && is_response && first.step_index > 0).then_some(1),
        extra: StepExtra {
            turn_index: first.turn_index,
            step_index: first.step_index,
            subtype: first.subtype.clone().filter(|_| !is_agent),
            is_error: first.is_error.filter(|_| first.event_type == EventType::Notification),
            is_sidechain: first.is_sidechain,
            events: Vec::with_capacity(group.len()),
        },
    };

    let calls = group.iter().filter(|event| event.row.event_type == EventType::ToolCall);
    let calls: HashMap<String, &EventRow> =
        calls.map(|event| (call_id(event.row), event.row)).collect();
    let mut counts: HashMap<EventType, usize> = HashMap::new();
    for event in group {
        *counts.entry(event.row.event_type).or_default() += 1;
    }
    for event in group {
        let row = event.row;
        let mut extra = event_extra(event);
        extra.turn_index = Some(row.turn_index).filter(|turn| *turn != step.extra.turn_index);
        extra.is_replay = Some(row.is_replay).filter(|is_replay| *is_replay != is_copied);
        if extra.timestamp == step.timestamp {
            extra.timestamp = None;
        }
        match row.event_type {
            EventType::ToolCall => {
                let call = build_call(event, &mut extra);
                step.tool_calls.push(call);
            }
            EventType::ToolResult => {
                let result = build_result(row, &calls, find, &mut extra);
                step.observation.get_or_insert_default().results.push(result);
            }
            EventType::Message | EventType::Reasoning if counts[&row.event_type] > 1 => {
                extra.bytes = Some(row.text.len());
            }
            EventType::User | EventType::Notification if !is_agent => extra.subtype = None,
            EventType::Message
            | EventType::Reasoning
            | EventType::User
            | EventType::Notification
            | EventType::TokenUsage => {}
        }
        step.extra.events.push(extra);
    }
    step
}

/// Returns whether a step was copied from another session. Counts that another session has do not
/// decide it.
fn is_copied(group: &[&SessionEvent<'_>]) -> bool {
    let mut rows = group.iter().map(|event| event.row);
    let is_usage = |row: &&EventRow| row.event_type == EventType::TokenUsage;
    if rows.clone().all(|row| is_usage(&row)) {
        return rows.all(|row| row.is_replay);
    }
    rows.filter(|row| !is_usage(row)).all(|row| row.is_replay)
}

/// Joins the texts of the events of these types. `None` if there is no such event.
fn join_texts(group: &[&SessionEvent<'_>], types: &[EventType]) -> Option<String> {
    let rows = group.iter().map(|event| event.row);
    let texts: Vec<&str> =
        rows.filter(|row| types.contains(&row.event_type)).map(|row| row.text.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join(SEPARATOR))
}

/// Returns the id of a call in a document, where it needs one.
fn call_id(row: &EventRow) -> String {
    let own = row.tool_call_id.clone().filter(|id| !id.is_empty());
    own.unwrap_or_else(|| EventId::format(&row.session_id, row.event_index.cast_unsigned()))
}

fn build_call(event: &SessionEvent<'_>, extra: &mut EventExtra) -> ToolCall {
    let row = event.row;
    extra.has_no_call_id = row.tool_call_id.is_none();
    extra.has_no_tool_name = row.tool_name.is_none();
    let files = row.files.as_deref().unwrap_or_default();
    let command = row.command.as_deref().unwrap_or_default();
    let arguments = match &event.arguments {
        Some(found) => {
            extra.files = (found.files != files).then(|| files.to_vec());
            extra.command = (found.command != command).then(|| command.to_owned());
            found.object.clone()
        }
        None if row.text.is_empty() => json!({}),
        None => {
            extra.is_text = true;
            extra.files = row.files.clone().filter(|files| !files.is_empty());
            extra.command = row.command.clone();
            json!({ "input": row.text })
        }
    };
    let function_name = row.tool_name.clone().unwrap_or_else(|| UNKNOWN_TOOL.to_owned());
    ToolCall { tool_call_id: call_id(row), function_name, arguments }
}

fn build_result(
    row: &EventRow,
    calls: &HashMap<String, &EventRow>,
    find_subagent: &FindSubagent<'_>,
    extra: &mut EventExtra,
) -> ToolResult {
    let source_call_id = row.tool_call_id.clone().filter(|id| calls.contains_key(id));
    let call = source_call_id.as_ref().and_then(|id| calls.get(id));
    let (tool_name, files, command) = match call {
        Some(call) => (&call.tool_name, &call.files, &call.command),
        None => (&None, &None, &None),
    };
    extra.tool_call_id = row.tool_call_id.clone().filter(|_| source_call_id.is_none());
    extra.tool_name = row.tool_name.clone().filter(|_| row.tool_name != *tool_name);
    extra.files = row.files.clone().filter(|_| row.files != *files);
    extra.command = row.command.clone().filter(|_| row.command != *command);
    let subagent = row.spawned_agent_id.as_deref().filter(|_| !row.is_sidechain);
    let result_extra = ResultExtra { timestamp: extra.timestamp.take(), ..outcome_of(row) };
    extra.outcome = None;
    ToolResult {
        source_call_id,
        content: row.text.clone(),
        subagent_trajectory_ref: subagent.and_then(find_subagent).into_iter().collect(),
        extra: Some(result_extra).filter(|extra| *extra != EMPTY_OUTCOME),
    }
}

const EMPTY_OUTCOME: ResultExtra =
    ResultExtra { is_error: None, exit_code: None, duration_ms: None, timestamp: None };

fn outcome_of(row: &EventRow) -> ResultExtra {
    let EventRow { is_error, exit_code, duration_ms, .. } = *row;
    ResultExtra { is_error, exit_code, duration_ms, timestamp: None }
}

/// Returns what ATIF does not say about an event.
fn event_extra(event: &SessionEvent<'_>) -> EventExtra {
    let row = event.row;
    let is_call = row.event_type == EventType::ToolCall;
    let is_usage = row.event_type == EventType::TokenUsage;
    EventExtra {
        event_index: row.event_index,
        event_type: row.event_type,
        bytes: None,
        turn_index: Some(row.turn_index),
        timestamp: format_time(row.timestamp),
        is_replay: Some(row.is_replay),
        subtype: row.subtype.clone(),
        model: row.model.clone().filter(|_| event.has_new_model),
        git_branch: row.git_branch.clone().filter(|_| event.has_new_branch),
        text: Some(row.text.clone()).filter(|text| is_usage && !text.is_empty()),
        tool_call_id: row.tool_call_id.clone().filter(|_| !is_call),
        has_no_call_id: false,
        has_no_tool_name: false,
        tool_name: if is_call { None } else { row.tool_name.clone() },
        is_text: false,
        files: None,
        command: None,
        spawned_agent_id: row.spawned_agent_id.clone(),
        request_id: row.request_id.clone(),
        service_tier: row.service_tier.clone(),
        speed: row.speed.clone(),
        inference_geo: row.inference_geo.clone(),
        usage: is_usage.then(|| row.usage()),
        outcome: Some(outcome_of(row)).filter(|outcome| *outcome != EMPTY_OUTCOME),
    }
}

/// Sums the tokens of a step that count where the step counts.
fn sum_metrics(group: &[&SessionEvent<'_>], is_copied: bool) -> Option<Metrics> {
    let mut usage = Usage::default();
    let mut cost_usd = None;
    for event in group {
        let row = event.row;
        if row.event_type == EventType::TokenUsage && row.is_replay == is_copied {
            usage = usage.plus(row.usage());
            if let Some(cost) = event.cost {
                *cost_usd.get_or_insert(0.0) += cost;
            }
        }
    }
    if usage.is_unknown() {
        return None;
    }
    Some(Metrics {
        prompt_tokens: prompt_tokens(usage),
        completion_tokens: usage.output,
        cached_tokens: usage.cache_read,
        cost_usd,
        extra: usage_extra(usage),
    })
}

/// Returns the tokens of the prompt, which in ATIF include those of the cache.
pub(super) fn prompt_tokens(usage: Usage) -> Option<i64> {
    let parts = [usage.input, usage.cache_read, usage.cache_write];
    parts.into_iter().flatten().reduce(i64::saturating_add)
}

/// Returns the parts of token counts that ATIF does not name.
pub(super) fn usage_extra(usage: Usage) -> Option<UsageExtra> {
    let extra = UsageExtra {
        cache_write_tokens: usage.cache_write,
        cache_write_1h_tokens: usage.cache_write_1h,
        reasoning_tokens: usage.reasoning,
        web_search_requests: usage.web_search,
    };
    (extra != UsageExtra::default()).then_some(extra)
}

/// Returns a time as RFC 3339, with the microseconds that are not whole milliseconds. `None` if it is
/// not a time that can be written.
pub(super) fn format_time(micros: Option<i64>) -> Option<String> {
    let micros = micros?;
    let text = Timestamp(micros).to_string();
    let text = text.strip_suffix('Z')?;
    let rest = micros.rem_euclid(1000);
    Some(if rest == 0 { format!("{text}Z") } else { format!("{text}{rest:03}Z") })
}
