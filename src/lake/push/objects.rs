//! Finds the sessions that changed since the last push, and writes their objects.

use std::collections::{BTreeMap, HashSet};

use schemas::ToolError;
use schemas::session::SessionRow;

use super::report::PushedSession;
use super::work::Push;
use crate::base::parallel::in_parallel;
use crate::error::store_error;
use crate::lake::entry::hash_row;
use crate::lake::listing::{ListedObject, ListedSession};
use crate::lake::requests::run_requests;
use crate::lake::selection::OwnSession;
use crate::store::{LakeFile, PublishedSession, session_key};

/// Most sessions whose objects are in memory at a time.
const SESSIONS_AT_A_TIME: usize = 32;

/// A session whose objects are written.
pub(super) struct Changed<'s> {
    session: &'s OwnSession<'s>,
    row_hash: String,
}

/// A session with the objects of it that the lake does not have.
struct EncodedSession {
    lake_id: String,
    listed: ListedSession,
    files: Vec<LakeFile>,
    masked: BTreeMap<String, u64>,
    unmasked: BTreeMap<String, u64>,
}

impl<'a> Push<'a> {
    /// Finds the sessions whose objects must be written.
    pub(super) fn find_changed(&mut self) -> Result<Vec<Changed<'a>>, ToolError> {
        let published_as = format!(
            "{:?} {} {}",
            self.options.settings.content, self.identity.machine, self.identity.user_name
        );
        let mut changed = Vec::new();
        let mut seen = HashSet::new();
        for at in std::mem::take(&mut self.selected) {
            let session = &self.own[at];
            if !seen.insert(session.lake_id.as_str()) {
                continue;
            }
            let source = &session.source;
            let versions = [source.redaction_rules, source.decoder_version];
            let row_hash = hash_row(session.row, versions, &published_as);
            if self.is_unchanged(session, &row_hash)? {
                continue;
            }
            match self.publisher.find_publisher(session)? {
                None => changed.push(Changed { session, row_hash }),
                Some(other) => {
                    self.report.held_by_others += 1;
                    let mut held = describe_session(&self.content_row(session), session, row_hash);
                    held.held_by = Some(other);
                    self.listing.sessions.insert(session.lake_id.clone(), held);
                }
            }
        }
        Ok(changed)
    }

    /// Returns whether the lake has a session as it is now, from this machine or another one, and
    /// counts it.
    fn is_unchanged(
        &mut self,
        session: &OwnSession<'_>,
        row_hash: &str,
    ) -> Result<bool, ToolError> {
        let listed = self.listing.sessions.get(&session.lake_id);
        let Some(listed) = listed.filter(|listed| listed.row == row_hash) else { return Ok(false) };
        let Some(other) = listed.held_by.clone() else {
            self.report.unchanged += 1;
            return Ok(true);
        };
        let known = self.state.lakes.get(self.place.name());
        let known = known.and_then(|lake| lake.versions.get(&other)).cloned();
        let holds = self.publisher.still_holds(&other, known.as_deref(), session)?;
        self.report.held_by_others += usize::from(holds);
        Ok(holds)
    }

    /// Returns the row of a session as it is published.
    fn content_row(&self, session: &OwnSession<'_>) -> SessionRow {
        let parent = session.row.parent_session_id.as_ref().map(|parent| self.lake_parent(parent));
        self.content.publish_row(session.row, &session.lake_id, parent, self.identity)
    }

    /// Returns the id that the parent of a session has in the lake.
    fn lake_parent(&self, parent: &str) -> String {
        let found = self.own.binary_search_by(|own| own.row.session_id.as_str().cmp(parent));
        found.map_or_else(|_| parent.to_owned(), |at| self.own[at].lake_id.clone())
    }

    /// Writes the objects of sessions that changed, and adds them to the listing.
    pub(super) fn publish(&mut self, changed: &[Changed<'a>]) -> Result<(), ToolError> {
        for some in changed.chunks(SESSIONS_AT_A_TIME) {
            let encoded = in_parallel(some, 1, |sessions| {
                let mut encoded = Vec::new();
                for session in sessions {
                    encoded.push(self.encode_session(session)?);
                }
                Ok::<_, ToolError>(encoded)
            })?;
            let mut encoded: Vec<EncodedSession> = encoded.into_iter().flatten().collect();
            if !self.options.is_dry_run {
                let keys = encoded.iter().flat_map(|one| one.files.iter().map(|file| &file.key));
                let keys: Vec<String> = keys.cloned().collect();
                self.unused.extend(keys.iter().cloned());
                self.state.lake(self.place.name()).pending.extend(keys);
                self.state.write(self.store)?;
                self.write_objects(&encoded)?;
            }
            for session in encoded.drain(..) {
                self.add_to_listing(session);
            }
        }
        self.report.published.sort();
        Ok(())
    }

    /// Encodes the objects of one session.
    fn encode_session(&self, changed: &Changed<'a>) -> Result<EncodedSession, ToolError> {
        let session = changed.session;
        let lake_id = &session.lake_id;
        let events = self.content.encode_events(self.snapshot, session.at, lake_id);
        let row = self.content_row(session);
        let mut listed = describe_session(&row, session, changed.row_hash.clone());
        let masked = count_masked(&row);
        let published = PublishedSession {
            row,
            publisher: self.state.id.clone(),
            identity: session.identity.clone(),
            first_record: session.source.first_record,
        };
        let mut files = vec![LakeFile {
            key: session_key(listed.provider, lake_id),
            bytes: published.encode().map_err(store_error)?,
        }];
        files.extend(events.map_err(store_error)?);
        listed.objects.extend(files.iter().map(ListedObject::of));
        let before = self.listing.sessions.get(lake_id);
        let unmasked = match before {
            Some(before) if before.held_by.is_none() && before.rules != listed.rules => {
                self.count_unmasked(lake_id, before, &listed)?
            }
            Some(_) | None => BTreeMap::new(),
        };
        let mut changed_files = Vec::new();
        for (file, object) in files.into_iter().zip(&listed.objects) {
            if !before.is_some_and(|before| before.objects.contains(object)) {
                changed_files.push(file);
            }
        }
        let lake_id = lake_id.clone();
        Ok(EncodedSession { lake_id, listed, files: changed_files, masked, unmasked })
    }

    /// Writes objects. The row of a session, which is the first, comes last: it says who publishes
    /// the session.
    fn write_objects(&self, sessions: &[EncodedSession]) -> Result<(), ToolError> {
        let mut files: Vec<&LakeFile> = Vec::new();
        for session in sessions {
            files.extend(session.files.iter().rev());
        }
        let rows = files.iter().filter(|file| is_row(file)).copied();
        let rows: Vec<&LakeFile> = rows.collect();
        files.retain(|file| !is_row(file));
        for files in [files, rows] {
            run_requests(&files, |file| self.place.put(&file.key, file.bytes.clone()))?;
        }
        Ok(())
    }

    /// Adds a session whose objects are in the lake to the listing and the report.
    fn add_to_listing(&mut self, session: EncodedSession) {
        let EncodedSession { lake_id, listed, files, masked, unmasked } = session;
        let pushed = PushedSession {
            session_id: lake_id.clone(),
            project: listed.project.clone(),
            events: listed.events,
            objects: files.len(),
            bytes: files.iter().map(|file| file.bytes.len() as u64).sum(),
            masked,
            unmasked,
        };
        if let Some(old) = self.listing.sessions.insert(lake_id, listed) {
            self.unused.extend(old.keys().map(str::to_owned));
        }
        self.report.objects += pushed.objects;
        self.report.bytes += pushed.bytes;
        for (kind, count) in &pushed.masked {
            *self.report.masked.entry(kind.clone()).or_default() += count;
        }
        for (kind, count) in &pushed.unmasked {
            *self.report.unmasked.entry(kind.clone()).or_default() += count;
        }
        self.report.published.push(pushed);
    }
}

/// Returns what the listing says about a session, without its objects.
fn describe_session(row: &SessionRow, session: &OwnSession<'_>, row_hash: String) -> ListedSession {
    ListedSession {
        provider: row.provider,
        log: session.identity.clone(),
        row: row_hash,
        rules: session.source.redaction_rules,
        events: row.events,
        held_by: None,
        project: row.project.clone(),
        cwd: row.cwd.clone(),
        ended_at: row.ended_at,
        objects: Vec::new(),
    }
}

/// Returns whether an object is the row of a session.
fn is_row(file: &LakeFile) -> bool {
    file.key.starts_with("v1/sessions/")
}

/// Returns the number of secrets masked in a session, by kind.
fn count_masked(row: &SessionRow) -> BTreeMap<String, u64> {
    let counts = row.redactions.as_deref().map(serde_json::from_str);
    counts.and_then(Result::ok).unwrap_or_default()
}
