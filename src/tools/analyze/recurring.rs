//! Finds errors that recur across sessions: how often, where last, and the fix that worked last.
//!
//! The skip index shows which rows belong to tools and which failed. Of each session with a
//! failure, only the rows of tools are read, without their texts; the text is read only for failed
//! rows.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::table::EventColumn;
use schemas::tool::analyze::{AnalyzeData, Check, Finding, Fix};
use schemas::tool::details::ToolCount;
use schemas::{ErrorCode, EventType, ToolError};

use super::action::{Action, actions};
use super::failures::{failed_otherwise, failures, told, told_by_notification, what_came_of_it};
use super::finding::{RELATED, finding};
use super::fix::{self, Mended};
use super::page::{FindingsPage, count_by_check};
use crate::base::parallel::in_parallel;
use crate::base::sanitize::clean;
use crate::error::store_error;
use crate::store::{EventReader, RowFacts, RowSpan, Snapshot, StoreError};
use crate::tools::reply::answer::Reply;
use crate::tools::reply::call::Call;
use crate::tools::reply::event_predicates::failed;
use crate::tools::reply::interface::Interface;
use crate::tools::reply::{convert, cursor, rows};

/// The columns that are read for the rows of tools.
const COLUMNS: &[EventColumn] = &[
    EventColumn::SessionId,
    EventColumn::EventIndex,
    EventColumn::EventType,
    EventColumn::Subtype,
    EventColumn::Timestamp,
    EventColumn::ToolName,
    EventColumn::ToolKind,
    EventColumn::ToolCallId,
    EventColumn::Files,
    EventColumn::Command,
    EventColumn::IsError,
    EventColumn::ExitCode,
    EventColumn::IsReplay,
];

/// Number of rows at which a task, which one thread reads at a time, is complete.
const SHARE: usize = 8192;

/// Minimum number of occurrences at which an error is reported (`RECURS`), and minimum number of
/// sessions that raises its severity (`WIDE`).
const RECURS: usize = 2;
const WIDE: usize = 5;

/// Maximum number of tools listed.
const TOOLS: usize = 10;

/// The position where a page ended: severity, number of sessions, number of occurrences, and
/// signature.
type Place = (Severity, usize, usize, String);

/// Finds the errors that recur in the sessions at these positions.
pub(super) fn run(
    snapshot: &Snapshot,
    wanted: &HashSet<usize>,
    since: Option<i64>,
    page: &FindingsPage<'_>,
    call: &Call<'_>,
    interface: Interface,
) -> Result<Reply<AnalyzeData>, ToolError> {
    let (parts, tools) = plan(snapshot, wanted, since).map_err(store_error)?;
    let tasks = tasks(parts);
    let seen = in_parallel(&tasks, 1, |tasks| {
        if (call.stop)() {
            return Err(ToolError::new(ErrorCode::Cancelled, "The call was cancelled"));
        }
        let mut seen = Vec::new();
        for task in tasks {
            seen.extend(look(snapshot, task, since).map_err(store_error)?);
        }
        Ok(seen)
    })?;
    let mut groups: BTreeMap<String, Vec<Seen>> = BTreeMap::new();
    for seen in seen.into_iter().flatten() {
        groups.entry(seen.signature.clone()).or_default().push(seen);
    }
    let failures: usize = groups.values().map(Vec::len).sum();
    groups.retain(|_, group| group.len() >= RECURS);
    let mut recurring: Vec<Recurring> = groups.into_values().map(Recurring::of).collect();
    recurring.sort_by(|a, b| a.key().cmp(&b.key()));
    let counts = count_by_check(recurring.iter().map(|group| (Check::Failures, group.severity)));
    let total = recurring.len();
    if let Some(text) = page.cursor {
        let (severity, sessions, occurrences, signature): Place = cursor::decode(page.args, text)?;
        let after =
            (Reverse(severity), Reverse(sessions), Reverse(occurrences), signature.as_str());
        recurring.retain(|group| group.key() > after);
    }
    let mut data = AnalyzeData {
        session: None,
        sessions: wanted.len(),
        counts,
        context: None,
        tools,
        findings: Vec::new(),
    };
    let mut budget = page.budget(&data);
    for group in recurring.iter().take(page.limit) {
        let finding = group.finding(snapshot)?;
        if !budget.take(&finding) {
            break;
        }
        data.findings.push(finding);
    }
    let returned = data.findings.len();
    let last = returned.checked_sub(1).and_then(|last| recurring.get(last));
    let last = last.filter(|_| returned < recurring.len());
    let mut reply = Reply::new(data, returned);
    reply.before = total - recurring.len();
    reply.total = Some((total, true));
    reply.next_cursor = last.map(|group| cursor::encode(page.args, &group.place()));
    let analyze = interface.call("analyze_session", &[("session_id", "")]);
    reply.hint = Some(match (failures, returned) {
        (0, _) => format!("Nothing failed in {} sessions.", wanted.len()),
        (failures, 0) => format!(
            "{failures} failures in {} sessions, and none like another. {analyze} tells what failed in one.",
            wanted.len()
        ),
        _ => format!(
            "{analyze} tells what else went wrong in a session; {} gives the full text of an event.",
            interface.tool("get_event_details")
        ),
    });
    Ok(reply)
}

