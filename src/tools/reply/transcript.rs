//! Reads one session as a whole, in the types of the contract, for output to files: without pages
//! or a budget.

use schemas::price::PriceTable;
use schemas::session::SessionRow;
use schemas::tool::event::Event;
use schemas::tool::list::{ListFormat, Session};
use schemas::{ErrorCode, Timestamp, ToolError};

use super::call::Call;
use super::convert;
use super::rows::{Links, convert_whole_event, read_all_events};
use super::turn_costs::turn_costs;
use crate::store::Snapshot;

/// A session and all its events, with texts, links and sources.
pub struct Transcript {
    pub(crate) session: Session,
    pub(crate) events: Vec<Event>,
    /// The cost of each turn that has one, in US dollars.
    pub(crate) costs: Vec<(u32, f64)>,
}

/// Number of events that are converted before it is checked again whether the reading must end.
const CHUNK_EVENTS: usize = 1024;

impl Transcript {
    /// Reads the session at this position of the snapshot. `stop` is polled from time to time; true ends
    /// the reading with an error.
    pub(crate) fn read(
        snapshot: &Snapshot,
        session: usize,
        prices: &PriceTable,
        stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Self, ToolError> {
        let row: &SessionRow = snapshot.sessions().get(session).ok_or_else(|| {
            ToolError::new(ErrorCode::InternalError, "A session is not in its snapshot")
        })?;
        // Writing a file has no time limit.
        let call = Call::new(Timestamp::now(), stop);
        let rows = read_all_events(snapshot, session, &call)?;
        let links = Links::from_rows(&rows);
        let mut events = Vec::with_capacity(rows.len());
        for chunk in rows.chunks(CHUNK_EVENTS) {
            call.ensure_running()?;
            events.extend(chunk.iter().map(|event| convert_whole_event(event, row, &links)));
        }
        Ok(Self {
            session: convert::convert_session(row, ListFormat::Full, prices),
            events,
            costs: turn_costs(&rows, prices),
        })
    }
}
