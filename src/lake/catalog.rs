//! What a lake has: its sessions with the objects of their events, by what the listings say, and the
//! joined objects that repeat them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use arrow::array::RecordBatch;
use ingest::redact::Redactor;
use schemas::session::SessionRow;
use schemas::{Provider, ToolError};

use super::day_manifest::{JoinedObject, JoinedSource, list_days, read_days};
use super::listing::{ListedSession, MachineListing, ReadListing, shown_id};
use super::place::LakePlace;
use super::publisher::versions_of;
use super::requests::run_requests;
use store::{CopyMarks, MACHINES, Store, StoreWriter, events_date, is_events_key, is_index_key};
use tools::error::store_error;

/// Most sessions of a listing that are not valid and reported by name.
const MAX_NAMED_INVALID: usize = 20;

/// The sessions of a lake.
#[derive(Debug, Default)]
pub struct LakeCatalog {
    /// By their ids.
    pub sessions: BTreeMap<String, LakeSession>,
    /// The joined objects whose sources are in the lake as they were when they were joined.
    pub joined: Vec<JoinedEvents>,
    /// Keys of the joined objects with the rows of sessions, under the same condition.
    joined_rows: Vec<String>,
    /// The listings and sessions that are left out because they are not valid, and why.
    pub problems: Vec<String>,
    versions: LakeVersions,
}

/// By what a lake is known to be unchanged.
#[derive(Debug, Default, PartialEq, Eq)]
struct LakeVersions {
    /// Versions of the listings, by machine.
    machines: BTreeMap<String, String>,
    /// Versions of the manifests, by day.
    days: BTreeMap<String, String>,
}

/// A session of a lake.
#[derive(Debug)]
pub struct LakeSession {
    pub provider: Provider,
    pub row: LakeRow,
    /// The objects with its events.
    pub objects: Vec<LakeEvents>,
}

/// The object with the row of a session.
#[derive(Debug)]
pub struct LakeRow {
    pub key: String,
    pub bytes: u64,
    pub sha256: String,
    /// The day of the last events, as YYYY-MM-DD; `None` if the session has no events.
    pub date: Option<String>,
    /// True if a joined object has the row.
    is_joined: bool,
}

/// An object with events of one session on one day.
#[derive(Debug)]
pub struct LakeEvents {
    pub key: String,
    pub bytes: u64,
    pub sha256: String,
    /// The key and the size of its skip index, if the lake has one.
    pub index: Option<(String, u64)>,
    /// Where a joined object has the same rows.
    pub joined: Option<JoinedPlace>,
}

/// The place of rows in a joined object.
#[derive(Debug, Clone)]
pub struct JoinedPlace {
    /// Position in [`LakeCatalog::joined`].
    pub object: usize,
    pub rows: Range<usize>,
}

/// An object with events of many sessions on one day.
#[derive(Debug)]
pub struct JoinedEvents {
    pub key: String,
    /// The key and the size of its skip index.
    pub index: (String, u64),
    /// Number of objects whose rows it has.
    pub sources: usize,
    /// Number of its rows.
    pub rows: usize,
}

impl LakeEvents {
    /// Returns the day of its events, as YYYY-MM-DD.
    pub fn date(&self) -> &str {
        events_date(&self.key).unwrap_or_default()
    }
}

