//! Chooses full segments that are merged into large ones, so that a store of any size has few.
//!
//! A first ingest writes segments of about 32 MB, because a larger one under construction takes more
//! memory. A search that must look into every segment takes longer the more there are. So `sessions
//! compact` merges the full segments by groups, each row once.
//!
//! The newest group is merged first. Its segment takes a number that leaves numbers for each older
//! group, whose segment thus keeps its place before the newer ones. So the groups are merged one by
//! one, each with a commit of its own, and the next run continues one that ended early.

use std::ops::Range;

use super::manifest::{Manifest, SegmentEntry};

/// Size of a complete group. A search opens a segment of this size quickly, and writing it takes
/// little memory. A store of 50 GB of logs then has 80 segments.
pub const GROUP_BYTES: u64 = 128 << 20;

/// Weight of one byte of the rows of sessions and logs: the writer of the merged segment holds these rows in memory.
const ROW_BYTE_WEIGHT: u64 = 8;

/// A group of segments to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentGroup {
    /// The positions of the segments in the manifest.
    pub(super) segments: Range<usize>,
    pub(super) number: GroupNumber,
}

/// The number of the segment into which a group is merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GroupNumber {
    /// A new number, which leaves space for this many older groups.
    After { older_groups: i64 },
    /// A free number between the group and the segment behind it.
    Free(i64),
}

/// Returns the newest group of segments to merge; `None` if there is none. A group is complete when
/// its segments have `group_bytes`. A segment of three eighths of that is large, and is not merged
/// again. `is_taken` returns whether a folder has the number of a segment.
pub(super) fn find_group(
    manifest: &Manifest,
    group_bytes: u64,
    is_taken: impl Fn(i64) -> bool,
) -> Option<SegmentGroup> {
    let segments = &manifest.segments;
    let mut end = segments.len();
    while end > 0 {
        let smaller =
            segments[..end].iter().rev().take_while(|segment| !is_large(segment, group_bytes));
        let start = end - smaller.count();
        let groups = split_into_groups(&segments[start..end], group_bytes);
        for (older_groups, group) in groups.iter().enumerate().rev() {
            let older_groups = older_groups as i64;
            let group = start + group.start..start + group.end;
            let number = match segments.get(group.end) {
                None => Some(GroupNumber::After { older_groups }),
                Some(behind) => {
                    let is_free =
                        |number: &i64| !manifest.includes_segment(*number) && !is_taken(*number);
                    let last_number = segments[group.end - 1].number;
                    let mut free = (last_number + 1..behind.number).rev().filter(is_free);
                    // Another one stays free behind it, if there is one.
                    let highest = free.next();
                    free.next().or(highest).map(GroupNumber::Free)
                }
            };
            if let Some(number) = number {
                return Some(SegmentGroup { segments: group, number });
            }
        }
        end = start.saturating_sub(1);
    }
    None
}

/// Returns how many new numbers a group takes up: two for itself and for each older group, because a
/// merged segment may be small enough to be merged again with those before it.
pub(super) const fn count_numbers(older_groups: i64) -> i64 {
    2 * (older_groups + 1)
}

/// Returns how many segments remain once all groups are merged, if numbers are free for each of them.
pub(super) fn count_after_merges(manifest: &Manifest, group_bytes: u64) -> usize {
    let runs = manifest.segments.split(|segment| is_large(segment, group_bytes));
    let groups = runs.flat_map(|run| split_into_groups(run, group_bytes));
    let merged: usize = groups.map(|group| group.len() - 1).sum();
    manifest.segments.len() - merged
}

fn is_large(segment: &SegmentEntry, group_bytes: u64) -> bool {
    weight_of(segment) >= group_bytes / 8 * 3
}

/// Returns the size of a segment, or the weight of its rows if merging them costs more.
fn weight_of(segment: &SegmentEntry) -> u64 {
    segment.bytes().max(segment.row_bytes * ROW_BYTE_WEIGHT)
}

