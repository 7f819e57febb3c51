//! A push: selects the sessions, keeps the listing of this machine, and removes what it no longer
//! names.

use std::collections::{BTreeSet, HashMap, HashSet};

use ingest::plan::rules_version;
use ingest::redact::Redactor;
use schemas::{ErrorCode, Provider, ToolError};

use super::report::{PushOptions, PushReport};
use crate::error::store_error;
use crate::lake::day_manifest::remove_outdated_objects;
use crate::lake::listing::{ListedObject, MachineListing, parse_listing};
use crate::lake::objects::ObjectInfo;
use crate::lake::place::LakePlace;
use crate::lake::publisher::Publisher;
use crate::lake::selection::{OwnSession, ProjectRules};
use crate::lake::state::LakeState;
use crate::store::{
    Identity, LakeContent, MACHINES, RowsToMask, Snapshot, Store, events_date, is_events_key,
    is_index_key, listing_key, session_key, tombstone_key,
};

/// A push that runs.
pub(super) struct Push<'a> {
    pub(super) store: &'a Store,
    pub(super) place: &'a LakePlace,
    pub(super) options: &'a PushOptions,
    pub(super) redactor: &'a Redactor,
    /// Version of the rules of `redactor`.
    pub(super) rules: i64,
    pub(super) snapshot: &'a Snapshot,
    pub(super) identity: &'a Identity,
    pub(super) content: LakeContent,
    pub(super) state: LakeState,
    /// The listing as it is in the lake; `None` if there is none.
    pub(super) before: Option<MachineListing>,
    /// The listing as it will be.
    pub(super) listing: MachineListing,
    pub(super) publisher: Publisher<'a>,
    /// Every session of this machine.
    pub(super) own: &'a [OwnSession<'a>],
    /// The positions in `own` of the sessions that are published.
    pub(super) selected: Vec<usize>,
    /// Identities of the logs that were forgotten here, with their times.
    pub(super) forgotten: HashMap<String, i64>,
    /// Keys that the listing no longer names.
    pub(super) unused: BTreeSet<String>,
    /// Keys that an earlier push was about to write or to remove.
    unfinished: BTreeSet<String>,
    pub(super) report: PushReport,
}

