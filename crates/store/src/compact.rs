//! Compaction: merges small segments at the end of the manifest into one, so that thousands of
//! small ingests cost a search no more than a few. `large_segments.rs` merges the full ones.
//!
//! Only segments that follow each other are merged. A session's rows in the merged segment are then
//! without a gap, and segment numbers still show which row of a session is the latest. Every row is
//! copied once for each level of size.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::ProblemRow;

use super::error::StoreError;
use super::manifest::{Manifest, SegmentEntry};
use super::segment::event_reader::{EventReader, RowSpan};
use super::segment::open_segment::Segment;
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::snapshot::Snapshot;

/// Number of segments of one level that are merged, with the smaller ones after the first of them.
const FAN_IN: usize = 8;

/// Size from which a segment has level 1. Each further level begins at [`FAN_IN`] times the size.
const LEVEL_1_MIN_BYTES: u64 = 64 << 10;

/// Number of levels that are merged as soon as there are [`FAN_IN`] segments of one. Segments of this
/// level, of 4 MB and more, are merged more rarely; see [`find_large_suffix`].
const MERGED_LEVELS: u32 = 3;

/// Size from which an ingest never merges a segment. A first ingest writes segments of about this size.
const FULL_BYTES: u64 = 32 << 20;

/// Size of the rows of sessions and logs from which an ingest never merges a segment either, because the writer of the
/// merged segment holds these rows. A first ingest of many small logs ends its segments by the
/// number of files, with about 6 MB of such rows.
const FULL_ROW_BYTES: u64 = 4 << 20;

/// Number of segments of 4 MB and more that are merged at least. A first ingest leaves one such
/// segment for each core, and copying a few of them would only delay its end.
const MIN_LARGE_SEGMENTS: usize = 4;

/// Rows copied at a time.
const BATCH_ROWS: usize = 4096;

/// Returns the level of a segment, which depends on its size.
fn size_level(segment: &SegmentEntry) -> u32 {
    let times = segment.bytes() / LEVEL_1_MIN_BYTES;
    times.checked_ilog(FAN_IN as u64).map_or(0, |log| log + 1)
}

/// Returns whether an ingest never merges a segment.
fn is_full(segment: &SegmentEntry) -> bool {
    segment.bytes() >= FULL_BYTES || segment.row_bytes >= FULL_ROW_BYTES
}

/// Returns the position of the first segment to merge; `None` if nothing is to be merged.
pub(super) fn find_mergeable_suffix(manifest: &Manifest) -> Option<usize> {
    let segments = &manifest.segments;
    for highest in 0..MERGED_LEVELS {
        let mut length = 0;
        let mut highest_count = 0;
        for segment in segments.iter().rev() {
            let level = size_level(segment);
            if level > highest {
                break;
            }
            length += 1;
            if level == highest {
                highest_count += 1;
            }
        }
        if highest_count >= FAN_IN {
            return Some(segments.len() - length);
        }
    }
    find_large_suffix(segments)
}

/// Returns the position of the first segment to merge if the segments at the end have the size of a
/// full one together, but at most that of two: copying more would take too long and too much memory.
/// So a store that grows by small ingests has one segment for every 32 MB.
fn find_large_suffix(segments: &[SegmentEntry]) -> Option<usize> {
    let mut length = 0;
    let mut large = 0;
    let mut bytes = 0;
    for segment in segments.iter().rev() {
        let size = segment.bytes();
        if is_full(segment) || bytes + size > 2 * FULL_BYTES {
            break;
        }
        bytes += size;
        length += 1;
        large += usize::from(size_level(segment) == MERGED_LEVELS);
    }
    (large >= MIN_LARGE_SEGMENTS && bytes >= FULL_BYTES).then(|| segments.len() - length)
}

/// Returns the position of the first of the small segments at the end of the manifest; `None` if
/// fewer than two are small.
pub(super) fn find_small_suffix(manifest: &Manifest) -> Option<usize> {
    let segments = manifest.segments.iter().rev();
    let small = segments.take_while(|segment| size_level(segment) < MERGED_LEVELS).count();
    (small > 1).then(|| manifest.segments.len() - small)
}

