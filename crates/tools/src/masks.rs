//! Reports, for `sessions doctor --why-masked`, which rule masked what in an event or a session. The
//! store has no secrets, so the rules are found from the masked texts.

use std::collections::BTreeMap;

use ingest::redact::{Redactor, built_in_rules, explain_masks};
use schemas::{EventType, ToolError};
use serde::Serialize;
use serde_json::Value;

use super::event::{EventSpan, unknown_event_error};
use super::reply::budget::echoed_name;
use super::reply::call::Call;
use super::reply::convert;
use super::reply::rows::{read_all_events, read_event_range};
use super::reply::tools::Tools;
use crate::error::store_error;
use base::sanitize::clean_text;
use store::Snapshot;

/// The masked texts of an event or a session.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct MaskReport {
    pub session_id: String,
    /// In the order of the events; the columns of the session come first.
    pub masked: Vec<MaskedText>,
    /// All built-in rules of the kinds whose rule the text does not tell.
    pub rules_by_kind: BTreeMap<String, Vec<String>>,
}

/// The secrets of one kind that were masked in a column.
#[derive(Debug, PartialEq, Serialize)]
pub struct MaskedText {
    /// `None` if the column is one of the session.
    pub event_id: Option<String>,
    pub field: String,
    pub kind: String,
    pub count: u64,
    /// True if a rule of the user has this kind.
    pub is_of_user: bool,
    /// The built-in rules that mask a secret at this place.
    pub rules: Vec<String>,
}

/// Finds the rules that masked what in the event, the range of events or the session with this id.
pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    id: &str,
    call: &Call<'_>,
) -> Result<MaskReport, ToolError> {
    let (session, span) = find_target(tools, snapshot, id)?;
    let events = match &span {
        Some(span) => read_event_range(snapshot, session, span.indexes(), call)?,
        None => read_all_events(snapshot, session, call)?,
    };
    if events.is_empty() && span.is_some() {
        return Err(unknown_event_error(tools, snapshot, span.as_ref(), vec![echoed_name(id)]));
    }

    let redactor = tools.masking.map(|masking| masking()).transpose()?;
    let redactor = redactor.as_deref();
    let row = snapshot.sessions()[session].row().map_err(store_error)?;
    let mut report = MaskReport { session_id: row.session_id.clone(), ..MaskReport::default() };
    if span.is_none() {
        report.add_row(redactor, None, serde_json::to_value(row), "");
    }
    for event in events {
        call.ensure_running()?;
        let command = match event.event_type {
            EventType::ToolResult => event.command.clone().unwrap_or_default(),
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::ToolCall
            | EventType::TokenUsage
            | EventType::Notification => String::new(),
        };
        let event_id = convert::event_id(&event);
        report.add_row(redactor, Some(&event_id), serde_json::to_value(event), &command);
    }
    Ok(report)
}

/// Returns the position of the session that an id names, and the events if it names some of them.
fn find_target(
    tools: &Tools,
    snapshot: &Snapshot,
    id: &str,
) -> Result<(usize, Option<EventSpan>), ToolError> {
    if let Ok(span) = EventSpan::parse(id)
        && let Ok(session) = tools.caller.find_session(snapshot, &span.session)
    {
        return Ok((session, Some(span)));
    }
    Ok((tools.caller.find_session(snapshot, id)?, None))
}

impl MaskReport {
    /// Adds the masked texts of a row. `printed_by` is the command that printed the text of the row.
    fn add_row(
        &mut self,
        redactor: Option<&Redactor>,
        event_id: Option<&str>,
        row: serde_json::Result<Value>,
        printed_by: &str,
    ) {
        let Ok(Value::Object(cells)) = row else { return };
        for (field, value) in cells {
            // Every event repeats the id of its session.
            if event_id.is_some() && field == "session_id" {
                continue;
            }
            let printed_by = if field == "text" { printed_by } else { "" };
            for text in collect_texts(&value) {
                self.add_text(redactor, event_id, &field, text, printed_by);
            }
        }
    }

    fn add_text(
        &mut self,
        redactor: Option<&Redactor>,
        event_id: Option<&str>,
        field: &str,
        text: &str,
        printed_by: &str,
    ) {
        for mask in explain_masks(text, printed_by) {
            let kind = clean_text(&mask.kind);
            if mask.rules.is_empty() && !self.rules_by_kind.contains_key(&kind) {
                let of_kind = built_in_rules().filter(|rule| rule.kinds.contains(&&*mask.kind));
                let names: Vec<String> = of_kind.map(|rule| rule.what).collect();
                if !names.is_empty() {
                    self.rules_by_kind.insert(kind.clone(), names);
                }
            }
            self.masked.push(MaskedText {
                event_id: event_id.map(str::to_owned),
                field: field.to_owned(),
                kind,
                count: mask.count,
                is_of_user: redactor.is_some_and(|redactor| redactor.has_user_rule(&mask.kind)),
                rules: mask.rules.into_iter().map(|rule| rule.what).collect(),
            });
        }
    }
}

/// Returns the texts of a cell, which may be a list.
fn collect_texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(collect_texts).collect(),
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
