//! Finds which session wrote the lines of a file, by the text that its edits inserted.
//!
//! The time of an edit does not count as evidence. A line that no edit in the store is known to have
//! inserted has no session.

mod history;
mod inserted;
mod runs;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use schemas::{EventType, Provider, ToolError};
use serde::Serialize;

use self::history::{FileEdit, FileHistory};
use self::runs::FileLines;
use super::analyze::pair_calls;
use super::reply::call::Call;
use super::reply::{convert, rows};
use crate::error::{search_error, store_error};
use base::paths::resolve_path;
use base::sanitize::one_line;
use search::{Query, SearchRequest, search};
use store::{SessionSummary, Snapshot, single_event_ranges};

/// Maximum number of calls and results about files of this name that are read.
const MAX_ROWS: usize = 50_000;

/// Number of folders of a relative path from which the path alone identifies the file.
const MIN_PATH_PARTS: usize = 3;

/// The file to examine.
#[derive(Debug, Clone)]
pub struct BlamedFile {
    /// The full path on this machine.
    pub path: String,
    /// The path below the root of its repository, with `/`; the file name without one.
    pub relative: String,
    /// Names of the repository: of its folder, and at the end of the addresses of its remotes.
    pub names: Vec<String>,
    pub text: String,
    /// Only these lines, from 1; `None` means all.
    pub lines: Option<RangeInclusive<usize>>,
    /// Whether the edits of the file are listed, too.
    pub has_edits: bool,
}

/// The sessions that wrote a file.
#[derive(Debug, Clone, Serialize)]
pub struct BlameData {
    pub path: String,
    /// The lines in order; neighbours from the same edit are one span.
    pub spans: Vec<BlameSpan>,
    /// Number of lines whose session is known.
    pub known_lines: usize,
    /// Number of lines that were examined.
    pub lines: usize,
    /// The edits of the file, the newest first. `None` if they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub edits: Option<Vec<CountedEdit>>,
}

/// An edit of a file, with the number of lines that it changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CountedEdit {
    #[serde(flatten)]
    pub edit: WrittenBy,
    /// Lines that the edit added.
    pub added: usize,
    /// Lines that the edit is known to have removed. A log that has only the new text of a file does
    /// not show them.
    pub removed: usize,
}

/// Lines of a file from the same edit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlameSpan {
    /// The first and the last line, from 1.
    pub lines: [usize; 2],
    /// The edit; `None` if no session is known to have written the lines.
    pub written_by: Option<WrittenBy>,
}

/// The edit that wrote lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WrittenBy {
    pub session_id: String,
    pub event_id: String,
    pub provider: Provider,
    pub timestamp: Option<String>,
    pub title: Option<String>,
}

/// Finds the edits that wrote the lines of a file.
pub(super) fn run(
    snapshot: &Snapshot,
    file: &BlamedFile,
    call: &Call<'_>,
) -> Result<BlameData, ToolError> {
    let lines = FileLines::new(&file.text);
    let edits = read_history(snapshot, file, call)?.into_edits();
    let mut writers: Vec<Option<&FileEdit>> = vec![None; lines.len()];
    for edit in &edits {
        for part in &edit.parts {
            for line in lines.inserted_lines(part) {
                if let Some(writer) = writers.get_mut(line) {
                    *writer = Some(edit);
                }
            }
        }
    }

    let wanted = file.lines.clone().unwrap_or(1..=lines.len());
    let counted = edits.iter().rev().map(|edit| CountedEdit {
        edit: WrittenBy::new(snapshot, edit.session, edit.event_index, edit.time),
        added: edit.added,
        removed: edit.removed,
    });
    let mut data = BlameData {
        path: file.path.clone(),
        spans: Vec::new(),
        known_lines: 0,
        lines: 0,
        edits: file.has_edits.then(|| counted.collect()),
    };
    for (number, writer) in (1..).zip(&writers).filter(|(number, _)| wanted.contains(number)) {
        let written_by =
            writer.map(|edit| WrittenBy::new(snapshot, edit.session, edit.event_index, edit.time));
        data.lines += 1;
        data.known_lines += usize::from(written_by.is_some());
        match data.spans.last_mut() {
            Some(last) if last.written_by == written_by => last.lines[1] = number,
            _ => data.spans.push(BlameSpan { lines: [number, number], written_by }),
        }
    }
    Ok(data)
}

