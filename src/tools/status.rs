//! Reports, for `sessions status`, what the store contains, and how fresh and how complete it is.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ingest::redact::columns::{shown_name, shows_path};
use schemas::session::{SourceRow, SourceStatus};
use schemas::{Timestamp, ToolError};
use serde::Serialize;

use super::reply::convert;
use super::reply::pending::pending;
use super::reply::shared_state::SharedState;
use crate::error::store_error;

/// Maximum number of files listed one by one; all are counted.
const LISTED: usize = 20;

/// The figures of a store.
#[derive(Debug, Default, Serialize)]
pub struct StatusData {
    pub store: String,
    pub schema_version: u32,
    pub generation: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_updated: Option<String>,
    pub segments: usize,
    pub sessions: usize,
    pub events: u64,
    pub events_by_provider: BTreeMap<String, i64>,
    pub replay_events: i64,
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
    /// The number of files that end in an incomplete line, and the bytes of those lines.
    pub incomplete_files: usize,
    pub incomplete_bytes: i64,
    pub unknown_files: Vec<String>,
    pub damaged_segments: Vec<String>,
    /// Sessions that lost events with a damaged segment whose events could not be read again.
    pub incomplete_sessions: Vec<String>,
}

/// Collects the figures; `roots` are searched for new files.
pub(super) fn run(shared: &SharedState, roots: &[PathBuf]) -> Result<StatusData, ToolError> {
    let snapshot = shared.store.snapshot().map_err(store_error)?;
    let manifest = snapshot.manifest();
    let mut data = StatusData {
        store: shared.store.dir().display().to_string(),
        schema_version: manifest.schema_version,
        generation: manifest.generation,
        last_updated: (manifest.generation > 0).then(|| Timestamp(manifest.updated_at).to_string()),
        segments: manifest.segments.len(),
        sessions: snapshot.sessions().iter().filter(|session| session.events > 0).count(),
        events: snapshot.events(),
        store_bytes: manifest.bytes(),
        ..StatusData::default()
    };
    let newest = manifest
        .segments
        .iter()
        .filter_map(|segment| segment.times)
        .map(|(_, newest)| newest)
        .max();
    data.newest_event = convert::time(newest);
    for session in snapshot.sessions() {
        *data.events_by_provider.entry(session.provider.to_string()).or_default() += session.events;
        data.replay_events += session.replay_events;
        for (kind, count) in convert::counts_by_name(session.redactions.as_ref()) {
            *data.redactions.entry(kind).or_default() += count;
        }
    }
    let mut known = BTreeMap::new();
    for source in snapshot.sources(false).map_err(store_error)? {
        let name =
            serde_json::to_value(source.status).ok().and_then(|v| v.as_str().map(str::to_owned));
        let session = source.session_id.as_ref().and_then(|id| snapshot.session(id));
        let moved = source.status == SourceStatus::Gone
            && session.is_some_and(|session| !shows_path(&session.source_path, &source.path));
        let name = if moved { "moved".to_owned() } else { name.unwrap_or_default() };
        *data.files.entry(name).or_default() += 1;
        match source.status {
            SourceStatus::Ok => {
                data.log_bytes += source.consumed.cast_unsigned();
                if source.size > source.consumed {
                    data.incomplete_files += 1;
                    data.incomplete_bytes += source.size - source.consumed;
                }
            }
            SourceStatus::UnknownFormat if data.unknown_files.len() < LISTED => {
                data.unknown_files.push(source.path.clone());
            }
            SourceStatus::Empty
            | SourceStatus::Beside
            | SourceStatus::UnknownFormat
            | SourceStatus::Failed
            | SourceStatus::Gone => {}
        }
        known.insert(source.path.clone(), source);
    }
    data.pending(roots, shared.store.dir(), &known);
    for problem in snapshot.problems().map_err(store_error)? {
        *data.problems.entry(problem.kind).or_default() += 1;
    }
    show_paths(shared, &mut data)?;
    data.incomplete_sessions =
        snapshot.incomplete_sessions().map(|session| session.session_id.clone()).collect();
    data.damaged_segments =
        snapshot.verify().into_iter().map(|(number, error)| format!("{number}: {error}")).collect();
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let ratio = data.store_bytes as f64 / (data.log_bytes.max(1)) as f64;
    data.store_ratio = (ratio * 1000.0).round() / 1000.0;
    Ok(data)
}

/// Masks and cleans the paths of files that do not belong to a session, because they are as on
/// disk.
fn show_paths(shared: &SharedState, data: &mut StatusData) -> Result<(), ToolError> {
    if data.unknown_files.is_empty() && data.pending_files.is_empty() {
        return Ok(());
    }
    let redactor = shared.masking.map(|masking| masking()).transpose()?;
    for path in data.unknown_files.iter_mut().chain(&mut data.pending_files) {
        *path = shown_name(redactor.as_deref(), path);
    }
    Ok(())
}

impl StatusData {
    fn pending(&mut self, roots: &[PathBuf], store: &Path, known: &BTreeMap<String, SourceRow>) {
        let found = pending(roots, store, known);
        let mut pending: Vec<String> =
            found.changed.iter().map(ingest::source::candidate::Candidate::key).collect();
        pending.extend(found.vanished);
        self.pending = pending.len();
        pending.truncate(LISTED);
        self.pending_files = pending;
    }
}
