//! Runs `search_events`, the full-text search over events.

mod explain;

use std::collections::HashSet;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::search::{Match, SearchArgs, SearchData, SearchSort};
use schemas::{ErrorCode, EventId, ToolError, limits};

use self::explain::excludes_current;
use crate::base::sanitize::clean_text;
use crate::error::store_error;
use crate::search::{Query, RankedPosition, ResultPosition, SearchError, SearchHit, SearchRequest};
use crate::store::Snapshot;
use crate::tools::reply::answer::{Reply, RowTotal};
use crate::tools::reply::budget::Budget;
use crate::tools::reply::call::Call;
use crate::tools::reply::cursor::PageEnd;
use crate::tools::reply::retention_warning::dropped_texts_warning;
use crate::tools::reply::scope::SessionFilters;
use crate::tools::reply::session_filter::session_filter;
use crate::tools::reply::shared_state::SharedState;
use crate::tools::reply::{convert, cursor};

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
    call: &Call<'_>,
) -> Result<Reply<SearchData>, ToolError> {
    let limit = checked_limit("limit", args.limit, limits::SEARCH_LIMIT, limits::SEARCH_LIMIT_MAX)?;
    let query = Query::parse_in_zone(&args.query, call.now, &call.zone)
        .map_err(|error| shared.caller.interface.query_error(&error))?;
    let since = args
        .since
        .as_deref()
        .map(|since| call.zone.parse_since("since", since, call.now))
        .transpose()?;
    if since.zip(query.until).is_some_and(|(since, until)| since.0 >= until) {
        let message = "since: it is not before until:. Swap them, or leave one out";
        return Err(
            ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "since")
        );
    }

    let bound = SearchArgs { cursor: None, ..args.clone() };
    let mut request = SearchRequest {
        query: &query,
        sessions: filtered_sessions(shared, snapshot, args)?,
        event_types: args.event_type.as_ref().map(|types| types.to_vec()).unwrap_or_default(),
        since: since.map(|since| since.0),
        limit,
        after: None,
        deadline: Some(call.search_deadline()),
    };
    let cursor = args.cursor.as_deref();
    // Ranking requires a word that has a weight.
    let is_ranked = query.sort == SearchSort::Relevance && crate::search::can_rank(&query);
    let page = if is_ranked {
        let after = cursor
            .map(|text| cursor::decode::<PageEnd<RankedPosition>>(&bound, text))
            .transpose()?;
        find_best_matches(snapshot, &request, after, &bound, call)?
    } else {
        let after = cursor
            .map(|text| cursor::decode::<PageEnd<ResultPosition>>(&bound, text))
            .transpose()?;
        let seen = after.as_ref().map_or(0, |after| after.seen);
        request.after = after.map(|after| after.at);
        find_newest_matches(snapshot, &request, seen, &bound, call)?
    };
    if page.is_timed_out {
        return Err(timeout_error(&page));
    }

    let mut reply =
        Reply::new(SearchData { query: query.to_parsed_query(), matches: page.matches }, 0);
    reply.returned = reply.data.matches.len();
    reply.next_cursor = page.next;
    reply.before = page.before;
    let matched = page.matched.max(reply.before + reply.returned);
    reply.total =
        Some(if page.is_complete { RowTotal::Exact(matched) } else { RowTotal::AtLeast(matched) });
    if is_ranked {
        let best = reply.data.matches.first().and_then(|found| found.confidence);
        reply.best_confidence = Some(best.unwrap_or(0.0));
    }
    let has_no_match = reply.returned == 0 && reply.before == 0;
    let absent_stems = if has_no_match { None } else { Some(page.absent_stems.as_slice()) };
    let absent = if has_no_match || !page.absent_stems.is_empty() {
        crate::search::find_absent_words(snapshot, &request, is_ranked, absent_stems, call.stop)
            .map_err(search_error)?
    } else {
        Vec::new()
    };
    let filters = session_filters(shared, snapshot, args)?;
    reply.scope = Some(explain::describe_scope(snapshot, args, &filters, since));
    let mut hints: Vec<String> = explain::describe_absent_words(&absent).into_iter().collect();
    let interface = shared.caller.interface;
    hints.push(explain::describe_next_step(
        interface,
        snapshot,
        args,
        &query,
        &reply.data,
        &filters,
    )?);
    reply.hint = Some(hints.join(" "));
    reply.warnings = caller_notes(shared, snapshot, args)?;
    let since = filters.since.map(|since| since.0);
    let passes = session_filter(filters.project, filters.provider, since);
    let requested = filters.session.map(|at| snapshot.sessions()[at].session_id.as_str());
    let dropped = dropped_texts_warning(snapshot, |row| {
        passes(row) && requested.is_none_or(|id| row.session_id == id)
    });
    reply.warnings.extend(dropped.map_err(store_error)?);
    if !page.includes_all_hits {
        let message = "The page was cut to the maximum size of an answer";
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    if query.sort == SearchSort::Relevance && !is_ranked {
        let message = "sort:relevance needs a word to rank by; the newest matches are shown first";
        let warning = Warning::new(WarningCode::ParameterIgnored, Severity::Info, message);
        reply.warnings.push(warning);
    }
    if query.includes_replay {
        let message =
            "Copied history (is_replay) is included; the same event may appear once per copy";
        let warning = Warning::new(WarningCode::ReplayExcluded, Severity::Info, message);
        reply.warnings.push(warning);
    }
    Ok(reply)
}

