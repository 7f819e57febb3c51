//! Converts rows of the store to the types of the contract.

use std::collections::BTreeMap;

use schemas::price::PriceTable;
use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::Excerpt;
use schemas::tool::event::{Event, Source};
use schemas::tool::list::{ListFormat, Session};
use schemas::{EventId, Timestamp, Usage};

use super::session_sums::{counts, tokens};
use crate::base::sanitize::{clean, head};
use crate::store::Snapshot;

pub(crate) fn time(micros: Option<i64>) -> Option<String> {
    micros.map(|micros| Timestamp(micros).to_string())
}

pub(crate) fn index(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

pub(crate) fn event_id(row: &EventRow) -> String {
    EventId::format(&row.session_id, index(row.event_index))
}

pub(crate) fn usage(usage: Usage) -> Option<Usage> {
    (!usage.is_unknown()).then_some(usage)
}

/// Parses counts by name from a column of JSON.
pub(crate) fn counts_by_name(json: Option<&String>) -> BTreeMap<String, u64> {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

fn cleaned(text: Option<&String>) -> Option<String> {
    text.map(|text| clean(text))
}

/// Converts an event, without its text and its source.
pub(crate) fn event(row: &EventRow, session: &SessionRow) -> Event {
    Event {
        event_id: event_id(row),
        session_id: row.session_id.clone(),
        event_index: index(row.event_index),
        turn_index: index(row.turn_index),
        step_index: index(row.step_index),
        event_type: row.event_type,
        subtype: cleaned(row.subtype.as_ref()),
        timestamp: time(row.timestamp),
        provider: row.provider,
        text: None,
        text_chars: None,
        text_offset: None,
        tool_name: cleaned(row.tool_name.as_ref()),
        tool_kind: row.tool_kind.as_ref().and_then(|kind| kind.parse().ok()),
        tool_call_id: cleaned(row.tool_call_id.as_ref()),
        files: row.files.iter().flatten().map(|path| clean(path)).collect(),
        command: cleaned(row.command.as_ref()),
        linked_event_id: None,
        is_error: row.is_error,
        exit_code: row.exit_code,
        duration_ms: row.duration_ms,
        usage: usage(row.usage()),
        model: cleaned(row.model.as_ref()),
        git_branch: cleaned(row.git_branch.as_ref()),
        is_replay: row.is_replay,
        is_sidechain: row.is_sidechain,
        is_abandoned: session.is_abandoned(row.event_index),
        source: None,
    }
}

/// Returns where a row's record is stored, if the log still contains it: a document may have been
/// rewritten.
pub(crate) fn source(row: &EventRow, session: &SessionRow) -> Option<Source> {
    (row.source_length > 0).then(|| Source {
        path: session.source_path.clone(),
        byte_offset: row.source_offset.cast_unsigned(),
        byte_length: row.source_length.cast_unsigned(),
    })
}

/// Adds the labels and the note of a session to its output.
pub(crate) fn label(session: &mut Session, snapshot: &Snapshot, format: ListFormat) {
    if let Some(given) = snapshot.labels().of(&session.session_id)
        && format != ListFormat::Minimal
    {
        session.labels = given.labels.iter().map(|label| clean(label)).collect();
        session.note = given.note.as_deref().map(clean).filter(|_| format == ListFormat::Full);
    }
}

/// Returns the beginning of a row's text, in at most `bytes` of JSON.
pub(crate) fn excerpt(row: &EventRow, bytes: usize) -> Excerpt {
    let text = clean(&row.text);
    let (kept, omitted) = head(&text, bytes);
    Excerpt {
        event_id: event_id(row),
        event_type: row.event_type,
        subtype: cleaned(row.subtype.as_ref()),
        tool_name: cleaned(row.tool_name.as_ref()),
        is_error: row.is_error,
        turn_index: None,
        text: kept.to_owned(),
        omitted,
    }
}

/// Converts a session, with as many fields as `format` requests.
pub(crate) fn session(row: &SessionRow, format: ListFormat, prices: &PriceTable) -> Session {
    let summary = format != ListFormat::Minimal;
    let full = format == ListFormat::Full;
    let title = cleaned(row.title.as_ref()).map(|title| {
        // The limit of 40 keeps a page of 20 sessions in the minimal format under 1,000 tokens.
        let (kept, omitted) = head(&title, if summary { 240 } else { 40 });
        format!("{kept}{}", if omitted > 0 { "…" } else { "" })
    });
    Session {
        session_id: row.session_id.clone(),
        provider: row.provider,
        title,
        project: cleaned(row.project.as_ref()).filter(|_| summary),
        ended_at: time(row.ended_at),
        started_at: time(row.started_at).filter(|_| summary),
        duration_ms: row.duration_ms().filter(|_| summary),
        counts: summary.then(|| counts(row)),
        tokens: summary.then(|| tokens(row, prices)).flatten(),
        with_subagents: None,
        labels: Vec::new(),
        note: None,
        parent_session_id: cleaned(row.parent_session_id.as_ref()).filter(|_| summary),
        relation: row
            .relation
            .as_ref()
            .and_then(|relation| relation.parse().ok())
            .filter(|_| summary),
        model: cleaned(row.model.as_ref()).filter(|_| summary),
        git_branch: cleaned(row.git_branch.as_ref()).filter(|_| full),
        cwd: cleaned(row.cwd.as_ref()).filter(|_| full),
        repository: cleaned(row.repository.as_ref()).filter(|_| full),
        agent_id: cleaned(row.agent_id.as_ref()).filter(|_| full),
        agent_version: cleaned(row.agent_version.as_ref()).filter(|_| full),
        native_id: cleaned(row.native_id.as_ref()).filter(|_| full),
        source_path: full.then(|| row.source_path.clone()),
        source_gone: row.source_gone,
        abandoned: row.abandoned.clone().filter(|_| full),
        redactions: row
            .redactions
            .as_ref()
            .filter(|_| full)
            .and_then(|json| serde_json::from_str(json).ok()),
    }
}
