//! Lists, for `sessions secrets`, the secrets in the logs of this machine: where each was masked, never the
//! secret itself. The store has those that events show. The logs that exist, and the files next to them, are
//! searched for the others.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};

use base::parallel::in_parallel;
use ingest::discover::is_log_file;
use ingest::provider::{files_next_to, has_lines, list_names};
use ingest::redact::columns::is_masked_path;
use ingest::redact::{Redactor, built_in_rules, masked_kinds};
use ingest::run::Progress;
use ingest::scrub::{FileSecret, find_log_secrets, find_side_file_secrets};
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
    /// Files that exist and could not be searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unsearched_files: Vec<UnsearchedFile>,
    /// The logs as they were before `--scrub`, if some are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<LogBackup>,
    /// The logs with these secrets, and those whose secrets are not known.
    #[serde(skip)]
    pub logs: Vec<SecretLog>,
}

/// A file whose secrets are not known.
#[derive(Debug, Serialize)]
pub struct UnsearchedFile {
    pub file: String,
    pub reason: String,
}

/// Logs as they were before their secrets were replaced, which are kept until the user removes them.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize)]
pub struct LogBackup {
    pub folder: String,
    pub logs: usize,
    pub bytes: u64,
}

/// A log with secrets, or a file next to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretLog {
    pub session_id: String,
    pub provider: Provider,
    /// The path by which it is opened, which may contain a secret.
    pub path: String,
    /// The log next to which the file is; `None` if it is a log.
    pub log: Option<String>,
}

/// The secrets of one kind in a file of a session.
#[derive(Debug, Serialize)]
pub struct LoggedSecrets {
    pub kind: String,
    /// The number of places: as `status` counts them, or in the file if only that has them.
    pub count: u64,
    /// True if events or values of the session have them masked. False if only the file has them.
    pub in_store: bool,
    pub session_id: String,
    pub provider: Provider,
    pub project: Option<String>,
    pub title: Option<String>,
    /// When the latest of them was written, if an event shows it.
    pub timestamp: Option<String>,
    /// The log, or the file next to it.
    pub file: String,
    /// Whether the log still exists.
    pub log_exists: bool,
    /// Whether `sessions push` published the session. What it publishes is masked.
    pub published: bool,
    /// The events with such placeholders, in order, or the records. Secrets of the session's own values,
    /// such as its title, have none, and neither do those of documents, databases and files next to a log.
    pub places: Vec<SecretPlace>,
    /// The path of the file, if it is next to the log.
    #[serde(skip)]
    side_file: Option<String>,
}

/// A record with secrets of one kind.
#[derive(Debug, Serialize)]
pub struct SecretPlace {
    /// The event that shows them; `None` if only the log has them.
    pub event_id: Option<String>,
    pub timestamp: Option<String>,
    pub count: u64,
    /// The record of the log: its first byte and its length, after decompression. In a database they
    /// count within the records of the session.
    pub byte: i64,
    pub bytes: i64,
}

