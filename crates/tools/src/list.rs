//! Runs `list_sessions`, which returns sessions with their sums, by filter or by id.

use std::cmp::Reverse;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::price::PriceTable;
use schemas::tool::checked_limit;
use schemas::tool::list::{ListArgs, ListData, ListFormat, ListSort};
use schemas::{ErrorCode, ToolError, limits};

use super::reply::answer::{Reply, RowTotal};
use super::reply::budget::{Budget, echoed_name};
use super::reply::call::Call;
use super::reply::caller::ambiguous_prefix_warning;
use super::reply::interface::{Interface, given};
use super::reply::scope::{Coverage, SessionFilters, has_label, is_part_of_conversation};
use super::reply::session_sums::{SubagentIndex, session_tokens};
use super::reply::time_range::TimeRange;
use super::reply::tools::Tools;
use super::reply::usage_warnings::usage_warnings;
use super::reply::{convert, cursor};
use crate::error::store_error;
use store::{SessionSummary, Snapshot, StoreError, StoredSession};

pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &ListArgs,
    call: &Call<'_>,
) -> Result<Reply<ListData>, ToolError> {
    let limit = checked_limit("limit", args.limit, limits::LIST_LIMIT, limits::LIST_LIMIT_MAX)?;
    let range =
        TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &call.zone, call.now)?;
    let bound = ListArgs { cursor: None, ..args.clone() };
    let after = args
        .cursor
        .as_deref()
        .map(|text| cursor::decode::<(i64, String)>(&bound, text))
        .transpose()?;
    let ListCandidates { rows: candidates, not_found, ambiguous } =
        find_candidates(tools, snapshot, args)?;

    let filters = SessionFilters {
        machine: args.machine.as_deref(),
        user: args.user.as_deref(),
        label: args.label.as_deref(),
        ..SessionFilters::new(args.project.as_deref(), args.provider, range)
    };
    let filter = filters.row_filter(snapshot);
    let passes = |session: &SessionSummary| {
        let has_label = |label| has_label(snapshot, &session.session_id, label);
        filter(session) && filters.label.is_none_or(has_label)
    };
    let sort = args.sort.unwrap_or(ListSort::Recent);
    let families = SubagentIndex::from_sessions(snapshot.sessions());
    let passing = candidates.into_iter().filter(|session| passes(session));
    let rows = with_sort_keys(snapshot, passing, sort, &families, tools.prices());
    let mut rows = rows.map_err(store_error)?;
    let total = rows.len();
    if let Some((last_key, last_id)) = after {
        rows.retain(|(key, one)| (Reverse(*key), one.id()) > (Reverse(last_key), last_id.as_str()));
    }
    let before = total - rows.len();
    sort_first(&mut rows, limit);

    let format = args.format.unwrap_or(ListFormat::Summary);
    let mut budget = Budget::new(limits::ANSWER_BYTES);
    if !not_found.is_empty() {
        budget.take(&not_found);
    }
    let mut sessions = Vec::new();
    let mut shown = Vec::new();
    let mut last = None;
    for (key, stored) in rows.iter().take(limit) {
        let row = stored.row().map_err(store_error)?;
        let mut session = convert::convert_session(row, format, tools.prices());
        convert::add_labels(&mut session, snapshot, format);
        convert::add_origin(&mut session, stored, snapshot);
        if format != ListFormat::Minimal {
            let family = families.sum_with_subagents(stored, tools.prices());
            session.with_subagents = family.map_err(store_error)?;
        }
        if !budget.take(&session) {
            break;
        }
        sessions.push(session);
        shown.push(row);
        last = Some((*key, row.session_id.clone()));
    }

    let returned = sessions.len();
    let mut reply = Reply::new(ListData { sessions, not_found }, returned);
    if returned < rows.len() {
        reply.next_cursor = last.map(|position| cursor::encode(&bound, &position));
    }
    reply.before = before;
    reply.total = Some(RowTotal::Exact(total));
    reply.warnings.extend(ambiguous);
    if format != ListFormat::Minimal {
        reply.warnings.extend(usage_warnings(shown, tools.prices(), &|_| true));
    }
    if returned < limit.min(rows.len()) {
        let message =
            "The page was cut to the maximum size of an answer; format 'minimal' shows more";
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    let covers = if args.subagents.unwrap_or(false) {
        Coverage::Conversations
    } else {
        Coverage::OwnConversations
    };
    reply.scope = Some(match requested_ids(args) {
        None => filters.describe_scope(snapshot, covers),
        Some(ids) => format!("{} requested sessions", ids.len()),
    });
    if returned == 0 {
        let known = snapshot.sessions().len();
        let reason = filters.explain_none(snapshot).filter(|_| requested_ids(args).is_none());
        reply.hint =
            Some(reason.unwrap_or_else(|| explain_empty(tools.caller.interface, args, known)));
    } else if requested_ids(args).is_none() {
        let left_out = describe_left_out(tools.caller.interface, snapshot, passes);
        reply.hint = left_out.map_err(store_error)?;
    }
    Ok(reply)
}

