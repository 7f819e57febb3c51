//! Finds the sessions of the project in which an agent works.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use ingest::discover::real_path;

use super::fence::quote;
use store::{SessionSummary, Snapshot, StoredSession};
use tools::{HistoryScope, MAX_SUBAGENT_DEPTH};

/// Maximum size in bytes of the name of a machine.
const MAX_MACHINE_BYTES: usize = 60;

/// The sessions of a project from which hooks answer.
pub(super) struct ProjectHistory {
    /// The sessions of this machine, and those of the machines that the user named.
    pub(super) quoted: HistoryScope,
    /// The sessions of this machine alone. Only their commands are offered: anyone who can write to
    /// a lake can publish sessions with any command.
    pub(super) own: HistoryScope,
}

/// Where and when an agent asks, and whose sessions may answer.
pub(super) struct ProjectQuestion<'a> {
    /// The folder of the agent.
    pub(super) cwd: &'a Path,
    /// The user's home folder, which is not a project.
    pub(super) home: &'a Path,
    /// The session that asks. It and its subagents are left out, since the agent knows them.
    pub(super) current: Option<&'a str>,
    /// Only sessions that began before this time count, in microseconds since the epoch.
    pub(super) until: i64,
    /// The other machines whose sessions may be quoted.
    pub(super) machines: &'a [String],
    /// Whether the user excludes a folder. Nothing is said there, and its sessions answer nowhere.
    pub(super) is_excluded: &'a (dyn Fn(&str) -> bool + Sync),
}

/// Returns the sessions that ran in the project of a folder. The project is the repository around the
/// folder, or the folder alone if it is in none, or in one that is the whole home folder. Other working
/// copies of the same repository belong to it.
pub(super) fn find_project_history(
    snapshot: &Snapshot,
    question: &ProjectQuestion<'_>,
) -> ProjectHistory {
    let ProjectQuestion { cwd, home, current, until, machines, is_excluded } = *question;
    let root = cwd.ancestors().find(|dir| dir.join(".git").exists());
    let root = root.filter(|root| *root != home && root.parent().is_some());
    let folders = with_resolved(root.unwrap_or(cwd));
    let may_be_quoted = |row: &SessionSummary| {
        let machine = row.origin.machine.as_ref();
        machine.is_none_or(|machine| machines.contains(machine))
    };
    let is_in_folder = |row: &SessionSummary| {
        let Some(folder) = row.origin.cwd.as_deref().map(Path::new) else { return false };
        folders.iter().any(|own| match root {
            Some(_) => folder.starts_with(own),
            None => folder == own,
        })
    };

    let sessions = snapshot.sessions();
    let mut repositories: HashSet<&str> = HashSet::new();
    for row in sessions.iter().filter(|row| may_be_quoted(row) && is_in_folder(row)) {
        repositories
            .extend(row.origin.repository.as_deref().filter(|address| address.contains("://")));
    }
    let mut quoted = HashSet::new();
    let mut own = HashSet::new();
    let is_silent = folders.iter().any(|folder| is_excluded(&folder.to_string_lossy()))
        || is_excluded(&cwd.to_string_lossy());
    let sessions = if is_silent { &[] } else { sessions };
    for (position, row) in sessions.iter().enumerate() {
        let is_same_repository =
            row.origin.repository.as_deref().is_some_and(|address| repositories.contains(address));
        let has_begun = row.started_at.is_some_and(|started| started < until);
        let is_of_project = has_begun
            && may_be_quoted(row)
            && (is_same_repository || is_in_folder(row))
            && row.is_conversation
            && !row.origin.cwd.as_deref().is_some_and(is_excluded);
        if !is_of_project || belongs_to(snapshot, row, current) {
            continue;
        }
        quoted.insert(position);
        if row.origin.machine.is_none() {
            own.insert(position);
        }
    }
    ProjectHistory {
        quoted: HistoryScope { sessions: quoted, until },
        own: HistoryScope { sessions: own, until },
    }
}

/// Returns words about the machine that a session names, after a comma; none if it names none, because
/// it is of this one.
pub(super) fn describe_machine(machine: Option<&str>) -> String {
    machine.map_or_else(String::new, |machine| {
        format!(", on the machine {}", quote(machine, MAX_MACHINE_BYTES))
    })
}

/// Returns a folder with its path without links, which logs may contain instead.
fn with_resolved(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    folders.extend(real_path(folder));
    folders.dedup();
    folders
}

/// Returns true if a session is the one that an agent names `id`, one of its subagents or reviewers, or
/// an earlier version of one of these.
fn belongs_to(snapshot: &Snapshot, session: &StoredSession, id: Option<&str>) -> bool {
    let Some(id) = id else { return false };
    let mut session = session;
    for _ in 0..=MAX_SUBAGENT_DEPTH {
        if session.id() == id || session.native_id() == id {
            return true;
        }
        let is_part = session.is_subagent || session.is_earlier_version;
        let parent = session.parent_session_id.as_deref().filter(|_| is_part);
        if parent == Some(id) {
            return true;
        }
        let Some(next) = parent.and_then(|parent| snapshot.session(parent)) else { return false };
        session = next;
    }
    false
}
