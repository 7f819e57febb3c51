//! The settings and the report of a push.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;

use crate::config::user_settings::PublishSettings;

/// What is published, and how.
pub struct PushOptions {
    pub settings: PublishSettings,
    /// The home folder, whose paths are replaced unless the content is full.
    pub home: PathBuf,
    /// True if the command has the flag for sessions whose secrets were not masked.
    pub allows_unredacted: bool,
    /// True if nothing is written.
    pub is_dry_run: bool,
}

/// A session that a push publishes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PushedSession {
    /// Its id in the lake.
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub events: i64,
    pub objects: usize,
    pub bytes: u64,
    /// Secrets that are masked in it, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub masked: BTreeMap<String, u64>,
}

/// What a push did, or would do.
#[derive(Debug, Default, Serialize)]
pub struct PushReport {
    pub destination: String,
    pub machine: String,
    pub user_name: String,
    pub is_dry_run: bool,
    /// The sessions that were published, new or again.
    pub published: Vec<PushedSession>,
    /// Sessions that are in the lake as they are.
    pub unchanged: usize,
    /// Sessions that another machine has published.
    pub held_by_others: usize,
    /// Sessions that were removed from the lake.
    pub removed: Vec<String>,
    /// Sessions that were ingested with `--no-redact` and stay here.
    pub unredacted: usize,
    /// Objects that were written.
    pub objects: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Secrets that are masked in what was published, by kind.
    pub masked: BTreeMap<String, u64>,
    pub requests: u64,
}
