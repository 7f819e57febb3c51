//! Finds the sessions whose matches are on a page, and loads them.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use schemas::ToolError;
use schemas::table::EVENTS;
use schemas::tool::search::SearchSort;

use super::condition::EventCondition;
use super::engine::{LakeCall, SparkEngine};
use super::loader::{count_fitting, unreadable};
use super::pruning::{CandidateObject, collect_objects, find_candidates, scanned_paths};
use super::relation::{read_files, select};
use super::windows::{SearchWindow, split_windows};
use crate::lake::LakeCatalog;
use search::{Clause, Query, QueryPattern, SearchError, SearchRequest, matching_sessions, search};
use store::Snapshot;
use tools::error::{search_error, store_error};
use tools::{Examined, NeededMatches, RowTotal};

/// Most words whose presence in the lake is looked up to explain an empty page.
const MAX_EXPLAINED_WORDS: usize = 8;

/// The matches of one session, as Spark counted them.
struct SessionMatches {
    session: usize,
    matches: usize,
    /// The times of the first ones in the order of the search.
    times: Vec<i64>,
}

/// What a search must examine.
struct LakeSearch<'a> {
    engine: &'a SparkEngine,
    call: &'a LakeCall<'a>,
    request: &'a SearchRequest<'a>,
    catalog: &'a LakeCatalog,
    candidates: &'a [CandidateObject],
    /// The number of objects of the lake.
    total: usize,
}

impl SparkEngine {
    /// Loads the events on a page of a search, and those that explain why there are none.
    pub(super) fn load_page(
        &self,
        call: &LakeCall<'_>,
        needed: &NeededMatches<'_>,
    ) -> Result<Examined, ToolError> {
        // The tool reports arguments that are not valid.
        let Ok(request) = (needed.request)(call.snapshot) else { return Ok(Examined::default()) };
        if needed.is_ranked {
            return self.load_compared(call, &request, true);
        }
        let examined = self.find_matches(call, &request)?;
        if request.after.is_some() || finds_any(call, &request, examined.matched)? {
            return Ok(examined);
        }
        if needed.may_rank_instead {
            return self.load_compared(call, &request, true);
        }
        let explained = self.load_compared(call, &request, false)?;
        Ok(Examined { matched: explained.matched, ..examined })
    }

    /// Loads the sessions with the matches of a page, and counts the matches.
    fn find_matches(
        &self,
        call: &LakeCall<'_>,
        request: &SearchRequest<'_>,
    ) -> Result<Examined, ToolError> {
        let catalog = self.catalog()?;
        let candidates = find_candidates(&catalog, self.folder(), call.snapshot, request);
        let total = catalog.object_count();
        let lake_search = LakeSearch {
            engine: self,
            call,
            request,
            catalog: &catalog,
            candidates: &candidates,
            total,
        };
        let sessions = distinct_sessions(candidates.iter());
        if session_bytes(&catalog, call.snapshot, &sessions) <= self.limits.load_bytes {
            self.load_events(call, &sessions)?;
            return Ok(lake_search.scope(None, None));
        }
        let condition = EventCondition::new(request);
        if condition.is_exact {
            lake_search.count_by_window(&condition, &sessions)
        } else {
            lake_search.load_by_window(&sessions)
        }
    }

