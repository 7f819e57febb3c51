//! Filters the blocks of one segment, and the row tags and files of its rows, by the skip index.

use fixedbitset::FixedBitSet;

use super::indexed_rows::find_indexed_rows;
use super::query::{FieldFilter, FilterField, Query};
use super::request::{SearchRequest, lowest_key};
use store::{Grams, KnownRows, RowFacts, RowTags, Segment, SkipIndex, StoreError};

/// The word index is consulted only if more candidate blocks than this remain. Scanning the
/// pages of fewer blocks is cheaper.
const WORD_INDEX_THRESHOLD: usize = 32;

/// The parts of one segment that pass the filters.
#[derive(Default)]
pub(super) struct SegmentFilter {
    /// True if no row of the segment can match.
    pub(super) is_excluded: bool,
    /// Positions of the row tags that pass; `None` means all.
    pub(super) tags: Option<FixedBitSet>,
    /// Positions of the lists of files that pass; `None` means all.
    pub(super) files: Option<FixedBitSet>,
    /// Positions of the candidate blocks, ascending.
    pub(super) candidate_blocks: Vec<usize>,
    /// The rows that may match and those that do; `None` means that the index decides no row.
    pub(super) indexed_rows: Option<KnownRows>,
}

impl SegmentFilter {
    /// Returns the filter of a segment in which no row can match.
    pub(super) fn excluded() -> Self {
        Self { is_excluded: true, ..Self::default() }
    }

    /// Applies the filters of `request` to the rows of an index, without looking at its words. A
    /// matching text must contain one alternative of every group of `needs`.
    pub(super) fn of_blocks(
        index: &SkipIndex,
        request: &SearchRequest<'_>,
        needs: &[Vec<Grams>],
    ) -> Result<Self, StoreError> {
        let mut tag_filters: Vec<&FieldFilter> = Vec::new();
        let mut file_filters: Vec<&FieldFilter> = Vec::new();
        for filter in &request.query.filters {
            match filter.field {
                FilterField::Tool | FilterField::Model | FilterField::Branch => {
                    tag_filters.push(filter);
                }
                FilterField::File => file_filters.push(filter),
                // `RowFilter` selects the sessions by these filters.
                FilterField::Agent
                | FilterField::Project
                | FilterField::Label
                | FilterField::Machine
                | FilterField::User => {}
            }
        }

        let mut filter = Self::default();
        if !tag_filters.is_empty() {
            let tags = index.row_tags()?.iter();
            filter.tags = Some(collect_bits(tags.map(|tags| tags_pass(&tag_filters, tags))));
        }
        if !file_filters.is_empty() {
            let files = index.file_lists()?.iter();
            filter.files = Some(collect_bits(files.map(|paths| files_pass(&file_filters, paths))));
        }
        if is_empty_set(&filter.tags) || is_empty_set(&filter.files) {
            return Ok(Self::excluded());
        }

        filter.candidate_blocks = find_candidate_blocks(index, request, needs)?;
        Ok(filter)
    }

    /// Returns the rows of the filtered `segment` in which all clauses of `required` may hold; `None`
    /// if the index decides no row, or if few blocks remain.
    pub(super) fn find_rows(
        &self,
        segment: &Segment,
        required: &Query,
    ) -> Result<Option<KnownRows>, StoreError> {
        if self.candidate_blocks.len() <= WORD_INDEX_THRESHOLD {
            return Ok(None);
        }
        find_indexed_rows(segment.skip_index()?, required)
    }

    /// Returns true if the tags and the files of a row pass.
    pub(super) fn row_passes(&self, facts: &RowFacts) -> bool {
        self.tags.as_ref().is_none_or(|tags| tags.contains(facts.tags as usize))
            && self.files.as_ref().is_none_or(|files| files.contains(facts.file_list as usize))
    }
}

/// Finds the candidate blocks of a segment, by position and ascending.
fn find_candidate_blocks(
    index: &SkipIndex,
    request: &SearchRequest<'_>,
    needs: &[Vec<Grams>],
) -> Result<Vec<usize>, StoreError> {
    let blocks = index.blocks();
    let mut candidates = FixedBitSet::with_capacity(blocks.len());
    candidates.insert_range(..);
    for alternatives in needs {
        let mut matching_blocks = FixedBitSet::with_capacity(blocks.len());
        for grams in alternatives {
            matching_blocks.union_with(&index.find_candidate_blocks(grams)?);
        }
        candidates.intersect_with(&matching_blocks);
    }

    let mut positions: Vec<usize> = candidates.ones().collect();
    positions
        .retain(|at| may_match_times(request, blocks[*at].times, blocks[*at].has_untimed_rows));
    Ok(positions)
}

/// Returns true if rows may be within the time bounds of the request and after its cursor. `times`
/// are the oldest and the newest time of the rows, in microseconds; `None` means that no row has a
/// time.
pub(super) fn may_match_times(
    request: &SearchRequest<'_>,
    times: Option<(i64, i64)>,
    has_untimed: bool,
) -> bool {
    let since = request.since;
    let until = request.query.until;
    if has_untimed && since.is_none() && until.is_none() {
        return true;
    }
    let Some((oldest, newest)) = times else { return false };
    let cursor = request.after.as_ref().and_then(|after| after.time);
    since.is_none_or(|since| newest >= since)
        && until.is_none_or(|until| oldest < until)
        && cursor.is_none_or(|cursor| lowest_key(request.query.sort, oldest, newest) <= cursor)
}

/// Returns true if the tags of a row pass all `filters`, which are by tool, model or branch.
fn tags_pass(filters: &[&FieldFilter], tags: &RowTags) -> bool {
    filters.iter().all(|filter| match filter.field {
        FilterField::Tool => filter.passes(tags.tool.as_deref()),
        FilterField::Model => filter.passes(tags.model.as_deref()),
        FilterField::Branch => filter.passes(tags.branch.as_deref()),
        FilterField::File
        | FilterField::Agent
        | FilterField::Project
        | FilterField::Label
        | FilterField::Machine
        | FilterField::User => true,
    })
}

/// Returns true if the paths that a row names pass all `filters`. `paths` is empty if the row names
/// none.
fn files_pass(filters: &[&FieldFilter], paths: &str) -> bool {
    let paths = if paths.is_empty() { None } else { Some(paths) };
    filters.iter().all(|filter| filter.passes(paths))
}

/// Returns true for a set without members; `None` means all.
fn is_empty_set(set: &Option<FixedBitSet>) -> bool {
    set.as_ref().is_some_and(FixedBitSet::is_clear)
}

fn collect_bits(flags: impl Iterator<Item = bool>) -> FixedBitSet {
    let mut bits = FixedBitSet::new();
    for (position, flag) in flags.enumerate() {
        bits.grow(position + 1);
        bits.set(position, flag);
    }
    bits
}
