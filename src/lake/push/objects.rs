//! Finds the sessions that changed since the last push, and writes their objects.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;

use schemas::ToolError;
use schemas::event::Relation;
use schemas::session::SessionRow;

use super::placement::Placement;
use super::report::PushedSession;
use super::work::Push;
use crate::lake::entry::{hash_in_key, hash_row};
use crate::lake::listing::{ListedObject, ListedSession};
use crate::lake::requests::run_requests;
use crate::lake::selection::OwnSession;
use base::parallel::in_parallel;
use store::{LakeFile, PublishedSession, key_with_hash, session_key};
use tools::error::store_error;

/// Most sessions whose objects are in memory at a time.
const SESSIONS_AT_A_TIME: usize = 32;

/// A session whose objects are written.
pub(super) struct Changed {
    /// Its position among those of this machine.
    at: usize,
    row_hash: String,
}

/// A session with the objects of it that the lake does not have.
struct EncodedSession {
    lake_id: String,
    forked_from: Option<String>,
    listed: ListedSession,
    files: Vec<LakeFile>,
    masked: BTreeMap<String, u64>,
    unmasked: BTreeMap<String, u64>,
}

impl Push<'_> {
    /// Finds the sessions whose objects must be written.
    pub(super) fn find_changed(&mut self) -> Result<Vec<Changed>, ToolError> {
        let mut unknown = Vec::new();
        let mut unchanged = Vec::new();
        let mut written = Vec::new();
        let mut held = Vec::new();
        let mut seen = HashSet::new();
        for at in std::mem::take(&mut self.selected) {
            if !seen.insert(self.lake_ids[at].clone()) {
                continue;
            }
            match self.find_known(at)? {
                Some(Placement::Own { .. }) => unchanged.push(at),
                Some(Placement::HeldBy { machine, .. }) => held.push((at, machine)),
                None => unknown.push(at),
            }
        }
        for at in unknown {
            match self.find_placement(at)? {
                Placement::Own { lake_id } => {
                    self.set_lake_id(at, lake_id);
                    written.push(at);
                }
                Placement::HeldBy { lake_id, machine } => {
                    self.set_lake_id(at, lake_id);
                    held.push((at, machine));
                }
            }
        }
        // The ids of their parents may be others now, so the hashes follow only here.
        let mut changed = Vec::new();
        for at in written.into_iter().chain(unchanged) {
            let row_hash = self.row_hash(at);
            self.count_log(at);
            match self.listing.sessions.get(&self.lake_ids[at]) {
                Some(listed) if listed.is_own() && listed.row == row_hash => {
                    self.report.unchanged += 1;
                }
                Some(_) | None => changed.push(Changed { at, row_hash }),
            }
        }
        for (at, machine) in held {
            self.report.held_by_others += 1;
            let row_hash = self.row_hash(at);
            let listed = describe_session(&self.content_row(at), &self.own[at], row_hash);
            let lake_id = self.lake_ids[at].clone();
            self.withdraw_objects(&lake_id);
            let held = ListedSession { held_by: Some(machine), ..listed };
            self.listing.sessions.insert(lake_id, held);
        }
        Ok(changed)
    }

    /// Returns a hash of everything that the objects of the session at a position depend on.
    fn row_hash(&self, at: usize) -> String {
        let mut published_as = format!(
            "{:?} {} {}",
            self.options.settings.content, self.identity.machine, self.identity.user_name
        );
        let session = &self.own[at];
        if self.is_fork(at) {
            published_as.push_str(" forked");
        }
        if let Some(parent) = self.find_parent(session)
            && self.lake_ids[parent] != self.own[parent].lake_id
        {
            let _ = write!(published_as, " {}", self.lake_ids[parent]);
        }
        if let Some(hash) = self.log_hash(at) {
            let _ = write!(published_as, " log {hash:016x} {}", self.rules);
        }
        let versions = [session.source.redaction_rules, session.source.decoder_version];
        hash_row(session.row, versions, &published_as)
    }

    /// Publishes a session under another id from now on, if it is one.
    fn set_lake_id(&mut self, at: usize, lake_id: String) {
        if lake_id == self.lake_ids[at] {
            return;
        }
        let log = &self.own[at].identity;
        let before = std::mem::replace(&mut self.lake_ids[at], lake_id);
        if self.listing.sessions.get(&before).is_some_and(|listed| listed.log == *log) {
            self.withdraw_objects(&before);
        }
    }

    /// Returns how a session is in the lake, if it is there as it is now. `None` if it changed, or must be
    /// looked for again.
    fn find_known(&mut self, at: usize) -> Result<Option<Placement>, ToolError> {
        let row_hash = self.row_hash(at);
        let lake_id = self.lake_ids[at].clone();
        let listed = self.listing.sessions.get(&lake_id);
        let Some(listed) = listed.filter(|listed| listed.row == row_hash) else { return Ok(None) };
        let Some(machine) = listed.held_by.clone() else {
            let is_known = !self.crossed.contains(&lake_id);
            return Ok(is_known.then_some(Placement::Own { lake_id }));
        };
        let known = self.state.lakes.get(self.place.name());
        let known = known.and_then(|lake| lake.versions.get(&machine)).cloned();
        let session = &self.own[at];
        let holds = self.publisher.still_holds(&machine, known.as_deref(), &lake_id, session)?;
        Ok(holds.then_some(Placement::HeldBy { lake_id, machine }))
    }

    /// Returns the row of the session at a position as it is published.
    fn content_row(&self, at: usize) -> SessionRow {
        let session = &self.own[at];
        let parent = session.row.parent_session_id.clone();
        let parent = self.find_parent(session).map(|at| self.lake_ids[at].clone()).or(parent);
        let lake_id = &self.lake_ids[at];
        let mut row = self.content.publish_row(session.row, lake_id, parent, self.identity);
        if self.is_fork(at) && row.relation.is_none() {
            row.relation = Some(Relation::ForkedFrom.as_str().to_owned());
            row.parent_session_id = Some(session.lake_id.clone());
        }
        row
    }

    /// Returns the position of the parent of a session, if it is of this machine.
    fn find_parent(&self, session: &OwnSession<'_>) -> Option<usize> {
        let parent = session.row.parent_session_id.as_deref()?;
        self.own.binary_search_by(|own| own.row.session_id.as_str().cmp(parent)).ok()
    }

    /// Writes the objects of sessions that changed, and adds them to the listing.
    pub(super) fn publish(&mut self, changed: &[Changed]) -> Result<(), ToolError> {
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
                self.note_pending(keys)?;
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
    fn encode_session(&self, changed: &Changed) -> Result<EncodedSession, ToolError> {
        let session = &self.own[changed.at];
        let lake_id = &self.lake_ids[changed.at];
        let machine = self.state.id.as_str();
        let events = self.content.encode_events(self.snapshot, session.at, lake_id);
        let events = events.map_err(store_error)?;
        let row = self.content_row(changed.at);
        let mut listed = describe_session(&row, session, changed.row_hash.clone());
        let masked = count_masked(&row);
        let published = PublishedSession {
            row,
            publisher: machine.to_owned(),
            identity: session.identity.clone(),
            first_record: session.source.first_record,
        };
        let bytes = published.encode().map_err(store_error)?;
        let hash = hash_in_key(machine, std::iter::once(bytes.as_slice()));
        let key = session_key(listed.provider, lake_id, machine, &hash);
        let mut files = vec![LakeFile { key, bytes }];
        // Events and their skip index follow each other.
        for pair in events.chunks(2) {
            let hash = hash_in_key(machine, pair.iter().map(|file| file.bytes.as_slice()));
            let named = pair.iter().map(|file| LakeFile {
                key: key_with_hash(&file.key, &hash),
                bytes: file.bytes.clone(),
            });
            files.extend(named);
        }
        listed.objects.extend(files.iter().map(ListedObject::of));
        let log = self.encode_log(changed.at)?;
        listed.log_object = log.as_ref().map(ListedObject::of);
        files.extend(log);
        let before = self.listing.sessions.get(lake_id);
        let unmasked = match before {
            Some(before) if before.held_by.is_none() && before.rules != listed.rules => {
                self.count_unmasked(lake_id, before, &listed)?
            }
            Some(_) | None => BTreeMap::new(),
        };
        let mut changed_files = Vec::new();
        let is_known =
            |file: &LakeFile| before.is_some_and(|before| before.keys().any(|key| key == file.key));
        changed_files.extend(files.into_iter().filter(|file| !is_known(file)));
        let forked_from = self.is_fork(changed.at).then(|| session.lake_id.clone());
        let lake_id = lake_id.clone();
        Ok(EncodedSession { lake_id, forked_from, listed, files: changed_files, masked, unmasked })
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
        let EncodedSession { lake_id, forked_from, listed, files, masked, unmasked } = session;
        let pushed = PushedSession {
            session_id: lake_id.clone(),
            forked_from,
            project: listed.project.clone(),
            events: listed.events,
            objects: files.len(),
            bytes: files.iter().map(|file| file.bytes.len() as u64).sum(),
            log_bytes: listed.log_object.as_ref().map(|log| log.bytes),
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
        first_record: session.source.first_record,
        objects: Vec::new(),
        log_object: None,
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
