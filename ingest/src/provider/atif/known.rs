//! What version 1.8 of the format defines (docs/formats.md#atif). Anything else counts as drift. The
//! format forbids other fields, except in the objects `extra`.

use serde_json::Value as Json;

use crate::stream::Stream;

const TRAJECTORY: &[&str] = &[
    "agent",
    "continued_trajectory_ref",
    "extra",
    "final_metrics",
    "notes",
    "schema_version",
    "session_id",
    "steps",
    "subagent_trajectories",
    "trajectory_id",
];
const AGENT: &[&str] = &["extra", "model_name", "name", "tool_definitions", "version"];
const STEP: &[&str] = &[
    "extra",
    "is_copied_context",
    "llm_call_count",
    "message",
    "metrics",
    "model_name",
    "observation",
    "reasoning_content",
    "reasoning_effort",
    "source",
    "step_id",
    "timestamp",
    "tool_calls",
];
const CALL: &[&str] = &["arguments", "extra", "function_name", "tool_call_id"];
const OBSERVATION: &[&str] = &["results"];
const RESULT: &[&str] = &["content", "extra", "source_call_id", "subagent_trajectory_ref"];
const REFERENCE: &[&str] = &["extra", "session_id", "trajectory_id", "trajectory_path"];
const METRICS: &[&str] = &[
    "cached_tokens",
    "completion_token_ids",
    "completion_tokens",
    "cost_usd",
    "extra",
    "logprobs",
    "prompt_token_ids",
    "prompt_tokens",
];
const FINAL_METRICS: &[&str] = &[
    "extra",
    "total_cached_tokens",
    "total_completion_tokens",
    "total_cost_usd",
    "total_prompt_tokens",
    "total_steps",
];
const PART: &[&str] = &["source", "text", "type"];

/// Counts the fields of an embedded trajectory, without those of its steps.
pub(super) fn count_unknown_trajectory(trajectory: &Json, out: &mut Stream) {
    count_unknown_fields(trajectory, TRAJECTORY, out);
    count_unknown_agent(&trajectory["agent"], trajectory.get("final_metrics"), out);
}

/// Counts the fields of the agent of a trajectory, and of its sums.
pub(super) fn count_unknown_agent(agent: &Json, sums: Option<&Json>, out: &mut Stream) {
    count_unknown_fields(agent, AGENT, out);
    count_unknown_fields(sums.unwrap_or(&Json::Null), FINAL_METRICS, out);
}

/// Counts the fields of a step and of what is in it, a source that no version has, and the types of
/// parts of its texts.
pub(super) fn count_unknown_step(step: &Json, out: &mut Stream) {
    count_unknown_fields(step, STEP, out);
    match step["source"].as_str() {
        Some("agent" | "system" | "user") => {}
        source => out.count_unknown("record", source.unwrap_or("untyped")),
    }
    count_unknown_parts(&step["message"], out);
    for call in items(&step["tool_calls"]) {
        count_unknown_fields(call, CALL, out);
    }
    count_unknown_fields(&step["metrics"], METRICS, out);
    count_unknown_fields(&step["observation"], OBSERVATION, out);
    for result in items(&step["observation"]["results"]) {
        count_unknown_fields(result, RESULT, out);
        count_unknown_parts(&result["content"], out);
        for subagent in items(&result["subagent_trajectory_ref"]) {
            count_unknown_fields(subagent, REFERENCE, out);
        }
    }
}

fn count_unknown_parts(content: &Json, out: &mut Stream) {
    for part in items(content) {
        count_unknown_fields(part, PART, out);
        match part["type"].as_str() {
            Some("image" | "text") => {}
            kind => out.count_unknown("block", kind.unwrap_or("untyped")),
        }
    }
}

fn count_unknown_fields(object: &Json, known: &[&str], out: &mut Stream) {
    for field in object.as_object().into_iter().flat_map(|fields| fields.keys()) {
        if known.binary_search(&field.as_str()).is_err() {
            out.count_unknown("field", field);
        }
    }
}

fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted() {
        let lists =
            [TRAJECTORY, AGENT, STEP, CALL, RESULT, REFERENCE, METRICS, FINAL_METRICS, PART];
        for list in lists {
            assert!(list.is_sorted(), "{list:?}");
        }
    }
}
