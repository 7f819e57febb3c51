//! Selects the sessions that `sessions forget` removes, and names those that hold copies of them.

use std::collections::{BTreeSet, HashMap, HashSet};

use ingest::stream::forgotten::MarkKey;
use schemas::tool::search::{SearchArgs, SearchSort};
use schemas::{ErrorCode, Provider, Timestamp, ToolError, limits};
use serde::Serialize;

use super::Tools;
use super::reply::call::Call;
use super::reply::convert::clean_title;
use super::reply::interface::Interface;
use super::reply::session_filter::session_filter;
use crate::error::store_error;
use base::sanitize::clean_text;
use store::{SessionSummary, Snapshot};

/// The criteria that select sessions to forget. A session is selected if it fulfils all of them.
#[derive(Debug, Clone, Default)]
pub struct ForgetSelection {
    /// Session ids or their unique prefixes.
    pub session_ids: Vec<String>,
    pub provider: Option<Provider>,
    pub project: Option<String>,
    /// Only sessions whose last event is before this time.
    pub before: Option<String>,
    /// Only sessions with an event that this query finds.
    pub query: Option<String>,
    /// Also forget the sessions that hold copies of the selected ones' events, or the originals.
    pub with_copies: bool,
}

/// A session that is forgotten, or that holds copies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForgetEntry {
    pub session_id: String,
    pub provider: Provider,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_active: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    pub events: i64,
    /// True if it is forgotten because it is the subagent of a selected session.
    pub is_subagent: bool,
    /// True if it is forgotten because it is an earlier version of a selected session.
    pub is_earlier_version: bool,
}

/// A session that holds copies of what is forgotten, or the originals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForgetCopy {
    #[serde(flatten)]
    pub session: ForgetEntry,
    /// Number of copied events. They lose everything but their types, times and places. 0 if the
    /// session has the originals, which stay as they are.
    pub events_left_out: i64,
    /// Number of events that stay as they are.
    pub events_kept: i64,
    /// True if the session is nothing but a copy, so that all of it goes.
    pub is_removed: bool,
}

/// The sessions that are forgotten.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForgetData {
    pub sessions: Vec<ForgetEntry>,
    /// Sessions that are not selected, although they hold copies of events of these sessions, or the
    /// originals.
    pub copies: Vec<ForgetCopy>,
    pub events: i64,
    /// False if this only shows what would be forgotten.
    pub is_done: bool,
}

impl ForgetSelection {
    /// Returns whether no criterion was given.
    pub fn is_empty(&self) -> bool {
        self.session_ids.is_empty()
            && self.provider.is_none()
            && self.project.is_none()
            && self.before.is_none()
            && self.query.is_none()
    }
}

impl ForgetData {
    /// Returns the ids of the sessions that are forgotten.
    pub fn session_ids(&self) -> HashSet<String> {
        self.sessions.iter().map(|entry| entry.session_id.clone()).collect()
    }
}

/// Selects sessions, with their subagents and earlier versions. `is_wanted` selects among them.
pub fn select_forgotten(
    tools: &Tools,
    selection: &ForgetSelection,
    is_wanted: &dyn Fn(&SessionSummary) -> bool,
    call: &Call<'_>,
) -> Result<ForgetData, ToolError> {
    let snapshot = tools.snapshot(call)?;
    let mut selected = BTreeSet::new();
    for at in matching_sessions(tools, selection, call)? {
        let row = &snapshot.sessions()[at];
        if row.events > 0 && is_wanted(row) {
            selected.insert(at);
        }
    }

    let directly_selected = selected.clone();
    let mut originals;
    let mut copies;
    loop {
        let is_part = |row: &SessionSummary| row.is_subagent || row.is_earlier_version;
        add_parts(snapshot, &mut selected, &is_part);
        let ids = selected.iter().map(|at| snapshot.sessions()[*at].id().to_owned()).collect();
        originals = sessions_with_copies(snapshot, &selected)?;
        copies = snapshot.plan_forget(&ids, MarkKey::default()).map_err(store_error)?.copies;
        if !selection.with_copies || originals.is_empty() && copies.is_empty() {
            break;
        }
        selected.append(&mut originals);
        selected.extend(copies.iter().map(|copy| copy.session));
    }
    let mut data = ForgetData::default();
    for at in &selected {
        let row = &snapshot.sessions()[*at];
        let is_extra = !directly_selected.contains(at);
        data.events += row.events;
        data.sessions.push(ForgetEntry {
            is_subagent: is_extra && row.is_subagent,
            is_earlier_version: is_extra && row.is_earlier_version,
            ..describe_session(row)
        });
    }
    for copy in &copies {
        originals.remove(&copy.session);
        data.copies.push(ForgetCopy {
            session: describe_session(&snapshot.sessions()[copy.session]),
            events_left_out: copy.events_left_out,
            events_kept: copy.events_kept,
            is_removed: copy.is_whole,
        });
    }
    for at in originals {
        let row = &snapshot.sessions()[at];
        let session = describe_session(row);
        let events_kept = row.events;
        data.copies.push(ForgetCopy {
            session,
            events_left_out: 0,
            events_kept,
            is_removed: false,
        });
    }
    data.copies.sort_by(|a, b| a.session.session_id.cmp(&b.session.session_id));
    Ok(data)
}

