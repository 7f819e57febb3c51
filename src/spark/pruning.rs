//! Decides by skip indexes which objects of a lake can have matches.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::convert::Infallible;
use std::ops::Range;
use std::path::Path;

use jiff::civil::Date;

use crate::lake::{JoinedEvents, LakeCatalog, LakeEvents};
use base::parallel::in_parallel;
use search::{IndexFilter, SearchRequest, matching_sessions};
use store::{Snapshot, StoreError, open_lake_index};

/// Objects whose indexes a thread reads at a time.
const OBJECTS_AT_ONCE: usize = 32;

/// A joined object is scanned if at least one in this number of its sources may have matches.
const SCANNED_SHARE: usize = 2;

/// An object that may have matches.
pub(super) struct CandidateObject {
    /// Position of its session in the snapshot.
    pub(super) session: usize,
    pub(super) path: String,
    /// The day of its events, counted from 1970-01-01.
    pub(super) day: Option<i64>,
    /// The joined object with the same rows, if all sources of that one belong to selected sessions:
    /// its position in the catalog.
    pub(super) joined: Option<usize>,
}

/// An object of a selected session.
#[derive(Clone, Copy)]
struct SelectedObject<'c> {
    session: usize,
    object: &'c LakeEvents,
}

/// Returns the objects of the selected sessions that can have matches, judging by their indexes. An
/// object without an index that can be read is one of them.
pub(super) fn find_candidates(
    catalog: &LakeCatalog,
    folder: &Path,
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
) -> Vec<CandidateObject> {
    let selected = select_objects(catalog, snapshot, matching_sessions(snapshot, request).as_ref());
    let filter = IndexFilter::new(request);
    let mut single = Vec::new();
    let mut joined: BTreeMap<usize, Vec<SelectedObject<'_>>> = BTreeMap::new();
    for one in selected {
        match &one.object.joined {
            Some(place) => joined.entry(place.object).or_default().push(one),
            None => single.push(one),
        }
    }
    let mut candidates = find_single(folder, &single, &filter);
    let joined: Vec<_> = joined.into_iter().collect();
    let found = in_parallel(&joined, 1, |some| {
        let mut candidates = Vec::new();
        for (at, sources) in some {
            candidates.extend(find_joined(catalog, folder, *at, sources, &filter));
        }
        Ok::<_, Infallible>(candidates)
    });
    let Ok(parts) = found;
    candidates.extend(parts.into_iter().flatten());
    candidates
}

