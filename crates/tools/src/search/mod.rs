//! Runs `search_events`, the full-text search over events.

mod context;
mod explain;
mod later;
mod page;
mod quotes;
mod selection;

use std::cell::OnceCell;
use std::collections::HashSet;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::search::{SearchArgs, SearchData, SearchSort};
use schemas::{ErrorCode, Timestamp, ToolError, limits};

use self::explain::{excludes_current, names_order};
pub(super) use self::page::search_error;
use self::page::{MatchPage, find_best_matches, find_matches_by_time};
use self::selection::SelectedSessions;
use crate::error::store_error;
use crate::reply::answer::{Reply, RowTotal};
use crate::reply::call::Call;
use crate::reply::cursor::{self, PageEnd};
use crate::reply::interface::Interface;
use crate::reply::lake_engine::{LakeScope, MatchCount};
use crate::reply::shared_state::SharedState;
use search::{
    AbsentWord, COUNTED_ROWS, KnownAbsence, Query, RankedPosition, ResultPosition, SearchError,
    SearchRequest,
};
use store::Snapshot;

/// Has the engine, if there is one, load what a search needs. Arguments that are not valid are left to
/// [`run`], which reports them.
pub(super) fn prepare(
    shared: &SharedState,
    args: &SearchArgs,
    call: &Call<'_>,
) -> Result<(), ToolError> {
    shared.prepare_lake(call, |engine, lake| {
        let snapshot = lake.snapshot;
        let Ok(since) = parse_since(args, call) else { return Ok(LakeScope::default()) };
        let one_per_session = false;
        let mut search = EventSearch::new(shared, snapshot, args, call, since, one_per_session);
        let Ok(query) = search.parse_query() else { return Ok(LakeScope::default()) };
        search.since = search.since.max(query.since.map(Timestamp));
        let Ok(mut request) = search.request(&query) else { return Ok(LakeScope::default()) };

        if !is_ranked(&query) && !search.continues_ranking(&query) {
            let bound = search.bound_arguments();
            let cursor = args.cursor.as_deref();
            let after = cursor.map(|text| cursor::decode::<PageEnd<ResultPosition>>(&bound, text));
            request.after = after.and_then(Result::ok).map(|after| after.at);
            let scope = engine.load_matches(lake, &request)?;
            if request.after.is_some() || finds_any(shared, &request, scope.matched, call)? {
                return Ok(scope);
            }
            if !may_rank_instead(args, &query) {
                let explained = engine.load_for_comparison(lake, &request, false)?;
                return Ok(LakeScope { matched: explained.matched, ..scope });
            }
        }
        engine.load_for_comparison(lake, &request, true)
    })
}

