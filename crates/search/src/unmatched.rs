//! Finds qualifiers of a query whose value no event or session of the store has.

use std::collections::BTreeSet;

use super::query::{FieldFilter, FilterField, Query};
use base::paths::last_part;
use store::{RowTags, Segment, SessionOrigin, Snapshot, StoreError};

/// A qualifier whose values nothing in the store has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedFilter {
    pub field: FilterField,
    /// The values that were requested, in lower case.
    pub wanted: Vec<String>,
    /// The values that exist, as logs write them; of files only their names.
    pub known: BTreeSet<String>,
}

/// Returns the qualifiers of the query that exclude every event, whatever the rest of the query is.
pub fn find_unmatched_filters(
    snapshot: &Snapshot,
    query: &Query,
) -> Result<Vec<UnmatchedFilter>, StoreError> {
    let mut unmatched = Vec::new();
    for filter in query.filters.iter().filter(|filter| !filter.is_excluded) {
        // The index names the tools, branches and files of all sessions of a segment.
        if snapshot.is_restricted() && !filter.field.is_of_session() {
            continue;
        }
        let mut has_match = false;
        let mut known = BTreeSet::new();
        for_each_value(snapshot, filter.field, &mut |value| {
            has_match |= filter_passes(filter, value);
            if !has_match {
                let name = if filter.field == FilterField::File { last_part(value) } else { value };
                if !known.contains(name) {
                    known.insert(name.to_owned());
                }
            }
        })?;
        if !has_match {
            let wanted = filter.any.clone();
            unmatched.push(UnmatchedFilter { field: filter.field, wanted, known });
        }
    }
    Ok(unmatched)
}

/// Returns true if a value passes; a label must be equal.
fn filter_passes(filter: &FieldFilter, value: &str) -> bool {
    if filter.field == FilterField::Label {
        return filter.any.iter().any(|wanted| value.to_lowercase() == *wanted);
    }
    filter.passes(Some(value))
}

/// Calls `visit` with every value of a field in the store; a value may occur more than once.
fn for_each_value(
    snapshot: &Snapshot,
    field: FilterField,
    visit: &mut dyn FnMut(&str),
) -> Result<(), StoreError> {
    match field {
        FilterField::Agent => {
            for session in snapshot.sessions() {
                visit(session.provider.as_str());
                if let Some(agent) = &session.agent_id {
                    visit(agent);
                }
            }
        }
        FilterField::Project => {
            for session in snapshot.sessions() {
                let SessionOrigin { cwd, project, repository, .. } = &*session.origin;
                [cwd, project, repository].into_iter().flatten().for_each(|value| visit(value));
            }
        }
        FilterField::Machine => {
            snapshot.sessions().iter().for_each(|session| visit(snapshot.machine_of(session)));
        }
        FilterField::User => {
            snapshot.sessions().iter().for_each(|session| visit(snapshot.user_of(session)));
        }
        FilterField::Label => {
            for label in snapshot.labels().rows().filter_map(|row| row.label) {
                visit(label);
            }
        }
        FilterField::Tool => for_each_tag(snapshot, |tags| tags.tool.as_deref(), visit)?,
        FilterField::Model => for_each_tag(snapshot, |tags| tags.model.as_deref(), visit)?,
        FilterField::Branch => for_each_tag(snapshot, |tags| tags.branch.as_deref(), visit)?,
        FilterField::File => {
            for segment in segments_with_events(snapshot) {
                for paths in segment.skip_index()?.file_lists()? {
                    paths.lines().for_each(&mut *visit);
                }
            }
        }
    }
    Ok(())
}

/// Calls `visit` with the values that `value` returns for the row tags of all segments.
fn for_each_tag(
    snapshot: &Snapshot,
    value: impl Fn(&RowTags) -> Option<&str>,
    visit: &mut dyn FnMut(&str),
) -> Result<(), StoreError> {
    for segment in segments_with_events(snapshot) {
        segment.skip_index()?.row_tags()?.iter().filter_map(&value).for_each(&mut *visit);
    }
    Ok(())
}

/// Returns the segments that have an index, which are those with events.
fn segments_with_events(snapshot: &Snapshot) -> impl Iterator<Item = &Segment> {
    snapshot.segments().iter().filter(|segment| !segment.spans.is_empty())
}
