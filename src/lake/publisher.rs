//! Finds out which machine publishes a session. A log that several machines hold is published once.

use std::collections::{BTreeMap, HashMap};

use schemas::{Provider, ToolError};

use super::listing::MachineListing;
use super::objects::ObjectInfo;
use super::place::LakePlace;
use super::selection::OwnSession;
use crate::store::{MACHINES, PublishedSession, json_name, session_key};

/// Most bytes of the row of a session.
pub(super) const MAX_ROW_BYTES: u64 = 16 << 20;

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

    /// Replaces the versions after this machine wrote its listing.
    pub(super) fn set_machines(&mut self, machines: &[ObjectInfo]) {
        self.versions = versions_of(machines);
    }

    /// Returns the other machine that publishes the log of a session, with at least its events.
    /// `None` if this machine is to publish it.
    pub(super) fn find_publisher(
        &mut self,
        session: &OwnSession<'_>,
    ) -> Result<Option<String>, ToolError> {
        let Some(found) = self.read_row(session.row.provider, &session.lake_id)? else {
            return Ok(None);
        };
        if found.publisher == self.id || found.row.events < session.row.events {
            return Ok(None);
        }
        // The row may be of a push that was never finished.
        let is_listed = self.lists(&found.publisher, session)?;
        Ok(is_listed.then_some(found.publisher))
    }

    /// Returns whether another machine still publishes a session. `known` is the version that its
    /// listing had when it did.
    pub(super) fn still_holds(
        &mut self,
        other: &str,
        known: Option<&str>,
        session: &OwnSession<'_>,
    ) -> Result<bool, ToolError> {
        let Some(version) = self.versions.get(other) else { return Ok(false) };
        Ok(known == Some(version) || self.lists(other, session)?)
    }

    /// Returns whether the row of a session in the lake is that of another machine.
    pub(super) fn has_other_publisher(
        &self,
        provider: Provider,
        lake_id: &str,
    ) -> Result<bool, ToolError> {
        let found = self.read_row(provider, lake_id)?;
        Ok(found.is_some_and(|found| found.publisher != self.id))
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

    /// Reads the row of a session in the lake; `None` if there is none that can be read.
    fn read_row(
        &self,
        provider: Provider,
        lake_id: &str,
    ) -> Result<Option<PublishedSession>, ToolError> {
        let bytes = self.place.get(&session_key(provider, lake_id), MAX_ROW_BYTES)?;
        Ok(bytes.and_then(|bytes| PublishedSession::decode(bytes).ok()))
    }

    /// Returns whether a machine lists a session as its own, with at least the same events.
    fn lists(&mut self, machine: &str, session: &OwnSession<'_>) -> Result<bool, ToolError> {
        if !self.versions.contains_key(machine) {
            return Ok(false);
        }
        if !self.listings.contains_key(machine) {
            let read = MachineListing::read(self.place, machine)?.and_then(Result::ok);
            self.listings.insert(machine.to_owned(), read);
        }
        let listing = self.listings.get(machine).and_then(Option::as_ref);
        let listed = listing.and_then(|listing| listing.sessions.get(&session.lake_id));
        Ok(listed
            .is_some_and(|listed| listed.held_by.is_none() && listed.events >= session.row.events))
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