impl LakeSession {
    /// Returns a session with the objects that a listing names. `None` if it names none.
    fn new(id: &str, listed: &ListedSession) -> Option<Self> {
        let row = listed.objects.first()?;
        let row = LakeRow {
            key: row.key.clone(),
            bytes: row.bytes,
            sha256: row.sha256.clone(),
            date: listed.last_date().map(str::to_owned),
            is_joined: false,
        };
        let mut indexes: HashMap<&str, u64> = HashMap::new();
        for object in &listed.objects {
            if is_index_key(&object.key, listed.provider, id) {
                indexes.insert(&object.key, object.bytes);
            }
        }
        let mut objects = Vec::new();
        for object in &listed.objects {
            if !is_events_key(&object.key, listed.provider, id) {
                continue;
            }
            let index = format!("{}.skip", object.key.trim_end_matches(".parquet"));
            let index = indexes.get(index.as_str()).map(|bytes| (index.clone(), *bytes));
            objects.push(LakeEvents {
                key: object.key.clone(),
                bytes: object.bytes,
                sha256: object.sha256.clone(),
                index,
                joined: None,
            });
        }
        Some(Self { provider: listed.provider, row, objects })
    }

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
        let versions =
            LakeVersions { machines: versions_of(&place.list(MACHINES)?), days: list_days(place)? };
        if known.is_some_and(|known| known.versions == versions) {
            return Ok(None);
        }
        let ids: Vec<&String> = versions.machines.keys().collect();
        let mut chosen: BTreeMap<String, ListedSession> = BTreeMap::new();
        let mut problems = Vec::new();
        for (id, listing) in
            ids.iter().zip(run_requests(&ids, |id| MachineListing::read(place, id))?)
        {
            match listing {
                ReadListing::Missing => {}
                ReadListing::Invalid(reason) => {
                    problems.push(format!("the listing of {id} was not read: {reason}"));
                }
                ReadListing::Valid(listing) => add_sessions(*listing, &mut chosen, &mut problems),
            }
        }
        let mut sessions = BTreeMap::new();
        for (id, listed) in chosen {
            sessions.extend(LakeSession::new(&id, &listed).map(|session| (id, session)));
        }
        let days = read_days(place, versions.days.keys())?;
        let mut catalog = Self { sessions, problems, versions, ..Self::default() };
        for day in &days {
            for object in day.objects.iter().filter(|object| has_files(place, object)) {
                catalog.add_joined(object);
            }
            for object in day.rows.iter().filter(|object| has_files(place, object)) {
                catalog.add_joined_rows(object);
            }
        }
        Ok(Some(catalog))
    }

    /// Adds a joined object with events, unless one of its sources changed or has another one.
    fn add_joined(&mut self, object: &JoinedObject) {
        let mut seen = HashSet::new();
        let is_current = object.sources.iter().all(|source| {
            let events = self.find_source(source);
            events.is_some_and(|events| events.joined.is_none()) && seen.insert(&source.key)
        });
        let Some(index) = object.index.as_ref().filter(|_| is_current) else { return };
        let mut start = 0;
        for source in &object.sources {
            let rows = start..start + source.rows;
            start = rows.end;
            let session = self.sessions.get_mut(&source.session);
            let mut objects = session.into_iter().flat_map(|session| &mut session.objects);
            if let Some(events) = objects.find(|events| events.key == source.key) {
                events.joined = Some(JoinedPlace { object: self.joined.len(), rows });
            }
        }
        self.joined.push(JoinedEvents {
            key: object.object.key.clone(),
            index: (index.key.clone(), index.bytes),
            sources: object.sources.len(),
            rows: start,
        });
    }

    /// Adds a joined object with the rows of sessions, unless one of them changed or is in another one.
    fn add_joined_rows(&mut self, object: &JoinedObject) {
        let mut seen = HashSet::new();
        let is_current = object.sources.iter().all(|source| {
            let row = self.find_row(source);
            row.is_some_and(|row| !row.is_joined) && seen.insert(&source.key)
        });
        if !is_current {
            return;
        }
        for source in &object.sources {
            if let Some(session) = self.sessions.get_mut(&source.session) {
                session.row.is_joined = true;
            }
        }
        self.joined_rows.push(object.object.key.clone());
    }

    /// Returns whether a listing names this object.
    pub(super) fn names_object(&self, session: &str, key: &str, sha256: &str) -> bool {
        let Some(session) = self.sessions.get(session) else { return false };
        let row = &session.row;
        let is_row = row.key == key && row.sha256 == sha256;
        is_row || session.objects.iter().any(|one| one.key == key && one.sha256 == sha256)
    }

    /// Returns whether readers use a joined object.
    pub(super) fn uses(&self, object: &JoinedObject) -> bool {
        let key = &object.object.key;
        self.joined.iter().any(|one| one.key == *key) || self.joined_rows.contains(key)
    }

    /// Returns whether the lake has a source as it was joined.
    pub(super) fn has_source(&self, source: &JoinedSource) -> bool {
        self.find_source(source).is_some() || self.find_row(source).is_some()
    }

    fn find_row(&self, source: &JoinedSource) -> Option<&LakeRow> {
        let row = &self.sessions.get(&source.session)?.row;
        (row.key == source.key && row.sha256 == source.sha256).then_some(row)
    }

    fn find_source(&self, source: &JoinedSource) -> Option<&LakeEvents> {
        let session = self.sessions.get(&source.session)?;
        let mut objects = session.objects.iter();
        objects.find(|events| events.key == source.key && events.sha256 == source.sha256)
    }

    /// Returns the keys of files with exactly the rows of all sessions.
    pub fn row_keys(&self) -> Vec<&str> {
        let joined = self.joined_rows.iter().map(String::as_str);
        let single = self.sessions.values().filter(|session| !session.row.is_joined);
        joined.chain(single.map(|session| session.row.key.as_str())).collect()
    }

    /// Returns the keys of files with exactly the rows of these objects: a joined object instead of
    /// its sources, if all of them are wanted.
    pub fn scanned_keys<'c>(
        &'c self,
        objects: impl Iterator<Item = &'c LakeEvents> + Clone,
    ) -> Vec<&'c str> {
        let mut wanted = vec![0; self.joined.len()];
        for place in objects.clone().filter_map(|events| events.joined.as_ref()) {
            wanted[place.object] += 1;
        }
        let is_whole = |at: usize| wanted[at] == self.joined[at].sources;
        let mut keys = Vec::new();
        for (at, joined) in self.joined.iter().enumerate() {
            if is_whole(at) {
                keys.push(joined.key.as_str());
            }
        }
        for events in objects {
            if !events.joined.as_ref().is_some_and(|place| is_whole(place.object)) {
                keys.push(&events.key);
            }
        }
        keys
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
        sessions: &[(String, Vec<RecordBatch>)],
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
        let marks = CopyMarks::AsPublished;
        let mut import = writer.import_sessions(redactor, marks).map_err(store_error)?;
        for (id, events) in sessions {
            let (Some(session), Some(source)) = (snapshot.session(id), sources.remove(id)) else {
                continue;
            };
            let row = SessionRow::clone(session.row().map_err(store_error)?);
            import.add_session(row, source, events).map_err(store_error)?;
        }
        import.finish_events().map_err(store_error)
    }
}

/// Adds the sessions that a machine publishes. Of two machines with one id, the one with more events is
/// taken, as by a pull of rows.
fn add_sessions(
    listing: MachineListing,
    chosen: &mut BTreeMap<String, ListedSession>,
    problems: &mut Vec<String>,
) {
    let MachineListing { machine, sessions, invalid, .. } = listing;
    for id in invalid.iter().take(MAX_NAMED_INVALID) {
        let id = shown_id(id);
        problems.push(format!("session {id} of {machine}: its entry in the listing is not valid"));
    }
    for (id, listed) in sessions {
        let is_longer = chosen.get(&id).is_none_or(|other| listed.events > other.events);
        if listed.is_own() && is_longer {
            chosen.insert(id, listed);
        }
    }
}

/// Returns whether the folder of a lake has the files of a joined object. A push that removes a
/// session may have removed them.
fn has_files(place: &LakePlace, object: &JoinedObject) -> bool {
    let Some(folder) = place.folder() else { return true };
    object.files().all(|file| {
        let found = std::fs::metadata(folder.join(&file.key));
        found.is_ok_and(|metadata| metadata.len() == file.bytes)
    })
}
