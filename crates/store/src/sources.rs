//! Reads the sources of a snapshot: as rows, or in the compact form for a scan of all logs.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use schemas::session::SourceRow;

use super::error::StoreError;
use super::manifest::Manifest;
use super::segment::segment_rows::RowSource;
use super::segment::source_table::{SourceList, SourceTable};
use super::snapshot::Snapshot;
use base::parallel::in_parallel;

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
        let latest = self.read_latest_sources(includes_state)?;
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
        self.read_latest_sources(false)
    }

    fn read_latest_sources(
        &self,
        includes_state: bool,
    ) -> Result<HashMap<String, SourceRow>, StoreError> {
        let parts = in_parallel(self.segments(), 1, |segments| {
            let mut rows = Vec::new();
            for segment in segments {
                let (source, number) = (segment.shared.sessions.source(), segment.entry.number);
                rows.extend(if includes_state {
                    source.read_whole_sources(number)?
                } else {
                    source.read_sources(number)?
                });
            }
            Ok::<_, StoreError>(rows)
        })?;
        let mut latest: HashMap<String, SourceRow> =
            HashMap::with_capacity(parts.iter().map(Vec::len).sum());
        for mut row in parts.into_iter().flatten() {
            if !includes_state {
                row.state = None;
            }
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
