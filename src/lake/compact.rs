//! `sessions lake compact`: joins the many small objects of closed days into few large ones.
//!
//! The small objects stay: pushes, pulls and readers of one session use them. A joined object is a
//! copy for those who read much, and its manifest names its sources, the small objects. So the order
//! of requests decides nothing about answers: a reader that finds an object without a manifest, or one
//! whose sources changed, reads the small objects.
//!
//! Joined objects are named by their sources and equal for equal sources, so two compactions at once
//! write the same bytes. The manifest of a day is switched when its objects are complete. Objects that
//! it replaced are removed an hour later, for the sake of those who still read them. What a push
//! withdrew meanwhile is looked for after the last manifest: a push writes its listing before it reads
//! the manifests, so one of both sees the other, and removes the rows.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use arrow::array::RecordBatch;
use jiff::civil::Date;
use schemas::{Provider, Timestamp, ToolError};
use serde::Serialize;

use super::catalog::{LakeCatalog, LakeEvents};
use super::day_manifest::{
    DayManifest, JoinedObject, JoinedSource, UnusedObject, list_days, read_days,
};
use super::entry::sha256;
use super::listing::ListedObject;
use super::place::LakePlace;
use super::requests::run_requests;
use crate::error::store_error;
use crate::store::{JoinedFiles, JoinedWriter, LakeFile, day_folder, decode_events, joined_keys};

/// Bytes of small objects that are joined into one object.
const JOINED_BYTES: u64 = 32 << 20;

/// Most small objects of a joined object: one that changes makes the others be read one by one.
const MAX_SOURCES: usize = 4096;

/// Objects that are fetched at a time, and are in memory until they are joined.
const FETCHED_AT_A_TIME: usize = 8;

/// Time for which an object that was replaced stays for its readers, in microseconds.
const UNUSED_FOR_US: i64 = 3_600_000_000;

/// Version of the form of joined objects. Another one gives them other names.
const JOINED_VERSION: u32 = 1;

/// What a compaction did.
#[derive(Debug, Default, Serialize)]
pub struct LakeCompaction {
    pub destination: String,
    /// Closed days that have events.
    pub days: usize,
    /// Days whose manifest was switched.
    pub changed_days: usize,
    /// Joined objects that were written.
    pub written: usize,
    /// Bytes of these with their indexes.
    pub bytes: u64,
    /// Objects of sessions whose rows they have.
    pub joined: usize,
    /// Joined objects that stay as they were.
    pub unchanged: usize,
    /// Objects that nobody needs and were removed, with their indexes.
    pub removed: usize,
    /// Objects of sessions that a push changed or removed meanwhile. The next compaction joins them.
    pub left_out: usize,
    pub requests: u64,
}

/// An object of a session that may be joined.
struct Source<'c> {
    session: &'c str,
    provider: Provider,
    events: &'c LakeEvents,
}

/// The objects of a day.
#[derive(Default)]
struct Day<'c> {
    /// In the order of sessions and keys.
    sources: Vec<Source<'c>>,
}

impl Day<'_> {
    /// Returns whether a joined object stays as it is when more objects come.
    fn is_large(&self, object: &JoinedObject) -> bool {
        let wanted: HashSet<&str> =
            object.sources.iter().map(|source| source.key.as_str()).collect();
        let sources = self.sources.iter().map(|source| source.events);
        let sources = sources.filter(|events| wanted.contains(events.key.as_str()));
        let bytes: u64 = sources.map(|events| events.bytes).sum();
        bytes >= JOINED_BYTES / 2 || wanted.len() >= MAX_SOURCES / 2
    }
}

/// Joins the objects of the days that ended before `now`, in UTC.
///
/// # Errors
/// Fails if the lake cannot be reached. What was done until then stays, and another compaction
/// continues.
pub fn compact_lake(place: &LakePlace, now: Timestamp) -> Result<LakeCompaction, ToolError> {
    let catalog = LakeCatalog::read(place, None)?.unwrap_or_default();
    let mut compaction = Compaction {
        place,
        now,
        catalog: &catalog,
        report: LakeCompaction { destination: place.name().to_owned(), ..Default::default() },
    };
    let mut days = compaction.closed_days();
    compaction.report.days = days.len();
    let mut manifests = BTreeMap::new();
    let dates = list_days(place)?;
    for (date, manifest) in dates.keys().zip(read_days(place, dates.keys())?) {
        days.entry(date.clone()).or_default();
        manifests.insert(date.clone(), manifest);
    }
    let mut changed = BTreeSet::new();
    for (date, day) in &days {
        let before = manifests.remove(date).unwrap_or_else(|| DayManifest::new(date));
        if compaction.compact_day(date, day, before)? {
            changed.insert(date.clone());
        }
    }
    let mut report = compaction.report;
    report.changed_days = changed.len();
    if report.written > 0
        && let Some(now) = LakeCatalog::read(place, Some(&catalog))?
    {
        report.removed += remove_withdrawn(place, &now, &changed)?;
    }
    report.requests = place.requests();
    Ok(report)
}

