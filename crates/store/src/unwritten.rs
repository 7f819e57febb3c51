//! What an ingest asks of a store to which it may write nothing.

use super::error::StoreError;
use super::snapshot::Snapshot;
use super::writer::StoreWriter;

impl StoreWriter {
    /// Returns the store as it was when the lock was taken.
    pub fn snapshot_before(&self) -> &Snapshot {
        &self.before
    }

    /// Returns whether texts of some sessions were dropped.
    pub fn has_reduced_sessions(&self) -> bool {
        !self.reduced.reduced.sessions.is_empty()
    }

    /// Returns what `count` counts in the store as it is now.
    ///
    /// # Errors
    /// Fails if something was committed since the lock was taken, and cannot be read.
    pub fn count_now<T>(&self, count: impl FnOnce(&Snapshot) -> T) -> Result<T, StoreError> {
        if self.current_manifest() == *self.before.manifest() {
            return Ok(count(&self.before));
        }
        Ok(count(&*self.take_snapshot()?))
    }
}
