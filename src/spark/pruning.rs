//! Decides by skip indexes which objects of a lake can have matches.

use std::collections::HashSet;
use std::convert::Infallible;
use std::path::Path;

use jiff::civil::Date;

use crate::base::parallel::in_parallel;
use crate::lake::{LakeCatalog, LakeEvents};
use crate::search::{IndexFilter, SearchRequest, selected_sessions};
use crate::store::{Snapshot, open_lake_index};

/// Objects whose indexes a thread reads at a time.
const OBJECTS_AT_ONCE: usize = 32;

/// An object that may have matches.
pub(super) struct CandidateObject {
    /// Position of its session in the snapshot.
    pub(super) session: usize,
    pub(super) path: String,
    /// The day of its events, counted from 1970-01-01.
    pub(super) day: Option<i64>,
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
    let selected = select_objects(catalog, snapshot, selected_sessions(snapshot, request).as_ref());
    let filter = IndexFilter::new(request);
    let found = in_parallel(&selected, OBJECTS_AT_ONCE, |some| {
        let mut candidates = Vec::new();
        for one in some {
            if may_match(folder, one.object, &filter) {
                candidates.push(candidate(folder, *one));
            }
        }
        Ok::<_, Infallible>(candidates)
    });
    let Ok(parts) = found;
    parts.into_iter().flatten().collect()
}

/// Returns all objects of the selected sessions.
pub(super) fn collect_objects(
    catalog: &LakeCatalog,
    folder: &Path,
    snapshot: &Snapshot,
    sessions: Option<&HashSet<usize>>,
) -> Vec<CandidateObject> {
    let selected = select_objects(catalog, snapshot, sessions);
    selected.into_iter().map(|one| candidate(folder, one)).collect()
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
) -> CandidateObject {
    CandidateObject {
        session,
        path: object_path(folder, &object.key),
        day: parse_day(object.date()),
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
    fn days_are_counted_from_1970() {
        assert_eq!(parse_day("1970-01-01"), Some(0));
        assert_eq!(parse_day("1969-12-31"), Some(-1));
        assert_eq!(parse_day("2024-02-29"), Some(19_782));
        assert_eq!(parse_day("2026-11-26"), Some(20_783));
        assert_eq!(parse_day("x"), None);
    }
}
