//! Refreshes the store on calls of a server: checks whether logs grew and ingests the changes in
//! the background. A call waits for this only for a moment.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ingest::discover::{find_file, real_path};
use ingest::source::candidate::{Container, LogCandidate};
use schemas::session::SourceStatus;
use schemas::{ErrorCode, ToolError};

use super::ingest_logs::{IngestOptions, MAX_NAMED_FILES, ingest_logs};
use super::masking::mask_by_rules_in_force;
use super::root_watch::{FilesToCheck, RootWatch};
use super::watch::can_be_read;
use crate::config::{environment, settings};
use store::{SourceSummary, SourceTable, Store};
use tools::error::store_error;
use tools::reply::pending::{find_all_changed_logs, find_changed_logs, paths_elsewhere};
use tools::{Freshness, Refresh, UnreadReason};

/// Files that differ from the store, and the files of the store.
type FoundChanges = (Vec<LogCandidate>, Arc<SourceTable>);

/// Minimum time between the end of one check and the start of the next.
const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Keeps a store up to date with the logs of this machine and with those from which it was built.
pub(crate) struct Refresher(Arc<SharedRefresh>);

/// For whom a store is kept up to date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefreshUser {
    /// A server, which looks again and again.
    Server,
    /// A command, which looks once. A store that others can write to, or that cannot be read, stays
    /// as it is: the answer of the command says so.
    Command,
}

struct SharedRefresh {
    store: Arc<Store>,
    user: RefreshUser,
    state: Mutex<RefreshState>,
    done: Condvar,
}

#[derive(Default)]
struct RefreshState {
    /// Start of the current run.
    running: Option<Instant>,
    /// True while the current run may still mask text of the store by changed rules. All calls wait
    /// for it.
    is_masking: bool,
    /// End of the last run.
    ended: Option<Instant>,
    known: Freshness,
    /// The files of the store, with the generation in which they were read.
    sources: Option<(u64, Arc<SourceTable>)>,
    /// Files that could not be ingested, with their size and modification time of that attempt.
    /// They are not tried again until they change.
    stuck: HashMap<String, (u64, i64)>,
    watch: RootWatch,
}

impl Refresher {
    /// Returns what keeps a store up to date between the calls of a server.
    pub(crate) fn for_server(store: Arc<Store>) -> Self {
        Self::new(store, RefreshUser::Server)
    }

    /// Returns what brings a store up to date once, before a command answers.
    pub(crate) fn for_command(store: Arc<Store>) -> Self {
        Self::new(store, RefreshUser::Command)
    }

    fn new(store: Arc<Store>, user: RefreshUser) -> Self {
        let state = Mutex::default();
        Self(Arc::new(SharedRefresh { store, user, state, done: Condvar::new() }))
    }
}

impl Refresh for Refresher {
    fn refresh(&self, wait: Duration) {
        let mut state = self.0.lock_state();
        let running = state.running;
        let begun = match running {
            Some(begun) => begun,
            None if state.ended.is_some_and(|ended| ended.elapsed() < MIN_CHECK_INTERVAL) => return,
            None => {
                let shared = Arc::clone(&self.0);
                let thread = std::thread::Builder::new().name("refresh".to_owned());
                if thread.spawn(move || shared.run_check()).is_err() {
                    return;
                }
                let begun = Instant::now();
                state.running = Some(begun);
                state.is_masking = true;
                if state.ended.is_none() {
                    state.known.unread_reason = UnreadReason::Looking;
                }
                begun
            }
        };

        // Only the call that started a long run waits for it, not every later call.
        while state.running == Some(begun) {
            if state.is_masking && !wait.is_zero() {
                state = self.0.done.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return;
            }
            let waited = self.0.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn current_freshness(&self) -> Freshness {
        self.0.lock_state().known.clone()
    }
}

impl SharedRefresh {
    fn lock_state(&self) -> MutexGuard<'_, RefreshState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one check and the ingest that results from it.
    fn run_check(&self) {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| self.mask_and_check_logs()));
        let mut state = self.lock_state();
        match result {
            Ok(Ok(known)) => state.known = known,
            Ok(Err(error)) => state.known.unread_reason = UnreadReason::Trouble(error.message),
            Err(_) => {
                state.known.unread_reason = UnreadReason::Trouble("an internal error".to_owned());
            }
        }
        match &state.known.unread_reason {
            UnreadReason::Trouble(trouble) => {
                tracing::warn!(?trouble, "the logs could not be ingested");
            }
            UnreadReason::Unmasked(trouble) => {
                tracing::warn!(?trouble, "the store could not be masked by changed rules");
            }
            UnreadReason::None
            | UnreadReason::Looking
            | UnreadReason::Reading
            | UnreadReason::Busy => {}
        }
        state.running = None;
        state.is_masking = false;
        state.ended = Some(Instant::now());
        self.done.notify_all();
    }

