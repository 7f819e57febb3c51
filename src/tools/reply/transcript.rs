//! Reads one session as a whole, in the types of the contract, for output to files: without pages
//! or a budget.

use schemas::price::PriceTable;
use schemas::session::SessionRow;
use schemas::tool::event::Event;
use schemas::tool::list::{ListFormat, Session};
use schemas::{ErrorCode, Timestamp, ToolError};

use super::budget::Budget;
use super::call::Call;
use super::rows::{Links, Pager};
use super::turn_costs::turn_costs;
use super::{convert, rows};
use crate::store::Snapshot;

/// A session and all its events, with texts, links and sources.
pub struct Transcript {
    pub(crate) session: Session,
    pub(crate) events: Vec<Event>,
    /// The cost of each turn that has one, in US dollars.
    pub(crate) costs: Vec<(u32, f64)>,
}

impl Transcript {
    /// Reads the session at this position of the snapshot.
    pub(crate) fn read(
        snapshot: &Snapshot,
        session: usize,
        prices: &PriceTable,
    ) -> Result<Self, ToolError> {
        let row: &SessionRow = snapshot.sessions().get(session).ok_or_else(|| {
            ToolError::new(ErrorCode::InternalError, "A session is not in its snapshot")
        })?;
        // Writing a file has no time limit.
        let call = Call::new(Timestamp::now(), &|| false);
        let events = rows::read_all_events(snapshot, session, &call)?;
        let links = Links::from_rows(&events);
        let mut pager = Pager {
            fields: None,
            max_chars: usize::MAX,
            budget: Budget::new(usize::MAX),
            events: Vec::with_capacity(events.len()),
        };
        for event in &events {
            pager.push_event(event, row, &links, 0);
        }
        Ok(Self {
            session: convert::convert_session(row, ListFormat::Full, prices),
            events: pager.events,
            costs: turn_costs(&events, prices),
        })
    }
}
