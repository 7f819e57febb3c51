//! Finds the session in which the user continued what another one left open, of whatever agent. Logs
//! do not say so: it shows in the folder and the time, and in a prompt or plan that both have.

use schemas::ToolError;
use schemas::tool::details::Continuation;

use crate::analyze::{find_rejected_plan, is_left_open, is_plan_call, pair_calls, plan_text};
use crate::error::store_error;
use crate::reply::event_predicates::{is_own, is_prompt, own_rows};
use crate::reply::{convert, rows};
use base::dropped_text::kept_part;
use base::sanitize::one_line;
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

/// The texts of a session that a continuation may repeat.
struct OpenEnd {
    /// The last prompt and the beginning of the last plan, with single spaces. They are empty if there is
    /// none, or if their text was dropped or forgotten.
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
    for (_, at) in nearest_sessions(snapshot, |earlier| pause_between(earlier, later)) {
        if let Some((successor, reason)) = successor_of(snapshot, at)?
            && successor == session
        {
            return describe(snapshot, at, reason).map(Some);
        }
    }
    Ok(None)
}

/// Returns the sessions with the shortest pauses, each with its pause and its position.
fn nearest_sessions(
    snapshot: &Snapshot,
    pause: impl Fn(&SessionSummary) -> Option<i64>,
) -> Vec<(i64, usize)> {
    let sessions = snapshot.sessions().iter().enumerate();
    let mut found: Vec<(i64, usize)> =
        sessions.filter_map(|(at, session)| Some((pause(session)?, at))).collect();
    found.sort_unstable();
    found.truncate(MAX_CANDIDATES);
    found
}

/// Returns the position of the session that continues this one, and what both have in common.
fn successor_of(snapshot: &Snapshot, session: usize) -> Result<Option<(usize, String)>, ToolError> {
    let earlier = &snapshot.sessions()[session];
    let later = nearest_sessions(snapshot, |later| pause_between(earlier, later));
    if later.is_empty() {
        return Ok(None);
    }
    let Some(end) = read_open_end(snapshot, session)? else { return Ok(None) };
    for &(_, at) in &later {
        let prompt = read_first_prompt(snapshot, at)?;
        if is_long_enough(&end.prompt) && prompt == end.prompt {
            return Ok(Some((at, "begins with the prompt that was left open".to_owned())));
        }
        if is_long_enough(&end.plan) && prompt.contains(&end.plan) {
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

/// Returns the time in microseconds from the end of `earlier` to the beginning of `later`, if the one may
/// continue the other by its time and place: the same folder, of the same machine and user.
fn pause_between(earlier: &SessionSummary, later: &SessionSummary) -> Option<i64> {
    let pause = later.started_at?.saturating_sub(earlier.ended_at?);
    let is_fork = later.parent_session_id.as_ref() == Some(&earlier.session_id)
        || earlier.parent_session_id.as_ref() == Some(&later.session_id);
    let may_continue = later.started_at > earlier.started_at
        && (-MAX_OVERLAP..=MAX_REPEAT_PAUSE).contains(&pause)
        && later.origin.cwd.is_some()
        && later.origin.cwd == earlier.origin.cwd
        && later.origin.machine == earlier.origin.machine
        && later.origin.user_name == earlier.origin.user_name
        && is_of_user(later)
        && is_of_user(earlier)
        && !is_fork;
    may_continue.then_some(pause)
}

/// Reads what a session left open. `None` if it ended with an answer.
fn read_open_end(snapshot: &Snapshot, session: usize) -> Result<Option<OpenEnd>, ToolError> {
    let end = u32::try_from(snapshot.sessions()[session].events).unwrap_or(u32::MAX);
    let rows = rows::read_events(snapshot, session, end.saturating_sub(END_EVENTS), end)?;
    let actions = pair_calls(&rows);
    if !is_left_open(&rows, &actions) && find_rejected_plan(&actions).is_none() {
        return Ok(None);
    }
    let own = own_rows(&rows);
    let prompt = own.iter().rfind(|row| is_prompt(row)).map(|row| kept_part(&row.text));
    let plan = own.iter().rfind(|row| is_plan_call(row)).map(|row| plan_text(kept_part(&row.text)));
    Ok(Some(OpenEnd {
        prompt: prompt.map_or_else(String::new, one_line),
        plan: plan.map_or_else(String::new, one_line).chars().take(PLAN_CHARS).collect(),
    }))
}

/// Reads the first prompt of a session, with single spaces.
fn read_first_prompt(snapshot: &Snapshot, session: usize) -> Result<String, ToolError> {
    let rows = rows::read_events(snapshot, session, 0, FIRST_EVENTS)?;
    let prompt = rows.iter().find(|row| is_own(row) && is_prompt(row));
    Ok(prompt.map_or_else(String::new, |row| one_line(kept_part(&row.text))))
}

/// Returns true if a text is so long that only a continuation repeats it.
fn is_long_enough(text: &str) -> bool {
    text.chars().count() >= MIN_REPEATED_CHARS
}

fn describe(snapshot: &Snapshot, at: usize, reason: String) -> Result<Continuation, ToolError> {
    let row = snapshot.sessions()[at].row().map_err(store_error)?;
    Ok(Continuation {
        session_id: row.session_id.clone(),
        provider: row.provider,
        title: convert::short_title(row),
        reason,
    })
}
