//! Reports, for `sessions doctor`, which agents keep logs where, what was found there, and which
//! parts of their formats the decoders do not know.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ingest::discover::{discover, is_absent};
use ingest::provider::alias::alias_of;
use ingest::provider::encrypted::{EncryptedLogs, find_encrypted_logs};
use ingest::provider::format::AgentFolders;
use ingest::provider::retention::{LogRetention, log_retention};
use ingest::provider::{all_providers, log_folders};
use schemas::price::PriceTable;
use schemas::session::{SessionRow, SourceRow, SourceStatus};
use schemas::{Provider, Timestamp, ToolError};
use serde::Serialize;

use super::reply::convert::parse_counts;
use super::reply::store_warnings::store_warnings;
use super::reply::tools::Tools;
use crate::error::store_error;
use base::sanitize::clean_text;
use store::{KeepLogs, LogArchive};

/// The findings of the doctor.
#[derive(Debug, Default, Serialize)]
pub struct DoctorData {
    /// Every supported agent, those with a decoder of their own first.
    pub providers: Vec<ProviderHealth>,
    /// Logs that cannot be read because their agents encrypt them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub encrypted: Vec<EncryptedLogs>,
    /// The record types, fields and blocks that the decoders did not know, most frequent first.
    pub drift: Vec<Drift>,
    /// The number of masked secrets, by kind.
    pub redactions: BTreeMap<String, u64>,
    /// The models whose cost by the price table differs by more than 5 % from what logs state of the
    /// same requests, by name.
    pub cost_differences: Vec<CostDifference>,
    /// How logs are archived, by the settings.
    pub keep_logs: KeepLogs,
    /// What is wrong with the store, in whole sentences.
    pub warnings: Vec<String>,
}

/// What the requests of a model cost in US dollars, if only those with a logged cost are counted.
#[derive(Debug, PartialEq, Serialize)]
pub struct CostDifference {
    pub model: String,
    /// By the price table.
    pub cost_usd: f64,
    pub cost_as_logged: f64,
}

/// The logs and sessions of one agent.
#[derive(Debug, Serialize)]
pub struct ProviderHealth {
    pub provider: Provider,
    /// The name of the agent.
    pub agent: &'static str,
    /// The agent whose format the logs have. `None` if the agent has a decoder of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Provider>,
    /// True if neither a real log was read nor two independent readers agree on the folders and the
    /// format.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub is_unverified: bool,
    pub places: Vec<LogFolder>,
    /// The number of sessions in the store.
    pub sessions: usize,
    pub events: i64,
    /// The versions of the agent seen, newest session first.
    pub versions: Vec<String>,
    /// The number of sessions whose log was deleted; the store keeps their ingested content.
    pub sources_gone: usize,
    /// The number of these whose log is archived: `sessions restore` writes it back.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub gone_archived: usize,
    /// The number of all sessions whose log is archived.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub archived: usize,
    /// When the agent deletes its logs. `None` if no deletion is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<Retention>,
}

/// When an agent deletes its logs.
#[derive(Debug, PartialEq, Serialize)]
pub struct Retention {
    /// The days without a change after which a log is deleted.
    pub days: u32,
    /// The number of logs of a project that stay, the newest, when a session begins. `None` if all do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// The setting that changes this, and its file.
    pub setting: &'static str,
    pub file: PathBuf,
    /// The number of logs of the store that the agent deletes within a week.
    pub due: usize,
    /// The number of these that are archived.
    #[serde(skip_serializing_if = "schemas::is_default")]
    pub due_archived: usize,
}

/// A folder where an agent keeps its logs.
#[derive(Debug, Serialize)]
pub struct LogFolder {
    pub path: PathBuf,
    /// False if the folder does not exist. One that cannot be examined counts as existing.
    pub exists: bool,
    /// The number of files that may be logs.
    pub files: usize,
    pub bytes: u64,
    /// The files and folders that cannot be read: each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unreadable: Vec<String>,
}