/// Removes the joined objects of these days with rows that a push changed or removed while they were
/// written. Returns the number of files.
fn remove_withdrawn(
    place: &LakePlace,
    catalog: &LakeCatalog,
    dates: &BTreeSet<String>,
) -> Result<usize, ToolError> {
    let mut removed = 0;
    for mut manifest in read_days(place, dates.iter())? {
        let is_outdated = |source: &JoinedSource| !catalog.has_source(source);
        removed += 2 * manifest.remove_outdated(place, &is_outdated)?;
    }
    Ok(removed)
}

/// A compaction that runs.
struct Compaction<'c> {
    place: &'c LakePlace,
    now: Timestamp,
    catalog: &'c LakeCatalog,
    report: LakeCompaction,
}

impl<'c> Compaction<'c> {
    /// Returns the objects of the days that are over.
    fn closed_days(&self) -> BTreeMap<String, Day<'c>> {
        let text = self.now.to_string();
        let today = text.split('T').next().and_then(|date| date.parse::<Date>().ok());
        let mut days: BTreeMap<String, Day<'c>> = BTreeMap::new();
        for (id, session) in &self.catalog.sessions {
            for events in &session.objects {
                let date = events.date().parse::<Date>().ok();
                if date.zip(today).is_none_or(|(date, today)| date >= today) {
                    continue;
                }
                let source = Source { session: id, provider: session.provider, events };
                days.entry(events.date().to_owned()).or_default().sources.push(source);
            }
        }
        days
    }

    /// Joins what a day has. Returns whether its manifest was switched.
    fn compact_day(
        &mut self,
        date: &str,
        day: &Day<'c>,
        before: DayManifest,
    ) -> Result<bool, ToolError> {
        let listed = self.place.list(&day_folder(date))?;
        let listed: HashSet<&str> = listed.iter().map(|object| object.key.as_str()).collect();
        let mut current: HashMap<&str, &JoinedObject> = HashMap::new();
        for object in &before.objects {
            let is_current = self.catalog.joined.iter().any(|one| one.key == object.events.key);
            if is_current && object.keys().iter().all(|key| listed.contains(key)) {
                current.insert(&object.events.key, object);
            }
        }

        let mut after = DayManifest::new(date);
        // Small ones are joined again with what came later.
        for object in current.values().filter(|object| day.is_large(object)) {
            after.objects.push((*object).clone());
        }
        let kept = after.objects.iter().flat_map(|object| &object.sources);
        let kept: HashSet<&str> = kept.map(|source| source.key.as_str()).collect();
        let mut rest = Vec::new();
        for source in &day.sources {
            let events = source.events;
            if events.bytes < JOINED_BYTES / 2 && !kept.contains(events.key.as_str()) {
                rest.push(source);
            }
        }
        let mut joined = Vec::new();
        for group in split_groups(&rest) {
            match current.get(name_group(date, group)[0].as_str()) {
                Some(object) => joined.push((*object).clone()),
                None => joined.extend(self.join_group(date, group, &current)?),
            }
        }
        after.objects.extend(joined);
        after.objects.sort_by(|a, b| a.events.key.cmp(&b.events.key));
        let kept = after.objects.iter().filter(|one| current.contains_key(one.events.key.as_str()));
        self.report.unchanged += kept.count();
        self.switch_manifest(&before, after, &listed)
    }

    /// Replaces the manifest of a day, and removes the objects that nobody reads any more. Returns
    /// whether it was another one.
    fn switch_manifest(
        &mut self,
        before: &DayManifest,
        mut after: DayManifest,
        listed: &HashSet<&str>,
    ) -> Result<bool, ToolError> {
        let named: HashSet<String> =
            after.objects.iter().flat_map(JoinedObject::keys).map(str::to_owned).collect();
        let is_outdated = |source: &JoinedSource| !self.catalog.has_source(source);
        let outdated = before.objects.iter().filter(|one| one.sources.iter().any(is_outdated));
        let outdated: HashSet<&str> = outdated.flat_map(JoinedObject::keys).collect();
        let mut removed = Vec::new();
        let mut unused: Vec<&str> =
            listed.iter().copied().filter(|key| !named.contains(*key)).collect();
        unused.sort_unstable();
        for key in unused {
            let known = before.unused.iter().find(|unused| unused.key == key);
            let since = known.map_or(self.now.0, |unused| unused.since);
            if outdated.contains(key) || self.now.0 - since >= UNUSED_FOR_US {
                removed.push(key);
            } else {
                after.unused.push(UnusedObject { key: key.to_owned(), since });
            }
        }
        let is_changed = after != *before;
        if is_changed {
            after.write(self.place)?;
        }
        for key in &removed {
            self.place.delete(key)?;
        }
        self.report.removed += removed.len();
        Ok(is_changed)
    }

    /// Joins small objects and writes the large one. `None` if too few of them are still there.
    fn join_group(
        &mut self,
        date: &str,
        group: &[&Source<'c>],
        current: &HashMap<&str, &JoinedObject>,
    ) -> Result<Option<JoinedObject>, ToolError> {
        let mut writer = JoinedWriter::new().map_err(store_error)?;
        let mut joined: Vec<&Source<'c>> = Vec::new();
        let mut sources = Vec::new();
        for some in group.chunks(FETCHED_AT_A_TIME) {
            let fetched = run_requests(some, |source| fetch_source(self.place, source))?;
            for (source, events) in some.iter().zip(fetched) {
                let Some(events) = events else {
                    self.report.left_out += 1;
                    continue;
                };
                writer.push(&events).map_err(store_error)?;
                joined.push(source);
                sources.push(JoinedSource {
                    session: source.session.to_owned(),
                    key: source.events.key.clone(),
                    sha256: source.events.sha256.clone(),
                    rows: events.num_rows(),
                });
            }
        }
        if joined.len() < 2 {
            return Ok(None);
        }
        let [events, index] = name_group(date, &joined);
        if let Some(object) = current.get(events.as_str()) {
            return Ok(Some((*object).clone()));
        }
        let JoinedFiles { events: rows, index: skips } = writer.finish().map_err(store_error)?;
        let files = [LakeFile { key: events, bytes: rows }, LakeFile { key: index, bytes: skips }];
        let [events, index] = files.each_ref().map(ListedObject::of);
        for file in files {
            self.report.bytes += file.bytes.len() as u64;
            self.place.put(&file.key, file.bytes)?;
        }
        self.report.written += 1;
        self.report.joined += sources.len();
        Ok(Some(JoinedObject { events, index, sources }))
    }
}

