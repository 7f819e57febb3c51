//! Runs `get_event_details`, which returns whole events by id.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::event::{EventArgs, EventData};
use schemas::{ErrorCode, EventId, ToolError, limits};

use super::reply::answer::{Reply, RowTotal};
use super::reply::budget::{Budget, echoed_name};
use super::reply::call::Call;
use super::reply::caller::ambiguous_prefix_warning;
use super::reply::retention_warning::dropped_texts_warning;
use super::reply::rows::{EventFit, Links, Pager};
use super::reply::shared_state::SharedState;
use super::reply::{cursor, rows};
use crate::error::store_error;
use crate::store::Snapshot;

/// The page of a call, while it is filled.
struct EventPage<'a> {
    pager: Pager<'a>,
    /// The requested ids; `None` if an id is invalid.
    ids: Vec<Option<EventId>>,
    not_found: Vec<String>,
    /// Warnings about ids whose session is a prefix of several sessions.
    ambiguous: Vec<Warning>,
    /// The number of the id that the next page begins with, and the character of its text.
    next: Option<(usize, usize)>,
}

/// Has the engine, if there is one, load the sessions of the requested events. An id that is not valid
/// is left to [`run`], which reports it.
pub(super) fn prepare(
    shared: &SharedState,
    args: &EventArgs,
    call: &Call<'_>,
) -> Result<(), ToolError> {
    shared.prepare_lake(call, |engine, lake| {
        let mut sessions = Vec::new();
        for id in parse_event_ids(args).into_iter().flatten().flatten() {
            sessions.extend(shared.caller.find_session(lake.snapshot, &id.session));
        }
        engine.load_sessions(lake, &sessions)
    })
}

pub(super) fn run(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &EventArgs,
    call: &Call<'_>,
) -> Result<Reply<EventData>, ToolError> {
    let count = args.event_ids.len();
    if !(1..=limits::EVENT_IDS_MAX).contains(&count) {
        let valid = format!("1-{} ids", limits::EVENT_IDS_MAX);
        return Err(ToolError::invalid_value("event_ids", &format!("{count} ids"), &[&valid]));
    }
    let max_chars = args.max_chars.unwrap_or(limits::EVENT_CHARS);
    if !(100..=limits::EVENT_CHARS_MAX).contains(&max_chars) {
        let valid = format!("100-{}", limits::EVENT_CHARS_MAX);
        return Err(ToolError::invalid_value("max_chars", &max_chars.to_string(), &[&valid]));
    }
    let bound = EventArgs { cursor: None, ..args.clone() };
    let start = match &args.cursor {
        Some(text) => cursor::decode::<(usize, usize)>(&bound, text)?,
        None => (0, 0),
    };

    let pager = Pager {
        fields: args.fields.as_deref(),
        max_chars: max_chars as usize,
        budget: Budget::new(limits::ANSWER_BYTES),
        events: Vec::new(),
    };
    let page = read_page(shared, snapshot, args, start, pager, call)?;
    if page.pager.events.is_empty() && page.not_found.len() == count {
        return Err(not_found_error(shared, snapshot, page));
    }

    let returned = page.pager.events.len();
    let data = EventData { events: page.pager.events, not_found: page.not_found };
    let mut reply = Reply::new(data, returned);
    reply.warnings = page.ambiguous;
    let sessions: HashSet<&str> =
        reply.data.events.iter().map(|event| event.session_id.as_str()).collect();
    let dropped = dropped_texts_warning(snapshot, |row| sessions.contains(row.id()));
    reply.warnings.extend(dropped.map_err(store_error)?);
    // Counted in ids: an event that continues on the next page is not complete yet.
    reply.before = page.next.map_or(0, |(at, _)| at.saturating_sub(returned));
    reply.total = Some(RowTotal::Exact(count));
    if let Some((at, char)) = page.next {
        let last = reply.data.events.last();
        let message =
            describe_cut(&args.event_ids[at], char, last.and_then(|last| last.text_chars));
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    reply.next_cursor = page.next.map(|position| cursor::encode(&bound, &position));
    Ok(reply)
}

/// Reads events until all ids are read or the page is full. `start` is the number of the first id,
/// and the first character of its text.
fn read_page<'a>(
    shared: &SharedState,
    snapshot: &Snapshot,
    args: &EventArgs,
    start: (usize, usize),
    pager: Pager<'a>,
    call: &Call<'_>,
) -> Result<EventPage<'a>, ToolError> {
    let ids = parse_event_ids(args)?;
    let mut page =
        EventPage { pager, ids, not_found: Vec::new(), ambiguous: Vec::new(), next: None };
    let (first, mut offset) = start;
    let no_links = Links::default();
    let mut links_of: HashMap<usize, Links> = HashMap::new();
    for (at, id) in page.ids.iter().enumerate().skip(first) {
        call.ensure_running()?;
        let mut found = None;
        if let Some(id) = id {
            match shared.caller.find_session(snapshot, &id.session) {
                Ok(session) => {
                    let end = id.index.saturating_add(1);
                    let row = rows::read_events(snapshot, session, id.index, end)?.pop();
                    found = row.map(|row| (session, row));
                }
                // If several ids were given, the others are answered.
                Err(error)
                    if error.code == ErrorCode::SessionNotFound || args.event_ids.len() > 1 =>
                {
                    page.ambiguous.extend(ambiguous_prefix_warning(&error));
                }
                Err(error) => {
                    return Err(error.with_detail("event_id", args.event_ids[at].as_str()));
                }
            }
        }
        let Some((session, row)) = found else {
            let name = echoed_name(&args.event_ids[at]);
            if !page.pager.budget.take(&name) {
                page.next = Some((at, 0));
                break;
            }
            page.not_found.push(name);
            continue;
        };

        let links = match links_of.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            // The links of a session are read for its first event that may have one.
            Entry::Vacant(new) if row.tool_call_id.is_some() => {
                new.insert(Links::read(snapshot, session)?)
            }
            Entry::Vacant(_) => &no_links,
        };
        let session = &snapshot.sessions()[session];
        if let EventFit::Until(char) =
            page.pager.push_event(&row, session, links, std::mem::take(&mut offset))
        {
            page.next = Some((at, char));
            break;
        }
    }
    Ok(page)
}

