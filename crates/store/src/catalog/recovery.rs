//! Makes a damaged catalog again from the copies that the segments have of their records. Nothing else
//! reads these copies.
//!
//! ```text
//! rows.copy   checksum of what follows (8 bytes), then compressed:
//!   head      JSON, as postcard writes bytes: the entry of the segment, and the segments that it replaces
//!   records   as postcard writes them; see `records.rs`
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use schemas::Timestamp;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::Catalog;
use super::records::SegmentRecords;
use crate::disk::files;
use crate::error::StoreError;
use crate::folder::{SEGMENTS_FOLDER, segment_number};
use crate::manifest::{FileEntry, Manifest, ROW_COPY, SegmentEntry, file_name};

/// Level of compression of a copy.
const COPY_LEVEL: i32 = 1;

#[derive(Serialize, Deserialize)]
struct CopyHead {
    /// The entry without the copy.
    entry: SegmentEntry,
    /// Numbers of the segments whose rows the segment has instead of them.
    replaces: Vec<i64>,
}

/// Returns the copy of the rows of a segment.
pub(crate) fn encode_copy(
    entry: &SegmentEntry,
    replaces: &[i64],
    rows: &SegmentRecords,
) -> io::Result<Vec<u8>> {
    let head = CopyHead { entry: entry.clone(), replaces: replaces.to_vec() };
    let head = serde_json::to_vec(&head).unwrap_or_default();
    let plain = postcard::to_stdvec(&(head, rows)).map_err(io::Error::other)?;
    let packed = zstd::bulk::compress(&plain, COPY_LEVEL)?;
    Ok([&xxh3_64(&packed).to_le_bytes()[..], &packed].concat())
}

/// Decodes a copy. `None` if it is not what was written.
fn decode_copy(bytes: &[u8]) -> Option<(CopyHead, SegmentRecords)> {
    let (check, packed) = bytes.split_first_chunk()?;
    if xxh3_64(packed).to_le_bytes() != *check {
        return None;
    }
    let plain = zstd::decode_all(packed).ok()?;
    let (head, rows): (Vec<u8>, SegmentRecords) = postcard::from_bytes(&plain).ok()?;
    Some((serde_json::from_slice(&head).ok()?, rows))
}

/// Makes the catalog of the store in `dir` again. A segment whose copy is damaged is noted as lost. The
/// caller holds the write lock.
pub(crate) fn rebuild(dir: &Path) -> Result<Manifest, StoreError> {
    let now = Timestamp::now().0;
    // Higher than that of any earlier commit, so that readers notice.
    let generation = now.unsigned_abs();
    let mut manifest = Manifest { generation, updated_at: now, ..Manifest::default() };
    let mut replaced = BTreeSet::new();
    let mut rows_by_number = Vec::new();
    let segments = dir.join(SEGMENTS_FOLDER);
    for folder in fs::read_dir(&segments).map_err(StoreError::io(&segments))? {
        let folder = folder.map_err(StoreError::io(&segments))?;
        let Some(number) = segment_number(&folder.file_name()) else { continue };
        // A segment without a copy was not written completely.
        let Ok(bytes) = files::read_file(&folder.path().join(file_name(ROW_COPY))) else {
            continue;
        };
        match decode_copy(&bytes) {
            Some((mut head, rows)) if head.entry.number == number => {
                head.entry.files.push(FileEntry {
                    table: ROW_COPY.to_owned(),
                    bytes: bytes.len() as u64,
                    xxh3: files::checksum_bytes(&bytes),
                });
                replaced.extend(head.replaces);
                manifest.segments.push(head.entry);
                rows_by_number.push((number, rows));
            }
            Some(_) | None => manifest.lost.segments.push(number),
        }
        manifest.next_segment = manifest.next_segment.max(number + 1);
    }
    manifest.lost.segments.sort_unstable();
    manifest.segments.retain(|segment| !replaced.contains(&segment.number));
    manifest.segments.sort_by_key(|segment| segment.number);
    rows_by_number.retain(|(number, _)| !replaced.contains(number));
    Catalog::create(dir, &manifest.to_json(), &rows_by_number)?;
    tracing::warn!(segments = manifest.segments.len(), "the damaged catalog was made again");
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_read_back_and_a_damaged_one_is_not() {
        let rows = SegmentRecords {
            summaries: b"summaries".to_vec(),
            session_rows: vec![b"row".to_vec()],
            sources: b"sources".to_vec(),
            states: [(7, b"state".to_vec())].into(),
        };
        let entry = SegmentEntry {
            number: 3,
            events: 2,
            times: None,
            untimed: false,
            rules: Vec::new(),
            row_bytes: 10,
            files: Vec::new(),
        };
        let copy = encode_copy(&entry, &[1, 2], &rows).expect("encodes");
        let (head, found) = decode_copy(&copy).expect("decodes");
        assert_eq!((head.entry, head.replaces, found), (entry, vec![1, 2], rows));
        for at in 0..copy.len() {
            let mut damaged = copy.clone();
            damaged[at] ^= 1;
            assert!(decode_copy(&damaged).is_none() && decode_copy(&copy[..at]).is_none());
        }
    }
}
