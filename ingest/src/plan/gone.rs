//! Finds logs that no longer exist and marks their sessions.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::PathBuf;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::{SessionRow, SourceRow, SourceStatus};

use super::compare::is_unrecognised;
use super::planned_log::{Known, Plan};
use crate::discover::{Discovery, find_obstacle, is_below_root};
use crate::source::candidate::LogCandidate;

impl Plan {
    /// Settles the files below a readable root that no longer exist.
    pub(super) fn settle_vanished(&mut self, found: &Discovery, known: &Known) {
        if known.sources.is_empty() {
            return;
        }
        let present: HashSet<String> = found.files.iter().map(LogCandidate::key).collect();
        let roots: Vec<_> =
            found.roots.iter().filter_map(|root| std::path::absolute(root).ok()).collect();

        let mut missing = Vec::new();
        for row in known.sources.values() {
            if row.status == SourceStatus::Gone || present.contains(&row.path) {
                continue;
            }
            if roots.iter().any(|root| is_below_root(&row.path, root)) {
                missing.push(row);
            }
        }
        missing.sort_by(|a, b| a.path.cmp(&b.path));

        let mut obstacles: BTreeMap<PathBuf, io::Error> = BTreeMap::new();
        for row in missing {
            if !found.has_lost(&row.path) {
                obstacles.extend(find_obstacle(&row.path));
                continue;
            }
            // Content that was not recognised is examined again if it comes back.
            let size = if is_unrecognised(row) { -1 } else { row.size };
            self.settled.push(SourceRow { status: SourceStatus::Gone, size, ..row.clone() });
            self.mark_session(row, true, known);
        }

        for (path, error) in obstacles {
            if found.problems.iter().any(|problem| path.starts_with(&problem.path)) {
                continue;
            }
            self.problems.push(Problem {
                path: path.to_string_lossy().into_owned(),
                line: 0,
                byte: 0,
                kind: ProblemKind::Unreadable,
                message: format!("the logs at this path cannot be reached: {error}"),
            });
        }
    }

    /// Notes that the log of a session is gone or came back, unless the session's row says so.
    pub(super) fn mark_session(&mut self, row: &SourceRow, is_gone: bool, known: &Known) {
        let Some(session) = known.session_of(row) else { return };
        if session.source_gone == is_gone {
            return;
        }
        self.sessions.push(SessionRow {
            source_gone: is_gone,
            row_start: 0,
            row_count: 0,
            ..SessionRow::clone(session)
        });
    }

    /// Keeps the session of a file that was overwritten with other content. The session is kept as
    /// one whose log is gone, under a path that no file has.
    pub(super) fn set_aside(&mut self, row: &SourceRow, known: &Known) {
        let Some(session) = known.session_of(row) else { return };
        let path = path_aside(&row.path, &session.session_id);
        let status = SourceStatus::Gone;
        self.moved.insert(path.clone(), row.path.clone());
        self.settled.push(SourceRow { path: path.clone(), status, ..row.clone() });
        self.sessions.push(SessionRow {
            source_path: path,
            source_gone: true,
            row_start: 0,
            row_count: 0,
            ..SessionRow::clone(session)
        });
    }

    /// Removes the sessions of logs that receive another id: those sessions will be empty. Returns
    /// the known rows without these sessions, or `None` if nothing was removed.
    pub(super) fn empty_renamed_sessions(
        &mut self,
        logs: &[&SourceRow],
        known: &Known,
    ) -> Option<Known> {
        if logs.is_empty() {
            return None;
        }

        let mut remaining = known.clone();
        for row in logs {
            remaining.sources.remove(&row.path);
            let Some(session) = known.session_of(row) else { continue };
            remaining.sessions.remove(&session.session_id);
            self.sessions.push(SessionRow {
                session_id: session.session_id.clone(),
                provider: session.provider,
                source_path: path_aside(&row.path, &session.session_id),
                source_gone: true,
                live_from: NEVER,
                ..SessionRow::default()
            });
            // Until the log is read under its new id, its row stays that of the old one.
            self.settled.push(SourceRow::clone(row));
        }
        Some(remaining)
    }
}

/// The `live_from` segment of a session without rows: no segment reaches it.
const NEVER: i64 = i64::MAX;

/// Returns the path under which the session of an overwritten file is kept.
pub(crate) fn path_aside(file: &str, session_id: &str) -> String {
    format!("{file}#{session_id}")
}
