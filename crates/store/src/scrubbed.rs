//! Remembers the records whose secrets were replaced in the logs themselves, under the identities that
//! they had before: one small file next to the segments.
//!
//! ```text
//! {"version":3,"checksum":"..","content":{"records":{"<identity now>":<identity at first>}}}
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use ingest::stream::RecordAliases;
use schemas::session::SourceStatus;

use super::error::{StoreError, UserFile};
use super::snapshot::Snapshot;
use super::writer::StoreWriter;

/// The file with these records.
const FILE: UserFile = UserFile::Scrubbed;

impl StoreWriter {
    /// Returns the identities that records had before their secrets were replaced in the logs.
    pub fn scrubbed_records(&self) -> Arc<RecordAliases> {
        Arc::clone(&self.aliases)
    }

    /// Notes that the logs at `paths` are about to be replaced by ones without secrets, whose records
    /// have new identities: pairs of the new and the former one. What is archived of these logs goes,
    /// and the next ingest reads and archives them again, whether they were replaced by then or not.
    ///
    /// # Errors
    /// Fails if the store cannot be read or written.
    pub fn note_scrubbed_logs(
        &self,
        paths: &HashSet<&str>,
        pairs: &[(u64, u64)],
    ) -> Result<(), StoreError> {
        if !pairs.is_empty() {
            let mut aliases: RecordAliases = FILE.read(&self.dir)?;
            aliases.extend(pairs.iter().copied());
            FILE.write(&self.dir, &self.lock, &aliases)?;
        }
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut sources = snapshot.read_sources(true)?;
        sources.retain(|source| {
            source.status == SourceStatus::Ok && paths.contains(source.path.as_str())
        });
        let sessions: HashSet<String> =
            sources.iter().filter_map(|source| source.session_id.clone()).collect();
        self.reread_logs(sources)?;
        self.remove_archived(&|id| sessions.contains(id))
    }
}
