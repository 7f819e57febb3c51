//! Reports, for `sessions status`, what the store contains, and how fresh and how complete it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ingest::plan::is_of_this_decoder;
use ingest::redact::columns::{is_masked_path, mask_name};
use schemas::session::{SourceRow, SourceStatus};
use schemas::{Timestamp, ToolError};
use serde::Serialize;

use super::doctor::open_archive;
use super::reply::convert;
use super::reply::pending::find_pending_logs;
use super::reply::scope::SessionFilters;
use super::reply::store_warnings::store_warnings;
use super::reply::tools::Tools;
use super::reply::usage_warnings::uncounted_records;
use crate::error::store_error;
use store::{KeepLevel, LogArchive, Snapshot, SourceTable};

/// Maximum number of files listed one by one; all are counted.
const MAX_LISTED_FILES: usize = 20;

/// The figures of a store.
#[derive(Debug, Default, Serialize)]
pub struct StatusData {
    pub store: String,
    pub schema_version: u32,
    pub generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    pub segments: usize,
    /// About the number of segments after `sessions compact`, which merges full ones into large ones.
    pub segments_after_compaction: usize,
    pub sessions: usize,
    /// The sessions by class, which add up: `conversations`, `subagents`, `copies` that only repeat
    /// another session, and `empty` ones without a conversation.
    pub sessions_by_class: BTreeMap<&'static str, usize>,
    pub events: u64,
    pub events_by_provider: BTreeMap<String, i64>,
    pub replay_events: i64,
    /// The number of sessions whose texts the retention dropped, by what is kept of them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub reduced_sessions: BTreeMap<&'static str, usize>,
    /// The sessions whose log is gone, by agent.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub lost_logs: BTreeMap<String, LostLogCounts>,
    /// What the archive of logs has; `None` without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archive: Option<ArchiveFigures>,
    /// The number of masked secrets, by kind.
    pub redactions: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_event: Option<String>,
    pub store_bytes: u64,
    pub log_bytes: u64,
    /// The size of the store divided by the size of the logs that it was built from.
    pub store_ratio: f64,
    pub files: BTreeMap<String, usize>,
    pub problems: BTreeMap<String, usize>,
    /// The number of files that grew, appeared or vanished since they were read.
    pub pending: usize,
    pub pending_files: Vec<String>,
    /// The number of logs that another version of their decoder read. The next ingest reads them
    /// again.
    pub outdated_logs: usize,
    /// The number of such logs that are gone: their sessions keep what was read.
    pub outdated_gone: usize,
    /// The records with tokens that no decoder counted, with the number of sessions.
    pub uncounted_usage: BTreeMap<String, usize>,
    /// The number of files that end in an incomplete line, and the bytes of those lines.
    pub incomplete_files: usize,
    pub incomplete_bytes: i64,
    pub unknown_files: Vec<String>,
    pub damaged_segments: Vec<String>,
    /// Sessions that lost events with a damaged segment whose events could not be read again.
    pub incomplete_sessions: Vec<String>,
    /// What is wrong with the store, in whole sentences.
    pub warnings: Vec<String>,
}

/// The sessions of an agent whose log is gone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LostLogCounts {
    pub sessions: usize,
    /// Those whose log is archived: `sessions restore` writes it back.
    pub archived: usize,
}

/// The figures of the archive of logs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveFigures {
    pub sessions: usize,
    /// Those whose log is kept byte for byte, with its secrets.
    pub exact: usize,
    /// Size of the logs, compressed.
    pub bytes: u64,
}

/// Collects the figures; `roots` are searched for new files. Figures of files that were removed
/// meanwhile, as by `compact`, are collected again once.
pub(super) fn run(tools: &Tools, roots: &[PathBuf]) -> Result<StatusData, ToolError> {
    let snapshot = tools.store.take_lazy_snapshot().map_err(store_error)?;
    let collected = collect_figures(tools, &snapshot, roots);
    if collected.as_ref().is_ok_and(|data| data.damaged_segments.is_empty()) {
        return collected;
    }
    match tools.store.take_newer_snapshot(&snapshot) {
        Some(newer) => collect_figures(tools, &newer, roots),
        None => collected,
    }
}

