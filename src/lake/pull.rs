//! `sessions pull`: imports sessions of other machines from a lake into the store.

use std::collections::{BTreeMap, HashMap, HashSet};

use ingest::plan::{rules_version, safe_session_id};
use ingest::redact::Redactor;
use schemas::ToolError;
use schemas::error::shorten_message;
use schemas::session::{SessionRow, SourceRow, SourceStatus};
use serde::{Deserialize, Serialize};

use super::entry::sha256;
use super::fetch::FetchedSession;
use super::fetch_joined::{WantedParts, fetch_sessions};
use super::listing::{ListedSession, MachineListing};
use super::place::LakePlace;
use super::publisher::versions_of;
use super::pull_report::{PullContent, PullFilter, PullReport};
use super::requests::run_requests;
use super::selection::own_sessions;
use super::state::LakeState;
use crate::config::user_settings::UserSettings;
use crate::error::store_error;
use crate::store::{LAKE_PATH, MACHINES, Snapshot, Store, StoreWriter};
use crate::update::log_rules::LogRules;

/// Digits that make an id unique which the store has for another session.
const SUFFIX_DIGITS: usize = 8;

/// What the store keeps of the objects of an imported session, in the state of its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct ImportedFrom {
    /// Id of the machine that published it.
    publisher: String,
    /// Hash of its objects.
    content: String,
    /// The identity of its log.
    log: String,
}

/// Imports what a lake has and the store has not. `open_writer` is called if something must be
/// written.
///
/// # Errors
/// Fails if the lake cannot be reached, or the store cannot be written. A session or a listing that
/// is not valid is a problem of the report.
pub fn pull_sessions(
    store: &Store,
    place: &LakePlace,
    filter: &PullFilter,
    content: PullContent,
    redactor: &Redactor,
    open_writer: &dyn Fn() -> Result<StoreWriter, ToolError>,
) -> Result<PullReport, ToolError> {
    let mut state = LakeState::read(store)?;
    let versions = versions_of(&place.list(MACHINES)?);
    let stones = place.list_tombstones()?;
    let snapshot = store.take_snapshot().map_err(store_error)?;
    let forgotten = store.read_forgotten().map_err(store_error)?.identities();
    let mut pull = Pull::new(place, filter, &snapshot, &state.id, redactor, stones, forgotten)?;
    pull.report.machines = versions.len();

    let signature = pull.signature(&versions);
    let known = state.lake(place.name());
    let is_within = filter.is_within(known.pulled_since, known.pulled_until);
    if is_within && known.pulled.as_deref() == Some(signature.as_str()) {
        pull.report.unchanged = pull.imported.len();
        pull.report.requests = place.requests();
        return Ok(pull.report);
    }
    let is_same_filter = known
        .pulled
        .as_deref()
        .is_some_and(|before| before.split(' ').next() == signature.split(' ').next());
    let unchanged =
        if is_same_filter && is_within { known.pulled_versions.clone() } else { BTreeMap::new() };
    let read = pull.read_listings(&versions, &unchanged)?;
    pull.import(content, redactor, open_writer)?;
    pull.remove_gone(&versions, &read, open_writer)?;

    let is_complete = pull.report.problems.is_empty();
    pull.report.requests = place.requests();
    let report = std::mem::take(&mut pull.report);
    let now = store.take_snapshot().map_err(store_error)?;
    let again = Pull::new(place, filter, &now, &state.id, redactor, pull.stones, pull.forgotten)?;
    let signature = again.signature(&versions);
    let known = state.lake(place.name());
    // After a problem everything is looked at again.
    known.pulled = is_complete.then_some(signature);
    known.pulled_since = filter.since.map(|since| since.0);
    known.pulled_until = filter.until.map(|until| until.0);
    known.pulled_versions = if is_complete { versions } else { BTreeMap::new() };
    state.write(store)?;
    Ok(report)
}

/// A session that was imported before.
struct Imported {
    session_id: String,
    /// `None` if it is not known what was imported.
    from: Option<ImportedFrom>,
    redaction_rules: i64,
}

/// A session to import.
struct Wanted {
    lake_id: String,
    listed: ListedSession,
    publisher: String,
    machine: String,
    user_name: String,
}

/// The ids of the sessions that each machine publishes whose listing was read; `None` for a listing
/// that is not valid.
type ReadListings = HashMap<String, Option<HashSet<String>>>;

