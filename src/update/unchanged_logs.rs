//! Finds out whether an ingest has nothing to do. This takes the compact form of what the store knows
//! of each log; a plan takes all rows. Whenever something differs, or is not certain, it is planned.

use std::collections::HashMap;
use std::path::Path;

use ingest::discover::Discovery;
use ingest::plan::excluded::{LogFacts, LogFilter as _};
use ingest::provider::companion_paths;
use ingest::redact::columns::is_masked_path;
use schemas::ToolError;
use schemas::session::SourceStatus;

use super::log_rules::LogRules;
use crate::error::store_error;
use crate::store::{LAKE_PATH, SourceBrief, SourceTable, StoreWriter, StoredSession};
use crate::tools::reply::pending::is_below;

/// What the store knows of the logs, in compact form.
pub(super) struct KnownLogs {
    sources: SourceTable,
}

/// The logs of a run in which none changed.
pub(super) struct UnchangedLogs {
    /// The number of sessions in the store that the rules exclude.
    pub(super) unwanted_sessions: usize,
}

impl KnownLogs {
    /// Reads what the store knows.
    pub(super) fn read(writer: &StoreWriter) -> Result<Self, ToolError> {
        let before = writer.snapshot_before();
        let sources = before.read_source_table().map_err(store_error)?;
        before.read_session_paths().map_err(store_error)?;
        Ok(Self { sources })
    }

    /// Returns `None` if some log may have to be read, or some row to be changed. `rules_version` is the
    /// version of the rules in force that mask secrets.
    pub(super) fn find_unchanged(
        &self,
        found: &Discovery,
        writer: &StoreWriter,
        rules: &LogRules,
        rules_version: i64,
    ) -> Option<UnchangedLogs> {
        let before = writer.snapshot_before();
        let is_certain = found.problems.is_empty()
            && !rules.depends_on_paths()
            && !writer.has_reduced_sessions()
            && before.incomplete_sessions().next().is_none();
        if !is_certain {
            return None;
        }

        let mut is_found = vec![false; self.sources.row_count()];
        for file in &found.files {
            let source = file.with_key(|key| self.sources.find(key))?;
            if !is_settled(source) || !source.state.is_current(file) {
                return None;
            }
            is_found[source.number] = true;
        }
        let sessions = before.sessions();
        let sessions: HashMap<&str, &StoredSession> =
            sessions.iter().map(|session| (session.id(), session)).collect();
        for source in self.sources.iter() {
            let session = self.sources.session_id(source).and_then(|id| sessions.get(id).copied());
            let path = self.sources.path(source);
            if path.starts_with(LAKE_PATH) {
                continue;
            }
            let is_as_planned = if is_found[source.number] {
                self.is_read_by_rules(source, session, rules, rules_version)
            } else {
                // A missing file below a root has vanished.
                let is_missing = source.status != SourceStatus::Gone
                    && found.roots.iter().any(|root| is_below(path, root));
                // The log of a companion that was found alone is looked at, too.
                let has_found_companion =
                    self.companions(source).any(|companion| is_found[companion.number]);
                !is_missing
                    && !has_found_companion
                    && self.is_masked_or_moved(source, session, rules_version)
            };
            if !is_as_planned {
                return None;
            }
        }
        let unwanted =
            before.sessions().iter().filter(|session| rules.is_unwanted_brief(session.brief()));
        Some(UnchangedLogs { unwanted_sessions: unwanted.count() })
    }

    /// Returns whether a file that was found is the log of its session, was read by the rules in force,
    /// and is not left out.
    fn is_read_by_rules(
        &self,
        source: &SourceBrief,
        session: Option<&StoredSession>,
        rules: &LogRules,
        rules_version: i64,
    ) -> bool {
        let path = self.sources.path(source);
        let log = LogFacts {
            path,
            provider: session
                .map_or(source.state.provider, |session| Some(session.brief().provider)),
            project: session.and_then(|session| session.brief().cwd.as_deref()),
            identity: None,
        };
        source.state.redaction_rules == rules_version
            && source.state.is_of_this_decoder()
            && session.is_none_or(|session| is_masked_path(session.log_path(), path))
            && !rules.is_excluded(&log)
    }

    /// Returns the known files next to a log that have more facts about its session.
    fn companions(&self, source: &SourceBrief) -> impl Iterator<Item = &SourceBrief> {
        let provider = source.state.provider;
        let log = Path::new(self.sources.path(source));
        let paths = provider.into_iter().flat_map(move |provider| companion_paths(provider, log));
        paths.filter_map(|path| self.sources.find(&path.to_string_lossy()))
    }

    /// Returns whether what is stored of a known file that was not found was masked by the rules in
    /// force. Otherwise it is masked again, if the file is the log of its session.
    fn is_masked_or_moved(
        &self,
        source: &SourceBrief,
        session: Option<&StoredSession>,
        rules_version: i64,
    ) -> bool {
        let is_masked = rules_version == 0 || source.state.redaction_rules == rules_version;
        if !source.state.has_session || is_masked {
            return true;
        }
        let path = self.sources.path(source);
        session.is_some_and(|session| !is_masked_path(session.log_path(), path))
    }
}

/// Returns whether a file in this state is read only if it changes.
fn is_settled(source: &SourceBrief) -> bool {
    match source.status {
        SourceStatus::Ok | SourceStatus::Empty | SourceStatus::Beside | SourceStatus::Failed => {
            true
        }
        SourceStatus::UnknownFormat => !source.state.has_session,
        SourceStatus::Gone | SourceStatus::Excluded => false,
    }
}