/// A page of matches, within the budget of an answer.
struct MatchPage {
    matches: Vec<Match>,
    /// The number of matches on the pages before this one.
    before: usize,
    next: Option<String>,
    matched: usize,
    is_complete: bool,
    is_timed_out: bool,
    /// True if everything that was found fits into an answer.
    includes_all_hits: bool,
    /// The stems of the words of a ranked search that no selected event has.
    absent_stems: Vec<String>,
}

/// Finds the newest matches.
fn find_newest_matches(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    seen: usize,
    bound: &SearchArgs,
    call: &Call<'_>,
) -> Result<MatchPage, ToolError> {
    let found = crate::search::search(snapshot, request, call.stop).map_err(search_error)?;
    let matches = collect_matches(snapshot, bound, &found.hits);
    let includes_all_hits = matches.len() == found.hits.len();

    // A page that was cut continues after its last match.
    let last = if includes_all_hits { None } else { matches.len().checked_sub(1) };
    let next_position = match last {
        Some(last) => Some(hit_position(snapshot, &found.hits[last])),
        None => found.next,
    };
    let next =
        next_position.map(|at| cursor::encode(bound, &PageEnd { at, seen: seen + matches.len() }));

    Ok(MatchPage {
        matches,
        before: seen,
        next,
        matched: seen + found.matched,
        is_complete: found.is_complete,
        is_timed_out: found.is_timed_out,
        includes_all_hits,
        absent_stems: Vec::new(),
    })
}

fn hit_position(snapshot: &Snapshot, hit: &SearchHit) -> ResultPosition {
    ResultPosition {
        time: hit.facts.time,
        session_id: snapshot.sessions()[hit.session].session_id.clone(),
        event_index: hit.event_index,
    }
}

/// Finds the best matches.
fn find_best_matches(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    after: Option<PageEnd<RankedPosition>>,
    bound: &SearchArgs,
    call: &Call<'_>,
) -> Result<MatchPage, ToolError> {
    let seen = after.as_ref().map_or(0, |after| after.seen);
    let after = after.map(|after| after.at);
    let found = crate::search::search_ranked(snapshot, request, after.as_ref(), call.stop)
        .map_err(search_error)?;
    let matches = collect_matches(snapshot, bound, &found.hits);
    let includes_all_hits = matches.len() == found.hits.len();

    // After a timeout, matches that were not examined may rank before these.
    let has_next = (found.has_more || !includes_all_hits) && !found.is_timed_out;
    let last = if has_next { matches.len().checked_sub(1) } else { None };
    let next = last.map(|last| {
        cursor::encode(bound, &PageEnd { at: &found.ends[last], seen: seen + matches.len() })
    });

    Ok(MatchPage {
        matches,
        before: seen,
        next,
        matched: seen + found.matched,
        is_complete: found.is_complete,
        is_timed_out: found.is_timed_out,
        includes_all_hits,
        absent_stems: found.absent_stems,
    })
}

