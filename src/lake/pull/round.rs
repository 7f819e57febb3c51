//! A round of a pull: reads listings, selects what is new in them, and imports it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ingest::plan::{rules_version, safe_session_id};
use schemas::ToolError;
use schemas::session::{SessionRow, SourceRow, SourceStatus};

use super::known::{
    Imported, KnownSessions, ListedLog, LocalLog, PullContext, imported_from, shared_key,
    source_path,
};
use crate::config::user_settings::UserSettings;
use crate::lake::entry::sha256;
use crate::lake::fetch::FetchedSession;
use crate::lake::fetch_joined::{WantedParts, fetch_sessions};
use crate::lake::listing::{ListedSession, MachineListing, ReadListing, shown_id};
use crate::lake::pull_report::{PullContent, PullFilter, PullReport};
use crate::lake::requests::run_requests;
use crate::update::log_rules::{ForgottenRules, LogRules};
use store::{CopyMarks, EventHistory, ImportOutcome, Snapshot};
use tools::error::store_error;

/// Digits that make an id unique which the store has for another session.
const SUFFIX_DIGITS: usize = 8;

/// Most sessions of a listing that are not valid and reported by name.
const MAX_NAMED_INVALID: usize = 20;

/// A session to import.
struct Wanted {
    /// The end of the path of its source.
    key: String,
    lake_id: String,
    listed: ListedSession,
    publisher: String,
    machine: String,
    user_name: String,
    /// What it must be compared with before it is imported.
    rivals: Vec<Rival>,
}

/// A session of the store that may have the same log as one to import.
enum Rival {
    /// The log of the store at this position of the snapshot.
    Local(usize),
    /// The session that was imported from another machine under the same id.
    Imported { session_id: String, publisher: String },
}

/// What a comparison says about a fetched session.
enum Verdict {
    /// It is imported under the key that it was selected with.
    Import,
    /// It is imported under a key of its own: the other session stays.
    ImportApart,
    /// The store has all of it.
    Contained,
}

/// What the listing of a machine said.
struct SeenListing {
    /// Ids of the sessions that it publishes, and of those that are not valid. `None` if the listing
    /// is not valid.
    ids: Option<HashSet<String>>,
}

/// What became of the sessions of one machine.
#[derive(Default)]
struct MachineCounts {
    unchanged: usize,
    filtered: usize,
    excluded: usize,
    known_here: usize,
    problems: Vec<String>,
}

/// The machines whose listings another round reads.
#[derive(Default)]
pub(super) struct RoundsAhead {
    /// Those with sessions that must wait for what this round imported.
    pub(super) postponed: BTreeSet<String>,
    /// Those with sessions that could not be read. They are examined again if they published since.
    pub(super) failed: BTreeSet<String>,
}

impl RoundsAhead {
    pub(super) fn is_empty(&self) -> bool {
        self.postponed.is_empty() && self.failed.is_empty()
    }
}

/// A pull that runs.
pub(super) struct Pull<'a> {
    pub(super) context: PullContext<'a>,
    own_id: String,
    /// Version of the rules that mask what is imported now.
    redaction_rules: i64,
    /// Identities of the logs that were forgotten here.
    forgotten: HashSet<String>,
    /// The rules by which projects are excluded; `None` if none is.
    rules: Option<LogRules>,
    /// The patterns of these rules, as in the settings.
    exclude: Vec<String>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) known: KnownSessions,
    /// The versions of the listings whose sessions were examined.
    versions: BTreeMap<String, String>,
    /// The listings that were read.
    seen: HashMap<String, SeenListing>,
    counts: BTreeMap<String, MachineCounts>,
    /// Keys of the sessions that this pull imported.
    done: HashSet<String>,
    /// Keys of the sessions that are imported again although they did not change.
    outdated: HashSet<String>,
    /// What other sessions were found to contain; see `KnownLake::contained`.
    contained: BTreeMap<String, String>,
    wanted: Vec<Wanted>,
    /// The positions of these, by their keys.
    claims: HashMap<String, usize>,
    ahead: RoundsAhead,
    /// What the listings say of the logs of sessions.
    pub(super) logs: Vec<ListedLog>,
    pub(super) report: PullReport,
}

