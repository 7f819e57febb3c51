//! The objects of an ATIF 1.8 document. What ATIF has no field for is in `extra`, which
//! `ingest/src/provider/atif` reads back.

use schemas::{EventType, Usage};
use serde::Serialize;

/// The version of the format.
pub(in crate::export) const SCHEMA_VERSION: &str = "ATIF-v1.8";

/// A session, or what one subagent did in it.
#[derive(Serialize)]
pub(in crate::export) struct Trajectory {
    pub(in crate::export) schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) session_id: Option<String>,
    pub(in crate::export) trajectory_id: String,
    pub(in crate::export) agent: Agent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) continued_trajectory_ref: Option<String>,
    pub(in crate::export) final_metrics: FinalMetrics,
    pub(in crate::export) extra: TrajectoryExtra,
    /// Never empty.
    pub(in crate::export) steps: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::export) subagent_trajectories: Vec<Self>,
}

#[derive(Clone, Serialize)]
pub(in crate::export) struct Agent {
    pub(in crate::export) name: String,
    pub(in crate::export) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) model_name: Option<String>,
    pub(in crate::export) extra: AgentExtra,
}

#[derive(Clone, Default, Serialize)]
pub(in crate::export) struct AgentExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) git_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) repository: Option<String>,
}

/// The sums of a trajectory. Copied history does not count, embedded trajectories do.
#[derive(Clone, Default, Serialize)]
pub(in crate::export) struct FinalMetrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) total_prompt_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) total_completion_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) total_cached_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) total_cost_usd: Option<f64>,
    pub(in crate::export) total_steps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) extra: Option<UsageExtra>,
}

#[derive(Default, Serialize)]
pub(in crate::export) struct TrajectoryExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) title: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::export) labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) parent_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) relation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) agent_id: Option<String>,
    /// The last model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) abandoned: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) usage_confidence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) source_path: Option<String>,
    /// True if the trajectory is a part of the session that embeds it: what a subagent did in its
    /// log.
    #[serde(skip_serializing_if = "is_false")]
    pub(in crate::export) is_sidechain: bool,
    /// Token counts that belong to no response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::export) events: Vec<EventExtra>,
}

/// A prompt, a notice, or a response with its calls and their results.
#[derive(Serialize)]
pub(in crate::export) struct Step {
    /// From 1, without gaps.
    pub(in crate::export) step_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) timestamp: Option<String>,
    pub(in crate::export) source: StepSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) model_name: Option<String>,
    pub(in crate::export) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::export) tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "is_false")]
    pub(in crate::export) is_copied_context: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) llm_call_count: Option<u8>,
    pub(in crate::export) extra: StepExtra,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::export) enum StepSource {
    System,
    User,
    Agent,
}

#[derive(Serialize)]
pub(in crate::export) struct ToolCall {
    pub(in crate::export) tool_call_id: String,
    pub(in crate::export) function_name: String,
    /// Always an object.
    pub(in crate::export) arguments: serde_json::Value,
}

#[derive(Default, Serialize)]
pub(in crate::export) struct Observation {
    pub(in crate::export) results: Vec<ToolResult>,
}

#[derive(Serialize)]
pub(in crate::export) struct ToolResult {
    /// The id of a call of the same step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) source_call_id: Option<String>,
    pub(in crate::export) content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::export) subagent_trajectory_ref: Vec<SubagentRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) extra: Option<ResultExtra>,
}

#[derive(Clone, PartialEq, Serialize)]
pub(in crate::export) struct ResultExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) duration_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) timestamp: Option<String>,
}

/// Leads to an embedded trajectory by its id, or to one in another file by its path.
#[derive(Clone, Serialize)]
pub(in crate::export) struct SubagentRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) trajectory_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) trajectory_path: Option<String>,
}

#[derive(Serialize)]
pub(in crate::export) struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) prompt_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) completion_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) cached_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) extra: Option<UsageExtra>,
}

/// Parts of the tokens that ATIF does not name.
#[derive(Clone, Default, PartialEq, Serialize)]
pub(in crate::export) struct UsageExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) cache_write_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) cache_write_1h_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) reasoning_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) web_search_requests: Option<i64>,
}

#[derive(Serialize)]
pub(in crate::export) struct StepExtra {
    pub(in crate::export) turn_index: i32,
    /// The response; 0 is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub(in crate::export) step_index: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) subtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) is_error: Option<bool>,
    #[serde(skip_serializing_if = "is_false")]
    pub(in crate::export) is_sidechain: bool,
    /// The events of the step in their order, with what the step does not say about each.
    pub(in crate::export) events: Vec<EventExtra>,
}

/// An event of a step. Its text is the next part of its kind in the step: of the message, of the
/// reasoning, of the calls or of the results.
#[derive(Serialize)]
pub(in crate::export) struct EventExtra {
    pub(in crate::export) event_index: i32,
    pub(in crate::export) event_type: EventType,
    /// The bytes of its text, if the step joins several texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) bytes: Option<usize>,
    /// If it is not that of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) turn_index: Option<i32>,
    /// If it is not that of the step, or of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) timestamp: Option<String>,
    /// If it is not that of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) is_replay: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) subtype: Option<String>,
    /// The model in force, if it is not that of the event before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) model: Option<String>,
    /// The branch in force, if it is not that of the event before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) git_branch: Option<String>,
    /// The text of token counts, such as the state of a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) text: Option<String>,
    /// The agent's id of the call, if the step does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) tool_call_id: Option<String>,
    /// True if the id of the call in the step is not the agent's, which gave it none.
    #[serde(skip_serializing_if = "is_false")]
    pub(in crate::export) has_no_call_id: bool,
    /// True if the name of the tool in the step is not the agent's, which gave it none.
    #[serde(skip_serializing_if = "is_false")]
    pub(in crate::export) has_no_tool_name: bool,
    /// The tool of a result, if it is not that of its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) tool_name: Option<String>,
    /// True if the arguments are a text, which the step has as `input`.
    #[serde(skip_serializing_if = "is_false")]
    pub(in crate::export) is_text: bool,
    /// If they are not those of the arguments, or of the call of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) files: Option<Vec<String>>,
    /// If it is not that of the arguments, or of the call of a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) spawned_agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) service_tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) speed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) inference_geo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) usage: Option<Usage>,
    /// Of an event that is not a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::export) outcome: Option<ResultExtra>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &i32) -> bool {
    *value == 0
}
