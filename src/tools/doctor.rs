//! Reports, for `sessions doctor`, which agents keep logs where, what was found there, and which
//! parts of their formats the decoders do not know.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use ingest::discover::discover;
use ingest::provider::FORMATS;
use ingest::provider::format::Places;
use schemas::session::SessionRow;
use schemas::{Provider, ToolError};
use serde::Serialize;

use super::reply::convert::counts_by_name;
use super::reply::shared_state::SharedState;
use crate::base::sanitize::clean;
use crate::error::store_error;

/// The findings of the doctor.
#[derive(Debug, Default, Serialize)]
pub struct DoctorData {
    /// Every supported agent, in the order in which log formats are recognized.
    pub providers: Vec<ProviderHealth>,
    /// The record types, fields and blocks that the decoders did not know, most frequent first.
    pub drift: Vec<Drift>,
    /// The number of masked secrets, by kind.
    pub redactions: BTreeMap<String, u64>,
}

/// The logs and sessions of one agent.
#[derive(Debug, Serialize)]
pub struct ProviderHealth {
    pub provider: Provider,
    pub places: Vec<Place>,
    /// The number of sessions in the store.
    pub sessions: usize,
    pub events: i64,
    /// The versions of the agent seen, newest session first.
    pub versions: Vec<String>,
    /// The number of sessions whose log was deleted; the store keeps their ingested content.
    pub sources_gone: usize,
}

/// A folder where an agent keeps its logs.
#[derive(Debug, Serialize)]
pub struct Place {
    pub path: PathBuf,
    pub exists: bool,
    /// The number of files that may be logs.
    pub files: usize,
    pub bytes: u64,
}

/// A record type, field or block that a decoder does not know.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Drift {
    pub provider: String,
    /// The version of the agent; empty if the log does not name one.
    pub version: String,
    /// One of `record`, `field` and `block`.
    pub kind: String,
    pub name: String,
    pub count: u64,
}

/// Maximum number of versions listed for one agent.
const VERSIONS: usize = 8;

/// Checks every agent's folders and what the store knows of its logs.
pub(super) fn run(shared: &SharedState, places: &Places<'_>) -> Result<DoctorData, ToolError> {
    let snapshot = shared.store.snapshot().map_err(store_error)?;
    let sessions = snapshot.sessions();
    let mut data = DoctorData {
        providers: FORMATS
            .iter()
            .map(|format| ProviderHealth {
                provider: format.provider,
                places: (format.roots)(places).into_iter().map(place).collect(),
                ..health(format.provider, sessions)
            })
            .collect(),
        drift: drift(sessions),
        redactions: BTreeMap::new(),
    };
    for session in sessions {
        for (kind, count) in counts_by_name(session.redactions.as_ref()) {
            *data.redactions.entry(kind).or_default() += count;
        }
    }
    Ok(data)
}

fn place(path: PathBuf) -> Place {
    let exists = path.exists();
    let files = if exists { discover(std::slice::from_ref(&path)).files } else { Vec::new() };
    let bytes = files.iter().map(|file| file.size).sum();
    Place { path, exists, files: files.len(), bytes }
}

fn health(provider: Provider, sessions: &[Arc<SessionRow>]) -> ProviderHealth {
    let mut of_provider: Vec<_> = sessions.iter().filter(|row| row.provider == provider).collect();
    of_provider.sort_by_key(|row| std::cmp::Reverse(row.ended_at));
    let mut versions: Vec<String> = Vec::new();
    for version in of_provider.iter().filter_map(|row| row.agent_version.as_ref()) {
        if versions.len() < VERSIONS && !versions.contains(version) {
            versions.push(clean(version));
        }
    }
    ProviderHealth {
        provider,
        places: Vec::new(),
        sessions: of_provider.len(),
        events: of_provider.iter().map(|row| row.events).sum(),
        versions,
        sources_gone: of_provider.iter().filter(|row| row.source_gone).count(),
    }
}

fn drift(sessions: &[Arc<SessionRow>]) -> Vec<Drift> {
    let mut sums: BTreeMap<(String, String, String), u64> = BTreeMap::new();
    for row in sessions {
        let version = row.agent_version.as_deref().map(clean).unwrap_or_default();
        for (name, count) in counts_by_name(row.drift.as_ref()) {
            let key = (row.provider.to_string(), version.clone(), clean(&name));
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
