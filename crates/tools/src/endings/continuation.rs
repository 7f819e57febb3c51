//! Finds the session in which the user continued what another one left open, of whatever agent. Logs
//! do not say so: it shows in the folder and the time, and in a prompt or plan that both have.

use schemas::session::EventRow;
use schemas::tool::details::Continuation;
use schemas::{EventType, ToolError};

use crate::analyze::{find_rejected_plan, is_left_open, is_plan_call, pair_calls};
use crate::error::store_error;
use crate::reply::event_predicates::{is_slash_or_shell_command, is_type};
use crate::reply::rows;
use base::dropped_text::kept_part;
use base::sanitize::{clean_text, one_line, truncate_for_json};
use store::{SessionSummary, Snapshot};

/// Maximum time in microseconds between the end of a session and the beginning of another one in its
/// folder, if nothing else joins them.
const MAX_PAUSE: i64 = 10 * 60 * 1_000_000;

/// Maximum time in microseconds between them if the later one begins with a prompt or plan of the earlier
/// one.
const MAX_REPEAT_PAUSE: i64 = 24 * 60 * 60 * 1_000_000;

/// Time in microseconds by which the later one may begin before the last record of the earlier one.
const MAX_OVERLAP: i64 = 60 * 1_000_000;

/// Maximum number of later sessions whose prompts are compared, and of earlier ones whose ends are read.
const MAX_CANDIDATES: usize = 8;

/// Number of events at the end and at the beginning of a session that are read.
const END_EVENTS: u32 = 120;
const FIRST_EVENTS: u32 = 40;

/// Minimum length in characters of a prompt or plan that only a continuation repeats.
const MIN_REPEATED_CHARS: usize = 20;

/// Number of characters at the beginning of a plan that the later prompt must have.
const PLAN_CHARS: usize = 200;

/// Maximum size of the title of a session in bytes.
const MAX_TITLE_BYTES: usize = 100;

/// The texts of a session that a continuation may repeat.
struct OpenEnd {
    /// The last prompt and the last plan, with single spaces. They are empty if there is none, or if
    /// their text was dropped or forgotten.
    prompt: String,
    plan: String,
}

/// Returns the session that continues what this one left open.
pub(crate) fn find_successor(
    snapshot: &Snapshot,
    session: usize,
) -> Result<Option<Continuation>, ToolError> {
    match successor_of(snapshot, session)? {
        Some((at, reason)) => describe(snapshot, at, reason).map(Some),
        None => Ok(None),
    }
}

/// Returns the session that left open what this one continues.
pub(crate) fn find_predecessor(
    snapshot: &Snapshot,
    session: usize,
) -> Result<Option<Continuation>, ToolError> {
    let later = &snapshot.sessions()[session];
    let mut earlier: Vec<(i64, usize)> = Vec::new();
    for (at, other) in snapshot.sessions().iter().enumerate() {
        if let Some((_, ended)) = times_between(other, later)
            && may_continue(later, other)
        {
            earlier.push((ended, at));
        }
    }
    earlier.sort_unstable();
    for (_, at) in earlier.into_iter().rev().take(MAX_CANDIDATES) {
        if let Some((successor, reason)) = successor_of(snapshot, at)?
            && successor == session
        {
            return describe(snapshot, at, reason).map(Some);
        }
    }
    Ok(None)
}

/// Returns the position of the session that continues this one, and what both have in common.
fn successor_of(snapshot: &Snapshot, session: usize) -> Result<Option<(usize, String)>, ToolError> {
    let earlier = &snapshot.sessions()[session];
    let mut later: Vec<(i64, usize)> = Vec::new();
    for (at, other) in snapshot.sessions().iter().enumerate() {
        if let Some((pause, _)) = times_between(earlier, other)
            && may_continue(other, earlier)
        {
            later.push((pause, at));
        }
    }
    if later.is_empty() {
        return Ok(None);
    }
    later.sort_unstable();
    later.truncate(MAX_CANDIDATES);
    let Some(end) = read_open_end(snapshot, session)? else { return Ok(None) };
    for &(_, at) in &later {
        let prompt = read_first_prompt(snapshot, at)?;
        if is_repeated(&end.prompt, &prompt) {
            return Ok(Some((at, "begins with the prompt that was left open".to_owned())));
        }
        let plan: String = end.plan.chars().take(PLAN_CHARS).collect();
        if plan.chars().count() >= MIN_REPEATED_CHARS && prompt.contains(&plan) {
            return Ok(Some((at, "begins with the plan that was left open".to_owned())));
        }
    }
    // Sessions that overlap may be two tasks at a time.
    let next = later.into_iter().find(|(pause, _)| (0..=MAX_PAUSE).contains(pause));
    let Some((pause, at)) = next else { return Ok(None) };
    let minutes = pause / 60_000_000;
    let pause =
        if minutes == 0 { "less than a minute".to_owned() } else { format!("{minutes} min") };
    Ok(Some((at, format!("began in the same folder {pause} later"))))
}