    /// Masks the store if the rules changed, which all calls wait for, and then checks the logs.
    fn mask_and_check_logs(&self) -> Result<Freshness, ToolError> {
        let masked = self.mask_changed_rules();
        self.lock_state().is_masking = false;
        self.done.notify_all();
        let mut known = self.check_logs()?;
        if let Err(error) = masked {
            known.unread_reason = UnreadReason::Unmasked(error.message);
        }
        Ok(known)
    }

    /// Masks the text of the store by the rules in force, if they changed. A command did so before.
    fn mask_changed_rules(&self) -> Result<(), ToolError> {
        if self.user == RefreshUser::Server
            && let Some(notice) = mask_by_rules_in_force(&self.store)?
        {
            tracing::warn!(%notice, "the store was not private");
        }
        Ok(())
    }

    /// Checks whether logs changed, ingests the changed ones, and returns the resulting freshness.
    fn check_logs(&self) -> Result<Freshness, ToolError> {
        let mut roots = environment::known_roots();
        // The store knows files by their real paths.
        for root in &mut roots {
            if let Ok(real) = real_path(root) {
                *root = real;
            }
        }
        let Some((found, before)) = self.find_changed(&roots)? else {
            return Ok(Freshness::default());
        };
        let mut stuck = std::mem::take(&mut self.lock_state().stuck);
        let mut changed = Vec::new();
        for file in found {
            let key = file.key();
            if stuck.get(&key) != Some(&(file.size, file.modified_us)) {
                stuck.remove(&key);
                changed.push(file);
            }
        }

        let mut known = settled_freshness(&before, stuck.len());
        if !changed.is_empty() {
            tracing::info!(files = changed.len(), "logs changed");
            for file in &changed {
                tracing::debug!(path = ?file.path, bytes = file.size, "changed");
            }
            known.pending = changed.len();
            known.unread_reason = UnreadReason::Reading;
            self.lock_state().known = known.clone();
            match self.ingest_changed(&roots, &changed, &before) {
                Ok(()) => {
                    let after = self.current_sources()?;
                    for file in &changed {
                        let key = file.key();
                        if has_same_state(before.find(&key), after.find(&key)) {
                            stuck.insert(key, (file.size, file.modified_us));
                        }
                    }
                    known = settled_freshness(&after, stuck.len());
                }
                Err(error) if error.code == ErrorCode::StoreBusy => {
                    known.unread_reason = UnreadReason::Busy;
                }
                Err(error) => known.unread_reason = UnreadReason::Trouble(error.message),
            }
        }
        let mut state = self.lock_state();
        state.stuck = stuck;
        if known.unread_reason != UnreadReason::default() {
            state.watch.must_scan_all();
        }
        drop(state);
        Ok(known)
    }

    /// Returns the files that differ from the store, and the files of the store. `None` if a command must
    /// leave the store as it is.
    fn find_changed(&self, roots: &[PathBuf]) -> Result<Option<FoundChanges>, ToolError> {
        match self.user {
            RefreshUser::Server => self.find_changed_for_server(roots).map(Some),
            RefreshUser::Command => self.find_changed_for_command(roots),
        }
    }

    /// Finds changed files among those that the system reported, or among all.
    fn find_changed_for_server(&self, roots: &[PathBuf]) -> Result<FoundChanges, ToolError> {
        self.make_private()?;
        let known = self.current_sources()?;
        let to_check = self.lock_state().watch.files_to_check(roots);
        if let FilesToCheck::Changed(files) = to_check {
            return Ok((find_changed_logs(&files, self.store.dir(), &known), known));
        }
        let begun = Instant::now();
        let changed = find_all_changed_logs(roots, self.store.dir(), &known);
        let covers_all = paths_elsewhere(roots, &known).is_empty();
        let mut state = self.lock_state();
        state.stuck.retain(|key, _| changed.iter().any(|file| file.key() == *key));
        state.watch.record_full_scan(roots, begun.elapsed(), covers_all);
        drop(state);
        Ok((changed, known))
    }

    /// Finds changed files while the snapshot is taken that the command needs in any case.
    fn find_changed_for_command(
        &self,
        roots: &[PathBuf],
    ) -> Result<Option<FoundChanges>, ToolError> {
        let (snapshot, found) = std::thread::scope(|scope| {
            let snapshot = scope.spawn(|| self.store.take_lazy_snapshot());
            let found = self.store.read_source_table().map(|(_, known)| {
                (find_all_changed_logs(roots, self.store.dir(), &known), Arc::new(known))
            });
            (snapshot.join(), found)
        });
        let snapshot = snapshot.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let Ok(snapshot) = snapshot else { return Ok(None) };
        let condition = snapshot.condition();
        if condition.writable.is_some() {
            return Ok(None);
        }
        if condition.is_shared {
            self.make_private()?;
        }
        found.map(Some).map_err(store_error)
    }

