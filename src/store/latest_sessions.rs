//! Merges the sessions of all segments: of several rows of a session, the latest counts.

use std::cmp::Ordering;
use std::sync::Arc;

use super::segment::session_brief::SessionBrief;
use super::segment::session_table::{SessionTable, StoredSession};

/// The sessions of some segments as they are now.
pub(super) struct LatestSessions {
    /// The latest row of each session, sorted by id.
    pub(super) sessions: Vec<StoredSession>,
    /// The positions in `sessions` of the sessions of each segment, in the order of its rows.
    pub(super) positions: Vec<Vec<usize>>,
}

impl LatestSessions {
    /// Merges the sessions of segments. The latest row of a session has the highest segment number.
    pub(super) fn of_tables(tables: &[&Arc<SessionTable>]) -> Self {
        let rows = tables.iter().map(|table| table.briefs().len()).sum();
        let mut found = Vec::with_capacity(rows);
        for (segment, table) in tables.iter().enumerate() {
            for (row, brief) in table.briefs().iter().enumerate() {
                found.push(FoundSession { prefix: id_prefix(brief), brief, segment, row });
            }
        }
        // The sessions of a segment are sorted already, which this sort takes advantage of.
        found.sort_by(FoundSession::compare);

        let mut sessions: Vec<StoredSession> = Vec::with_capacity(rows);
        let mut positions: Vec<Vec<usize>> =
            tables.iter().map(|table| vec![0; table.briefs().len()]).collect();
        let mut last: Option<&FoundSession<'_>> = None;
        for next in &found {
            if last.is_none_or(|last| !last.has_id_of(next)) {
                sessions.push(StoredSession::new(tables[next.segment], next.row));
                last = Some(next);
            }
            positions[next.segment][next.row] = sessions.len() - 1;
        }
        Self { sessions, positions }
    }
}

/// A row of a session in a segment.
struct FoundSession<'s> {
    /// Beginning of the session's id as a number: ids are mostly compared by it.
    prefix: u64,
    brief: &'s SessionBrief,
    /// Position of the segment.
    segment: usize,
    /// Position in the sessions of the segment.
    row: usize,
}

impl FoundSession<'_> {
    /// Returns whether both are of one session.
    fn has_id_of(&self, other: &Self) -> bool {
        // Most ids differ in their beginning. The rest is elsewhere in memory.
        self.prefix == other.prefix && self.brief.session_id == other.brief.session_id
    }

    /// Orders by id, and rows of one session from the latest to the oldest.
    fn compare(&self, other: &Self) -> Ordering {
        let by_id = self
            .prefix
            .cmp(&other.prefix)
            .then_with(|| self.brief.session_id.cmp(&other.brief.session_id));
        by_id
            .then_with(|| other.brief.segment.cmp(&self.brief.segment))
            .then_with(|| (self.segment, self.row).cmp(&(other.segment, other.row)))
    }
}

/// Returns the first eight bytes of a session's id, which have the order of the ids.
fn id_prefix(session: &SessionBrief) -> u64 {
    let mut prefix = [0; size_of::<u64>()];
    for (to, from) in prefix.iter_mut().zip(session.session_id.bytes()) {
        *to = from;
    }
    u64::from_be_bytes(prefix)
}
