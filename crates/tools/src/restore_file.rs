//! Finds, for `sessions restore --file`, the content of a file as an agent last read or wrote it: from
//! whole reads and writes, from the lines that were read, and from the edits since.

use std::collections::HashMap;

use ingest::discover::RawLog;
use ingest::provider::call_arguments::CallArguments;
use ingest::redact::{Redactor, masked_kinds};
use schemas::session::EventRow;
use schemas::{EventType, ToolError};
use serde::Serialize;

use super::analyze::{Action, pair_calls};
use super::blame::{BlamedFile, WrittenBy, find_calls, is_same_file};
use super::event::{EventSpan, unknown_event_error};
use super::reply::budget::echoed_name;
use super::reply::call::Call;
use super::reply::file_action::read_file_action;
use super::reply::file_state::{FileAction, FileState, KnownText, contiguous_runs};
use super::reply::rows::{find_arguments, find_log, read_all_events, read_event_range};
use super::reply::tools::Tools;
use store::Snapshot;

/// A file as an agent knew it.
#[derive(Debug, Default, Serialize)]
pub struct RestoredFile {
    pub path: String,
    /// The text; of a file that is known in part the lines that are known. `None` if nothing is known, or
    /// if the file was deleted.
    pub content: Option<String>,
    pub is_whole: bool,
    /// Whether the text follows from a whole read or write and edits that fit.
    pub is_certain: bool,
    pub is_deleted: bool,
    /// The call that read or wrote the file, or a part of it, before the edits.
    pub origin: Option<WrittenBy>,
    /// The last call that changed the file or showed something new of it.
    pub last: Option<WrittenBy>,
    /// The number of edits since the origin.
    pub edits: usize,
    /// The first and the last number of the lines that are known, if not all of them are.
    pub lines: Vec<[usize; 2]>,
    /// Number of secrets that are masked in the text.
    pub masked_secrets: usize,
    /// Why the text may be another one.
    pub doubts: Vec<String>,
}

/// A call on the file, in the order of time.
struct CallOnFile {
    session: usize,
    event_index: i32,
    time: Option<i64>,
    action: FileAction,
}

/// Finds the content of a file: the latest, or that before the event `at`.
pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    file: &BlamedFile,
    at: Option<&str>,
    redactor: &Redactor,
    call: &Call<'_>,
) -> Result<RestoredFile, ToolError> {
    let end = at.map(|at| find_event(tools, snapshot, at, call)).transpose()?;
    let mut calls = Vec::new();
    let mut doubts = Vec::new();
    for session in find_calls(snapshot, file, call)?.into_keys() {
        call.ensure_running()?;
        let rows = read_all_events(snapshot, session, call)?;
        add_calls(snapshot, session, &rows, file, redactor, call, (&mut calls, &mut doubts))?;
    }
    calls.sort_by_key(|call| (call.time, call.session, call.event_index));
    if let Some((session, event)) = &end {
        calls.retain(|call| {
            if call.session == *session {
                call.event_index < event.event_index
            } else {
                call.time < event.timestamp
            }
        });
    }

    let mut state = FileState::default();
    let mut origin = None;
    let mut last = None;
    for CallOnFile { session, event_index, time, action } in calls {
        let place = WrittenBy::new(snapshot, session, event_index, time);
        let is_read = matches!(action, FileAction::ReadWhole(_) | FileAction::ReadLines(_));
        let is_new = state.apply(action, &place.event_id);
        if is_new {
            origin = Some(place.clone());
        }
        if is_new || !is_read {
            last = Some(place);
        }
    }
    doubts.extend(state.doubts);
    let mut restored = RestoredFile {
        path: file.path.clone(),
        origin,
        last,
        edits: state.edits,
        is_deleted: state.text == KnownText::Deleted,
        is_certain: doubts.is_empty(),
        doubts,
        ..RestoredFile::default()
    };
    match state.text {
        KnownText::Whole(text) => {
            restored.is_whole = true;
            restored.content = Some(text);
        }
        KnownText::Lines(lines) => {
            restored.lines = contiguous_runs(&lines);
            restored.content = Some(lines.values().map(|line| format!("{line}\n")).collect());
        }
        KnownText::Nothing | KnownText::Deleted => {}
    }
    let masked = restored.content.as_deref().map(|text| masked_kinds(text).count());
    restored.masked_secrets = masked.unwrap_or(0);
    Ok(restored)
}

/// Returns the session and the row of an event.
fn find_event(
    tools: &Tools,
    snapshot: &Snapshot,
    id: &str,
    call: &Call<'_>,
) -> Result<(usize, EventRow), ToolError> {
    let span = EventSpan::parse(id)?;
    let session = tools.caller.find_session(snapshot, &span.session)?;
    let event = read_event_range(snapshot, session, span.indexes(), call)?.into_iter().next();
    let unknown = || unknown_event_error(tools, snapshot, Some(&span), vec![echoed_name(id)]);
    Ok((session, event.ok_or_else(unknown)?))
}

/// Adds the calls of a session on the file to `calls`, and why they may be misread to `doubts`.
fn add_calls(
    snapshot: &Snapshot,
    session: usize,
    rows: &[EventRow],
    file: &BlamedFile,
    redactor: &Redactor,
    call: &Call<'_>,
    (calls, doubts): (&mut Vec<CallOnFile>, &mut Vec<String>),
) -> Result<(), ToolError> {
    let summary = &snapshot.sessions()[session];
    let is_file = |path: &str| is_same_file(path, summary, file);
    let actions: Vec<Action<'_>> = pair_calls(rows)
        .into_iter()
        .filter(|action| action.has_succeeded() && action.files().iter().any(|path| is_file(path)))
        .collect();
    let edits: Vec<&EventRow> = actions
        .iter()
        .filter(|action| action.is_edit() && action.call.event_type == EventType::ToolCall)
        .map(|action| action.call)
        .collect();
    let arguments = find_edits(snapshot, session, &edits, redactor, call)?;
    let is_unread = edits.iter().any(|call| !arguments.contains_key(&call.event_index));
    if is_unread {
        doubts.push(format!(
            "the log of {} does not have its edits any more, so they are read from the stored text, where the end of an argument is not always certain",
            summary.session_id
        ));
    }
    for action in &actions {
        let found = arguments.get(&action.call.event_index);
        if let Some(file_action) = read_file_action(action, found, &is_file) {
            calls.push(CallOnFile {
                session,
                event_index: action.call.event_index,
                time: action.call.timestamp,
                action: file_action,
            });
        }
    }
    Ok(())
}

/// Finds the arguments of calls in the log of their session, by the indexes of the events.
fn find_edits(
    snapshot: &Snapshot,
    session: usize,
    edits: &[&EventRow],
    redactor: &Redactor,
    call: &Call<'_>,
) -> Result<HashMap<i32, CallArguments>, ToolError> {
    if edits.is_empty() {
        return Ok(HashMap::new());
    }
    match find_log(snapshot, session)?.and_then(|row| RawLog::open(&row.path).ok()) {
        Some(mut log) => find_arguments(&mut log, edits.iter().copied(), redactor, call),
        None => Ok(HashMap::new()),
    }
}
