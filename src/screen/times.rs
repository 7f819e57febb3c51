//! Times as a user reads them.

use schemas::{Timestamp, Zone};

use super::age::describe_age;

/// Formats a time of a log, given as RFC 3339, by its age.
pub(super) fn format_time(time: &str, _zone: &Zone, now: Timestamp) -> String {
    Timestamp::parse(time).map(|time| describe_age(time, now)).unwrap_or_default()
}