/// Rows in one segment, of one session or of several whole sessions.
struct Part {
    segment: usize,
    rows: Vec<RowSpan>,
}

/// The rows to read, by session.
type Parts = BTreeMap<usize, Vec<Part>>;

/// Returns the rows to read, by session, for the sessions with a failure, and the tools that
/// failed.
fn plan(
    snapshot: &Snapshot,
    wanted: &HashSet<usize>,
    since: Option<i64>,
) -> Result<(Parts, Vec<ToolCount>), StoreError> {
    let mut parts: BTreeMap<usize, Vec<Part>> = BTreeMap::new();
    let mut failing: HashSet<usize> = HashSet::new();
    let mut tools: HashMap<&str, (usize, usize)> = HashMap::new();
    for (number, segment) in snapshot.segments().iter().enumerate() {
        for span in segment.spans.iter().filter(|span| wanted.contains(&span.session)) {
            let index = segment.index()?;
            let facts = index.facts(span.start..span.start + span.count)?;
            for fact in facts.iter().filter(|fact| is_in_time(fact, since)) {
                let fails = fact.is_error == Some(true);
                if fails {
                    failing.insert(span.session);
                }
                let labels = index.labels()?.get(fact.labels as usize);
                let Some(tool) = labels.and_then(|labels| labels.tool.as_deref()) else { continue };
                let (calls, errors) = tools.entry(tool).or_default();
                *calls += usize::from(fact.event_type == EventType::ToolCall);
                *errors += usize::from(fact.event_type == EventType::ToolResult && fails);
            }
            let of_tools = facts.iter().zip(span.start..).filter(|(fact, _)| is_read(fact));
            let rows = spans(of_tools.map(|(_, row)| row));
            if !rows.is_empty() {
                parts.entry(span.session).or_default().push(Part { segment: number, rows });
            }
        }
    }
    parts.retain(|session, _| failing.contains(session));
    let mut tools: Vec<_> = tools
        .into_iter()
        .filter(|(_, (_, errors))| *errors > 0)
        .map(|(name, (calls, errors))| ToolCount { tool_name: clean(name), calls, errors })
        .collect();
    tools.sort_by(|a, b| (b.errors, b.calls, &a.tool_name).cmp(&(a.errors, a.calls, &b.tool_name)));
    tools.truncate(TOOLS);
    Ok((parts, tools))
}

/// Returns true if a row counts: it is not a replay, and it is recent enough.
fn is_in_time(fact: &RowFacts, since: Option<i64>) -> bool {
    !fact.is_replay && since.is_none_or(|since| fact.time.is_some_and(|time| time >= since))
}

fn is_read(fact: &RowFacts) -> bool {
    matches!(fact.event_type, EventType::ToolCall | EventType::ToolResult)
        || fact.is_error == Some(true)
}

/// Groups ascending row numbers into runs.
fn spans(rows: impl Iterator<Item = usize>) -> Vec<RowSpan> {
    let mut spans: Vec<RowSpan> = Vec::new();
    for row in rows {
        match spans.last_mut() {
            Some(last) if last.start + last.count == row => last.count += 1,
            _ => spans.push(RowSpan { start: row, count: 1 }),
        }
    }
    spans
}

