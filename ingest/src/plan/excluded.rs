//! Leaves out logs before they are read: those that the user excluded or forgot.
//!
//! A log that is left out keeps a row in `sources` with the status `excluded`, so that it is decoded
//! only once. The reason of the row says what the next run needs to decide about the log again:
//!
//! ```text
//! {"project":"/home/mira/clients/acme","log":"6c62272e07bb0142"}
//! ```
//!
//! `copy_of` has the forgotten sessions if the log only repeats their records.

use std::io;

use schemas::Provider;
use schemas::session::{SessionRow, SourceRow, SourceStatus};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use super::compare::{is_unchanged, last_change_us};
use super::planned_log::Known;
use crate::discover::Discovery;
use crate::provider::base_of;
use crate::provider::format::SessionClaim;
use crate::source::candidate::LogCandidate;
use crate::source::container::Content;
use crate::source::fingerprint::Fingerprint;
use crate::text::names::truncate_name;

/// Decides which logs are left out.
pub trait LogFilter: Sync {
    /// Returns whether a log is left out.
    fn is_excluded(&self, log: &LogFacts<'_>) -> bool;
}

/// The facts about a log by which it may be left out. A fact that is `None` is not known, or not
/// known yet.
#[derive(Debug, Clone, Copy)]
pub struct LogFacts<'a> {
    /// The path of the log.
    pub path: &'a str,
    /// The agent that wrote it.
    pub provider: Option<Provider>,
    /// The working directory of its session.
    pub project: Option<&'a str>,
    /// The identity of the log; see [`log_identity`].
    pub identity: Option<&'a str>,
    /// The ids of the forgotten sessions whose records the log only repeats.
    pub copy_of: &'a [String],
}

impl<'a> LogFacts<'a> {
    /// Returns the facts about a log that was not decoded yet.
    pub fn of_path(path: &'a str, provider: Option<Provider>) -> Self {
        Self { path, provider, project: None, identity: None, copy_of: &[] }
    }
}

/// What is kept about a log that was decoded and then left out.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ExcludedReason {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(default, rename = "log", skip_serializing_if = "Option::is_none")]
    identity: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    copy_of: Vec<String>,
}

/// The logs that were left out before anything was read.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// The changed rows of their files.
    pub rows: Vec<SourceRow>,
    /// The paths of the files found.
    pub paths: Vec<String>,
}

/// Returns an identity of a log by what it says about itself, the same wherever the log is. It is a
/// hash, so that a forgotten log can be recognised without keeping anything of it.
pub fn log_identity(session: &SessionRow, source: &SourceRow) -> String {
    let name = session.native_id.as_deref().unwrap_or(&session.session_id);
    identity_of(session.provider, name, source.first_record)
}

/// Returns the identity of a log that was not decoded yet; see [`log_identity`].
pub fn claimed_identity(claim: &SessionClaim) -> String {
    let first_record = claim.first_record.map(u64::cast_signed);
    identity_of(claim.provider, truncate_name(&claim.native_id), first_record)
}

fn identity_of(provider: Provider, name: &str, first_record: Option<i64>) -> String {
    let identity = format!("{} {name} {}", base_of(provider), first_record.unwrap_or(0));
    format!("{:016x}", xxh3_64(identity.as_bytes()))
}

/// Returns the row of a log that was read and is left out. Nothing of its session is kept. `copy_of`
/// has the forgotten sessions if the log is left out because it only repeats them.
pub fn excluded_row(session: &SessionRow, source: &SourceRow, copy_of: &[String]) -> SourceRow {
    let log = ExcludedReason {
        project: session.cwd.clone(),
        identity: Some(log_identity(session, source)),
        copy_of: copy_of.to_vec(),
    };
    SourceRow {
        status: SourceStatus::Excluded,
        session_id: None,
        ancestors: None,
        state: None,
        reason: serde_json::to_string(&log).ok(),
        ..source.clone()
    }
}

