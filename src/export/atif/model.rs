//! The objects of an ATIF 1.8 document. What ATIF has no field for is in `extra`, which
//! `ingest/src/provider/atif` reads back.

use schemas::{EventType, Usage};
use serde::Serialize;

/// The version of the format.
pub(super) const SCHEMA_VERSION: &str = "ATIF-v1.8";

/// A session, or what one subagent did in it.
#[derive(Serialize)]
pub(super) struct Trajectory {
    pub(super) schema_version: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    pub(super) trajectory_id: String,
    pub(super) agent: Agent,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) continued_trajectory_ref: Option<String>,
    pub(super) final_metrics: FinalMetrics,
    pub(super) extra: TrajectoryExtra,
    /// Never empty.
    pub(super) steps: Vec<Step>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) subagent_trajectories: Vec<Trajectory>,
}

#[derive(Clone, Serialize)]
pub(super) struct Agent {
    pub(super) name: String,
    pub(super) version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model_name: Option<String>,
    pub(super) extra: AgentExtra,
}

#[derive(Clone, Default, Serialize)]
pub(super) struct AgentExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) git_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) repository: Option<String>,
}

/// The sums of a trajectory. Copied history does not count, embedded trajectories do.
#[derive(Clone, Default, Serialize)]
pub(super) struct FinalMetrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_prompt_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_completion_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_cached_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_cost_usd: Option<f64>,
    pub(super) total_steps: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<UsageExtra>,
}

#[derive(Default, Serialize)]
pub(super) struct TrajectoryExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) title: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) labels: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) relation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) abandoned: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage_confidence: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source_path: Option<String>,
    /// True if the trajectory is a part of the session that embeds it: what a subagent did in its
    /// log.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_sidechain: bool,
    /// Token counts that belong to no response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) events: Vec<EventExtra>,
}

/// A prompt, a notice, or a response with its calls and their results.
#[derive(Serialize)]
pub(super) struct Step {
    /// From 1, without gaps.
    pub(super) step_id: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<String>,
    pub(super) source: StepSource,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model_name: Option<String>,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) tool_calls: Vec<ToolCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) observation: Option<Observation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) metrics: Option<Metrics>,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_copied_context: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) llm_call_count: Option<u8>,
    pub(super) extra: StepExtra,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StepSource {
    System,
    User,
    Agent,
}

#[derive(Serialize)]
pub(super) struct ToolCall {
    pub(super) tool_call_id: String,
    pub(super) function_name: String,
    /// Always an object.
    pub(super) arguments: serde_json::Value,
}

#[derive(Default, Serialize)]
pub(super) struct Observation {
    pub(super) results: Vec<ToolResult>,
}

#[derive(Serialize)]
pub(super) struct ToolResult {
    /// The id of a call of the same step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) source_call_id: Option<String>,
    pub(super) content: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) subagent_trajectory_ref: Vec<SubagentRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<ResultExtra>,
}

#[derive(Clone, PartialEq, Serialize)]
pub(super) struct ResultExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<String>,
}

/// Leads to an embedded trajectory by its id, or to one in another file by its path.
#[derive(Clone, Serialize)]
pub(super) struct SubagentRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trajectory_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trajectory_path: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) prompt_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) completion_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cached_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) extra: Option<UsageExtra>,
}

/// Parts of the tokens that ATIF does not name.
#[derive(Clone, Default, PartialEq, Serialize)]
pub(super) struct UsageExtra {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_write_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cache_write_1h_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reasoning_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) web_search_requests: Option<i64>,
}

#[derive(Serialize)]
pub(super) struct StepExtra {
    pub(super) turn_index: i32,
    /// The response; 0 is none.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) step_index: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_error: Option<bool>,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_sidechain: bool,
    /// The events of the step in their order, with what the step does not say about each.
    pub(super) events: Vec<EventExtra>,
}

/// An event of a step. Its text is the next part of its kind in the step: of the message, of the
/// reasoning, of the calls or of the results.
#[derive(Serialize)]
pub(super) struct EventExtra {
    pub(super) event_index: i32,
    pub(super) event_type: EventType,
    /// The bytes of its text, if the step joins several texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) bytes: Option<usize>,
    /// If it is not that of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) turn_index: Option<i32>,
    /// If it is not that of the step, or of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) timestamp: Option<String>,
    /// If it is not that of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_replay: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) subtype: Option<String>,
    /// The model in force, if it is not that of the event before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<String>,
    /// The branch in force, if it is not that of the event before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) git_branch: Option<String>,
    /// The agent's id of the call, if the step does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<String>,
    /// True if the id of the call in the step is not the agent's, which gave it none.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) has_no_call_id: bool,
    /// The tool of a result, or of a call without one in the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_name: Option<String>,
    /// True if the arguments are a text, which the step has as `input`.
    #[serde(skip_serializing_if = "is_false")]
    pub(super) is_text: bool,
    /// If they are not those that the arguments name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<Vec<String>>,
    /// If it is not the one that the arguments name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) spawned_agent_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) service_tier: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) speed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) inference_geo: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) usage: Option<Usage>,
    /// Of an event that is not a result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<ResultExtra>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(value: &i32) -> bool {
    *value == 0
}
