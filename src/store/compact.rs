//! Compaction: merges small segments at the end of the manifest into one, so that thousands of
//! small ingests cost a search no more than a few.
//!
//! Only a suffix of the segments is merged. A session's rows in the merged segment are then the end
//! of the session, without a gap, and segment numbers still show which row of a session is the
//! latest. Every row is copied once for each level of size.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::{ProblemRow, SessionRow, SourceRow};

use super::error::StoreError;
use super::manifest::{Manifest, SegmentEntry};
use super::segment::event_reader::{EventReader, RowSpan};
use super::segment::open_segment::Segment;
use super::segment::segment_writer::{FinishedSegment, SegmentWriter};
use super::segment::small_files::read_table;
use super::snapshot::Snapshot;

/// Number of segments of one level that are merged, with the smaller ones after the first of them.
const FAN_IN: usize = 8;

/// Bytes below which a segment has level 0; each level is [`FAN_IN`] times the one below.
const LEVEL_BYTES: u64 = 64 << 10;

/// Number of levels that are merged. Segments of this level, of 4 MB and more, stay as they are:
/// copying eight of them would take longer than the ingest that happens to come next.
const LEVELS: u32 = 3;

/// Rows copied at a time.
const BATCH_ROWS: usize = 4096;

/// Returns the level of a segment, which depends on its size.
fn level(segment: &SegmentEntry) -> u32 {
    let times = segment.bytes() / LEVEL_BYTES;
    times.checked_ilog(FAN_IN as u64).map_or(0, |log| log + 1)
}

/// Returns the position of the first segment to merge; `None` if nothing is to be merged.
pub(super) fn suffix(manifest: &Manifest) -> Option<usize> {
    let segments = &manifest.segments;
    (0..LEVELS).find_map(|most| {
        let suffix = segments.iter().rev().take_while(|segment| level(segment) <= most);
        let (length, of_level) = suffix.fold((0, 0), |(length, of_level), segment| {
            (length + 1, of_level + usize::from(level(segment) == most))
        });
        (of_level >= FAN_IN).then(|| segments.len() - length)
    })
}

/// Writes the segments from position `from` on as one with `writer`. Returns `None` if they hold
/// nothing. The manifest is not changed.
pub(super) fn merge(
    dir: &Path,
    snapshot: &Snapshot,
    from: usize,
    mut writer: SegmentWriter,
) -> Result<Option<FinishedSegment>, StoreError> {
    let merged = &snapshot.segments()[from..];
    let mut pieces: BTreeMap<usize, Vec<(&Segment, RowSpan)>> = BTreeMap::new();
    for segment in merged {
        for span in &segment.spans {
            let rows = RowSpan { start: span.start, count: span.count };
            pieces.entry(span.session).or_default().push((segment, rows));
        }
    }
    for (segment, rows) in pieces.into_values().flatten() {
        let mut batches = EventReader::open(segment, &[rows], &[], BATCH_ROWS)?;
        while let Some(batch) = batches.next_batch()? {
            writer.events(&batch)?;
        }
    }
    // The writer keeps the last row of a session and of a file, which is that of the latest
    // segment.
    for segment in merged {
        segment.sessions().iter().for_each(|row| writer.session(SessionRow::clone(row)));
        let sources = read_table::<SourceRow>(dir, &segment.entry, "sources", None)?;
        sources.into_iter().for_each(|row| writer.source(row));
    }
    let problems = snapshot.problems_of(merged)?;
    writer.problems(problems.into_iter().filter_map(problem).collect());
    writer.finish()
}

/// Writes the current content of segments whose events are all superseded as one with `writer`: the
/// sessions and files whose latest row is in them, and their problems.
pub(super) fn without_events(
    dir: &Path,
    snapshot: &Snapshot,
    dead: &[&Segment],
    mut writer: SegmentWriter,
) -> Result<Option<FinishedSegment>, StoreError> {
    let latest: HashMap<_, _> =
        snapshot.sources(false)?.into_iter().map(|row| (row.path, row.segment)).collect();
    for segment in dead {
        let sessions = segment.sessions().iter().filter(|row| {
            snapshot.session(&row.session_id).is_some_and(|now| now.segment == row.segment)
        });
        sessions.for_each(|row| writer.session(SessionRow::clone(row)));
        let sources = read_table::<SourceRow>(dir, &segment.entry, "sources", None)?;
        let kept = sources.into_iter().filter(|row| latest.get(&row.path) == Some(&row.segment));
        kept.for_each(|row| writer.source(row));
        let problems = snapshot.problems_of(std::slice::from_ref(segment))?;
        writer.problems(problems.into_iter().filter_map(problem).collect());
    }
    writer.finish()
}

/// Converts a row of `problems` back to a problem; `None` if its kind is not known any more.
pub(super) fn problem(row: ProblemRow) -> Option<Problem> {
    let kind = row.kind.parse::<ProblemKind>().ok()?;
    let (line, byte) = (row.line.cast_unsigned(), row.byte.cast_unsigned());
    Some(Problem { path: row.path, line, byte, kind, message: row.message })
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
            files: vec![FileEntry { table: "events".into(), bytes: *bytes, xxh3: String::new() }],
        };
        Manifest { segments: sizes.iter().map(segment).collect(), ..Manifest::default() }
    }

    #[test]
    fn a_suffix_of_small_segments_is_merged() {
        assert_eq!(suffix(&manifest(&[1000; 7])), None);
        assert_eq!(suffix(&manifest(&[1000; 8])), Some(0));
        let big = 100 << 20;
        assert_eq!(suffix(&manifest(&[big; 20])), None);
        assert_eq!(suffix(&manifest(&[&[1000; 8][..], &[big]].concat())), None);
        assert_eq!(suffix(&manifest(&[&[big][..], &[100 << 10; 7], &[1000; 8]].concat())), Some(8));
        assert_eq!(suffix(&manifest(&[&[big][..], &[100 << 10; 8], &[1000; 3]].concat())), Some(1));
        assert_eq!(suffix(&manifest(&[&[big][..], &[100 << 10; 3], &[1000; 7]].concat())), None);
    }

    /// Ten thousand ingests of 4 KB: few segments at any time, and every byte copied a few times.
    #[test]
    fn thousands_of_small_segments_stay_few() {
        let mut sizes: Vec<u64> = Vec::new();
        let (mut most, mut copied) = (0, 0);
        for _ in 0..10_000 {
            sizes.push(4096);
            while let Some(from) = suffix(&manifest(&sizes)) {
                let merged = sizes.split_off(from).iter().sum();
                copied += merged;
                sizes.push(merged);
            }
            most = most.max(sizes.len());
        }
        assert!(most <= 30, "{most}");
        assert!(copied <= 10_000 * 4096 * 5, "{copied}");
    }
}