impl<'a> Pull<'a> {
    pub(super) fn new(
        context: PullContext<'a>,
        own_id: &str,
        contained: BTreeMap<String, String>,
    ) -> Result<Self, ToolError> {
        let snapshot = context.store.take_snapshot().map_err(store_error)?;
        let known = KnownSessions::read(&snapshot, context.place)?;
        let forgotten = context.store.read_forgotten().map_err(store_error)?.identities();
        let mut rules = None;
        let mut exclude = Vec::new();
        if context.filter.skips_excluded {
            rules = Some(LogRules::read(ForgottenRules::default())?);
            exclude = UserSettings::read()?.ingest.exclude;
        }
        let source = context.place.name().to_owned();
        Ok(Self {
            context,
            own_id: own_id.to_owned(),
            redaction_rules: rules_version(Some(context.redactor)),
            forgotten,
            rules,
            exclude,
            snapshot,
            known,
            versions: BTreeMap::new(),
            seen: HashMap::new(),
            counts: BTreeMap::new(),
            done: HashSet::new(),
            outdated: HashSet::new(),
            contained,
            wanted: Vec::new(),
            claims: HashMap::new(),
            ahead: RoundsAhead::default(),
            logs: Vec::new(),
            report: PullReport { source, ..PullReport::default() },
        })
    }

    /// Reads again what the store has.
    pub(super) fn refresh(&mut self) -> Result<(), ToolError> {
        self.snapshot = self.context.store.take_snapshot().map_err(store_error)?;
        self.known = KnownSessions::read(&self.snapshot, self.context.place)?;
        Ok(())
    }

    /// Returns a text that stays the same as long as there is nothing new to import. The times of the
    /// filter are not in it; see [`PullFilter::is_within`]. Its first word is about the rest of
    /// the filter, the rules of masking, and what was forgotten or lost: also listings that did not change may
    /// have something to import if it differs.
    pub(super) fn signature(&self, versions: &BTreeMap<String, String>) -> String {
        let PullFilter { user, project, since: _, until: _, skips_excluded: _, takes_logs } =
            self.context.filter;
        let rules = self.redaction_rules;
        // What is not forgotten any more may be in a listing that did not change.
        let mut forgotten: Vec<&String> = self.forgotten.iter().collect();
        forgotten.sort();
        // An archive that was removed is filled again, and so is a store that lost sessions to damage.
        let logs = *takes_logs && self.context.store.has_archive();
        let imported = self.known.imported.len();
        let filter = format!(
            "{user:?} {project:?} {rules} {:?} {forgotten:?} {takes_logs} {logs} {imported}",
            self.exclude
        );
        let filter = sha256(filter.as_bytes());
        let mut parts: Vec<String> = Vec::new();
        for (id, version) in versions.iter().filter(|(id, _)| **id != self.own_id) {
            parts.push(format!("{id} {version}"));
        }
        let imported = self.known.imported.values().filter_map(|one| one.from.as_ref());
        let imported: HashSet<&str> = imported.map(|from| from.log.as_str()).collect();
        let mut logs: Vec<String> = Vec::new();
        for (identity, local) in &self.known.local {
            // An imported session is compared again when the same log grows here.
            let is_compared = imported.contains(identity.as_str());
            let events = local.iter().map(|local| if is_compared { local.events } else { 0 });
            logs.push(format!("{identity} {}", events.sum::<i64>()));
        }
        logs.sort();
        parts.push(format!("{logs:?}"));
        let rest = sha256(parts.join("\n").as_bytes());
        format!("{filter} {rest}")
    }

    /// Notes the versions of listings whose sessions an earlier pull imported.
    pub(super) fn assume_read(&mut self, versions: &BTreeMap<String, String>) {
        self.versions.clone_from(versions);
    }

    /// Returns the versions of the listings whose sessions were examined.
    pub(super) fn seen_versions(&self) -> &BTreeMap<String, String> {
        &self.versions
    }

    pub(super) fn take_contained(&mut self) -> BTreeMap<String, String> {
        std::mem::take(&mut self.contained)
    }

    /// Lets the next round import the sessions with these keys, even if they did not change.
    pub(super) fn import_again(&mut self, outdated: HashSet<String>) {
        self.outdated = outdated;
    }

