//! Runs `get_event_details`, which returns whole events by id, and ranges with shortened results.

mod requested;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::session::EventRow;
use schemas::tool::event::{EventArgs, EventData, EventField};
use schemas::{ErrorCode, EventType, ToolError, ToolKind, limits};

pub(crate) use self::requested::EventSpan;
use self::requested::{RequestedEvent, parse_spans};

use super::reply::answer::{Reply, RowTotal};
use super::reply::budget::{Budget, echoed_name};
use super::reply::call::Call;
use super::reply::caller::ambiguous_prefix_warning;
use super::reply::retention_warning::dropped_texts_warning;
use super::reply::rows::{EventFit, EventLinks, Pager};
use super::reply::tools::Tools;
use super::reply::{convert, cursor, rows};
use crate::error::store_error;
use base::sanitize::{clean_text, truncate_middle_for_json};
use store::{SessionSummary, Snapshot};

/// The fields of the events of a range, unless the call names some. `tool_name` comes with them.
const RANGE_FIELDS: &[EventField] = &[EventField::Text];

/// Maximum number of events that are read together. A page may be full after the first of them, if its
/// text is long.
const MAX_RUN_EVENTS: usize = 16;

/// The page of a call, while it is filled.
struct EventPage<'a> {
    pager: Pager<'a>,
    /// Number of requested events.
    requested: usize,
    not_found: Vec<String>,
    /// Warnings about ids whose session is a prefix of several sessions.
    ambiguous: Vec<Warning>,
    /// Where the next page begins, if there is one.
    next: Option<PageStart>,
}

/// Where a page begins.
struct PageStart {
    /// The number of the event among the requested ones, and the first character of its text.
    place: (usize, usize),
    event_id: String,
}

/// Returns the positions of the sessions of the requested events. An id that is not valid is left to
/// [`run`], which reports it.
pub(super) fn find_sessions(tools: &Tools, args: &EventArgs, snapshot: &Snapshot) -> Vec<usize> {
    let spans = parse_spans(&args.event_ids).into_iter().flatten().flatten();
    spans.filter_map(|span| tools.caller.find_session(snapshot, &span.session).ok()).collect()
}

pub(super) fn run(
    tools: &Tools,
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
    let page = read_page(tools, snapshot, args, start, pager, call)?;
    if page.pager.events.is_empty() && page.not_found.len() == page.requested {
        let spans = parse_spans(&args.event_ids)?;
        let first = spans.iter().flatten().next();
        return Err(unknown_event_error(tools, snapshot, first, page.not_found));
    }

    let returned = page.pager.events.len();
    let data = EventData { events: page.pager.events, not_found: page.not_found };
    let mut reply = Reply::new(data, returned);
    reply.warnings = page.ambiguous;
    let sessions: HashSet<&str> =
        reply.data.events.iter().map(|event| event.session_id.as_str()).collect();
    let dropped = dropped_texts_warning(snapshot, |row| sessions.contains(row.id()));
    reply.warnings.extend(dropped.map_err(store_error)?);
    reply.total = Some(RowTotal::Exact(page.requested));
    if let Some(PageStart { place: (at, char), event_id }) = page.next {
        // Counted in ids: an event that continues on the next page is not complete yet.
        reply.before = at.saturating_sub(returned);
        let last = reply.data.events.last();
        let message = describe_cut(&event_id, char, last.and_then(|last| last.text_chars));
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
        reply.next_cursor = Some(cursor::encode(&bound, &(at, char)));
    }
    Ok(reply)
}

