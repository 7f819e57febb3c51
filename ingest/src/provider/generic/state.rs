//! Tracks which side of the conversation the last records of a log belong to.

use serde::{Deserialize, Serialize};

use crate::stream::Stream;

/// The side of the conversation that the last records belong to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct GenericState {
    /// True while a response of the model is under way.
    pub(super) in_response: bool,
    /// True if no response came since the last prompt.
    pub(super) after_prompt: bool,
}

impl GenericState {
    /// Records output of the model. Begins a step if `starts_step` is true or no response is
    /// under way.
    pub(super) fn record_output(&mut self, starts_step: bool, out: &mut Stream) {
        if starts_step || !self.in_response {
            out.begin_step();
        }
        self.in_response = true;
        self.after_prompt = false;
    }

    /// Records a result, which ends the response.
    pub(super) fn end_response(&mut self) {
        self.in_response = false;
    }

    /// Records a prompt, which ends the response.
    pub(super) fn record_prompt(&mut self) {
        self.in_response = false;
        self.after_prompt = true;
    }
}
