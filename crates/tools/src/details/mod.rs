//! Runs `get_session_details`, which shows one session at four levels of detail.

mod last;
mod page;
mod steps;
mod summary;
mod turns;

use std::ops::RangeInclusive;

use ingest::provider::base_of;
use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::{self, DetailArgs, DetailData, DetailLevel, Summary};
use schemas::tool::list::{ListFormat, Session};
use schemas::{EventType, ToolError, limits};

use self::page::{DetailPage, TextPlace};
use self::summary::summarize_session;
use super::endings::{find_predecessor, find_successor};
use super::reply::answer::Reply;
use super::reply::budget::Budget;
use super::reply::call::Call;
use super::reply::interface::{Interface, given};
use super::reply::retention_warning::dropped_texts_warning;
use super::reply::rows::{EventFit, EventLinks, Pager};
use super::reply::scope::{Coverage, SessionFilters};
use super::reply::session_sums::SubagentIndex;
use super::reply::tools::Tools;
use super::reply::transcript::Transcript;
use super::reply::usage_warnings::usage_warnings;
use super::reply::{convert, cursor, rows};
use super::since::describe_since_end;
use crate::error::store_error;
use base::json_length::json_length;
use store::{SessionSummary, Snapshot, StoreError};

/// Reads a session once, for what `get_session_details` says of it and for its transcript.
pub(super) fn read_with_transcript(
    tools: &Tools,
    snapshot: &Snapshot,
    session: usize,
    call: &Call<'_>,
) -> Result<(DetailData, Transcript, Vec<EventRow>), ToolError> {
    let row = snapshot.sessions()[session].row().map_err(store_error)?;
    let events = rows::read_all_events(snapshot, session, call)?;
    let mut data = describe_session(tools, snapshot, session).map_err(store_error)?;
    let summary = summarize_session(snapshot, row, &events, json_length(&data));
    data.summary = Some(summary.map_err(store_error)?);
    let range = 0..u32::try_from(row.events).unwrap_or(u32::MAX);
    let transcript = Transcript::from_rows(row, &events, range, tools.prices(), call)?;
    Ok((data, transcript, events))
}

/// Returns a session with its labels, its origin and the sums over its subagents.
fn describe_session(
    tools: &Tools,
    snapshot: &Snapshot,
    session: usize,
) -> Result<DetailData, StoreError> {
    let session = &snapshot.sessions()[session];
    let mut shown = Session {
        with_subagents: SubagentIndex::from_sessions(snapshot.sessions())
            .sum_with_subagents(session, tools.prices())?,
        ..convert::convert_session(session.row()?, ListFormat::Full, tools.prices())
    };
    convert::add_labels(&mut shown, snapshot, ListFormat::Full);
    convert::add_origin(&mut shown, session, snapshot);
    Ok(DetailData { session: shown, summary: None, turns: None, steps: None, events: None })
}

pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    args: &DetailArgs,
    call: &Call<'_>,
) -> Result<Reply<DetailData>, ToolError> {
    let limit = match args.limit {
        None => usize::MAX,
        given => schemas::tool::checked_limit("limit", given, 1, limits::DETAIL_LIMIT_MAX)?,
    };
    let turns = args.turns.as_deref().map(parse_turns).transpose()?;
    let bound = DetailArgs { cursor: None, ..args.clone() };
    let from = args
        .cursor
        .as_deref()
        .map(|text| cursor::decode::<TextPlace>(&bound, text))
        .transpose()?
        .unwrap_or((0, 0));
    let session = tools.caller.find_session(snapshot, &args.session_id)?;
    let last = match args.last {
        None => None,
        given => Some(schemas::tool::checked_limit("last", given, 1, limits::DETAIL_LIMIT_MAX)?),
    };
    let usual = if last.is_some() { DetailLevel::Steps } else { DetailLevel::Summary };
    let level = args.detail_level.unwrap_or(usual);
    let includes_reasoning = args.include_reasoning.unwrap_or(false);
    let row = snapshot.sessions()[session].row().map_err(store_error)?;
    let mut data = describe_session(tools, snapshot, session).map_err(store_error)?;
    let mut events = rows::read_all_events(snapshot, session, call)?;
    if let Some(turns) = &turns {
        let last = events.iter().map(|event| event.turn_index).max().unwrap_or(0);
        events.retain(|event| turns.contains(&convert::unsigned_index(event.turn_index)));
        if events.is_empty() {
            let valid = format!("0-{last}");
            return Err(ToolError::invalid_value(
                "turns",
                args.turns.as_deref().unwrap_or(""),
                &[&valid],
            ));
        }
    }

    // A cursor continues where a page ended, even if there are later steps by now.
    if let Some(last) = last.filter(|_| args.cursor.is_none()) {
        last::keep_last(&mut events, level, last);
    }

    // The size of the answer without the events.
    let frame = json_length(&data);
    let mut page = DetailPage { limit, from, next: None };
    let returned = match level {
        DetailLevel::Summary => {
            let continues = find_predecessor(snapshot, session)?;
            let continued_by = find_successor(snapshot, session)?;
            let since = describe_since_end(snapshot, session, &events, &call.zone)?;
            let frame = frame + json_length(&(&continues, &continued_by, &since));
            let summary = summarize_session(snapshot, row, &events, frame).map_err(store_error)?;
            data.summary = Some(Summary { since, continues, continued_by, ..summary });
            1
        }
        DetailLevel::Turns => {
            let turns = turns::collect_turns(&events, row, frame, &mut page);
            data.turns.insert(turns).len()
        }
        DetailLevel::Steps => {
            let budget = Budget::new(limits::STEPS_BYTES.saturating_sub(frame));
            let steps = steps::collect_steps(&events, includes_reasoning, budget, &mut page);
            data.steps.insert(steps).len()
        }
        DetailLevel::Full => {
            let links = EventLinks::from_rows(&events);
            if !includes_reasoning {
                events.retain(|event| event.event_type != EventType::Reasoning);
            }
            let budget = Budget::new(limits::FULL_BYTES.saturating_sub(frame));
            let mut pager =
                Pager { fields: None, max_chars: usize::MAX, budget, events: Vec::new() };
            append_events(&events, row, &links, &mut pager, &mut page);
            data.events.insert(pager.events).len()
        }
    };

    let mut reply = Reply::new(data, returned);
    let this = SessionFilters { session: Some(session), ..SessionFilters::default() };
    reply.scope = Some(this.describe_scope(snapshot, Coverage::All));
    reply.next_cursor = page.next.map(|place| cursor::encode(&bound, &place));
    reply.warnings = ignored_arguments(args, level);
    reply
        .warnings
        .extend(tools.caller.session_note(&args.session_id, &snapshot.sessions()[session]));
    reply.warnings.extend(usage_warnings([row], tools.prices(), &|_| true));
    let dropped = dropped_texts_warning(snapshot, |other| other.id() == row.session_id);
    reply.warnings.extend(dropped.map_err(store_error)?);
    if page.next.is_some() && returned < page.limit && level != DetailLevel::Full {
        let message = format!("The page was cut to the maximum size of level '{level}'");
        let warning = Warning::new(WarningCode::ResultsTruncated, Severity::Info, message);
        reply.warnings.push(warning);
    }
    let hint = describe_next_step(tools.caller.interface, level, includes_reasoning, row.events);
    reply.hint = Some(match describe_original(snapshot, &snapshot.sessions()[session]) {
        Some(original) => format!(
            "Every event of this session is a copy from {original}, where tokens and failures count; is:replay in a query finds copies. {hint}"
        ),
        None => hint,
    });
    Ok(reply)
}

/// Returns the session that a session of only copies repeats: another capture of it, or the session
/// that it continues.
fn describe_original(snapshot: &Snapshot, session: &SessionSummary) -> Option<String> {
    if session.events == 0 || session.replay_events < session.events {
        return None;
    }
    let captured = snapshot.sessions().iter().find(|other| {
        base_of(other.provider) == base_of(session.provider)
            && other.replay_events < other.events
            && other.native_id() == session.native_id()
    });
    let original = captured.map(|other| other.id()).or(session.parent_session_id.as_deref());
    Some(original.map_or_else(|| "other sessions".to_owned(), |id| format!("session {id}")))
}

