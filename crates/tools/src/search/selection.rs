//! The sessions that a search examines.

use std::collections::HashSet;

use schemas::ToolError;
use schemas::envelope::Warning;
use schemas::tool::search::SearchArgs;

use crate::error::store_error;
use crate::reply::retention_warning::dropped_texts_warning;
use crate::reply::scope::{Coverage, SessionFilters};
use crate::reply::tools::Tools;
use store::Snapshot;

/// The sessions that the filters of a call select. They are looked for once in a call, because each
/// look takes milliseconds in a long history.
pub(super) struct SelectedSessions<'a> {
    filters: SessionFilters<'a>,
    /// Positions in `Snapshot::sessions`, ascending; `None` means all.
    matching: Option<Vec<usize>>,
}

impl<'a> SelectedSessions<'a> {
    /// Finds the sessions that pass the filters of `args`.
    pub(super) fn find(
        tools: &Tools,
        snapshot: &Snapshot,
        args: &'a SearchArgs,
    ) -> Result<Self, ToolError> {
        let id = args.session_id.as_deref();
        let filters = SessionFilters {
            project: args.project.as_deref(),
            provider: args.provider,
            machine: args.machine.as_deref(),
            user: args.user.as_deref(),
            session: id.map(|id| tools.caller.find_session(snapshot, id)).transpose()?,
            ..SessionFilters::default()
        };
        Ok(Self { filters, matching: filters.find_matching(snapshot) })
    }

    /// Returns the positions of the sessions without the one at `excluded`; `None` means all.
    pub(super) fn without(
        &self,
        excluded: Option<usize>,
        snapshot: &Snapshot,
    ) -> Option<HashSet<usize>> {
        let is_wanted = |at: &usize| Some(*at) != excluded;
        match &self.matching {
            Some(matching) => Some(matching.iter().copied().filter(is_wanted).collect()),
            None if excluded.is_some() => {
                Some((0..snapshot.sessions().len()).filter(is_wanted).collect())
            }
            None => None,
        }
    }

    /// Describes the sessions.
    pub(super) fn describe(&self, snapshot: &Snapshot) -> String {
        self.filters.describe_matching(snapshot, self.matching.as_deref(), Coverage::All)
    }

    /// Explains which filter no session passes; `None` if a session passes all of them.
    pub(super) fn explain_none(&self, snapshot: &Snapshot) -> Option<String> {
        if self.matching.as_ref().is_none_or(|matching| !matching.is_empty()) {
            return None;
        }
        self.filters.explain_none(snapshot)
    }

    /// Returns a note if the retention dropped texts of the sessions.
    pub(super) fn dropped_texts_note(
        &self,
        snapshot: &Snapshot,
    ) -> Result<Option<Warning>, ToolError> {
        let passes = self.filters.row_filter(snapshot);
        let requested = self.filters.session.map(|at| snapshot.sessions()[at].id());
        let dropped = dropped_texts_warning(snapshot, |row| {
            passes(row) && requested.is_none_or(|id| row.session_id == id)
        });
        dropped.map_err(store_error)
    }
}
