//! What an ingest that may have nothing to do needs to know of each session.

use std::collections::HashMap;

use ingest::plan::excluded::{LogFacts, LogFilter as _};
use ingest::redact::columns::is_masked_path;
use schemas::Provider;

use super::log_rules::LogRules;
use base::text_index::TextIndex;
use store::{Snapshot, SourceSummary, SourceTable, StoredSession};

/// Facts about the sessions of a snapshot that do not depend on the sources.
pub(super) struct SessionFacts {
    /// The positions of the sessions, by their ids.
    index: TextIndex,
    /// Whether the rules exclude each session by its agent and its project.
    is_unwanted: Vec<bool>,
}

impl SessionFacts {
    /// Collects the facts about `sessions`, in their order.
    pub(super) fn of_sessions(sessions: &[StoredSession], rules: &LogRules) -> Self {
        let mut index = TextIndex::new(sessions.len());
        for (at, session) in sessions.iter().enumerate() {
            index.insert(session.id(), at, |at| sessions[at].id());
        }
        Self { index, is_unwanted: find_unwanted(sessions, rules) }
    }
}

/// The sessions of a store, and which of them each source names.
pub(super) struct KnownSessions<'s> {
    sessions: &'s [StoredSession],
    facts: &'s SessionFacts,
    /// Position of the session of each source, by the number of the source.
    of_sources: Vec<Option<usize>>,
    rules: &'s LogRules,
    /// False if the log of each session is certainly at the path of the source that names the
    /// session.
    must_compare_paths: bool,
}

impl<'s> KnownSessions<'s> {
    /// Matches the sessions of a snapshot, which have these `facts`, with these sources.
    pub(super) fn new(
        snapshot: &'s Snapshot,
        facts: &'s SessionFacts,
        sources: &SourceTable,
        rules: &'s LogRules,
    ) -> Self {
        let sessions = snapshot.sessions();
        let mut known = Self {
            sessions,
            facts,
            rules,
            of_sources: vec![None; sources.row_count()],
            must_compare_paths: false,
        };
        for source in sources.iter() {
            let id = sources.session_id(source);
            known.of_sources[source.number] =
                id.and_then(|id| facts.index.find(id, |at| sessions[at].id()));
        }
        known.must_compare_paths = known.may_have_moved();
        known
    }

    /// Returns the position of the session that a source names. `None` if it names none that is
    /// known.
    pub(super) fn of_source(&self, source: &SourceSummary) -> Option<usize> {
        self.of_sources[source.number]
    }

    /// Returns whether some session may be of another log than a source that names it.
    ///
    /// The row of a session is written together with the row of the source that is its log. So if
    /// one source names a session, this is its log. A log that was moved is named by two sources; a
    /// session whose log got another id has no rows.
    fn may_have_moved(&self) -> bool {
        let mut is_named = vec![false; self.sessions.len()];
        for at in self.of_sources.iter().copied().flatten() {
            let summary = &self.sessions[at];
            let is_empty = summary.live_from > summary.segment;
            if std::mem::replace(&mut is_named[at], true) || is_empty {
                return true;
            }
        }
        false
    }

    /// Returns whether the file at `path`, whose source names the session, is its log.
    pub(super) fn has_log(&self, session: usize, path: &str) -> bool {
        !self.must_compare_paths || is_masked_path(&self.sessions[session].source_path, path)
    }

    /// Returns whether the rules exclude a source, whose session is the one at `session`.
    pub(super) fn is_excluded(&self, source: &SourceSummary, session: Option<usize>) -> bool {
        match session {
            Some(session) => self.facts.is_unwanted[session],
            None => self.rules.is_excluded(&facts_of(source.state.provider, None)),
        }
    }

    /// Returns the number of sessions with events that the rules exclude. They are about logs of
    /// this machine.
    pub(super) fn count_unwanted(&self) -> usize {
        let unwanted =
            self.sessions.iter().zip(&self.facts.is_unwanted).filter(|(session, is_unwanted)| {
                **is_unwanted && session.events > 0 && session.origin.machine.is_none()
            });
        unwanted.count()
    }
}

/// Returns whether the rules, which do not depend on paths, exclude each session. Most sessions
/// share few projects, so each project is asked about once.
fn find_unwanted(sessions: &[StoredSession], rules: &LogRules) -> Vec<bool> {
    let mut known: HashMap<(Provider, Option<&str>), bool> = HashMap::new();
    let mut is_unwanted = Vec::with_capacity(sessions.len());
    for session in sessions {
        let project = session.origin.cwd.as_deref();
        let of_project = known.entry((session.provider, project));
        let facts = || facts_of(Some(session.provider), project);
        is_unwanted.push(*of_project.or_insert_with(|| rules.is_unwanted(&facts())));
    }
    is_unwanted
}

/// Returns the facts about a log by which rules that do not depend on paths decide.
fn facts_of(provider: Option<Provider>, project: Option<&str>) -> LogFacts<'_> {
    LogFacts { project, ..LogFacts::of_path("", provider) }
}
