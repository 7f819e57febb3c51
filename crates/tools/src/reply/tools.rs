//! Holds the state that all calls share: the store, the prices, the caller, and what runs queries,
//! masks secrets and keeps the store up to date.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ingest::redact::Redactor;
use schemas::price::PriceTable;
use schemas::{ErrorCode, ToolError, limits};

use super::call::Call;
use super::caller::Caller;
use super::freshness::UnreadReason;
use super::history::{CallView, History, NeededEvents};
use super::store_history::StoreHistory;
use sql::Sandbox;
use store::{Snapshot, Store};

/// Creates the redactor that masks secrets. It is called only when there is text to mask, because
/// creating it takes a while.
pub type RedactorFactory = fn() -> Result<Arc<Redactor>, ToolError>;

/// The tools over one store.
pub struct Tools {
    pub(crate) store: Arc<Store>,
    /// The given prices, or the built-in ones, which are loaded on first use.
    pub(crate) prices: OnceLock<PriceTable>,
    pub(crate) caller: Caller,
    pub(crate) masking: Option<RedactorFactory>,
    pub(crate) store_history: StoreHistory,
    /// The history that calls answer from instead of the store's.
    pub(crate) other_history: Option<Arc<dyn History>>,
}

impl Tools {
    pub fn new(store: impl Into<Arc<Store>>) -> Self {
        Self {
            store: store.into(),
            prices: OnceLock::new(),
            caller: Caller::default(),
            masking: None,
            store_history: StoreHistory { refresh: None, sandbox: Sandbox::new(PathBuf::new()) },
            other_history: None,
        }
    }

    pub(crate) fn prices(&self) -> &PriceTable {
        self.prices.get_or_init(PriceTable::built_in)
    }

    /// Checks whether logs grew, and ingests what was added for at most `REFRESH_MS` milliseconds.
    pub fn refresh_store(&self) {
        if let Some(refresh) = &self.store_history.refresh {
            refresh.refresh(Duration::from_millis(limits::REFRESH_MS));
        }
    }

    /// Returns the history that calls answer from.
    pub(crate) fn history(&self) -> &dyn History {
        self.other_history.as_deref().unwrap_or(&self.store_history)
    }

    /// Returns the view that the call answers from. The first access takes it, and only then is what
    /// the call needs loaded.
    pub(crate) fn open_view<'c>(
        &self,
        call: &'c Call<'_>,
        needed: &NeededEvents<'_>,
    ) -> Result<&'c CallView, ToolError> {
        call.view(|| self.history().open_view(&self.store, needed, call.stop))
    }

    /// Returns the view that the call answers from. Nothing is loaded for it.
    pub(crate) fn view<'c>(&self, call: &'c Call<'_>) -> Result<&'c CallView, ToolError> {
        self.open_view(call, &NeededEvents::None)
    }

    /// Runs a part of a call that reads the store. If it fails because files of its snapshot were
    /// removed meanwhile, as by `compact` or `forget`, it is run again once with a snapshot of the store
    /// as it is then. So it has to get the snapshot itself, by [`Self::snapshot`].
    pub fn read_store<T>(
        &self,
        call: &Call<'_>,
        read: &mut dyn FnMut() -> Result<T, ToolError>,
    ) -> Result<T, ToolError> {
        if !call.begin_guard() {
            return read();
        }
        let mut result = read();
        if let Err(error) = &result
            && self.renew_view(call, error)
        {
            result = read();
        }
        call.end_guard();
        result
    }

    /// Lets the rest of a call that failed answer from the store as it is now. Returns false if the error
    /// is not that of removed files.
    pub(crate) fn renew_view(&self, call: &Call<'_>, error: &ToolError) -> bool {
        let Some(view) = call.taken_view() else { return false };
        if !self.history().has_all_events() || !may_be_of_files(error.code) {
            return false;
        }
        let Some(snapshot) = self.store.take_newer_snapshot(&view.snapshot) else { return false };
        call.renew_view(CallView { snapshot, freshness: view.freshness.clone(), examined: None })
    }

    /// Returns an error if the store does not have all events, which `tool` needs.
    pub(crate) fn require_all_events(&self, tool: &str) -> Result<(), ToolError> {
        if self.history().has_all_events() {
            return Ok(());
        }
        let name = self.caller.interface.tool_name(tool);
        let message = format!(
            "{name} does not run with --engine. Import the lake with `sessions pull`, and run it without --engine"
        );
        Err(ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "engine"))
    }

    /// Returns the snapshot of the call. Fails with `index_empty` if nothing was ingested yet, and if
    /// the store cannot be read, or not be masked by the rules for secrets in force.
    pub fn snapshot<'c>(&self, call: &'c Call<'_>) -> Result<&'c Arc<Snapshot>, ToolError> {
        let CallView { snapshot, freshness, .. } = self.view(call)?;
        if let UnreadReason::Unmasked(reason) = &freshness.unread_reason {
            let message = format!(
                "The rules for secrets changed, but they could not be applied to the store, so \
                nothing is shown. {reason}"
            );
            return Err(ToolError::new(ErrorCode::StoreUnavailable, message));
        }
        if snapshot.manifest().generation > 0 {
            return Ok(snapshot);
        }
        let is_reading =
            matches!(freshness.unread_reason, UnreadReason::Looking | UnreadReason::Reading);
        let message = format!(
            "No logs have been read into {} yet. {}",
            self.store.dir().display(),
            if is_reading {
                "They are being read now: ask again in a few seconds"
            } else {
                "`sessions ingest` reads the logs of the agents on this machine, `sessions ingest PATH` those of a folder"
            }
        );
        let error = ToolError::new(ErrorCode::IndexEmpty, message);
        Err(ToolError { retryable: is_reading, ..error })
    }

    /// Returns the generation of the store, and a hash of everything that the answer depends on
    /// besides its arguments. Returns `None` if the store is empty or cannot be read.
    pub fn answer_state(&self, call: &Call<'_>) -> Option<(u64, u64)> {
        // Another history may have changed since.
        if !self.history().has_all_events() {
            return None;
        }
        let generation = self.snapshot(call).ok()?.manifest().generation;
        let CallView { snapshot, freshness, .. } = self.view(call).ok()?;
        let mut hasher = DefaultHasher::new();
        (generation, snapshot.labels().hash(), snapshot.condition(), freshness).hash(&mut hasher);
        Some((generation, hasher.finish()))
    }
}

/// Returns whether an error may be about files of the store. DuckDB words a missing file as an access
/// that is not allowed.
fn may_be_of_files(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::StoreDamaged
            | ErrorCode::StoreUnavailable
            | ErrorCode::InternalError
            | ErrorCode::SqlError
            | ErrorCode::SqlNotAllowed
    )
}
