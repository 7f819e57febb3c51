//! Lists, for `sessions secrets`, the secrets that lie in the logs on this machine: where each was
//! masked, never the secret itself.

use std::collections::{BTreeMap, BTreeSet};

use ingest::redact::columns::is_masked_path;
use ingest::redact::{built_in_rules, masked_kinds};
use schemas::session::{EventRow, SessionRow};
use schemas::{ErrorCode, EventType, Provider, Timestamp, ToolError, nearest};
use serde::Serialize;

use super::reply::budget::echoed_name;
use super::reply::call::Call;
use super::reply::convert;
use super::reply::rows::for_each_event;
use super::reply::scope::SessionFilters;
use super::reply::tools::Tools;
use crate::error::store_error;
use base::sanitize::clean_text;
use store::Snapshot;

/// Which secrets are listed; `None` selects all.
#[derive(Debug, Clone, Copy, Default)]
pub struct SecretFilter<'a> {
    /// A part of the session's folder or project.
    pub project: Option<&'a str>,
    pub kind: Option<&'a str>,
    /// The earliest time of an event. Secrets without a time are listed, too.
    pub since: Option<Timestamp>,
}

/// The secrets in the logs of this machine.
#[derive(Debug, Default, Serialize)]
pub struct SecretsData {
    /// The newest session first.
    pub secrets: Vec<LoggedSecrets>,
    pub sessions: usize,
    /// The number of places by kind.
    pub by_kind: BTreeMap<String, u64>,
    /// Logs that were read with `--no-redact`, whose secrets are not known.
    pub unmasked_logs: usize,
    /// The logs as they were before `--scrub`, if some are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<LogBackup>,
    /// The logs with these secrets, and those whose secrets are not known.
    #[serde(skip)]
    pub logs: Vec<SecretLog>,
}

/// Logs as they were before their secrets were replaced, which are kept until the user removes them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct LogBackup {
    pub folder: String,
    pub logs: usize,
    pub bytes: u64,
}

/// A log with secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretLog {
    pub session_id: String,
    pub provider: Provider,
    /// The path by which it is opened, which may contain a secret.
    pub path: String,
}

/// The secrets of one kind in the log of a session.
#[derive(Debug, Serialize)]
pub struct LoggedSecrets {
    pub kind: String,
    /// The number of places, as `status` counts them.
    pub count: u64,
    pub session_id: String,
    pub provider: Provider,
    pub project: Option<String>,
    pub title: Option<String>,
    /// When the latest of them was written, if an event shows it.
    pub timestamp: Option<String>,
    /// The log.
    pub file: String,
    /// Whether the log still exists.
    pub log_exists: bool,
    /// Whether `sessions push` published the session. What it publishes is masked.
    pub published: bool,
    /// The events with such placeholders, in order. Secrets of the session's own values, such as its
    /// title, have none.
    pub places: Vec<SecretPlace>,
}

/// An event with secrets of one kind.
#[derive(Debug, Serialize)]
pub struct SecretPlace {
    pub event_id: String,
    pub timestamp: Option<String>,
    pub count: u64,
    /// The record of the log: its first byte and its length, after decompression. In a database they
    /// count within the records of the session.
    pub byte: i64,
    pub bytes: i64,
}

/// Lists the secrets that were masked in the logs of this machine. `is_published` says whether the
/// session at a position was published.
pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    filter: SecretFilter<'_>,
    is_published: &dyn Fn(usize) -> bool,
    call: &Call<'_>,
) -> Result<SecretsData, ToolError> {
    if let Some(kind) = filter.kind {
        check_kind(tools, snapshot, kind)?;
    }
    let filters = SessionFilters {
        project: filter.project,
        since: filter.since,
        ..SessionFilters::default()
    };
    let passes = filters.row_filter(snapshot);
    let mut data = SecretsData::default();
    let mut selected = BTreeSet::new();
    let mut found = Vec::new();
    for (at, session) in snapshot.sessions().iter().enumerate() {
        call.ensure_running()?;
        if session.origin.machine.is_some() || !passes(session) {
            continue;
        }
        selected.insert(session.id());
        let row = session.row().map_err(store_error)?;
        let mut kinds = convert::parse_counts(row.redactions.as_ref());
        kinds.retain(|kind, _| filter.kind.is_none_or(|wanted| wanted == kind));
        if kinds.is_empty() {
            continue;
        }
        let secrets = find_in_session(snapshot, at, row, kinds, filter.since, call)?;
        data.sessions += usize::from(!secrets.is_empty());
        found.extend(secrets.into_iter().map(|secrets| (session.ended_at, at, secrets)));
    }
    let with_secrets: BTreeSet<&str> =
        found.iter().map(|(_, _, secrets)| secrets.session_id.as_str()).collect();
    for source in snapshot.read_sources(false).map_err(store_error)? {
        let (Some(session_id), Some(provider)) = (source.session_id, source.provider) else {
            continue;
        };
        let is_unmasked = selected.contains(&*session_id) && source.redaction_rules == 0;
        data.unmasked_logs += usize::from(is_unmasked);
        let is_log = snapshot
            .session(&session_id)
            .is_some_and(|session| is_masked_path(&session.source_path, &source.path));
        if is_log && (is_unmasked || with_secrets.contains(&*session_id)) {
            data.logs.push(SecretLog { session_id, provider, path: source.path });
        }
    }

    found.sort_by_key(|(ended_at, at, _)| (std::cmp::Reverse(*ended_at), *at));
    for (_, at, mut secrets) in found {
        secrets.published = is_published(at);
        *data.by_kind.entry(secrets.kind.clone()).or_default() += secrets.count;
        data.secrets.push(secrets);
    }
    Ok(data)
}