/// Returns true for a session that a user began, and that is not a copy of another one.
fn is_of_user(session: &SessionSummary) -> bool {
    session.is_conversation
        && !session.is_subagent
        && !session.is_earlier_version
        && session.replay_events < session.events
}

/// Returns true if `later` may continue `earlier` by its place: the same folder, of the same machine and
/// user.
fn may_continue(later: &SessionSummary, earlier: &SessionSummary) -> bool {
    let is_fork = later.parent_session_id.as_deref() == Some(earlier.session_id.as_str())
        || earlier.parent_session_id.as_deref() == Some(later.session_id.as_str());
    is_of_user(later)
        && is_of_user(earlier)
        && !is_fork
        && later.origin.cwd.is_some()
        && later.origin.cwd == earlier.origin.cwd
        && later.origin.machine == earlier.origin.machine
        && later.origin.user_name == earlier.origin.user_name
}

/// Returns the time from the end of `earlier` to the beginning of `later`, and that end, in
/// microseconds, if the one may continue the other by these times.
fn times_between(earlier: &SessionSummary, later: &SessionSummary) -> Option<(i64, i64)> {
    let (begin, end, started) = (earlier.started_at?, earlier.ended_at?, later.started_at?);
    let pause = started.saturating_sub(end);
    (started > begin && (-MAX_OVERLAP..=MAX_REPEAT_PAUSE).contains(&pause)).then_some((pause, end))
}

/// Reads what a session left open. `None` if it ended with an answer.
fn read_open_end(snapshot: &Snapshot, session: usize) -> Result<Option<OpenEnd>, ToolError> {
    let end = u32::try_from(snapshot.sessions()[session].events).unwrap_or(u32::MAX);
    let rows = rows::read_events(snapshot, session, end.saturating_sub(END_EVENTS), end)?;
    let actions = pair_calls(&rows);
    if !is_left_open(&rows, &actions) && find_rejected_plan(&actions).is_none() {
        return Ok(None);
    }
    let own = || rows.iter().filter(|row| !row.is_replay && !row.is_sidechain);
    let plan = own().rfind(|row| is_plan_call(row)).map(|row| kept_part(&row.text));
    let plan = plan.map(|text| text.split_once("plan: ").map_or(text, |(_, plan)| plan));
    Ok(Some(OpenEnd {
        prompt: own()
            .rfind(|row| is_prompt(row))
            .map_or_else(String::new, |row| one_line(kept_part(&row.text))),
        plan: plan.map_or_else(String::new, one_line),
    }))
}

/// Reads the first prompt of a session, with single spaces.
fn read_first_prompt(snapshot: &Snapshot, session: usize) -> Result<String, ToolError> {
    let rows = rows::read_events(snapshot, session, 0, FIRST_EVENTS)?;
    let prompt = rows.iter().find(|row| !row.is_replay && !row.is_sidechain && is_prompt(row));
    Ok(prompt.map_or_else(String::new, |row| one_line(kept_part(&row.text))))
}

fn is_prompt(row: &EventRow) -> bool {
    is_type(row, EventType::User) && !is_slash_or_shell_command(&row.text)
}

fn is_repeated(prompt: &str, first_prompt: &str) -> bool {
    prompt == first_prompt && prompt.chars().count() >= MIN_REPEATED_CHARS
}

fn describe(snapshot: &Snapshot, at: usize, reason: String) -> Result<Continuation, ToolError> {
    let row = snapshot.sessions()[at].row().map_err(store_error)?;
    let title = row.title.as_deref().map(clean_text);
    Ok(Continuation {
        session_id: row.session_id.clone(),
        provider: row.provider,
        title: title.map(|title| truncate_for_json(&title, MAX_TITLE_BYTES).0.to_owned()),
        reason,
    })
}
