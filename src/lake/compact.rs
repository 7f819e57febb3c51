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

use jiff::civil::Date;
use schemas::{Timestamp, ToolError};
use serde::Serialize;

use super::catalog::LakeCatalog;
use super::day_manifest::{
    DayManifest, JoinedKind, JoinedObject, JoinedSource, UnusedObject, list_days, read_days,
};
use super::join_group::{
    GroupWriter, JOINED_BYTES, JoinSource, is_large, name_group, split_groups,
};
use super::listing::{ListedObject, shown_id};
use super::place::LakePlace;
use super::requests::run_requests;
use store::day_folder;

/// Objects that are fetched at a time, and are in memory until they are joined.
const FETCHED_AT_A_TIME: usize = 8;

/// Time for which an object that was replaced stays for its readers, in microseconds.
const UNUSED_FOR_US: i64 = 3_600_000_000;

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
    /// Objects of sessions that they repeat: those with events, and the rows of sessions.
    pub joined: usize,
    /// Joined objects that stay as they were.
    pub unchanged: usize,
    /// Objects that were removed because they are no longer needed, with their indexes.
    pub removed: usize,
    /// Objects of sessions that a push changed or removed meanwhile, which the next compaction joins, and
    /// those that are not valid.
    pub left_out: usize,
    /// What is not valid, and why.
    pub problems: Vec<String>,
    pub requests: u64,
}

/// The objects of a day, in the order of sessions and keys.
#[derive(Default)]
struct Day<'c> {
    events: Vec<JoinSource<'c>>,
    /// The rows of the sessions whose last events are of the day.
    rows: Vec<JoinSource<'c>>,
}

impl<'c> Day<'c> {
    fn sources(&self, kind: JoinedKind) -> &[JoinSource<'c>] {
        match kind {
            JoinedKind::Events => &self.events,
            JoinedKind::Rows => &self.rows,
        }
    }
}

/// Joins the objects of the days that ended before `now`, in UTC.
///
/// # Errors
/// Fails if the lake cannot be reached. What was done until then stays, and another compaction
/// continues.
pub fn compact_lake(place: &LakePlace, now: Timestamp) -> Result<LakeCompaction, ToolError> {
    let catalog = LakeCatalog::read(place, None)?.unwrap_or_default();
    let mut compaction = CompactionRun {
        place,
        now,
        catalog: &catalog,
        written: Vec::new(),
        unreadable: Vec::new(),
        report: LakeCompaction {
            destination: place.name().to_owned(),
            problems: catalog.problems.clone(),
            ..Default::default()
        },
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
    let unreadable = std::mem::take(&mut compaction.unreadable);
    let written = std::mem::take(&mut compaction.written);
    let mut report = compaction.report;
    report.changed_days = changed.len();
    if report.written == 0 && unreadable.is_empty() {
        report.requests = place.requests();
        return Ok(report);
    }
    let now = LakeCatalog::read(place, Some(&catalog))?;
    for Unreadable { session, key, sha256, reason } in unreadable {
        // A push may have removed it since.
        if now.as_ref().unwrap_or(&catalog).names_object(session, key, sha256) {
            report.problems.push(format!("session {}: {reason}", shown_id(session)));
        }
    }
    if let Some(now) = now {
        report.removed += remove_withdrawn(place, &now, &changed)?;
        // A push that replaced a manifest at the same time may have taken the object out of it again.
        let is_outdated = |source: &JoinedSource| !now.has_source(source);
        for object in written.iter().filter(|one| one.sources.iter().any(is_outdated)) {
            for key in object.keys() {
                place.delete(key)?;
            }
        }
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
        removed += manifest.remove_outdated(place, &is_outdated)?;
    }
    Ok(removed)
}

/// An object of a session that could not be joined.
struct Unreadable<'c> {
    session: &'c str,
    key: &'c str,
    sha256: &'c str,
    reason: String,
}

/// A compaction that runs.
struct CompactionRun<'c> {
    place: &'c LakePlace,
    now: Timestamp,
    catalog: &'c LakeCatalog,
    /// The joined objects that were written.
    written: Vec<JoinedObject>,
    unreadable: Vec<Unreadable<'c>>,
    report: LakeCompaction,
}

