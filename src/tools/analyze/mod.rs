//! Runs `analyze_session`, which analyzes one session for what went wrong and what fixed it, or
//! many sessions for recurring errors.

mod action;
mod change;
mod command;
mod context;
mod ends;
mod failures;
mod finding;
mod fix;
mod interruptions;
mod loops;
mod page;
mod recurring;
mod signature;
mod slow;
mod stop;
mod telling;

use std::cmp::Reverse;
use std::collections::HashSet;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::price::PriceTable;
use schemas::session::SessionRow;
use schemas::tool::analyze::{AnalyzeArgs, AnalyzeData, Check, Finding};
use schemas::tool::checked_limit;
use schemas::tool::list::ListFormat;
use schemas::{ErrorCode, Timestamp, ToolError, limits};

pub(crate) use self::failures::error_signature;
use self::page::{FindingsPage, count_by_check};
use super::reply::answer::Reply;
use super::reply::call::Call;
use super::reply::caller::{Caller, LAST, newest};
use super::reply::interface::Interface;
use super::reply::session_filter::session_filter;
use super::reply::{convert, cursor, rows};
use crate::store::Snapshot;

/// Selects the newest session in which a call failed.
const LAST_FAILED: &str = "last_failed";

/// A session may still be running if its log was written to within this time, in microseconds.
const RUNNING: i64 = 10 * 60 * 1_000_000;

pub(super) fn run(
    snapshot: &Snapshot,
    args: &AnalyzeArgs,
    call: &Call<'_>,
    prices: &PriceTable,
    caller: &Caller,
) -> Result<Reply<AnalyzeData>, ToolError> {
    let limit =
        checked_limit("limit", args.limit, limits::FINDINGS_LIMIT, limits::FINDINGS_LIMIT_MAX)?;
    let since = args
        .since
        .as_deref()
        .map(|since| Timestamp::parse_since("since", since, call.now))
        .transpose()?
        .map(|since| since.0);
    let bound = AnalyzeArgs { cursor: None, ..args.clone() };
    let page = FindingsPage { args: &bound, cursor: args.cursor.as_deref(), limit };
    let passes = session_filter(args.project.as_deref(), args.provider, since);
    let mut reply = match args.session_id.as_deref().map(str::trim) {
        None => {
            let wanted = |row: &SessionRow| row.is_conversation() && passes(row);
            let sessions = snapshot.sessions().iter().enumerate();
            let wanted: HashSet<usize> =
                sessions.filter(|(_, row)| wanted(row)).map(|(at, _)| at).collect();
            recurring::run(snapshot, &wanted, since, &page, call, caller.interface)?
        }
        Some(name @ (LAST | LAST_FAILED)) => {
            let fits = |row: &SessionRow| passes(row) && (name == LAST || row.tool_errors > 0);
            let last = newest(snapshot, fits).ok_or_else(|| none_passes(caller.interface))?;
            one(snapshot, last, &page, call, prices, caller.interface)?
        }
        Some(id) => {
            let found = caller.find(snapshot, id)?;
            let mut reply = one(snapshot, found, &page, call, prices, caller.interface)?;
            reply.warnings.extend(caller.note(id, &snapshot.sessions()[found]));
            reply
        }
    };
    reply.warnings.extend(ignored(args));
    Ok(reply)
}

fn none_passes(interface: Interface) -> ToolError {
    let message = format!(
        "No session passes project, provider and since. Try without them, or see {}",
        interface.tool("list_sessions")
    );
    ToolError::new(ErrorCode::SessionNotFound, message)
}

