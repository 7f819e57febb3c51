//! The joined objects of a day. Each has the events of many sessions, or their rows, which are in the
//! lake as objects of their own, too.
//!
//! ```text
//! {"version":1,"date":"2026-10-14","objects":[{
//!   "object":{"key":"v1/days/2026-10-14/5f0c...parquet","bytes":51200,"sha256":".."},
//!   "index":{"key":"v1/days/2026-10-14/5f0c...skip","bytes":20480,"sha256":".."},
//!   "sources":[{"session":"9ae8..","key":"v1/events/..-0-0f3c..parquet","sha256":"..","rows":12}]}],
//!  "rows":[{"object":{..},"sources":[{"session":"9ae8..","key":"v1/sessions/..parquet","sha256":"..","rows":1}]}]}
//! ```
//!
//! Invariant: a joined object repeats what its sources say, and is used only while the listings name
//! all of them with these hashes. So it may be removed at any time, and one that is outdated changes
//! no answer.

use std::collections::{BTreeMap, HashSet};

use schemas::ToolError;
use serde::{Deserialize, Serialize};

use super::listing::ListedObject;
use super::objects::ObjectContent;
use super::place::LakePlace;
use super::requests::run_requests;
use store::{DAYS, MAX_OBJECT_BYTES, day_key, is_joined_key, json_name};

/// Version of the manifests. Newer ones are not read.
const MANIFEST_VERSION: u32 = 1;

/// Most rows of a source. Sums over all sources of an object fit into 64 bits.
const MAX_ROWS: usize = 1 << 30;

/// Most sources of a joined object that is read.
const MAX_JOINED_SOURCES: usize = 1 << 20;

/// What the sources of a joined object have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JoinedKind {
    /// The rows of sessions whose last events are of the day.
    Rows,
    /// The events of the day.
    Events,
}

impl JoinedKind {
    /// All kinds. The row of a session is read before its last events.
    pub(super) const ALL: [Self; 2] = [Self::Rows, Self::Events];
}

/// The joined objects of a day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayManifest {
    version: u32,
    date: String,
    /// Those with events, by their keys.
    pub objects: Vec<JoinedObject>,
    /// Those with rows of sessions, by their keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<JoinedObject>,
    /// Objects that were replaced. Readers that began before may still use them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) unused: Vec<UnusedObject>,
}

/// An object with events or rows of many sessions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedObject {
    pub object: ListedObject,
    /// The skip index of events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<ListedObject>,
    /// The objects whose rows it has, in the order of the rows.
    pub sources: Vec<JoinedSource>,
}

/// An object of one session that a joined object repeats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JoinedSource {
    /// Id of the session in the lake.
    pub session: String,
    pub key: String,
    pub sha256: String,
    /// Number of its rows.
    pub rows: usize,
}

/// An object that no manifest needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct UnusedObject {
    pub(super) key: String,
    /// When a compaction first saw that it is not needed, in microseconds since the epoch.
    pub(super) since: i64,
    /// The objects whose rows it has, if a manifest named it: when one of them is withdrawn, it goes, too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) sources: Vec<JoinedSource>,
}

impl DayManifest {
    /// Returns the manifest of a day without joined objects.
    pub(super) fn new(date: &str) -> Self {
        Self { version: MANIFEST_VERSION, date: date.to_owned(), ..Self::default() }
    }

    /// Returns the joined objects of a kind.
    pub(super) fn of(&self, kind: JoinedKind) -> &Vec<JoinedObject> {
        match kind {
            JoinedKind::Events => &self.objects,
            JoinedKind::Rows => &self.rows,
        }
    }

    /// Replaces the joined objects of a kind.
    pub(super) fn set(&mut self, kind: JoinedKind, mut objects: Vec<JoinedObject>) {
        objects.sort_by(|a, b| a.object.key.cmp(&b.object.key));
        match kind {
            JoinedKind::Events => self.objects = objects,
            JoinedKind::Rows => self.rows = objects,
        }
    }

    /// Returns all joined objects.
    pub(super) fn all(&self) -> impl Iterator<Item = &JoinedObject> {
        self.objects.iter().chain(&self.rows)
    }

    /// Reads the manifest of a day; an empty one if there is none, or if it is not valid.
    pub(super) fn read(place: &LakePlace, date: &str) -> Result<Self, ToolError> {
        let parsed = match place.get(&day_key(date), MAX_OBJECT_BYTES)? {
            ObjectContent::Whole(bytes) => parse_day_manifest(&bytes, date).ok(),
            ObjectContent::Missing | ObjectContent::Unreadable(_) => None,
        };
        Ok(parsed.unwrap_or_else(|| Self::new(date)))
    }

