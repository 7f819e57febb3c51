//! Recognizes the beginning that a fork or a spawned agent copied. It is written in one burst, and
//! may begin in the middle of its original (docs/formats.md#codex).

use schemas::Confidence;

use super::CodexDecoder;
use super::user_text::UserInput;
use crate::stream::Stream;
use crate::text::json::{JsonFields, Value};

/// Maximum time between two records of a copied beginning, in microseconds.
const MAX_BURST_GAP_US: i64 = 1_000_000;

impl CodexDecoder {
    /// Examines the records that are written together with the head of a fork. An agent that is
    /// given only the last turns begins with a prompt of its parent, at any position of the
    /// parent's log. If the parent is not known, tokens that were counted by then are not the
    /// fork's own.
    pub(super) fn examine_lead_record(
        &mut self,
        time: Option<i64>,
        payload: Option<Value<'_>>,
        identity: Option<u64>,
        out: &mut Stream,
    ) {
        let Some(last) = self.state.lead else { return };
        self.state.lead = time.filter(|now| now - last <= MAX_BURST_GAP_US);
        if self.state.lead.is_none() {
            return;
        }
        let Some(payload) = payload else { return };

        if out.has_history() {
            if let Some(identity) = identity
                && is_prompt(payload)
            {
                out.seek_history(identity);
            }
        } else if payload.text("type") == Some("token_count") && payload.object("info").is_some() {
            self.state.burst = self.state.burst.or(time);
        }
    }

    /// Marks records as copied while a burst lasts. The burst is the copied beginning of a fork or
    /// a spawned agent whose original log is missing.
    pub(super) fn mark_copied_burst(&mut self, time: Option<i64>, out: &mut Stream) {
        let Some(last) = self.state.burst else { return };
        let now = time.unwrap_or(last);
        let is_burst = now - last <= MAX_BURST_GAP_US;
        self.state.burst = is_burst.then_some(now);
        out.set_copied(is_burst);
        if is_burst {
            out.set_confidence(Confidence::Estimated);
        }
    }
}

/// Returns whether a record is a prompt that the user typed.
fn is_prompt(payload: Value<'_>) -> bool {
    let input = match payload.text("type") {
        Some("user_message") => UserInput::from_text(payload.text("message").unwrap_or("")),
        Some("message") if payload.text("role") == Some("user") => {
            UserInput::from_content(payload.field("content"))
        }
        _ => return false,
    };
    !input.is_machine_only()
}