    /// Reads the listings of these machines, and imports what is new. Returns the machines that
    /// another round must examine.
    pub(super) fn run_round(
        &mut self,
        versions: &BTreeMap<String, String>,
        machines: &BTreeSet<String>,
    ) -> Result<RoundsAhead, ToolError> {
        self.report.machines = versions.len();
        self.versions.retain(|id, _| versions.contains_key(id));
        self.seen.retain(|id, _| versions.contains_key(id));
        self.counts.retain(|id, _| versions.contains_key(id));
        if let Some(version) = versions.get(&self.own_id) {
            self.versions.insert(self.own_id.clone(), version.clone());
        }
        self.read_listings(versions, machines)?;
        self.import()?;
        self.refresh()?;
        self.import_logs()?;
        self.outdated.clear();
        // Another machine may publish now what one has withdrawn.
        if self.known.imported.keys().any(|key| self.is_withdrawn(key)) {
            let unread = versions.keys().filter(|id| !self.seen.contains_key(*id));
            self.ahead.postponed.extend(unread.filter(|id| **id != self.own_id).cloned());
        }
        Ok(std::mem::take(&mut self.ahead))
    }

    /// Reads listings, and notes what is to be imported.
    fn read_listings(
        &mut self,
        versions: &BTreeMap<String, String>,
        machines: &BTreeSet<String>,
    ) -> Result<(), ToolError> {
        let machines: Vec<&String> = machines.iter().filter(|id| **id != self.own_id).collect();
        let place = self.context.place;
        let listings = run_requests(&machines, |id| MachineListing::read(place, id))?;
        let mut read = Vec::new();
        for (id, listing) in machines.into_iter().zip(listings) {
            if let Some(version) = versions.get(id) {
                self.versions.insert(id.clone(), version.clone());
            }
            let mut counts = MachineCounts::default();
            match listing {
                // It was removed since the keys were listed.
                ReadListing::Missing => {
                    self.seen.remove(id);
                    self.versions.remove(id);
                }
                ReadListing::Invalid(reason) => {
                    counts.problems.push(format!("the listing of {id} was not read: {reason}"));
                    self.seen.insert(id.clone(), SeenListing { ids: None });
                }
                ReadListing::Valid(listing) => {
                    note_invalid(&listing, &mut counts.problems);
                    let own = listing.sessions.iter().filter(|(_, one)| one.is_own());
                    let ids = own.map(|(id, _)| id).chain(&listing.invalid).cloned().collect();
                    self.seen.insert(id.clone(), SeenListing { ids: Some(ids) });
                    read.push(*listing);
                }
            }
            self.counts.insert(id.clone(), counts);
        }
        for listing in read {
            self.select(listing);
        }
        Ok(())
    }

    /// Notes the sessions of a listing that are to be imported.
    fn select(&mut self, listing: MachineListing) {
        let MachineListing { id: publisher, machine, user_name, sessions, .. } = listing;
        let is_of_user = contains(self.context.filter.user.as_ref(), [Some(user_name.as_str())]);
        let mut counts = self.counts.remove(&publisher).unwrap_or_default();
        for (lake_id, listed) in sessions {
            if !listed.is_own() {
                continue;
            }
            if self.forgotten.contains(&listed.log) {
                counts.known_here += 1;
                continue;
            }
            if let (Some(rules), Some(cwd)) = (&self.rules, &listed.cwd)
                && rules.excludes_project(cwd)
            {
                counts.excluded += 1;
                continue;
            }
            let places = [listed.project.as_deref(), listed.cwd.as_deref()];
            let filter = self.context.filter;
            let is_of_time = filter.includes_time(listed.ended_at);
            if !is_of_user || !is_of_time || !contains(filter.project.as_ref(), places) {
                counts.filtered += 1;
                continue;
            }
            if filter.takes_logs {
                self.logs.push(ListedLog::new(&publisher, &machine, &lake_id, &listed));
            }
            let wanted = Wanted {
                key: lake_id.clone(),
                lake_id,
                listed,
                publisher: publisher.clone(),
                machine: machine.clone(),
                user_name: user_name.clone(),
                rivals: Vec::new(),
            };
            self.select_session(wanted, &mut counts);
        }
        self.counts.insert(publisher, counts);
    }