impl<'a> Push<'a> {
    /// Selects the sessions and reads the listing of this machine.
    pub(super) fn prepare(
        store: &'a Store,
        place: &'a LakePlace,
        options: &'a PushOptions,
        redactor: &'a Redactor,
        snapshot: &'a Snapshot,
        own: &'a [OwnSession<'a>],
        mut state: LakeState,
    ) -> Result<Self, ToolError> {
        let identity = store.identity();
        let projects = ProjectRules::new(&options.settings)?;
        let rules = rules_version(Some(redactor));
        let mut selected: Vec<usize> = Vec::new();
        let mut report = PushReport {
            destination: place.name().to_owned(),
            machine: identity.machine.clone(),
            user_name: identity.user_name.clone(),
            is_dry_run: options.is_dry_run,
            ..PushReport::default()
        };
        let allows_unredacted = options.settings.unredacted && options.allows_unredacted;
        for (at, session) in own.iter().enumerate() {
            if !projects.includes(session.row) {
                continue;
            }
            if session.is_unredacted() && !allows_unredacted {
                report.unredacted += 1;
            } else if RowsToMask::OfOtherRules.includes(session.source.redaction_rules, rules) {
                return Err(masked_otherwise(session));
            } else {
                selected.push(at);
            }
        }
        let machines = place.list(MACHINES)?;
        let before = read_own_listing(place, &mut state, &machines)?;
        let mut listing = MachineListing::new(&state.id, &identity.machine, &identity.user_name);
        if let Some(before) = &before {
            listing.sessions.clone_from(&before.sessions);
            listing.tombstones.clone_from(&before.tombstones);
        }
        let known = state.lakes.get(place.name());
        let mut unused: BTreeSet<String> = BTreeSet::new();
        unused.extend(before.iter().flat_map(|listing| listing.unused.iter().cloned()));
        unused.extend(known.iter().flat_map(|lake| lake.pending.iter().cloned()));
        let forgotten = store.read_forgotten().map_err(store_error)?;
        let forgotten = forgotten.identities_with_times();
        let forgotten = forgotten.map(|(log, time)| (log.to_owned(), time)).collect();
        let publisher = Publisher::new(place, &state.id, &machines);
        Ok(Self {
            store,
            place,
            options,
            redactor,
            rules,
            snapshot,
            identity,
            content: LakeContent::new(options.settings.content.level(), &options.home),
            state,
            before,
            listing,
            publisher,
            own,
            selected,
            forgotten,
            unfinished: unused.clone(),
            unused,
            report,
        })
    }

    /// Takes sessions out of the listing whose logs were forgotten, here or elsewhere, and leaves
    /// tombstones for those that were forgotten here.
    pub(super) fn honour_tombstones(&mut self) -> Result<(), ToolError> {
        let mut stones = self.place.list_tombstones()?;
        // `forget --undo` takes the tombstones of this machine back.
        let mut kept = Vec::new();
        for log in std::mem::take(&mut self.listing.tombstones) {
            if self.forgotten.contains_key(&log) {
                kept.push(log);
                continue;
            }
            stones.remove(&log);
            if !self.options.is_dry_run {
                self.place.delete(&tombstone_key(&log))?;
            }
        }
        self.listing.tombstones = kept;

        let forgotten = &self.forgotten;
        let gone: Vec<String> = self
            .listing
            .sessions
            .iter()
            .filter(|(_, listed)| {
                forgotten.contains_key(&listed.log) || stones.contains(&listed.log)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            let Some(listed) = self.listing.sessions.get(&id) else { continue };
            let log = listed.log.clone();
            if let Some(time) = self.forgotten.get(&log)
                && !self.listing.tombstones.contains(&log)
            {
                if !self.options.is_dry_run {
                    let stone = serde_json::json!({ "log": log, "machine": self.state.id, "forgotten_at": time });
                    self.place.put(&tombstone_key(&log), stone.to_string().into_bytes())?;
                }
                self.listing.tombstones.push(log);
            }
            self.withdraw(&id);
        }
        self.listing.tombstones.sort();
        let own = self.own;
        self.selected.retain(|at| !stones.contains(&own[*at].identity));
        Ok(())
    }

    /// Takes a session out of the listing. Its objects are removed at the end.
    fn withdraw(&mut self, id: &str) {
        if let Some(listed) = self.listing.sessions.remove(id) {
            self.unused.extend(listed.keys().map(str::to_owned));
            self.report.removed.push(id.to_owned());
        }
    }

    /// Takes sessions out of the listing that the settings no longer select. A session that the
    /// store does not have stays: its rows may have been damaged, and its log may be gone.
    pub(super) fn withdraw_unselected(&mut self) -> Result<(), ToolError> {
        let selected: HashSet<usize> = self.selected.iter().copied().collect();
        let mut unselected = Vec::new();
        for (at, session) in self.own.iter().enumerate() {
            let listed = self.listing.sessions.get(&session.lake_id);
            if !selected.contains(&at) && listed.is_some_and(|one| one.log == session.identity) {
                unselected.push(session.lake_id.clone());
            }
        }
        for id in unselected {
            let Some(listed) = self.listing.sessions.get(&id) else { continue };
            if self.publisher.has_other_publisher(listed.provider, &id)? {
                // The objects are now those of a machine whose log is longer.
                self.listing.sessions.remove(&id);
                self.report.removed.push(id);
            } else {
                self.withdraw(&id);
            }
        }
        Ok(())
    }

    /// Writes the listing if it changed, and then removes the objects that it no longer names.
    pub(super) fn finish(&mut self) -> Result<(), ToolError> {
        if self.options.is_dry_run {
            return Ok(());
        }
        let mut unused = std::mem::take(&mut self.unused);
        for (id, listed) in &self.listing.sessions {
            for key in listed.keys() {
                unused.remove(key);
            }
            // What a killed push wrote may be of another machine by now.
            if listed.held_by.is_some() {
                unused.retain(|key| !is_key_of(key, listed.provider, id));
            }
        }
        self.listing.unused = unused.iter().cloned().collect();
        let is_empty = self.listing.sessions.is_empty() && self.listing.tombstones.is_empty();
        let is_changed = self.before.as_ref().map_or(!is_empty, |before| *before != self.listing);
        if is_changed {
            self.write_listing()?;
        }
        self.remove_joined()?;
        if !unused.is_empty() {
            for key in &unused {
                self.place.delete(key)?;
            }
            self.listing.unused.clear();
            self.write_listing()?;
        }
        let versions = self.publisher.versions_in_use(&self.listing);
        let lake = self.state.lake(self.place.name());
        let listing = String::from_utf8(self.listing.encode()).ok().filter(|_| !is_empty);
        if is_changed || lake.versions != versions || !lake.pending.is_empty() {
            lake.pending.clear();
            lake.listing = listing;
            lake.versions = versions;
            self.state.write(self.store)?;
        }
        Ok(())
    }

    /// Removes the joined objects that repeat what this push changed or removed. This comes after the
    /// listing: a compaction that runs meanwhile reads the listings after it named its objects.
    fn remove_joined(&self) -> Result<(), ToolError> {
        let now = hashes_by_key(&self.listing);
        let mut outdated: HashSet<&str> = HashSet::new();
        let mut dates: HashSet<&str> = HashSet::new();
        for listed in self.before.iter().flat_map(|before| before.sessions.values()) {
            for ListedObject { key, sha256, .. } in &listed.objects {
                if now.get(key.as_str()) != Some(&sha256.as_str()) {
                    outdated.insert(key);
                    // The row of a session is joined on the day of its last events.
                    dates.extend(events_date(key).or_else(|| listed.last_date()));
                }
            }
        }
        // The key of a row does not say on which day it was joined.
        let is_day_unknown = self.unfinished.iter().any(|key| events_date(key).is_none());
        for key in &self.unfinished {
            outdated.insert(key);
            dates.extend(events_date(key));
        }
        let dates = if is_day_unknown { None } else { Some(&dates) };
        remove_outdated_objects(self.place, dates, &|source| {
            let key = source.key.as_str();
            outdated.contains(key) && now.get(key) != Some(&source.sha256.as_str())
        })?;
        Ok(())
    }

    /// Writes the listing, and remembers the version that it has in the lake then.
    fn write_listing(&mut self) -> Result<(), ToolError> {
        let key = listing_key(&self.state.id);
        self.place.put(&key, self.listing.encode())?;
        let machines = self.place.list(MACHINES)?;
        self.publisher.set_machines(&machines);
        Ok(())
    }
}