    /// Loads everything if it is little. Otherwise loads the newest of the selected sessions if
    /// `is_ranked`, and looks up the words of the query in the whole lake.
    fn load_compared(
        &self,
        call: &LakeCall<'_>,
        request: &SearchRequest<'_>,
        is_ranked: bool,
    ) -> Result<Examined, ToolError> {
        let snapshot = call.snapshot;
        let catalog = self.catalog()?;
        let everything: Vec<usize> = (0..snapshot.sessions().len()).collect();
        let limit = self.limits.compared_bytes;
        if session_bytes(&catalog, snapshot, &everything) <= limit {
            self.load_events(call, &everything)?;
            let count = everything.len();
            let description = format!("all {count} sessions of the lake compared");
            return Ok(Examined { description, matched: None });
        }
        self.load_words(call, request)?;
        if !is_ranked {
            let description = "the whole lake searched".to_owned();
            return Ok(Examined { description, matched: None });
        }
        let wanted = matching_sessions(snapshot, request);
        let objects = collect_objects(&catalog, self.folder(), snapshot, wanted.as_ref());
        let mut sessions = distinct_sessions(objects.iter());
        let selected = sessions.len();
        sessions.sort_by_key(|at| Reverse(snapshot.sessions()[*at].ended_at));
        keep_bytes(&catalog, snapshot, &mut sessions, limit);
        self.load_events(call, &sessions)?;
        let count = sessions.len();
        let description =
            format!("the newest {count} of {selected} selected sessions of the lake compared");
        let matched = (count < selected).then_some(RowTotal::AtLeast(0));
        Ok(Examined { description, matched })
    }

    /// Loads a session for each word of the query that the lake has, so that the answer does not call
    /// it absent.
    fn load_words(
        &self,
        call: &LakeCall<'_>,
        request: &SearchRequest<'_>,
    ) -> Result<(), ToolError> {
        let clauses = request.query.clauses.iter().filter(|clause| !clause.is_excluded);
        let patterns = clauses.flat_map(|clause| &clause.any);
        let words = patterns.filter(|pattern| matches!(pattern, QueryPattern::Text(_)));
        for word in words.take(MAX_EXPLAINED_WORDS) {
            let clause = Clause { any: vec![word.clone()], is_excluded: false, is_optional: false };
            let query = Query {
                clauses: vec![clause],
                is_case_sensitive: request.query.is_case_sensitive,
                includes_replay: request.query.includes_replay,
                ..Query::default()
            };
            self.find_matches(call, &SearchRequest::any(&query, None))?;
        }
        Ok(())
    }
}

