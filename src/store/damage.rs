//! Finds segments that differ from what was written, and moves them out of the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use schemas::Timestamp;

use super::disk::files;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::folder;
use super::lost_logs;
use super::manifest::{FileEntry, Manifest, SegmentEntry, file_name};

/// Selects the segments that are compared with their checksums when the lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Segments whose size or time differs from the commit, and 32 MB of the others, different ones
    /// every minute: checking all of them would cost more than most ingests.
    Some,
    /// Every segment.
    All,
}

/// Bytes of unchanged segments that are compared with their checksums in every run.
const TURN_BYTES: u64 = 32 << 20;

/// Microseconds by which a file may be younger than the manifest, because clocks are set.
const CLOCK_STEP_US: i64 = 2_000_000;

/// Selects the unchanged segments whose turn it is to be checked in this minute.
struct CheckSchedule {
    /// First byte to check, as a position in the sequence of all unchanged segments.
    due_from: u64,
    /// Bytes of the unchanged segments so far.
    position: u64,
}

impl CheckSchedule {
    fn new(manifest: &Manifest) -> Self {
        let turns = manifest.bytes().div_ceil(TURN_BYTES).max(1);
        let minute = Timestamp::now().0.unsigned_abs() / 60_000_000;
        Self { due_from: minute % turns * TURN_BYTES, position: 0 }
    }

    /// Returns true if a byte of `segment` is due. Must be called with the unchanged segments in
    /// order.
    fn is_due(&mut self, segment: &SegmentEntry) -> bool {
        let start = self.position;
        self.position += segment.bytes();
        start < self.due_from + TURN_BYTES && self.position > self.due_from
    }
}

/// Moves segments that differ from what was written out of the way, and returns their number. Their
/// sessions are forgotten with their checkpoints, so that the logs are read again; the manifest
/// lists these logs until then.
pub(super) fn set_aside_damaged(
    dir: &Path,
    lock: &StoreLock,
    manifest: &mut Manifest,
    verify: Verify,
) -> Result<u64, StoreError> {
    let mut schedule = CheckSchedule::new(manifest);
    let mut good = Vec::new();
    let mut damaged = Vec::new();
    for segment in std::mem::take(&mut manifest.segments) {
        let must_check = match verify {
            Verify::All => true,
            Verify::Some => {
                has_changed(dir, &segment, manifest.updated_at) || schedule.is_due(&segment)
            }
        };
        if must_check && !is_intact(dir, &segment) {
            damaged.push(segment);
        } else {
            good.push(segment);
        }
    }
    manifest.segments = good;
    if damaged.is_empty() {
        return Ok(0);
    }

    lock.check_not_replaced()?;
    let damaged_folder = folder::create_damaged_folder(dir)?;
    for segment in &damaged {
        lost_logs::add_segment(&mut manifest.lost, dir, segment);
        let segment_path = SegmentEntry::folder_path(dir, segment.number);
        let damaged_path = damaged_folder.join(SegmentEntry::folder_name(segment.number));
        tracing::warn!(segment = segment.number, "a damaged segment is set aside");
        if segment_path.exists() {
            fs::rename(&segment_path, &damaged_path).map_err(StoreError::io(&segment_path))?;
        }
    }

    manifest.generation += 1;
    manifest.write(dir)?;
    Ok(damaged.len() as u64)
}

/// Returns true if the folder of the segment is a link, or if a file of it is missing, has another
/// size than was written, or was modified after `committed_at`, in microseconds since the epoch.
fn has_changed(dir: &Path, segment: &SegmentEntry, committed_at: i64) -> bool {
    is_link(&SegmentEntry::folder_path(dir, segment.number))
        || segment.known_files().any(|file| {
            let Ok(found) = fs::symlink_metadata(file_path(dir, segment, file)) else {
                return true;
            };
            found.len() != file.bytes || modified_us(&found) > committed_at + CLOCK_STEP_US
        })
}

/// Returns the time of the last modification, in microseconds since the epoch; the latest possible
/// time if it is unknown.
fn modified_us(file: &fs::Metadata) -> i64 {
    let modified = file.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    modified.map_or(i64::MAX, |time| time.as_micros() as i64)
}

/// True if the folder of the segment is not a link and every file has its length and checksum.
fn is_intact(dir: &Path, segment: &SegmentEntry) -> bool {
    let is_link = is_link(&SegmentEntry::folder_path(dir, segment.number));
    !is_link
        && segment.known_files().all(|file| {
            files::checksum_file(&file_path(dir, segment, file))
                .is_ok_and(|(bytes, xxh3)| bytes == file.bytes && xxh3 == file.xxh3)
        })
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn file_path(dir: &Path, segment: &SegmentEntry, file: &FileEntry) -> PathBuf {
    SegmentEntry::folder_path(dir, segment.number).join(file_name(&file.table))
}
