//! Selects the sessions that pass the filters of a request, by their rows and labels.

use std::collections::HashSet;

use super::query::{FieldFilter, FilterField};
use super::request::SearchRequest;
use store::{SessionOrigin, Snapshot, StoredSession};

/// Returns the positions of the sessions that pass the filters of a request; `None` means all.
pub fn matching_sessions(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
) -> Option<HashSet<usize>> {
    let filters = request.query.filters.iter().filter(|filter| filter.field.is_of_session());
    let filters: Vec<&FieldFilter> = filters.collect();
    if filters.is_empty() {
        return request.sessions.clone();
    }
    let mut matching = HashSet::new();
    for (position, session) in snapshot.sessions().iter().enumerate() {
        let is_requested = request.sessions.as_ref().is_none_or(|all| all.contains(&position));
        if is_requested && filters.iter().all(|filter| session_passes(filter, snapshot, session)) {
            matching.insert(position);
        }
    }
    Some(matching)
}

/// Returns true if a session passes a session filter.
fn session_passes(filter: &FieldFilter, snapshot: &Snapshot, session: &StoredSession) -> bool {
    match filter.field {
        FilterField::Label => {
            // Labels are whole words that a user chose, so a part of a label does not match.
            let labels = snapshot.labels().session_labels(session.id());
            let has_any =
                labels.is_some_and(|labels| filter.any.iter().any(|any| labels.has_label(any)));
            has_any != filter.is_excluded
        }
        FilterField::Agent => {
            let values = [Some(session.provider.as_str()), session.agent_id.as_deref()];
            filter.passes_several(&values)
        }
        FilterField::Project => {
            let SessionOrigin { cwd, project, repository, .. } = &*session.origin;
            let values = [cwd, project, repository];
            filter.passes_several(&values.map(Option::as_deref))
        }
        FilterField::Machine => filter.passes(Some(snapshot.machine_of(session))),
        FilterField::User => filter.passes(Some(snapshot.user_of(session))),
        // Events have these fields, not sessions.
        FilterField::Tool | FilterField::Model | FilterField::Branch | FilterField::File => true,
    }
}
