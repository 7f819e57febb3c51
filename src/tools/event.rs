//! Runs `get_event_details`, which returns whole events by id.

use std::collections::HashMap;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::tool::event::{EventArgs, EventData};
use schemas::{ErrorCode, EventId, ToolError, limits};

use super::reply::answer::Reply;
use super::reply::budget::{Budget, echoed};
use super::reply::call::Call;
use super::reply::caller::ambiguous_prefix_warning;
use super::reply::rows::{Links, Pager, Put};
use super::reply::shared_state::SharedState;
use super::reply::{cursor, rows};
use crate::store::Snapshot;

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
    // The next id of the list, and the next character of its text.
    let (first, mut offset) = match &args.cursor {
        Some(text) => cursor::decode::<(usize, usize)>(&bound, text)?,
        None => (0, 0),
    };
    let ids = parse_all(args)?;
    let mut pager = Pager {
        fields: args.fields.as_deref(),
        max_chars: max_chars as usize,
        budget: Budget::new(limits::ANSWER_BYTES),
        events: Vec::new(),
    };
    let mut links: HashMap<usize, Links> = HashMap::new();
    let (mut not_found, mut ambiguous) = (Vec::new(), Vec::new());
    let mut next = None;
    for (at, id) in ids.iter().enumerate().skip(first) {
        call.check()?;
        let session = id.as_ref().map(|id| (shared.caller.find(snapshot, &id.session), id.index));
        let found = match session {
            None => None,
            Some((Ok(session), index)) => {
                rows::range(snapshot, session, index, index.saturating_add(1))?
                    .pop()
                    .map(|row| (session, row))
            }
            Some((Err(error), _)) if error.code == ErrorCode::SessionNotFound || count > 1 => {
                ambiguous.extend(ambiguous_prefix_warning(&error));
                None
            }
            Some((Err(error), _)) => {
                return Err(error.with("event_id", args.event_ids[at].as_str()));
            }
        };
        let Some((session, row)) = found else {
            let name = echoed(&args.event_ids[at]);
            if !pager.budget.take(&name) {
                next = Some((at, 0));
                break;
            }
            not_found.push(name);
            continue;
        };
        let links = match links.entry(session) {
            std::collections::hash_map::Entry::Occupied(known) => known.into_mut(),
            std::collections::hash_map::Entry::Vacant(new) => new.insert(match row.tool_call_id {
                Some(_) => Links::read(snapshot, session)?,
                None => Links::default(),
            }),
        };
        if let Put::Until(char) =
            pager.put(&row, &snapshot.sessions()[session], links, std::mem::take(&mut offset))
        {
            next = Some((at, char));
            break;
        }
    }
    if pager.events.is_empty() && not_found.len() == count {
        let why =
            ids.iter().flatten().next().map(|id| why_not(shared, snapshot, id)).unwrap_or_default();
        let message = format!(
            "No such event: {}. {why}{} and {} give event ids",
            not_found.join(", "),
            shared.caller.interface.tool("search_events"),
            shared.caller.interface.tool("get_session_details")
        );
        return Err(ToolError::new(ErrorCode::EventNotFound, message).with("not_found", not_found));
    }
    let returned = pager.events.len();
    let mut reply = Reply::new(EventData { events: pager.events, not_found }, returned);
    reply.warnings = ambiguous;
    // Counted in ids: an event that continues on the next page is not complete yet.
    reply.before = next.map_or(0, |(at, _)| at.saturating_sub(returned));
    reply.total = Some((count, true));
    if let Some((at, char)) = next {
        let message = match char {
            0 => format!(
                "The page holds what fits; {} follows on the next",
                echoed(&args.event_ids[at])
            ),
            char => {
                let whole = reply.data.events.last().and_then(|event| event.text_chars);
                let left = whole.map_or(0, |chars| chars.saturating_sub(char));
                format!(
                    "The text of {} is cut at character {char}, {left} are left; the next page goes on from there",
                    args.event_ids[at]
                )
            }
        };
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    reply.next_cursor = next.map(|position| cursor::encode(&bound, &position));
    Ok(reply)
}

/// Returns why an id does not name an event.
fn why_not(shared: &SharedState, snapshot: &Snapshot, id: &EventId) -> String {
    match shared.caller.find(snapshot, &id.session) {
        Err(error) => format!("{}; ", error.message),
        Ok(at) => {
            let row = &snapshot.sessions()[at];
            match row.events {
                0 => format!("Session {} has no events; ", row.session_id),
                events => format!(
                    "The events of session {} are 0 to {}; ",
                    row.session_id,
                    events.saturating_sub(1)
                ),
            }
        }
    }
}

/// Parses the ids. An invalid id becomes `None`, which is reported as not found; if all are
/// invalid, the error is returned.
fn parse_all(args: &EventArgs) -> Result<Vec<Option<EventId>>, ToolError> {
    let parsed: Vec<Result<EventId, ToolError>> =
        args.event_ids.iter().map(|id| id.parse()).collect();
    if parsed.iter().all(Result::is_err) {
        return parsed.into_iter().map(|id| id.map(Some)).collect();
    }
    Ok(parsed.into_iter().map(Result::ok).collect())
}