/// Groups the rows into tasks. Rows that are read together are either one session, because a call
/// may be fixed in a later segment, or several sessions that are stored in one segment.
fn tasks(parts: BTreeMap<usize, Vec<Part>>) -> Vec<Vec<Part>> {
    let mut tasks = Vec::new();
    let mut whole: BTreeMap<usize, Vec<Vec<RowSpan>>> = BTreeMap::new();
    for parts in parts.into_values() {
        match <[Part; 1]>::try_from(parts) {
            Ok([part]) => whole.entry(part.segment).or_default().push(part.rows),
            Err(parts) => tasks.push(parts),
        }
    }
    for (segment, mut sessions) in whole {
        sessions.sort_by_key(|rows| rows.first().map(|span| span.start));
        let mut rows: Vec<RowSpan> = Vec::new();
        for of_session in sessions {
            rows.extend(of_session);
            if rows.iter().map(|span| span.count).sum::<usize>() >= SHARE {
                tasks.push(vec![Part { segment, rows: std::mem::take(&mut rows) }]);
            }
        }
        if !rows.is_empty() {
            tasks.push(vec![Part { segment, rows }]);
        }
    }
    tasks
}

/// One failure.
struct Seen {
    signature: String,
    is_trivial: bool,
    session_id: String,
    time: Option<i64>,
    /// The event that shows the failure.
    event_index: i32,
    /// The event indexes of the failed call and of the call that worked afterwards, and how the two
    /// match; `last` is the last event of the two.
    fix: Option<(i32, i32, Mended)>,
    last: i32,
}

/// Finds the failures in the rows of a task.
fn look(snapshot: &Snapshot, task: &[Part], since: Option<i64>) -> Result<Vec<Seen>, StoreError> {
    let mut rows = Vec::new();
    for part in task {
        rows.extend(read(snapshot, part)?);
    }
    rows.sort_by(|a, b| (&a.session_id, a.event_index).cmp(&(&b.session_id, b.event_index)));
    let mut seen = Vec::new();
    for of_session in rows.chunk_by(|a, b| a.session_id == b.session_id) {
        let actions = actions(of_session);
        for failure in failures(&actions) {
            let Some(action) = actions.get(failure.at) else { continue };
            let shown = action.shown();
            let fix = failure.mended.and_then(|mended| {
                let worked = actions.get(mended.at)?;
                Some((action.call.event_index, worked.call.event_index, mended))
            });
            let ends = failure.mended.and_then(|mended| actions.get(mended.at)).map(Action::shown);
            seen.push(Seen {
                signature: failure.telling.signature,
                is_trivial: failure.is_trivial,
                session_id: shown.session_id.clone(),
                time: shown.timestamp,
                event_index: shown.event_index,
                fix,
                last: ends.map_or(shown.event_index, |ends| ends.event_index),
            });
        }
        for row in of_session.iter().filter(|row| failed_otherwise(row)) {
            seen.push(Seen {
                signature: told_by_notification(row).signature,
                is_trivial: false,
                session_id: row.session_id.clone(),
                time: row.timestamp,
                event_index: row.event_index,
                fix: None,
                last: row.event_index,
            });
        }
    }
    seen.retain(|seen| since.is_none_or(|since| seen.time.is_some_and(|time| time >= since)));
    Ok(seen)
}

/// Reads rows of a segment without their texts, and the texts of those that failed.
fn read(snapshot: &Snapshot, part: &Part) -> Result<Vec<EventRow>, StoreError> {
    let Some(segment) = snapshot.segments().get(part.segment) else { return Ok(Vec::new()) };
    let mut rows = EventReader::open(segment, &part.rows, COLUMNS, 4096)?.rows()?;
    let numbers = part.rows.iter().flat_map(|span| span.start..span.start + span.count);
    let failing = rows.iter().zip(numbers).filter(|(row, _)| failed(row));
    let failing = spans(failing.map(|(_, number)| number));
    if failing.is_empty() {
        return Ok(rows);
    }
    let texts = EventReader::open(segment, &failing, &[EventColumn::Text], 256)?.rows()?;
    for (row, text) in rows.iter_mut().filter(|row| failed(row)).zip(texts) {
        row.text = text.text;
    }
    Ok(rows)
}

/// An error that recurs.
struct Recurring {
    severity: Severity,
    sessions: usize,
    /// The occurrences, the most recent first.
    seen: Vec<Seen>,
}