/// Returns warnings about arguments that have no effect at this level.
fn ignored_arguments(args: &DetailArgs, level: DetailLevel) -> Vec<Warning> {
    let is_coarse = matches!(level, DetailLevel::Summary | DetailLevel::Turns);
    let names = given([
        ("include_reasoning", args.include_reasoning.is_some() && is_coarse),
        ("limit", args.limit.is_some() && level == DetailLevel::Summary),
        ("cursor", args.cursor.is_some() && level == DetailLevel::Summary),
        ("last", args.last.is_some() && level == DetailLevel::Summary),
    ]);
    let mut warnings = Vec::new();
    for name in names {
        let message = format!("{name} has no effect at detail_level '{level}'");
        let code = WarningCode::ParameterIgnored;
        warnings.push(Warning::new(code, Severity::Warning, message));
    }
    warnings
}

/// Returns the next step.
fn describe_next_step(
    interface: Interface,
    level: DetailLevel,
    includes_reasoning: bool,
    events: i64,
) -> String {
    if events == 0 {
        return "The session is empty: its log holds no records yet.".to_owned();
    }
    let event = interface.format_call("get_event_details", &[("event_ids", "[...]")]);
    let event = format!("{event} gives the full text of an event.");
    // Another tool answered with this one, and does not have its arguments.
    if !interface.served_tools().includes(details::SPEC.name) {
        let turns = [("session_id", ""), ("detail_level", "turns")];
        let turns = interface.format_call(details::SPEC.name, &turns);
        return match level {
            DetailLevel::Summary => format!("{turns} shows every prompt with its answer."),
            DetailLevel::Turns | DetailLevel::Steps | DetailLevel::Full => event,
        };
    }
    match level {
        DetailLevel::Summary => {
            "last 5 shows the last steps, detail_level 'turns' every prompt with its answer."
                .to_owned()
        }
        DetailLevel::Turns => {
            "detail_level 'steps' with turns 'N' shows what was done in a turn.".to_owned()
        }
        DetailLevel::Steps => event,
        DetailLevel::Full if !includes_reasoning => {
            "Reasoning is left out; include_reasoning true shows it.".to_owned()
        }
        DetailLevel::Full => "This is everything that the log contains.".to_owned(),
    }
}

/// Puts the events of a page into the pager.
fn append_events(
    events: &[EventRow],
    session: &SessionRow,
    links: &EventLinks,
    pager: &mut Pager<'_>,
    page: &mut DetailPage,
) {
    let (first_index, mut offset) = page.from;
    for event in events {
        let index = convert::unsigned_index(event.event_index);
        if index < first_index {
            continue;
        }
        if pager.events.len() == page.limit {
            page.next = Some((index, 0));
            return;
        }
        if let EventFit::Until(char) =
            pager.push_event(event, session, links, std::mem::take(&mut offset), None)
        {
            page.next = Some((index, char));
            return;
        }
    }
}

/// Parses a range of turns: '4', '3-5' or '3-'.
fn parse_turns(text: &str) -> Result<RangeInclusive<u32>, ToolError> {
    turn_range(text)
        .ok_or_else(|| ToolError::invalid_value("turns", text, &["'4'", "'3-5'", "'3-'"]))
}

/// Returns the range that a text means; `None` if it is not a range.
fn turn_range(text: &str) -> Option<RangeInclusive<u32>> {
    let Some((first_text, last_text)) = text.split_once('-') else {
        let turn = parse_turn(text)?;
        return Some(turn..=turn);
    };
    let first = parse_turn(first_text)?;
    let last = if last_text.is_empty() { u32::MAX } else { parse_turn(last_text)? };
    (first <= last).then_some(first..=last)
}

fn parse_turn(text: &str) -> Option<u32> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_a_number_or_a_range() {
        assert_eq!(parse_turns("4").ok(), Some(4..=4));
        assert_eq!(parse_turns("3-5").ok(), Some(3..=5));
        assert_eq!(parse_turns("3-").ok(), Some(3..=u32::MAX));
        for text in ["", "x", "5-3", "-3", "1,2"] {
            assert!(parse_turns(text).is_err(), "{text}");
        }
    }
}
