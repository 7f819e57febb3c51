//! Selects the sessions that are published, and names them.

use std::collections::BTreeSet;

use ingest::plan::safe_session_id;
use schemas::ToolError;
use schemas::session::{SessionRow, SourceRow};

use super::entry::sha256;
use super::listing::{MachineListing, parse_listing};
use super::state::LakeState;
use crate::config::patterns::{ExcludedFolders, FolderPatterns};
use crate::config::user_settings::PublishSettings;
use crate::update::log_rules::{ForgottenRules, LogRules};
use store::{OwnLog, SessionSummary, Snapshot, Store};
use tools::error::store_error;

/// Minimum number of characters of an id that no other log has: agents draw such ids at random.
const MIN_UNIQUE_CHARS: usize = 20;

/// Hexadecimal digits of a hash that make an id unique.
const IDENTITY_DIGITS: usize = 8;

/// The projects that are published.
pub(super) struct ProjectRules {
    include: FolderPatterns,
    exclude: ExcludedFolders,
    /// What these rules exclude from ingest is not published either, although it is in the store.
    ingest: LogRules,
}

/// A session of the store that belongs to this machine.
pub(super) struct OwnSession<'s> {
    /// Position in the snapshot.
    pub(super) at: usize,
    pub(super) row: &'s SessionRow,
    pub(super) source: SourceRow,
    /// The identity of its log.
    pub(super) identity: String,
    /// Its id in the lake, unless another machine publishes another log under it.
    pub(super) lake_id: String,
}

impl OwnSession<'_> {
    /// Returns whether its secrets were not masked.
    pub(super) fn is_unredacted(&self) -> bool {
        self.source.redaction_rules == 0
    }
}

impl ProjectRules {
    pub(super) fn new(settings: &PublishSettings) -> Result<Self, ToolError> {
        Ok(Self {
            include: FolderPatterns::of_setting("publish.include", &settings.include)?,
            exclude: ExcludedFolders::of_setting("publish.exclude", &settings.exclude)?,
            ingest: LogRules::read(ForgottenRules::default())?,
        })
    }

    /// Returns whether a session is published. One without a working directory is not.
    pub(super) fn includes(&self, session: &SessionSummary) -> bool {
        let cwd = session.origin.cwd.as_deref();
        cwd.is_some_and(|cwd| self.include.is_match(cwd) && !self.exclude.has_folder(cwd))
            && !self.ingest.is_unwanted_session(session)
    }
}

/// Returns the sessions of this machine that have events.
pub(super) fn own_sessions(snapshot: &Snapshot) -> Result<Vec<OwnSession<'_>>, ToolError> {
    let sources = snapshot.read_sources(false).map_err(store_error)?;
    let logs = snapshot.find_own_logs(sources).map_err(store_error)?.into_iter();
    let own = logs.map(|OwnLog { at, row, source, identity }| {
        let lake_id = lake_id(row, &identity);
        OwnSession { at, row, source, identity, lake_id }
    });
    Ok(own.collect())
}

/// Returns the positions of the sessions that this machine publishes in some lake, by its listings as
/// they were last read or written here.
pub fn find_published(store: &Store, snapshot: &Snapshot) -> Result<BTreeSet<usize>, ToolError> {
    let state = LakeState::read(store)?;
    let listings = state.lakes.values().filter_map(|lake| lake.listing.as_deref());
    let listings: Vec<MachineListing> =
        listings.filter_map(|json| parse_listing(json.as_bytes(), &state.id).ok()).collect();
    let logs: BTreeSet<&str> =
        listings.iter().flat_map(|listing| listing.sessions.values()).map(|s| &*s.log).collect();
    if logs.is_empty() {
        return Ok(BTreeSet::new());
    }
    let own = own_sessions(snapshot)?;
    Ok(own.iter().filter(|own| logs.contains(&*own.identity)).map(|own| own.at).collect())
}

/// Returns the id of a session in the lake. It follows from the log alone: an id that other logs may
/// have, such as `nightly-42`, or one that the store made unique, gets a part of a hash of the log's
/// identity and of its first time. An id from before unsafe ones were replaced is replaced here.
fn lake_id(row: &SessionRow, identity: &str) -> String {
    let native = row.native_id.as_deref().unwrap_or(&row.session_id);
    let of_native = safe_session_id(native);
    let is_unique = native == row.session_id
        && native == of_native
        && native.chars().count() >= MIN_UNIQUE_CHARS;
    if is_unique {
        return row.session_id.clone();
    }
    let is_of_native =
        row.session_id.starts_with(native) || row.session_id.starts_with(&*of_native);
    let base = if is_of_native { of_native } else { safe_session_id(&row.session_id) };
    other_lake_id(&base, &format!("{identity} {:?}", row.started_at))
}

/// Returns an id like `id`, made unique by what is special about a log.
pub(super) fn other_lake_id(id: &str, special: &str) -> String {
    let hash = sha256(special.as_bytes());
    format!("{id}~{}", hash.get(..IDENTITY_DIGITS).unwrap_or(&hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(session_id: &str, native_id: &str) -> SessionRow {
        SessionRow {
            session_id: session_id.to_owned(),
            native_id: Some(native_id.to_owned()),
            ..SessionRow::default()
        }
    }

    #[test]
    fn ids_in_a_lake_follow_from_the_log_alone() {
        let identity = "0123456789abcdef";
        let uuid = "019a0b1c-7d2e-7f00-8000-000000000001";
        assert_eq!(lake_id(&row(uuid, uuid), identity), uuid);
        let short = lake_id(&row("nightly", "nightly"), identity);
        assert!(short.starts_with("nightly~") && short.len() == "nightly~".len() + IDENTITY_DIGITS);
        assert_eq!(lake_id(&row("nightly~2", "nightly"), identity), short);
        assert_ne!(lake_id(&row("nightly", "nightly"), "f"), short);
        let later = SessionRow { started_at: Some(5), ..row("nightly~2", "nightly") };
        assert_ne!(lake_id(&later, identity), short);
        assert!(lake_id(&row("a_b", "a b"), identity).starts_with("a_b~"));
        let replaced = safe_session_id("$(touch x)");
        for stored in ["$(touch x)", &replaced, &format!("{replaced}~2")] {
            let id = lake_id(&row(stored, "$(touch x)"), identity);
            assert!(id.starts_with(&format!("{replaced}~")), "{id}");
        }
        let long = lake_id(&row(&"$".repeat(30), &"$".repeat(30)), identity);
        assert!(!long.contains('$'), "{long}");
    }
}
