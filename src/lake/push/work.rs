//! A push: selects the sessions, keeps the listing of this machine, and removes what it no longer
//! names.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use ingest::plan::rules_version;
use ingest::redact::Redactor;
use schemas::{ErrorCode, ToolError};

use super::log_source::LogSource;
use super::report::{PushOptions, PushReport};
use crate::lake::day_manifest::remove_outdated_objects;
use crate::lake::listing::{ListedObject, MachineListing, parse_listing};
use crate::lake::objects::ObjectInfo;
use crate::lake::place::LakePlace;
use crate::lake::publisher::Publisher;
use crate::lake::selection::{OwnSession, ProjectRules};
use crate::lake::state::LakeState;
use store::{
    Identity, LakeContent, MACHINES, RowsToMask, Snapshot, Store, events_date, listing_key,
    tombstone_key,
};
use tools::error::store_error;

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
    /// The ids of these sessions in the lake.
    pub(super) lake_ids: Vec<String>,
    /// The positions in `own` of the sessions that are published.
    pub(super) selected: Vec<usize>,
    /// The logs that are published.
    pub(super) logs: LogSource,
    /// Ids of sessions that this machine published while another one wrote its listing, so that neither
    /// saw the other.
    pub(super) crossed: &'a HashSet<String>,
    /// True if another machine wrote its listing during this push.
    pub(super) has_crossed: bool,
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
        crossed: &'a HashSet<String>,
    ) -> Result<Self, ToolError> {
        let mut state = read_state(store, options)?;
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
            if !projects.includes(&snapshot.sessions()[session.at]) {
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
            lake_ids: find_lake_ids(own, before.as_ref()),
            before,
            listing,
            publisher,
            own,
            selected,
            logs: LogSource::open(store, options)?,
            crossed,
            has_crossed: false,
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
        self.check_foreign_tombstones(&mut stones)?;

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

    /// Removes those tombstones from `stones`, and from the lake, that have no effect on this machine:
    /// on a session that it publishes and did not forget, and those that no machine says it left.
    fn check_foreign_tombstones(&mut self, stones: &mut HashSet<String>) -> Result<(), ToolError> {
        let own = self.own;
        let mut names: BTreeMap<String, String> = BTreeMap::new();
        for (id, listed) in &self.listing.sessions {
            names.insert(listed.log.clone(), id.clone());
        }
        for at in &self.selected {
            names.insert(own[*at].identity.clone(), own[*at].row.session_id.clone());
        }
        names.retain(|log, _| stones.contains(log) && !self.forgotten.contains_key(log));
        for (log, name) in names {
            let is_publisher = self.listing.publishes_log(&log);
            if !is_publisher && self.publisher.is_tombstone_of_machine(&log)? {
                continue;
            }
            stones.remove(&log);
            let is_removed =
                !self.options.is_dry_run && self.place.delete(&tombstone_key(&log)).is_ok();
            let outcome = if is_removed { "removed" } else { "not removed" };
            self.report.warnings.push(format!(
                "The lake has a tombstone for session {name}, which this machine did not forget. The tombstone was {outcome}, and the session stays published. To withdraw it, run `sessions forget {name}`"
            ));
        }
        Ok(())
    }

    /// Takes a session out of the listing, and reports it.
    fn withdraw(&mut self, id: &str) {
        if self.withdraw_objects(id) {
            self.report.removed.push(id.to_owned());
        }
    }

    /// Takes a session out of the listing, if it is there. Its objects are removed at the end.
    pub(super) fn withdraw_objects(&mut self, id: &str) -> bool {
        let Some(listed) = self.listing.sessions.remove(id) else { return false };
        self.unused.extend(listed.keys().map(str::to_owned));
        true
    }

    /// Takes sessions out of the listing that the settings no longer select. A session that the
    /// store does not have stays: its rows may have been damaged, and its log may be gone.
    pub(super) fn withdraw_unselected(&mut self) {
        let selected: HashSet<usize> = self.selected.iter().copied().collect();
        let mut unselected = Vec::new();
        for (at, session) in self.own.iter().enumerate() {
            let lake_id = &self.lake_ids[at];
            let listed = self.listing.sessions.get(lake_id);
            if !selected.contains(&at) && listed.is_some_and(|one| one.log == session.identity) {
                unselected.push(lake_id.clone());
            }
        }
        for id in unselected {
            self.withdraw(&id);
        }
    }

    /// Writes the listing if it changed, and then removes the objects that it no longer names.
    pub(super) fn finish(&mut self) -> Result<(), ToolError> {
        if self.options.is_dry_run {
            return Ok(());
        }
        let mut unused = std::mem::take(&mut self.unused);
        for listed in self.listing.sessions.values() {
            for key in listed.keys() {
                unused.remove(key);
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
            let done: HashSet<String> = std::mem::take(&mut lake.pending).into_iter().collect();
            let name = self.place.name();
            self.state = LakeState::update(self.store, |state| {
                let lake = state.lake(name);
                lake.pending.retain(|key| !done.contains(key));
                lake.listing = listing;
                lake.versions = versions;
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Remembers the keys of objects that are about to be written.
    pub(super) fn note_pending(&mut self, keys: Vec<String>) -> Result<(), ToolError> {
        let name = self.place.name();
        self.state = LakeState::update(self.store, |state| {
            state.lake(name).pending.extend(keys);
            Ok(())
        })?;
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
        self.has_crossed |= self.publisher.set_machines(&machines);
        Ok(())
    }
}

/// Returns the error for a session that another process masked by other rules since the store was
/// masked.
fn masked_otherwise(session: &OwnSession<'_>) -> ToolError {
    let message = format!(
        "Session {} was masked with other rules than the current ones, so nothing was published. \
        Another process may use another redact.toml; run `sessions push` again",
        session.row.session_id
    );
    ToolError::new(ErrorCode::StoreBusy, message)
}

/// Returns the hashes of the objects that a listing names.
fn hashes_by_key(listing: &MachineListing) -> HashMap<&str, &str> {
    let objects = listing.sessions.values().flat_map(|listed| &listed.objects);
    objects.map(|object| (object.key.as_str(), object.sha256.as_str())).collect()
}

/// Reads what is known of lakes, and gives this machine an id if it has none.
fn read_state(store: &Store, options: &PushOptions) -> Result<LakeState, ToolError> {
    let mut state = LakeState::read(store)?;
    if options.is_dry_run {
        state.create_id()?;
    } else if state.id.is_empty() {
        state = LakeState::update(store, LakeState::create_id)?;
    }
    Ok(state)
}

/// Returns the ids of sessions in the lake: those under which this machine lists them already, else
/// the usual ones. Several sessions may have one log, each with its own usual id.
fn find_lake_ids(own: &[OwnSession<'_>], listing: Option<&MachineListing>) -> Vec<String> {
    let usual_ids: HashSet<&str> = own.iter().map(|session| session.lake_id.as_str()).collect();
    let sessions = listing.iter().flat_map(|listing| &listing.sessions);
    let mut other_ids: HashMap<&str, Vec<&String>> = HashMap::new();
    for (id, listed) in sessions.filter(|(id, _)| !usual_ids.contains(id.as_str())) {
        other_ids.entry(&listed.log).or_default().push(id);
    }
    let mut ids = Vec::with_capacity(own.len());
    for session in own {
        let usual = &session.lake_id;
        let others = other_ids.get(session.identity.as_str()).map_or(&[][..], Vec::as_slice);
        let other = others
            .iter()
            .copied()
            .find(|id| id.strip_prefix(usual.as_str()).is_some_and(|end| end.starts_with('~')));
        ids.push(other.unwrap_or(usual).clone());
    }
    ids
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
    Ok(MachineListing::read(place, &id)?.valid())
}