/// Returns the positions of the sessions that fulfil the criteria.
fn matching_sessions(
    tools: &Tools,
    selection: &ForgetSelection,
    call: &Call<'_>,
) -> Result<Vec<usize>, ToolError> {
    let snapshot = tools.snapshot(call)?;
    let mut named = HashSet::new();
    for id in &selection.session_ids {
        let id = id.trim();
        let found = snapshot.find_session(id);
        named.insert(found.map_err(|error| Interface::Commands.lookup_error(id, error))?);
    }
    let before = selection.before.as_deref();
    let before = before.map(|text| call.zone.parse_since("before", text, call.now)).transpose()?;
    let found = match &selection.query {
        Some(query) => Some(sessions_found(tools, query, call)?),
        None => None,
    };

    let passes = session_filter(selection.project.as_deref(), selection.provider, None);
    let mut matching = Vec::new();
    for (at, row) in snapshot.sessions().iter().enumerate() {
        let is_named = selection.session_ids.is_empty() || named.contains(&at);
        let is_before = before.is_none_or(|time| row.ended_at.is_some_and(|end| end < time.0));
        let is_found = found.as_ref().is_none_or(|ids| ids.contains(&row.session_id));
        if is_named && is_before && is_found && passes(row) {
            matching.push(at);
        }
    }
    Ok(matching)
}

/// Returns the ids of the sessions with an event that a query finds.
fn sessions_found(
    tools: &Tools,
    query: &str,
    call: &Call<'_>,
) -> Result<HashSet<String>, ToolError> {
    let mut args = SearchArgs {
        query: query.to_owned(),
        event_type: None,
        provider: None,
        project: None,
        machine: None,
        user: None,
        session_id: None,
        exclude_current: None,
        since: None,
        until: None,
        // Events that only resemble the query must not be forgotten.
        sort: Some(SearchSort::Newest),
        context: None,
        limit: Some(limits::SEARCH_LIMIT_MAX),
        cursor: None,
    };
    let mut ids = HashSet::new();
    loop {
        let answer = tools.search_events(&args, call)?;
        ids.extend(answer.data.matches.iter().map(|found| found.session_id.clone()));
        match answer.pagination.as_ref().and_then(|page| page.next_cursor.clone()) {
            Some(cursor) => args.cursor = Some(cursor),
            None => return Ok(ids),
        }
    }
}

/// Adds the sessions below the selected ones that `is_part` accepts, and those below them.
pub(super) fn add_parts(
    snapshot: &Snapshot,
    selected: &mut BTreeSet<usize>,
    is_part: &dyn Fn(&SessionSummary) -> bool,
) {
    loop {
        let mut found = Vec::new();
        for (at, row) in snapshot.sessions().iter().enumerate() {
            let parent = row.parent_session_id.as_deref();
            let parent = parent.and_then(|id| snapshot.session_position(id));
            let is_of_selected = parent.is_some_and(|parent| selected.contains(&parent));
            if is_of_selected && is_part(row) && !selected.contains(&at) {
                found.push(at);
            }
        }
        if found.is_empty() {
            return;
        }
        selected.extend(found);
    }
}

/// Returns the sessions that are not selected and share copied events with selected ones.
fn sessions_with_copies(
    snapshot: &Snapshot,
    selected: &BTreeSet<usize>,
) -> Result<BTreeSet<usize>, ToolError> {
    let mut ancestors: HashMap<usize, Vec<usize>> = HashMap::new();
    for source in snapshot.read_sources(false).map_err(store_error)? {
        let session = source.session_id.as_deref().and_then(|id| snapshot.session_position(id));
        let (Some(at), Some(ids)) = (session, &source.ancestors) else { continue };
        let known = ids.split(' ').filter_map(|id| snapshot.session_position(id));
        ancestors.entry(at).or_default().extend(known);
    }
    let mut found = BTreeSet::new();
    for (at, of) in ancestors {
        // A log that may repeat another's history, but does not, has no copies.
        let has_copies = snapshot.sessions()[at].replay_events > 0;
        for ancestor in of {
            if has_copies && selected.contains(&ancestor) != selected.contains(&at) {
                found.insert(if selected.contains(&at) { ancestor } else { at });
            }
        }
    }
    found.retain(|at| snapshot.sessions()[*at].events > 0);
    Ok(found)
}

fn describe_session(row: &SessionSummary) -> ForgetEntry {
    ForgetEntry {
        session_id: row.session_id.clone(),
        provider: row.provider,
        project: row.origin.project.as_deref().map(clean_text),
        last_active: row.ended_at.map(|time| Timestamp(time).to_string()),
        title: row.title.as_deref().map(clean_title),
        events: row.events,
        is_subagent: false,
        is_earlier_version: false,
    }
}

/// Returns the error of a command that names no session.
pub fn nothing_selected() -> ToolError {
    let message = "forget: nothing is selected. Name sessions, or use --project, --agent, --before, --query or --excluded";
    ToolError::new(ErrorCode::InvalidArgument, message)
}
