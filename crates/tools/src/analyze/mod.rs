//! Runs `analyze_session`, which finds what went wrong in one session and what fixed it, or errors
//! that recur in many sessions.

mod action;
pub(crate) mod command;
mod context;
mod decisions;
mod ends;
mod error_summary;
mod failed_rows;
mod failing_call;
mod failures;
mod finding;
mod fix;
mod interruptions;
mod known_error;
mod known_fix;
mod later_failure;
mod loops;
mod page;
mod past_fix;
mod past_rows;
mod pasted_error;
mod recent_sessions;
mod recurring;
mod signature;
mod slow;
mod stop;

use std::cmp::Reverse;
use std::collections::HashSet;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::price::PriceTable;
use schemas::session::{EventRow, SessionRow};
use schemas::tool::analyze::{AnalyzeArgs, AnalyzeData, Check, Context, Finding};
use schemas::tool::checked_limit;
use schemas::tool::list::ListFormat;
use schemas::{ErrorCode, ToolError, limits};

pub(super) use self::action::{Action, ActionOutcome, pair_calls};
pub use self::decisions::{Decision, find_decisions};
pub(super) use self::ends::{
    calls_left_open, find_open_ends, find_rejected_plan, find_unanswered_prompt, is_left_open,
    is_plan_call, plan_text,
};
pub(super) use self::error_summary::names_error;
pub use self::failing_call::find_failing_call;
pub use self::known_fix::{LiveFailure, find_known_fix};
pub(super) use self::later_failure::find_later_failure;
use self::page::{FindingsPage, count_by_check};
pub use self::past_fix::{KnownFix, find_fix_of_event};
pub use self::past_rows::HistoryScope;
pub(super) use self::past_rows::PastRow;
use self::recent_sessions::RecentSessions;
pub(super) use self::stop::{notification_stop_reason, subtype_stop_reason};
use super::reply::answer::{Reply, RowTotal};
use super::reply::call::Call;
use super::reply::caller::{Caller, LAST, newest_conversation, newest_failed_conversation};
use super::reply::interface::{Interface, given};
use super::reply::retention_warning::dropped_texts_warning;
use super::reply::scope::{Coverage, SessionFilters};
use super::reply::time_range::TimeRange;
use super::reply::{convert, cursor, rows};
use crate::error::store_error;
use store::{SessionSummary, Snapshot};

/// Selects the newest session in which a call failed.
const LAST_FAILED: &str = "last_failed";

/// A session may still be running if its log was written to within this time, in microseconds.
const RUNNING_WITHIN_US: i64 = 10 * 60 * 1_000_000;

pub(super) fn run(
    snapshot: &Snapshot,
    args: &AnalyzeArgs,
    call: &Call<'_>,
    prices: &PriceTable,
    caller: &Caller,
) -> Result<Reply<AnalyzeData>, ToolError> {
    let limit =
        checked_limit("limit", args.limit, limits::FINDINGS_LIMIT, limits::FINDINGS_LIMIT_MAX)?;
    let range =
        TimeRange::parse(args.since.as_deref(), args.until.as_deref(), &call.zone, call.now)?;
    let filters = SessionFilters::new(args.project.as_deref(), args.provider, range);
    let bound = AnalyzeArgs { cursor: None, ..args.clone() };
    let page = FindingsPage { args: &bound, cursor: args.cursor.as_deref(), limit };
    let passes = filters.row_filter(snapshot);
    let mut reply = match args.session_id.as_deref().map(str::trim) {
        _ if args.query.is_some() || args.tool.is_some() => {
            let wanted = wanted_sessions(snapshot, args, caller, &passes)?;
            let mut reply =
                known_error::run(snapshot, &wanted, range, &page, call, caller.interface)?;
            let scope = filters.describe_scope(snapshot, Coverage::Conversations);
            reply.scope = Some(scope + &reply.scope.unwrap_or_default());
            reply
        }
        None => {
            let mut wanted = HashSet::new();
            for (at, row) in snapshot.sessions().iter().enumerate() {
                if row.is_conversation && passes(row) {
                    wanted.insert(at);
                }
            }
            let recent =
                RecentSessions::select(snapshot, &wanted, range.until, call.analyzed_events);
            let mut reply =
                recurring::run(snapshot, &recent, range, &page, call, caller.interface)?;
            let scope = filters.describe_scope(snapshot, Coverage::Conversations);
            reply.scope = Some(scope + &recent.describe());
            if wanted.is_empty() {
                reply.hint = filters.explain_none(snapshot).or(reply.hint);
            }
            reply
        }
        Some(name @ (LAST | LAST_FAILED)) => {
            let last = if name == LAST {
                newest_conversation(snapshot, &passes)
            } else {
                newest_failed_conversation(snapshot, &passes).map_err(store_error)?
            };
            let last = last.ok_or_else(|| {
                no_session_error(caller.interface, filters.explain_none(snapshot))
            })?;
            analyze_one(snapshot, last, &page, call, prices, caller.interface)?
        }
        Some(id) => {
            let found = caller.find_session(snapshot, id)?;
            let mut reply = analyze_one(snapshot, found, &page, call, prices, caller.interface)?;
            reply.warnings.extend(caller.session_note(id, &snapshot.sessions()[found]));
            reply
        }
    };
    reply.warnings.extend(ignored_arguments_warning(args));
    let analyzed = reply.data.session.as_ref().map(|session| session.session_id.clone());
    let dropped = dropped_texts_warning(snapshot, |row| match &analyzed {
        Some(id) => row.id() == *id,
        None => row.is_conversation && passes(row),
    });
    reply.warnings.extend(dropped.map_err(store_error)?);
    Ok(reply)
}