/// A pull that runs.
struct Pull<'a> {
    place: &'a LakePlace,
    filter: &'a PullFilter,
    own_id: String,
    /// Version of the rules that mask what is imported now.
    redaction_rules: i64,
    stones: HashSet<String>,
    forgotten: HashSet<String>,
    /// The rules by which projects are excluded; `None` if none is.
    rules: Option<LogRules>,
    /// The patterns of these rules, as in the settings.
    exclude: Vec<String>,
    /// Identities of the logs that the store has itself.
    local: HashSet<String>,
    /// The sessions that were imported from this lake, by their id there.
    imported: HashMap<String, Imported>,
    /// The ids of all sessions of the store.
    taken: HashSet<String>,
    wanted: Vec<Wanted>,
    report: PullReport,
}

impl<'a> Pull<'a> {
    fn new(
        place: &'a LakePlace,
        filter: &'a PullFilter,
        snapshot: &Snapshot,
        own_id: &str,
        redactor: &Redactor,
        stones: HashSet<String>,
        forgotten: HashSet<String>,
    ) -> Result<Self, ToolError> {
        let local = own_sessions(snapshot)?.into_iter().map(|own| own.identity).collect();
        let prefix = source_path(place, "");
        let mut imported = HashMap::new();
        for row in snapshot.read_sources(true).map_err(store_error)? {
            let (Some(lake_id), Some(session_id)) =
                (row.path.strip_prefix(&prefix), &row.session_id)
            else {
                continue;
            };
            // A session whose rows were lost is imported again.
            let from = row.state.as_deref().and_then(|state| serde_json::from_str(state).ok());
            let one = Imported {
                session_id: session_id.clone(),
                from,
                redaction_rules: row.redaction_rules,
            };
            imported.insert(lake_id.to_owned(), one);
        }
        let taken = snapshot.sessions().iter().map(|row| row.session_id.clone()).collect();
        let mut rules = None;
        let mut exclude = Vec::new();
        if filter.skips_excluded {
            rules = Some(LogRules::read(HashSet::new())?);
            exclude = UserSettings::read()?.ingest.exclude;
        }
        let report = PullReport { source: place.name().to_owned(), ..PullReport::default() };
        Ok(Self {
            place,
            filter,
            own_id: own_id.to_owned(),
            redaction_rules: rules_version(Some(redactor)),
            stones,
            forgotten,
            rules,
            exclude,
            local,
            imported,
            taken,
            wanted: Vec::new(),
            report,
        })
    }

    /// Returns a text that stays the same as long as there is nothing new to import. The times of the
    /// filter are not in it; see [`PullFilter::is_within`]. Its first word is about the rest of the
    /// filter and the rules of masking.
    fn signature(&self, versions: &BTreeMap<String, String>) -> String {
        let PullFilter { user, project, since: _, until: _, skips_excluded: _ } = self.filter;
        let rules = self.redaction_rules;
        let filter = format!("{user:?} {project:?} {rules} {:?}", self.exclude);
        let filter = sha256(filter.as_bytes());
        let mut parts: Vec<String> = Vec::new();
        for (id, version) in versions.iter().filter(|(id, _)| **id != self.own_id) {
            parts.push(format!("{id} {version}"));
        }
        for set in [&self.stones, &self.forgotten, &self.local] {
            let mut sorted: Vec<&String> = set.iter().collect();
            sorted.sort();
            parts.push(format!("{sorted:?}"));
        }
        let rest = sha256(parts.join("\n").as_bytes());
        format!("{filter} {rest} {}", self.imported.len())
    }

    /// Reads the listings that changed, and notes what is to be imported. `unchanged` has the
    /// versions of the listings whose sessions were imported already.
    fn read_listings(
        &mut self,
        versions: &BTreeMap<String, String>,
        unchanged: &BTreeMap<String, String>,
    ) -> Result<ReadListings, ToolError> {
        let mut read = ReadListings::new();
        let changed: Vec<&String> = versions
            .iter()
            .filter(|(id, version)| **id != self.own_id && unchanged.get(*id) != Some(*version))
            .map(|(id, _)| id)
            .collect();
        let listings = run_requests(&changed, |id| MachineListing::read(self.place, id))?;
        for (id, listing) in changed.into_iter().zip(listings) {
            match listing {
                // It was removed since the keys were listed.
                None => {}
                Some(Err(reason)) => {
                    self.report
                        .problems
                        .push(format!("the listing of {id} was not read: {reason}"));
                    read.insert(id.clone(), None);
                }
                Some(Ok(listing)) => {
                    let own = listing.sessions.iter().filter(|(_, one)| one.held_by.is_none());
                    let ids = own.map(|(id, _)| id.clone()).collect();
                    read.insert(id.clone(), Some(ids));
                    self.select(listing);
                }
            }
        }
        Ok(read)
    }

