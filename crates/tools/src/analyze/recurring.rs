//! Finds errors that recur across sessions: how often, where last, and the fix that worked last.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use schemas::envelope::Severity;
use schemas::tool::analyze::{AnalyzeData, Check, Finding, Fix, FixMatch};
use schemas::{ErrorCode, EventId, ToolError};

use super::action::{Action, pair_calls};
use super::command::parse_programs;
use super::failed_rows::{SegmentRows, plan_reads, read_task};
use super::failures::{
    FailedCall, describe_outcome, find_failed_calls, is_failed_notification, summarize_call_error,
    summarize_notification,
};
use super::finding::{MAX_RELATED_EVENTS, finding_at};
use super::fix::{self, FixingCall};
use super::page::{FindingsPage, count_by_check};
use super::recent_sessions::RecentSessions;
use crate::error::store_error;
use crate::reply::answer::Reply;
use crate::reply::call::Call;
use crate::reply::interface::Interface;
use crate::reply::time_range::TimeRange;
use crate::reply::{convert, cursor, rows};
use base::numbers::count_of;
use base::parallel::in_parallel;
use store::{Snapshot, StoreError};

/// Minimum number of occurrences at which an error is reported.
const MIN_OCCURRENCES: usize = 2;

/// Minimum number of sessions at which a recurring error has the severity `warning`.
const MIN_WARNING_SESSIONS: usize = 2;

/// Minimum number of sessions at which a recurring error has the severity `error`.
const MIN_ERROR_SESSIONS: usize = 5;

/// The position where a page ended: severity, number of sessions, number of occurrences, and
/// signature.
type GroupPlace = (Severity, usize, usize, String);

/// Finds the errors that recur in these sessions.
pub(super) fn run(
    snapshot: &Snapshot,
    recent: &RecentSessions,
    range: TimeRange,
    page: &FindingsPage<'_>,
    call: &Call<'_>,
    interface: Interface,
) -> Result<Reply<AnalyzeData>, ToolError> {
    let plan = plan_reads(snapshot, &recent.sessions, range).map_err(store_error)?;
    let mut groups = group_failures(snapshot, &plan.tasks, range, &FailureFilter::default(), call)?;
    let failures: usize = groups.values().map(Vec::len).sum();
    groups.retain(|_, group| group.len() >= MIN_OCCURRENCES);
    let mut recurring: Vec<RecurringFailure> =
        groups.into_values().map(RecurringFailure::from_failures).collect();
    recurring.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    let counts = count_by_check(recurring.iter().map(|group| (Check::Failures, group.severity)));
    let total = recurring.len();

    if let Some(text) = page.cursor {
        let (severity, sessions, occurrences, signature): GroupPlace =
            cursor::decode(page.args, text)?;
        let after =
            (Reverse(severity), Reverse(sessions), Reverse(occurrences), signature.as_str());
        recurring.retain(|group| group.sort_key() > after);
    }
    let mut data = AnalyzeData {
        session: None,
        sessions: recent.sessions.len(),
        looked_for: Vec::new(),
        counts,
        context: None,
        tools: plan.tools,
        findings: Vec::new(),
    };
    let mut budget = page.remaining_budget(&data);
    for group in recurring.iter().take(page.limit) {
        let finding = group.describe_group(snapshot)?;
        if !budget.take(&finding) {
            break;
        }
        data.findings.push(finding);
    }

    let returned = data.findings.len();
    let mut reply = Reply::new(data, returned);
    reply.before = total - recurring.len();
    recent.limit_reply(&mut reply, total, interface);
    if returned < recurring.len() {
        let last = returned.checked_sub(1).and_then(|last| recurring.get(last));
        reply.next_cursor = last.map(|group| cursor::encode(page.args, &group.page_place()));
    }
    reply.hint = Some(describe_next_step(interface, recent.sessions.len(), failures, returned));
    Ok(reply)
}

/// Selects failures; the default selects all.
#[derive(Debug, Default)]
pub(super) struct FailureFilter {
    /// A part of the name of the tool, or the program that it runs, in lower case.
    pub(super) tool: Option<String>,
    /// A part of the path of a file that the call names, in lower case.
    pub(super) file: Option<String>,
}

