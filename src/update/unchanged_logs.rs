//! Finds out whether an ingest has nothing to do. This takes the compact form of what the store knows
//! of each log; a plan takes all rows. Whenever something differs, or is not certain, it is planned.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use ingest::discover::{Discovery, discover_observed, is_below_root, real_path};
use ingest::provider::companion_paths;
use ingest::source::candidate::LogCandidate;
use schemas::session::SourceStatus;
use schemas::{Provider, ToolError};

use super::known_sessions::{KnownSessions, SessionFacts};
use super::log_rules::LogRules;
use store::{LAKE_PATH, Manifest, SourceSummary, SourceTable, Store, StoreWriter};
use tools::error::store_error;
use tools::reply::pending::is_below;

/// A scan of all logs. Each is compared with the sources of the store as soon as it is found.
pub(super) struct SourceScan {
    /// The manifest of the store whose sources these are.
    manifest: Manifest,
    sources: SourceTable,
    /// Whether the file of each source was found.
    is_found: Vec<AtomicBool>,
    /// True if some file may have to be read.
    has_news: AtomicBool,
}

/// The logs of a run in which none changed.
pub(super) struct UnchangedLogs {
    /// The number of sessions in the store that the rules exclude.
    pub(super) unwanted_sessions: usize,
}

/// Finds the logs below `roots`, and compares them with what `store` has at this moment. The store
/// is not locked: see [`SourceScan::with_sources_of`].
pub(super) fn scan_logs(store: &Store, roots: &[PathBuf]) -> (SourceScan, Discovery) {
    // Without sources all files are new. Locking the store reports what is wrong with it.
    let known = store.read_source_table();
    let (manifest, sources) = known.unwrap_or_default();
    let mut scan = SourceScan::new(manifest, sources);
    let dir = real_path(store.dir()).ok();
    let observed = AtomicUsize::new(0);
    let found = discover_observed(roots, &|file| {
        observed.fetch_add(1, Ordering::Relaxed);
        let is_news = !scan.has_news() && scan.compare(file);
        if is_news && dir.as_ref().is_none_or(|dir| !file.path.starts_with(dir)) {
            scan.has_news.store(true, Ordering::Relaxed);
        }
    });
    let has_duplicates = found.files.len() < observed.into_inner();
    let found = found.without_folder(store.dir());
    // Of a log that is there plain and compressed, only the plain file counts.
    if scan.has_news() && has_duplicates {
        scan = scan.compared_with(&found);
    }
    (scan, found)
}

impl SourceScan {
    fn new(manifest: Manifest, sources: SourceTable) -> Self {
        let is_found = (0..sources.row_count()).map(|_| AtomicBool::new(false)).collect();
        Self { manifest, sources, is_found, has_news: AtomicBool::new(false) }
    }

    /// Returns the scan of these files against the sources of `writer`, which holds the lock of
    /// the store. Another process may have written to it since.
    pub(super) fn with_sources_of(
        self,
        writer: &StoreWriter,
        found: &Discovery,
    ) -> Result<Self, ToolError> {
        let before = writer.snapshot_before();
        // The lists of what was removed differ sooner: the writer leaves out what is long gone.
        let Manifest { generation, segments, .. } = before.manifest();
        if self.manifest.generation == *generation && self.manifest.segments == *segments {
            return Ok(self);
        }
        let sources = before.read_source_table().map_err(store_error)?;
        Ok(Self::new(before.manifest().clone(), sources).compared_with(found))
    }

    /// Returns the agents whose logs the store knows.
    pub(super) fn agents(&self) -> BTreeSet<Provider> {
        self.sources.iter().filter_map(|source| source.state.provider).collect()
    }

    /// Compares all files again.
    fn compared_with(self, found: &Discovery) -> Self {
        let scan = Self::new(self.manifest, self.sources);
        let has_news = found.files.iter().any(|file| scan.compare(file));
        Self { has_news: AtomicBool::new(has_news), ..scan }
    }

    /// Compares a file with its source. Returns whether it may have to be read.
    fn compare(&self, file: &LogCandidate) -> bool {
        let source = file.with_key(|key| self.sources.find(key));
        let known = source.filter(|source| is_settled(source) && source.state.is_current(file));
        known.is_none_or(|source| self.is_found[source.number].swap(true, Ordering::Relaxed))
    }

    fn has_news(&self) -> bool {
        self.has_news.load(Ordering::Relaxed)
    }

    fn has_found(&self, source: &SourceSummary) -> bool {
        self.is_found[source.number].load(Ordering::Relaxed)
    }

    /// Returns `None` if some log may have to be read, or some row to be changed. `found` are the
    /// files of the scan, and `facts` are about the sessions of the store. `rules_version` is the
    /// version of the rules in force that mask secrets.
    pub(super) fn find_unchanged(
        &self,
        found: &Discovery,
        writer: &StoreWriter,
        facts: &SessionFacts,
        rules: &LogRules,
        rules_version: i64,
    ) -> Option<UnchangedLogs> {
        let before = writer.snapshot_before();
        let is_certain = !self.has_news()
            && found.problems.is_empty()
            && !rules.depends_on_paths()
            && !writer.has_reduced_sessions()
            && before.incomplete_sessions().next().is_none();
        if !is_certain {
            return None;
        }

        let sessions = KnownSessions::new(before, facts, &self.sources, rules);
        for source in self.sources.iter() {
            let path = self.sources.path(source);
            if path.starts_with(LAKE_PATH) {
                continue;
            }
            let session = sessions.of_source(source);
            let is_as_planned = if self.has_found(source) {
                self.is_read_by_rules(source, session, &sessions, rules_version)
            } else {
                // A missing file below a root has vanished. A root may be a database.
                let is_in = |root: &PathBuf| {
                    is_below(path, root) || path.contains('#') && is_below_root(path, root)
                };
                let is_missing =
                    source.status != SourceStatus::Gone && found.roots.iter().any(is_in);
                // The log of a companion that was found alone is checked, too.
                let has_found_companion =
                    self.companions(source).any(|companion| self.has_found(companion));
                !is_missing && !has_found_companion
            };
            if !is_as_planned {
                return None;
            }
        }
        Some(UnchangedLogs { unwanted_sessions: sessions.count_unwanted() })
    }

    /// Returns whether a file that was found is the log of its session, was read by the rules in force,
    /// and is not left out.
    fn is_read_by_rules(
        &self,
        source: &SourceSummary,
        session: Option<usize>,
        sessions: &KnownSessions<'_>,
        rules_version: i64,
    ) -> bool {
        let path = self.sources.path(source);
        source.state.redaction_rules == rules_version
            && source.state.is_of_this_decoder()
            && session.is_none_or(|session| sessions.has_log(session, path))
            && !sessions.is_excluded(source, session)
    }

    /// Returns the known files next to a log that have more facts about its session.
    fn companions(&self, source: &SourceSummary) -> impl Iterator<Item = &SourceSummary> {
        let provider = source.state.provider;
        let log = Path::new(self.sources.path(source));
        let paths = provider.into_iter().flat_map(move |provider| companion_paths(provider, log));
        paths.filter_map(|path| self.sources.find(&path.to_string_lossy()))
    }
}

/// Returns whether a file in this state is read only if it changes.
fn is_settled(source: &SourceSummary) -> bool {
    match source.status {
        SourceStatus::Ok | SourceStatus::Empty | SourceStatus::Sidecar | SourceStatus::Failed => {
            true
        }
        SourceStatus::UnknownFormat => !source.state.has_session,
        SourceStatus::Gone | SourceStatus::Excluded => false,
    }
}