    /// Replaces the manifest in the lake, or removes it if it says nothing.
    pub(super) fn write(&self, place: &LakePlace) -> Result<(), ToolError> {
        let key = day_key(&self.date);
        if self.all().next().is_none() && self.unused.is_empty() {
            return place.delete(&key);
        }
        place.put(&key, serde_json::to_vec(self).unwrap_or_default())
    }

    /// Takes the objects out of the manifest that have a source which `is_outdated`, and then removes
    /// them from the lake. Returns the number of files.
    pub(super) fn remove_outdated(
        &mut self,
        place: &LakePlace,
        is_outdated: &dyn Fn(&JoinedSource) -> bool,
    ) -> Result<usize, ToolError> {
        let mut removed: Vec<String> = Vec::new();
        for objects in [&mut self.objects, &mut self.rows] {
            objects.retain(|object| {
                let is_kept = !object.sources.iter().any(is_outdated);
                if !is_kept {
                    removed.extend(object.keys().map(str::to_owned));
                }
                is_kept
            });
        }
        self.unused.retain(|unused| {
            let is_kept = !unused.sources.iter().any(is_outdated);
            if !is_kept {
                removed.push(unused.key.clone());
            }
            is_kept
        });
        if removed.is_empty() {
            return Ok(0);
        }
        self.write(place)?;
        for key in &removed {
            place.delete(key)?;
        }
        Ok(removed.len())
    }
}

impl JoinedObject {
    /// Returns the keys of the object and of its index.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.files().map(|file| file.key.as_str())
    }

    /// Returns the object and its index.
    pub(super) fn files(&self) -> impl Iterator<Item = &ListedObject> {
        std::iter::once(&self.object).chain(&self.index)
    }

    /// Returns the number of its rows.
    pub(super) fn row_count(&self) -> usize {
        self.sources.iter().map(|source| source.rows).sum()
    }

    /// Returns whether its keys are those of the day, and its sizes are allowed.
    fn is_valid(&self, kind: JoinedKind, date: &str) -> bool {
        let has_form = match (kind, &self.index) {
            (JoinedKind::Events, Some(index)) => index.key.ends_with(".skip"),
            (JoinedKind::Rows, None) => self.sources.iter().all(|source| source.rows == 1),
            (JoinedKind::Events, None) | (JoinedKind::Rows, Some(_)) => false,
        };
        has_form
            && self.object.key.ends_with(".parquet")
            && self.keys().all(|key| is_joined_key(key, date))
            && self.files().all(|file| file.bytes <= MAX_OBJECT_BYTES)
            && self.sources.len() <= MAX_JOINED_SOURCES
            && self.sources.iter().all(|source| source.rows <= MAX_ROWS)
    }
}

/// Returns the versions of the manifests of a lake, by day.
pub(super) fn list_days(place: &LakePlace) -> Result<BTreeMap<String, String>, ToolError> {
    let mut days = BTreeMap::new();
    for object in place.list(DAYS)? {
        if let Some(date) = json_name(&object.key, DAYS) {
            days.insert(date.to_owned(), object.version);
        }
    }
    Ok(days)
}

/// Reads the manifests of days.
pub(super) fn read_days<'d>(
    place: &LakePlace,
    dates: impl Iterator<Item = &'d String>,
) -> Result<Vec<DayManifest>, ToolError> {
    let dates: Vec<&String> = dates.collect();
    run_requests(&dates, |date| DayManifest::read(place, date))
}

/// Removes the joined objects of these days, or of all days, with a source that `is_outdated`. Returns
/// the number of files.
pub(super) fn remove_outdated_objects(
    place: &LakePlace,
    dates: Option<&HashSet<&str>>,
    is_outdated: &dyn Fn(&JoinedSource) -> bool,
) -> Result<usize, ToolError> {
    if dates.is_some_and(HashSet::is_empty) {
        return Ok(0);
    }
    let includes = |date: &str| dates.is_none_or(|dates| dates.contains(date));
    let mut removed = 0;
    for date in list_days(place)?.keys().filter(|date| includes(date)) {
        removed += DayManifest::read(place, date)?.remove_outdated(place, is_outdated)?;
    }
    Ok(removed)
}

