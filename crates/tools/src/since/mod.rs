//! Says what is known to have happened since a passage was written: a line of facts, each exact or left
//! out. Nothing says that a passage still holds: a line that is missing means that nothing is known.
//!
//! ```text
//! revisited: 3f9a21c0:57 (2026-03-04); failed again: 3f9a21c0:61 (2026-03-04); src/a.rs edited: 77b0e1d2:12 (2026-03-09)
//! ```

mod edited;
mod passage;
mod project;
mod revisited;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use schemas::session::EventRow;
use schemas::{EventId, EventType, Timestamp, ToolError, Zone};

use self::edited::{EditedFile, find_later_edits};
use self::passage::{PassageFacts, read_facts};
use self::project::LaterSessions;
use self::revisited::{Statement, find_later_statements};
use super::analyze::{HistoryScope, PastRow, find_later_failure, pair_calls};
use super::reply::convert::unsigned_index;
use super::reply::event_predicates::{has_failed, is_type, own_rows};
use crate::error::store_error;
use base::paths::last_part;
use base::sanitize::{clean_text, cut_for_json, one_line};
use store::Snapshot;

/// Maximum size of the name of a file in bytes of JSON.
const MAX_FILE_BYTES: usize = 48;

/// Maximum size in bytes of what happened since the passages of a session.
pub const MAX_SINCE_BYTES: usize = 160;

/// The same since the end of a session.
const MAX_END_BYTES: usize = 200;

/// Maximum number of the last failures and of the last edited files whose fate is looked for.
const MAX_END_FAILURES: usize = 3;
const MAX_END_FILES: usize = 40;

/// Number of sessions, the first ones, for which later statements are looked for, which takes longest.
const MAX_REVISITED: usize = 3;

/// A session that is recalled, and what an answer quotes of it.
pub struct RecalledSession<'a> {
    /// Position in `Snapshot::sessions`.
    pub session: usize,
    /// The events that are quoted, each with the text that is shown.
    pub passages: Vec<(u32, &'a str)>,
}

/// Returns for each session a line about what happened since its passages were written, of at most
/// `max_bytes` bytes, or `None` if nothing is known. Only sessions in `scope` are named; `None` stands
/// for all. Days are those of `zone`.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn describe_since(
    snapshot: &Snapshot,
    recalled: &[RecalledSession<'_>],
    scope: Option<&HistoryScope>,
    zone: &Zone,
    max_bytes: usize,
) -> Result<Vec<Option<String>>, ToolError> {
    let later: Vec<LaterSessions<'_>> = recalled
        .iter()
        .map(|recalled| LaterSessions::find(snapshot, recalled.session, scope))
        .collect();
    let mut passages: Vec<PassageFacts<'_>> = Vec::new();
    for (owner, recalled) in recalled.iter().enumerate() {
        for (event_index, text) in &recalled.passages {
            let place = (recalled.session, *event_index);
            passages.extend(read_facts(snapshot, owner, place, text).map_err(store_error)?);
        }
    }

    let mut files: Vec<EditedFile<'_>> = Vec::new();
    let mut known_files: Vec<Option<BTreeSet<String>>> = vec![None; recalled.len()];
    let mut statements: Vec<Statement<'_>> = Vec::new();
    let mut failures: Vec<Option<PastRow>> = vec![None; recalled.len()];
    for passage in &passages {
        let later = &later[passage.owner];
        let known = &mut known_files[passage.owner];
        if !later.sessions.is_empty() {
            files.extend(passage.name_files(snapshot, later, known).map_err(store_error)?);
        }
        if passage.owner < MAX_REVISITED {
            statements.extend(Statement::of_passage(passage, later));
        }
        if !later.sessions.is_empty() && passage.may_have_failed(snapshot).map_err(store_error)? {
            let scope = later.as_scope();
            let found = find_later_failure(snapshot, passage.session, passage.event_index, &scope)?;
            failures[passage.owner] = failures[passage.owner].max(found);
        }
    }
    let edits = find_later_edits(snapshot, &files, recalled.len()).map_err(store_error)?;
    let revisits = find_later_statements(snapshot, &statements).map_err(store_error)?;

    let mut lines = Vec::new();
    for (owner, edit) in edits.into_iter().enumerate() {
        let mut facts = Vec::new();
        let revisit = statements.iter().zip(&revisits).filter(|(of, _)| of.owner() == owner);
        if let Some(row) = revisit.filter_map(|(_, row)| *row).max() {
            facts.push(format!("revisited: {}", describe_place(snapshot, row, zone)));
        }
        if let Some(row) = failures[owner] {
            facts.push(format!("failed again: {}", describe_place(snapshot, row, zone)));
        }
        if let Some(edit) = edit {
            let name = short_path(&one_line(&clean_text(files[edit.file].shown())));
            facts.push(format!("{name} edited: {}", describe_place(snapshot, edit.row, zone)));
        }
        lines.push(join_facts(facts, max_bytes));
    }
    Ok(lines)
}

/// Returns what happened since the end of a session: since its last answer, its last failures, and its last
/// edit of each file. `events` are all its events in order.
pub(crate) fn describe_since_end(
    snapshot: &Snapshot,
    session: usize,
    events: &[EventRow],
    zone: &Zone,
) -> Result<Option<String>, ToolError> {
    let own = own_rows(events);
    let is_answer =
        |row: &&&EventRow| is_type(row, EventType::Message) && !row.text.trim().is_empty();
    let failed = own.iter().rev().filter(|row| is_type(row, EventType::ToolResult));
    let failed = failed.filter(|row| has_failed(row)).take(MAX_END_FAILURES);
    let quoted = own.iter().rfind(is_answer).into_iter().chain(failed);
    let mut passages: BTreeMap<u32, &str> =
        quoted.map(|row| (unsigned_index(row.event_index), row.text.as_str())).collect();

    let actions = pair_calls(events);
    let mut edited = HashSet::new();
    for action in actions.iter().rev().filter(|action| action.is_edit() && action.has_succeeded()) {
        let known = edited.len();
        edited.extend(action.files());
        if edited.len() > known && edited.len() <= MAX_END_FILES {
            passages.insert(unsigned_index(action.outcome_event().event_index), "");
        }
    }
    let recalled = [RecalledSession { session, passages: passages.into_iter().collect() }];
    let lines = describe_since(snapshot, &recalled, None, zone, MAX_END_BYTES)?;
    Ok(lines.into_iter().next().flatten())
}

/// Names an event and its day: `3f9a21c0:57 (2026-03-04)`.
fn describe_place(snapshot: &Snapshot, row: PastRow, zone: &Zone) -> String {
    let id = snapshot.short_id(snapshot.sessions()[row.session].id());
    let place = EventId::format(&id, row.event_index);
    match zone.day(Timestamp(row.time)) {
        Some(day) => format!("{place} ({day})"),
        None => place,
    }
}

/// Returns a path, or its last part if it is long.
fn short_path(path: &str) -> String {
    let shown = if path.len() > MAX_FILE_BYTES { last_part(path) } else { path };
    cut_for_json(shown, MAX_FILE_BYTES)
}

/// Joins the facts that fit; `None` if none does.
fn join_facts(facts: Vec<String>, max_bytes: usize) -> Option<String> {
    let mut line = String::new();
    for fact in facts {
        let separator = if line.is_empty() { "" } else { "; " };
        if line.len() + separator.len() + fact.len() <= max_bytes {
            line.push_str(separator);
            line.push_str(&fact);
        }
    }
    Some(line).filter(|line| !line.is_empty())
}
