//! Converts rows of the store to the types of the contract.

use std::collections::BTreeMap;

use schemas::price::PriceTable;
use schemas::session::{EventRow, SessionRow};
use schemas::tool::details::Excerpt;
use schemas::tool::event::{Event, Source};
use schemas::tool::list::{ListFormat, Session};
use schemas::{EventId, Timestamp, Usage};

use super::session_sums::{session_counts, session_tokens};
use base::image_notes::title_without_images;
use base::sanitize::{clean_text, cut_for_json, truncate_for_json, truncate_middle_for_json};
use store::{SessionSummary, Snapshot};

/// Maximum size of a title in bytes of JSON.
const MAX_TITLE_BYTES: usize = 240;

/// Maximum size in bytes of the title of a session that another one names.
const MAX_SHORT_TITLE_BYTES: usize = 100;

/// Maximum size of a title in bytes of JSON in the minimal format, of which a page of 20 sessions
/// takes less than 1,000 tokens.
const MAX_MINIMAL_TITLE_BYTES: usize = 40;

/// Formats a time, in microseconds, as text.
pub fn format_time(micros: Option<i64>) -> Option<String> {
    micros.map(|micros| Timestamp(micros).to_string())
}

/// Returns an index as the contract has it: 0 if the stored one is negative.
pub fn unsigned_index(value: i32) -> u32 {
    u32::try_from(value).unwrap_or(0)
}

pub fn event_id(row: &EventRow) -> String {
    EventId::format(&row.session_id, unsigned_index(row.event_index))
}

/// Returns the usage, if any of its counts is known.
pub fn known_usage(usage: Usage) -> Option<Usage> {
    (!usage.is_unknown()).then_some(usage)
}

/// Parses counts by name from a column of JSON.
pub fn parse_counts(json: Option<&String>) -> BTreeMap<String, u64> {
    json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
}

fn clean_optional(text: Option<&String>) -> Option<String> {
    text.map(|text| clean_text(text))
}

/// Returns a title as readers see it: without the notes in place of images.
pub fn clean_title(title: &str) -> String {
    clean_text(&title_without_images(title))
}

/// Returns the title of a session that another one names.
pub fn short_title(row: &SessionRow) -> Option<String> {
    row.title.as_deref().map(|title| shorten(&clean_title(title), MAX_SHORT_TITLE_BYTES))
}

/// Returns the beginning of a text from a log, cleaned, in at most `bytes` of JSON.
pub fn shorten(text: &str, bytes: usize) -> String {
    let text = text.trim_end();
    // Only as much text is cleaned as can be shown.
    let part = &text[..text.floor_char_boundary(4 * bytes)];
    let cleaned = clean_text(part);
    let (kept, omitted) = truncate_for_json(&cleaned, bytes);
    let is_cut = omitted > 0 || part.len() < text.len();
    format!("{kept}{}", if is_cut { "…" } else { "" })
}

/// Converts an event, without its text and its source.
pub fn convert_event(row: &EventRow, session: &SessionRow) -> Event {
    Event {
        event_id: event_id(row),
        session_id: row.session_id.clone(),
        event_index: unsigned_index(row.event_index),
        turn_index: unsigned_index(row.turn_index),
        step_index: unsigned_index(row.step_index),
        event_type: row.event_type,
        subtype: clean_optional(row.subtype.as_ref()),
        timestamp: format_time(row.timestamp),
        provider: row.provider,
        text: None,
        text_chars: None,
        text_offset: None,
        tool_name: clean_optional(row.tool_name.as_ref()),
        tool_kind: row.tool_kind.as_ref().and_then(|kind| kind.parse().ok()),
        tool_call_id: clean_optional(row.tool_call_id.as_ref()),
        files: row.files.iter().flatten().map(|path| clean_text(path)).collect(),
        command: clean_optional(row.command.as_ref()),
        linked_event_id: None,
        is_error: row.is_error,
        exit_code: row.exit_code,
        duration_ms: row.duration_ms,
        usage: known_usage(row.usage()),
        model: clean_optional(row.model.as_ref()),
        git_branch: clean_optional(row.git_branch.as_ref()),
        is_replay: row.is_replay,
        is_sidechain: row.is_sidechain,
        is_abandoned: session.is_abandoned(row.event_index),
        source: None,
        line: None,
        diff: None,
    }
}

/// Returns where a row's record is stored, if the log still contains it: a document may have been
/// rewritten.
pub fn record_source(row: &EventRow, session: &SessionRow) -> Option<Source> {
    (row.source_length > 0).then(|| Source {
        path: session.source_path.clone(),
        byte_offset: row.source_offset.cast_unsigned(),
        byte_length: row.source_length.cast_unsigned(),
    })
}

