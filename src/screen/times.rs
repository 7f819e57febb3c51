//! Times as a user reads them.

use schemas::{Timestamp, Zone};

/// Formats a time of a log, given as RFC 3339, for the reader's zone.
pub(super) fn format_time(time: &str, zone: &Zone, now: Timestamp) -> String {
    Timestamp::parse(time).map(|time| zone.short_time(time, now)).unwrap_or_default()
}