/// Parses the manifest of a day.
///
/// # Errors
/// Returns the reason if it is not a manifest of this day, or if it names objects that are not those
/// of the day.
pub fn parse_day_manifest(bytes: &[u8], date: &str) -> Result<DayManifest, String> {
    let manifest: DayManifest = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if manifest.version != MANIFEST_VERSION {
        return Err(format!("it has version {}, not {MANIFEST_VERSION}", manifest.version));
    }
    if manifest.date != date {
        return Err("it belongs to another day".to_owned());
    }
    let unused = manifest.unused.iter().map(|unused| unused.key.as_str());
    if let Some(key) = unused.into_iter().find(|key| !is_joined_key(key, date)) {
        return Err(format!("'{}' is not an object of the day", key.escape_debug()));
    }
    for kind in JoinedKind::ALL {
        if let Some(wrong) = manifest.of(kind).iter().find(|object| !object.is_valid(kind, date)) {
            return Err(format!("its object '{}' is not valid", wrong.object.key.escape_debug()));
        }
    }
    Ok(manifest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::joined_keys;

    const DATE: &str = "2026-10-14";

    fn manifest(keys: [&str; 2]) -> DayManifest {
        let [object, index] =
            keys.map(|key| ListedObject { key: key.to_owned(), bytes: 3, sha256: String::new() });
        let source = JoinedSource {
            session: "s1".into(),
            key: "v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123456789abcdef.parquet"
                .into(),
            sha256: "a1".into(),
            rows: 3,
        };
        let row = JoinedSource {
            key: "v1/sessions/p_provider=codex/s1/m1-0123456789abcdef.parquet".into(),
            rows: 1,
            ..source.clone()
        };
        let rows = JoinedObject { object: object.clone(), index: None, sources: vec![row] };
        let events = JoinedObject { object, index: Some(index), sources: vec![source] };
        DayManifest { objects: vec![events], rows: vec![rows], ..DayManifest::new(DATE) }
    }

    #[test]
    fn a_manifest_comes_back_and_foreign_keys_are_refused() {
        let [events, index] = joined_keys(DATE, "a1");
        let good = manifest([&events, &index]);
        let bytes = serde_json::to_vec(&good).expect("encodes");
        assert_eq!(parse_day_manifest(&bytes, DATE), Ok(good.clone()));
        assert!(parse_day_manifest(&bytes, "2026-10-15").is_err());
        let mut indexed = good.clone();
        indexed.rows[0].index = indexed.objects[0].index.clone();
        let mut long = good.clone();
        long.rows[0].sources[0].rows = 2;
        let mut bare = good.clone();
        bare.objects[0].index = None;
        for wrong in [indexed, long, bare] {
            let bytes = serde_json::to_vec(&wrong).expect("encodes");
            assert!(parse_day_manifest(&bytes, DATE).is_err(), "{wrong:?}");
        }
        let mut unused = good;
        unused.unused.push(UnusedObject {
            key: "v1/machines/a.json".into(),
            since: 0,
            sources: Vec::new(),
        });
        let bytes = serde_json::to_vec(&unused).expect("encodes");
        assert!(parse_day_manifest(&bytes, DATE).is_err());
        for keys in [
            ["v1/events/p_provider=codex/p_date=2026-10-14/s1-0-0123456789abcdef.parquet", &index],
            ["v1/days/2026-10-14/../a.parquet", &index],
            [&events, "v1/days/2026-10-15/a1.skip"],
            [&index, &events],
        ] {
            let bytes = serde_json::to_vec(&manifest(keys)).expect("encodes");
            assert!(parse_day_manifest(&bytes, DATE).is_err(), "{keys:?}");
        }
    }

    #[test]
    fn an_object_with_an_outdated_source_is_removed() {
        let dir = tempfile::tempdir().expect("tempdir");
        let place = LakePlace::open(&dir.path().to_string_lossy()).expect("a place");
        let [events, index] = joined_keys(DATE, "a1");
        for key in [&events, &index] {
            place.put(key, vec![1]).expect("writes");
        }
        let mut written = manifest([&events, &index]);
        // A replaced object repeats the source, too.
        let [replaced, _] = joined_keys(DATE, "b2");
        place.put(&replaced, vec![1]).expect("writes");
        written.unused.push(UnusedObject {
            key: replaced.clone(),
            since: 0,
            sources: written.objects[0].sources.clone(),
        });
        written.write(&place).expect("writes");
        let dates = HashSet::from([DATE]);
        let kept = remove_outdated_objects(&place, Some(&dates), &|source| source.sha256 != "a1");
        assert_eq!(kept.expect("removes"), 0);
        let removed = remove_outdated_objects(&place, None, &|source| source.session == "s1");
        assert_eq!(removed.expect("removes"), 4);
        assert_eq!(place.get(&replaced, 9).expect("reads"), ObjectContent::Missing);
        assert_eq!(place.get(&events, 9).expect("reads"), ObjectContent::Missing);
        assert!(list_days(&place).expect("lists").is_empty());
    }
}