    /// Notes a session that a machine publishes, unless the store has it.
    fn select_session(&mut self, mut wanted: Wanted, counts: &mut MachineCounts) {
        let from = imported_from(&wanted.publisher, &wanted.listed);
        if let Some(local) = self.known.local.get(&from.log) {
            let sessions = self.snapshot.sessions();
            let is_known = self.context.content == PullContent::Rows
                || local.iter().any(|local| wanted.listed.is_as_long_as(&sessions[local.at]))
                || self.is_contained(&wanted, "here");
            if is_known {
                counts.known_here += 1;
                return;
            }
            wanted.rivals.extend(local.iter().map(|local| Rival::Local(local.at)));
        }

        let apart = shared_key(&wanted.lake_id, &wanted.publisher);
        if self.known.imported.contains_key(&apart) {
            wanted.key = apart;
        }
        if let Some(before) = self.known.imported.get(&wanted.key) {
            let is_current = before.redaction_rules == self.redaction_rules
                && before.from.as_ref().is_some_and(|before| before.has_same_objects(&from))
                && !self.outdated.contains(&wanted.key);
            if is_current {
                counts.unchanged += usize::from(!self.done.contains(&wanted.key));
                return;
            }
            let other = before.from.as_ref().map(|from| from.publisher.clone());
            let other = other.filter(|other| *other != wanted.publisher);
            if let Some(other) = other
                && self.lists(&other, &wanted.lake_id)
            {
                let session_id = before.session_id.clone();
                if self.is_contained(&wanted, &other)
                    || !self.is_chosen(&wanted, &session_id, &other)
                {
                    counts.unchanged += 1;
                    return;
                }
                wanted.rivals.push(Rival::Imported { session_id, publisher: other });
            }
        }
        self.claim(wanted);
    }

    /// Notes a session, unless another machine publishes one under the same id, which is imported
    /// first.
    fn claim(&mut self, wanted: Wanted) {
        let Some(at) = self.claims.get(&wanted.key).copied() else {
            self.claims.insert(wanted.key.clone(), self.wanted.len());
            self.wanted.push(wanted);
            return;
        };
        let other = &mut self.wanted[at];
        let rank = (wanted.listed.events, Reverse(&wanted.publisher));
        let is_first = rank > (other.listed.events, Reverse(&other.publisher));
        let later = if is_first { std::mem::replace(other, wanted) } else { wanted };
        if self.context.content == PullContent::Whole {
            self.ahead.postponed.insert(later.publisher);
        }
    }

    /// Returns whether the sessions of a machine include one of this id, by its last listing.
    fn lists(&self, machine: &str, lake_id: &str) -> bool {
        match self.seen.get(machine) {
            Some(SeenListing { ids: Some(ids) }) => ids.contains(lake_id),
            Some(SeenListing { ids: None }) => true,
            None => self.versions.contains_key(machine),
        }
    }

    /// Returns whether a session takes the place of the imported one. Without events, the one with more
    /// of them does, as in the catalog of the lake; with events, they are compared.
    fn is_chosen(&self, wanted: &Wanted, session_id: &str, publisher: &str) -> bool {
        let events = self.snapshot.session(session_id).map_or(0, |row| row.events);
        self.context.content == PullContent::Whole
            || (wanted.listed.events, Reverse(wanted.publisher.as_str()))
                > (events, Reverse(publisher))
    }

    /// Returns whether a session was found to be contained in the one of `holder`.
    fn is_contained(&self, wanted: &Wanted, holder: &str) -> bool {
        let known = self.contained.get(&contained_key(wanted));
        known.is_some_and(|known| *known == contained_value(wanted, holder))
    }

    /// Imports the sessions that were noted.
    fn import(&mut self) -> Result<(), ToolError> {
        let wanted = std::mem::take(&mut self.wanted);
        self.claims.clear();
        if wanted.is_empty() {
            return Ok(());
        }
        let PullContext { place, content, redactor, open_writer, .. } = self.context;
        let writer = open_writer()?;
        let marks = match content {
            PullContent::Whole => CopyMarks::Compared,
            PullContent::Rows => CopyMarks::AsPublished,
        };
        let mut import = writer.import_sessions(redactor, marks).map_err(store_error)?;
        let parts = wanted
            .iter()
            .map(|wanted| WantedParts { lake_id: &wanted.lake_id, listed: &wanted.listed });
        let parts: Vec<WantedParts<'_>> = parts.collect();
        fetch_sessions(place, &parts, content, &mut |at, fetched| {
            let wanted = &wanted[at];
            let session = match fetched {
                Ok(session) => session,
                Err(reason) => {
                    self.note_failed(wanted, &reason);
                    return Ok(());
                }
            };
            let apart = shared_key(&wanted.lake_id, &wanted.publisher);
            let key = match self.compare(wanted, &session)? {
                Verdict::Import => &wanted.key,
                Verdict::ImportApart => &apart,
                Verdict::Contained => return Ok(()),
            };
            let row = self.local_row(wanted, key, &session);
            let source = self.source_row(wanted, key, &row, &session);
            match import.add_session(row, source, &session.events).map_err(store_error)? {
                ImportOutcome::Added => {}
                ImportOutcome::Continued { left_out } => {
                    self.report.forgotten_events += left_out.cast_unsigned();
                }
                ImportOutcome::Forgotten => {
                    self.report.known_here += 1;
                    return Ok(());
                }
            }
            self.done.insert(key.clone());
            self.report.imported += 1;
            let events = session.events.iter().map(|part| part.num_rows() as u64);
            self.report.events += events.sum::<u64>();
            self.report.bytes += session.bytes;
            Ok(())
        })?;
        import.finish().map_err(store_error)
    }

