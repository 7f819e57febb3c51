//! Reads Codex's token counts (docs/formats.md#codex). A response may be counted in a record of its
//! own and in running totals, which are repeated and may restart:
//!
//! ```text
//! {"type":"token_usage_record","payload":{"response_id":"resp_1","usage":{...}}}
//! {"type":"event_msg","payload":{"type":"token_count",
//!  "info":{"total_token_usage":{...},"last_token_usage":{...}}}}
//! ```
//!
//! Totals leave out some requests, such as compactions, and include requests that were aborted before
//! they were recorded.

use std::collections::VecDeque;

use std::fmt::Write as _;

use schemas::Usage;
use serde::{Deserialize, Serialize};

use super::output;
use crate::provider::format::ResponseKey;
use crate::provider::shared::chat;
use crate::provider::shared::identity::hash_id;
use crate::stream::push_bounded;
use crate::text::json::{JsonFields, Value};
use crate::text::names::truncate_name;

/// The reason why a `token_count` gives no event: the response has a record of its own.
pub(super) const TWIN_OF_RECORD: &str = "twin_of_token_usage_record";

/// The id of the quota of the plan. Others are of single models.
const PLAN_LIMIT: &str = "codex";

/// Maximum number of responses remembered. The records of one response are close together.
const MAX_RESPONSES: usize = 64;

/// Maximum number of counts remembered that only totals have shown. The record of the response
/// follows soon, if there is one.
const MAX_UNNAMED_COUNTS: usize = 8;

/// What was counted so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CodexCounts {
    /// The totals in the last `token_count`.
    totals: Option<Usage>,
    /// The last responses with a record of their own, in the order of the log.
    #[serde(default)]
    responses: VecDeque<RecordedResponse>,
    /// Counts of the last responses that only totals have shown.
    #[serde(default)]
    unnamed: VecDeque<Usage>,
}

/// Finds the response that the `response_id` of a record names.
pub(super) fn find_response(id: &str) -> ResponseKey<'_> {
    ResponseKey { response: id.into(), request: None }
}

/// A response with a record of its own.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedResponse {
    /// Hash of the id; 0 if the record gives none.
    id: u64,
    usage: Usage,
    /// True if the totals include the response, or are known to leave it out.
    is_settled: bool,
}

impl CodexCounts {
    /// Returns the new usage in the record of a response, or why there is none.
    pub(super) fn add_response(
        &mut self,
        id: Option<&str>,
        usage: Value<'_>,
    ) -> Result<Usage, &'static str> {
        let usage = read_usage(usage);
        if usage.is_unknown() {
            return Err("empty_token_usage_record");
        }
        let id = id.map_or(0, hash_id);
        let known = self.responses.iter_mut().rev().find(|known| id != 0 && known.id == id);
        if let Some(known) = known {
            if usage.total() <= known.usage.total() {
                return Err("repeated_token_usage_record");
            }
            return Ok(usage.minus(std::mem::replace(&mut known.usage, usage)));
        }

