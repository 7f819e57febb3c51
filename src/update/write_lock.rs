//! Waits for the write lock of a store.

use std::time::{Duration, Instant};

use schemas::ToolError;

use store::{Store, StoreError, StoreWriter, Verify};
use tools::error::store_error;

/// Interval between attempts to take the write lock while another writer holds it.
pub(super) const BUSY_RETRY: Duration = Duration::from_millis(200);

/// Maximum time that a command waits for another writer.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to wait for a writer that masks the same store or loads sessions of the same lake.
pub(crate) const LONG_LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// Takes the write lock for a command.
pub(crate) fn take_write_lock(store: &Store) -> Result<StoreWriter, ToolError> {
    take_write_lock_within(store, Verify::Some, LOCK_TIMEOUT)
}

/// Takes the write lock. If another writer holds it, the function waits for at most `timeout`.
pub(crate) fn take_write_lock_within(
    store: &Store,
    verify: Verify,
    timeout: Duration,
) -> Result<StoreWriter, ToolError> {
    let until = Instant::now() + timeout;
    loop {
        match store.open_writer(verify) {
            Err(StoreError::Busy { .. }) if Instant::now() < until => {
                std::thread::sleep(BUSY_RETRY);
            }
            result => return result.map_err(store_error),
        }
    }
}
