//! Finds the sessions of other machines that logs of this machine continue, so that they do not count
//! twice.

use std::collections::{HashMap, HashSet};

use ingest::plan::excluded::log_identity;
use ingest::plan::safe_session_id;
use schemas::session::{SourceRow, SourceStatus};
use serde::Deserialize;

use super::history::EventHistory;
use super::keys::LAKE_PATH;
use crate::error::StoreError;
use crate::labels::LabelBook;
use crate::snapshot::Snapshot;
use crate::writer::{StoreWriter, is_log_of};

/// What the state of an imported session says; see `pull`.
#[derive(Deserialize)]
struct ImportedLog {
    /// The identity of its log.
    log: String,
}

/// The identity of the log of an imported session, by its source. `None` for another source.
fn imported_identity(source: &SourceRow) -> Option<String> {
    let state = source.state.as_deref().filter(|_| source.path.starts_with(LAKE_PATH))?;
    serde_json::from_str::<ImportedLog>(state).ok().map(|imported| imported.log)
}

/// The sessions of one log, on this machine and from others.
#[derive(Debug, Clone, Default)]
pub struct LogCopies {
    /// Positions in the snapshot of the sessions of this machine, with the paths of their logs.
    pub local: Vec<(usize, String)>,
    /// Positions of the sessions of other machines.
    pub imported: Vec<usize>,
}

impl Snapshot {
    /// Returns the logs that both this machine and another one have, by their identities.
    ///
    /// # Errors
    /// Fails if the catalog cannot be read.
    pub fn logs_of_several_machines(&self) -> Result<HashMap<String, LogCopies>, StoreError> {
        let mut logs: HashMap<String, LogCopies> = HashMap::new();
        if self.sessions().iter().all(|session| session.origin.machine.is_none()) {
            return Ok(logs);
        }
        let sources = self.read_sources(true)?;
        for source in &sources {
            let (Some(log), Some(id)) = (imported_identity(source), &source.session_id) else {
                continue;
            };
            if let Some(at) = self.session_position(id) {
                logs.entry(log).or_default().imported.push(at);
            }
        }
        for source in &sources {
            let Some(at) = source.session_id.as_deref().and_then(|id| self.session_position(id))
            else {
                continue;
            };
            let session = &self.sessions()[at];
            let is_own = source.status == SourceStatus::Ok
                && session.origin.machine.is_none()
                && is_log_of(session, source);
            if is_own && let Some(copies) = logs.get_mut(&log_identity(session.row()?, source)) {
                copies.local.push((at, source.path.clone()));
            }
        }
        logs.retain(|_, copies| !copies.local.is_empty() && !copies.imported.is_empty());
        Ok(logs)
    }
}

impl StoreWriter {
    /// Removes the sessions of other machines of which a log of this one has all events. Their labels go to
    /// the session of the log. Returns the paths of the logs that must be read again: their session has
    /// another id than the log says, which the removed one had. After a kill before that, the next ingest
    /// reads them.
    ///
    /// # Errors
    /// Fails if the store cannot be read or written.
    pub fn settle_continued(&self) -> Result<Vec<String>, StoreError> {
        let snapshot = self.take_snapshot()?;
        let mut removed = HashSet::new();
        let mut again = Vec::new();
        let mut labels = Vec::new();
        let book = LabelBook::read(&self.dir, None);
        for LogCopies { local, imported } in snapshot.logs_of_several_machines()?.into_values() {
            for (at, path) in local {
                let session = &snapshot.sessions()[at];
                let is_shorter =
                    |other: &&usize| snapshot.sessions()[**other].events <= session.events;
                let mut others = imported.iter().filter(is_shorter).peekable();
                if others.peek().is_none() {
                    continue;
                }
                let own = EventHistory::of_session(&snapshot, at)?;
                for other_at in others {
                    let other = &snapshot.sessions()[*other_at];
                    if !own.contains(&EventHistory::of_session(&snapshot, *other_at)?) {
                        continue;
                    }
                    removed.insert(other.id().to_owned());
                    let row = session.row()?;
                    let native = safe_session_id(row.native_id.as_deref().unwrap_or(session.id()));
                    let takes_id = other.id() == native && session.id() != native;
                    if takes_id {
                        removed.insert(session.id().to_owned());
                        again.push(path.clone());
                    }
                    let id = if takes_id { other.id() } else { session.id() };
                    labels.extend(book.session_labels(other.id()).map(|own| (id, own.clone())));
                }
            }
        }
        if removed.is_empty() {
            return Ok(again);
        }
        self.remove_imported(&removed)?;
        if !labels.is_empty() {
            LabelBook::update(&self.dir, |book| {
                for (id, labels) in labels {
                    *book.entry(id) = labels;
                }
            })?;
        }
        Ok(again)
    }
}
