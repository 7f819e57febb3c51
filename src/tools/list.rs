//! Runs `list_sessions`, which returns sessions with their sums, by filter or by id.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::session::SessionRow;
use schemas::tool::checked_limit;
use schemas::tool::list::{ListArgs, ListData, ListFormat, ListSort};
use schemas::{ErrorCode, Timestamp, ToolError, limits};

use super::reply::answer::Reply;
use super::reply::budget::{Budget, echoed};
use super::reply::call::Call;
use super::reply::caller::ambiguous_prefix_warning;
use super::reply::interface::Interface;
use super::reply::session_filter::session_filter;
use super::reply::session_sums::{Families, is_subagent};
use super::reply::shared_state::SharedState;
use super::reply::{convert, cursor};
use crate::store::Snapshot;

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &ListArgs,
    call: &Call<'_>,
) -> Result<Reply<ListData>, ToolError> {
    let limit = checked_limit("limit", args.limit, limits::LIST_LIMIT, limits::LIST_LIMIT_MAX)?;
    let since = args
        .since
        .as_deref()
        .map(|since| Timestamp::parse_since("since", since, call.now))
        .transpose()?;
    let bound = ListArgs { cursor: None, ..args.clone() };
    let after = args
        .cursor
        .as_deref()
        .map(|text| cursor::decode::<(i64, String)>(&bound, text))
        .transpose()?;
    let Candidates { rows: candidates, not_found, ambiguous } = candidates(shared, snapshot, args)?;
    let families = Families::of(snapshot.sessions());
    let filter = session_filter(args.project.as_deref(), args.provider, since.map(|since| since.0));
    let labelled = |row: &SessionRow| {
        let given = snapshot.labels().of(&row.session_id);
        args.label.as_ref().is_none_or(|label| given.is_some_and(|given| given.has(label.trim())))
    };
    let passes = |row: &SessionRow| filter(row) && labelled(row);
    let sort = args.sort.unwrap_or(ListSort::Recent);
    let mut rows: Vec<_> =
        candidates.into_iter().filter(|row| passes(row)).map(|row| (key(row, sort), row)).collect();
    rows.sort_by(|(a, x), (b, y)| (Reverse(a), &x.session_id).cmp(&(Reverse(b), &y.session_id)));
    let total = rows.len();
    if let Some((key, id)) = after {
        rows.retain(|(k, row)| (Reverse(*k), &row.session_id) > (Reverse(key), &id));
    }
    let before = total - rows.len();
    let format = args.format.unwrap_or(ListFormat::Summary);
    let mut budget = Budget::new(limits::ANSWER_BYTES);
    if !not_found.is_empty() {
        budget.take(&not_found);
    }
    let mut sessions = Vec::new();
    let mut last = None;
    for (key, row) in rows.iter().take(limit) {
        let mut session = convert::session(row, format, shared.prices());
        convert::label(&mut session, snapshot, format);
        if format != ListFormat::Minimal {
            session.with_subagents = families.family(row, shared.prices());
        }
        if !budget.take(&session) {
            break;
        }
        sessions.push(session);
        last = Some((*key, row.session_id.clone()));
    }
    let returned = sessions.len();
    let mut reply = Reply::new(ListData { sessions, not_found }, returned);
    reply.next_cursor =
        last.filter(|_| returned < rows.len()).map(|position| cursor::encode(&bound, &position));
    reply.before = before;
    reply.total = Some((total, true));
    reply.warnings.extend(ambiguous);
    if returned < limit.min(rows.len()) {
        let message =
            "The page was cut to the size of an answer; format 'minimal' shows more at once";
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    if args.session_ids.is_none() && returned > 0 {
        reply.hint = left_out(shared.caller.interface, snapshot, passes);
    }
    if returned == 0 {
        let known = snapshot.sessions().len();
        let given = [
            ("project", args.project.is_some()),
            ("provider", args.provider.is_some()),
            ("since", args.since.is_some()),
            ("label", args.label.is_some()),
        ];
        let given: Vec<_> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
        reply.hint = Some(match (&args.session_ids, given.as_slice()) {
            (Some(_), []) => format!(
                "None of these ids is known; not_found lists them. There are {known} sessions."
            ),
            (None, []) => format!("None of {known} sessions holds a conversation."),
            (_, given) => {
                format!("None of {known} sessions passes. Try without {}.", given.join(", "))
            }
        });
    }
    Ok(reply)
}

/// Describes the tokens that `session_stats` counts and the list does not: those of warm-ups and
/// aborted starts.
fn left_out(
    interface: Interface,
    snapshot: &Snapshot,
    passes: impl Fn(&SessionRow) -> bool,
) -> Option<String> {
    let is_left_out = |row: &&Arc<SessionRow>| !row.is_conversation() && passes(row);
    let tokens = snapshot.sessions().iter().filter(is_left_out).map(|row| row.usage().total());
    let tokens: Vec<i64> = tokens.filter(|tokens| *tokens > 0).collect();
    (!tokens.is_empty()).then(|| {
        format!(
            "{} sessions without a conversation are left out; {} counts their {} tokens.",
            tokens.len(),
            interface.tool("session_stats"),
            tokens.iter().sum::<i64>()
        )
    })
}

/// The sessions that may be listed.
#[derive(Default)]
struct Candidates<'s> {
    rows: Vec<&'s SessionRow>,
    not_found: Vec<String>,
    /// Warnings about ids that are a prefix of several sessions.
    ambiguous: Vec<Warning>,
}