impl LakeSearch<'_> {
    /// Counts the matches with Spark in growing windows until a page is full, and loads the
    /// sessions of the page.
    fn count_by_window(
        &self,
        condition: &EventCondition,
        sessions: &[usize],
    ) -> Result<Examined, ToolError> {
        let request = self.request;
        let wanted = request.limit + 1;
        let is_oldest_first = request.query.sort == SearchSort::Oldest;
        let mut found = Vec::new();
        let mut days = None;
        for window in self.windows(sessions) {
            found = self.count_matches(&window, condition, wanted)?;
            days = window.days;
            if found.iter().map(|one| one.times.len()).sum::<usize>() >= wanted {
                break;
            }
        }
        let matches = found.iter().map(|one| one.matches).sum();
        let page = sessions_of_page(found, wanted, is_oldest_first);
        self.engine.load_events(self.call, &page)?;
        let matched =
            if days.is_none() { RowTotal::Exact(matches) } else { RowTotal::AtLeast(matches) };
        Ok(self.scope(days, Some(matched)))
    }

    /// Returns the windows to search, in order: only everything if that is little, or if all matches
    /// must be counted. `sessions` are those of the candidates.
    fn windows(&self, sessions: &[usize]) -> Vec<SearchWindow<'_>> {
        let query = self.request.query;
        let mut windows = split_windows(self.candidates, query.sort == SearchSort::Oldest);
        let events: i64 = sessions.iter().map(|at| self.call.snapshot.sessions()[*at].events).sum();
        if events <= self.engine.limits.counted_events || query.must_count_all {
            windows.drain(..windows.len() - 1);
        }
        windows
    }

    /// Counts the matches of a window by session, with Spark.
    fn count_matches(
        &self,
        window: &SearchWindow<'_>,
        condition: &EventCondition,
        wanted: usize,
    ) -> Result<Vec<SessionMatches>, ToolError> {
        if window.objects.is_empty() {
            return Ok(Vec::new());
        }
        let is_ascending = self.request.query.sort == SearchSort::Oldest;
        let sql = format!(
            "SELECT session_id, count(*) AS matches, \
             slice(sort_array(collect_list(timestamp), {is_ascending}), 1, {wanted}) AS times \
             FROM events WHERE {} GROUP BY session_id",
            condition.sql
        );
        let paths = scanned_paths(self.catalog, self.engine.folder(), &window.objects);
        let events = ("events", read_files(paths, &EVENTS));
        let relation = select(&sql, condition.parameters.clone(), vec![events]);
        let mut found = Vec::new();
        self.engine.connection().run(&relation, self.call.stop, &mut |batch| {
            let rows = read_matches(self.call.snapshot, &batch);
            found.extend(rows.ok_or_else(|| unreadable("a count has unexpected columns"))?);
            Ok(true)
        })?;
        Ok(found)
    }

    /// Loads the candidates of growing windows until a page is full. The store decides which rows match,
    /// because Spark cannot.
    fn load_by_window(&self, sessions: &[usize]) -> Result<Examined, ToolError> {
        let is_oldest_first = self.request.query.sort == SearchSort::Oldest;
        let limit = self.engine.limits.compared_bytes;
        for window in self.windows(sessions) {
            let mut sessions = distinct_sessions(window.objects.iter().copied());
            let count = sessions.len();
            let ended = |at: usize| self.call.snapshot.sessions()[at].ended_at;
            if is_oldest_first {
                sessions.sort_by_key(|at| ended(*at));
            } else {
                sessions.sort_by_key(|at| Reverse(ended(*at)));
            }
            keep_bytes(self.catalog, self.call.snapshot, &mut sessions, limit);
            self.engine.load_events(self.call, &sessions)?;
            if sessions.len() < count {
                return Ok(self.scope(window.days, Some(RowTotal::AtLeast(0))));
            }
            if window.days.is_none() || self.is_page_full(&window)? {
                let matched = window.days.map(|_| RowTotal::AtLeast(0));
                return Ok(self.scope(window.days, matched));
            }
        }
        Ok(self.scope(None, None))
    }

    /// Returns true if the store has the matches of the page, and one more. It has sessions as a whole, and those
    /// of earlier calls: between matches outside the window others may be missing.
    fn is_page_full(&self, window: &SearchWindow<'_>) -> Result<bool, ToolError> {
        let snapshot = self.call.store.take_snapshot().map_err(store_error)?;
        match search(&snapshot, self.request, self.call.stop) {
            Ok(page) => {
                let last = page.hits.last().and_then(|hit| hit.facts.time);
                Ok(page.next.is_some() && window.includes(last))
            }
            Err(SearchError::Store(error)) => Err(store_error(error)),
            Err(SearchError::Cancelled | SearchError::TimedOut) => Ok(true),
        }
    }

    /// Describes what was searched: `days` of it, or everything.
    fn scope(&self, days: Option<i64>, matched: Option<RowTotal>) -> Examined {
        let end = if self.request.query.sort == SearchSort::Oldest { "oldest" } else { "newest" };
        let window = match days {
            None => "the whole lake searched".to_owned(),
            Some(1) => format!("the {end} day with candidates searched"),
            Some(days) => format!("the {end} {days} days with candidates searched"),
        };
        let pruned = self.total - self.candidates.len();
        let description =
            format!("{window}; the skip indexes excluded {pruned} of {} objects", self.total);
        Examined { description, matched }
    }
}

/// Returns true if some matches were counted, or the store has some now.
fn finds_any(
    call: &LakeCall<'_>,
    request: &SearchRequest<'_>,
    counted: Option<RowTotal>,
) -> Result<bool, ToolError> {
    match counted {
        Some(RowTotal::Exact(count)) => return Ok(count > 0),
        Some(RowTotal::AtLeast(1..)) => return Ok(true),
        Some(RowTotal::AtLeast(0)) | None => {}
    }
    let snapshot = call.store.take_snapshot().map_err(store_error)?;
    let found = search(&snapshot, request, call.stop).map_err(search_error)?;
    Ok(!found.hits.is_empty())
}

/// Returns the sessions of the objects, each once, by position.
fn distinct_sessions<'c>(objects: impl Iterator<Item = &'c CandidateObject>) -> Vec<usize> {
    let sessions: BTreeSet<usize> = objects.map(|object| object.session).collect();
    sessions.into_iter().collect()
}