impl<'c> CompactionRun<'c> {
    /// Returns the objects of the days that are over.
    fn closed_days(&self) -> BTreeMap<String, Day<'c>> {
        let text = self.now.to_string();
        let today = text.split('T').next().and_then(|date| date.parse::<Date>().ok());
        let is_closed = |date: &str| {
            let date = date.parse::<Date>().ok();
            date.zip(today).is_some_and(|(date, today)| date < today)
        };
        let mut days: BTreeMap<String, Day<'c>> = BTreeMap::new();
        for (id, session) in &self.catalog.sessions {
            let provider = session.provider;
            for events in session.objects.iter().filter(|events| is_closed(events.date())) {
                let source = JoinSource {
                    session: id,
                    provider,
                    key: &events.key,
                    bytes: events.bytes,
                    sha256: &events.sha256,
                };
                days.entry(events.date().to_owned()).or_default().events.push(source);
            }
            let row = &session.row;
            if let Some(date) = row.date.as_deref().filter(|date| is_closed(date)) {
                let source = JoinSource {
                    session: id,
                    provider,
                    key: &row.key,
                    bytes: row.bytes,
                    sha256: &row.sha256,
                };
                days.entry(date.to_owned()).or_default().rows.push(source);
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
        let mut after = DayManifest::new(date);
        for kind in JoinedKind::ALL {
            let mut current: HashMap<&str, &JoinedObject> = HashMap::new();
            for object in before.of(kind) {
                if self.catalog.uses(object) && object.keys().all(|key| listed.contains(key)) {
                    current.insert(&object.object.key, object);
                }
            }
            after.set(kind, self.join_sources(kind, date, day.sources(kind), &current)?);
        }
        self.switch_manifest(&before, after, &listed)
    }

    /// Joins the sources of a day that no current object has, or only a small one. Returns the joined
    /// objects that the day has then.
    fn join_sources(
        &mut self,
        kind: JoinedKind,
        date: &str,
        sources: &[JoinSource<'c>],
        current: &HashMap<&str, &JoinedObject>,
    ) -> Result<Vec<JoinedObject>, ToolError> {
        let mut after: Vec<JoinedObject> = Vec::new();
        // Small ones are joined again with what came later.
        for object in current.values().filter(|object| is_large(object, sources)) {
            after.push((*object).clone());
        }
        let kept = after.iter().flat_map(|object| &object.sources);
        let kept: HashSet<&str> = kept.map(|source| source.key.as_str()).collect();
        let rest = sources.iter();
        let rest = rest.filter(|one| one.bytes < JOINED_BYTES / 2 && !kept.contains(one.key));
        let rest: Vec<&JoinSource<'c>> = rest.collect();
        let mut joined = Vec::new();
        for group in split_groups(&rest) {
            match current.get(name_group(kind, date, group)[0].as_str()) {
                Some(object) => joined.push((*object).clone()),
                None => joined.extend(self.join_group(kind, date, group, current)?),
            }
        }
        after.extend(joined);
        let kept = after.iter().filter(|one| current.contains_key(one.object.key.as_str()));
        self.report.unchanged += kept.count();
        Ok(after)
    }

    /// Replaces the manifest of a day, and removes the objects that are no longer read. Returns
    /// whether it was another one.
    fn switch_manifest(
        &mut self,
        before: &DayManifest,
        mut after: DayManifest,
        listed: &HashSet<&str>,
    ) -> Result<bool, ToolError> {
        let named: HashSet<String> =
            after.all().flat_map(JoinedObject::keys).map(str::to_owned).collect();
        let is_outdated = |source: &JoinedSource| !self.catalog.has_source(source);
        let mut sources_of: HashMap<&str, &[JoinedSource]> = HashMap::new();
        for object in before.all() {
            sources_of.extend(object.keys().map(|key| (key, object.sources.as_slice())));
        }
        for object in &before.unused {
            sources_of.entry(&object.key).or_insert(&object.sources);
        }
        let mut removed = Vec::new();
        let mut unused: Vec<&str> =
            listed.iter().copied().filter(|key| !named.contains(*key)).collect();
        unused.sort_unstable();
        for key in unused {
            let known = before.unused.iter().find(|unused| unused.key == key);
            let since = known.map_or(self.now.0, |unused| unused.since);
            let sources = sources_of.get(key).copied().unwrap_or_default();
            if sources.iter().any(is_outdated) || self.now.0 - since >= UNUSED_FOR_US {
                removed.push(key);
            } else {
                let sources = sources.to_vec();
                after.unused.push(UnusedObject { key: key.to_owned(), since, sources });
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
        kind: JoinedKind,
        date: &str,
        group: &[&JoinSource<'c>],
        current: &HashMap<&str, &JoinedObject>,
    ) -> Result<Option<JoinedObject>, ToolError> {
        let mut writer = GroupWriter::new()?;
        let mut joined: Vec<&JoinSource<'c>> = Vec::new();
        let mut sources = Vec::new();
        for some in group.chunks(FETCHED_AT_A_TIME) {
            let fetched = run_requests(some, |source| source.fetch(kind, self.place))?;
            for (source, content) in some.iter().zip(fetched) {
                let content = match content {
                    Ok(content) => content,
                    Err(reason) => {
                        self.report.left_out += 1;
                        let JoinSource { session, key, sha256, .. } = **source;
                        self.unreadable.push(Unreadable { session, key, sha256, reason });
                        continue;
                    }
                };
                joined.push(source);
                sources.push(JoinedSource {
                    session: source.session.to_owned(),
                    key: source.key.to_owned(),
                    sha256: source.sha256.to_owned(),
                    rows: content.row_count(),
                });
                writer.push(content)?;
            }
        }
        if joined.len() < 2 {
            return Ok(None);
        }
        let keys = name_group(kind, date, &joined);
        if let Some(object) = current.get(keys[0].as_str()) {
            return Ok(Some((*object).clone()));
        }
        let files = writer.finish(kind, keys)?;
        let mut listed = files.iter().map(ListedObject::of);
        let Some(object) = listed.next() else { return Ok(None) };
        let index = listed.next();
        for file in files {
            self.report.bytes += file.bytes.len() as u64;
            self.place.put(&file.key, file.bytes)?;
        }
        self.report.written += 1;
        self.report.joined += sources.len();
        let object = JoinedObject { object, index, sources };
        self.written.push(object.clone());
        Ok(Some(object))
    }
}