/// Splits segments that follow each other into groups, which cover all of them. Returns none if they
/// are too small for one, or if there is one segment only. The segments after the last complete group
/// join it if they are too few for a group of their own.
fn split_into_groups(segments: &[SegmentEntry], group_bytes: u64) -> Vec<Range<usize>> {
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (at, segment) in segments.iter().enumerate() {
        bytes += weight_of(segment);
        if bytes >= group_bytes {
            groups.push(start..at + 1);
            start = at + 1;
            bytes = 0;
        }
    }
    if bytes >= group_bytes / 2 && segments.len() - start > 1 {
        groups.push(start..segments.len());
    } else if let Some(last) = groups.last_mut() {
        last.end = segments.len();
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::super::manifest::{FileEntry, RetiredSegment};
    use super::*;

    const MB: u64 = 1 << 20;

    /// A segment with this number and these tables.
    fn segment(number: i64, tables: &[(&str, u64)]) -> SegmentEntry {
        let file = |(table, bytes): &(&str, u64)| FileEntry {
            table: (*table).to_owned(),
            bytes: *bytes,
            xxh3: String::new(),
        };
        SegmentEntry {
            number,
            events: 0,
            times: None,
            untimed: false,
            rules: Vec::new(),
            row_bytes: 0,
            files: tables.iter().map(file).collect(),
        }
    }

    fn manifest(sizes: &[u64]) -> Manifest {
        let segments = (1..).zip(sizes).map(|(number, size)| segment(number, &[("events", *size)]));
        Manifest {
            segments: segments.collect(),
            next_segment: sizes.len() as i64 + 1,
            ..Manifest::default()
        }
    }

    /// Merges the next group as the writer does. Returns its bytes; `None` if there is no group.
    fn merge_next(manifest: &mut Manifest) -> Option<u64> {
        let group = find_group(manifest, GROUP_BYTES, |_| false)?;
        let number = match group.number {
            GroupNumber::Free(number) => number,
            GroupNumber::After { older_groups } => {
                manifest.next_segment += count_numbers(older_groups);
                manifest.next_segment - 1
            }
        };
        let start = group.segments.start;
        let bytes = manifest.segments.drain(group.segments).map(|one| one.bytes()).sum();
        manifest.segments.insert(start, segment(number, &[("events", bytes)]));
        assert!(manifest.segments.is_sorted_by(|one, next| one.number < next.number));
        Some(bytes)
    }

    fn sizes(manifest: &Manifest) -> Vec<u64> {
        manifest.segments.iter().map(|segment| segment.bytes() / MB).collect()
    }

    #[test]
    fn a_large_store_has_tens_of_segments_and_each_row_is_copied_once() {
        let mut store = manifest(&[47 * MB; 236]);
        let total = store.bytes();
        let expected = count_after_merges(&store, GROUP_BYTES);
        let copied: u64 = std::iter::from_fn(|| merge_next(&mut store)).sum();
        assert_eq!((copied, store.bytes()), (total, total));
        assert!(store.segments.len() < 80, "{}", store.segments.len());
        assert_eq!(store.segments.len(), expected);
        assert_eq!(merge_next(&mut store), None);
        assert_eq!(count_after_merges(&store, GROUP_BYTES), expected);
    }

    #[test]
    fn a_store_that_grew_meanwhile_or_ended_early_is_continued() {
        let mut store = manifest(&[47 * MB; 12]);
        merge_next(&mut store);
        merge_next(&mut store);
        assert_eq!(sizes(&store), [47, 47, 47, 47, 47, 47, 141, 141]);
        // Another process wrote since.
        store.segments.push(segment(store.next_segment, &[("events", 47 * MB)]));
        store.segments.push(segment(store.next_segment + 1, &[("events", 30 * MB)]));
        store.next_segment += 2;
        assert_eq!(count_after_merges(&store, GROUP_BYTES), 5);
        while merge_next(&mut store).is_some() {}
        assert_eq!(sizes(&store), [141, 141, 141, 141, 77]);
    }

    fn group(sizes: &[u64]) -> Option<(Range<usize>, GroupNumber)> {
        let bytes: Vec<u64> = sizes.iter().map(|size| size * MB).collect();
        let group = find_group(&manifest(&bytes), GROUP_BYTES, |_| false)?;
        Some((group.segments, group.number))
    }

    #[test]
    fn small_stores_and_single_segments_stay() {
        for sizes in [&[][..], &[30, 30], &[1; 8], &[200], &[200, 50, 9], &[65, 65, 65]] {
            assert_eq!(group(sizes), None, "{sizes:?}");
        }
    }

    #[test]
    fn the_rest_joins_the_last_group() {
        let after = |older_groups| GroupNumber::After { older_groups };
        assert_eq!(group(&[47, 47, 47, 2, 1]), Some((0..5, after(0))));
        assert_eq!(group(&[200, 47, 47]), Some((1..3, after(0))));
        assert_eq!(group(&[47, 47, 47, 47, 47]), Some((3..5, after(1))));
    }

    /// Retention makes large segments small, and numbers that were used stay on disk for a while.
    #[test]
    fn a_group_before_a_large_segment_takes_only_a_free_number() {
        let sizes = [47 * MB, 47 * MB, 47 * MB, 99 * MB];
        let mut store = manifest(&sizes);
        assert_eq!(find_group(&store, GROUP_BYTES, |_| false), None, "order would be lost");
        store.segments[3].number = 8;
        let number = |store: &Manifest, taken: &[i64]| {
            let group = find_group(store, GROUP_BYTES, |number| taken.contains(&number));
            group.map(|group| group.number)
        };
        assert_eq!(number(&store, &[]), Some(GroupNumber::Free(6)));
        store.retired.push(RetiredSegment { number: 7, at: 0 });
        assert_eq!(number(&store, &[]), Some(GroupNumber::Free(5)));
        assert_eq!(number(&store, &[5, 6]), Some(GroupNumber::Free(4)));
        assert_eq!(number(&store, &[4, 5, 6]), None);
        // An older group may have space where the newest has none.
        let mut store = manifest(&[47 * MB; 7]);
        store.segments[6].files[0].bytes = 99 * MB;
        for (segment, number) in store.segments.iter_mut().zip([1, 2, 3, 10, 11, 12, 13]) {
            segment.number = number;
        }
        let older = find_group(&store, GROUP_BYTES, |_| false).expect("a group");
        assert_eq!((older.segments, older.number), (0..3, GroupNumber::Free(8)));
    }

    #[test]
    fn rows_of_many_small_logs_end_a_group() {
        let many = (1..=9)
            .map(|number| SegmentEntry { row_bytes: 5 * MB, ..segment(number, &[("events", MB)]) });
        let manifest = Manifest { segments: many.collect(), ..Manifest::default() };
        let group = find_group(&manifest, GROUP_BYTES, |_| false).expect("a group");
        assert_eq!(group.segments, 4..9);
    }
}