/// Returns the positions of the sessions in which an error is looked for: the one that the call
/// names, or those that pass its filters.
fn wanted_sessions(
    snapshot: &Snapshot,
    args: &AnalyzeArgs,
    caller: &Caller,
    passes: &dyn Fn(&SessionSummary) -> bool,
) -> Result<HashSet<usize>, ToolError> {
    if let Some(id) = args.session_id.as_deref() {
        let found = if id.trim() == LAST_FAILED {
            let failed = newest_failed_conversation(snapshot, passes).map_err(store_error)?;
            failed.ok_or_else(|| no_session_error(caller.interface, None))?
        } else {
            caller.find_session(snapshot, id)?
        };
        return Ok(HashSet::from([found]));
    }
    let rows = snapshot.sessions().iter().enumerate();
    let wanted = rows.filter(|(_, row)| row.is_conversation && passes(row));
    Ok(wanted.map(|(at, _)| at).collect())
}

/// Returns the error if the filters exclude all sessions; `reason` names the filter that does.
fn no_session_error(interface: Interface, reason: Option<String>) -> ToolError {
    let reason = reason.unwrap_or_else(|| {
        let names = interface.argument_names(&["project", "provider", "since", "until"]);
        format!("No session matches. Try without {names}.")
    });
    let message = format!("{reason} {} lists sessions", interface.tool_name("list_sessions"));
    ToolError::new(ErrorCode::SessionNotFound, message)
}

/// Returns a warning about arguments that have no effect.
fn ignored_arguments_warning(args: &AnalyzeArgs) -> Option<Warning> {
    let is_of_one = match args.session_id.as_deref().map(str::trim) {
        Some(LAST | LAST_FAILED) => return None,
        id => id.is_some(),
    };
    let names = given([
        ("checks", args.checks.is_some() && !is_of_one),
        ("project", args.project.is_some() && is_of_one),
        ("provider", args.provider.is_some() && is_of_one),
        ("since", args.since.is_some() && is_of_one),
        ("until", args.until.is_some() && is_of_one),
    ]);
    if names.is_empty() {
        return None;
    }
    let with = if is_of_one { "with" } else { "without" };
    let message = format!("No effect {with} session_id: {}", names.join(", "));
    Some(Warning::new(WarningCode::ParameterIgnored, Severity::Warning, message))
}

/// The position where a page ended: the last finding's severity, check, event index and reason.
type FindingPlace = (Severity, Check, u32, String);

/// Returns the sort key of a finding.
fn sort_key(finding: &Finding) -> (Reverse<Severity>, Check, u32, &str) {
    (Reverse(finding.severity), finding.check, finding.event_index, finding.reason.as_str())
}