/// A record type, field or block that a decoder does not know.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Drift {
    pub provider: String,
    /// The version of the agent; empty if the log does not name one.
    pub version: String,
    /// One of `record`, `field`, `block`, `iteration` and `usage`: a record or field with token
    /// counts, which are not in the sums.
    pub kind: String,
    pub name: String,
    pub count: u64,
}

/// Differences of up to this share of the logged cost are not reported.
const MAX_COST_DIFFERENCE: f64 = 0.05;

/// A week in days, and a day in microseconds.
const WEEK_DAYS: i64 = 7;
const DAY_US: i64 = 86_400_000_000;

/// Maximum number of unreadable files and folders listed for one folder of an agent.
const MAX_UNREADABLE: usize = 10;

/// Maximum number of versions listed for one agent.
const MAX_VERSIONS: usize = 8;

/// Checks every agent's folders and what the store knows of its logs.
pub(super) fn run(
    tools: &Tools,
    places: &AgentFolders<'_>,
    keep_logs: KeepLogs,
) -> Result<DoctorData, ToolError> {
    let snapshot = tools.store.take_snapshot().map_err(store_error)?;
    let sessions = snapshot.read_rows().map_err(store_error)?;
    let sources = snapshot.read_sources(false).map_err(store_error)?;
    let (archive, damage) = open_archive(tools);
    let is_archived = |id: &str| archive.as_ref().is_some_and(|archive| archive.has_session(id));
    let mut data = DoctorData {
        providers: all_providers()
            .map(|provider| {
                let folders = log_folders(provider, places);
                ProviderHealth {
                    retention: log_retention(provider, places)
                        .map(|retention| count_due(retention, &folders, &sources, &is_archived)),
                    places: folders.into_iter().map(inspect_folder).collect(),
                    ..provider_health(provider, &sessions, &is_archived)
                }
            })
            .collect(),
        encrypted: find_encrypted_logs(places),
        drift: sum_drift(&sessions),
        redactions: BTreeMap::new(),
        keep_logs,
        cost_differences: find_cost_differences(&sessions, tools.prices()),
        warnings: store_warnings(&snapshot).into_iter().map(|warning| warning.message).collect(),
    };

    data.warnings.extend(damage);
    for session in sessions {
        for (kind, count) in parse_counts(session.redactions.as_ref()) {
            *data.redactions.entry(kind).or_default() += count;
        }
    }
    Ok(data)
}

/// Opens the archive of the logs. If it cannot be read, returns a sentence about that.
pub(super) fn open_archive(tools: &Tools) -> (Option<LogArchive>, Option<String>) {
    match tools.store.open_archive() {
        Ok(archive) => (archive, None),
        Err(error) => {
            let message = format!(
                "The archive of logs cannot be read: {error}. `sessions ingest --verify` repairs it"
            );
            (None, Some(message))
        }
    }
}

/// Counts the files of a folder that may be logs, and finds what cannot be read there.
fn inspect_folder(path: PathBuf) -> LogFolder {
    if is_absent(&path) {
        return LogFolder { path, exists: false, files: 0, bytes: 0, unreadable: Vec::new() };
    }
    let found = discover(std::slice::from_ref(&path));
    let bytes = found.files.iter().map(|file| file.size).sum();
    let problems = found.problems.iter().take(MAX_UNREADABLE);
    let unreadable = problems
        .map(|problem| format!("{}: {}", clean_text(&problem.path), clean_text(&problem.message)))
        .collect();
    LogFolder { path, exists: true, files: found.files.len(), bytes, unreadable }
}

