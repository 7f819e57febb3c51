//! Finds the sessions of the project in which an agent works.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use schemas::session::SessionRow;

use crate::store::{SessionBrief, Snapshot, StoredSession};
use crate::tools::{HistoryScope, MAX_SUBAGENT_DEPTH};

/// Returns the sessions that ran in the project of the folder `cwd` before the time `until`. The
/// project is the repository around the folder, or the folder alone if it is in none, or in one that
/// is the whole home folder. Other working copies of the same repository belong to it. `current` is
/// the session that asks; it and its subagents are left out, since the agent knows them.
pub(super) fn project_scope(
    snapshot: &Snapshot,
    cwd: &Path,
    home: &Path,
    current: Option<&str>,
    until: i64,
) -> HistoryScope {
    let root = cwd.ancestors().find(|dir| dir.join(".git").exists());
    let root = root.filter(|root| *root != home && root.parent().is_some());
    let folders = with_resolved(root.unwrap_or(cwd));
    let is_in_folder = |row: &SessionBrief| {
        let Some(folder) = row.origin.cwd.as_deref().map(Path::new) else { return false };
        folders.iter().any(|own| match root {
            Some(_) => folder.starts_with(own),
            None => folder == own,
        })
    };

    let sessions = snapshot.sessions();
    let mut repositories: HashSet<&str> = HashSet::new();
    for row in sessions.iter().map(StoredSession::brief).filter(|row| is_in_folder(row)) {
        repositories
            .extend(row.origin.repository.as_deref().filter(|address| address.contains("://")));
    }
    let mut wanted = HashSet::new();
    for (position, session) in sessions.iter().enumerate() {
        let row = session.brief();
        let is_same_repository =
            row.origin.repository.as_deref().is_some_and(|address| repositories.contains(address));
        let has_begun = row.started_at.is_some_and(|started| started < until);
        if has_begun
            && (is_same_repository || is_in_folder(row))
            && row.is_conversation
            && !current.is_some_and(|current| belongs_to(snapshot, session, current))
        {
            wanted.insert(position);
        }
    }
    HistoryScope { sessions: wanted, until }
}

/// Returns a folder with its path without links, which logs may contain instead.
fn with_resolved(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    folders.extend(folder.canonicalize());
    folders.dedup();
    folders
}

/// Returns true if a session is the one that an agent names `id`, or one of its subagents.
fn belongs_to(snapshot: &Snapshot, row: &SessionRow, id: &str) -> bool {
    let is_it = |row: &SessionRow| row.session_id == id || row.native_id.as_deref() == Some(id);
    let mut row = row;
    for _ in 0..=MAX_SUBAGENT_DEPTH {
        if is_it(row) {
            return true;
        }
        let is_part = row.relation.as_deref() == Some("subagent_of");
        let parent = row.parent_session_id.as_deref().filter(|_| is_part);
        if parent == Some(id) {
            return true;
        }
        let Some(next) = parent.and_then(|parent| snapshot.session(parent)) else { return false };
        row = next;
    }
    false
}
