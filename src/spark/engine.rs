//! The engine: the connection to Spark, the lake, and what is known of it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arrow::array::RecordBatch;
use ingest::redact::Redactor;
use schemas::{ErrorCode, ToolError};

use super::connection::SparkConnection;
use crate::lake::{LakeCatalog, LakePlace, PullContent, PullFilter, pull_sessions};
use crate::update::write_lock::{LONG_LOCK_TIMEOUT, take_write_lock_within};
use store::{Snapshot, Store, StoreWriter, Verify};
use tools::{RedactorFactory, Stop};

/// What the engine loads and counts at most for one answer.
#[derive(Debug, Clone, Copy)]
pub struct EngineLimits {
    /// Sessions that may have matches are loaded at once if their objects have at most this many
    /// bytes. Otherwise Spark filters and counts their rows first.
    pub load_bytes: u64,
    /// Sessions that may have matches are all counted if they have at most this many events. Otherwise
    /// the nearest days are searched first, until a page is full.
    pub counted_events: i64,
    /// Most bytes of the objects that are loaded to rank events, or to apply regular expressions and
    /// letters beyond ASCII.
    pub compared_bytes: u64,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self { load_bytes: 8 << 20, counted_events: 1 << 16, compared_bytes: 32 << 20 }
    }
}

/// A call for which the engine loads events.
#[derive(Clone, Copy)]
pub(super) struct LakeCall<'a> {
    /// The store that they are loaded into.
    pub(super) store: &'a Store,
    /// The sessions of the lake, by position.
    pub(super) snapshot: &'a Snapshot,
    pub(super) stop: Stop<'a>,
}

/// Answers over a lake through Spark Connect.
pub struct SparkEngine {
    connection: SparkConnection,
    place: LakePlace,
    folder: PathBuf,
    pub(super) limits: EngineLimits,
    masking: RedactorFactory,
    redactor: OnceLock<Arc<Redactor>>,
    catalog: Mutex<Option<Arc<LakeCatalog>>>,
    /// Held while the store is written.
    writing: Mutex<()>,
}

impl SparkEngine {
    /// Prepares an engine at `spark://HOST:PORT` over the lake in a folder. Nothing is read yet.
    ///
    /// # Errors
    /// Fails if the address or the place of the lake is not valid.
    pub fn new(address: &str, lake: &str, masking: RedactorFactory) -> Result<Self, ToolError> {
        let place = LakePlace::open(lake)?;
        let Some(folder) = place.folder().map(Path::to_owned) else {
            let message = format!(
                "lake: '{lake}' is a bucket, and --engine reads lakes in folders. Mount it, or import it with sessions pull"
            );
            return Err(
                ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "lake")
            );
        };
        Ok(Self {
            connection: SparkConnection::new(address)?,
            place,
            folder,
            limits: EngineLimits::default(),
            masking,
            redactor: OnceLock::new(),
            catalog: Mutex::new(None),
            writing: Mutex::new(()),
        })
    }

    /// Sets other limits than the usual ones.
    #[must_use]
    pub fn with_limits(self, limits: EngineLimits) -> Self {
        Self { limits, ..self }
    }

    pub(super) fn connection(&self) -> &SparkConnection {
        &self.connection
    }

    /// Returns the folder of the lake.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the contents of the lake when it was last read.
    pub(super) fn catalog(&self) -> Result<Arc<LakeCatalog>, ToolError> {
        let known = self.lock_catalog().clone();
        match known {
            Some(catalog) => Ok(catalog),
            None => self.read_catalog(),
        }
    }

    fn read_catalog(&self) -> Result<Arc<LakeCatalog>, ToolError> {
        let known = self.lock_catalog().clone();
        let read = LakeCatalog::read(&self.place, known.as_deref())?;
        let catalog = match (read, known) {
            (None, Some(known)) => known,
            (read, _) => Arc::new(read.unwrap_or_default()),
        };
        *self.lock_catalog() = Some(Arc::clone(&catalog));
        Ok(catalog)
    }

    fn lock_catalog(&self) -> MutexGuard<'_, Option<Arc<LakeCatalog>>> {
        self.catalog.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the events of sessions to the store.
    pub(super) fn add_to_store(
        &self,
        store: &Store,
        sessions: &[(String, Vec<RecordBatch>)],
    ) -> Result<(), ToolError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        LakeCatalog::add_events(store, sessions, &*self.redactor()?, &|| open_writer(store))
    }

    /// Brings the rows of the sessions in the store up to date with the lake.
    pub(super) fn pull_rows(&self, store: &Store) -> Result<(), ToolError> {
        let redactor = self.redactor()?;
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let filter = PullFilter::default();
        // Both read the listings, which takes long for a large lake.
        let (catalog, report) = std::thread::scope(|scope| {
            let catalog = scope.spawn(|| self.read_catalog());
            let report =
                pull_sessions(store, &self.place, &filter, PullContent::Rows, &redactor, &|| {
                    open_writer(store)
                });
            (catalog.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), report)
        });
        catalog?;
        let report = report?;
        for problem in &report.problems {
            tracing::warn!(%problem, "a part of the lake is left out");
        }
        Ok(())
    }

    fn redactor(&self) -> Result<Arc<Redactor>, ToolError> {
        if let Some(redactor) = self.redactor.get() {
            return Ok(Arc::clone(redactor));
        }
        let redactor = (self.masking)()?;
        Ok(Arc::clone(self.redactor.get_or_init(|| redactor)))
    }
}

fn open_writer(store: &Store) -> Result<StoreWriter, ToolError> {
    take_write_lock_within(store, Verify::Some, LONG_LOCK_TIMEOUT)
}
