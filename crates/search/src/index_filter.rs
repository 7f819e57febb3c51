//! Selects the objects that an engine has to scan whose rows are elsewhere, by their skip indexes.

use std::ops::Range;

use super::request::SearchRequest;
use super::segment_filter::SegmentFilter;
use store::{Grams, SkipIndex, StoreError};

/// The filters of a request, for skip indexes that do not belong to a segment of the store.
pub struct IndexFilter<'a> {
    request: &'a SearchRequest<'a>,
    /// The runs of which a matching text must contain one alternative of every group.
    needs: Vec<Vec<Grams>>,
}

impl<'a> IndexFilter<'a> {
    /// Creates the filter for rows in which all clauses of the query hold.
    pub fn new(request: &'a SearchRequest<'a>) -> Self {
        Self { request, needs: request.query.required_grams() }
    }

    /// Returns true if rows with this index may match.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn may_match(&self, index: &SkipIndex) -> Result<bool, StoreError> {
        Ok(!self.find_candidate_rows(index)?.is_empty())
    }

    /// Returns the rows with this index that may match, as ascending ranges.
    ///
    /// # Errors
    /// Fails if the index cannot be read.
    pub fn find_candidate_rows(&self, index: &SkipIndex) -> Result<Vec<Range<usize>>, StoreError> {
        let filter = SegmentFilter::of_blocks(index, self.request, &self.needs)?;
        if filter.is_excluded {
            return Ok(Vec::new());
        }
        let has_row_filters = filter.tags.is_some() || filter.files.is_some();
        let mut candidates = Vec::new();
        for at in &filter.candidate_blocks {
            let block = &index.blocks()[*at];
            let rows = block.start..block.start + block.count;
            // An index may have the rows of many sessions, and few of them have the wanted tags.
            if !has_row_filters
                || index.read_facts(rows.clone())?.iter().any(|facts| filter.row_passes(&facts))
            {
                candidates.push(rows);
            }
        }
        Ok(candidates)
    }
}
