//! The state of the decoder between two records of a log: whether the model or the user is writing.

use serde::{Deserialize, Serialize};

use crate::stream::Stream;

/// The side of the conversation that the last records belong to.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct State {
    /// True while a response of the model is under way.
    pub(super) in_response: bool,
    /// True if no response came since the last prompt.
    pub(super) after_prompt: bool,
}

impl State {
    /// Records output of the model. Begins a step if `anew` is true or no response is under way.
    pub(super) fn respond(&mut self, anew: bool, out: &mut Stream) {
        if anew || !self.in_response {
            out.begin_step();
        }
        self.in_response = true;
        self.after_prompt = false;
    }

    /// Records a result, which ends the response.
    pub(super) fn rest(&mut self) {
        self.in_response = false;
    }

    /// Records a prompt, which ends the response.
    pub(super) fn ask(&mut self) {
        self.in_response = false;
        self.after_prompt = true;
    }
}
