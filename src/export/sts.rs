//! Writes a session in the Session Trace Simple Format of the Hugging Face Hub
//! (<https://huggingface.co/docs/hub/session-traces-format>), from its trajectory.
//!
//! ```text
//! {"type":"session","harness":"codex","id":"...","name":"..."}
//! {"type":"message","message":{"role":"assistant","content":"...","toolCalls":[...]}}
//! ```
//!
//! The format is one conversation, so what subagents did is left out.

use schemas::{Timestamp, ToolError};
use serde_json::{Map, Value, json};

use super::atif::model::{Step, StepSource, Trajectory};
use tools::encoding_error;

/// Returns the lines of a session: a header, then a message each.
pub(super) fn format_lines(trajectory: &Trajectory) -> Result<String, ToolError> {
    let header = json!({
        "type": "session",
        "harness": trajectory.agent.name,
        "id": trajectory.trajectory_id,
        "name": trajectory.extra.title,
    });
    let mut lines = vec![header];
    for step in &trajectory.steps {
        append_messages(step, &mut lines);
    }
    let mut out = String::new();
    for line in lines {
        out.push_str(&serde_json::to_string(&line).map_err(encoding_error)?);
        out.push('\n');
    }
    Ok(out)
}

/// Appends the messages of a step: its own, and one for each result.
fn append_messages(step: &Step, lines: &mut Vec<Value>) {
    let time = epoch_millis(step.timestamp.as_deref());
    let results = step.observation.iter().flat_map(|observation| &observation.results);
    let has_message =
        !step.message.is_empty() || step.reasoning_content.is_some() || !step.tool_calls.is_empty();
    if has_message {
        let mut message = new_message(role_of(step.source), &step.message, time);
        if let Some(reasoning) = &step.reasoning_content {
            message.insert("reasoningContent".to_owned(), json!(reasoning));
        }
        if !step.tool_calls.is_empty() {
            let calls = step.tool_calls.iter().map(|call| {
                let arguments = call.arguments.to_string();
                json!({
                    "id": call.tool_call_id,
                    "function": { "name": call.function_name, "arguments": arguments },
                })
            });
            message.insert("toolCalls".to_owned(), calls.collect());
        }
        if let Some(model) = &step.model_name {
            message.insert("model".to_owned(), json!(model));
        }
        lines.push(json!({ "type": "message", "message": message }));
    }
    for result in results {
        let own = result.extra.as_ref().and_then(|extra| extra.timestamp.as_deref());
        let mut message = new_message("tool", &result.content, epoch_millis(own).or(time));
        if let Some(id) = &result.source_call_id {
            message.insert("toolCallId".to_owned(), json!(id));
        }
        lines.push(json!({ "type": "message", "message": message }));
    }
}

fn role_of(source: StepSource) -> &'static str {
    match source {
        StepSource::System => "system",
        StepSource::User => "user",
        StepSource::Agent => "assistant",
    }
}

fn new_message(role: &str, content: &str, time: Option<i64>) -> Map<String, Value> {
    let mut message = Map::new();
    message.insert("role".to_owned(), json!(role));
    message.insert("content".to_owned(), json!(content));
    if let Some(time) = time {
        message.insert("timestamp".to_owned(), json!(time));
    }
    message
}

/// Returns a time in milliseconds since the epoch.
fn epoch_millis(time: Option<&str>) -> Option<i64> {
    Some(Timestamp::parse(time?)?.0.div_euclid(1000))
}
