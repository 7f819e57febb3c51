//! Recognizes the beginning that a fork or a spawned agent copied. It is written in one burst, and
//! may begin in the middle of its original (docs/formats.md#codex).

use schemas::Confidence;

use super::{Decoder, output};
use crate::stream::Stream;
use crate::text::json::{Fields, Value};
use crate::text::render;

/// Maximum time between records of a copied beginning, in microseconds.
const BURST_GAP: i64 = 1_000_000;

impl Decoder {
    /// Examines the records that are written together with the head of a fork. An agent that is
    /// given only the last turns begins with a prompt of its parent, at any position of the
    /// parent's log. If the parent is not known, tokens that were counted by then are not the
    /// fork's own.
    pub(super) fn lead(
        &mut self,
        time: Option<i64>,
        payload: Option<Value<'_>>,
        identity: Option<u64>,
        out: &mut Stream,
    ) {
        let Some(last) = self.state.lead else { return };
        self.state.lead = time.filter(|now| now - last <= BURST_GAP);
        let (Some(_), Some(payload)) = (self.state.lead, payload) else { return };
        if !out.has_history() {
            let used = payload.text("type") == Some("token_count");
            if used && payload.object("info").is_some() {
                self.state.burst = self.state.burst.or(time);
            }
        } else if let Some(identity) = identity.filter(|_| is_prompt(payload)) {
            out.seek(identity);
        }
    }

    /// Marks records as copied while a burst lasts. A fork or a spawned agent writes the beginning
    /// that it copied in one burst, and here the original log is missing.
    pub(super) fn copied_burst(&mut self, time: Option<i64>, out: &mut Stream) {
        let Some(last) = self.state.burst else { return };
        let now = time.unwrap_or(last);
        let goes_on = now - last <= BURST_GAP;
        self.state.burst = goes_on.then_some(now);
        out.set_copied(goes_on);
        if goes_on {
            out.set_confidence(Confidence::Estimated);
        }
    }
}

fn is_prompt(payload: Value<'_>) -> bool {
    let mut text = String::new();
    match payload.text("type") {
        Some("user_message") => text.push_str(payload.text("message").unwrap_or("")),
        Some("message") if payload.text("role") == Some("user") => {
            payload.field("content").inspect(|content| render::content(*content, &mut text));
        }
        _ => return false,
    }
    output::machine_text(&text).is_none()
}
