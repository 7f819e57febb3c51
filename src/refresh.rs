//! Refresh on call: looks whether logs grew and takes the difference in, behind the calls of a
//! server. A call waits for it for a moment only.

use std::collections::{BTreeMap, HashMap};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ingest::container::Container;
use ingest::discover::Candidate;
use schemas::session::{SourceRow, SourceStatus};
use schemas::{ErrorCode, ToolError};

use crate::app::ingest_logs::{IngestOptions, ingest_logs};
use crate::app::{environment, settings};
use crate::error::store_error;
use crate::pending::pending;
use crate::store::{Snapshot, Store, Verify};
use crate::tools::{Freshness, Lag, Refresh};

/// A look is not repeated within this time.
const AGAIN: Duration = Duration::from_secs(2);

/// More changed files than this are not named one by one.
const NAMED: usize = 200;

/// Keeps a store up with the logs of this machine and with those it was made from.
pub(crate) struct Refresher(Arc<Shared>);

struct Shared {
    store: Arc<Store>,
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default)]
struct State {
    /// When the run that is going on began.
    running: Option<Instant>,
    /// When the last run ended.
    ended: Option<Instant>,
    known: Freshness,
    /// The files of the store, as of a generation.
    sources: Option<(u64, Arc<Sources>)>,
    /// Files that could not be taken in, by what they were then: not tried again until they change.
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
        // A long run is waited for by the call that began it, and not by every one after it.
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

    /// One look, with the ingest that it leads to.
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

    /// Takes in files that changed, as the others in the store were taken in.
    fn ingest(
        &self,
        roots: &[PathBuf],
        changed: &[Candidate],
        known: &Sources,
    ) -> Result<(), ToolError> {
        let whole =
            changed.len() > NAMED || changed.iter().any(|file| file.container != Container::Plain);
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

    /// The files of the store as it is now, read anew when it was written since.
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

/// What is known when nothing is pending.
fn freshness(sources: &Sources, stuck: usize) -> Freshness {
    let count = |status| sources.values().filter(|row| row.status == status).count();
    Freshness {
        failed: count(SourceStatus::Failed) + stuck,
        unknown: count(SourceStatus::UnknownFormat),
        ..Freshness::default()
    }
}

/// Whether nothing became of a file.
fn same(before: Option<&SourceRow>, after: Option<&SourceRow>) -> bool {
    let seen = |row: &SourceRow| (row.size, row.modified_us);
    before.map(seen) == after.map(seen)
}

/// Whether the logs of the store were read without masking: then it stays so.
fn is_unmasked(sources: &Sources) -> bool {
    let mut logs = sources.values().filter(|row| row.session_id.is_some()).peekable();
    logs.peek().is_some() && logs.all(|row| row.redaction_rules == 0)
}
