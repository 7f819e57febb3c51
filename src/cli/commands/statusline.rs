//! `sessions statusline`: prints one line for the status line of an agent.
//!
//! Claude Code passes what it knows about the session on stdin:
//!
//! ```text
//! {"session_id":"..","model":{"display_name":"Opus"},"cost":{"total_cost_usd":0.12},
//!  "context_window":{"used_percentage":41},
//!  "rate_limits":{"five_hour":{"used_percentage":23.5,"resets_at":1738425600},"seven_day":{..}}}
//! ```

use std::io::{IsTerminal as _, Read as _};

use schemas::tool::OneOrMany;
use schemas::tool::stats::{GroupKey, StatsArgs};
use schemas::{Provider, Timestamp, ToolError};
use serde::Serialize;
use serde_json::Value;

use crate::cli::context::CommandContext;
use crate::cli::exit::{CommandOutcome, CommandResult};
use crate::output::{join_status, quota_summary};
use base::numbers::format_dollars;
use tools::quota::{QUOTA_VERSION, QuotaWindow, quota_window, read_quotas};
use tools::{Call, Tools};

/// Maximum size of the input in bytes; the rest is not read.
const MAX_INPUT_BYTES: u64 = 1 << 20;

/// The windows of Claude's quotas by name, with their length in minutes.
const CLAUDE_WINDOWS: [(&str, i64); 2] = [("five_hour", 300), ("seven_day", 10_080)];

/// What the line shows. Facts that are not known are absent.
#[derive(Debug, Serialize)]
struct StatusLine {
    version: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_cost_usd: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_used_percent: Option<f64>,
    /// Cost of all agents since midnight in the user's zone.
    #[serde(skip_serializing_if = "Option::is_none")]
    today_cost_usd: Option<f64>,
    windows: Vec<QuotaWindow>,
}

pub(in crate::cli) fn run(context: &CommandContext<'_>) -> CommandResult {
    let input = read_input();
    let tools = context.create_priced_tools()?;
    let call = &context.call;
    let mut windows = claude_windows(&input, call.now);
    if windows.is_empty() {
        // A store that cannot be read must not leave the line empty.
        windows = read_quotas(&tools, call).map(|data| data.windows).unwrap_or_default();
        // There is no room for the quotas of single models. A window that began again since says
        // nothing.
        windows.retain(|window| window.limit.is_none() && !window.has_begun_again);
    }
    let line = StatusLine {
        version: QUOTA_VERSION,
        model: input["model"]["display_name"].as_str().map(str::to_owned),
        session_cost_usd: input["cost"]["total_cost_usd"].as_f64(),
        context_used_percent: read_used_context(&input["context_window"]),
        today_cost_usd: read_cost_of_today(&tools, call).unwrap_or_default(),
        windows,
    };
    if context.printer.is_json {
        context.printer.print_json(&line)?;
    } else {
        context.printer.print_data(&format!("{}\n", line.to_line(call)))?;
    }
    Ok(CommandOutcome::Done)
}

/// Reads what the agent passes; nothing if stdin is a terminal or holds something else.
fn read_input() -> Value {
    let stdin = std::io::stdin();
    let mut bytes = Vec::new();
    if stdin.is_terminal() || stdin.lock().take(MAX_INPUT_BYTES).read_to_end(&mut bytes).is_err() {
        return Value::Null;
    }
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Returns how much of the context is used, in percent.
fn read_used_context(context: &Value) -> Option<f64> {
    let count = |name: &str| context[name].as_f64().filter(|count| *count > 0.0);
    context["used_percentage"]
        .as_f64()
        .or_else(|| Some(count("total_input_tokens")? / count("context_window_size")? * 100.0))
}

/// Returns the quotas that Claude Code passes.
fn claude_windows(input: &Value, now: Timestamp) -> Vec<QuotaWindow> {
    let mut windows = Vec::new();
    for (name, minutes) in CLAUDE_WINDOWS {
        let window = &input["rate_limits"][name];
        if let Some(used) = window["used_percentage"].as_f64() {
            let resets_at = window["resets_at"].as_i64();
            windows.push(quota_window(Provider::Claude, minutes, used, resets_at, now));
        }
    }
    windows
}

/// Returns the cost of all agents since midnight; `None` if nothing was priced.
fn read_cost_of_today(tools: &Tools, call: &Call<'_>) -> Result<Option<f64>, ToolError> {
    let args = StatsArgs {
        group_by: OneOrMany::One(GroupKey::Provider),
        since: call.zone.day(call.now),
        ..StatsArgs::default()
    };
    let answer = tools.session_stats(&args, call)?;
    let costs = answer.data.groups.iter().filter_map(|group| group.cost_usd);
    Ok(costs.reduce(|sum, cost| sum + cost))
}

impl StatusLine {
    /// Returns the line, without a line break.
    fn to_line(&self, call: &Call<'_>) -> String {
        let mut parts = Vec::new();
        parts.extend(self.model.clone());
        parts.extend(self.session_cost_usd.map(format_dollars));
        parts.extend(self.today_cost_usd.map(|cost| format!("today {}", format_dollars(cost))));
        parts.extend(self.context_used_percent.map(|used| format!("context {used:.0} %")));
        for window in &self.windows {
            parts.push(quota_summary(window, call.now));
        }
        if parts.is_empty() {
            return "sessions: no data yet".to_owned();
        }
        join_status(&parts)
    }
}
