//! Counts sessions again for readers who see some of them only.
//!
//! An event that several sessions have counts in one of them (docs/ingest.md). If a reader does not see
//! that one, the event would count nowhere. So the visible sessions with such events are written again
//! for the reader: what only hidden sessions recorded before is their own, and of each response the
//! visible sessions choose the one that counts it. The new rows are in segments of a private folder
//! ([`folder`]) and supersede those of the store, so that all code that reads a snapshot finds them.
//!
//! Invariant: the rows are those of a store that has read the logs of the visible sessions only, except
//! for the ids of sessions, and parents that a log names but the reader does not see.

mod copies;
pub(super) mod folder;
pub(super) mod overlay;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use xxhash_rust::xxh3::xxh3_128;

use self::copies::{HiddenRelations, append_summary};
use self::folder::OverlayFolder;
use self::overlay::Overlay;
use super::error::StoreError;
use super::responses::{choose_rows, find_undecided, recount_sessions};
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::snapshot::Snapshot;

/// Writes the segments of an overlay, each begun by the function that it is given.
type WriteSegments<'w> =
    dyn Fn(&dyn Fn() -> SegmentWriter) -> Result<Vec<FinishedSegment>, StoreError> + 'w;

/// The overlays of a store, which readers of the same sessions share.
#[derive(Default)]
pub(super) struct VisibleCounts(Mutex<KnownOverlays>);

#[derive(Default)]
struct KnownOverlays {
    /// `None` until something has to be written.
    folder: Option<Arc<OverlayFolder>>,
    by_key: HashMap<u128, Weak<Overlay>>,
}

impl VisibleCounts {
    /// Returns `part`, in which hidden sessions count nothing that its own sessions have as well. It
    /// is a part of `whole`, which is a snapshot of the store in `store`.
    ///
    /// # Errors
    /// Fails if rows cannot be read, or the new ones cannot be written.
    pub(super) fn count_visible(
        &self,
        store: &Path,
        whole: &Snapshot,
        part: Snapshot,
    ) -> Result<Snapshot, StoreError> {
        if part.sessions().len() == whole.sessions().len() {
            return Ok(part);
        }
        let mut part = part;
        let mut key = 0;
        let relations = HiddenRelations::find(whole, &part)?;
        if !relations.is_empty() {
            key = relations.key(whole, &part);
            let overlay = self.get_or_write(store, key, &|begin_segment| {
                relations.write_sessions(whole, &part, begin_segment)
            })?;
            part = part.with_overlay(overlay);
        }
        self.count_responses(store, key, part)
    }

    /// Makes every response count once among the sessions of `part`. `key` is that of the overlay that
    /// it has.
    fn count_responses(
        &self,
        store: &Path,
        key: u128,
        part: Snapshot,
    ) -> Result<Snapshot, StoreError> {
        let undecided = find_undecided(&part, folder::FIRST_NUMBER - 1)?;
        if undecided.sessions.is_empty() {
            return Ok(part);
        }
        let mut responses: Vec<u64> = undecided.responses.iter().copied().collect();
        responses.sort_unstable();
        let mut hashed = format!("responses {key} {responses:?}").into_bytes();
        for session in &undecided.sessions {
            append_summary(&part, *session, &mut hashed);
        }
        let overlay = self.get_or_write(store, xxh3_128(&hashed), &|begin_segment| {
            let changes = choose_rows(&part, &undecided)?;
            recount_sessions(&part, &changes, begin_segment)
        })?;
        Ok(part.with_overlay(overlay))
    }

    /// Returns the overlay with this key. Unless some reader has it, `write` writes its segments.
    fn get_or_write(
        &self,
        store: &Path,
        key: u128,
        write: &WriteSegments<'_>,
    ) -> Result<Arc<Overlay>, StoreError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.by_key.retain(|_, overlay| overlay.strong_count() > 0);
        let found = known.by_key.get(&key).and_then(Weak::upgrade);
        if let Some(overlay) = found.filter(|overlay| overlay.is_whole()) {
            return Ok(overlay);
        }

        let folder = match &known.folder {
            Some(folder) if folder.is_whole() => Arc::clone(folder),
            Some(_) | None => Arc::new(OverlayFolder::create(store)?),
        };
        known.folder = Some(Arc::clone(&folder));
        let written = write(&|| folder.begin_segment())?;
        let overlay = Arc::new(Overlay::open(written, folder)?);
        known.by_key.insert(key, Arc::downgrade(&overlay));
        Ok(overlay)
    }
}
