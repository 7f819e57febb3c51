//! Finds segments that differ from what was written, and moves them out of the way.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use schemas::Timestamp;
use schemas::table::EVENTS;

use super::catalog::Catalog;
use super::disk::checked_file::CheckedFile;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::folder;
use super::lost_logs;
use super::manifest::{FileEntry, Manifest, SKIP_INDEX, SegmentEntry, file_name};
use super::segment::segment_rows::RowSource;
use super::segment::small_files::read_chunk_checksums;

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

    /// Returns the bytes of `segment` that are due, as positions in its files one after the other;
    /// empty if there are none. Must be called with the unchanged segments in order.
    fn due_bytes(&mut self, segment: &SegmentEntry) -> Range<u64> {
        let start = self.position;
        self.position += segment.bytes();
        let end = self.position.min(self.due_from + TURN_BYTES);
        self.due_from.saturating_sub(start)..end.saturating_sub(start)
    }
}

/// Moves segments that differ from what was written out of the way, and returns their number. Their
/// sessions are forgotten with their checkpoints, so that the logs are read again; the manifest
/// lists these logs until then.
pub(super) fn set_aside_damaged(
    dir: &Path,
    lock: &StoreLock,
    catalog: &Arc<Catalog>,
    manifest: &mut Manifest,
    verify: Verify,
) -> Result<u64, StoreError> {
    let mut schedule = CheckSchedule::new(manifest);
    let mut good = Vec::new();
    let mut damaged = Vec::new();
    for segment in std::mem::take(&mut manifest.segments) {
        let must_check_all =
            verify == Verify::All || has_changed(dir, &segment, manifest.updated_at);
        let is_good = if must_check_all {
            is_intact(dir, &segment)
        } else {
            is_part_intact(dir, &segment, &schedule.due_bytes(&segment))
        };
        if is_good {
            good.push(segment);
        } else {
            damaged.push(segment);
        }
    }
    if damaged.is_empty() {
        manifest.segments = good;
        return Ok(0);
    }

    lock.check_not_replaced()?;
    manifest.segments = good;
    let rows = RowSource::Catalog(Arc::clone(catalog));
    for segment in &damaged {
        lost_logs::add_segment(&mut manifest.lost, &rows, segment);
        tracing::warn!(segment = segment.number, "a damaged segment is set aside");
        folder::set_segment_aside(dir, segment.number)?;
    }

    manifest.generation += 1;
    catalog.commit(&manifest.to_json(), &[], &|number| manifest.includes_segment(number))?;
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
        && segment.known_files().all(|file| file.verify_at(&file_path(dir, segment, file)).is_ok())
}

/// Compares the files of a segment with their checksums where they have bytes of `part`, which are
/// positions in all its files one after the other. A large file is compared only there.
fn is_part_intact(dir: &Path, segment: &SegmentEntry, part: &Range<u64>) -> bool {
    if part.start == 0 && part.end >= segment.bytes() {
        return is_intact(dir, segment);
    }
    let mut start = 0;
    for file in segment.known_files() {
        let end = start + file.bytes;
        let of_file = part.start.max(start)..part.end.min(end);
        if !of_file.is_empty()
            && !is_file_intact(dir, segment, file, of_file.start - start..of_file.end - start)
        {
            return false;
        }
        start = end;
    }
    true
}

/// Compares the bytes `part` of a file with the checksums of its chunks, or the whole file if it is
/// read as one.
fn is_file_intact(dir: &Path, segment: &SegmentEntry, file: &FileEntry, part: Range<u64>) -> bool {
    let path = file_path(dir, segment, file);
    if ![EVENTS.name, SKIP_INDEX].contains(&file.table.as_str()) {
        return file.verify_at(&path).is_ok();
    }
    let folder = SegmentEntry::folder_path(dir, segment.number);
    let checked = read_chunk_checksums(&folder, segment, &file.table)
        .and_then(|checksums| CheckedFile::open(&path, file.bytes, checksums))
        .and_then(|checked| checked.verify_bytes(part));
    checked.is_ok()
}

fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
}

fn file_path(dir: &Path, segment: &SegmentEntry, file: &FileEntry) -> PathBuf {
    SegmentEntry::folder_path(dir, segment.number).join(file_name(&file.table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_is_due_in_one_turn() {
        let sizes = [5, TURN_BYTES, TURN_BYTES - 7, 0, 3 * TURN_BYTES + 1];
        let segments = sizes.map(|bytes| {
            let file = FileEntry { table: EVENTS.name.to_owned(), bytes, xxh3: String::new() };
            let files = vec![file];
            SegmentEntry {
                number: 1,
                events: 0,
                times: None,
                untimed: false,
                rules: Vec::new(),
                row_bytes: 0,
                files,
            }
        });
        let all: u64 = sizes.iter().sum();
        let mut due_until = [0; 5];
        for turn in 0..all.div_ceil(TURN_BYTES) {
            let mut schedule = CheckSchedule { due_from: turn * TURN_BYTES, position: 0 };
            let mut due = 0;
            for (segment, due_until) in segments.iter().zip(&mut due_until) {
                let part = schedule.due_bytes(segment);
                if !part.is_empty() {
                    assert_eq!(part.start, *due_until);
                    *due_until = part.end;
                    due += part.end - part.start;
                }
            }
            assert_eq!(due, TURN_BYTES.min(all - turn * TURN_BYTES));
        }
        assert_eq!(due_until, sizes);
    }
}