/// Returns the working directory of the session of a log that was left out after it was decoded.
pub fn excluded_project(source: &SourceRow) -> Option<String> {
    serde_json::from_str::<ExcludedReason>(source.reason.as_deref()?).ok()?.project
}

/// Removes the logs that `filter` excludes from the files found. Logs that were excluded and no
/// longer are become unknown files, or known logs that are continued.
pub fn leave_out(found: &mut Discovery, known: &mut Known, filter: &dyn LogFilter) -> LeftOut {
    let mut left_out = LeftOut::default();
    let mut included = Vec::new();
    for file in std::mem::take(&mut found.files) {
        let key = file.key();
        match find_excluded_row(&file, &key, known, filter) {
            Some(row) => {
                if known.sources.get(&key) != Some(&row) {
                    left_out.rows.push(row);
                }
                left_out.paths.push(key);
            }
            None => included.push(file),
        }
    }
    found.files = included;

    // The remaining excluded rows are of logs that are read from now on, and of files that were not
    // found. Neither is a known log.
    let is_log = |row: &SourceRow| row.session_id.is_some();
    known.sources.retain(|_, row| row.status != SourceStatus::Excluded || is_log(row));
    for row in known.sources.values_mut().filter(|row| row.status == SourceStatus::Excluded) {
        row.status = SourceStatus::Ok;
        if !left_out.paths.contains(&row.path) {
            // What was appended meanwhile is read now.
            row.modified_us = -1;
        }
    }
    left_out
}

/// Returns the row of a file that is left out; `None` if it is read.
fn find_excluded_row(
    file: &LogCandidate,
    key: &str,
    known: &Known,
    filter: &dyn LogFilter,
) -> Option<SourceRow> {
    let Some(row) = known.sources.get(key) else {
        let log = LogFacts::of_path(key, None);
        return filter.is_excluded(&log).then(|| unread_row(file, key));
    };

    let current_row = || SourceRow {
        status: SourceStatus::Excluded,
        size: file.size.cast_signed(),
        modified_us: last_change_us(file, row.provider),
        ..row.clone()
    };
    if let Some(session) = known.session_of(row) {
        let identity = log_identity(session, row);
        let log = LogFacts {
            path: key,
            provider: Some(session.provider),
            project: session.cwd.as_deref(),
            identity: Some(&identity),
            copy_of: &[],
        };
        return filter.is_excluded(&log).then(current_row);
    }
    let reason = row.reason.as_deref().unwrap_or_default();
    let kept: ExcludedReason = serde_json::from_str(reason).unwrap_or_default();
    // What a copy adds is read, so a copy that grew is decoded again.
    let may_be_same = if kept.copy_of.is_empty() { may_be_same_log } else { is_unchanged };
    if row.status == SourceStatus::Excluded && may_be_same(file, row) {
        let log = LogFacts {
            path: key,
            provider: row.provider,
            project: kept.project.as_deref(),
            identity: kept.identity.as_deref(),
            copy_of: &kept.copy_of,
        };
        return filter.is_excluded(&log).then(current_row);
    }
    let log = LogFacts::of_path(key, row.provider);
    filter.is_excluded(&log).then(current_row)
}

/// Returns whether a file still holds the log that was left out. A file that cannot be read does.
fn may_be_same_log(file: &LogCandidate, row: &SourceRow) -> bool {
    let begins_as_before = || -> io::Result<bool> {
        let mut content = Content::open(file)?;
        Fingerprint::is_unchanged(&mut content, row)
    };
    is_unchanged(file, row) || begins_as_before().unwrap_or(true)
}

/// Returns the row of a file that is left out by its path and was never read.
fn unread_row(file: &LogCandidate, key: &str) -> SourceRow {
    let size = file.size.cast_signed();
    SourceRow::unread(key.to_owned(), SourceStatus::Excluded, size, file.modified_us)
}
