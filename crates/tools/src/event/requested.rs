//! Resolves the ids of a call: single events, and ranges of the events of a session.

use std::ops::Range;

use schemas::table::EventColumn;
use schemas::{ErrorCode, EventId, EventType, ToolError};

use crate::error::store_error;
use crate::reply::convert::unsigned_index;
use store::Snapshot;

/// Events that an argument names: `SESSION:64`, or `SESSION:64-94` for a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EventSpan {
    pub(crate) session: String,
    pub(super) first: u32,
    /// The last event of a range; `None` if the argument names one event.
    pub(super) last: Option<u32>,
}

impl EventSpan {
    pub(crate) fn parse(text: &str) -> Result<Self, ToolError> {
        if let Some(range) = Self::parse_range(text) {
            return Ok(range);
        }
        let id: EventId = text.parse()?;
        Ok(Self { session: id.session, first: id.index, last: None })
    }

    /// Returns the indexes of the events.
    pub(crate) fn indexes(&self) -> Range<u32> {
        self.first..self.last.unwrap_or(self.first).saturating_add(1)
    }

    /// Parses `SESSION:64-94`. A range that ends before it begins is not one.
    fn parse_range(text: &str) -> Option<Self> {
        let (session, range) = text.trim().rsplit_once(':')?;
        let (first, last) = range.split_once('-')?;
        let first = first.parse().ok()?;
        let last = last.parse().ok()?;
        (first <= last).then(|| Self { session: session.to_owned(), first, last: Some(last) })
    }
}

/// Parses the arguments. An invalid one becomes `None`, which is reported as not found; if all are
/// invalid, the error is returned.
pub(super) fn parse_spans(event_ids: &[String]) -> Result<Vec<Option<EventSpan>>, ToolError> {
    let parsed: Vec<Result<EventSpan, ToolError>> =
        event_ids.iter().map(|id| EventSpan::parse(id)).collect();
    if parsed.iter().all(Result::is_err) {
        return parsed.into_iter().map(|span| span.map(Some)).collect();
    }
    Ok(parsed.into_iter().map(Result::ok).collect())
}

/// One event of a call, or an argument that names none.
pub(super) struct RequestedEvent<'a> {
    /// The argument.
    pub(super) written: &'a str,
    /// Position of the session in `Snapshot::sessions` and index of the event; `None` if there is none.
    pub(super) place: Option<(usize, u32)>,
    pub(super) is_in_range: bool,
}

impl<'a> RequestedEvent<'a> {
    pub(super) fn unknown(written: &'a str) -> Self {
        Self { written, place: None, is_in_range: false }
    }
}

/// Returns the events that an argument names. `find_session` finds a session by its id or a prefix.
///
/// # Errors
///
/// Returns the error of `find_session`, unless the session does not exist.
pub(super) fn resolve<'a>(
    snapshot: &Snapshot,
    written: &'a str,
    span: Option<&EventSpan>,
    find_session: impl Fn(&str) -> Result<usize, ToolError>,
) -> Result<Vec<RequestedEvent<'a>>, ToolError> {
    let Some(span) = span else { return Ok(vec![RequestedEvent::unknown(written)]) };
    let session = match find_session(&span.session) {
        Ok(session) => session,
        Err(error) if error.code == ErrorCode::SessionNotFound => {
            return Ok(vec![RequestedEvent::unknown(written)]);
        }
        Err(error) => return Err(error.with_detail("event_id", written)),
    };
    let Some(last) = span.last else {
        let place = Some((session, span.first));
        return Ok(vec![RequestedEvent { written, place, is_in_range: false }]);
    };
    let indexes = read_shown_indexes(snapshot, session, span.first, last)?;
    if indexes.is_empty() {
        return Ok(vec![RequestedEvent::unknown(written)]);
    }
    let events = indexes.into_iter().map(|index| {
        let place = Some((session, index));
        RequestedEvent { written, place, is_in_range: true }
    });
    Ok(events.collect())
}

/// Returns the indexes of the events of a range that have a text: all but token counts.
fn read_shown_indexes(
    snapshot: &Snapshot,
    session: usize,
    first: u32,
    last: u32,
) -> Result<Vec<u32>, ToolError> {
    let columns = [EventColumn::EventIndex, EventColumn::EventType];
    let range = first..last.saturating_add(1);
    let rows = snapshot
        .events_of(session, std::slice::from_ref(&range), &columns)
        .read_rows()
        .map_err(store_error)?;
    let shown = rows.iter().filter(|row| row.event_type != EventType::TokenUsage);
    Ok(shown.map(|row| unsigned_index(row.event_index)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_names_an_event_or_a_range() {
        let parse = |text: &str| EventSpan::parse(text).ok().map(|span| (span.first, span.last));
        assert_eq!(parse("9ae82b3a:14"), Some((14, None)));
        assert_eq!(parse("9ae82b3a:64-94"), Some((64, Some(94))));
        assert_eq!(parse("ses-1:a:64-64"), Some((64, Some(64))));
        for text in ["9ae82b3a:94-64", "9ae82b3a:-4", "9ae82b3a:4-", "9ae82b3a", "x:4-5-6"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