/// Returns why none of the `known` sessions is listed.
fn explain_empty(interface: Interface, args: &ListArgs, known: usize) -> String {
    let filter_names = given([
        ("project", args.project.is_some()),
        ("provider", args.provider.is_some()),
        ("machine", args.machine.is_some()),
        ("user", args.user.is_some()),
        ("since", args.since.is_some()),
        ("until", args.until.is_some()),
        ("label", args.label.is_some()),
    ]);
    match (requested_ids(args), filter_names.as_slice()) {
        (Some(_), []) => {
            format!("None of these ids is known; not_found lists them. There are {known} sessions.")
        }
        (None, []) => format!("None of {known} sessions holds a conversation."),
        (_, filter_names) => {
            let names = interface.argument_names(filter_names);
            format!("None of {known} sessions matches. Try without {names}.")
        }
    }
}

/// Describes the tokens that `session_stats` counts and the list does not: those of warm-ups and
/// aborted starts.
fn describe_left_out(
    interface: Interface,
    snapshot: &Snapshot,
    passes: impl Fn(&SessionSummary) -> bool,
) -> Result<Option<String>, StoreError> {
    let mut sessions = 0;
    let mut tokens = 0;
    for session in snapshot.sessions() {
        if session.is_conversation || !passes(session) {
            continue;
        }
        let recorded = session.row()?.usage().total();
        if recorded > 0 {
            sessions += 1;
            tokens += recorded;
        }
    }
    if sessions == 0 {
        return Ok(None);
    }
    Ok(Some(format!(
        "Of the sessions left out, {sessions} without a conversation used {tokens} tokens, which {} counts.",
        interface.tool_name("session_stats")
    )))
}

/// Returns the requested ids. An empty list requests none in particular.
fn requested_ids(args: &ListArgs) -> Option<&[String]> {
    args.session_ids.as_deref().filter(|ids| !ids.is_empty())
}

/// The sessions that may be listed.
#[derive(Default)]
struct ListCandidates<'s> {
    rows: Vec<&'s StoredSession>,
    not_found: Vec<String>,
    /// Warnings about ids that are a prefix of several sessions.
    ambiguous: Vec<Warning>,
}

