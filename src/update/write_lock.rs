//! Waits for the write lock of a store.

use std::time::{Duration, Instant};

use schemas::ToolError;

use store::{Store, StoreError, StoreWriter, Verify};
use tools::error::store_error;

/// Interval between attempts to take the write lock while another writer holds it.
pub(super) const BUSY_RETRY: Duration = Duration::from_millis(200);

/// Takes the write lock. If another writer holds it, the function waits for at most `patience`.
pub(crate) fn take_write_lock(
    store: &Store,
    verify: Verify,
    patience: Duration,
) -> Result<StoreWriter, ToolError> {
    wait_for_lock(|| store.open_writer(verify), patience)
}

/// Takes the write lock for an ingest, which may have nothing to write.
pub(super) fn take_lock_for_ingest(
    store: &Store,
    verify: Verify,
    patience: Duration,
) -> Result<StoreWriter, ToolError> {
    wait_for_lock(|| store.open_writer_for_ingest(verify), patience)
}

fn wait_for_lock(
    open: impl Fn() -> Result<StoreWriter, StoreError>,
    patience: Duration,
) -> Result<StoreWriter, ToolError> {
    let until = Instant::now() + patience;
    loop {
        match open() {
            Err(StoreError::Busy { .. }) if Instant::now() < until => {
                std::thread::sleep(BUSY_RETRY);
            }
            result => return result.map_err(store_error),
        }
    }
}
