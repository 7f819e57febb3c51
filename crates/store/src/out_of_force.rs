//! Sessions whose rows go out of force with the first rows of a log that is read.

use std::collections::HashMap;

use schemas::session::{SessionRow, SourceRow};

/// What is written of sessions that go out of force with the first rows of a log, by the session of the
/// log.
pub(crate) type SessionsOutOfForce = HashMap<String, Vec<OutOfForce>>;

/// How a session goes out of force.
pub(crate) enum OutOfForce {
    /// By a row without events.
    Row(Box<SessionRow>),
    /// By the rows of the log, which takes its id. The row of its source names it no longer.
    Source(Box<SourceRow>),
}
