//! Selects the sessions whose logs `sessions restore` writes back, and says why a log cannot be.

use std::collections::BTreeSet;

use ingest::discover::{LogFinder, is_log_file};
use ingest::rows::has_rows;
use schemas::{ErrorCode, Provider, ToolError};
use serde::Serialize;

use super::Tools;
use super::forget::add_parts;
use super::reply::call::Call;
use super::reply::interface::Interface;
use super::reply::log_presence::has_log;
use crate::error::store_error;
use base::sanitize::clean_text;
use store::{KeepLevel, KeepLogs, LogArchive, LookupError, Snapshot, StoredSession};

/// The sessions to restore.
#[derive(Debug, Clone, Default)]
pub struct RestoreSelection {
    /// Session ids or their unique prefixes.
    pub session_ids: Vec<String>,
    /// All sessions of this machine.
    pub all: bool,
    /// Only sessions whose log does not exist.
    pub lost: bool,
}

/// What `sessions restore` did with the logs of sessions.
#[derive(Debug, Default, Serialize)]
pub struct RestoreData {
    pub sessions: Vec<RestoredSession>,
    pub restored: usize,
    /// The sessions whose log exists.
    pub existing: usize,
    pub not_restored: usize,
    /// True if nothing was written.
    pub is_dry_run: bool,
}

/// A session, and what became of its log.
#[derive(Debug, Serialize)]
pub struct RestoredSession {
    pub session_id: String,
    pub provider: Provider,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub outcome: RestoreOutcome,
    /// Why the log was not restored, or what threatens it now, and the next step, in whole sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The files that were written, the log first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<WrittenFile>,
}

/// What became of the log of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    Restored,
    /// The log is there, so that there is nothing to restore.
    LogExists,
    NotArchived,
    Failed,
}

/// A file that was written.
#[derive(Debug, Serialize)]
pub struct WrittenFile {
    pub path: String,
    pub bytes: u64,
    /// True if secrets are masked in it. Otherwise it equals the original byte for byte.
    pub is_masked: bool,
}

impl RestoreData {
    /// Adds a session to the list and the sums.
    pub fn push(&mut self, session: RestoredSession) {
        match session.outcome {
            RestoreOutcome::Restored => self.restored += 1,
            RestoreOutcome::LogExists => self.existing += 1,
            RestoreOutcome::NotArchived | RestoreOutcome::Failed => self.not_restored += 1,
        }
        self.sessions.push(session);
    }
}

/// Returns the positions of the selected sessions, with their subagents.
///
/// # Errors
/// Fails if an id names no session or several, and if the store cannot be read.
pub fn select_restored(
    tools: &Tools,
    selection: &RestoreSelection,
    archive: Option<&LogArchive>,
    finder: &mut LogFinder,
    call: &Call<'_>,
) -> Result<BTreeSet<usize>, ToolError> {
    let snapshot = tools.snapshot(call)?;
    let mut selected = BTreeSet::new();
    for id in &selection.session_ids {
        let id = id.trim();
        let found = snapshot.find_session(id);
        selected.insert(found.map_err(|error| lookup_error(tools, id, error))?);
    }
    add_parts(snapshot, &mut selected, &|row| row.is_subagent);
    if selection.all {
        for (at, session) in snapshot.sessions().iter().enumerate() {
            let is_archived = archive.is_some_and(|archive| archive.has_session(session.id()));
            let is_lost = session.row().map_err(store_error)?.source_gone;
            let is_own = session.origin.machine.is_none() && !session.is_earlier_version;
            if is_own && session.events > 0 && (is_archived || is_lost) {
                selected.insert(at);
            }
        }
    }
    if selection.lost {
        let mut lost = BTreeSet::new();
        for at in selected {
            if !has_log(&snapshot.sessions()[at], archive, finder)? {
                lost.insert(at);
            }
        }
        return Ok(lost);
    }
    Ok(selected)
}

/// Returns the error for an id. A forgotten session has left nothing.
fn lookup_error(tools: &Tools, id: &str, error: LookupError) -> ToolError {
    let forgotten = tools.store().read_forgotten();
    let is_forgotten = matches!(error, LookupError::NotFound { .. })
        && forgotten.is_ok_and(|logs| logs.session_ids().any(|known| known.starts_with(id)));
    if is_forgotten {
        let message = format!(
            "Session {} was forgotten: nothing of it is kept, and its log cannot be restored",
            clean_text(id)
        );
        return ToolError::new(ErrorCode::SessionNotFound, message);
    }
    Interface::Commands.lookup_error(id, error)
}

/// Returns why the archive does not have the log of a session, which is gone, and the next step.
pub fn explain_missing(
    snapshot: &Snapshot,
    session: &StoredSession,
    keep: KeepLogs,
) -> Result<String, ToolError> {
    if session.origin.machine.is_some() {
        let machine = clean_text(snapshot.machine_of(session));
        return Ok(format!(
            "It is a session of the machine {machine}. `sessions resume {}` restores it here if its log came with it",
            session.id()
        ));
    }
    let reduced = snapshot.reduced_sessions().map_err(store_error)?;
    if reduced.level_of(session.id()) > KeepLevel::Full {
        return Ok("The retention dropped its texts, and its log with them".to_owned());
    }
    let row = session.row().map_err(store_error)?;
    if let Some(later) = row.parent_session_id.as_ref().filter(|_| row.is_earlier_version()) {
        return Ok(format!(
            "It is an earlier version of {later}, whose log was rewritten; the archive keeps the latest version only"
        ));
    }
    if !is_log_file(&row.source_path) && !has_rows(&row.source_path) {
        return Ok(format!(
            "Sessions that {} keeps in a database or in many files of this kind are not archived. `sessions resume {} --with AGENT` hands it over to another agent",
            row.provider,
            session.id()
        ));
    }
    let handover = format!("`sessions resume {} --with AGENT` hands it over", session.id());
    Ok(match keep {
        KeepLogs::No => format!(
            "Its log was not archived. {handover}. For other sessions, set keep_logs under [store] in settings.toml to \"masked\" or \"exact\""
        ),
        KeepLogs::Masked | KeepLogs::Exact => {
            format!("Its log was gone before it could be archived. {handover}")
        }
    })
}
