//! Finds the last edit of a file in the sessions after a passage that names it.

use std::collections::HashMap;

use schemas::{EventType, ToolKind};

use super::project::LaterSessions;
use crate::analyze::{PastRow, subtype_stop_reason};
use base::paths::{last_part, resolve_path};
use store::{RowFacts, SkipIndex, Snapshot, StoreError};

/// Maximum number of rows whose facts are read for all passages of an answer. If sessions that name one of
/// the files have more, nothing is said about edits.
const MAX_ROWS: usize = 1 << 17;

/// A file that a passage names.
pub(super) struct EditedFile<'a> {
    /// The position of the session among those that are recalled.
    owner: usize,
    later: &'a LaterSessions<'a>,
    /// The time of the passage, in microseconds since the epoch.
    time: i64,
    /// As the passage names it.
    shown: String,
    /// The full path, with slashes.
    path: String,
}

impl<'a> EditedFile<'a> {
    /// Creates the file that a passage at a time names. `owner` is the position of its session.
    pub(super) fn new(
        owner: usize,
        time: i64,
        later: &'a LaterSessions<'a>,
        shown: &str,
        path: String,
    ) -> Self {
        Self { owner, later, time, shown: shown.to_owned(), path }
    }

    pub(super) fn shown(&self) -> &str {
        &self.shown
    }

    /// True if another session may have edited it after the passage. Paths are those of one machine.
    fn may_be_edited_in(&self, snapshot: &Snapshot, session: usize) -> bool {
        let other = &snapshot.sessions()[session];
        self.later.sessions.contains(&session)
            && other.origin.machine == self.later.session.origin.machine
            && other.ended_at > Some(self.time)
    }

    /// True if a path of a session's log is the file.
    fn is_file(&self, path: &str, folder: Option<&str>) -> bool {
        resolve_path(folder, path).replace('\\', "/") == self.path
    }
}

/// The last edit of one of the files of a session, in another session. The order is that of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LaterEdit {
    /// The result of the edit.
    pub(super) row: PastRow,
    /// Position in the list of files.
    pub(super) file: usize,
}

/// Returns for each of the recalled sessions, of which there are `owners`, the last edit of its files after
/// the passages that name them; `None` if there is none, or if more would have to be read to know it.
pub(super) fn find_later_edits(
    snapshot: &Snapshot,
    files: &[EditedFile<'_>],
    owners: usize,
) -> Result<Vec<Option<LaterEdit>>, StoreError> {
    let mut found: Vec<Option<LaterEdit>> = vec![None; owners];
    let mut rows = 0;
    for segment in snapshot.segments() {
        let spans = segment.spans.iter();
        let is_possible = |session| {
            files.iter().any(|file: &EditedFile<'_>| file.may_be_edited_in(snapshot, session))
        };
        let spans: Vec<_> = spans.filter(|span| is_possible(span.session)).collect();
        if spans.is_empty() {
            continue;
        }
        let index = segment.skip_index()?;
        let lists = lists_with_files(index, files)?;
        if lists.is_empty() {
            continue;
        }
        rows += spans.iter().map(|span| span.count).sum::<usize>();
        if rows > MAX_ROWS {
            return Ok(vec![None; owners]);
        }
        for span in spans {
            let folder = snapshot.sessions()[span.session].origin.cwd.as_deref();
            let facts = index.read_facts(span.start..span.start + span.count)?;
            for (fact, event_index) in facts.iter().zip(span.first_index..) {
                let Some(named) = lists.get(&fact.file_list) else { continue };
                let Some(time) = fact.time else { continue };
                if !is_edit(&fact, index)? {
                    continue;
                }
                for at in named {
                    let file = &files[*at];
                    let is_later = time > file.time && time < file.later.until;
                    if is_later
                        && file.may_be_edited_in(snapshot, span.session)
                        && names_file(index, fact.file_list, file, folder)?
                    {
                        let row = PastRow { time, session: span.session, event_index };
                        let last = &mut found[file.owner];
                        *last = (*last).max(Some(LaterEdit { row, file: *at }));
                    }
                }
            }
        }
    }
    Ok(found)
}

/// Returns the lists of files of a segment that may have one of the files, each with the positions of these
/// in `files`.
fn lists_with_files(
    index: &SkipIndex,
    files: &[EditedFile<'_>],
) -> Result<HashMap<u32, Vec<usize>>, StoreError> {
    let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, file) in files.iter().enumerate() {
        by_name.entry(last_part(&file.path)).or_default().push(at);
    }
    let mut lists: HashMap<u32, Vec<usize>> = HashMap::new();
    for (list, paths) in (0..).zip(index.file_lists()?) {
        let named = paths.lines().filter_map(|path| by_name.get(last_part(path)));
        let named: Vec<usize> = named.flatten().copied().collect();
        if !named.is_empty() {
            lists.insert(list, named);
        }
    }
    Ok(lists)
}

/// Returns true if a list of files has a file. Its relative paths are below `folder`.
fn names_file(
    index: &SkipIndex,
    list: u32,
    file: &EditedFile<'_>,
    folder: Option<&str>,
) -> Result<bool, StoreError> {
    let paths = index.file_lists()?.get(list as usize);
    Ok(paths.into_iter().flat_map(|paths| paths.lines()).any(|path| file.is_file(path, folder)))
}

/// Returns true if a row is the result of a call that changed its files, as `Action::is_edit` and
/// `Action::has_succeeded` decide it. Results that do not say whether the call failed do not count.
fn is_edit(fact: &RowFacts, index: &SkipIndex) -> Result<bool, StoreError> {
    let is_result = fact.event_type == EventType::ToolResult;
    if !is_result || fact.is_replay || fact.is_error != Some(false) {
        return Ok(false);
    }
    let Some(tags) = index.row_tags()?.get(fact.tags as usize) else { return Ok(false) };
    let kind = tags.tool.as_deref().map(ToolKind::from_name);
    let is_stopped =
        tags.subtype.as_deref().is_some_and(|subtype| subtype_stop_reason(subtype).is_some());
    let is_edit = matches!(kind, Some(ToolKind::Edit | ToolKind::Write | ToolKind::Execute));
    Ok(is_edit && !is_stopped)
}