/// Returns the bytes of the objects of sessions.
fn session_bytes(catalog: &LakeCatalog, snapshot: &Snapshot, sessions: &[usize]) -> u64 {
    sessions.iter().map(|at| bytes_of(catalog, snapshot, *at)).sum()
}

fn bytes_of(catalog: &LakeCatalog, snapshot: &Snapshot, session: usize) -> u64 {
    let id = snapshot.sessions()[session].id();
    catalog.sessions.get(id).map_or(0, |session| session.bytes())
}

/// Keeps the first sessions whose objects have at most `limit` bytes together, and at least one.
fn keep_bytes(catalog: &LakeCatalog, snapshot: &Snapshot, sessions: &mut Vec<usize>, limit: u64) {
    let sizes = sessions.iter().map(|at| bytes_of(catalog, snapshot, *at));
    sessions.truncate(count_fitting(sizes, limit));
}

/// Returns the sessions that have one of the first `wanted` matches.
fn sessions_of_page(
    mut found: Vec<SessionMatches>,
    wanted: usize,
    is_oldest_first: bool,
) -> Vec<usize> {
    let key = |time: i64| if is_oldest_first { !time } else { time };
    let mut keys: Vec<i64> = found.iter().flat_map(|one| &one.times).map(|at| key(*at)).collect();
    keys.sort_unstable_by_key(|key| Reverse(*key));
    if let Some(last) = keys.get(wanted - 1) {
        found.retain(|one| one.times.iter().any(|time| key(*time) >= *last));
        return found.iter().map(|one| one.session).collect();
    }
    // Matches without a time come last, by session.
    found.sort_by_key(|one| (one.times.is_empty(), one.session));
    found.truncate(wanted);
    found.iter().map(|one| one.session).collect()
}

/// Returns the counts in a batch; `None` if it has other columns.
fn read_matches(snapshot: &Snapshot, batch: &RecordBatch) -> Option<Vec<SessionMatches>> {
    let ids = batch.column_by_name("session_id")?.as_string_opt::<i32>()?;
    let counts = batch.column_by_name("matches")?.as_primitive_opt::<Int64Type>()?;
    let lists = batch.column_by_name("times")?.as_list_opt::<i32>()?;
    let mut found = HashMap::new();
    for row in 0..batch.num_rows() {
        let Some(session) = snapshot.session_position(ids.value(row)) else { continue };
        let times = lists.value(row);
        let times = times.as_primitive_opt::<TimestampMicrosecondType>()?;
        let matches = usize::try_from(counts.value(row)).unwrap_or(0);
        found.insert(
            session,
            SessionMatches { session, matches, times: times.iter().flatten().collect() },
        );
    }
    Some(found.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(session: usize, matches: usize, times: &[i64]) -> SessionMatches {
        SessionMatches { session, matches, times: times.to_vec() }
    }

    #[test]
    fn a_page_has_the_sessions_of_its_matches() {
        let found = || vec![matches(0, 3, &[9, 4, 1]), matches(1, 1, &[5]), matches(2, 1, &[3])];
        assert_eq!(sessions_of_page(found(), 1, false), [0]);
        assert_eq!(sessions_of_page(found(), 2, false), [0, 1]);
        assert_eq!(sessions_of_page(found(), 4, false), [0, 1, 2]);
        assert_eq!(sessions_of_page(found(), 9, false), [0, 1, 2]);
        let oldest = || vec![matches(0, 2, &[1, 4]), matches(1, 1, &[5]), matches(2, 1, &[3])];
        assert_eq!(sessions_of_page(oldest(), 2, true), [0, 2]);
        // Equal times may all belong to the page.
        let equal = vec![matches(0, 1, &[5]), matches(1, 1, &[5]), matches(2, 1, &[4])];
        assert_eq!(sessions_of_page(equal, 1, false), [0, 1]);
        let untimed = vec![matches(3, 4, &[]), matches(1, 2, &[]), matches(2, 2, &[7])];
        assert_eq!(sessions_of_page(untimed, 2, false), [2, 1]);
    }
}