/// Adds the labels and the note of a session to its output, if `format` shows them.
pub fn add_labels(session: &mut Session, snapshot: &Snapshot, format: ListFormat) {
    if let Some(given) = snapshot.labels().session_labels(&session.session_id)
        && format != ListFormat::Minimal
    {
        session.labels = given.labels.iter().map(|label| clean_text(label)).collect();
        if format == ListFormat::Full {
            session.note = given.note.as_deref().map(clean_text);
        }
    }
}

/// Adds the machine and the user of a session to its output, if they are not those of the store.
pub fn add_origin(session: &mut Session, summary: &SessionSummary, snapshot: &Snapshot) {
    let local = snapshot.identity();
    let machine = summary.origin.machine.as_ref().filter(|machine| **machine != local.machine);
    session.machine = clean_optional(machine);
    let user = summary.origin.user_name.as_ref().filter(|user| **user != local.user_name);
    session.user_name = clean_optional(user);
}

/// Returns the beginning of a row's text, in at most `bytes` of JSON.
pub fn text_excerpt(row: &EventRow, bytes: usize) -> Excerpt {
    let text = clean_text(&row.text);
    let (kept, omitted) = truncate_for_json(&text, bytes);
    Excerpt {
        event_id: event_id(row),
        event_type: row.event_type,
        subtype: clean_optional(row.subtype.as_ref()),
        tool_name: clean_optional(row.tool_name.as_ref()),
        is_error: row.is_error,
        turn_index: None,
        text: kept.to_owned(),
        omitted,
    }
}

/// Returns the beginning and the end of an event's text.
pub fn ends_excerpt(row: &EventRow, bytes: usize) -> Excerpt {
    let (text, omitted) = truncate_middle_for_json(&clean_text(&row.text), bytes);
    Excerpt { text, omitted, ..text_excerpt(row, 0) }
}

/// Converts a session, with as many fields as `format` requests.
pub fn convert_session(row: &SessionRow, format: ListFormat, prices: &PriceTable) -> Session {
    let mut session = minimal_session(row, format);
    if format == ListFormat::Minimal {
        return session;
    }
    session.project = clean_optional(row.project.as_ref());
    session.started_at = format_time(row.started_at);
    session.duration_ms = row.duration_ms();
    session.counts = Some(session_counts(row));
    session.tokens = session_tokens(row, prices);
    session.parent_session_id = clean_optional(row.parent_session_id.as_ref());
    session.relation = row.relation.as_ref().and_then(|relation| relation.parse().ok());
    session.model = clean_optional(row.model.as_ref());
    if format == ListFormat::Summary {
        return session;
    }

    session.time_source = row.time_source.as_ref().and_then(|source| source.parse().ok());
    session.git_branch = clean_optional(row.git_branch.as_ref());
    session.cwd = clean_optional(row.cwd.as_ref());
    session.repository = clean_optional(row.repository.as_ref());
    session.agent_id = clean_optional(row.agent_id.as_ref());
    session.agent_version = clean_optional(row.agent_version.as_ref());
    session.native_id = clean_optional(row.native_id.as_ref());
    session.source_path = Some(row.source_path.clone());
    session.abandoned = row.abandoned.clone();
    session.redactions = row.redactions.as_ref().and_then(|json| serde_json::from_str(json).ok());
    session
}

/// Converts the fields that every format has.
fn minimal_session(row: &SessionRow, format: ListFormat) -> Session {
    let max_bytes =
        if format == ListFormat::Minimal { MAX_MINIMAL_TITLE_BYTES } else { MAX_TITLE_BYTES };
    let title = row.title.as_deref().map(|title| cut_for_json(&clean_title(title), max_bytes));
    Session {
        session_id: row.session_id.clone(),
        provider: row.provider,
        title,
        project: None,
        ended_at: format_time(row.ended_at),
        started_at: None,
        time_source: None,
        duration_ms: None,
        counts: None,
        tokens: None,
        with_subagents: None,
        labels: Vec::new(),
        note: None,
        parent_session_id: None,
        relation: None,
        model: None,
        git_branch: None,
        cwd: None,
        repository: None,
        agent_id: None,
        agent_version: None,
        native_id: None,
        source_path: None,
        machine: None,
        user_name: None,
        source_gone: row.source_gone,
        abandoned: None,
        redactions: None,
    }
}
