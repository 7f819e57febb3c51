//! Reads the sources of a snapshot: as rows, or in the compact form for a scan of all logs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use ingest::plan::excluded::log_identity;
use schemas::session::{SessionRow, SourceRow};

use super::error::StoreError;
use super::manifest::Manifest;
use super::segment::segment_rows::RowSource;
use super::segment::source_table::{SourceList, SourceTable};
use super::snapshot::Snapshot;
use base::parallel::in_parallel;

/// A session of this machine, and its log.
pub struct OwnLog<'s> {
    /// Position in the snapshot.
    pub at: usize,
    pub row: &'s SessionRow,
    pub source: SourceRow,
    /// The identity of the log.
    pub identity: String,
}

/// Returns the latest state of every source of the store in `dir`.
pub(super) fn read_table_of(dir: &Path, manifest: &Manifest) -> Result<SourceTable, StoreError> {
    let Some(source) = RowSource::open(dir, manifest)? else { return Ok(SourceTable::default()) };
    let parts = in_parallel(&manifest.segments, 1, |segments| {
        let lists = segments.iter().map(|entry| {
            let rows = source.read_sources(entry.number)?;
            Ok(SourceList::of_rows(&rows))
        });
        lists.collect::<Result<Vec<_>, StoreError>>()
    })?;
    Ok(SourceTable::of_lists(parts.into_iter().flatten().collect()))
}

impl Snapshot {
    /// Returns the sessions whose history the wanted sessions may repeat, by session and in the order of
    /// their ids. Sessions that may repeat no other are left out.
    pub(super) fn read_ancestors(
        &self,
        is_wanted: &dyn Fn(&str) -> bool,
    ) -> Result<BTreeMap<String, BTreeSet<String>>, StoreError> {
        let mut latest: HashMap<&str, (i64, BTreeSet<&str>)> = HashMap::new();
        for segment in self.segments() {
            for row in segment.read_ancestors()?.iter().filter(|row| is_wanted(&row.session_id)) {
                let (number, ancestors) = latest.entry(&row.session_id).or_default();
                if row.segment < *number {
                    continue;
                }
                if row.segment > *number {
                    *number = row.segment;
                    ancestors.clear();
                }
                ancestors.extend(row.ancestors.split(' ').filter(|id| !id.is_empty()));
            }
        }
        let mut found = BTreeMap::new();
        for (session, (_, ancestors)) in latest {
            if !ancestors.is_empty() {
                let ancestors = ancestors.into_iter().map(str::to_owned).collect();
                found.insert(session.to_owned(), ancestors);
            }
        }
        Ok(found)
    }

    /// Returns the latest state of every source.
    pub fn read_source_table(&self) -> Result<SourceTable, StoreError> {
        let mut table = read_table_of(self.dir(), self.manifest())?;
        if self.is_restricted() {
            table.retain_sessions(|id| self.session(id).is_some());
        }
        Ok(table)
    }

    /// Returns the latest row of every source, sorted by path. Leaves out the decoder states unless
    /// `includes_state`.
    pub fn read_sources(&self, includes_state: bool) -> Result<Vec<SourceRow>, StoreError> {
        self.read_sources_with_states(&|_| includes_state)
    }

    /// Returns the latest row of every source, sorted by path. Only those that `wants_state` accepts have
    /// their decoder states.
    pub(super) fn read_sources_with_states(
        &self,
        wants_state: &(dyn Fn(&SourceRow) -> bool + Sync),
    ) -> Result<Vec<SourceRow>, StoreError> {
        let latest = self.read_latest_sources(wants_state)?;
        let mut rows: Vec<SourceRow> = latest.into_values().collect();
        rows.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(rows)
    }

    /// Returns where the latest state of the decoder of each log is, by the path of the log: the position
    /// of its segment, and its position in this.
    pub(super) fn locate_states(&self) -> Result<HashMap<String, (usize, usize)>, StoreError> {
        let mut found = HashMap::new();
        for (position, segment) in self.segments().iter().enumerate() {
            let rows = segment.shared.sessions.source().read_sources(segment.entry.number)?;
            for (at, row) in rows.into_iter().enumerate() {
                if row.state.is_some() {
                    found.insert(row.path, (position, at));
                } else {
                    found.remove(&row.path);
                }
            }
        }
        Ok(found)
    }

    /// Returns the latest row of every source, by its path, without the decoder states.
    pub fn read_sources_by_path(&self) -> Result<HashMap<String, SourceRow>, StoreError> {
        self.read_latest_sources(&|_| false)
    }

    /// Returns the sessions of this machine that have events, and one of these logs.
    pub fn find_own_logs(&self, sources: Vec<SourceRow>) -> Result<Vec<OwnLog<'_>>, StoreError> {
        let mut by_session: HashMap<String, SourceRow> = HashMap::new();
        for source in sources {
            if let Some(id) = source.session_id.clone() {
                by_session.insert(id, source);
            }
        }
        let mut own = Vec::new();
        for (at, session) in self.sessions().iter().enumerate() {
            if session.origin.machine.is_some() || session.events == 0 {
                continue;
            }
            let Some(source) = by_session.remove(session.id()) else { continue };
            let row: &SessionRow = session.row()?;
            let identity = log_identity(row, &source);
            own.push(OwnLog { at, row, source, identity });
        }
        Ok(own)
    }

    fn read_latest_sources(
        &self,
        wants_state: &(dyn Fn(&SourceRow) -> bool + Sync),
    ) -> Result<HashMap<String, SourceRow>, StoreError> {
        let parts = in_parallel(self.segments(), 1, |segments| {
            let mut rows = Vec::new();
            for segment in segments {
                let source = segment.shared.sessions.source();
                rows.extend(source.read_sources_with_states(segment.entry.number, wants_state)?);
            }
            Ok::<_, StoreError>(rows)
        })?;
        let mut latest: HashMap<String, SourceRow> =
            HashMap::with_capacity(parts.iter().map(Vec::len).sum());
        for row in parts.into_iter().flatten() {
            match latest.get_mut(&row.path) {
                Some(other) if other.segment < row.segment => *other = row,
                Some(_) => {}
                None => {
                    latest.insert(row.path.clone(), row);
                }
            }
        }
        if self.is_restricted() {
            latest.retain(|_, row| {
                row.session_id.as_deref().is_some_and(|id| self.session(id).is_some())
            });
        }
        Ok(latest)
    }
}