impl FailureFilter {
    fn passes(&self, action: &Action<'_>) -> bool {
        let has_file = |wanted: &String| {
            let mut files = action.files().iter();
            files.any(|path| path.to_lowercase().contains(wanted.as_str()))
        };
        self.tool.as_ref().is_none_or(|tool| is_of_tool(action, tool))
            && self.file.as_ref().is_none_or(has_file)
    }

    /// Returns true if failures outside of calls pass.
    fn includes_notifications(&self) -> bool {
        self.tool.is_none() && self.file.is_none()
    }
}

/// Returns true if a call is one of this tool, or runs this program.
fn is_of_tool(action: &Action<'_>, tool: &str) -> bool {
    let name = action.tool_name().unwrap_or_default().to_lowercase();
    let programs = action.command().map(parse_programs).unwrap_or_default();
    // A program is named with its subcommand.
    let mut words = programs.iter().filter_map(|program| program.split_whitespace().next());
    name.contains(tool) || words.any(|program| program.to_lowercase() == tool)
}

/// Finds the failures in the rows of the tasks, grouped by their signatures.
pub(super) fn group_failures(
    snapshot: &Snapshot,
    tasks: &[Vec<SegmentRows>],
    range: TimeRange,
    filter: &FailureFilter,
    call: &Call<'_>,
) -> Result<BTreeMap<String, Vec<SeenFailure>>, ToolError> {
    let seen = in_parallel(tasks, 1, |tasks| {
        find_failures_in_tasks(snapshot, tasks, range, filter, call.stop)
    })?;
    let mut groups: BTreeMap<String, Vec<SeenFailure>> = BTreeMap::new();
    for seen in seen.into_iter().flatten() {
        groups.entry(seen.signature.clone()).or_default().push(seen);
    }
    Ok(groups)
}

/// Returns the next step.
fn describe_next_step(
    interface: Interface,
    sessions: usize,
    failures: usize,
    returned: usize,
) -> String {
    if failures == 0 {
        return format!("Nothing failed in {sessions} sessions.");
    }
    let analyze = interface.format_call("analyze_session", &[("session_id", "")]);
    if returned == 0 {
        return format!(
            "{failures} failures in {sessions} sessions, and none recurs. {analyze} shows what failed in a session."
        );
    }
    format!(
        "{analyze} shows what else went wrong in a session; {} gives the full text of an event.",
        interface.tool_name("get_event_details")
    )
}

/// Maximum number of occurrences of an error whose fixes by the same tool are compared by text.
const MAX_VERIFIED_FIXES: usize = 20;

/// One failure.
pub(super) struct SeenFailure {
    signature: String,
    is_trivial: bool,
    session_id: String,
    time: Option<i64>,
    /// The event that shows the failure.
    event_index: i32,
    /// `None` if no similar call worked afterwards.
    fix: Option<SeenFix>,
    /// The last event of the failure and of its fix.
    last: i32,
}

/// How a failure was fixed.
struct SeenFix {
    /// The event indexes of the failed call and of the call that worked afterwards.
    failed: i32,
    worked: i32,
    matched: FixMatch,
}