impl WrittenBy {
    /// Describes an event of the session at this position.
    pub(crate) fn new(
        snapshot: &Snapshot,
        session: usize,
        event_index: i32,
        time: Option<i64>,
    ) -> Self {
        let row = &snapshot.sessions()[session];
        let index = convert::unsigned_index(event_index);
        Self {
            session_id: row.session_id.clone(),
            event_id: schemas::EventId::format(&row.session_id, index),
            provider: row.provider,
            timestamp: convert::format_time(time),
            title: row.title.as_deref().map(|title| one_line(&convert::clean_title(title))),
        }
    }
}

/// Finds the calls and results about files with this name: the indexes of their events by session.
pub(crate) fn find_calls(
    snapshot: &Snapshot,
    file: &BlamedFile,
    call: &Call<'_>,
) -> Result<BTreeMap<usize, BTreeSet<u32>>, ToolError> {
    let name = file.relative.rsplit('/').next().unwrap_or(&file.relative);
    let mut found: BTreeMap<usize, BTreeSet<u32>> = BTreeMap::new();
    // A quote would end the quoted name; such a name is not searched for.
    let text = format!("file:\"{name}\"");
    let Ok(query) = Query::parse_in_zone(&text, call.now, &call.zone) else { return Ok(found) };
    let request = SearchRequest {
        event_types: vec![EventType::ToolCall, EventType::ToolResult],
        limit: MAX_ROWS,
        ..SearchRequest::any(&query, Some(call.search_deadline()))
    };
    let page = search(snapshot, &request, call.stop).map_err(search_error)?;
    for hit in page.hits {
        found.entry(hit.session).or_default().insert(hit.event_index);
    }
    Ok(found)
}

/// Reads the calls on the file, and what the sessions that edited it printed.
fn read_history(
    snapshot: &Snapshot,
    file: &BlamedFile,
    call: &Call<'_>,
) -> Result<FileHistory, ToolError> {
    let mut history = FileHistory::default();
    for (session, indexes) in find_calls(snapshot, file, call)? {
        call.ensure_running()?;
        let row = &snapshot.sessions()[session];
        let is_file = |path: &str| is_same_file(path, row, file);
        let ranges = single_event_ranges(&indexes);
        let mut events =
            snapshot.events_of(session, &ranges, &[]).read_rows().map_err(store_error)?;
        let is_edited = pair_calls(&events)
            .iter()
            .any(|action| action.is_edit() && action.files().iter().any(|path| is_file(path)));
        if is_edited {
            events = rows::read_all_events(snapshot, session, call)?;
        }
        history.add_session(session, &pair_calls(&events), &is_file);
    }
    Ok(history)
}

/// Returns true if a path of a session's log is the file: the same full path, or the same path below
/// the root of the repository. A short path identifies the file only in a session of this
/// repository.
pub(crate) fn is_same_file(path: &str, session: &SessionSummary, file: &BlamedFile) -> bool {
    let full = resolve_path(session.origin.cwd.as_deref(), path).replace('\\', "/");
    if full == file.path {
        return true;
    }
    let Some(before) = full.strip_suffix(&file.relative) else { return false };
    if !before.is_empty() && !before.ends_with('/') {
        return false;
    }
    let is_long = file.relative.split('/').count() >= MIN_PATH_PARTS;
    is_long || is_of_repository(before, session, file)
}

/// Returns true if a session, or the folder in which its log names the file, is of the repository.
fn is_of_repository(folder: &str, session: &SessionSummary, file: &BlamedFile) -> bool {
    let repository = session.origin.repository.as_deref().map(|address| {
        let address = address.trim_end_matches('/');
        let name = address.rsplit(['/', '\\', ':']).next().unwrap_or(address);
        name.strip_suffix(".git").unwrap_or(name)
    });
    let folder = folder.trim_end_matches('/').rsplit('/').next();
    [repository, session.origin.project.as_deref(), folder]
        .into_iter()
        .flatten()
        .any(|name| file.names.iter().any(|known| known == name))
}
