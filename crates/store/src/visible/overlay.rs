//! The segments that a reader sees besides those of the store, while some snapshot has them.

use std::sync::Arc;

use super::folder::OverlayFolder;
use crate::error::StoreError;
use crate::manifest::SegmentEntry;
use crate::segment::open_segment::{Segment, SharedSegment};
use crate::segment::segment_writer::FinishedSegment;

/// Segments that a reader sees besides those of the store.
pub(crate) struct Overlay {
    segments: Vec<OverlaySegment>,
    folder: Arc<OverlayFolder>,
}

struct OverlaySegment {
    /// Removes the files when the overlay is dropped.
    finished: FinishedSegment,
    shared: Arc<SharedSegment>,
}

impl Overlay {
    /// Opens segments that were written into `folder`.
    pub(super) fn open(
        written: Vec<FinishedSegment>,
        folder: Arc<OverlayFolder>,
    ) -> Result<Self, StoreError> {
        let mut segments = Vec::with_capacity(written.len());
        for finished in written {
            let shared = Arc::new(finished.read_shared()?);
            segments.push(OverlaySegment { finished, shared });
        }
        Ok(Self { segments, folder })
    }

    /// Returns its segments, without live rows.
    pub(crate) fn segments(&self) -> impl Iterator<Item = Segment> {
        self.segments.iter().map(|OverlaySegment { finished, shared }| Segment {
            entry: finished.entry.clone(),
            dir: SegmentEntry::folder_path(self.folder.path(), finished.entry.number),
            spans: Vec::new(),
            shared: Arc::clone(shared),
        })
    }

    /// Returns whether its files are still there. A forgotten session takes them along.
    pub(crate) fn is_whole(&self) -> bool {
        self.folder.is_whole()
    }
}