/// Returns true if the store has matches now, or the engine counted some.
fn finds_any(
    shared: &SharedState,
    request: &SearchRequest<'_>,
    counted: MatchCount,
    call: &Call<'_>,
) -> Result<bool, ToolError> {
    match counted {
        MatchCount::Exactly(count) | MatchCount::AtLeast(count) => Ok(count > 0),
        MatchCount::Loaded | MatchCount::AtLeastLoaded => {
            let snapshot = shared.store.take_snapshot().map_err(store_error)?;
            let found = search::search(&snapshot, request, call.stop);
            Ok(!found.map_err(search_error)?.hits.is_empty())
        }
    }
}

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
    call: &Call<'_>,
    one_per_session: bool,
) -> Result<Reply<SearchData>, ToolError> {
    let since = parse_since(args, call)?;
    let mut search = EventSearch::new(shared, snapshot, args, call, since, one_per_session);
    let mut query = search.parse_query()?;
    search.since = search.since.max(query.since.map(Timestamp));
    let mut page = search.find_page(&query)?;
    let mut is_ranked_instead = search.continues_ranking(&query);
    if is_ranked_instead {
        query.sort = SearchSort::Relevance;
    }
    if page.is_empty() && !page.is_timed_out && may_rank_instead(args, &query) {
        let ranked = Query { sort: SearchSort::Relevance, ..query.clone() };
        let ranked_page = search.find_page(&ranked)?;
        if !ranked_page.is_empty() {
            query = ranked;
            page = ranked_page;
            is_ranked_instead = true;
        }
    }
    if page.is_timed_out && page.matches.is_empty() && page.next.is_none() {
        return Err(search_error(SearchError::TimedOut));
    }

    let absent = search.find_absent_words(&query, &page)?;
    let mut reply = Reply::new(
        SearchData { query: query.to_parsed_query(), matches: std::mem::take(&mut page.matches) },
        0,
    );
    reply.returned = reply.data.matches.len();
    reply.next_cursor.clone_from(&page.next);
    reply.before = page.before;
    let matched = page.matched.max(reply.before + reply.returned);
    let count = call.lake_scope().map_or(MatchCount::Loaded, |lake| lake.matched);
    reply.total = Some(match count {
        // A page that is ranked instead has what was loaded for it.
        MatchCount::Exactly(count) if !is_ranked(&query) => {
            RowTotal::Exact(matched.max(reply.before + count))
        }
        MatchCount::AtLeast(count) if !is_ranked(&query) => {
            RowTotal::AtLeast(matched.max(reply.before + count))
        }
        MatchCount::AtLeastLoaded => RowTotal::AtLeast(matched),
        MatchCount::Loaded | MatchCount::Exactly(_) | MatchCount::AtLeast(_)
            if page.is_complete =>
        {
            RowTotal::Exact(matched)
        }
        MatchCount::Loaded | MatchCount::Exactly(_) | MatchCount::AtLeast(_) => {
            RowTotal::AtLeast(matched)
        }
    });
    if is_ranked(&query) {
        let best = reply.data.matches.first().and_then(|found| found.confidence);
        reply.best_confidence = Some(best.unwrap_or(0.0));
    }

    let selected = search.selected()?;
    reply.scope = Some(explain::describe_scope(snapshot, args, selected, search.since));
    let mut hints: Vec<String> = explain::describe_absent_words(&absent).into_iter().collect();
    if !(page.is_timed_out && reply.data.matches.is_empty()) {
        hints.push(explain::describe_next_step(
            shared.caller.interface,
            snapshot,
            args,
            &query,
            &reply.data,
            selected,
        )?);
    }
    reply.hint = Some(hints.join(" "));
    reply.warnings = caller_notes(shared, snapshot, args)?;
    reply.warnings.extend(selected.dropped_texts_note(snapshot)?);
    reply.warnings.extend(explain::unknown_qualifier_warning(&reply.data, is_ranked_instead));
    reply.warnings.extend(describe_page(&query, &page, is_ranked_instead));
    Ok(reply)
}

/// Returns true if matches are ranked, which requires a word that has a weight.
fn is_ranked(query: &Query) -> bool {
    query.sort == SearchSort::Relevance && search::can_rank(query)
}

/// Returns true if a query that nothing matches exactly may be answered by relevance: it has several
/// words, and the caller asked neither for another order nor for an exact total.
fn may_rank_instead(args: &SearchArgs, query: &Query) -> bool {
    let words = query.clauses.iter().filter(|clause| clause.is_optional && !clause.is_excluded);
    words.count() > 1
        && args.cursor.is_none()
        && !names_order(args, query)
        && !query.must_count_all
        && search::can_rank(query)
}

/// Returns the time of `since`.
fn parse_since(args: &SearchArgs, call: &Call<'_>) -> Result<Option<Timestamp>, ToolError> {
    let parse = |since: &String| call.zone.parse_since("since", since, call.now);
    args.since.as_ref().map(parse).transpose()
}

/// The search of one call.
struct EventSearch<'a> {
    shared: &'a SharedState,
    snapshot: &'a Snapshot,
    args: &'a SearchArgs,
    call: &'a Call<'a>,
    since: Option<Timestamp>,
    /// True for the best match of each session only.
    one_per_session: bool,
    /// The sessions that the filters select; see [`Self::selected`].
    selected: OnceCell<SelectedSessions<'a>>,
}

