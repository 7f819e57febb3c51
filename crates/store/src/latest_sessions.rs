//! Merges the sessions of all segments: of several rows of a session, the latest counts.

use std::cmp::Ordering;
use std::sync::Arc;

use super::segment::session_summary::SessionSummary;
use super::segment::session_table::{SessionTable, StoredSession};

/// The sessions of some segments as they are now.
pub(super) struct LatestSessions {
    /// The latest row of each session, sorted by id.
    pub(super) sessions: Vec<StoredSession>,
    /// The `live_from` of each of `sessions`.
    pub(super) live_from: Vec<i64>,
    /// The positions in `sessions` of the sessions of each segment, in the order of its rows.
    pub(super) positions: Vec<Vec<usize>>,
}

impl LatestSessions {
    /// Merges the sessions of segments. The latest row of a session has the highest segment number.
    pub(super) fn of_tables(tables: &[&Arc<SessionTable>]) -> Self {
        let rows = tables.iter().map(|table| table.summaries().len()).sum();
        let mut found = Vec::with_capacity(rows);
        for (segment, table) in tables.iter().enumerate() {
            for (row, summary) in table.summaries().iter().enumerate() {
                let prefix = id_prefix(&summary.session_id);
                let live_from = summary.live_from;
                found.push(FoundSession { prefix, live_from, segment, row });
            }
        }
        // The sessions of a segment are sorted already, which a stable sort takes advantage of. Summaries
        // are elsewhere in memory, and are compared only where ids begin alike.
        found.sort_by_key(|found| found.prefix);
        for alike in found.chunk_by_mut(|a, b| a.prefix == b.prefix) {
            alike.sort_by(|a, b| a.compare(b, tables));
        }

        let mut sessions: Vec<StoredSession> = Vec::with_capacity(rows);
        let mut live_from = Vec::with_capacity(rows);
        let mut positions: Vec<Vec<usize>> =
            tables.iter().map(|table| vec![0; table.summaries().len()]).collect();
        let mut last: Option<&FoundSession> = None;
        for next in &found {
            if last.is_none_or(|last| !last.has_id_of(next, tables)) {
                sessions.push(StoredSession::new(tables[next.segment], next.row));
                live_from.push(next.live_from);
                last = Some(next);
            }
            positions[next.segment][next.row] = sessions.len() - 1;
        }
        Self { sessions, live_from, positions }
    }
}

/// A row of a session in a segment.
struct FoundSession {
    /// Beginning of the session's id as a number.
    prefix: u64,
    live_from: i64,
    /// Position of the segment.
    segment: usize,
    /// Position in the sessions of the segment.
    row: usize,
}

impl FoundSession {
    fn summary<'t>(&self, tables: &'t [&Arc<SessionTable>]) -> &'t SessionSummary {
        &tables[self.segment].summaries()[self.row]
    }

    /// Returns whether both are of one session.
    fn has_id_of(&self, other: &Self, tables: &[&Arc<SessionTable>]) -> bool {
        self.prefix == other.prefix
            && self.summary(tables).session_id == other.summary(tables).session_id
    }

    /// Orders by id, and rows of one session from the latest to the oldest.
    fn compare(&self, other: &Self, tables: &[&Arc<SessionTable>]) -> Ordering {
        let [own, others] = [self, other].map(|found| found.summary(tables));
        own.session_id
            .cmp(&others.session_id)
            .then_with(|| others.segment.cmp(&own.segment))
            .then_with(|| (self.segment, self.row).cmp(&(other.segment, other.row)))
    }
}

/// Returns the first eight bytes of a session's id, which have the order of the ids.
fn id_prefix(session_id: &str) -> u64 {
    let bytes = session_id.as_bytes();
    let prefix = bytes.first_chunk().copied().unwrap_or_else(|| {
        let mut prefix = [0; size_of::<u64>()];
        prefix[..bytes.len()].copy_from_slice(bytes);
        prefix
    });
    u64::from_be_bytes(prefix)
}

#[cfg(test)]
mod tests {
    use schemas::session::SessionRow;

    use super::super::segment::segment_rows::{RowSource, rows_of};
    use super::*;

    /// Makes segments of sessions with these ids and values of `live_from`, the first one as number 1.
    fn make_segments(segments: &[&[(&str, i64)]]) -> Vec<Arc<SessionTable>> {
        let tables = (1..).zip(segments).map(|(number, sessions)| {
            let rows = sessions.iter().map(|(id, live_from)| {
                let (session_id, live_from) = ((*id).to_owned(), *live_from);
                SessionRow { session_id, live_from, segment: number, ..Default::default() }
            });
            let source = RowSource::Memory(Arc::new(rows_of(rows)));
            let summaries = SessionTable::read_bytes(&source, number).expect("reads");
            Arc::new(SessionTable::decode(source, number, &summaries).expect("decodes"))
        });
        tables.collect()
    }

    #[test]
    fn the_latest_row_of_each_session_counts_whatever_its_id_begins_with() {
        let tables = make_segments(&[
            &[("a", 1), ("ab", 1), ("agent-a1", 1), ("agent-a1y", 1), ("ägypten", 1)],
            &[("ab\0", 2), ("agent-a1", 2), ("agent-a1x", 2), ("z", 2)],
            &[("a", 3), ("agent-a1y", 1), ("agent-a2", 3), ("ägypten", 3)],
        ]);
        for order in [[0, 1, 2], [2, 0, 1]] {
            let tables: Vec<_> = order.iter().map(|at: &usize| &tables[*at]).collect();
            let LatestSessions { sessions, live_from, positions } =
                LatestSessions::of_tables(&tables);
            let found: Vec<_> = sessions
                .iter()
                .zip(&live_from)
                .map(|(session, live_from)| (session.id(), session.segment, *live_from))
                .collect();
            let expected = [
                ("a", 3, 3),
                ("ab", 1, 1),
                ("ab\0", 2, 2),
                ("agent-a1", 2, 2),
                ("agent-a1x", 2, 2),
                ("agent-a1y", 3, 1),
                ("agent-a2", 3, 3),
                ("z", 2, 2),
                ("ägypten", 3, 3),
            ];
            assert_eq!(found, expected);
            for (table, positions) in tables.iter().zip(&positions) {
                let ids = table.summaries().iter().map(|summary| summary.session_id.as_str());
                assert!(ids.eq(positions.iter().map(|position| sessions[*position].id())));
            }
        }
    }
}
