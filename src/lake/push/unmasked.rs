//! Finds secrets in what this machine published before, which the rules in force mask.

use std::collections::{BTreeMap, HashSet};

use ingest::run::remask::RowRemasker;
use schemas::ToolError;

use super::work::Push;
use crate::lake::listing::ListedSession;
use store::{PublishedSession, decode_events, is_events_key, is_session_key};

impl Push<'_> {
    /// Returns the number of secrets, by kind, in the objects of a session that `now` replaces: others
    /// may have read them. An object that cannot be read counts as one without secrets.
    pub(super) fn count_unmasked(
        &self,
        lake_id: &str,
        before: &ListedSession,
        now: &ListedSession,
    ) -> Result<BTreeMap<String, u64>, ToolError> {
        let mut remask = RowRemasker::new(self.redactor, 0);
        let mut rows = Vec::new();
        for object in before.objects.iter().filter(|object| !now.objects.contains(object)) {
            let is_row = is_session_key(&object.key, before.provider, lake_id, &self.state.id);
            if !is_row && !is_events_key(&object.key, before.provider, lake_id) {
                continue;
            }
            let Ok(bytes) = object.read(self.place)? else { continue };
            if is_row {
                rows.extend(PublishedSession::decode(bytes).map(|published| published.row));
                continue;
            }
            let Ok(events) = decode_events(bytes, lake_id, before.provider) else { continue };
            if remask.mask_events(&events).is_err() {
                tracing::warn!(key = object.key, "the events in the lake could not be masked");
            }
        }
        Ok(remask.count_secrets(&rows).0)
    }

    /// Notes the sessions in the lake that other rules masked and that the store does not have any more,
    /// so that this push cannot replace them.
    pub(super) fn note_irreplaceable(&mut self) {
        let own: HashSet<&str> = self.lake_ids.iter().map(String::as_str).collect();
        for (id, listed) in &self.listing.sessions {
            let is_own = own.contains(id.as_str());
            if listed.held_by.is_none() && listed.rules != self.rules && !is_own {
                self.report.irreplaceable.push(id.clone());
            }
        }
    }
}