/// Sums up the sessions of one agent, without its folders.
fn provider_health(
    provider: Provider,
    sessions: &[&Arc<SessionRow>],
    is_archived: &dyn Fn(&str) -> bool,
) -> ProviderHealth {
    let mut provider_sessions: Vec<_> =
        sessions.iter().filter(|row| row.provider == provider).collect();
    provider_sessions.sort_by_key(|row| std::cmp::Reverse(row.ended_at));

    let mut versions: Vec<String> = Vec::new();
    for version in provider_sessions.iter().filter_map(|row| row.agent_version.as_ref()) {
        if versions.len() < MAX_VERSIONS && !versions.contains(version) {
            versions.push(clean_text(version));
        }
    }

    let alias = alias_of(provider);
    let archived = provider_sessions.iter().filter(|row| is_archived(&row.session_id));
    ProviderHealth {
        provider,
        agent: provider.agent_name(),
        base: alias.map(|alias| alias.base),
        is_unverified: alias.is_some_and(|alias| !alias.is_verified),
        places: Vec::new(),
        sessions: provider_sessions.len(),
        events: provider_sessions.iter().map(|row| row.events).sum(),
        versions,
        sources_gone: provider_sessions.iter().filter(|row| row.source_gone).count(),
        gone_archived: archived.clone().filter(|row| row.source_gone).count(),
        archived: archived.count(),
        retention: None,
    }
}

/// Counts the logs in the folders of an agent that it deletes within a week.
fn count_due(
    retention: LogRetention,
    folders: &[PathBuf],
    sources: &[SourceRow],
    is_archived: &dyn Fn(&str) -> bool,
) -> Retention {
    let LogRetention { days, count, setting, file, .. } = retention;
    let kept_days = i64::from(days) - WEEK_DAYS;
    let due_before = Timestamp::now().0.saturating_sub(kept_days.saturating_mul(DAY_US));
    let is_own = |source: &&SourceRow| {
        source.status == SourceStatus::Ok
            && folders.iter().any(|folder| Path::new(&source.path).starts_with(folder))
    };
    let mut projects: BTreeMap<Option<&Path>, Vec<&SourceRow>> = BTreeMap::new();
    for source in sources.iter().filter(is_own) {
        projects.entry(Path::new(&source.path).parent()).or_default().push(source);
    }
    let kept = count.map_or(usize::MAX, |count| count as usize);
    let mut due = Vec::new();
    for logs in projects.values_mut() {
        logs.sort_by_key(|source| std::cmp::Reverse(source.modified_us));
        let is_due = |at: usize, source: &SourceRow| at >= kept || source.modified_us < due_before;
        let logs = logs.iter().enumerate();
        due.extend(logs.filter(|(at, source)| is_due(*at, source)).map(|(_, source)| *source));
    }
    let has_archive = |source: &&&SourceRow| source.session_id.as_deref().is_some_and(is_archived);
    let due_archived = due.iter().filter(has_archive).count();
    Retention { days, count, setting, file, due: due.len(), due_archived }
}

/// Compares the costs that logs state with those by the price table.
fn find_cost_differences(
    sessions: &[&Arc<SessionRow>],
    prices: &PriceTable,
) -> Vec<CostDifference> {
    let mut sums: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for entry in sessions.iter().flat_map(|row| row.model_usage()) {
        if let (Some(cost), Some(logged)) = (entry.cost(prices), entry.cost_as_logged) {
            let sum = sums.entry(clean_text(&entry.name())).or_default();
            *sum = (sum.0 + cost, sum.1 + logged);
        }
    }
    let differs = |cost: f64, logged: f64| (cost - logged).abs() > MAX_COST_DIFFERENCE * logged;
    sums.into_iter()
        .filter(|(_, (cost, logged))| differs(*cost, *logged))
        .map(|(model, (cost_usd, cost_as_logged))| CostDifference {
            model,
            cost_usd,
            cost_as_logged,
        })
        .collect()
}

/// Sums up what the decoders did not know, by agent, version and name.
fn sum_drift(sessions: &[&Arc<SessionRow>]) -> Vec<Drift> {
    let mut sums: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    for row in sessions {
        let version = row.agent_version.as_deref().map(clean_text).unwrap_or_default();
        for (name, count) in parse_counts(row.drift.as_ref()) {
            let key = (row.provider.to_string(), version.clone(), clean_text(&name));
            *sums.entry(key).or_default() += count;
        }
    }

    let mut drift: Vec<_> = sums
        .into_iter()
        .map(|((provider, version, name), count)| {
            let (kind, name) = name.split_once(':').unwrap_or(("", &name));
            Drift { provider, version, kind: kind.to_owned(), name: name.to_owned(), count }
        })
        .collect();
    drift.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.cmp(b)));
    drift
}
