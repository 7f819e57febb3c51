//! Finds segments that differ from what was written, and moves them out of the way.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use schemas::Timestamp;

use super::disk::files;
use super::disk::lock::StoreLock;
use super::error::StoreError;
use super::manifest::{FileEntry, Manifest, SegmentEntry, file_name};

/// Which segments are compared with their checksums when the lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verify {
    /// Segments whose size or time differs from the commit, and 32 MB of the others, different ones
    /// every minute: checking all of them would cost more than most ingests.
    Some,
    All,
}

/// Bytes of unchanged segments that are compared with their checksums in every run.
const TURN_BYTES: u64 = 32 << 20;

/// Microseconds by which a file may be younger than the manifest, because clocks are set.
const CLOCK_STEP: i64 = 2_000_000;

/// Returns a function that is called with each segment in order and returns true if it is the
/// segment's turn to be checked in this minute.
fn turn(manifest: &Manifest) -> impl FnMut(&SegmentEntry) -> bool + use<> {
    let turns = manifest.bytes().div_ceil(TURN_BYTES).max(1);
    let minute = Timestamp::now().0.unsigned_abs() / 60_000_000;
    let from = minute % turns * TURN_BYTES;
    let mut at = 0;
    move |segment| {
        let start = at;
        at += segment.bytes();
        start < from + TURN_BYTES && at > from
    }
}

/// Moves segments that differ from what was written out of the way, and returns their number. Their
/// sessions are forgotten with their checkpoints, so that the logs are read again.
pub(super) fn set_aside_damaged(
    dir: &Path,
    lock: &StoreLock,
    manifest: &mut Manifest,
    verify: Verify,
) -> Result<u64, StoreError> {
    let path = |segment: &SegmentEntry, file: &FileEntry| {
        SegmentEntry::dir(dir, segment.number).join(file_name(&file.table))
    };
    let intact = |segment: &SegmentEntry| {
        segment.files.iter().all(|file| {
            files::checksum(&path(segment, file))
                .is_ok_and(|(bytes, xxh3)| bytes == file.bytes && xxh3 == file.xxh3)
        })
    };
    let updated_at = manifest.updated_at;
    let touched = |segment: &SegmentEntry| {
        segment.files.iter().any(|file| {
            fs::metadata(path(segment, file)).map_or(true, |now| {
                let modified =
                    now.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
                let modified = modified.map_or(i64::MAX, |time| time.as_micros() as i64);
                now.len() != file.bytes || modified > updated_at + CLOCK_STEP
            })
        })
    };
    let mut turn = turn(manifest);
    let mut check = |segment: &SegmentEntry| match verify {
        Verify::All => intact(segment),
        Verify::Some => !touched(segment) && !turn(segment) || intact(segment),
    };
    let (good, bad): (Vec<_>, Vec<_>) =
        manifest.segments.drain(..).partition(|segment| check(segment));
    manifest.segments = good;
    if bad.is_empty() {
        return Ok(0);
    }
    lock.check()?;
    files::create_private_dirs(&dir.join("damaged"))?;
    for segment in &bad {
        let from = SegmentEntry::dir(dir, segment.number);
        let to = dir.join("damaged").join(format!("{:010}", segment.number));
        tracing::warn!(segment = segment.number, "set aside, as it is damaged");
        if from.exists() {
            fs::rename(&from, &to).map_err(StoreError::io(&from))?;
        }
    }
    manifest.generation += 1;
    manifest.write(dir)?;
    Ok(bad.len() as u64)
}
