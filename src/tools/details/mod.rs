//! Runs `get_session_details`, which shows one session at four levels of detail.

mod page;
mod steps;
mod summary;
mod turns;

use std::ops::RangeInclusive;
use std::sync::Arc;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::{DetailArgs, DetailData, DetailLevel};
use schemas::tool::list::{ListFormat, Session};
use schemas::{EventType, ToolError, limits};

use self::page::{DetailPage, Place};
use super::reply::answer::Reply;
use super::reply::budget::Budget;
use super::reply::call::Call;
use super::reply::interface::Interface;
use super::reply::rows::{Links, Pager, Put};
use super::reply::session_sums::Families;
use super::reply::shared_state::SharedState;
use super::reply::{convert, cursor, rows};
use crate::store::Snapshot;

pub(super) fn run(
    shared: &SharedState,
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
        .map(|text| cursor::decode::<Place>(&bound, text))
        .transpose()?
        .unwrap_or((0, 0));
    let session = shared.caller.find(snapshot, &args.session_id)?;
    let level = args.detail_level.unwrap_or(DetailLevel::Summary);
    let reasoning = args.include_reasoning.unwrap_or(false);
    let row = &snapshot.sessions()[session];
    let mut shown = Session {
        with_subagents: Families::of(snapshot.sessions()).family(row, shared.prices()),
        ..convert::session(row, ListFormat::Full, shared.prices())
    };
    convert::label(&mut shown, snapshot, ListFormat::Full);
    let mut data =
        DetailData { session: shown, summary: None, turns: None, steps: None, events: None };
    let mut events = rows::all(snapshot, session, call)?;
    let mut warnings = ignored(args, level);
    warnings.extend(shared.caller.note(&args.session_id, row));
    if let Some(turns) = &turns {
        let last = events.iter().map(|event| event.turn_index).max().unwrap_or(0);
        events.retain(|event| turns.contains(&convert::index(event.turn_index)));
        if events.is_empty() {
            let valid = format!("0-{last}");
            return Err(ToolError::invalid_value(
                "turns",
                args.turns.as_deref().unwrap_or(""),
                &[&valid],
            ));
        }
    }
    let frame = serde_json::to_vec(&data).map_or(0, |json| json.len());
    let budget = |bytes: usize| Budget::new(bytes.saturating_sub(frame));
    let mut page = DetailPage { limit, from, next: None };
    let returned = match level {
        DetailLevel::Summary => {
            data.summary = Some(summary::summary(snapshot, row, &events));
            1
        }
        DetailLevel::Turns => {
            let turns = turns::turns(&events, row, budget(limits::TURNS_BYTES), &mut page);
            data.turns.insert(turns).len()
        }
        DetailLevel::Steps => {
            let steps = steps::steps(&events, reasoning, budget(limits::STEPS_BYTES), &mut page);
            data.steps.insert(steps).len()
        }
        DetailLevel::Full => {
            let links = Links::of(&events);
            if !reasoning {
                events.retain(|event| event.event_type != EventType::Reasoning);
            }
            let budget = budget(limits::FULL_BYTES);
            let mut pager =
                Pager { fields: None, max_chars: usize::MAX, budget, events: Vec::new() };
            full(&events, row, &links, &mut pager, &mut page);
            data.events.insert(pager.events).len()
        }
    };
    if page.next.is_some() && returned < page.limit && level != DetailLevel::Full {
        warnings.push(Warning {
            code: WarningCode::ResultsTruncated,
            message: format!("The page was cut to the size of level {level}"),
            severity: Severity::Info,
        });
    }
    let mut reply = Reply::new(data, returned);
    reply.next_cursor = page.next.map(|place| cursor::encode(&bound, &place));
    reply.warnings = warnings;
    let hint = hint(shared.caller.interface, level, reasoning, row.events);
    reply.hint = Some(match copy_of(snapshot, row) {
        Some(original) => format!(
            "Every event here is a copy of one of {original}, where tokens and failures count; is:replay in a query finds copies. {hint}"
        ),
        None => hint,
    });
    Ok(reply)
}

/// Returns the session that a session of only copies repeats: another capture of it, or the session
/// that it continues.
fn copy_of(snapshot: &Snapshot, row: &SessionRow) -> Option<String> {
    if row.events == 0 || row.replay_events < row.events {
        return None;
    }
    let is_original = |other: &&Arc<SessionRow>| {
        other.provider == row.provider
            && other.native_id == row.native_id
            && other.replay_events < other.events
    };
    let capture = snapshot.sessions().iter().find(is_original).map(|other| &other.session_id);
    let original = capture.or(row.parent_session_id.as_ref());
    Some(original.map_or_else(|| "other sessions".to_owned(), |id| format!("session {id}")))
}

/// Returns warnings about arguments that have no effect at this level.
fn ignored(args: &DetailArgs, level: DetailLevel) -> Vec<Warning> {
    let coarse = matches!(level, DetailLevel::Summary | DetailLevel::Turns);
    let mut names = Vec::new();
    if args.include_reasoning.is_some() && coarse {
        names.push("include_reasoning");
    }
    if level == DetailLevel::Summary {
        names.extend(args.limit.map(|_| "limit"));
        names.extend(args.cursor.as_ref().map(|_| "cursor"));
    }
    let warning = |name| Warning {
        code: WarningCode::ParameterIgnored,
        message: format!("{name} has no effect at detail_level '{level}'"),
        severity: Severity::Warning,
    };
    names.into_iter().map(warning).collect()
}

fn hint(interface: Interface, level: DetailLevel, reasoning: bool, events: i64) -> String {
    let said = match level {
        _ if events == 0 => "The session is empty: its log holds no records yet.",
        DetailLevel::Summary => "detail_level 'turns' shows every prompt with its answer.",
        DetailLevel::Turns => "detail_level 'steps' with turns 'N' shows what was done in a turn.",
        DetailLevel::Steps => {
            let details = interface.call("get_event_details", &[("event_ids", "[...]")]);
            return format!("{details} gives the full text of an event.");
        }
        DetailLevel::Full if !reasoning => {
            "Reasoning is left out; include_reasoning true shows it."
        }
        DetailLevel::Full => "This is all the log holds.",
    };
    said.to_owned()
}

fn full(
    events: &[EventRow],
    session: &SessionRow,
    links: &Links,
    pager: &mut Pager<'_>,
    page: &mut DetailPage,
) {
    let mut offset = page.from.1;
    for event in events.iter().filter(|event| convert::index(event.event_index) >= page.from.0) {
        let index = convert::index(event.event_index);
        if pager.events.len() == page.limit {
            page.next = Some((index, 0));
            return;
        }
        if let Put::Until(char) = pager.put(event, session, links, std::mem::take(&mut offset)) {
            page.next = Some((index, char));
            return;
        }
    }
}

/// Parses a range of turns: '4', '3-5' or '3-'.
fn parse_turns(text: &str) -> Result<RangeInclusive<u32>, ToolError> {
    let invalid = || ToolError::invalid_value("turns", text, &["'4'", "'3-5'", "'3-'"]);
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| invalid());
    match text.split_once('-') {
        None => number(text).map(|turn| turn..=turn),
        Some((from, "")) => Ok(number(from)?..=u32::MAX),
        Some((from, to)) => {
            let (from, to) = (number(from)?, number(to)?);
            if from <= to { Ok(from..=to) } else { Err(invalid()) }
        }
    }
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
