//! Runs `search_events`, the full-text search over events.

use std::collections::HashSet;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::search::{Match, SearchArgs, SearchData, SearchSort};
use schemas::{ErrorCode, EventId, Timestamp, ToolError, limits};
use serde::{Deserialize, Serialize};

use super::reply::answer::Reply;
use super::reply::budget::Budget;
use super::reply::call::Call;
use super::reply::session_filter::session_filter;
use super::reply::shared_state::SharedState;
use super::reply::{convert, cursor};
use crate::base::sanitize::clean;
use crate::error::store_error;
use crate::search::{Hit, Position, Query, Ranked, Request, SearchError};
use crate::store::Snapshot;

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
    call: &Call<'_>,
) -> Result<Reply<SearchData>, ToolError> {
    let limit = checked_limit("limit", args.limit, limits::SEARCH_LIMIT, limits::SEARCH_LIMIT_MAX)?;
    let query = Query::parse(&args.query, call.now)
        .map_err(|error| shared.caller.interface.query_error(&error))?;
    let since = args
        .since
        .as_deref()
        .map(|since| Timestamp::parse_since("since", since, call.now))
        .transpose()?;
    if since.zip(query.until).is_some_and(|(since, until)| since.0 >= until) {
        let message = "since: it is not before until:. Swap them, or leave one out";
        return Err(ToolError::new(ErrorCode::InvalidArgument, message).with("field", "since"));
    }
    let bound = SearchArgs { cursor: None, ..args.clone() };
    let mut request = Request {
        query: &query,
        sessions: sessions(shared, snapshot, args)?,
        event_types: args.event_type.as_ref().map(|types| types.to_vec()).unwrap_or_default(),
        since: since.map(|since| since.0),
        limit,
        after: None,
        deadline: Some(call.search_end()),
    };
    let cursor = args.cursor.as_deref();
    // Ranking requires a word that has a weight.
    let ranked = query.sort == SearchSort::Relevance && crate::search::can_rank(&query);
    let page = if ranked {
        let after = cursor.map(|text| cursor::decode::<After<Ranked>>(&bound, text)).transpose()?;
        best(snapshot, &request, after, &bound, call)?
    } else {
        let after =
            cursor.map(|text| cursor::decode::<After<Position>>(&bound, text)).transpose()?;
        let seen = after.as_ref().map_or(0, |after| after.seen);
        request.after = after.map(|after| after.at);
        recent(snapshot, &request, seen, &bound, call)?
    };
    if page.timed_out {
        return Err(timeout(&page));
    }
    let mut reply = Reply::new(SearchData { query: query.echo(), matches: page.matches }, 0);
    reply.returned = reply.data.matches.len();
    reply.next_cursor = page.next;
    reply.before = page.before;
    reply.total = Some((page.matched.max(reply.before + reply.returned), page.complete));
    reply.hint = Some(hint(shared, snapshot, args, &query, &reply.data));
    reply.warnings = caller_notes(shared, snapshot, args)?;
    if !page.fit {
        let message = "The page was cut to the size of an answer";
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    if query.sort == SearchSort::Relevance && !ranked {
        reply.warnings.push(Warning {
            code: WarningCode::ParameterIgnored,
            message: "sort:relevance needs a word to rank by; these are the newest first"
                .to_owned(),
            severity: Severity::Info,
        });
    }
    if query.with_replay {
        reply.warnings.push(Warning {
            code: WarningCode::ReplayExcluded,
            message:
                "Copied history (is_replay) is included; the same event may appear once per copy"
                    .to_owned(),
            severity: Severity::Info,
        });
    }
    Ok(reply)
}

/// The position where a page ended, and the number of matches on all pages so far.
#[derive(Serialize, Deserialize)]
struct After<P> {
    at: P,
    seen: usize,
}

/// A page of matches, within the budget of an answer.
struct Page {
    matches: Vec<Match>,
    /// The number of matches on the pages before this one.
    before: usize,
    next: Option<String>,
    matched: usize,
    complete: bool,
    timed_out: bool,
    /// True if everything that was found fits into an answer.
    fit: bool,
}

/// Finds the newest matches.
fn recent(
    snapshot: &Snapshot,
    request: &Request<'_>,
    seen: usize,
    bound: &SearchArgs,
    call: &Call<'_>,
) -> Result<Page, ToolError> {
    let found = crate::search::search(snapshot, request, call.stop).map_err(search_error)?;
    let (matches, fit) = fitting(snapshot, bound, &found.hits);
    let cut = (!fit).then(|| matches.len().checked_sub(1).map(|last| &found.hits[last])).flatten();
    let position = |hit: &Hit| Position {
        time: hit.facts.time,
        session_id: snapshot.sessions()[hit.session].session_id.clone(),
        event_index: hit.event_index,
    };
    let next = cut.map(position).or(found.next);
    let next = next.map(|at| cursor::encode(bound, &After { at, seen: seen + matches.len() }));
    let (matched, complete, timed_out) = (seen + found.matched, found.complete, found.timed_out);
    Ok(Page { matches, before: seen, next, matched, complete, timed_out, fit })
}

/// Finds the best matches.
fn best(
    snapshot: &Snapshot,
    request: &Request<'_>,
    after: Option<After<Ranked>>,
    bound: &SearchArgs,
    call: &Call<'_>,
) -> Result<Page, ToolError> {
    let (after, seen) = after.map_or((None, 0), |after| (Some(after.at), after.seen));
    let found = crate::search::ranked(snapshot, request, after.as_ref(), call.stop)
        .map_err(search_error)?;
    let (matches, fit) = fitting(snapshot, bound, &found.hits);
    // After a timeout, matches that were not examined may rank before these.
    let goes_on = (found.more || !fit) && !found.timed_out;
    let last = matches.len().checked_sub(1).filter(|_| goes_on);
    let after = |last: usize| After { at: &found.ends[last], seen: seen + matches.len() };
    let next = last.map(|last| cursor::encode(bound, &after(last)));
    let (matched, complete, timed_out) = (seen + found.matched, found.complete, found.timed_out);
    Ok(Page { matches, before: seen, next, matched, complete, timed_out, fit })
}

/// Returns the hits that fit into an answer, and whether those are all. The budget leaves room for
/// the query, which the answer also contains: echoed, and word by word in the cursor of a ranked
/// page.
fn fitting(snapshot: &Snapshot, args: &SearchArgs, hits: &[Hit]) -> (Vec<Match>, bool) {
    let mut budget = Budget::new(limits::ANSWER_BYTES.saturating_sub(4 * args.query.len()));
    let matches = hits.iter().map(|hit| to_match(snapshot, hit));
    let matches: Vec<_> = matches.take_while(|found| budget.take(found)).collect();
    let fit = matches.len() == hits.len();
    (matches, fit)
}

/// Returns the error of a search that took too long, with what it found and how to continue.
fn timeout(page: &Page) -> ToolError {
    let go_on = match &page.next {
        Some(_) => "Pass next_cursor of the details to go on from there, or narrow",
        None => "Narrow",
    };
    let message = format!(
        "The search was out of time; details.matches holds the {} found so far. {go_on} it with since, session_id, project or a rarer word",
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

/// Returns the positions of the sessions that pass the filters; `None` if there are no such
/// filters.
fn sessions(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
) -> Result<Option<HashSet<usize>>, ToolError> {
    let excluded = excludes_current(args).then(|| shared.caller.session(snapshot)).flatten();
    let one = args.session_id.as_deref().map(|id| shared.caller.find(snapshot, id)).transpose()?;
    let narrowed = one.or(excluded).is_some() || args.provider.is_some() || args.project.is_some();
    if !narrowed {
        return Ok(None);
    }
    let passes = session_filter(args.project.as_deref(), args.provider, None);
    let wanted = snapshot.sessions().iter().enumerate();
    let wanted = wanted.filter(|(at, row)| {
        one.is_none_or(|one| one == *at) && Some(*at) != excluded && passes(row)
    });
    Ok(Some(wanted.map(|(at, _)| at).collect()))
}

fn excludes_current(args: &SearchArgs) -> bool {
    args.exclude_current.unwrap_or(false)
}

/// Returns notes on which session was taken as the current one, or that it is unknown.
fn caller_notes(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
) -> Result<Vec<Warning>, ToolError> {
    let mut notes = Vec::new();
    if let Some(id) = &args.session_id {
        let session = &snapshot.sessions()[shared.caller.find(snapshot, id)?];
        notes.extend(shared.caller.note(id, session));
    }
    if excludes_current(args) && shared.caller.session(snapshot).is_none() {
        let message = "exclude_current has no effect: the session you are in is not known";
        notes.push(Warning::new(WarningCode::ParameterIgnored, Severity::Warning, message));
    }
    Ok(notes)
}

fn to_match(snapshot: &Snapshot, hit: &Hit) -> Match {
    let (facts, session) = (&hit.facts, &snapshot.sessions()[hit.session]);
    Match {
        event_id: EventId::format(&session.session_id, hit.event_index),
        session_id: session.session_id.clone(),
        event_index: hit.event_index,
        turn_index: facts.turn_index,
        step_index: facts.step_index,
        event_type: facts.event_type,
        subtype: hit.labels.subtype.as_deref().map(clean),
        timestamp: convert::time(facts.time),
        provider: session.provider,
        project: session.project.as_deref().map(clean),
        tool_name: hit.labels.tool.as_deref().map(clean),
        is_error: facts.is_error,
        is_replay: facts.is_replay,
        is_abandoned: i32::try_from(hit.event_index).is_ok_and(|at| session.is_abandoned(at)),
        confidence: hit.confidence,
        snippet: clean(&hit.snippet.text),
        omitted: hit.snippet.omitted,
    }
}

fn search_error(error: SearchError) -> ToolError {
    match error {
        SearchError::Cancelled => ToolError::new(ErrorCode::Cancelled, "The search was cancelled"),
        SearchError::Store(error) => store_error(error),
    }
}

/// Words before a colon that look like qualifiers but are arguments instead.
const NO_QUALIFIERS: &[&str] = &[
    "since",
    "provider",
    "project",
    "type",
    "event_type",
    "session",
    "session_id",
    "sort",
    "limit",
];

/// Returns the next step; for an empty result, the reason why it is empty.
fn hint(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &SearchArgs,
    query: &Query,
    data: &SearchData,
) -> String {
    if !data.matches.is_empty() {
        let interface = shared.caller.interface;
        return format!(
            "{} gives the full text, {} the session around it.",
            interface.call("get_event_details", &[("event_ids", "[...]")]),
            interface.call("get_session_details", &[("session_id", "")])
        );
    }
    let filters: Vec<_> = [
        args.event_type.as_ref().map(|_| "event_type"),
        args.provider.map(|_| "provider"),
        args.project.as_ref().map(|_| "project"),
        args.session_id.as_ref().map(|_| "session_id"),
        args.since.as_ref().map(|_| "since"),
        args.exclude_current.filter(|excluded| *excluded).map(|_| "exclude_current"),
        (!data.query.qualifiers.is_empty()).then_some("the qualifiers in the query"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let searched = format!(
        "Nothing matches among {} events of {} sessions.",
        snapshot.events(),
        snapshot.sessions().len()
    );
    let words = if data.query.all_of.len() > 1 {
        " All words must occur in one event: try fewer, or add sort:relevance, which insists on none."
    } else {
        ""
    };
    if query.clauses.len() > 1 && args.query.contains(" OR ") && args.query.contains('(') {
        return format!(
            "{searched} Parentheses are text; OR binds the two terms beside it: a OR b c means (a OR b) and c."
        );
    }
    let mistaken = data.query.all_of.iter().find(|term| {
        let name = term.split_once(':').map(|(name, _)| name);
        name.is_some_and(|name| NO_QUALIFIERS.contains(&name))
    });
    if let Some(name) = mistaken.and_then(|term| term.split_once(':')).map(|(name, _)| name) {
        return format!(
            "{searched} '{name}:' is no qualifier and was searched as text; it is an argument of its own."
        );
    }
    match filters.as_slice() {
        [] => format!(
            "{searched}{words} Words match as substrings in any case; try a shorter or another word."
        ),
        filters => format!("{searched}{words} Try without {}.", filters.join(", ")),
    }
}
