//! Pairs tool calls with their results, and finds how they came out.

use std::collections::{HashMap, VecDeque};

use schemas::session::EventRow;
use schemas::{EventType, ToolKind};

use super::finding::short;
use super::stop::{Stop, stop};
use crate::tools::reply::event_predicates::{failed, is};

/// Maximum size in bytes of the call shown in a finding.
const CALL: usize = 240;

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The log has no result for the call.
    Open,
    Worked,
    Failed,
    /// The call was stopped before its end.
    Stopped(Stop),
}

/// A tool call with its result.
pub(super) struct Action<'r> {
    /// The call, or the result if the log does not contain the call.
    pub call: &'r EventRow,
    pub result: Option<&'r EventRow>,
    pub kind: ToolKind,
    pub outcome: Outcome,
}

/// Returns the calls of a session in order, without replayed history. A result may precede its
/// call: records are not always written in order.
pub(super) fn actions(rows: &[EventRow]) -> Vec<Action<'_>> {
    let own = || rows.iter().filter(|row| !row.is_replay);
    let mut actions = Vec::new();
    let mut results: HashMap<&str, VecDeque<&EventRow>> = HashMap::new();
    for row in own().filter(|row| is(row, EventType::ToolResult)) {
        match &row.tool_call_id {
            Some(id) => results.entry(id).or_default().push_back(row),
            None => actions.push(Action::new(row, Some(row))),
        }
    }
    for row in own().filter(|row| is(row, EventType::ToolCall)) {
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
        let named = |row: &EventRow| row.tool_name.as_deref().map(ToolKind::of);
        let known = call.tool_kind.as_ref().and_then(|kind| kind.parse().ok());
        let kind = known.or_else(|| named(call)).or_else(|| result.and_then(named));
        let outcome = match result {
            None => Outcome::Open,
            Some(result) => match stop(result) {
                Some(stop) => Outcome::Stopped(stop),
                None if failed(result) => Outcome::Failed,
                None => Outcome::Worked,
            },
        };
        Self { call, result, kind: kind.unwrap_or(ToolKind::Other), outcome }
    }

    pub(super) fn worked(&self) -> bool {
        self.outcome == Outcome::Worked
    }

    /// Returns the event that shows the outcome: the result, or the call if it has no result.
    pub(super) fn shown(&self) -> &'r EventRow {
        self.result.unwrap_or(self.call)
    }

    pub(super) fn tool(&self) -> Option<&'r str> {
        let of_result = || self.result.and_then(|result| result.tool_name.as_deref());
        self.call.tool_name.as_deref().or_else(of_result)
    }

    pub(super) fn files(&self) -> &'r [String] {
        self.call.files.as_deref().unwrap_or_default()
    }

    pub(super) fn command(&self) -> Option<&'r str> {
        self.call.command.as_deref()
    }

    /// Returns true if the call changes files: an edit, or a patch in a command line.
    pub(super) fn edits(&self) -> bool {
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
    pub(super) fn label(&self) -> Option<String> {
        let files = || Some(self.files().join(", ")).filter(|files| !files.is_empty());
        let of_call = is(self.call, EventType::ToolCall).then_some(self.call.text.as_str());
        let text = match self.command().filter(|_| self.files().is_empty()) {
            Some(command) => command.to_owned(),
            None => files().or_else(|| of_call.map(str::to_owned))?,
        };
        Some(short(&text, CALL)).filter(|text| !text.is_empty())
    }
}
