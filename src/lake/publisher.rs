//! Finds out which machines publish a session. A log that several machines hold is published once.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::{Provider, ToolError};

use super::listing::{ListedSession, MachineListing};
use super::objects::{ObjectContent, ObjectInfo};
use super::place::LakePlace;
use super::selection::OwnSession;
use store::{MACHINES, json_name, listing_key, row_publisher, session_folder, tombstone_key};

/// Most bytes of a tombstone.
const MAX_TOMBSTONE_BYTES: u64 = 1 << 16;

/// The machines of a lake, as one push sees them.
pub(super) struct Publisher<'a> {
    place: &'a LakePlace,
    /// Id of this machine.
    id: String,
    /// Version of each listing, by machine.
    versions: BTreeMap<String, String>,
    /// Listings that were read; `None` for those that are missing or not valid.
    listings: HashMap<String, Option<MachineListing>>,
}

impl<'a> Publisher<'a> {
    pub(super) fn new(place: &'a LakePlace, id: &str, machines: &[ObjectInfo]) -> Self {
        let versions = versions_of(machines);
        Self { place, id: id.to_owned(), versions, listings: HashMap::new() }
    }

    /// Replaces the versions after this machine wrote its listing. Returns whether another machine has
    /// written its own since they were read.
    pub(super) fn set_machines(&mut self, machines: &[ObjectInfo]) -> bool {
        let before = std::mem::replace(&mut self.versions, versions_of(machines));
        let mut others = self.versions.iter().filter(|(id, _)| **id != self.id);
        others.any(|(id, version)| before.get(id) != Some(version))
    }

    /// Returns the other machines that publish a session under an id of the lake, with what they list.
    pub(super) fn find_rivals(
        &mut self,
        provider: Provider,
        lake_id: &str,
    ) -> Result<Vec<(String, ListedSession)>, ToolError> {
        let rows = self.place.list(&session_folder(provider, lake_id))?;
        let mut machines: BTreeSet<String> = BTreeSet::new();
        for row in &rows {
            machines.extend(row_publisher(&row.key, provider, lake_id).map(str::to_owned));
        }
        machines.remove(&self.id);
        let mut rivals = Vec::new();
        for machine in machines {
            // The row may be of a push that was never finished.
            let listing = self.listing(&machine)?;
            let listed = listing.and_then(|listing| listing.sessions.get(lake_id));
            if let Some(listed) = listed.filter(|listed| listed.is_own()) {
                rivals.push((machine, listed.clone()));
            }
        }
        Ok(rivals)
    }

    /// Returns whether another machine still publishes a session. `known` is the version that its
    /// listing had when it did.
    pub(super) fn still_holds(
        &mut self,
        other: &str,
        known: Option<&str>,
        lake_id: &str,
        session: &OwnSession<'_>,
    ) -> Result<bool, ToolError> {
        let Some(version) = self.versions.get(other) else { return Ok(false) };
        if known == Some(version) {
            return Ok(true);
        }
        let listing = self.listing(other)?;
        let listed = listing.and_then(|listing| listing.sessions.get(lake_id));
        Ok(listed.is_some_and(|listed| {
            listed.is_own() && listed.log == session.identity && listed.events >= session.row.events
        }))
    }

    /// Returns whether a machine says that it left the tombstone of a log, and does not publish the log.
    /// Anybody who can write to the lake can write a tombstone, but it counts only then.
    pub(super) fn is_tombstone_of_machine(&mut self, log: &str) -> Result<bool, ToolError> {
        let content = self.place.get(&tombstone_key(log), MAX_TOMBSTONE_BYTES)?;
        let ObjectContent::Whole(bytes) = content else { return Ok(false) };
        let stone: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
        let machine = stone.as_ref().and_then(|stone| stone.get("machine")?.as_str());
        let Some(machine) = machine.filter(|id| json_name(&listing_key(id), MACHINES).is_some())
        else {
            return Ok(false);
        };
        let listing = self.listing(machine)?;
        Ok(listing.is_some_and(|listing| {
            listing.tombstones.iter().any(|one| one == log) && !listing.publishes_log(log)
        }))
    }

    /// Returns the versions of the listings that a listing of this machine depends on.
    pub(super) fn versions_in_use(&self, listing: &MachineListing) -> BTreeMap<String, String> {
        let others = listing.sessions.values().filter_map(|session| session.held_by.as_ref());
        let mut in_use = BTreeMap::new();
        for id in others.chain([&self.id]) {
            if let Some(version) = self.versions.get(id) {
                in_use.insert(id.clone(), version.clone());
            }
        }
        in_use
    }

    /// Returns the listing of a machine; `None` if it has none that is valid.
    fn listing(&mut self, machine: &str) -> Result<Option<&MachineListing>, ToolError> {
        if !self.listings.contains_key(machine) {
            let read = MachineListing::read(self.place, machine)?.valid();
            self.listings.insert(machine.to_owned(), read);
        }
        Ok(self.listings.get(machine).and_then(Option::as_ref))
    }
}

/// Returns the version of each listing by the id of its machine. Keys of another form are ignored.
pub(super) fn versions_of(machines: &[ObjectInfo]) -> BTreeMap<String, String> {
    let mut versions = BTreeMap::new();
    for object in machines {
        if let Some(id) = json_name(&object.key, MACHINES) {
            versions.insert(id.to_owned(), object.version.clone());
        }
    }
    versions
}
