//! Follows which lines were in a file when, over the sessions that read or edited it.
//!
//! A line that a session saw before it was inserted, in the file or in the output of any call, was
//! there already or came from elsewhere: to insert it again does not write it.

use std::collections::HashMap;

use schemas::ToolKind;

use super::inserted::{FileChange, InsertedPart, KnownFile, read_change, read_lines};
use super::runs::{MIN_LINE_LETTERS, count_letters};
use crate::analyze::Action;
use crate::reply::reader_output::split_number;
use base::sanitize::clean_text;

/// A call that reads or edits the file.
pub(super) struct FileCall {
    /// The position of the session.
    pub session: usize,
    pub event_index: i32,
    pub time: Option<i64>,
    change: FileChange,
    /// The lines that a reading call shows.
    shown: Vec<String>,
}

/// The lines that the calls of a session printed, each with the event at which it did first.
type PrintedLines = HashMap<String, i32>;

/// The calls on a file over all sessions.
#[derive(Default)]
pub(super) struct FileHistory {
    calls: Vec<FileCall>,
    /// By the position of the session.
    printed: HashMap<usize, PrintedLines>,
}

/// An edit with the parts of the file that it leaves. Lines are new only if they were not seen
/// before.
pub(super) struct FileEdit {
    pub session: usize,
    pub event_index: i32,
    pub time: Option<i64>,
    pub parts: Vec<InsertedPart>,
    /// The number of lines that the edit added.
    pub added: usize,
    /// The number of lines that the edit is known to have removed.
    pub removed: usize,
}

/// The first appearance of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstSeen {
    /// In the file, before an edit of the sessions inserted it.
    Before,
    /// Inserted by the session at this position.
    InsertedBy(usize),
}

impl FileHistory {
    /// Adds the calls of a session. `is_file` recognizes the file by a path of its log.
    pub(super) fn add_session(
        &mut self,
        session: usize,
        actions: &[Action<'_>],
        is_file: &dyn Fn(&str) -> bool,
    ) {
        let mut known = KnownFile::default();
        for action in actions.iter().filter(|action| action.has_succeeded()) {
            if !action.is_edit() {
                self.add_printed(session, action);
            }
            if !action.files().iter().any(|path| is_file(path)) {
                continue;
            }
            let change = if action.is_edit() {
                read_change(action, is_file, &known)
            } else {
                FileChange::default()
            };
            known.learn(action, is_file);
            let read = action.result.filter(|_| action.kind == ToolKind::Read);
            let shown = read.map(|result| clean_text(&result.text)).unwrap_or_default();
            self.calls.push(FileCall {
                session,
                event_index: action.call.event_index,
                time: action.call.timestamp,
                change,
                shown: read_lines(&shown),
            });
        }
    }

    /// Adds the lines that a call printed.
    fn add_printed(&mut self, session: usize, action: &Action<'_>) {
        let Some(result) = action.result else { return };
        let printed = self.printed.entry(session).or_default();
        let text = clean_text(&result.text);
        for line in text.lines() {
            // What looks like a number may be one of `grep -n`, or belong to the line.
            let unnumbered = split_number(line).map(|(_, line)| line);
            for line in unnumbered.into_iter().chain([line]) {
                if count_letters(line) >= MIN_LINE_LETTERS {
                    printed.entry(plain_line(line).to_owned()).or_insert(result.event_index);
                }
            }
        }
    }

    /// Returns the edits in the order of time.
    pub(super) fn into_edits(mut self) -> Vec<FileEdit> {
        self.calls.sort_by_key(|call| (call.time, call.session, call.event_index));
        let mut seen: HashMap<String, FirstSeen> = HashMap::new();
        let mut edits = Vec::new();
        for call in self.calls {
            let added = call.change.count_added();
            let removed = call.change.count_removed();
            for line in call.shown.into_iter().chain(call.change.before) {
                seen.entry(line).or_insert(FirstSeen::Before);
            }
            let printed = self.printed.get(&call.session);
            let was_printed = |line: &str| {
                let first = printed.and_then(|printed| printed.get(plain_line(line)));
                first.is_some_and(|first| *first < call.event_index)
            };
            let mut parts = call.change.parts;
            for line in parts.iter_mut().flatten().filter(|line| line.is_new) {
                let first = seen.entry(line.text.clone()).or_insert_with(|| {
                    if was_printed(&line.text) {
                        FirstSeen::Before
                    } else {
                        FirstSeen::InsertedBy(call.session)
                    }
                });
                line.is_new = *first == FirstSeen::InsertedBy(call.session);
            }
            if !parts.is_empty() || added + removed > 0 {
                edits.push(FileEdit {
                    session: call.session,
                    event_index: call.event_index,
                    time: call.time,
                    parts,
                    added,
                    removed,
                });
            }
        }
        edits
    }
}

/// Returns a line without its indentation and the mark of a diff.
fn plain_line(line: &str) -> &str {
    line.trim().trim_start_matches(['+', '-', ' '])
}