    /// Notes the sessions of a listing that are to be imported.
    fn select(&mut self, listing: MachineListing) {
        let MachineListing { id: publisher, machine, user_name, sessions, .. } = listing;
        let is_of_user = contains(self.filter.user.as_ref(), [Some(user_name.as_str())]);
        for (lake_id, listed) in sessions {
            if listed.held_by.is_some() || self.stones.contains(&listed.log) {
                continue;
            }
            if self.local.contains(&listed.log) || self.forgotten.contains(&listed.log) {
                self.report.known_here += 1;
                continue;
            }
            if let (Some(rules), Some(cwd)) = (&self.rules, &listed.cwd)
                && rules.excludes_project(cwd)
            {
                self.report.excluded += 1;
                continue;
            }
            let places = [listed.project.as_deref(), listed.cwd.as_deref()];
            let is_of_time = self.filter.includes_time(listed.ended_at);
            if !is_of_user || !is_of_time || !contains(self.filter.project.as_ref(), places) {
                self.report.filtered += 1;
                continue;
            }
            let from = imported_from(&publisher, &listed);
            let before = self.imported.get(&lake_id);
            if before.is_some_and(|before| {
                before.redaction_rules == self.redaction_rules
                    && before.from.as_ref() == Some(&from)
            }) {
                self.report.unchanged += 1;
                continue;
            }
            self.wanted.push(Wanted {
                lake_id,
                listed,
                publisher: publisher.clone(),
                machine: machine.clone(),
                user_name: user_name.clone(),
            });
        }
    }