fn collect_figures(
    tools: &Tools,
    snapshot: &Snapshot,
    roots: &[PathBuf],
) -> Result<StatusData, ToolError> {
    let manifest = snapshot.manifest();
    let mut data = StatusData {
        store: tools.store.dir().display().to_string(),
        schema_version: manifest.schema_version,
        generation: manifest.generation,
        last_updated: (manifest.generation > 0).then(|| Timestamp(manifest.updated_at).to_string()),
        segments: manifest.segments.len(),
        segments_after_compaction: snapshot.segments_after_merges(),
        sessions: snapshot.sessions().len(),
        events: snapshot.event_count(),
        store_bytes: snapshot.store_bytes(),
        ..StatusData::default()
    };

    data.newest_event = convert::format_time(snapshot.newest_event());
    data.sessions_by_class = count_by_class(snapshot);
    let reduced = snapshot.reduced_sessions().map_err(store_error)?;
    let (archive, damage) = open_archive(tools);
    for session in snapshot.read_rows().map_err(store_error)? {
        if session.source_gone && session.machine.is_none() {
            let lost = data.lost_logs.entry(session.provider.to_string()).or_default();
            lost.sessions += 1;
            let is_archived = |archive: &LogArchive| archive.has_session(&session.session_id);
            lost.archived += usize::from(archive.as_ref().is_some_and(is_archived));
        }
        match reduced.level_of(&session.session_id) {
            KeepLevel::Full => {}
            KeepLevel::Transcripts => *data.reduced_sessions.entry("transcripts").or_default() += 1,
            KeepLevel::Usage => *data.reduced_sessions.entry("usage").or_default() += 1,
        }
        *data.events_by_provider.entry(session.provider.to_string()).or_default() += session.events;
        data.replay_events += session.replay_events;
        for name in uncounted_records(session) {
            *data.uncounted_usage.entry(name).or_default() += 1;
        }
        for (kind, count) in convert::parse_counts(session.redactions.as_ref()) {
            *data.redactions.entry(kind).or_default() += count;
        }
    }

    for source in snapshot.read_sources(false).map_err(store_error)? {
        *data.files.entry(status_name(snapshot, &source)).or_default() += 1;
        data.add_source(&source);
    }
    let known = snapshot.read_source_table().map_err(store_error)?;
    data.add_pending_files(roots, tools.store.dir(), &known);
    for problem in snapshot.read_problems().map_err(store_error)? {
        *data.problems.entry(problem.kind).or_default() += 1;
    }
    clean_paths(tools, &mut data)?;

    data.incomplete_sessions =
        snapshot.incomplete_sessions().map(|session| session.session_id.clone()).collect();
    snapshot.verify_catalog().map_err(store_error)?;
    data.damaged_segments = snapshot
        .find_damaged_segments()
        .into_iter()
        .map(|(number, error)| format!("{number}: {error}"))
        .collect();
    data.warnings = store_warnings(snapshot).into_iter().map(|warning| warning.message).collect();
    data.warnings.extend(damage);
    if let Some(archive) = &archive {
        data.archive = Some(ArchiveFigures {
            sessions: archive.sessions().count(),
            exact: archive.exact_logs(),
            bytes: archive.packed_bytes(),
        });
    }
    #[expect(clippy::cast_precision_loss, reason = "a ratio shown to users")]
    let ratio = data.store_bytes as f64 / (data.log_bytes.max(1)) as f64;
    data.store_ratio = (ratio * 1000.0).round() / 1000.0;
    Ok(data)
}

/// Counts the sessions of a store by class. The classes add up to all sessions.
pub fn count_by_class(snapshot: &Snapshot) -> BTreeMap<&'static str, usize> {
    let census = SessionFilters::default().count_sessions(snapshot);
    BTreeMap::from([
        ("conversations", census.conversations),
        ("subagents", census.subagents),
        ("copies", census.copies),
        ("empty", census.empty),
    ])
}

/// Returns the name under which a log is counted: its status, or `moved` if its session is now read
/// from another path.
fn status_name(snapshot: &Snapshot, source: &SourceRow) -> String {
    let session = source.session_id.as_ref().and_then(|id| snapshot.session(id));
    if source.status == SourceStatus::Gone
        && session.is_some_and(|session| !is_masked_path(&session.source_path, &source.path))
    {
        return "moved".to_owned();
    }
    let status = serde_json::to_value(source.status).unwrap_or_default();
    status.as_str().unwrap_or_default().to_owned()
}

/// Masks and cleans the paths of files without a session, which are still as on disk.
fn clean_paths(tools: &Tools, data: &mut StatusData) -> Result<(), ToolError> {
    if data.unknown_files.is_empty() && data.pending_files.is_empty() {
        return Ok(());
    }
    let redactor = tools.masking.map(|masking| masking()).transpose()?;
    for path in data.unknown_files.iter_mut().chain(&mut data.pending_files) {
        *path = mask_name(redactor.as_deref(), path);
    }
    Ok(())
}

impl StatusData {
    /// Adds the size of a log that was read, or the path of a file whose format is unknown.
    fn add_source(&mut self, source: &SourceRow) {
        if !is_of_this_decoder(source) {
            if source.status == SourceStatus::Gone {
                self.outdated_gone += 1;
            } else {
                self.outdated_logs += 1;
            }
        }
        match source.status {
            SourceStatus::Ok => {
                self.log_bytes += source.consumed.cast_unsigned();
                if source.size > source.consumed {
                    self.incomplete_files += 1;
                    self.incomplete_bytes += source.size - source.consumed;
                }
            }
            SourceStatus::UnknownFormat => {
                if self.unknown_files.len() < MAX_LISTED_FILES {
                    self.unknown_files.push(source.path.clone());
                }
            }
            SourceStatus::Empty
            | SourceStatus::Sidecar
            | SourceStatus::Failed
            | SourceStatus::Gone
            | SourceStatus::Excluded => {}
        }
    }

    /// Adds the files that differ from the store.
    fn add_pending_files(&mut self, roots: &[PathBuf], store: &Path, known: &SourceTable) {
        let found = find_pending_logs(roots, store, known);
        let mut pending: Vec<String> =
            found.changed.iter().map(ingest::source::candidate::LogCandidate::key).collect();
        pending.extend(found.vanished);
        self.pending = pending.len();
        pending.truncate(MAX_LISTED_FILES);
        self.pending_files = pending;
    }
}