/// Returns a warning about arguments that have no effect.
fn ignored(args: &AnalyzeArgs) -> Option<Warning> {
    let names = match args.session_id.as_deref().map(str::trim) {
        None => vec![args.checks.as_ref().map(|_| "checks")],
        Some(LAST | LAST_FAILED) => Vec::new(),
        Some(_) => vec![
            args.project.as_ref().map(|_| "project"),
            args.provider.map(|_| "provider"),
            args.since.as_ref().map(|_| "since"),
        ],
    };
    let names: Vec<&str> = names.into_iter().flatten().collect();
    let with = if args.session_id.is_some() { "with" } else { "without" };
    (!names.is_empty()).then(|| Warning {
        code: WarningCode::ParameterIgnored,
        message: format!("Without effect {with} session_id: {}", names.join(", ")),
        severity: Severity::Warning,
    })
}

/// Returns the sort key of a finding.
fn key(finding: &Finding) -> (Reverse<Severity>, Check, u32, &str) {
    (Reverse(finding.severity), finding.check, finding.event_index, finding.reason.as_str())
}

/// Analyzes one session.
fn one(
    snapshot: &Snapshot,
    session: usize,
    page: &FindingsPage<'_>,
    call: &Call<'_>,
    prices: &PriceTable,
    interface: Interface,
) -> Result<Reply<AnalyzeData>, ToolError> {
    let row = &snapshot.sessions()[session];
    let rows = rows::all(snapshot, session, call)?;
    let actions = action::actions(&rows);
    let running =
        row.ended_at.is_some_and(|end| (0..RUNNING).contains(&call.now.0.saturating_sub(end)));
    let (mut context, mut findings) = (None, Vec::new());
    for check in page.checks() {
        match check {
            Check::Failures => findings.extend(failures::findings(&rows, &actions)),
            Check::Loops => findings.extend(loops::findings(&actions)),
            Check::Slow => findings.extend(slow::slow(&actions)),
            Check::Oversized => findings.extend(slow::oversized(&actions)),
            Check::Context => {
                let (over, found) = context::findings(&rows, &actions);
                context = over;
                findings.extend(found);
            }
            Check::Interruptions => findings.extend(interruptions::findings(&rows, &actions)),
            Check::Ends => findings.extend(ends::findings(&rows, &actions, running)),
        }
    }
    findings.sort_by(|a, b| key(a).cmp(&key(b)));
    // The same check may be named twice in the arguments.
    findings.dedup();
    let counts = count_by_check(findings.iter().map(|found| (found.check, found.severity)));
    let total = findings.len();
    if let Some(text) = page.cursor {
        let (severity, check, index, reason): (Severity, Check, u32, String) =
            cursor::decode(page.args, text)?;
        findings.retain(|found| key(found) > (Reverse(severity), check, index, reason.as_str()));
    }
    let mut data = AnalyzeData {
        session: Some(convert::session(row, ListFormat::Minimal, prices)),
        sessions: 1,
        counts,
        context,
        tools: Vec::new(),
        findings: Vec::new(),
    };
    let mut budget = page.budget(&data);
    let left = findings.len();
    data.findings =
        findings.into_iter().take(page.limit).take_while(|found| budget.take(found)).collect();
    let returned = data.findings.len();
    let place =
        |found: &Finding| (found.severity, found.check, found.event_index, found.reason.clone());
    let last = data.findings.last().filter(|_| returned < left).map(place);
    let mut reply = Reply::new(data, returned);
    reply.before = total - left;
    reply.total = Some((total, true));
    reply.next_cursor = last.map(|place| cursor::encode(page.args, &place));
    reply.hint = Some(hint(interface, row, total));
    Ok(reply)
}

fn hint(interface: Interface, row: &SessionRow, total: usize) -> String {
    if total > 0 {
        let around = [("session_id", ""), ("detail_level", "steps"), ("turns", "N")];
        return format!(
            "{} gives the full text, {} what happened around it.",
            interface.call("get_event_details", &[("event_ids", "[...]")]),
            interface.call("get_session_details", &around)
        );
    }
    match &row.parent_session_id {
        Some(parent) if row.replay_events == row.events => format!(
            "All {} events are history copied from {parent}; analyze that session.",
            row.events
        ),
        _ => format!("Nothing stands out in {} events.", row.events),
    }
}