/// Fails if no rule has this kind, and no log of the store.
fn check_kind(tools: &Tools, snapshot: &Snapshot, kind: &str) -> Result<(), ToolError> {
    let built_in: BTreeSet<&str> = built_in_rules().flat_map(|rule| rule.kinds).collect();
    let redactor = tools.masking.map(|masking| masking()).transpose()?;
    if built_in.contains(kind) || redactor.is_some_and(|redactor| redactor.has_user_rule(kind)) {
        return Ok(());
    }
    for row in snapshot.read_rows().map_err(store_error)? {
        if convert::parse_counts(row.redactions.as_ref()).contains_key(kind) {
            return Ok(());
        }
    }
    let message = format!(
        "kind: no rule is for '{}'. `sessions doctor` lists the kinds of the masked secrets, and docs/redaction.md all",
        echoed_name(kind)
    );
    let meant = nearest(kind, built_in);
    Err(ToolError::new(ErrorCode::InvalidArgument, message)
        .with_detail("field", "kind")
        .with_suggestion(meant))
}

/// Finds the secrets of a session. `kinds` has their numbers, as they were counted when the log was
/// read: a log may contain other placeholders, which were in it before.
fn find_in_session(
    snapshot: &Snapshot,
    at: usize,
    row: &SessionRow,
    kinds: BTreeMap<String, u64>,
    since: Option<Timestamp>,
    call: &Call<'_>,
) -> Result<Vec<LoggedSecrets>, ToolError> {
    let mut places: BTreeMap<String, Vec<SecretPlace>> = BTreeMap::new();
    for_each_event(snapshot, at, call, |event| {
        for (kind, count) in count_kinds(event) {
            if kinds.contains_key(kind) {
                places.entry(kind.to_owned()).or_default().push(SecretPlace {
                    event_id: convert::event_id(event),
                    timestamp: convert::format_time(event.timestamp),
                    count,
                    byte: event.source_offset,
                    bytes: event.source_length,
                });
            }
        }
    })?;

    let since = since.and_then(|since| convert::format_time(Some(since.0)));
    let is_late = |place: &SecretPlace| match (&place.timestamp, &since) {
        (Some(time), Some(since)) => time >= since,
        _ => true,
    };
    let mut found = Vec::new();
    for (kind, count) in kinds {
        let all = places.remove(&kind).unwrap_or_default();
        let had_places = !all.is_empty();
        let places: Vec<SecretPlace> = all.into_iter().filter(is_late).collect();
        if had_places && places.is_empty() {
            continue;
        }
        let placed = places.iter().map(|place| place.count).sum();
        found.push(LoggedSecrets {
            kind: clean_text(&kind),
            count: if had_places && since.is_some() { count.min(placed) } else { count },
            session_id: row.session_id.clone(),
            provider: row.provider,
            project: row.project.as_deref().map(clean_text),
            title: row.title.as_deref().map(convert::clean_title),
            timestamp: places.iter().filter_map(|place| place.timestamp.clone()).max(),
            file: clean_text(&row.source_path),
            log_exists: !row.source_gone,
            published: false,
            places,
        });
    }
    Ok(found)
}

/// Counts the placeholders of an event by kind. The command and the files of a call are part of its
/// text; where a secret is masked in them only, it counts once. A result repeats those of its call.
fn count_kinds(event: &EventRow) -> BTreeMap<&str, u64> {
    let mut kinds = BTreeMap::new();
    for kind in masked_kinds(&event.text) {
        *kinds.entry(kind).or_default() += 1;
    }
    if event.event_type == EventType::ToolResult {
        return kinds;
    }
    let others = event.command.iter().chain(event.files.iter().flatten());
    for kind in others.flat_map(|text| masked_kinds(text)) {
        kinds.entry(kind).or_insert(1);
    }
    kinds
}