    /// Notes that the log of a session could not be read.
    pub(super) fn note_failed_log(&mut self, log: &ListedLog, reason: &str) {
        self.ahead.failed.insert(log.publisher.clone());
        let counts = self.counts.entry(log.publisher.clone()).or_default();
        counts.problems.push(format!(
            "the log of session {} of {} was not imported: {reason}",
            shown_id(&log.lake_id),
            log.machine
        ));
    }

    /// Notes that a session could not be read.
    fn note_failed(&mut self, wanted: &Wanted, reason: &str) {
        self.ahead.failed.insert(wanted.publisher.clone());
        let counts = self.counts.entry(wanted.publisher.clone()).or_default();
        counts.problems.push(format!(
            "session {} of {} was not imported: {reason}",
            shown_id(&wanted.lake_id),
            wanted.machine
        ));
    }

    /// Compares a fetched session with those that the store has of the same log or id.
    fn compare(&mut self, wanted: &Wanted, session: &FetchedSession) -> Result<Verdict, ToolError> {
        if wanted.rivals.is_empty() || self.context.content == PullContent::Rows {
            return Ok(Verdict::Import);
        }
        let fetched = EventHistory::of_events(&session.events);
        let mut verdict = Verdict::Import;
        for rival in &wanted.rivals {
            let (at, holder) = match rival {
                Rival::Local(at) => (Some(*at), "here"),
                Rival::Imported { session_id, publisher } => {
                    (self.snapshot.session_position(session_id), publisher.as_str())
                }
            };
            let Some(at) = at else { continue };
            let known = EventHistory::of_session(&self.snapshot, at).map_err(store_error)?;
            let is_same_log = match rival {
                Rival::Local(_) => true,
                Rival::Imported { session_id, .. } => self.has_log(session_id, &wanted.listed.log),
            };
            if is_same_log && known.contains(&fetched) {
                let counts = self.counts.entry(wanted.publisher.clone()).or_default();
                match rival {
                    Rival::Local(_) => counts.known_here += 1,
                    Rival::Imported { .. } => counts.unchanged += 1,
                }
                self.contained.insert(contained_key(wanted), contained_value(wanted, holder));
                return Ok(Verdict::Contained);
            }
            if matches!(rival, Rival::Imported { .. }) && !(is_same_log && fetched.contains(&known))
            {
                verdict = Verdict::ImportApart;
            }
        }
        Ok(verdict)
    }

    /// Returns whether an imported session is of a log.
    fn has_log(&self, session_id: &str, log: &str) -> bool {
        let mut imported = self.known.imported.values();
        let imported = imported.find(|one| one.session_id == session_id);
        imported.and_then(|one| one.from.as_ref()).is_some_and(|from| from.log == log)
    }

    /// Returns the row that the store has of a session of the lake.
    fn local_row(&mut self, wanted: &Wanted, key: &str, session: &FetchedSession) -> SessionRow {
        let known = self.known.imported.get(key).map(|known| known.session_id.clone());
        let path = source_path(self.context.place, key);
        let session_id =
            known.unwrap_or_else(|| new_local_id(&wanted.lake_id, &path, &self.known.taken));
        self.known.taken.insert(session_id.clone());
        let row = &session.published.row;
        SessionRow {
            session_id,
            parent_session_id: row.parent_session_id.as_deref().map(|id| self.local_parent(id)),
            source_path: path,
            machine: Some(wanted.machine.clone()),
            user_name: Some(wanted.user_name.clone()),
            // The log is on another machine.
            source_gone: true,
            ..row.clone()
        }
    }