/// Reads events until all are read or the page is full. `start` is the number of the first event, and
/// the first character of its text.
fn read_page<'a>(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &'a EventArgs,
    start: (usize, usize),
    pager: Pager<'a>,
    call: &Call<'_>,
) -> Result<EventPage<'a>, ToolError> {
    let mut ambiguous = Vec::new();
    let requested = resolve_all(tools, snapshot, args, &mut ambiguous)?;
    let mut page = EventPage {
        pager,
        requested: requested.len(),
        not_found: Vec::new(),
        ambiguous,
        next: None,
    };
    let (first, mut offset) = start;
    let no_links = EventLinks::default();
    let mut links_of: HashMap<usize, EventLinks> = HashMap::new();
    let mut run = VecDeque::new();
    for (at, event) in requested.iter().enumerate().skip(first) {
        call.ensure_running()?;
        if run.is_empty() {
            run = read_run(snapshot, &requested[at..])?;
        }
        let row = run.pop_front().flatten();
        let Some((session, mut row)) = event.place.map(|(session, _)| session).zip(row) else {
            let name = echoed_name(event.written);
            if !page.pager.budget.take(&name) {
                page.next = Some(PageStart { place: (at, 0), event_id: event.written.to_owned() });
                break;
            }
            page.not_found.push(name);
            continue;
        };

        let links = match links_of.entry(session) {
            Entry::Occupied(known) => known.into_mut(),
            // The links of a session are read for its first event that may have one.
            Entry::Vacant(new) if row.tool_call_id.is_some() => {
                new.insert(EventLinks::read(snapshot, session)?)
            }
            Entry::Vacant(_) => &no_links,
        };
        let wants_shown =
            args.fields.as_ref().is_some_and(|fields| fields.contains(&EventField::Shown));
        let result =
            if wants_shown { read_edit_result(snapshot, session, links, &row)? } else { None };
        let whole_chars = if event.is_in_range { shorten_text(&mut row) } else { None };
        let is_summary = event.is_in_range && args.fields.is_none();
        page.pager.fields = if is_summary { Some(RANGE_FIELDS) } else { args.fields.as_deref() };
        let session = snapshot.sessions()[session].row().map_err(store_error)?;
        let begun = std::mem::take(&mut offset);
        let fit = page.pager.push_event(&row, session, links, begun, result.as_deref());
        if let EventFit::Until(char) = fit {
            let id = convert::event_id(&row);
            let event_id = if event.is_in_range { id } else { event.written.to_owned() };
            page.next = Some(PageStart { place: (at, char), event_id });
            break;
        }
        if let Some(shown) = page.pager.events.last_mut().filter(|_| event.is_in_range) {
            shown.text_chars = shown.text_chars.or(whole_chars);
            // Of a shortened text, a part of the change is missing.
            shown.diff = shown.diff.take().filter(|_| whole_chars.is_none());
            shown.tool_name = row.tool_name.as_deref().map(clean_text);
        }
    }
    Ok(page)
}

/// Reads the text of the result of a call that changes files, which says how many lines it changed.
fn read_edit_result(
    snapshot: &Snapshot,
    session: usize,
    links: &EventLinks,
    row: &EventRow,
) -> Result<Option<String>, ToolError> {
    let kind = row.tool_kind.as_ref().and_then(|kind| kind.parse().ok());
    let (Some(ToolKind::Edit | ToolKind::Write), Some(index)) = (kind, links.result_of(row)) else {
        return Ok(None);
    };
    let index = convert::unsigned_index(index);
    let result = rows::read_events(snapshot, session, index, index.saturating_add(1))?.pop();
    Ok(result.map(|result| result.text))
}