impl<'a> EventSearch<'a> {
    fn new(
        shared: &'a SharedState,
        snapshot: &'a Snapshot,
        args: &'a SearchArgs,
        call: &'a Call<'a>,
        since: Option<Timestamp>,
        one_per_session: bool,
    ) -> Self {
        let selected = OnceCell::new();
        Self { shared, snapshot, args, call, since, one_per_session, selected }
    }

    /// Returns the sessions that the filters of the call select. The first access finds them.
    fn selected(&self) -> Result<&SelectedSessions<'a>, ToolError> {
        if let Some(selected) = self.selected.get() {
            return Ok(selected);
        }
        let found = SelectedSessions::find(self.shared, self.snapshot, self.args)?;
        Ok(self.selected.get_or_init(|| found))
    }

    /// Returns the positions of the sessions to search; `None` means all.
    fn searched_sessions(&self) -> Result<Option<HashSet<usize>>, ToolError> {
        let is_excluded = excludes_current(self.args);
        let current =
            if is_excluded { self.shared.caller.current_session(self.snapshot) } else { None };
        Ok(self.selected()?.without(current, self.snapshot))
    }

    /// Parses the query, to which the arguments `until` and `sort` belong, too.
    fn parse_query(&self) -> Result<Query, ToolError> {
        let Self { args, call, .. } = self;
        let interface = self.shared.caller.interface;
        let mut query = Query::parse_in_zone(&args.query, call.now, &call.zone)
            .map_err(|error| interface.query_error(&error))?;
        if let Some(until) = &args.until {
            let until = call.zone.parse_since("until", until, call.now)?.0;
            query.until = Some(query.until.map_or(until, |other| other.min(until)));
        }
        if let Some(sort) = args.sort {
            query.sort = sort;
        }
        let since = self.since.max(query.since.map(Timestamp));
        if since.zip(query.until).is_some_and(|(since, until)| since.0 >= until) {
            let message = "since: it is not before until. Swap them, or leave one out";
            return Err(
                ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "since")
            );
        }
        Ok(query)
    }

    /// Returns the arguments to which cursors are bound.
    fn bound_arguments(&self) -> SearchArgs {
        SearchArgs { cursor: None, ..self.args.clone() }
    }

    /// True if the cursor is from a page that was ranked because nothing matched exactly.
    fn continues_ranking(&self, query: &Query) -> bool {
        let bound = self.bound_arguments();
        let decode = |text: &String| cursor::decode::<PageEnd<RankedPosition>>(&bound, text);
        !is_ranked(query) && self.args.cursor.as_ref().is_some_and(|text| decode(text).is_ok())
    }

    /// True if the best matches come with more of their texts than snippets: in one session, for a
    /// caller that reads no screen.
    fn shows_texts(&self) -> bool {
        let is_tool = self.shared.caller.interface == Interface::Tools;
        is_tool && self.args.session_id.is_some()
    }

    fn request<'q>(&self, query: &'q Query) -> Result<SearchRequest<'q>, ToolError> {
        let Self { args, .. } = self;
        let limit =
            checked_limit("limit", args.limit, limits::SEARCH_LIMIT, limits::SEARCH_LIMIT_MAX)?;
        Ok(SearchRequest {
            query,
            sessions: self.searched_sessions()?,
            event_types: args.event_type.as_ref().map(|types| types.to_vec()).unwrap_or_default(),
            since: self.since.map(|since| since.0),
            limit,
            one_per_session: self.one_per_session,
            after: None,
            counted_rows: COUNTED_ROWS,
            deadline: Some(self.call.search_deadline()),
        })
    }

    /// Finds the page of matches that the cursor names, or the first one.
    fn find_page(&self, query: &Query) -> Result<MatchPage, ToolError> {
        let bound = self.bound_arguments();
        let context = context::checked_count(self.args.context)?;
        let mut request = self.request(query)?;
        let cursor = self.args.cursor.as_deref();
        let mut page = if is_ranked(query) || self.continues_ranking(query) {
            let after = cursor
                .map(|text| cursor::decode::<PageEnd<RankedPosition>>(&bound, text))
                .transpose()?;
            find_best_matches(
                self.snapshot,
                &request,
                after,
                &bound,
                self.shows_texts(),
                self.call,
            )?
        } else {
            let after = cursor
                .map(|text| cursor::decode::<PageEnd<ResultPosition>>(&bound, text))
                .transpose()?;
            let seen = after.as_ref().map_or(0, |after| after.seen);
            request.after = after.map(|after| after.at);
            find_matches_by_time(self.snapshot, &request, seen, &bound, self.call)?
        };
        if is_ranked(query) && cursor.is_none() && self.shows_texts() {
            later::add_later_messages(self.snapshot, &mut page.matches)?;
        }
        context::add_context(self.snapshot, &mut page.matches, context)?;
        Ok(page)
    }

    /// Returns the words of the query that no searched event has.
    fn find_absent_words(
        &self,
        query: &Query,
        page: &MatchPage,
    ) -> Result<Vec<AbsentWord>, ToolError> {
        let is_ranked = is_ranked(query);
        let known = if !page.is_empty() {
            KnownAbsence::Words(&page.absent_words)
        } else if page.is_complete && !is_ranked && query.clauses.len() == 1 {
            // The page has all events with one of these words, and there are none.
            KnownAbsence::EveryWord
        } else {
            KnownAbsence::Unknown
        };
        if page.is_timed_out || matches!(known, KnownAbsence::Words([])) {
            return Ok(Vec::new());
        }
        let request = self.request(query)?;
        search::find_absent_words(self.snapshot, &request, is_ranked, known, self.call.stop)
            .map_err(search_error)
    }
}