/// Reads an object of a session. `None` if it is not there any more as the listing says, or not valid.
fn fetch_source(place: &LakePlace, source: &Source<'_>) -> Result<Option<RecordBatch>, ToolError> {
    let LakeEvents { key, bytes, sha256, .. } = source.events;
    let object = ListedObject { key: key.clone(), bytes: *bytes, sha256: sha256.clone() };
    let Ok(content) = object.read(place)? else { return Ok(None) };
    Ok(decode_events(content, source.session, source.provider).ok())
}

/// Splits the objects of a day into groups that are joined. One object alone is not.
fn split_groups<'s, 'c>(sources: &'s [&'s Source<'c>]) -> Vec<&'s [&'s Source<'c>]> {
    let mut groups = Vec::new();
    let mut start = 0;
    let mut bytes = 0;
    for (at, source) in sources.iter().enumerate() {
        bytes += source.events.bytes;
        if bytes >= JOINED_BYTES || at + 1 - start == MAX_SOURCES || at + 1 == sources.len() {
            groups.push(&sources[start..=at]);
            start = at + 1;
            bytes = 0;
        }
    }
    groups.retain(|group| group.len() > 1);
    groups
}

/// Returns the keys of the joined object of a group and of its index. They follow from the content of
/// the group.
fn name_group(date: &str, group: &[&Source<'_>]) -> [String; 2] {
    let mut text = format!("{JOINED_VERSION}\n");
    for source in group {
        text.push_str(&source.events.key);
        text.push(' ');
        text.push_str(&source.events.sha256);
        text.push('\n');
    }
    let mut hash = sha256(text.as_bytes());
    hash.truncate(32);
    joined_keys(date, &hash)
}
