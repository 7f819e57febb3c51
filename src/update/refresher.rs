//! Refreshes the store on calls of a server: checks whether logs grew and ingests the changes in
//! the background. A call waits for this only for a moment.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ingest::source::candidate::{Candidate, Container};
use schemas::session::{SourceRow, SourceStatus};
use schemas::{ErrorCode, ToolError};

use super::ingest_logs::{IngestOptions, MAX_NAMED_FILES, ingest_logs};
use crate::config::{environment, settings};
use crate::error::store_error;
use crate::store::{Snapshot, Store, Verify};
use crate::tools::reply::pending::pending;
use crate::tools::{Freshness, Lag, Refresh};

/// Minimum time between the end of one check and the start of the next.
const AGAIN: Duration = Duration::from_secs(2);

/// Keeps a store up to date with the logs of this machine and with those from which it was built.
pub(crate) struct Refresher(Arc<Shared>);

struct Shared {
    store: Arc<Store>,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// Start of the current run.
    running: Option<Instant>,
    /// End of the last run.
    ended: Option<Instant>,
    known: Freshness,
    /// The files of the store, with the generation in which they were read.
    sources: Option<(u64, Arc<Sources>)>,
    /// Files that could not be ingested, with their size and time then: not tried again until they
    /// change.
    stuck: HashMap<String, (u64, i64)>,
}

/// The files that a store knows, by path.
type Sources = BTreeMap<String, SourceRow>;

impl Refresher {
    pub(crate) fn new(store: Arc<Store>) -> Self {
        Self(Arc::new(Shared { store, state: Mutex::default(), done: Condvar::new() }))
    }
}

impl Refresh for Refresher {
    fn refresh(&self, wait: Duration) {
        let mut state = self.0.lock();
        let running = state.running;
        let begun = match running {
            Some(begun) => begun,
            None if state.ended.is_some_and(|ended| ended.elapsed() < AGAIN) => return,
            None => {
                let shared = Arc::clone(&self.0);
                let thread = std::thread::Builder::new().name("refresh".to_owned());
                if thread.spawn(move || shared.run()).is_err() {
                    return;
                }
                let begun = Instant::now();
                state.running = Some(begun);
                if state.ended.is_none() {
                    state.known.lag = Lag::Looking;
                }
                begun
            }
        };
        // Only the call that started a long run waits for it, not every later call.
        while state.running == Some(begun) {
            let left = wait.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return;
            }
            let waited = self.0.done.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn state(&self) -> Freshness {
        self.0.lock().known.clone()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one check and the ingest that results from it.
    fn run(&self) {
        let result = std::panic::catch_unwind(AssertUnwindSafe(|| self.look()));
        let mut state = self.lock();
        match result {
            Ok(Ok(known)) => state.known = known,
            Ok(Err(error)) => state.known.lag = Lag::Trouble(error.message),
            Err(_) => state.known.lag = Lag::Trouble("it failed inside".to_owned()),
        }
        if let Lag::Trouble(trouble) = &state.known.lag {
            tracing::warn!(?trouble, "the logs could not be taken in");
        }
        state.running = None;
        state.ended = Some(Instant::now());
        self.done.notify_all();
    }

    fn look(&self) -> Result<Freshness, ToolError> {
        let before = self.sources()?;
        let roots = environment::known_roots();
        let found = pending(&roots, self.store.dir(), &before);
        let mut stuck = std::mem::take(&mut self.lock().stuck);
        stuck.retain(|key, _| found.changed.iter().any(|file| file.key() == *key));
        let (idle, changed): (Vec<_>, Vec<_>) = found
            .changed
            .into_iter()
            .partition(|file| stuck.get(&file.key()) == Some(&(file.size, file.modified_us)));
        let mut known = freshness(&before, idle.len());
        if !changed.is_empty() {
            tracing::info!(files = changed.len(), "logs changed");
            for file in &changed {
                tracing::debug!(path = ?file.path, bytes = file.size, "changed");
            }
            known.pending = changed.len();
            known.lag = Lag::Reading;
            self.lock().known = known.clone();
            match self.ingest(&roots, &changed, &before) {
                Ok(()) => {
                    let after = self.sources()?;
                    for file in &changed {
                        let key = file.key();
                        if same(before.get(&key), after.get(&key)) {
                            stuck.insert(key, (file.size, file.modified_us));
                        }
                    }
                    known = freshness(&after, stuck.len());
                }
                Err(error) if error.code == ErrorCode::StoreBusy => known.lag = Lag::Busy,
                Err(error) => known.lag = Lag::Trouble(error.message),
            }
        }
        self.lock().stuck = stuck;
        Ok(known)
    }

    /// Ingests changed files, with the same masking as the other files in the store.
    fn ingest(
        &self,
        roots: &[PathBuf],
        changed: &[Candidate],
        known: &Sources,
    ) -> Result<(), ToolError> {
        let whole = changed.len() > MAX_NAMED_FILES
            || changed.iter().any(|file| file.container != Container::Plain);
        let paths: Vec<PathBuf> = if whole {
            let beside = |file: &&Candidate| !roots.iter().any(|root| file.path.starts_with(root));
            let beside = changed.iter().filter(beside).map(|file| file.path.clone());
            roots.iter().cloned().chain(beside).collect()
        } else {
            changed.iter().map(|file| file.path.clone()).collect()
        };
        let redactor = if is_unmasked(known) { None } else { Some(settings::redactor()?) };
        let options = IngestOptions { verify: Verify::Some, redactor, patience: Duration::ZERO };
        ingest_logs(&self.store, &paths, &options, &()).map(|_| ())
    }

    /// Returns the current files of the store. They are re-read if the store was written since.
    fn sources(&self) -> Result<Arc<Sources>, ToolError> {
        let snapshot = self.store.snapshot().map_err(store_error)?;
        let generation = snapshot.manifest().generation;
        if let Some((of, sources)) = &self.lock().sources
            && *of == generation
        {
            return Ok(Arc::clone(sources));
        }
        let sources = Arc::new(read(&snapshot)?);
        self.lock().sources = Some((generation, Arc::clone(&sources)));
        Ok(sources)
    }
}

fn read(snapshot: &Snapshot) -> Result<Sources, ToolError> {
    let rows = snapshot.sources(false).map_err(store_error)?;
    Ok(rows.into_iter().map(|row| (row.path.clone(), row)).collect())
}

/// Returns the freshness of a store without pending files.
fn freshness(sources: &Sources, stuck: usize) -> Freshness {
    let count = |status| sources.values().filter(|row| row.status == status).count();
    Freshness {
        failed: count(SourceStatus::Failed) + stuck,
        unknown: count(SourceStatus::UnknownFormat),
        ..Freshness::default()
    }
}

/// Returns true if the ingest did not change the source row of a file.
fn same(before: Option<&SourceRow>, after: Option<&SourceRow>) -> bool {
    let seen = |row: &SourceRow| (row.size, row.modified_us);
    before.map(seen) == after.map(seen)
}

/// Returns true if all logs of the store were read without masking; new ones are then read the same
/// way.
fn is_unmasked(sources: &Sources) -> bool {
    let mut logs = sources.values().filter(|row| row.session_id.is_some()).peekable();
    logs.peek().is_some() && logs.all(|row| row.redaction_rules == 0)
}