/// Analyzes one session.
fn analyze_one(
    snapshot: &Snapshot,
    session: usize,
    page: &FindingsPage<'_>,
    call: &Call<'_>,
    prices: &PriceTable,
    interface: Interface,
) -> Result<Reply<AnalyzeData>, ToolError> {
    let row = snapshot.sessions()[session].row().map_err(store_error)?;
    let rows = rows::read_all_events(snapshot, session, call)?;
    let (context, mut findings) = run_checks(row, &rows, &page.requested_checks(), call);
    let counts = count_by_check(findings.iter().map(|found| (found.check, found.severity)));
    let total = findings.len();
    if let Some(text) = page.cursor {
        let (severity, check, index, reason): FindingPlace = cursor::decode(page.args, text)?;
        findings
            .retain(|found| sort_key(found) > (Reverse(severity), check, index, reason.as_str()));
    }

    let mut data = AnalyzeData {
        session: Some(convert::convert_session(row, ListFormat::Minimal, prices)),
        sessions: 1,
        looked_for: Vec::new(),
        counts,
        context,
        tools: Vec::new(),
        findings: Vec::new(),
    };
    let mut budget = page.remaining_budget(&data);
    let left = findings.len();
    for finding in findings.into_iter().take(page.limit) {
        if !budget.take(&finding) {
            break;
        }
        data.findings.push(finding);
    }

    let returned = data.findings.len();
    let last = if returned < left { data.findings.last() } else { None };
    let next_cursor = last.map(|last| {
        let place = (last.severity, last.check, last.event_index, &last.reason);
        cursor::encode(page.args, &place)
    });
    let mut reply = Reply::new(data, returned);
    reply.before = total - left;
    let this = SessionFilters { session: Some(session), ..SessionFilters::default() };
    reply.scope = Some(this.describe_scope(snapshot, Coverage::All));
    reply.total = Some(RowTotal::Exact(total));
    reply.next_cursor = next_cursor;
    reply.hint = Some(describe_next_step(interface, row, total));
    Ok(reply)
}

/// Runs checks on one session, and returns the overview of its context and the sorted findings.
fn run_checks(
    row: &SessionRow,
    rows: &[EventRow],
    checks: &[Check],
    call: &Call<'_>,
) -> (Option<Context>, Vec<Finding>) {
    let actions = action::pair_calls(rows);
    let is_running = row
        .ended_at
        .is_some_and(|end| (0..RUNNING_WITHIN_US).contains(&call.now.0.saturating_sub(end)));
    let mut context = None;
    let mut findings = Vec::new();
    for check in checks {
        match check {
            Check::Failures => {
                findings.extend(failures::find_failures(rows, &actions, row.cwd.as_deref()));
            }
            Check::Loops => findings.extend(loops::find_loops(&actions)),
            Check::Slow => findings.extend(slow::find_slow_calls(&actions)),
            Check::Oversized => findings.extend(slow::find_large_results(&actions)),
            Check::Context => {
                let (overview, found) = context::analyze_context(rows, &actions);
                context = overview;
                findings.extend(found);
            }
            Check::Interruptions => {
                findings.extend(interruptions::find_interruptions(rows, &actions));
            }
            Check::Ends => findings.extend(find_open_ends(rows, &actions, is_running)),
        }
    }
    findings.sort_by(|a, b| sort_key(a).cmp(&sort_key(b)));
    // The same check may be named twice in the arguments.
    findings.dedup();
    (context, findings)
}

/// Returns the next step; without findings, the reason why there are none.
fn describe_next_step(interface: Interface, row: &SessionRow, total: usize) -> String {
    if total > 0 {
        let around = [("session_id", ""), ("detail_level", "steps"), ("turns", "N")];
        return format!(
            "{} gives the full text, {} what happened around it.",
            interface.format_call("get_event_details", &[("event_ids", "[...]")]),
            interface.format_call("get_session_details", &around)
        );
    }
    match &row.parent_session_id {
        Some(parent) if row.replay_events == row.events => format!(
            "All {} events are history copied from {parent}; analyze that session.",
            row.events
        ),
        _ => format!("The checks found nothing in {} events.", row.events),
    }
}
