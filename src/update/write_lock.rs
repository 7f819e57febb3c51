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
    let until = Instant::now() + patience;
    loop {
        match store.open_writer(verify) {
            Err(StoreError::Busy { .. }) if Instant::now() < until => {
                std::thread::sleep(BUSY_RETRY);
            }
            result => return result.map_err(store_error),
        }
    }
}