/// Returns the sessions requested by id, or all that contain a conversation. A subagent whose
/// parent is listed counts as part of the parent unless subagents are requested.
fn candidates<'s>(
    shared: &SharedState,
    snapshot: &'s Snapshot,
    args: &ListArgs,
) -> Result<Candidates<'s>, ToolError> {
    let Some(ids) = &args.session_ids else {
        let subagents = args.subagents.unwrap_or(false);
        // A session that only repeats another one's history is not listed, but it may still have
        // started subagents.
        let shown = snapshot.sessions().iter().filter(|row| row.is_conversation());
        let shown: HashSet<&str> = shown.map(|row| row.session_id.as_str()).collect();
        let inside = |row: &SessionRow| {
            let parent = row.parent_session_id.as_deref();
            is_subagent(row) && parent.is_some_and(|parent| shown.contains(parent))
        };
        let listed = |row: &&SessionRow| row.is_conversation() && (subagents || !inside(row));
        let rows = snapshot.sessions().iter().map(|row| &**row);
        return Ok(Candidates { rows: rows.filter(listed).collect(), ..Candidates::default() });
    };
    if ids.is_empty() || ids.len() > limits::SESSION_IDS_MAX {
        let valid = format!("1-{} ids", limits::SESSION_IDS_MAX);
        return Err(ToolError::invalid_value(
            "session_ids",
            &format!("{} ids", ids.len()),
            &[&valid],
        ));
    }
    let mut found = Vec::new();
    let mut candidates = Candidates::default();
    for id in ids {
        match shared.caller.find(snapshot, id) {
            Ok(at) => found.push(at),
            // If several ids were given, the others are answered.
            Err(error) if error.code == ErrorCode::SessionNotFound || ids.len() > 1 => {
                candidates.not_found.push(echoed(id));
                candidates.ambiguous.extend(ambiguous_prefix_warning(&error));
            }
            Err(error) => return Err(error),
        }
    }
    found.sort_unstable();
    found.dedup();
    candidates.rows = found.into_iter().map(|at| &*snapshot.sessions()[at]).collect();
    Ok(candidates)
}

/// Returns the sort key of a session; the largest comes first.
fn key(row: &SessionRow, sort: ListSort) -> i64 {
    match sort {
        ListSort::Recent => row.ended_at.unwrap_or(i64::MIN),
        ListSort::Oldest => row.started_at.map_or(i64::MIN, |start| -start),
        ListSort::Tokens => row.usage().total(),
        ListSort::Events => row.events,
        ListSort::Errors => row.tool_errors,
        ListSort::Duration => row.duration_ms().unwrap_or(-1),
    }
}