        let twin = self.unnamed.iter().position(|count| *count == usage);
        push_bounded(
            &mut self.responses,
            MAX_RESPONSES,
            RecordedResponse { id, usage, is_settled: twin.is_some() },
        );
        match twin.and_then(|at| self.unnamed.remove(at)) {
            Some(_) => Err("twin_of_token_count"),
            None => Ok(usage),
        }
    }

    /// Returns the new usage in a `token_count` event, or why there is none: the growth of the
    /// totals, without responses that had a record of their own. After a restart, the usage of the
    /// last request counts instead of the growth.
    pub(super) fn add_count(&mut self, event: Value<'_>) -> Result<Usage, &'static str> {
        let info = event.object("info").ok_or("rate_limits_only")?;
        let total = info.object("total_token_usage").map(read_usage);
        let last = info.object("last_token_usage").map(read_usage);
        let before = self.totals;
        if total.is_some() {
            self.totals = total;
        }

        let growth = match (total, last) {
            (Some(total), _) if before == Some(total) => return Err("repeated_token_count"),
            (Some(total), last) => match before.map(|before| total.minus(before)) {
                Some(growth) if growth.is_growth() => growth,
                _ => last.unwrap_or(total),
            },
            (None, Some(last)) => last,
            (None, None) => return Err("empty_token_count"),
        };
        let rest = self.without_recorded(growth, last.unwrap_or(growth));
        if is_nothing(rest) {
            return Err(TWIN_OF_RECORD);
        }
        if rest == growth {
            push_bounded(&mut self.unnamed, MAX_UNNAMED_COUNTS, rest);
        }
        Ok(rest)
    }

    /// Forgets the counts that may still receive a record. A record does not follow in a later turn.
    pub(super) fn end_turn(&mut self) {
        self.unnamed.clear();
    }

    /// Subtracts from the growth of the totals the responses in it that had a record of their own.
    /// `last` is the usage of the last request.
    fn without_recorded(&mut self, growth: Usage, last: Usage) -> Usage {
        let mut rest = growth;
        let mut latest = None;
        while !is_nothing(rest) {
            let wanted = if latest.is_none() { last } else { rest };
            let Some(at) = self.find_unsettled(rest, wanted) else { break };
            self.responses[at].is_settled = true;
            rest = rest.minus(self.responses[at].usage);
            latest = latest.max(Some(at));
        }
        // The totals are explained, so they leave out what was recorded before.
        if let Some(latest) = latest
            && is_nothing(rest)
        {
            for response in self.responses.iter_mut().take(latest) {
                response.is_settled = true;
            }
        }
        rest
    }

    /// Returns the position of a response that may be part of `rest`, the one with the usage
    /// `wanted` first, otherwise the latest.
    fn find_unsettled(&self, rest: Usage, wanted: Usage) -> Option<usize> {
        let fits = |response: &RecordedResponse| {
            !response.is_settled && rest.minus(response.usage).is_growth()
        };
        let exact = self.responses.iter().rposition(|one| fits(one) && one.usage == wanted);
        exact.or_else(|| self.responses.iter().rposition(fits))
    }
}

/// Returns whether usage counts no token.
fn is_nothing(usage: Usage) -> bool {
    usage.total() == 0 && usage.reasoning.unwrap_or(0) == 0
}

/// Returns the quotas that a `token_count` event reports, in the order of the log: for each window
/// its minutes, the used part, and the second since the epoch at which it begins again. Empty if
/// there are none. A limit other than that of the plan is named at the end.
///
/// ```text
/// 300m 20% 1782095529; 10080m 55.5% 1782337450
/// 300m 4% 1782095529; limit GPT-5.3-Codex-Spark
/// ```
pub(super) fn describe_quota(event: Value<'_>) -> String {
    let mut quota = String::new();
    let Some(limits) = event.object("rate_limits") else { return quota };
    for name in ["primary", "secondary"] {
        let Some(window) = limits.object(name) else { continue };
        let used = window.field("used_percent").and_then(output::read_float);
        let (Some(minutes), Some(used)) = (window.int("window_minutes"), used) else { continue };
        if !quota.is_empty() {
            quota.push_str("; ");
        }
        let _ = write!(quota, "{minutes}m {used}%");
        if let Some(resets_at) = window.int("resets_at") {
            let _ = write!(quota, " {resets_at}");
        }
    }
    // Some models have a quota of their own, which is reported instead of that of the plan.
    let id = limits.non_empty("limit_id").unwrap_or(PLAN_LIMIT);
    if !quota.is_empty() && id != PLAN_LIMIT {
        let name = limits.non_empty("limit_name").unwrap_or(id).replace(';', ",");
        let _ = write!(quota, "; limit {}", truncate_name(&name));
    }
    quota
}

/// Parses token counts. Input includes cached tokens, read and written; output includes reasoning.
fn read_usage(usage: Value<'_>) -> Usage {
    let cached = [usage.int("cached_input_tokens"), usage.int("cache_write_input_tokens")];
    Usage {
        output: usage.int("output_tokens"),
        reasoning: usage.int("reasoning_output_tokens"),
        ..chat::without_cache(usage.int("input_tokens"), cached)
    }
}