    fn make_private(&self) -> Result<(), ToolError> {
        if let Some(notice) = self.store.make_private().map_err(store_error)? {
            tracing::warn!(%notice, "the store was not private");
        }
        Ok(())
    }

    /// Ingests changed files, with the same masking as the other files in the store.
    fn ingest_changed(
        &self,
        roots: &[PathBuf],
        changed: &[LogCandidate],
        known: &SourceTable,
    ) -> Result<(), ToolError> {
        let mut paths = Vec::new();
        let must_walk_roots = changed.len() > MAX_NAMED_FILES
            || changed.iter().any(|file| file.container != Container::Plain);
        if must_walk_roots {
            // An unreadable path would be an error, and the other roots would not be read.
            paths.extend(roots.iter().filter(|root| can_be_read(root)).cloned());
        }
        for file in changed {
            // A session in a database has no file of its own, and the database may be a root.
            let path = match file.container {
                Container::Assembled(_) => {
                    find_file(&file.key()).unwrap_or_else(|| file.path.clone())
                }
                Container::Plain | Container::Zstd | Container::Gzip => file.path.clone(),
            };
            let is_below_root = roots.iter().any(|root| path.starts_with(root));
            if !must_walk_roots || !is_below_root {
                paths.push(path);
            }
        }

        let redactor = if is_unmasked(known) { None } else { Some(settings::create_redactor()?) };
        let options = IngestOptions::in_background(redactor)?;
        ingest_logs(&self.store, &paths, &options, &()).map(|_| ())
    }

    /// Returns the current files of the store. They are re-read if the store was written since.
    fn current_sources(&self) -> Result<Arc<SourceTable>, ToolError> {
        let snapshot = self.store.take_lazy_snapshot().map_err(store_error)?;
        let generation = snapshot.manifest().generation;
        if let Some((of, sources)) = &self.lock_state().sources
            && *of == generation
        {
            return Ok(Arc::clone(sources));
        }
        let sources = Arc::new(snapshot.read_source_table().map_err(store_error)?);
        self.lock_state().sources = Some((generation, Arc::clone(&sources)));
        Ok(sources)
    }
}

/// Returns the freshness of a store without pending files.
fn settled_freshness(sources: &SourceTable, stuck: usize) -> Freshness {
    Freshness {
        failed: count_status(sources, SourceStatus::Failed) + stuck,
        unknown: count_status(sources, SourceStatus::UnknownFormat),
        ..Freshness::default()
    }
}

fn count_status(sources: &SourceTable, status: SourceStatus) -> usize {
    sources.iter().filter(|source| source.status == status).count()
}

/// Returns true if the ingest did not change what the store knows of a file.
fn has_same_state(before: Option<&SourceSummary>, after: Option<&SourceSummary>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => {
            before.state.size == after.state.size
                && before.state.modified_us == after.state.modified_us
                && before.state.decoder_version == after.state.decoder_version
        }
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Returns true if all logs of the store were read without masking; new ones are then read the same
/// way.
fn is_unmasked(sources: &SourceTable) -> bool {
    let mut logs = sources.iter().filter(|source| source.state.has_session).peekable();
    logs.peek().is_some() && logs.all(|source| source.state.redaction_rules == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_with_a_long_history_looks_at_the_logs_that_changed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let logs = dir.path().canonicalize().expect("there").join("logs");
        std::fs::create_dir(&logs).expect("creates");
        let [old, grown] = ["old.jsonl", "grown.jsonl"].map(|name| logs.join(name));
        for log in [&old, &grown] {
            std::fs::write(log, "{}\n").expect("writes");
        }
        let roots = [logs];
        let store = Arc::new(Store::new(dir.path().join("store")));
        let Refresher(shared) = Refresher::for_server(store);
        let find = || {
            let (found, _) = shared.find_changed(&roots).expect("looks").expect("is a server");
            found.into_iter().map(|file| file.path).collect::<Vec<_>>()
        };
        assert_eq!(find(), [grown.clone(), old], "all files, which the store does not know");

        let slow = Duration::from_secs(1);
        for _ in 0..2 {
            shared.lock_state().watch.record_full_scan(&roots, slow, true);
        }
        if !shared.lock_state().watch.is_watching() {
            // Where the system reports nothing, all files are checked each time.
            return assert_eq!(find().len(), 2);
        }
        assert!(find().is_empty(), "nothing was reported");
        std::fs::write(&grown, "{}\n{}\n").expect("writes");
        let mut seen = Vec::new();
        for _ in 0..500 {
            seen.extend(find());
            if !seen.is_empty() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(seen, [grown]);
        shared.lock_state().watch.must_scan_all();
        assert_eq!(find().len(), 2, "after a failure");
    }
}