/// Writes the content of the segments at the positions `merged` into one segment with `writer`.
/// Returns `None` if they hold nothing. The manifest is not changed.
pub(super) fn merge_segments(
    snapshot: &Snapshot,
    merged: Range<usize>,
    mut writer: SegmentWriter,
) -> Result<Option<FinishedSegment>, StoreError> {
    let merged = &snapshot.segments()[merged];
    copy_events(merged, &mut writer)?;

    // The writer keeps the last row of a session and of a file, which is that of the latest
    // segment.
    for segment in merged {
        for row in segment.read_sessions()? {
            writer.record_session(Box::new(Arc::unwrap_or_clone(row)));
        }
        for row in segment.read_sources()? {
            writer.record_source(Box::new(row));
        }
    }

    let problems = snapshot.read_problems_of(merged)?;
    writer.push_problems(problems.into_iter().filter_map(parse_problem_row).collect());
    writer.finish()
}

/// Copies the live rows of segments, those of one session after each other.
fn copy_events(merged: &[Segment], writer: &mut SegmentWriter) -> Result<(), StoreError> {
    let mut segments_by_session: HashMap<usize, usize> = HashMap::new();
    for span in merged.iter().flat_map(|segment| &segment.spans) {
        *segments_by_session.entry(span.session).or_default() += 1;
    }

    // Most sessions are in one segment. These are read together, because to begin to read a segment
    // takes a millisecond.
    let mut pieces: BTreeMap<usize, Vec<(&Segment, RowSpan)>> = BTreeMap::new();
    for segment in merged {
        let mut whole_sessions = Vec::new();
        for span in &segment.spans {
            let rows = RowSpan { start: span.start, count: span.count };
            if segments_by_session.get(&span.session) == Some(&1) {
                whole_sessions.push(rows);
            } else {
                pieces.entry(span.session).or_default().push((segment, rows));
            }
        }
        copy_rows(segment, &whole_sessions, writer)?;
    }
    for (segment, rows) in pieces.into_values().flatten() {
        copy_rows(segment, &[rows], writer)?;
    }
    Ok(())
}

/// Copies rows of a segment, which ascend.
fn copy_rows(
    segment: &Segment,
    rows: &[RowSpan],
    writer: &mut SegmentWriter,
) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut batches = EventReader::open(segment, rows, &[], BATCH_ROWS)?;
    while let Some(batch) = batches.next_batch()? {
        writer.push_events(&batch)?;
    }
    Ok(())
}

/// Writes the remaining content of segments whose events are all superseded into one segment with
/// `writer`: the sessions and files whose latest row is in them, and their problems.
pub(super) fn rewrite_without_events(
    snapshot: &Snapshot,
    dead: &[&Segment],
    mut writer: SegmentWriter,
) -> Result<Option<FinishedSegment>, StoreError> {
    let latest_sources: HashMap<_, _> =
        snapshot.read_sources(false)?.into_iter().map(|row| (row.path, row.segment)).collect();
    for segment in dead {
        for row in segment.read_sessions()? {
            let latest = snapshot.session(&row.session_id);
            if latest.is_some_and(|latest| latest.segment == row.segment) {
                writer.record_session(Box::new(Arc::unwrap_or_clone(row)));
            }
        }
        for row in segment.read_sources()? {
            if latest_sources.get(&row.path) == Some(&row.segment) {
                writer.record_source(Box::new(row));
            }
        }
        let problems = snapshot.read_problems_of(std::slice::from_ref(segment))?;
        writer.push_problems(problems.into_iter().filter_map(parse_problem_row).collect());
    }
    writer.finish()
}

/// Converts a row of `problems` back to a problem; `None` if its kind no longer exists.
pub(super) fn parse_problem_row(row: ProblemRow) -> Option<Problem> {
    let kind = row.kind.parse::<ProblemKind>().ok()?;
    Some(Problem {
        path: row.path,
        line: row.line.cast_unsigned(),
        byte: row.byte.cast_unsigned(),
        kind,
        message: row.message,
    })
}