/// Describes where the next page continues: at character `char` of the text of an event whose
/// whole text has `text_chars` characters, or at the beginning of an event.
fn describe_cut(id: &str, char: usize, text_chars: Option<usize>) -> String {
    if char == 0 {
        return format!("The page is full; the next one begins with {}", echoed_name(id));
    }
    let left = text_chars.map_or(0, |chars| chars.saturating_sub(char));
    format!(
        "The text of {id} is cut at character {char}; the next page continues with the remaining {left}"
    )
}

/// Returns the error for a call whose ids are all unknown.
fn not_found_error(shared: &SharedState, snapshot: &Snapshot, page: EventPage<'_>) -> ToolError {
    let first = page.ids.iter().flatten().next();
    let why = first.map(|id| describe_unknown_event(shared, snapshot, id)).unwrap_or_default();
    let message = format!(
        "No such event: {}. {why}{} and {} give event ids",
        page.not_found.join(", "),
        shared.caller.interface.tool_name("search_events"),
        shared.caller.interface.tool_name("get_session_details")
    );
    ToolError::new(ErrorCode::EventNotFound, message).with_detail("not_found", page.not_found)
}

/// Returns why an id does not name an event.
fn describe_unknown_event(shared: &SharedState, snapshot: &Snapshot, id: &EventId) -> String {
    let at = match shared.caller.find_session(snapshot, &id.session) {
        Ok(at) => at,
        Err(error) => return format!("{}; ", error.message),
    };
    let row = &snapshot.sessions()[at];
    if row.events == 0 {
        return format!("Session {} has no events; ", row.session_id);
    }
    let last = row.events.saturating_sub(1);
    format!("The events of session {} are 0 to {last}; ", row.session_id)
}

/// Parses the ids. An invalid id becomes `None`, which is reported as not found; if all are
/// invalid, the error is returned.
fn parse_event_ids(args: &EventArgs) -> Result<Vec<Option<EventId>>, ToolError> {
    let parsed: Vec<Result<EventId, ToolError>> =
        args.event_ids.iter().map(|id| id.parse()).collect();
    if parsed.iter().all(Result::is_err) {
        return parsed.into_iter().map(|id| id.map(Some)).collect();
    }
    Ok(parsed.into_iter().map(Result::ok).collect())
}
