//! Pairs results with their calls, so that a result takes over step, tool, files and command. A
//! result that comes before its call takes over the same but the step, which has not begun.

use super::calls::{CallColumns, OpenCall, hash_call_id};
use super::decoded_event::DecodedEvent;
use super::events::Stream;
use crate::redact::columns::mask_name;

impl Stream {
    /// Returns whether a call with this id waits for its result.
    pub fn has_open_call(&self, call: &str) -> bool {
        self.state.open_calls.is_open(call)
    }

    /// Returns whether the call of a result among the rows not taken yet may still come.
    pub(crate) fn is_call_expected(&self) -> bool {
        self.state.early_results.is_call_expected(self.state.next_index)
    }

    /// Returns whether a call came whose result was in rows taken before, so that the log must be
    /// read from its start to give this result its tool.
    pub(crate) fn has_missed_result(&self) -> bool {
        self.has_missed_result
    }

    /// Remembers a call until its result comes. `time` is that of the call, if it is known.
    pub(super) fn open_call(
        &mut self,
        decoded: &DecodedEvent<'_>,
        time: Option<i64>,
        call: &CallColumns,
    ) {
        let Some(id) = decoded.tool_call_id else { return };
        self.name_early_result(id, decoded.tool_name, call);
        self.state.open_calls.add_call(OpenCall {
            id_hash: hash_call_id(id),
            step: call.step,
            tool: decoded.tool_name.map(|name| mask_name(self.redactor.as_deref(), name)),
            files: call.files.clone(),
            command: call.command.clone(),
            at: time,
        });
    }

    /// Lets a result take over the columns of its call. `time` is that of the result, if it is
    /// known.
    pub(super) fn close_call(
        &mut self,
        decoded: &DecodedEvent<'_>,
        time: Option<i64>,
        columns: &mut CallColumns,
    ) {
        let Some(id) = decoded.tool_call_id else { return };
        let Some(call) = self.state.open_calls.take_call(id) else {
            if decoded.tool_name.is_none() {
                self.state.early_results.add_result(id, self.state.next_index);
            }
            return;
        };
        columns.step = call.step;
        columns.tool = call.tool;
        columns.files = call.files;
        columns.command = call.command;

        // A time taken over from another record says nothing about the duration.
        if columns.duration_ms.is_none()
            && let Some(end) = time
            && let Some(start) = call.at
        {
            let elapsed_ms = end.saturating_sub(start) / 1000;
            columns.duration_ms = (elapsed_ms >= 0).then_some(elapsed_ms);
        }
    }

    /// Gives the result that came before this call the columns of the call.
    fn name_early_result(&mut self, id: &str, tool: Option<&str>, call: &CallColumns) {
        let Some(tool) = tool else { return };
        let next_index = self.state.next_index;
        let Some(index) = self.state.early_results.take_result(id, next_index) else { return };
        let age = usize::try_from(next_index - index).unwrap_or(0);
        match self.row_count().checked_sub(age) {
            Some(own_row) => {
                let row = self.first_row() + own_row;
                self.batch.name_result(row, tool, &call.files, &call.command);
            }
            None => self.has_missed_result = true,
        }
    }
}