/// Finds the failures in the rows of tasks, unless the call is stopped.
fn find_failures_in_tasks(
    snapshot: &Snapshot,
    tasks: &[Vec<SegmentRows>],
    range: TimeRange,
    filter: &FailureFilter,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<SeenFailure>, ToolError> {
    if stop() {
        return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
    }
    let mut seen = Vec::new();
    for task in tasks {
        seen.extend(find_failures_in_task(snapshot, task, range, filter).map_err(store_error)?);
    }
    Ok(seen)
}

/// Finds the failures in the rows of a task.
fn find_failures_in_task(
    snapshot: &Snapshot,
    task: &[SegmentRows],
    range: TimeRange,
    filter: &FailureFilter,
) -> Result<Vec<SeenFailure>, StoreError> {
    let rows = read_task(snapshot, task)?;
    let mut seen = Vec::new();
    for of_session in rows.chunk_by(|a, b| a.session_id == b.session_id) {
        let actions = pair_calls(of_session);
        let session = of_session.first().and_then(|row| snapshot.session(&row.session_id));
        let folder = session.and_then(|session| session.origin.cwd.as_deref());
        for failure in find_failed_calls(&actions, folder) {
            if !actions.get(failure.at).is_some_and(|action| filter.passes(action)) {
                continue;
            }
            seen.extend(SeenFailure::from_call(failure, &actions));
        }
        let mut notifications = of_session.iter().filter(|row| is_failed_notification(row));
        for row in notifications.by_ref().filter(|_| filter.includes_notifications()) {
            seen.push(SeenFailure {
                signature: summarize_notification(row).signature,
                is_trivial: false,
                session_id: row.session_id.clone(),
                time: row.timestamp,
                event_index: row.event_index,
                fix: None,
                last: row.event_index,
            });
        }
    }
    seen.retain(|seen| range.includes(seen.time));
    Ok(seen)
}

impl SeenFailure {
    fn event_id(&self) -> String {
        EventId::format(&self.session_id, convert::unsigned_index(self.event_index))
    }

    /// Describes a failed call; `actions` are those of its session.
    fn from_call(failure: FailedCall, actions: &[Action<'_>]) -> Option<Self> {
        let action = actions.get(failure.at)?;
        let shown = action.outcome_event();
        let mut fix = None;
        let mut last = shown.event_index;
        if let Some(fixing_call) = failure.fixed_by
            && let Some(worked) = actions.get(fixing_call.at)
        {
            fix = Some(SeenFix {
                failed: action.call.event_index,
                worked: worked.call.event_index,
                matched: fixing_call.matched,
            });
            last = worked.outcome_event().event_index;
        }
        Some(Self {
            signature: failure.error.signature,
            is_trivial: failure.is_trivial,
            session_id: shown.session_id.clone(),
            time: shown.timestamp,
            event_index: shown.event_index,
            fix,
            last,
        })
    }
}

/// An error that recurs.
pub(super) struct RecurringFailure {
    pub(super) severity: Severity,
    sessions: usize,
    /// The occurrences, the most recent first.
    seen: Vec<SeenFailure>,
}

impl RecurringFailure {
    pub(super) fn from_failures(mut seen: Vec<SeenFailure>) -> Self {
        seen.sort_by(|a, b| {
            (b.time, &a.session_id, b.event_index).cmp(&(a.time, &b.session_id, a.event_index))
        });
        let session_ids: HashSet<&str> = seen.iter().map(|seen| seen.session_id.as_str()).collect();
        let sessions = session_ids.len();
        let is_trivial = seen.iter().all(|seen| seen.is_trivial);
        let severity = if is_trivial || sessions < MIN_WARNING_SESSIONS {
            Severity::Info
        } else if sessions < MIN_ERROR_SESSIONS {
            Severity::Warning
        } else {
            Severity::Error
        };
        Self { severity, sessions, seen }
    }

    pub(super) fn signature(&self) -> &str {
        self.seen.first().map_or("", |seen| &seen.signature)
    }

    /// Returns true if a similar call worked after one of the failures.
    pub(super) fn has_fix(&self) -> bool {
        self.seen.iter().any(|seen| seen.fix.is_some())
    }

    /// Returns the time of the last failure, in microseconds.
    pub(super) fn last_time(&self) -> Option<i64> {
        self.seen.first().and_then(|seen| seen.time)
    }

    /// Returns the sort key.
    fn sort_key(&self) -> (Reverse<Severity>, Reverse<usize>, Reverse<usize>, &str) {
        let occurrences = self.seen.len();
        (Reverse(self.severity), Reverse(self.sessions), Reverse(occurrences), self.signature())
    }

    /// Returns the position after this error.
    fn page_place(&self) -> GroupPlace {
        (self.severity, self.sessions, self.seen.len(), self.signature().to_owned())
    }

    /// Returns for each occurrence whether it was fixed. A call of the same tool counts only if its
    /// text shows the same target; the texts of the last [`MAX_VERIFIED_FIXES`] are read.
    fn verify_fixes(&self, snapshot: &Snapshot) -> Result<Vec<bool>, ToolError> {
        let mut is_fixed = Vec::with_capacity(self.seen.len());
        let mut verified = 0;
        for seen in &self.seen {
            let must_verify =
                seen.fix.as_ref().is_some_and(|fix| fix.matched == FixMatch::SameTool);
            if !must_verify {
                is_fixed.push(seen.fix.is_some());
                continue;
            }
            verified += 1;
            is_fixed.push(verified <= MAX_VERIFIED_FIXES && read_fix(snapshot, seen)?.is_some());
        }
        Ok(is_fixed)
    }

    /// Creates the finding at the last occurrence that was fixed, with its fix, or else at the last
    /// one. A fix is never shown with another failure than the one that it fixed.
    pub(super) fn describe_group(&self, snapshot: &Snapshot) -> Result<Finding, ToolError> {
        let is_fixed = self.verify_fixes(snapshot)?;
        let unfixed = is_fixed.iter().take_while(|is_fixed| !**is_fixed).count();
        let shown_at = if unfixed < self.seen.len() { unfixed } else { 0 };
        let Some(shown) = self.seen.get(shown_at) else { return Err(missing_row_error()) };
        let at = convert::unsigned_index(shown.event_index);
        let session = snapshot.session_position(&shown.session_id).ok_or_else(missing_row_error)?;
        let row = rows::read_events(snapshot, session, at, at + 1)?
            .pop()
            .ok_or_else(missing_row_error)?;
        let fixed = is_fixed.iter().filter(|is_fixed| **is_fixed).count();
        let fix = if fixed > 0 { read_fix(snapshot, shown)? } else { None };
        let occurrences = self.seen.len();
        let sessions = count_of(self.sessions, "session");
        let outcome = describe_fixes(fix.as_ref(), fixed, unfixed);
        let times =
            if occurrences == 1 { "Once".to_owned() } else { format!("{occurrences} times") };
        let reason = format!("{times} in {sessions}, {outcome}");
        let by_call = pair_calls(std::slice::from_ref(&row));
        let telling = match by_call.first() {
            Some(action) => summarize_call_error(action),
            None => summarize_notification(&row),
        };
        let others = self.seen.iter().enumerate().filter(|(at, _)| *at != shown_at);
        let others = others.map(|(_, seen)| seen).take(MAX_RELATED_EVENTS);
        Ok(Finding {
            call: by_call.first().and_then(Action::describe_call),
            message: Some(telling.excerpt).filter(|text| !text.is_empty()),
            signature: Some(self.signature().to_owned()),
            occurrences: Some(occurrences),
            sessions: Some(self.sessions),
            fixed: Some(fixed),
            related_event_ids: others.map(SeenFailure::event_id).collect(),
            fix,
            ..finding_at(Check::Failures, self.severity, &row, reason)
        })
    }
}

/// Describes how often an error was fixed, and the `fix` of the occurrence that is shown. The last
/// `unfixed` occurrences were not fixed.
fn describe_fixes(fix: Option<&Fix>, fixed: usize, unfixed: usize) -> String {
    let Some(fix) = fix else {
        return "never fixed: nothing similar succeeded afterwards.".to_owned();
    };
    let times = match fixed {
        1 => "fixed once".to_owned(),
        fixed => format!("fixed {fixed} times"),
    };
    let (last, which) = match unfixed {
        0 => (String::new(), "The last time"),
        1 => (", not the last time".to_owned(), "The time shown"),
        unfixed => (format!(", not the last {unfixed} times"), "The time shown"),
    };
    format!("{times}{last}. {which}: {}", describe_outcome(Some(fix)))
}

/// Returns the call that worked after a failure, with what changed, from the whole rows between
/// them.
fn read_fix(snapshot: &Snapshot, seen: &SeenFailure) -> Result<Option<Fix>, ToolError> {
    let Some(fix) = &seen.fix else { return Ok(None) };
    let first_index = fix.failed.min(seen.event_index);
    let last_index = fix.worked.max(seen.last).max(seen.event_index);
    let session = snapshot.session_position(&seen.session_id).ok_or_else(missing_row_error)?;
    let rows = rows::read_events(
        snapshot,
        session,
        convert::unsigned_index(first_index),
        convert::unsigned_index(last_index) + 1,
    )?;
    let actions = pair_calls(&rows);
    let failed = actions.iter().position(|action| action.call.event_index == fix.failed);
    let worked = actions.iter().position(|action| action.call.event_index == fix.worked);
    let (Some(failed), Some(worked)) = (failed, worked) else { return Ok(None) };
    let folder = snapshot.sessions()[session].origin.cwd.as_deref();
    let fixing_call = FixingCall { at: worked, matched: fix.matched };
    Ok(fix::describe_fix(&actions, failed, fixing_call, folder))
}

/// Returns the error for a missing row. The rows of a snapshot do not change, so a missing row
/// means damage.
fn missing_row_error() -> ToolError {
    ToolError::new(
        ErrorCode::StoreDamaged,
        "A row that is in the index is missing. Run `sessions ingest --verify` to read damaged parts again",
    )
}