/// Returns the sessions requested by id, or all that contain a conversation. A subagent whose
/// parent is listed counts as part of the parent unless subagents are requested.
fn find_candidates<'s>(
    tools: &Tools,
    snapshot: &'s Snapshot,
    args: &ListArgs,
) -> Result<ListCandidates<'s>, ToolError> {
    let Some(ids) = requested_ids(args) else {
        let rows = collect_conversations(snapshot, args.subagents.unwrap_or(false));
        return Ok(ListCandidates { rows, ..ListCandidates::default() });
    };
    if ids.len() > limits::SESSION_IDS_MAX {
        let valid = format!("1-{} ids", limits::SESSION_IDS_MAX);
        return Err(ToolError::invalid_value(
            "session_ids",
            &format!("{} ids", ids.len()),
            &[&valid],
        ));
    }

    let mut found = Vec::new();
    let mut candidates = ListCandidates::default();
    for id in ids {
        match tools.caller.find_session(snapshot, id) {
            Ok(at) => found.push(at),
            // If several ids were given, the others are answered.
            Err(error) if error.code == ErrorCode::SessionNotFound || ids.len() > 1 => {
                candidates.not_found.push(echoed_name(id));
                candidates.ambiguous.extend(ambiguous_prefix_warning(&error));
            }
            Err(error) => return Err(error),
        }
    }
    found.sort_unstable();
    found.dedup();
    candidates.rows = found.into_iter().map(|at| &snapshot.sessions()[at]).collect();
    Ok(candidates)
}

/// Returns the sessions with a conversation; without `includes_subagents`, those that are a part of
/// another one are left out.
fn collect_conversations(snapshot: &Snapshot, includes_subagents: bool) -> Vec<&StoredSession> {
    // A session that only repeats another one's history is not listed, but it may still have
    // started subagents.
    let is_listed = |session: &SessionSummary| {
        session.is_conversation
            && (includes_subagents || !is_part_of_conversation(snapshot, session))
    };
    snapshot.sessions().iter().filter(|session| is_listed(session)).collect()
}

/// Returns the sessions with their sort keys.
fn with_sort_keys<'s>(
    snapshot: &'s Snapshot,
    sessions: impl Iterator<Item = &'s StoredSession>,
    sort: ListSort,
    families: &SubagentIndex<'s>,
    prices: &PriceTable,
) -> Result<Vec<(i64, &'s StoredSession)>, StoreError> {
    // Only the rows have these values.
    if matches!(sort, ListSort::Tokens | ListSort::Cost | ListSort::Errors | ListSort::Duration) {
        snapshot.read_rows()?;
    }
    sessions.map(|session| Ok((sort_key(session, sort, families, prices)?, session))).collect()
}

/// Moves the `count` first sessions of the list to the front, in order. The rest of a long history need
/// not be sorted for one page.
fn sort_first(rows: &mut [(i64, &StoredSession)], count: usize) {
    let order = |(a, x): &(i64, &StoredSession), (b, y): &(i64, &StoredSession)| {
        (Reverse(a), x.id()).cmp(&(Reverse(b), y.id()))
    };
    if count < rows.len() {
        rows.select_nth_unstable_by(count, order);
    }
    let first = count.min(rows.len());
    rows[..first].sort_unstable_by(order);
}

/// Returns the sort key of a session; the largest comes first, sessions without the value last. Tokens
/// and costs are those that are shown: with the subagents of the session.
fn sort_key<'s>(
    session: &'s StoredSession,
    sort: ListSort,
    families: &SubagentIndex<'s>,
    prices: &PriceTable,
) -> Result<i64, StoreError> {
    let shown_tokens = || match families.sum_with_subagents(session, prices)? {
        Some(family) => Ok(Some(family.tokens)),
        None => Ok::<_, StoreError>(session_tokens(session.row()?, prices)),
    };
    Ok(match sort {
        ListSort::Recent => session.ended_at.unwrap_or(i64::MIN),
        ListSort::Oldest => session.started_at.map_or(i64::MIN, |start| -start),
        ListSort::Tokens => shown_tokens()?.map_or(0, |tokens| tokens.counted_once.total()),
        ListSort::Cost => {
            let cost = shown_tokens()?.and_then(|tokens| tokens.cost_usd);
            cost.map_or(-1, to_microdollars)
        }
        ListSort::Events => session.events,
        ListSort::Errors => session.row()?.tool_errors,
        ListSort::Duration => session.row()?.duration_ms().unwrap_or(-1),
    })
}

#[expect(clippy::cast_possible_truncation, reason = "a cost is far below the largest number")]
fn to_microdollars(dollars: f64) -> i64 {
    (dollars * 1e6) as i64
}