/// Returns the error for a session that another process masked by other rules since the store was
/// masked.
fn masked_otherwise(session: &OwnSession<'_>) -> ToolError {
    let message = format!(
        "Session {} was masked by other rules than those in force, so nothing was published. Another process may use another redact.toml; run `sessions push` again",
        session.row.session_id
    );
    ToolError::new(ErrorCode::StoreBusy, message)
}

/// Returns the hashes of the objects that a listing names.
fn hashes_by_key(listing: &MachineListing) -> HashMap<&str, &str> {
    let objects = listing.sessions.values().flat_map(|listed| &listed.objects);
    objects.map(|object| (object.key.as_str(), object.sha256.as_str())).collect()
}

/// Returns whether a key is that of an object of a session.
fn is_key_of(key: &str, provider: Provider, lake_id: &str) -> bool {
    key == session_key(provider, lake_id)
        || is_events_key(key, provider, lake_id)
        || is_index_key(key, provider, lake_id)
}

/// Reads the listing of this machine: the remembered one if the lake still has its version.
fn read_own_listing(
    place: &LakePlace,
    state: &mut LakeState,
    machines: &[ObjectInfo],
) -> Result<Option<MachineListing>, ToolError> {
    let key = listing_key(&state.id);
    let Some(info) = machines.iter().find(|object| object.key == key) else { return Ok(None) };
    let id = state.id.clone();
    let known = state.lake(place.name());
    if known.versions.get(&id) == Some(&info.version)
        && let Some(Ok(listing)) =
            known.listing.as_ref().map(|text| parse_listing(text.as_bytes(), &id))
    {
        return Ok(Some(listing));
    }
    // One that is not valid is replaced.
    Ok(MachineListing::read(place, &id)?.and_then(Result::ok))
}