/// Returns the matches of the hits that fit into an answer. The budget leaves room for the query,
/// which the answer also contains: echoed, and word by word in the cursor of a ranked page.
fn collect_matches(snapshot: &Snapshot, args: &SearchArgs, hits: &[SearchHit]) -> Vec<Match> {
    let mut budget = Budget::new(limits::ANSWER_BYTES.saturating_sub(4 * args.query.len()));
    let mut matches = Vec::new();
    for hit in hits {
        let found = convert_hit(snapshot, hit);
        if !budget.take(&found) {
            break;
        }
        matches.push(found);
    }
    matches
}

/// Returns the error of a search that took too long, with what it found and how to continue.
fn timeout_error(page: &MatchPage) -> ToolError {
    let next_step = match &page.next {
        Some(_) => "Pass details.next_cursor to continue from there, or narrow the search",
        None => "Narrow the search",
    };
    let message = format!(
        "The search timed out; details.matches holds the {} matches found so far. {next_step} with since, session_id, project or a rarer word",
        page.matches.len()
    );
    let mut error = ToolError::new(ErrorCode::SearchTimeout, message);
    let matches = serde_json::to_value(&page.matches).unwrap_or_default();
    error.details.insert("matches".to_owned(), matches);
    if let Some(next) = &page.next {
        error.details.insert("next_cursor".to_owned(), next.as_str().into());
    }
    error
}

/// Returns the filters by which the call selects sessions.
fn session_filters<'a>(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &'a SearchArgs,
) -> Result<SessionFilters<'a>, ToolError> {
    let id = args.session_id.as_deref();
    Ok(SessionFilters {
        project: args.project.as_deref(),
        provider: args.provider,
        session: id.map(|id| shared.caller.find_session(snapshot, id)).transpose()?,
        ..SessionFilters::default()
    })
}

/// Returns the positions of the sessions that pass the filters; `None` if there are no such
/// filters.
fn filtered_sessions(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
) -> Result<Option<HashSet<usize>>, ToolError> {
    let excluded =
        if excludes_current(args) { shared.caller.current_session(snapshot) } else { None };
    let one = args
        .session_id
        .as_deref()
        .map(|id| shared.caller.find_session(snapshot, id))
        .transpose()?;
    let is_narrowed =
        one.or(excluded).is_some() || args.provider.is_some() || args.project.is_some();
    if !is_narrowed {
        return Ok(None);
    }

    let passes = session_filter(args.project.as_deref(), args.provider, None);
    let mut wanted = HashSet::new();
    for (at, row) in snapshot.sessions().iter().enumerate() {
        if one.is_none_or(|one| one == at) && Some(at) != excluded && passes(row) {
            wanted.insert(at);
        }
    }
    Ok(Some(wanted))
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

fn convert_hit(snapshot: &Snapshot, hit: &SearchHit) -> Match {
    let facts = &hit.facts;
    let session = &snapshot.sessions()[hit.session];
    Match {
        event_id: EventId::format(&session.session_id, hit.event_index),
        session_id: session.session_id.clone(),
        event_index: hit.event_index,
        turn_index: facts.turn_index,
        step_index: facts.step_index,
        event_type: facts.event_type,
        subtype: hit.tags.subtype.as_deref().map(clean_text),
        timestamp: convert::format_time(facts.time),
        provider: session.provider,
        project: session.project.as_deref().map(clean_text),
        tool_name: hit.tags.tool.as_deref().map(clean_text),
        is_error: facts.is_error,
        is_replay: facts.is_replay,
        is_abandoned: i32::try_from(hit.event_index).is_ok_and(|at| session.is_abandoned(at)),
        confidence: hit.confidence,
        snippet: clean_text(&hit.snippet.text),
        omitted: hit.snippet.omitted,
    }
}

pub(super) fn search_error(error: SearchError) -> ToolError {
    match error {
        SearchError::Cancelled => ToolError::new(ErrorCode::Cancelled, "The search was cancelled"),
        SearchError::TimedOut => {
            let message = "The search timed out. Narrow it with project, provider, since or until";
            ToolError::new(ErrorCode::SearchTimeout, message)
        }
        SearchError::Store(error) => store_error(error),
    }
}
