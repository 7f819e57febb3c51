//! Builds level `summary`: what the session was about and how it went.

use std::collections::HashMap;
use std::sync::Arc;

use schemas::EventType;
use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::{Child, Excerpt, Summary, ToolCount};

use crate::base::sanitize::{clean, head};
use crate::store::Snapshot;
use crate::tools::reply::convert;
use crate::tools::reply::event_predicates::{is_slash_command, shows_compaction};

/// Maximum sizes of the excerpts in bytes; together they keep the level under its target.
const PROMPT: usize = 800;
const ANSWER: usize = 1600;
const ERROR: usize = 300;
const COMPACTION: usize = 160;

/// Maximum number of items shown of each list.
const TOOLS: usize = 20;
const ERRORS: usize = 5;
const COMPACTIONS: usize = 5;
const CHILDREN: usize = 8;

pub(super) fn summary(snapshot: &Snapshot, session: &SessionRow, events: &[EventRow]) -> Summary {
    let own = |kind: EventType| {
        events.iter().filter(move |event| event.event_type == kind && !event.is_sidechain)
    };
    let first = own(EventType::User)
        .find(|event| !is_slash_command(&event.text))
        .or_else(|| own(EventType::User).next());
    let last = own(EventType::User)
        .next_back()
        .filter(|last| first.is_some_and(|first| first.event_index != last.event_index));
    let errors: Vec<_> =
        events.iter().rev().filter(|event| event.is_error == Some(true)).take(ERRORS).collect();
    let compacted = |event: &&EventRow| shows_compaction(event);
    Summary {
        first_prompt: first.map(|event| excerpt(event, PROMPT)),
        last_prompt: last.map(|event| excerpt(event, PROMPT)),
        last_message: own(EventType::Message)
            .rfind(|event| !event.text.trim().is_empty())
            .map(|event| excerpt(event, ANSWER)),
        tools: tools(events),
        errors: errors.into_iter().rev().map(|event| excerpt(event, ERROR)).collect(),
        compactions: events
            .iter()
            .filter(compacted)
            .take(COMPACTIONS)
            .map(|event| excerpt(event, COMPACTION))
            .collect(),
        children: children(snapshot, session),
    }
}

/// Returns the beginning of an event, with its turn.
fn excerpt(event: &EventRow, chars: usize) -> Excerpt {
    Excerpt { turn_index: Some(convert::index(event.turn_index)), ..convert::excerpt(event, chars) }
}

fn tools(events: &[EventRow]) -> Vec<ToolCount> {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    for event in events {
        let name = event.tool_name.as_deref().unwrap_or("unknown");
        if event.event_type == EventType::ToolCall {
            counts.entry(name).or_default().0 += 1;
        } else if event.event_type == EventType::ToolResult && event.is_error == Some(true) {
            counts.entry(name).or_default().1 += 1;
        }
    }
    let mut counts: Vec<_> = counts
        .into_iter()
        .map(|(name, (calls, errors))| ToolCount { tool_name: clean(name), calls, errors })
        .collect();
    counts.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool_name.cmp(&b.tool_name)));
    counts.truncate(TOOLS);
    counts
}

fn children(snapshot: &Snapshot, session: &SessionRow) -> Vec<Child> {
    let hangs_here =
        |row: &&Arc<SessionRow>| row.parent_session_id.as_ref() == Some(&session.session_id);
    let child = |row: &Arc<SessionRow>| Child {
        session_id: row.session_id.clone(),
        relation: row.relation.clone().unwrap_or_default(),
        title: row.title.as_deref().map(|title| head(&clean(title), 100).0.to_owned()),
    };
    snapshot.sessions().iter().filter(hangs_here).take(CHILDREN).map(child).collect()
}
