//! Creates findings.

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Finding};

use crate::reply::convert;
use base::sanitize::clean_text;

/// Maximum number of other events that a finding lists.
pub(super) const MAX_RELATED_EVENTS: usize = 5;

/// Creates a finding at an event.
pub(super) fn finding_at(
    check: Check,
    severity: Severity,
    row: &EventRow,
    reason: String,
) -> Finding {
    Finding {
        check,
        severity,
        reason,
        event_id: convert::event_id(row),
        session_id: row.session_id.clone(),
        event_index: convert::unsigned_index(row.event_index),
        turn_index: convert::unsigned_index(row.turn_index),
        step_index: convert::unsigned_index(row.step_index),
        event_type: row.event_type,
        timestamp: convert::format_time(row.timestamp),
        tool_name: row.tool_name.as_deref().map(clean_text),
        call: None,
        message: None,
        signature: None,
        occurrences: None,
        sessions: None,
        fixed: None,
        duration_ms: None,
        bytes: None,
        tokens: None,
        related_event_ids: Vec::new(),
        fix: None,
        lost: None,
    }
}