impl Recurring {
    fn of(mut seen: Vec<Seen>) -> Self {
        seen.sort_by(|a, b| {
            (b.time, &a.session_id, b.event_index).cmp(&(a.time, &b.session_id, a.event_index))
        });
        let sessions: HashSet<&str> = seen.iter().map(|seen| seen.session_id.as_str()).collect();
        let sessions = sessions.len();
        let severity = match sessions {
            _ if seen.iter().all(|seen| seen.is_trivial) => Severity::Info,
            WIDE.. => Severity::Error,
            2.. => Severity::Warning,
            _ => Severity::Info,
        };
        Self { severity, sessions, seen }
    }

    fn signature(&self) -> &str {
        self.seen.first().map_or("", |seen| &seen.signature)
    }

    fn key(&self) -> (Reverse<Severity>, Reverse<usize>, Reverse<usize>, &str) {
        let occurrences = self.seen.len();
        (Reverse(self.severity), Reverse(self.sessions), Reverse(occurrences), self.signature())
    }

    fn place(&self) -> Place {
        (self.severity, self.sessions, self.seen.len(), self.signature().to_owned())
    }

    /// Creates the finding at the last occurrence, with the fix that worked last.
    fn finding(&self, snapshot: &Snapshot) -> Result<Finding, ToolError> {
        let Some(last) = self.seen.first() else { return Err(gone()) };
        let (at, end) = (convert::index(last.event_index), convert::index(last.event_index) + 1);
        let session = snapshot.position(&last.session_id).ok_or_else(gone)?;
        let row = rows::range(snapshot, session, at, end)?.pop().ok_or_else(gone)?;
        let fixed = self.seen.iter().filter(|seen| seen.fix.is_some()).count();
        let fix = match self.seen.iter().find(|seen| seen.fix.is_some()) {
            Some(seen) => fix_of(snapshot, seen)?,
            None => None,
        };
        let occurrences = self.seen.len();
        let reason = format!(
            "{occurrences} times in {} {}, {fixed} of them mended; {}",
            self.sessions,
            if self.sessions == 1 { "session" } else { "sessions" },
            match &fix {
                Some(fix) => format!("the last time {}", what_came_of_it(Some(fix))),
                None => what_came_of_it(None),
            }
        );
        let one = std::slice::from_ref(&row);
        let by_call = actions(one);
        let telling = match by_call.first() {
            Some(action) => told(action),
            None => told_by_notification(&row),
        };
        let others = self.seen.iter().skip(1).take(RELATED);
        let id = |seen: &Seen| {
            schemas::EventId::format(&seen.session_id, convert::index(seen.event_index))
        };
        Ok(Finding {
            call: by_call.first().and_then(Action::label),
            message: Some(telling.excerpt).filter(|text| !text.is_empty()),
            signature: Some(self.signature().to_owned()),
            occurrences: Some(occurrences),
            sessions: Some(self.sessions),
            fixed: Some(fixed),
            related_event_ids: others.map(id).collect(),
            fix,
            ..finding(Check::Failures, self.severity, &row, reason)
        })
    }
}

/// Returns the call that worked after a failure, with what changed, from the whole rows between
/// them.
fn fix_of(snapshot: &Snapshot, seen: &Seen) -> Result<Option<Fix>, ToolError> {
    let Some((failed, worked, mended)) = seen.fix else { return Ok(None) };
    let from = failed.min(seen.event_index);
    let to = worked.max(seen.last).max(seen.event_index);
    let session = snapshot.position(&seen.session_id).ok_or_else(gone)?;
    let rows = rows::range(snapshot, session, convert::index(from), convert::index(to) + 1)?;
    let actions = actions(&rows);
    let place = |index: i32| actions.iter().position(|action| action.call.event_index == index);
    let places = place(failed).zip(place(worked));
    Ok(places.and_then(|(failed, worked)| {
        fix::describe(&actions, failed, Mended { at: worked, ..mended })
    }))
}

/// Returns the error for a missing row. The rows of a snapshot do not change, so a missing row
/// means damage.
fn gone() -> ToolError {
    ToolError::new(
        ErrorCode::StoreDamaged,
        "A row that the index names is not there. Run `sessions ingest --verify`: damaged parts are read again",
    )
}