/// Returns notes on how the page differs from what the query asks for.
fn describe_page(query: &Query, page: &MatchPage, is_ranked_instead: bool) -> Vec<Warning> {
    let mut notes = Vec::new();
    if is_ranked_instead {
        let message = "No event has all of these words; the best matches for some of them are shown. With sort newest, all are required";
        notes.push(Warning::new(WarningCode::RankedInstead, Severity::Warning, message));
    }
    if page.is_timed_out {
        notes.push(Warning::new(
            WarningCode::ResultsTruncated,
            Severity::Warning,
            describe_timeout(query, page),
        ));
    }
    if !page.includes_all_hits {
        let message = "The page was cut to the maximum size of an answer";
        notes.push(Warning::new(WarningCode::ResultsTruncated, Severity::Info, message));
    }
    if query.sort == SearchSort::Relevance && !is_ranked(query) {
        let message =
            "Sorting by relevance needs a word to rank by; the newest matches are shown first";
        notes.push(Warning::new(WarningCode::ParameterIgnored, Severity::Info, message));
    }
    if query.includes_replay {
        let message =
            "Copied history (is_replay) is included; the same event may appear once per copy";
        notes.push(Warning::new(WarningCode::ReplayExcluded, Severity::Info, message));
    }
    notes
}

/// Describes what a search that ran out of time did not examine, and how to continue.
fn describe_timeout(query: &Query, page: &MatchPage) -> String {
    let narrow = "narrow the search with since, session_id, project or a rarer word";
    let newer = if query.sort == SearchSort::Oldest { "later" } else { "older" };
    match &page.next {
        Some(_) => format!(
            "The search ran out of time: {newer} events were not searched. Pass pagination.next_cursor as cursor to continue, or {narrow}"
        ),
        None => format!(
            "The search ran out of time: events that match better may be missing. To search all, {narrow}"
        ),
    }
}

/// Returns notes on which session was taken as the current one, or that it is unknown.
fn caller_notes(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
) -> Result<Vec<Warning>, ToolError> {
    let mut notes = Vec::new();
    if let Some(id) = &args.session_id {
        let session = &snapshot.sessions()[shared.caller.find_session(snapshot, id)?];
        notes.extend(shared.caller.session_note(id, session));
    }
    if excludes_current(args) && shared.caller.current_session(snapshot).is_none() {
        let message = "exclude_current has no effect: the session you are in is not known";
        notes.push(Warning::new(WarningCode::ParameterIgnored, Severity::Warning, message));
    }
    Ok(notes)
}
