//! Reads Codex's token counts: totals that are repeated and that may restart
//! (docs/formats.md#codex).

use std::fmt::Write as _;

use schemas::Usage;

use super::output;
use crate::text::json::{JsonFields, Value};

/// Returns the new usage in a `token_count` event, or why there is none. `totals` holds the totals
/// of the event before and is updated.
///
/// The growth of the totals includes requests that were aborted before they were recorded. After a
/// restart, the usage of the last request counts.
pub(super) fn read_new_usage(
    event: Value<'_>,
    totals: &mut Option<Usage>,
) -> Result<Usage, &'static str> {
    let info = event.object("info").ok_or("rate_limits_only")?;
    let total = info.object("total_token_usage").map(read_usage);
    let last = info.object("last_token_usage").map(read_usage);
    let before = *totals;
    if total.is_some() {
        *totals = total;
    }

    match (total, last) {
        (Some(total), _) if before == Some(total) => Err("repeated_token_count"),
        (Some(total), last) => Ok(match before.map(|before| total.minus(before)) {
            Some(growth) if growth.is_growth() => growth,
            _ => last.unwrap_or(total),
        }),
        (None, Some(last)) => Ok(last),
        (None, None) => Err("empty_token_count"),
    }
}

/// Returns the quotas that a `token_count` event reports, in the order of the log: for each window
/// its minutes, the used part, and the second since the epoch at which it begins again. Empty if
/// there are none.
///
/// ```text
/// 300m 20% 1782095529; 10080m 55.5% 1782337450
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
    quota
}

/// Parses token counts. Input includes cached tokens, read and written; output includes reasoning.
fn read_usage(usage: Value<'_>) -> Usage {
    let cached = usage.int("cached_input_tokens");
    let written = usage.int("cache_write_input_tokens");
    let outside = cached.unwrap_or(0) + written.unwrap_or(0);
    Usage {
        input: usage.int("input_tokens").map(|input| (input - outside).max(0)),
        output: usage.int("output_tokens"),
        cache_read: cached,
        cache_write: written,
        cache_write_1h: None,
        reasoning: usage.int("reasoning_output_tokens"),
    }
}