    /// Imports the sessions that were noted.
    fn import(
        &mut self,
        content: PullContent,
        redactor: &Redactor,
        open_writer: &dyn Fn() -> Result<StoreWriter, ToolError>,
    ) -> Result<(), ToolError> {
        let wanted = std::mem::take(&mut self.wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        let writer = open_writer()?;
        let mut import = writer.import_sessions(redactor);
        let mut done = HashSet::new();
        let mut failed = Vec::new();
        let parts = wanted
            .iter()
            .map(|wanted| WantedParts { lake_id: &wanted.lake_id, listed: &wanted.listed });
        let parts: Vec<WantedParts<'_>> = parts.collect();
        fetch_sessions(self.place, &parts, content, &mut |at, fetched| {
            let wanted = &wanted[at];
            let session = match fetched {
                Ok(session) => session,
                Err(reason) => {
                    failed.push((wanted, reason));
                    return Ok(());
                }
            };
            let row = self.local_row(wanted, &session);
            let source = self.source_row(wanted, &row, &session);
            import.add_session(row, source, &session.events).map_err(store_error)?;
            done.insert(wanted.lake_id.as_str());
            self.report.imported += 1;
            self.report.events += session.events.num_rows() as u64;
            self.report.bytes += session.bytes;
            Ok(())
        })?;
        for (wanted, reason) in failed {
            // Of two machines that published a log at the same time, one wrote the objects.
            let known = self.imported.get(&wanted.lake_id).and_then(|known| known.from.as_ref());
            let is_of_other = known.is_some_and(|from| from.publisher != wanted.publisher);
            if !is_of_other && !done.contains(wanted.lake_id.as_str()) {
                let id = safe_session_id(&wanted.lake_id);
                let machine = &wanted.machine;
                let message = format!("session {id} of {machine} was not imported: {reason}");
                self.report.problems.push(shorten_message(message));
            }
        }
        import.finish().map_err(store_error)
    }

    /// Returns the row that the store has of a session of the lake.
    fn local_row(&mut self, wanted: &Wanted, session: &FetchedSession) -> SessionRow {
        let source_path = source_path(self.place, &wanted.lake_id);
        let known = self.imported.get(&wanted.lake_id).map(|known| known.session_id.clone());
        let session_id =
            known.unwrap_or_else(|| new_local_id(&wanted.lake_id, &source_path, &self.taken));
        self.taken.insert(session_id.clone());
        let row = &session.published.row;
        SessionRow {
            session_id,
            parent_session_id: row.parent_session_id.as_deref().map(|id| self.local_parent(id)),
            source_path,
            machine: Some(wanted.machine.clone()),
            user_name: Some(wanted.user_name.clone()),
            // The log is on another machine.
            source_gone: true,
            ..row.clone()
        }
    }

    /// Returns the id that the store has, or is going to have, of a session with this id in the lake.
    fn local_parent(&self, lake_id: &str) -> String {
        match self.imported.get(lake_id) {
            Some(known) => known.session_id.clone(),
            None => safe_session_id(lake_id).into_owned(),
        }
    }

    /// Returns the row of the source of a session, by which the next pull knows what was imported.
    fn source_row(&self, wanted: &Wanted, row: &SessionRow, session: &FetchedSession) -> SourceRow {
        let from = imported_from(&wanted.publisher, &wanted.listed);
        let size = i64::try_from(session.bytes).unwrap_or(i64::MAX);
        SourceRow {
            session_id: Some(row.session_id.clone()),
            provider: Some(row.provider),
            consumed: size,
            first_record: session.published.first_record,
            state: serde_json::to_string(&from).ok(),
            ..SourceRow::unread(row.source_path.clone(), SourceStatus::Ok, size, 0)
        }
    }

    /// Removes sessions that the lake no longer has, or that are known by their own log now.
    fn remove_gone(
        &mut self,
        versions: &BTreeMap<String, String>,
        read: &ReadListings,
        open_writer: &dyn Fn() -> Result<StoreWriter, ToolError>,
    ) -> Result<(), ToolError> {
        let mut gone = HashSet::new();
        for (lake_id, imported) in &self.imported {
            let Some(from) = &imported.from else { continue };
            let is_withdrawn = match read.get(&from.publisher) {
                Some(Some(listed)) => !listed.contains(lake_id),
                Some(None) => false,
                None => !versions.contains_key(&from.publisher),
            };
            // Another machine may publish it now.
            let is_elsewhere = read.values().flatten().any(|listed| listed.contains(lake_id));
            let is_forgotten = self.stones.contains(&from.log) || self.local.contains(&from.log);
            if is_forgotten || (is_withdrawn && !is_elsewhere) {
                gone.insert(imported.session_id.clone());
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        self.report.removed = gone.len();
        open_writer()?.remove_imported(&gone).map_err(store_error)
    }
}

/// Returns the id that the store gives a session with this id in the lake, other than those in `taken`.
fn new_local_id(lake_id: &str, source_path: &str, taken: &HashSet<String>) -> String {
    let id = safe_session_id(lake_id);
    if !taken.contains(&*id) {
        return id.into_owned();
    }
    let hash = sha256(source_path.as_bytes());
    format!("{id}~{}", hash.get(..SUFFIX_DIGITS).unwrap_or(&hash))
}

/// Returns the path of the source of a session of a lake.
fn source_path(place: &LakePlace, lake_id: &str) -> String {
    format!("{LAKE_PATH}{}#{lake_id}", place.name())
}

/// Returns what the store keeps of the objects of a session.
fn imported_from(publisher: &str, listed: &ListedSession) -> ImportedFrom {
    ImportedFrom {
        publisher: publisher.to_owned(),
        content: listed.content_hash(),
        log: listed.log.clone(),
    }
}

/// Returns whether one of the texts contains the wanted one, in any case. Nothing wanted is in all.
fn contains<'t>(wanted: Option<&String>, texts: impl IntoIterator<Item = Option<&'t str>>) -> bool {
    let Some(wanted) = wanted else { return true };
    let wanted = wanted.trim().to_lowercase();
    texts.into_iter().flatten().any(|text| text.to_lowercase().contains(&wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_a_lake_are_safe_and_different() {
        let evil = "x$(touch PWNED)".repeat(100_000);
        let mut taken = HashSet::from(["nightly~1".to_owned()]);
        for lake_id in ["nightly", "nightly~1", "$(touch x)", "`touch x`", evil.as_str()] {
            let id = new_local_id(lake_id, &format!("lake:/pier#{lake_id}"), &taken);
            assert!(id.len() < 150 && !id.contains(['$', '(', '`', ' ']), "{id}");
            assert!(taken.insert(id), "{lake_id}");
        }
        assert!(taken.contains("nightly"));
    }
}
