//! What the views of a report show, as JSON.

use std::collections::BTreeMap;

use schemas::Provider;
use schemas::tool::analyze::Finding;
use schemas::tool::list::Session;
use schemas::tool::stats::Group;
use serde::Serialize;

/// The title of a report.
pub(super) const TITLE: &str = "Coding sessions";

/// What the views of a report show. `frozen.ts` reads it.
#[derive(Debug, Serialize)]
pub(super) struct ReportData {
    pub(super) version: &'static str,
    pub(super) generated_at: String,
    pub(super) timezone: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) provider: Option<Provider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) project: Option<String>,
    pub(super) prices_as_of: String,
    /// The sessions with a conversation, the latest first.
    pub(super) sessions: Vec<Session>,
    /// Logs without a conversation. Their tokens count.
    pub(super) others: Vec<Session>,
    /// The groups by day, session and model.
    pub(super) days: Vec<Group>,
    /// The groups by session, model and tool.
    pub(super) tools: Vec<Group>,
    /// The groups by tool.
    pub(super) spreads: Vec<Group>,
    pub(super) findings: Vec<Finding>,
    /// The position of a session in `sessions`, hours since 1970, and the number of events.
    pub(super) hours: Vec<(usize, i64, u32)>,
    /// The ids of the latest calls that changed a file, with their models.
    pub(super) edits: Vec<(String, Option<String>)>,
    /// The results that name subagents, by the ids of their sessions.
    pub(super) spawned: BTreeMap<String, String>,
    /// The files with further conversations.
    pub(super) files: Vec<String>,
    /// The position in `files` of the conversations that are not in this file.
    pub(super) places: BTreeMap<String, usize>,
}

/// What a file with further conversations shows.
#[derive(Serialize)]
pub(super) struct VolumeData<'a> {
    pub(super) version: &'static str,
    pub(super) generated_at: &'a str,
    pub(super) timezone: &'a str,
    pub(super) prices_as_of: &'a str,
    /// The name of the report's first file.
    pub(super) home: &'a str,
    pub(super) sessions: Vec<&'a Session>,
}