/// Lists the secrets in the logs of this machine. `is_published` says whether the session at a position was
/// published.
pub(super) fn run(
    tools: &Tools,
    snapshot: &Snapshot,
    filter: SecretFilter<'_>,
    is_published: &dyn Fn(usize) -> bool,
    progress: &dyn Progress,
    call: &Call<'_>,
) -> Result<SecretsData, ToolError> {
    if let Some(kind) = filter.kind {
        check_kind(tools, snapshot, kind)?;
    }
    let redactor = tools.create_redactor()?;
    let filters = SessionFilters {
        project: filter.project,
        since: filter.since,
        ..SessionFilters::default()
    };
    let passes = filters.row_filter(snapshot);
    let mut data = SecretsData::default();
    let mut logs = Vec::new();
    let mut unmasked = BTreeSet::new();
    for source in snapshot.read_sources(false).map_err(store_error)? {
        let (Some(session_id), Some(provider)) = (source.session_id, source.provider) else {
            continue;
        };
        let Some(at) = snapshot.session_position(&session_id) else { continue };
        let session = &snapshot.sessions()[at];
        if session.origin.machine.is_some() || !passes(session) {
            continue;
        }
        if source.redaction_rules == 0 {
            data.unmasked_logs += 1;
            unmasked.insert(source.path.clone());
        }
        if is_masked_path(&session.source_path, &source.path) {
            logs.push((at, SecretLog { session_id, provider, path: source.path, log: None }));
        }
    }
    let files = with_side_files(logs);
    let mut searched = search_files(&files, &redactor, progress, call)?;

    let mut found = Vec::new();
    for (at, session) in snapshot.sessions().iter().enumerate() {
        call.ensure_running()?;
        if session.origin.machine.is_some() || !passes(session) {
            continue;
        }
        let row = session.row().map_err(store_error)?;
        let mut kinds = convert::parse_counts(row.redactions.as_ref());
        kinds.retain(|kind, _| filter.kind.is_none_or(|wanted| wanted == kind));
        let mut secrets = Vec::new();
        if !kinds.is_empty() {
            secrets = find_in_session(snapshot, at, row, &kinds, filter.since, call)?;
        }
        let in_files = SessionFiles {
            files: searched.files.remove(&at).unwrap_or_default(),
            kinds: &kinds,
            row,
            redactor: &redactor,
        };
        in_files.add_to(&mut secrets, filter, &|| find_start(snapshot, at, filter.since, call))?;
        data.sessions += usize::from(!secrets.is_empty());
        found.extend(secrets.into_iter().map(|secrets| (session.ended_at, at, secrets)));
    }
    data.unsearched_files = searched.unsearched;

    let mut chosen: BTreeSet<(usize, Option<&str>)> = BTreeSet::new();
    chosen.extend(found.iter().map(|(_, at, secrets)| (*at, secrets.side_file.as_deref())));
    for (at, file) in files {
        let side_file = file.log.as_ref().map(|_| file.path.as_str());
        if chosen.contains(&(at, side_file)) || unmasked.contains(&file.path) {
            data.logs.push(file);
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

/// Returns these logs, each with its position among the sessions and followed by the files next to it.
fn with_side_files(logs: Vec<(usize, SecretLog)>) -> Vec<(usize, SecretLog)> {
    let mut folders: HashMap<PathBuf, Vec<String>> = HashMap::new();
    let mut files = Vec::new();
    for (at, log) in logs {
        let mut side_files = Vec::new();
        let path = Path::new(&log.path);
        if let Some(folder) = path.parent()
            && is_log_file(&log.path)
        {
            let names = folders.entry(folder.to_owned()).or_insert_with(|| list_names(folder));
            side_files = files_next_to(log.provider, path, names);
        }
        let log_path = log.path.clone();
        let (session_id, provider) = (log.session_id.clone(), log.provider);
        files.push((at, log));
        for side_file in side_files {
            let Ok(path) = side_file.into_os_string().into_string() else { continue };
            let log = Some(log_path.clone());
            let session_id = session_id.clone();
            files.push((at, SecretLog { session_id, provider, path, log }));
        }
    }
    files
}

/// The secrets of files, by the positions of their sessions.
#[derive(Default)]
struct SearchedFiles<'f> {
    files: BTreeMap<usize, Vec<(&'f SecretLog, Vec<FileSecret>)>>,
    /// The files that exist and could not be searched.
    unsearched: Vec<UnsearchedFile>,
}

/// Searches files. One that does not exist has no secrets.
fn search_files<'f>(
    files: &'f [(usize, SecretLog)],
    redactor: &Redactor,
    progress: &dyn Progress,
    call: &Call<'_>,
) -> Result<SearchedFiles<'f>, ToolError> {
    let size_of = |file: &SecretLog| std::fs::metadata(&file.path).map_or(0, |found| found.len());
    let numbered: Vec<(usize, u64)> =
        files.iter().map(|(_, file)| size_of(file)).enumerate().collect();
    progress.set_total(files.len() as u64, numbered.iter().map(|(_, bytes)| bytes).sum());
    let parts = in_parallel(&numbered, 1, |part| {
        let mut found = Vec::new();
        for (number, bytes) in part {
            call.ensure_running()?;
            let (_, file) = &files[*number];
            let secrets = match file.log {
                Some(_) => find_side_file_secrets(Path::new(&file.path), file.provider, redactor),
                None => find_log_secrets(&file.path, file.provider, redactor),
            };
            progress.add_bytes_read(*bytes);
            found.push((*number, secrets));
        }
        Ok::<_, ToolError>(found)
    })?;
    let mut found: Vec<_> = parts.into_iter().flatten().collect();
    found.sort_unstable_by_key(|(number, _)| *number);
    let mut searched = SearchedFiles::default();
    for (number, secrets) in found {
        let (at, file) = &files[number];
        match secrets {
            Ok(secrets) => searched.files.entry(*at).or_default().push((file, secrets)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => searched.unsearched.push(UnsearchedFile {
                file: shown_path(&file.path, redactor),
                reason: clean_text(&error.to_string()),
            }),
        }
    }
    Ok(searched)
}

fn shown_path(path: &str, redactor: &Redactor) -> String {
    clean_text(&redactor.mask(path, &mut <_>::default()))
}

/// Returns the position in its log of the first record of a session that was written at `since` or later.
fn find_start(
    snapshot: &Snapshot,
    at: usize,
    since: Option<Timestamp>,
    call: &Call<'_>,
) -> Result<u64, ToolError> {
    let Some(since) = since else { return Ok(0) };
    let mut start = u64::MAX;
    for_each_event(snapshot, at, call, |event| {
        if event.timestamp.is_some_and(|time| time >= since.0) {
            start = start.min(event.source_offset.cast_unsigned());
        }
    })?;
    Ok(start)
}

/// The files of a session with their secrets, the log first.
struct SessionFiles<'s> {
    files: Vec<(&'s SecretLog, Vec<FileSecret>)>,
    /// The number of secrets in the store by kind.
    kinds: &'s BTreeMap<String, u64>,
    row: &'s SessionRow,
    redactor: &'s Redactor,
}

impl SessionFiles<'_> {
    /// Adds the secrets that no event and no value of the session has to those that one has. `find_start`
    /// returns the position of the first record that was written late enough for the filter.
    fn add_to(
        &self,
        listed: &mut Vec<LoggedSecrets>,
        filter: SecretFilter<'_>,
        find_start: &dyn Fn() -> Result<u64, ToolError>,
    ) -> Result<(), ToolError> {
        let in_store: BTreeSet<String> = listed.iter().map(|one| one.kind.clone()).collect();
        let mut kinds_in_log = BTreeSet::new();
        let mut kinds_next_to_it = BTreeSet::new();
        for (file, secrets) in &self.files {
            let mut by_kind: BTreeMap<&str, Vec<&FileSecret>> = BTreeMap::new();
            for secret in secrets {
                if filter.kind.is_none_or(|wanted| wanted == secret.kind) {
                    by_kind.entry(&secret.kind).or_default().push(secret);
                }
            }
            let is_log = file.log.is_none();
            let has_records = is_log && has_lines(file.provider, &file.path, true);
            if has_records && filter.since.is_some() && !by_kind.is_empty() {
                let start = find_start()?;
                for found in by_kind.values_mut() {
                    found.retain(|one| one.offset >= start);
                }
                by_kind.retain(|_, found| !found.is_empty());
            }
            for (kind, found) in by_kind {
                let shown_kind = clean_text(kind);
                let kinds = if is_log { &mut kinds_in_log } else { &mut kinds_next_to_it };
                kinds.insert(shown_kind.clone());
                // Only events of an earlier time show them.
                let is_early = !has_records && self.kinds.contains_key(kind);
                if is_log && (in_store.contains(&shown_kind) || is_early) {
                    continue;
                }
                listed.push(self.describe(file, shown_kind, &found, has_records));
            }
        }
        // The values of the session are also from files next to its log.
        listed.retain(|one| {
            let is_elsewhere =
                kinds_next_to_it.contains(&one.kind) && !kinds_in_log.contains(&one.kind);
            !(one.in_store && one.places.is_empty() && is_elsewhere)
        });
        Ok(())
    }

    /// Describes the secrets of a kind in a file.
    fn describe(
        &self,
        file: &SecretLog,
        kind: String,
        found: &[&FileSecret],
        has_records: bool,
    ) -> LoggedSecrets {
        let mut places: Vec<SecretPlace> = Vec::new();
        for secret in found.iter().filter(|_| has_records) {
            let byte = secret.offset.cast_signed();
            match places.last_mut().filter(|last| last.byte == byte) {
                Some(last) => last.count += 1,
                None => places.push(SecretPlace {
                    event_id: None,
                    timestamp: None,
                    count: 1,
                    byte,
                    bytes: secret.length.cast_signed(),
                }),
            }
        }
        let count = found.len() as u64;
        LoggedSecrets {
            in_store: false,
            file: shown_path(&file.path, self.redactor),
            side_file: file.log.as_ref().map(|_| file.path.clone()),
            ..LoggedSecrets::of_session(self.row, kind, count, places)
        }
    }
}

impl LoggedSecrets {
    /// Describes the secrets of a kind in the log of a session.
    fn of_session(row: &SessionRow, kind: String, count: u64, places: Vec<SecretPlace>) -> Self {
        Self {
            kind,
            count,
            in_store: true,
            session_id: row.session_id.clone(),
            provider: row.provider,
            project: row.project.as_deref().map(clean_text),
            title: row.title.as_deref().map(convert::clean_title),
            timestamp: places.iter().filter_map(|place| place.timestamp.clone()).max(),
            file: clean_text(&row.source_path),
            log_exists: !row.source_gone,
            published: false,
            places,
            side_file: None,
        }
    }
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
    kinds: &BTreeMap<String, u64>,
    since: Option<Timestamp>,
    call: &Call<'_>,
) -> Result<Vec<LoggedSecrets>, ToolError> {
    let mut places: BTreeMap<String, Vec<SecretPlace>> = BTreeMap::new();
    for_each_event(snapshot, at, call, |event| {
        for (kind, count) in count_kinds(event) {
            if kinds.contains_key(kind) {
                places.entry(kind.to_owned()).or_default().push(SecretPlace {
                    event_id: Some(convert::event_id(event)),
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
        let all = places.remove(kind).unwrap_or_default();
        let had_places = !all.is_empty();
        let places: Vec<SecretPlace> = all.into_iter().filter(is_late).collect();
        if had_places && places.is_empty() {
            continue;
        }
        let placed = places.iter().map(|place| place.count).sum();
        let count = if had_places && since.is_some() { (*count).min(placed) } else { *count };
        found.push(LoggedSecrets::of_session(row, clean_text(kind), count, places));
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
