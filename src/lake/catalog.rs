//! What a lake has: its sessions with the objects of their events, by what the listings say.

use std::collections::{BTreeMap, HashMap};

use arrow::array::RecordBatch;
use ingest::redact::Redactor;
use schemas::{Provider, ToolError};

use super::listing::MachineListing;
use super::place::LakePlace;
use super::publisher::versions_of;
use super::requests::run_requests;
use crate::error::store_error;
use crate::store::{MACHINES, Store, StoreWriter, is_events_key, is_index_key};

/// The sessions of a lake.
#[derive(Debug, Default)]
pub struct LakeCatalog {
    /// By their ids.
    pub sessions: BTreeMap<String, LakeSession>,
    /// Versions of the listings, by machine.
    versions: BTreeMap<String, String>,
}

/// A session of a lake.
#[derive(Debug)]
pub struct LakeSession {
    pub provider: Provider,
    /// The objects with its events.
    pub objects: Vec<LakeEvents>,
}

/// An object with events of one session on one day.
#[derive(Debug)]
pub struct LakeEvents {
    pub key: String,
    pub bytes: u64,
    /// The key and the size of its skip index, if the lake has one.
    pub index: Option<(String, u64)>,
}

impl LakeEvents {
    /// Returns the day of its events, as YYYY-MM-DD.
    pub fn date(&self) -> &str {
        let folder = self.key.rsplit('/').nth(1).unwrap_or_default();
        folder.strip_prefix("p_date=").unwrap_or_default()
    }
}

impl LakeSession {
    /// Returns the bytes of its events.
    pub fn bytes(&self) -> u64 {
        self.objects.iter().map(|object| object.bytes).sum()
    }
}

impl LakeCatalog {
    /// Reads the listings of a lake. Returns `None` if they are those of `known`.
    ///
    /// # Errors
    /// Fails if the lake cannot be reached. Listings that are not valid are left out.
    pub fn read(place: &LakePlace, known: Option<&Self>) -> Result<Option<Self>, ToolError> {
        let versions = versions_of(&place.list(MACHINES)?);
        if known.is_some_and(|known| known.versions == versions) {
            return Ok(None);
        }
        let ids: Vec<&String> = versions.keys().collect();
        let mut sessions = BTreeMap::new();
        for listing in run_requests(&ids, |id| MachineListing::read(place, id))? {
            let Some(Ok(listing)) = listing else { continue };
            for (id, listed) in listing.sessions {
                if listed.held_by.is_some() {
                    continue;
                }
                let mut indexes: HashMap<&str, u64> = HashMap::new();
                for object in &listed.objects {
                    if is_index_key(&object.key, listed.provider, &id) {
                        indexes.insert(&object.key, object.bytes);
                    }
                }
                let mut objects = Vec::new();
                for object in &listed.objects {
                    if !is_events_key(&object.key, listed.provider, &id) {
                        continue;
                    }
                    let index = format!("{}.skip", object.key.trim_end_matches(".parquet"));
                    let index = indexes.get(index.as_str()).map(|bytes| (index.clone(), *bytes));
                    objects.push(LakeEvents {
                        key: object.key.clone(),
                        bytes: object.bytes,
                        index,
                    });
                }
                sessions.insert(id, LakeSession { provider: listed.provider, objects });
            }
        }
        Ok(Some(Self { sessions, versions }))
    }

    /// Returns the number of objects with events.
    pub fn object_count(&self) -> usize {
        self.sessions.values().map(|session| session.objects.len()).sum()
    }

    /// Adds the events of sessions whose rows were pulled before.
    ///
    /// # Errors
    /// Fails if the store cannot be written.
    pub fn add_events(
        store: &Store,
        sessions: &[(String, RecordBatch)],
        redactor: &Redactor,
        open_writer: &dyn Fn() -> Result<StoreWriter, ToolError>,
    ) -> Result<(), ToolError> {
        let writer = open_writer()?;
        let snapshot = store.take_snapshot().map_err(store_error)?;
        let mut sources = HashMap::new();
        for source in snapshot.read_sources(true).map_err(store_error)? {
            if let Some(id) = source.session_id.clone() {
                sources.insert(id, source);
            }
        }
        let mut import = writer.import_sessions(redactor);
        for (id, events) in sessions {
            let (Some(row), Some(source)) = (snapshot.session(id), sources.remove(id)) else {
                continue;
            };
            import.add_session(row.clone(), source, events).map_err(store_error)?;
        }
        import.finish().map_err(store_error)
    }
}