/// Returns the objects that can have matches, judging by the index of each.
fn find_single(
    folder: &Path,
    objects: &[SelectedObject<'_>],
    filter: &IndexFilter<'_>,
) -> Vec<CandidateObject> {
    let found = in_parallel(objects, OBJECTS_AT_ONCE, |some| {
        let mut candidates = Vec::new();
        for one in some {
            if may_match(folder, one.object, filter) {
                candidates.push(candidate(folder, *one, None));
            }
        }
        Ok::<_, Infallible>(candidates)
    });
    let Ok(parts) = found;
    parts.into_iter().flatten().collect()
}

/// Returns the sources of a joined object that can have matches, judging by its index. If that cannot
/// be read, each has an index of its own.
fn find_joined(
    catalog: &LakeCatalog,
    folder: &Path,
    at: usize,
    sources: &[SelectedObject<'_>],
    filter: &IndexFilter<'_>,
) -> Vec<CandidateObject> {
    let Some(joined) = catalog.joined.get(at) else { return find_single(folder, sources, filter) };
    let Ok(Some(rows)) = joined_rows(folder, joined, filter) else {
        return find_single(folder, sources, filter);
    };
    let whole = if sources.len() == joined.sources { Some(at) } else { None };
    let mut candidates = Vec::new();
    for one in sources {
        let Some(place) = &one.object.joined else { continue };
        // Ranges before this one end before the rows of the source.
        let next = rows.partition_point(|range| range.end <= place.rows.start);
        if rows.get(next).is_some_and(|range| range.start < place.rows.end) {
            candidates.push(candidate(folder, *one, whole));
        }
    }
    candidates
}

/// Returns the rows of a joined object that may match; `None` if its index is of other rows.
fn joined_rows(
    folder: &Path,
    joined: &JoinedEvents,
    filter: &IndexFilter<'_>,
) -> Result<Option<Vec<Range<usize>>>, StoreError> {
    let (key, bytes) = &joined.index;
    let index = open_lake_index(&folder.join(key), *bytes)?;
    if index.row_count() != joined.rows {
        return Ok(None);
    }
    filter.find_candidate_rows(&index).map(Some)
}

/// Returns the paths that Spark reads to find all matches of candidates: those of joined objects
/// instead of many of their sources. The other sources have no matches.
pub(super) fn scanned_paths(
    catalog: &LakeCatalog,
    folder: &Path,
    candidates: &[&CandidateObject],
) -> Vec<String> {
    let mut counts: HashMap<usize, usize> = HashMap::new();
    for at in candidates.iter().filter_map(|one| one.joined) {
        *counts.entry(at).or_default() += 1;
    }
    counts.retain(|at, count| *count * SCANNED_SHARE >= catalog.joined[*at].sources);
    let joined = counts.keys().map(|at| object_path(folder, &catalog.joined[*at].key));
    let mut paths: Vec<String> = joined.collect();
    for one in candidates {
        if !one.joined.is_some_and(|at| counts.contains_key(&at)) {
            paths.push(one.path.clone());
        }
    }
    paths.sort_unstable();
    paths
}

/// Returns all objects of the selected sessions.
pub(super) fn collect_objects(
    catalog: &LakeCatalog,
    folder: &Path,
    snapshot: &Snapshot,
    sessions: Option<&HashSet<usize>>,
) -> Vec<CandidateObject> {
    let selected = select_objects(catalog, snapshot, sessions);
    selected.into_iter().map(|one| candidate(folder, one, None)).collect()
}

fn select_objects<'c>(
    catalog: &'c LakeCatalog,
    snapshot: &Snapshot,
    sessions: Option<&HashSet<usize>>,
) -> Vec<SelectedObject<'c>> {
    let mut selected = Vec::new();
    for (id, session) in &catalog.sessions {
        let Some(at) = snapshot.session_position(id) else { continue };
        if sessions.is_some_and(|wanted| !wanted.contains(&at)) {
            continue;
        }
        let objects = session.objects.iter();
        selected.extend(objects.map(|object| SelectedObject { session: at, object }));
    }
    selected
}

fn candidate(
    folder: &Path,
    SelectedObject { session, object }: SelectedObject<'_>,
    joined: Option<usize>,
) -> CandidateObject {
    CandidateObject {
        session,
        path: object_path(folder, &object.key),
        day: parse_day(object.date()),
        joined,
    }
}

/// Returns the path by which Spark reads an object. Characters that a pattern of paths has are escaped.
pub(super) fn object_path(folder: &Path, key: &str) -> String {
    let path = folder.join(key).to_string_lossy().into_owned();
    let mut escaped = String::with_capacity(path.len());
    for letter in path.chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

fn may_match(folder: &Path, object: &LakeEvents, filter: &IndexFilter<'_>) -> bool {
    let Some((key, bytes)) = &object.index else { return true };
    let read = open_lake_index(&folder.join(key), *bytes);
    read.and_then(|index| filter.may_match(&index)).unwrap_or(true)
}

/// Returns the number of a day such as 2026-10-14, counted from 1970-01-01.
pub(super) fn parse_day(date: &str) -> Option<i64> {
    let date: Date = date.parse().ok()?;
    Some(date.since(Date::constant(1970, 1, 1)).ok()?.get_days().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_joined_object_is_scanned_instead_of_many_of_its_sources() {
        let mut catalog = LakeCatalog::default();
        for key in ["v1/days/d/a.parquet", "v1/days/d/b.parquet"] {
            let index = (String::new(), 0);
            catalog.joined.push(JoinedEvents { key: key.to_owned(), index, sources: 4, rows: 9 });
        }
        let one = |path: &str, joined| CandidateObject {
            session: 0,
            path: path.to_owned(),
            day: None,
            joined,
        };
        let all = [one("/1", Some(0)), one("/2", Some(0)), one("/3", Some(1)), one("/4", None)];
        let candidates: Vec<_> = all.iter().collect();
        let paths = scanned_paths(&catalog, Path::new("/lake"), &candidates);
        assert_eq!(paths, ["/3", "/4", "/lake/v1/days/d/a.parquet"]);
    }

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(parse_day("1970-01-01"), Some(0));
        assert_eq!(parse_day("1969-12-31"), Some(-1));
        assert_eq!(parse_day("2024-02-29"), Some(19_782));
        assert_eq!(parse_day("2026-11-26"), Some(20_783));
        assert_eq!(parse_day("x"), None);
    }
}