    /// Returns the id that the store has, or is going to have, of a session with this id in the lake.
    fn local_parent(&self, lake_id: &str) -> String {
        match self.known.imported.get(lake_id) {
            Some(known) => known.session_id.clone(),
            None => safe_session_id(lake_id).into_owned(),
        }
    }

    /// Returns the row of the source of a session, by which the next pull knows what was imported.
    fn source_row(
        &self,
        wanted: &Wanted,
        key: &str,
        row: &SessionRow,
        session: &FetchedSession,
    ) -> SourceRow {
        let mut from = imported_from(&wanted.publisher, &wanted.listed);
        from.shared_id = (key != wanted.lake_id).then(|| wanted.lake_id.clone());
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

    /// Returns whether the machine from which a session was imported no longer publishes it.
    fn is_withdrawn(&self, key: &str) -> bool {
        let from = self.known.imported.get(key).and_then(|imported| imported.from.as_ref());
        let Some(from) = from else { return false };
        let lake_id = from.shared_id.as_deref().unwrap_or(key);
        !self.lists(&from.publisher, lake_id)
    }

    /// Removes sessions that the lake no longer has, and those of which a log of the store has all.
    pub(super) fn remove_gone(&mut self) -> Result<(), ToolError> {
        let mut gone = HashSet::new();
        for (key, imported) in &self.known.imported {
            if self.is_withdrawn(key) || self.is_in_local_log(imported)? {
                gone.insert(imported.session_id.clone());
            }
        }
        if gone.is_empty() {
            return Ok(());
        }
        self.report.removed = gone.len();
        let writer = (self.context.open_writer)()?;
        // First, so that a pull that is killed here removes the sessions the next time.
        writer.remove_foreign_logs(&gone).map_err(store_error)?;
        writer.remove_imported(&gone).map_err(store_error)?;
        drop(writer);
        self.refresh()
    }

    /// Returns whether a log of the store has all events of an imported session.
    fn is_in_local_log(&self, imported: &Imported) -> Result<bool, ToolError> {
        let Some(from) = &imported.from else { return Ok(false) };
        let Some(local) = self.known.local.get(&from.log) else { return Ok(false) };
        if self.context.content == PullContent::Rows {
            return Ok(true);
        }
        let Some(at) = self.snapshot.session_position(&imported.session_id) else {
            return Ok(false);
        };
        let imported = EventHistory::of_session(&self.snapshot, at).map_err(store_error)?;
        for LocalLog { at, .. } in local {
            let local = EventHistory::of_session(&self.snapshot, *at).map_err(store_error)?;
            if local.contains(&imported) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether something could not be read.
    pub(super) fn has_problems(&self) -> bool {
        self.counts.values().any(|counts| !counts.problems.is_empty())
    }

    /// Returns the report of a pull that found nothing new.
    pub(super) fn into_unchanged_report(mut self, machines: usize) -> PullReport {
        self.report.machines = machines;
        self.report.unchanged = self.known.imported.len();
        self.report.requests = self.context.place.requests();
        self.report
    }

    /// Returns the report.
    pub(super) fn into_report(mut self) -> PullReport {
        for counts in self.counts.into_values() {
            self.report.unchanged += counts.unchanged;
            self.report.filtered += counts.filtered;
            self.report.excluded += counts.excluded;
            self.report.known_here += counts.known_here;
            self.report.problems.extend(counts.problems);
        }
        self.report.requests = self.context.place.requests();
        self.report
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

/// Reports the sessions of a listing that are not valid.
fn note_invalid(listing: &MachineListing, problems: &mut Vec<String>) {
    let machine = &listing.machine;
    for id in listing.invalid.iter().take(MAX_NAMED_INVALID) {
        let id = shown_id(id);
        problems.push(format!(
            "session {id} of {machine} was not imported: its entry in the listing is not valid"
        ));
    }
    if let Some(more) = listing.invalid.len().checked_sub(MAX_NAMED_INVALID).filter(|it| *it > 0) {
        problems.push(format!("{more} more entries in the listing of {machine} are not valid"));
    }
}

/// Returns the key under which it is noted what contains a session.
fn contained_key(wanted: &Wanted) -> String {
    format!("{} {}", wanted.publisher, wanted.lake_id)
}

/// Returns what is noted of a session that `holder` contains.
fn contained_value(wanted: &Wanted, holder: &str) -> String {
    format!("{} {holder}", wanted.listed.content_hash())
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