#[cfg(test)]
mod tests {
    use super::super::manifest::FileEntry;
    use super::*;

    fn manifest(sizes: &[u64]) -> Manifest {
        let segment = |bytes: &u64| SegmentEntry {
            number: 0,
            events: 0,
            times: None,
            untimed: false,
            rules: Vec::new(),
            row_bytes: 0,
            files: vec![FileEntry { table: "events".into(), bytes: *bytes, xxh3: String::new() }],
        };
        Manifest { segments: sizes.iter().map(segment).collect(), ..Manifest::default() }
    }

    #[test]
    fn a_suffix_of_small_segments_is_merged() {
        assert_eq!(find_mergeable_suffix(&manifest(&[1000; 7])), None);
        assert_eq!(find_mergeable_suffix(&manifest(&[1000; 8])), Some(0));
        let big = 100 << 20;
        assert_eq!(find_mergeable_suffix(&manifest(&[big; 20])), None);
        assert_eq!(find_mergeable_suffix(&manifest(&[&[1000; 8][..], &[big]].concat())), None);
        assert_eq!(
            find_mergeable_suffix(&manifest(&[&[big][..], &[100 << 10; 7], &[1000; 8]].concat())),
            Some(8)
        );
        assert_eq!(
            find_mergeable_suffix(&manifest(&[&[big][..], &[100 << 10; 8], &[1000; 3]].concat())),
            Some(1)
        );
        assert_eq!(
            find_mergeable_suffix(&manifest(&[&[big][..], &[100 << 10; 3], &[1000; 7]].concat())),
            None
        );
    }

    #[test]
    fn larger_segments_are_merged_to_full_ones() {
        let mb = 1 << 20;
        let find = |sizes: &[u64]| {
            find_mergeable_suffix(&manifest(
                &sizes.iter().map(|size| size * mb).collect::<Vec<_>>(),
            ))
        };
        assert_eq!(find(&[50, 5, 5, 5, 5, 5, 5]), None);
        assert_eq!(find(&[50, 5, 5, 5, 5, 5, 5, 5]), Some(1));
        assert_eq!(find(&[50, 5, 5, 5, 5, 5, 5, 5, 1]), Some(1));
        // What a first ingest leaves on two cores.
        assert_eq!(find(&[50, 50, 30, 30]), None);
        // On more cores, a part is merged.
        assert_eq!(find(&[50, 20, 20, 20, 15, 15, 10]), Some(3));
    }

    /// The rows of 16,384 sessions and files take more bytes than the events of small logs. To merge
    /// such segments would take longer than the ingest.
    #[test]
    fn segments_that_are_full_of_files_are_not_merged() {
        let mut manifest = manifest(&[1 << 20; 7]);
        for segment in &mut manifest.segments {
            segment.row_bytes = 4 << 20;
        }
        assert_eq!(find_mergeable_suffix(&manifest), None);
        // Logs of a few sessions each, with as many bytes.
        for segment in &mut manifest.segments {
            segment.row_bytes = 0;
            segment.files[0].bytes = 5 << 20;
        }
        assert_eq!(find_mergeable_suffix(&manifest), Some(0));
    }

    /// Ten thousand ingests of 4 KB: few segments at any time, and every byte copied a few times.
    #[test]
    fn thousands_of_small_segments_stay_few() {
        let mut sizes: Vec<u64> = Vec::new();
        let (mut most, mut copied) = (0, 0);
        for _ in 0..10_000 {
            sizes.push(4096);
            while let Some(from) = find_mergeable_suffix(&manifest(&sizes)) {
                let merged = sizes.split_off(from).iter().sum();
                copied += merged;
                sizes.push(merged);
            }
            most = most.max(sizes.len());
        }
        assert!(most <= 30, "{most}");
        assert!(copied <= 10_000 * 4096 * 6, "{copied}");
    }
}
