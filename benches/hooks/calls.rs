//! Collects the calls of hooks that the sessions of a store would have made.

use std::collections::HashMap;
use std::path::PathBuf;

use schemas::EventType;
use schemas::hook::{HookClient, HookName};
use schemas::session::EventRow;
use sessions::hooks::{FailedCallInput, HookInput};
use store::{ALL_EVENTS, SessionOrigin, SessionSummary, Snapshot};

/// One call of a hook.
pub(crate) struct ReplayedCall {
    pub(crate) input: HookInput,
    /// Microseconds since the epoch.
    pub(crate) time: i64,
    /// Position of the session.
    pub(crate) session: usize,
    /// The event that the call is about.
    pub(crate) event_index: u32,
    /// True if the call is made in another project.
    pub(crate) is_control: bool,
    /// The same call in another project.
    pub(crate) elsewhere: Option<Box<Self>>,
}

/// A session with its calls, in order.
pub(crate) struct SessionCalls {
    pub(crate) calls: Vec<ReplayedCall>,
}

/// Returns the sessions with a folder and a time, the earliest first.
pub(crate) fn collect_calls(snapshot: &Snapshot) -> Vec<SessionCalls> {
    let folders = foreign_folders(snapshot);
    let mut sessions: Vec<(i64, SessionCalls)> = Vec::new();
    for (position, row) in snapshot.sessions().iter().enumerate() {
        let (Some(started), Some(cwd)) = (row.started_at, row.origin.cwd.clone()) else { continue };
        if !row.is_conversation || row.replay_events == row.events || row.agent_id.is_some() {
            continue;
        }
        let mut calls = Vec::new();
        let mut push = |hook: HookName, event: Option<&EventRow>| {
            let time = event.map_or(Some(started), |event| event.timestamp);
            let Some(time) = time else { return };
            calls.push(ReplayedCall {
                input: input_of(hook, row, &cwd, event),
                time,
                session: position,
                event_index: event.map_or(0, |event| u32::try_from(event.event_index).unwrap_or(0)),
                is_control: false,
                elsewhere: None,
            });
        };
        push(HookName::SessionStart, None);
        let events = snapshot.events_of(position, ALL_EVENTS, &[]).read_rows().expect("reads");
        for event in events.iter().filter(|event| !event.is_replay && !event.is_sidechain) {
            match event.event_type {
                EventType::User => push(HookName::Prompt, Some(event)),
                EventType::ToolCall if event.command.is_some() => {
                    push(HookName::PreTool, Some(event));
                }
                EventType::ToolResult if event.is_error == Some(true) => {
                    push(HookName::PostToolFailure, Some(event));
                }
                EventType::Message
                | EventType::Reasoning
                | EventType::ToolCall
                | EventType::ToolResult
                | EventType::TokenUsage
                | EventType::Notification => {}
            }
        }
        let foreign =
            folders.iter().find(|(project, _)| Some(*project) != row.origin.project.as_deref());
        // A beginning session is always told where the last ones ended.
        for call in calls.iter_mut().filter(|call| call.input.hook != HookName::SessionStart) {
            call.elsewhere = foreign.map(|(_, folder)| ask_elsewhere(call, folder));
        }
        sessions.push((started, SessionCalls { calls }));
    }
    sessions.sort_by_key(|(started, _)| *started);
    sessions.into_iter().map(|(_, calls)| calls).collect()
}

/// Returns the folders with the most sessions, each with its project.
fn foreign_folders(snapshot: &Snapshot) -> Vec<(&str, &str)> {
    let mut counts: HashMap<(&str, &str), usize> = HashMap::new();
    for row in snapshot.sessions() {
        let SessionOrigin { project, cwd, .. } = &*row.origin;
        if let (Some(project), Some(cwd)) = (project, cwd) {
            *counts.entry((project, cwd)).or_default() += 1;
        }
    }
    let mut folders: Vec<_> = counts.into_iter().collect();
    folders.sort_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.cmp(b)));
    folders.into_iter().map(|(folder, _)| folder).collect()
}

fn input_of(
    hook: HookName,
    row: &SessionSummary,
    cwd: &str,
    event: Option<&EventRow>,
) -> HookInput {
    let text = event.map(|event| event.text.clone());
    let is_failure = hook == HookName::PostToolFailure;
    HookInput {
        hook,
        client: HookClient::Claude,
        session_id: Some(row.session_id.clone()),
        cwd: PathBuf::from(cwd),
        source: Some("startup".to_owned()),
        prompt: text.clone().filter(|_| hook == HookName::Prompt),
        tool: event.and_then(|event| event.tool_name.clone()),
        command: event.and_then(|event| event.command.clone()),
        failure: text
            .filter(|_| is_failure)
            .map(|output| FailedCallInput { output, is_certain: true }),
    }
}

/// Returns a call as it would be made in another project, after all of its history.
fn ask_elsewhere(call: &ReplayedCall, folder: &str) -> Box<ReplayedCall> {
    let input = HookInput { cwd: PathBuf::from(folder), ..call.input.clone() };
    let ReplayedCall { session, event_index, .. } = *call;
    Box::new(ReplayedCall {
        input,
        time: i64::MAX / 2,
        session,
        event_index,
        is_control: true,
        elsewhere: None,
    })
}