/// Reads the first of the requested events, and those that follow it both in the request and in its
/// session: each read decompresses the pages around an event. Returns an entry for each; an event
/// that the session does not have is `None`.
fn read_run(
    snapshot: &Snapshot,
    requested: &[RequestedEvent<'_>],
) -> Result<VecDeque<Option<EventRow>>, ToolError> {
    let Some((session, first)) = requested.first().and_then(|event| event.place) else {
        return Ok(VecDeque::from([None]));
    };
    let mut end = first;
    for event in requested.iter().take(MAX_RUN_EVENTS) {
        if event.place != Some((session, end)) {
            break;
        }
        end = end.saturating_add(1);
    }
    if end == first {
        // No event has the largest index.
        return Ok(VecDeque::from([None]));
    }
    let mut rows = rows::read_events(snapshot, session, first, end)?.into_iter().peekable();
    let events =
        (first..end).map(|at| rows.next_if(|row| convert::unsigned_index(row.event_index) == at));
    Ok(events.collect())
}

/// Returns the events that the ids of a call name, in their order. An id that names none has an entry
/// without a place. Appends warnings about ids whose session is a prefix of several sessions.
fn resolve_all<'a>(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &'a EventArgs,
    ambiguous: &mut Vec<Warning>,
) -> Result<Vec<RequestedEvent<'a>>, ToolError> {
    let spans = parse_spans(&args.event_ids)?;
    let mut requested = Vec::new();
    for (written, span) in args.event_ids.iter().zip(&spans) {
        let find_session = |id: &str| tools.caller.find_session(snapshot, id);
        match requested::resolve(snapshot, written, span.as_ref(), find_session) {
            Ok(events) => requested.extend(events),
            // If several ids were given, the others are answered.
            Err(error) if args.event_ids.len() > 1 => {
                ambiguous.extend(ambiguous_prefix_warning(&error));
                requested.push(RequestedEvent::unknown(written));
            }
            Err(error) => return Err(error),
        }
        if requested.len() > limits::RANGE_EVENTS_MAX {
            let valid = format!("at most {} events", limits::RANGE_EVENTS_MAX);
            return Err(ToolError::invalid_value("event_ids", written, &[&valid]));
        }
    }
    Ok(requested)
}

/// Shortens the text of an event of a range. Returns the characters of the whole text if it was cut.
fn shorten_text(row: &mut EventRow) -> Option<usize> {
    let most = match row.event_type {
        EventType::User | EventType::Message => return None,
        EventType::ToolCall | EventType::Reasoning => limits::RANGE_CALL_BYTES,
        EventType::ToolResult | EventType::Notification | EventType::TokenUsage => {
            limits::RANGE_RESULT_BYTES
        }
    };
    let text = clean_text(&row.text);
    let (kept, omitted) = truncate_middle_for_json(&text, most);
    row.text = kept;
    (omitted > 0).then(|| text.chars().count())
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

/// Returns the error for a call whose ids are all unknown. `first` is the first of them that is valid.
pub(crate) fn unknown_event_error(
    tools: &Tools,
    snapshot: &Snapshot,
    first: Option<&EventSpan>,
    not_found: Vec<String>,
) -> ToolError {
    let why = first.map(|span| describe_unknown_event(tools, snapshot, span)).unwrap_or_default();
    let message = format!(
        "No such event: {}. {why}{} and {} give event ids",
        not_found.join(", "),
        tools.caller.interface.tool_name("search_events"),
        tools.caller.interface.tool_name("get_session_details")
    );
    ToolError::new(ErrorCode::EventNotFound, message).with_detail("not_found", not_found)
}

/// Returns why an id does not name an event.
fn describe_unknown_event(tools: &Tools, snapshot: &Snapshot, span: &EventSpan) -> String {
    let at = match tools.caller.find_session(snapshot, &span.session) {
        Ok(at) => at,
        Err(error) => return format!("{}; ", error.message),
    };
    let row = &snapshot.sessions()[at];
    if row.events == 0 {
        return format!("Session {} has no events; ", row.session_id);
    }
    let last = row.events.saturating_sub(1);
    let mut message = format!("The events of session {} are 0 to {last}; ", row.session_id);
    let has_event = |other: &SessionSummary| {
        other.is_earlier_version
            && other.parent_session_id.as_ref() == Some(&row.session_id)
            && other.events > i64::from(span.first)
    };
    let earlier = snapshot.sessions().iter().find(|other| has_event(other));
    if let Some(earlier) = earlier {
        let _ = write!(
            message,
            "before its log was rewritten it had {}:{}; ",
            earlier.session_id, span.first
        );
    }
    message
}
