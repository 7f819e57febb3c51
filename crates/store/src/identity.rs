//! The machine and the user of a store, which belong to every session that was ingested there.
//!
//! Rows of `sessions` have no names for them. A machine that is renamed, or named in the settings,
//! has its new name in every answer at once. Only sessions of other machines have names in their
//! rows.

use super::segment::session_summary::SessionSummary;

/// The machine and the user of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Name of the machine.
    pub machine: String,
    /// Name of the user.
    pub user_name: String,
}

impl Identity {
    /// Returns the machine that wrote the log of a session.
    pub fn machine_of<'s>(&'s self, session: &'s SessionSummary) -> &'s str {
        session.origin.machine.as_deref().unwrap_or(&self.machine)
    }

    /// Returns the user of a session.
    pub fn user_of<'s>(&'s self, session: &'s SessionSummary) -> &'s str {
        session.origin.user_name.as_deref().unwrap_or(&self.user_name)
    }
}
