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
    /// The session of another machine from which its history parted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub events: i64,
    pub objects: usize,
    pub bytes: u64,
    /// The size of its log in the lake; `None` if its log is not published.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_bytes: Option<u64>,
    /// Secrets that are masked in it, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub masked: BTreeMap<String, u64>,
    /// Secrets that the lake showed until now and that the rules in force mask, by kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub unmasked: BTreeMap<String, u64>,
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
    /// Sessions of this machine whose log is in the lake, too.
    pub logs: usize,
    /// Sessions of this machine whose log would be published, but is not archived.
    pub unarchived: usize,
    /// Sessions of this machine whose log has no place on another machine: one in a database, of more than
    /// 128 MB, outside the folders of its agent, or with a secret in its name.
    pub unmovable: usize,
    /// Secrets that are masked in what was published, by kind.
    pub masked: BTreeMap<String, u64>,
    /// Secrets that the lake showed until now and that the rules in force mask, by kind.
    pub unmasked: BTreeMap<String, u64>,
    /// Sessions in the lake that other rules masked, and that the store does not have any more.
    pub irreplaceable: Vec<String>,
    /// What the user should know or do about the lake.
    pub warnings: Vec<String>,
    pub requests: u64,
}

/// Maximum number of sessions that a warning names.
const MAX_NAMED_SESSIONS: usize = 5;

impl PushReport {
    /// Words the warnings.
    pub(super) fn add_warnings(&mut self) {
        let shown = self.published.iter().filter(|session| !session.unmasked.is_empty()).count();
        if shown > 0 {
            let kinds: Vec<String> =
                self.unmasked.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
            let replaced =
                if self.is_dry_run { "a push replaces them" } else { "they were replaced" };
            self.warnings.push(format!(
                "{shown} {} in the lake showed secrets that are masked now ({}); {replaced}. Others may have read these secrets, so change them where they are used (rotate them)",
                if shown == 1 { "session" } else { "sessions" },
                kinds.join(", "),
            ));
        }
        let lost = self.irreplaceable.len();
        if lost > 0 {
            let named = &self.irreplaceable[..lost.min(MAX_NAMED_SESSIONS)];
            let more = if named.len() < lost { " and others" } else { "" };
            self.warnings.push(format!(
                "{lost} {} in the lake may show secrets that are masked now, and cannot be \
                replaced because the store no longer has them: {}{more}. Ingest their logs and \
                push again, or remove their objects from the lake",
                if lost == 1 { "session" } else { "sessions" },
                named.join(", "),
            ));
        }
    }

    /// Returns the report of this push and of another one right after it.
    pub(super) fn followed_by(self, next: Self) -> Self {
        let mut report = next;
        report.unchanged = report.unchanged.min(self.unchanged);
        for session in self.published {
            if !report.published.iter().any(|one| one.session_id == session.session_id) {
                report.published.push(session);
            }
        }
        report.published.sort();
        report.removed.extend(self.removed);
        report.warnings.extend(self.warnings);
        report.objects += self.objects;
        report.bytes += self.bytes;
        for (kind, count) in self.masked {
            *report.masked.entry(kind).or_default() += count;
        }
        for (kind, count) in self.unmasked {
            *report.unmasked.entry(kind).or_default() += count;
        }
        report
    }
}
