//! Parses the arguments of a search.

use schemas::tool::checked_limit;
use schemas::tool::search::{SearchArgs, SearchSort};
use schemas::{Timestamp, ToolError, limits};
use serde::Deserialize;

use super::context;
use super::explain::names_order;
use crate::reply::call::Call;
use crate::reply::cursor::{self, PageEnd};
use crate::reply::interface::Interface;
use crate::reply::time_range::TimeRange;
use search::{Query, RankedPosition, ResultPosition};

/// A search, as its arguments describe it.
pub(crate) struct ParsedSearch<'a> {
    pub(super) args: &'a SearchArgs,
    /// The arguments to which cursors are bound.
    pub(super) bound: SearchArgs,
    /// The query, to which the arguments `until` and `sort` belong, too.
    pub(super) query: Query,
    pub(super) since: Option<Timestamp>,
    pub(super) limit: usize,
    /// Number of events to show before and after each match.
    pub(super) context: u32,
    /// The last match before the page, if there is one and matches are in the order of time.
    pub(super) after_time: Option<ResultPosition>,
    /// The same if they are ranked.
    pub(super) after_rank: Option<RankedPosition>,
    /// Number of matches on the pages before.
    pub(super) seen: usize,
    /// True if the page before was ranked because nothing matched exactly.
    pub(super) continues_ranking: bool,
    /// True for the best match of each session only, if the matches are ranked.
    pub(super) one_per_session: bool,
}

/// A position in one of the two orders of matches.
#[derive(Deserialize)]
#[serde(untagged)]
enum SearchPosition {
    Ranked(RankedPosition),
    ByTime(ResultPosition),
}

impl<'a> ParsedSearch<'a> {
    pub(crate) fn parse(
        args: &'a SearchArgs,
        one_per_session: bool,
        interface: Interface,
        call: &Call<'_>,
    ) -> Result<Self, ToolError> {
        let range =
            TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &call.zone, call.now)?;
        let mut query = Query::parse_in_zone(&args.query, call.now, &call.zone)
            .map_err(|error| interface.query_error(&error))?;
        query.until = query.until.into_iter().chain(range.until.map(|until| until.0)).min();
        query.sort = args.sort.unwrap_or(query.sort);
        let since = range.since.max(query.since.map(Timestamp));
        TimeRange { since, until: query.until.map(Timestamp) }.require_order()?;
        let context = context::checked_count(args.context)?;
        let limit =
            checked_limit("limit", args.limit, limits::SEARCH_LIMIT, limits::SEARCH_LIMIT_MAX)?;

        let bound = SearchArgs { cursor: None, ..args.clone() };
        let mut parsed = Self {
            args,
            bound,
            query,
            since,
            limit,
            context,
            after_time: None,
            after_rank: None,
            seen: 0,
            continues_ranking: false,
            one_per_session,
        };
        if let Some(cursor) = &args.cursor {
            parsed.begin_at(cursor::decode(&parsed.bound, cursor)?)?;
        }
        Ok(parsed)
    }

    /// Sets the position where the page begins.
    fn begin_at(&mut self, end: PageEnd<SearchPosition>) -> Result<(), ToolError> {
        match end.at {
            SearchPosition::Ranked(at) => {
                self.continues_ranking = !is_ranked(&self.query);
                self.query.sort = SearchSort::Relevance;
                self.after_rank = Some(at);
            }
            SearchPosition::ByTime(at) => self.after_time = Some(at),
        }
        if self.after_rank.is_some() != is_ranked(&self.query) {
            return Err(cursor::other_call_error());
        }
        self.seen = end.seen;
        Ok(())
    }

    /// Returns true if a query that nothing matches exactly may be answered by relevance: it has
    /// several words, and the caller asked neither for another order nor for an exact total.
    pub(super) fn may_rank_instead(&self) -> bool {
        let query = &self.query;
        let words = query.clauses.iter().filter(|clause| clause.is_optional && !clause.is_excluded);
        words.count() > 1
            && self.args.cursor.is_none()
            && !names_order(self.args, query)
            && !query.must_count_all
            && search::can_rank(query)
    }
}

/// Returns true if matches are ranked, which requires a word that has a weight.
pub(super) fn is_ranked(query: &Query) -> bool {
    query.sort == SearchSort::Relevance && search::can_rank(query)
}
