//! `search_events`.

use std::collections::HashSet;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::checked_limit;
use schemas::tool::search::{Match, SearchArgs, SearchData};
use schemas::{EventId, Timestamp, ToolError, limits};

use super::budget::Budget;
use super::{Call, Reply, convert, cursor};
use crate::clean::clean;
use crate::error::store_error;
use crate::search::{Found, Hit, Position, Query, Request};
use crate::store::Snapshot;

pub(super) fn run(
    snapshot: &Snapshot,
    args: &SearchArgs,
    call: &Call<'_>,
) -> Result<Reply<SearchData>, ToolError> {
    let limit = checked_limit("limit", args.limit, limits::SEARCH_LIMIT, limits::SEARCH_LIMIT_MAX)?;
    let query = Query::parse(&args.query, call.now)?;
    let since = args
        .since
        .as_deref()
        .map(|since| Timestamp::parse_since("since", since, call.now))
        .transpose()?;
    let bound = SearchArgs { cursor: None, ..args.clone() };
    let after = args.cursor.as_deref().map(|text| cursor::decode(&bound, text)).transpose()?;
    let after =
        after.map(|(time, session_id, event_index)| Position { time, session_id, event_index });
    let request = Request {
        query: &query,
        sessions: sessions(snapshot, args)?,
        event_types: args.event_type.as_ref().map(|types| types.to_vec()).unwrap_or_default(),
        since: since.map(|since| since.0),
        limit,
        after,
    };
    let Found { hits, next, matched, complete } =
        crate::search::search(snapshot, &request, call.stop).map_err(store_error)??;
    let mut budget = Budget::new(limits::ANSWER_BYTES);
    let mut matches = Vec::with_capacity(hits.len());
    let mut last = None;
    let total_hits = hits.len();
    for hit in hits {
        let found = to_match(snapshot, &hit);
        if !budget.take(&found) {
            break;
        }
        last = Some((hit.row.timestamp, hit.row.session_id, hit.row.event_index));
        matches.push(found);
    }
    let has_more = next.is_some() || matches.len() < total_hits;
    let mut reply = Reply::new(SearchData { query: query.echo(), matches }, 0);
    reply.returned = reply.data.matches.len();
    reply.next_cursor = last.filter(|_| has_more).map(|position| cursor::encode(&bound, &position));
    reply.total = Some((matched.max(reply.returned), complete));
    reply.hint = Some(hint(snapshot, args, &reply.data));
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

/// Positions of the sessions that pass the filters; `None` when there are no such filters.
fn sessions(snapshot: &Snapshot, args: &SearchArgs) -> Result<Option<HashSet<usize>>, ToolError> {
    if let Some(prefix) = &args.session_id {
        return Ok(Some(HashSet::from([snapshot.find(prefix)?])));
    }
    if args.provider.is_none() && args.project.is_none() {
        return Ok(None);
    }
    let passes = super::list::filter(args.project.as_deref(), args.provider, None);
    let wanted = snapshot.sessions().iter().enumerate().filter(|(_, row)| passes(row));
    Ok(Some(wanted.map(|(at, _)| at).collect()))
}

fn to_match(snapshot: &Snapshot, hit: &Hit) -> Match {
    let (row, session) = (&hit.row, &snapshot.sessions()[hit.session]);
    Match {
        event_id: EventId::format(&row.session_id, convert::index(row.event_index)),
        session_id: row.session_id.clone(),
        event_index: convert::index(row.event_index),
        turn_index: convert::index(row.turn_index),
        step_index: convert::index(row.step_index),
        event_type: convert::event_type(&row.event_type),
        subtype: row.subtype.as_deref().map(clean),
        timestamp: convert::time(row.timestamp),
        provider: convert::provider(&row.provider),
        project: session.project.as_deref().map(clean),
        tool_name: row.tool_name.as_deref().map(clean),
        is_error: row.is_error,
        is_replay: row.is_replay,
        snippet: clean(&hit.snippet.text),
        omitted: hit.snippet.omitted,
    }
}

/// Words before a colon that look like qualifiers and are arguments instead.
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

/// What to do next; why there is nothing when there is nothing.
fn hint(snapshot: &Snapshot, args: &SearchArgs, data: &SearchData) -> String {
    if !data.matches.is_empty() {
        return "get_event_details(event_ids=[...]) gives the full text, get_session_details(session_id) the session around it.".to_owned();
    }
    let filters: Vec<_> = [
        args.event_type.as_ref().map(|_| "event_type"),
        args.provider.map(|_| "provider"),
        args.project.as_ref().map(|_| "project"),
        args.session_id.as_ref().map(|_| "session_id"),
        args.since.as_ref().map(|_| "since"),
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
    let words = if data.query.terms.len() > 1 {
        " All words must occur in one event: try fewer."
    } else {
        ""
    };
    let mistaken = data.query.terms.iter().find(|term| {
        let name = term.split_once(':').map(|(name, _)| name);
        name.is_some_and(|name| NO_QUALIFIERS.contains(&name))
    });
    if let Some(name) = mistaken.and_then(|term| term.split_once(':')).map(|(name, _)| name) {
        return format!(
            "{searched} '{name}:' is no qualifier and was searched as text; narrow with the arguments of this tool."
        );
    }
    match filters.as_slice() {
        [] => format!(
            "{searched}{words} Words match as substrings in any case; try a shorter or another word."
        ),
        filters => format!("{searched}{words} Try without {}.", filters.join(", ")),
    }
}
