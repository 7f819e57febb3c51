//! What the store has already: sessions of the lake, and logs of its own.

use std::collections::{HashMap, HashSet};

use ingest::redact::Redactor;
use schemas::{Provider, ToolError};

use crate::lake::listing::{ListedObject, ListedSession};
use crate::lake::place::LakePlace;
use crate::lake::pull_report::{PullContent, PullFilter};
use crate::lake::selection::own_sessions;
use store::{ImportedFrom, LAKE_PATH, Snapshot, Store, StoreWriter};
use tools::error::store_error;

/// What a pull works with.
#[derive(Clone, Copy)]
pub(super) struct PullContext<'a> {
    pub(super) store: &'a Store,
    pub(super) place: &'a LakePlace,
    pub(super) filter: &'a PullFilter,
    pub(super) content: PullContent,
    pub(super) redactor: &'a Redactor,
    pub(super) open_writer: &'a dyn Fn() -> Result<StoreWriter, ToolError>,
}

/// A session that was imported before.
pub(super) struct Imported {
    pub(super) session_id: String,
    /// `None` if it is not known what was imported.
    pub(super) from: Option<ImportedFrom>,
    pub(super) redaction_rules: i64,
}

/// A session of a log that the store has itself.
pub(super) struct LocalLog {
    /// Position of its session in the snapshot.
    pub(super) at: usize,
    pub(super) events: i64,
}

/// What the listing of a machine says of the log of a session.
pub(super) struct ListedLog {
    pub(super) publisher: String,
    pub(super) machine: String,
    pub(super) lake_id: String,
    pub(super) provider: Provider,
    /// `None` if the log is not published.
    pub(super) object: Option<ListedObject>,
}

impl ListedLog {
    pub(super) fn new(
        publisher: &str,
        machine: &str,
        lake_id: &str,
        listed: &ListedSession,
    ) -> Self {
        Self {
            publisher: publisher.to_owned(),
            machine: machine.to_owned(),
            lake_id: lake_id.to_owned(),
            provider: listed.provider,
            object: listed.log_object.clone(),
        }
    }
}

/// What the store has of a lake, and the logs that it has itself.
pub(super) struct KnownSessions {
    /// The sessions that were imported from this lake, by the end of the path of their source.
    pub(super) imported: HashMap<String, Imported>,
    /// By the identity of the log, which several sessions may have.
    pub(super) local: HashMap<String, Vec<LocalLog>>,
    /// The ids of all sessions.
    pub(super) taken: HashSet<String>,
}

impl KnownSessions {
    pub(super) fn read(snapshot: &Snapshot, place: &LakePlace) -> Result<Self, ToolError> {
        let mut local: HashMap<String, Vec<LocalLog>> = HashMap::new();
        for own in own_sessions(snapshot)? {
            let log = LocalLog { at: own.at, events: own.row.events };
            local.entry(own.identity).or_default().push(log);
        }
        let prefix = source_path(place, "");
        let mut imported = HashMap::new();
        for row in snapshot.read_sources(true).map_err(store_error)? {
            // A session whose rows were lost is imported again.
            let (Some(key), Some(session_id)) = (row.path.strip_prefix(&prefix), &row.session_id)
            else {
                continue;
            };
            let one = Imported {
                session_id: session_id.clone(),
                from: ImportedFrom::of_source(&row),
                redaction_rules: row.redaction_rules,
            };
            imported.insert(key.to_owned(), one);
        }
        let taken = snapshot.sessions().iter().map(|row| row.session_id.clone()).collect();
        Ok(Self { imported, local, taken })
    }
}

/// Returns what the store keeps of the objects of a session that a machine publishes.
pub(super) fn imported_from(publisher: &str, listed: &ListedSession) -> ImportedFrom {
    ImportedFrom {
        publisher: publisher.to_owned(),
        content: listed.content_hash(),
        log: listed.log.clone(),
        shared_id: None,
        copied: 0,
    }
}

/// Returns the path of the source of a session of a lake.
pub(super) fn source_path(place: &LakePlace, key: &str) -> String {
    format!("{LAKE_PATH}{}#{key}", place.name())
}

/// Returns the end of the path of the source of a session whose id another imported session has.
pub(super) fn shared_key(lake_id: &str, publisher: &str) -> String {
    format!("{lake_id}#{publisher}")
}
