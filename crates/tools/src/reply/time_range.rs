//! The span of time that `since` and `until` of a call select.

use schemas::{ErrorCode, Timestamp, ToolError, Zone};
use store::SessionSummary;

/// A span of time: from `since` on, and before `until`. `None` is an open end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

impl TimeRange {
    /// Parses the arguments `since` and `until` of a call.
    ///
    /// # Errors
    /// Fails if one of them is not a time, or if the span has no time in it.
    pub fn parse(
        since: Option<&str>,
        until: Option<&str>,
        zone: &Zone,
        now: Timestamp,
    ) -> Result<Self, ToolError> {
        let since = since.map(|text| zone.parse_since("since", text, now)).transpose()?;
        let until = until.map(|text| zone.parse_since("until", text, now)).transpose()?;
        Self { since, until }.require_order()
    }

    /// Returns the span, or an error if no time is in it.
    pub(crate) fn require_order(self) -> Result<Self, ToolError> {
        if self.since.zip(self.until).is_none_or(|(since, until)| since < until) {
            return Ok(self);
        }
        let message = "since: it is not before until. Swap them, or leave one out";
        Err(ToolError::new(ErrorCode::InvalidArgument, message).with_detail("field", "since"))
    }

    /// Returns true if an event at this time, in microseconds since the epoch, is in the span. An event
    /// without a time is in a span without ends only.
    pub fn includes(self, time: Option<i64>) -> bool {
        self.since.is_none_or(|since| time.is_some_and(|time| time >= since.0))
            && self.until.is_none_or(|until| time.is_some_and(|time| time < until.0))
    }

    /// Returns true if a session began before the end of the span.
    pub fn begins_in_time(self, session: &SessionSummary) -> bool {
        self.until.is_none_or(|until| session.started_at.is_some_and(|start| start < until.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_span_is_not_part_of_it() {
        let range = TimeRange { since: Some(Timestamp(10)), until: Some(Timestamp(20)) };
        let included: Vec<bool> =
            [9, 10, 19, 20].into_iter().map(|time| range.includes(Some(time))).collect();
        assert_eq!(included, [false, true, true, false]);
        assert!(!range.includes(None) && TimeRange::default().includes(None));
    }
}
