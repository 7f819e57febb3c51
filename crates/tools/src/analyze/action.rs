//! Pairs tool calls with their results, and finds their outcome.

use std::collections::{HashMap, VecDeque};

use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::{EventType, ToolKind};

use super::stop::{StopReason, result_stop_reason};
use crate::reply::convert::shorten;
use crate::reply::event_predicates::{has_failed, is_type};

/// Maximum size in bytes of the call shown in a finding.
const MAX_CALL_BYTES: usize = 240;

/// The columns of the rows that [`pair_calls`] needs. The texts are not among them.
pub(super) const CALL_COLUMNS: &[EventColumn] = &[
    EventColumn::SessionId,
    EventColumn::EventIndex,
    EventColumn::EventType,
    EventColumn::Subtype,
    EventColumn::Timestamp,
    EventColumn::ToolName,
    EventColumn::ToolKind,
    EventColumn::ToolCallId,
    EventColumn::Files,
    EventColumn::Command,
    EventColumn::IsError,
    EventColumn::ExitCode,
    EventColumn::IsReplay,
];

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActionOutcome {
    /// The log has no result for the call.
    Open,
    Worked,
    Failed,
    /// The call was stopped before its end.
    Stopped(StopReason),
}

/// A tool call with its result.
pub(crate) struct Action<'r> {
    /// The call, or the result if the log does not contain the call.
    pub call: &'r EventRow,
    pub result: Option<&'r EventRow>,
    pub kind: ToolKind,
    pub outcome: ActionOutcome,
}

/// Returns the calls of a session in order, without replayed history. A result may precede its
/// call: records are not always written in order.
pub(crate) fn pair_calls(rows: &[EventRow]) -> Vec<Action<'_>> {
    let mut actions = Vec::new();
    let mut results: HashMap<&str, VecDeque<&EventRow>> = HashMap::new();
    for row in rows {
        if row.is_replay || !is_type(row, EventType::ToolResult) {
            continue;
        }
        match &row.tool_call_id {
            Some(id) => results.entry(id).or_default().push_back(row),
            None => actions.push(Action::new(row, Some(row))),
        }
    }
    for row in rows {
        if row.is_replay || !is_type(row, EventType::ToolCall) {
            continue;
        }
        let id = row.tool_call_id.as_deref();
        // An id may occur twice: the first result belongs to the first call.
        let result = id.and_then(|id| results.get_mut(id)?.pop_front());
        actions.push(Action::new(row, result));
    }
    // Results whose call is not in the log.
    let others = results.into_values().flatten();
    actions.extend(others.map(|row| Action::new(row, Some(row))));
    actions.sort_by_key(|action| action.call.event_index);
    actions
}

impl<'r> Action<'r> {
    fn new(call: &'r EventRow, result: Option<&'r EventRow>) -> Self {
        let kind = call
            .tool_kind
            .as_ref()
            .and_then(|kind| kind.parse().ok())
            .or_else(|| kind_by_name(call))
            .or_else(|| result.and_then(kind_by_name));
        let outcome = match result {
            None => ActionOutcome::Open,
            Some(result) => match result_stop_reason(result) {
                Some(reason) => ActionOutcome::Stopped(reason),
                None if has_failed(result) => ActionOutcome::Failed,
                None => ActionOutcome::Worked,
            },
        };
        Self { call, result, kind: kind.unwrap_or(ToolKind::Other), outcome }
    }

    /// Returns true if the log shows that the call succeeded.
    pub(crate) fn has_succeeded(&self) -> bool {
        self.outcome == ActionOutcome::Worked
    }

    /// Returns the event that shows the outcome: the result, or the call if it has no result.
    pub(crate) fn outcome_event(&self) -> &'r EventRow {
        self.result.unwrap_or(self.call)
    }

    /// Returns the name of the tool.
    pub(crate) fn tool_name(&self) -> Option<&'r str> {
        let result_tool = self.result.and_then(|result| result.tool_name.as_deref());
        self.call.tool_name.as_deref().or(result_tool)
    }

    pub(crate) fn files(&self) -> &'r [String] {
        self.call.files.as_deref().unwrap_or_default()
    }

    pub(crate) fn command(&self) -> Option<&'r str> {
        self.call.command.as_deref()
    }

    /// Returns true if the call changes files: an edit, or a patch in a command line.
    pub(crate) fn is_edit(&self) -> bool {
        match self.kind {
            ToolKind::Edit | ToolKind::Write => true,
            ToolKind::Execute => !self.files().is_empty(),
            ToolKind::Read
            | ToolKind::Search
            | ToolKind::Web
            | ToolKind::Plan
            | ToolKind::Agent
            | ToolKind::Mcp
            | ToolKind::Other => false,
        }
    }

    /// Returns what was called, shortened: the command line, the files, or the arguments.
    pub(crate) fn describe_call(&self) -> Option<String> {
        let files = self.files().join(", ");
        let text: &str = match self.command() {
            Some(command) if self.files().is_empty() => command,
            _ if !files.is_empty() => &files,
            _ if is_type(self.call, EventType::ToolCall) => &self.call.text,
            _ => return None,
        };
        Some(shorten(text, MAX_CALL_BYTES)).filter(|text| !text.is_empty())
    }
}

/// Returns the kind of tool that the name of a row's tool shows.
fn kind_by_name(row: &EventRow) -> Option<ToolKind> {
    row.tool_name.as_deref().map(ToolKind::from_name)
}
