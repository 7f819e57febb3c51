//! `sessions push`: publishes sessions of this machine to a lake.
//!
//! The order of requests makes a killed push harmless. Objects are written first, then the listing
//! that names them, and objects that it no longer names are removed last. A push that begins again
//! writes the same bytes under the same keys.

mod objects;
mod report;
mod unmasked;
mod work;

use ingest::redact::Redactor;
use schemas::ToolError;

pub use self::report::{PushOptions, PushReport, PushedSession};
use self::work::Push;
use super::place::LakePlace;
use super::selection::own_sessions;
use super::state::LakeState;
use crate::error::store_error;
use crate::store::Store;

/// Publishes the sessions that the settings select. What was published before and masked by other rules
/// than those of `redactor`, which masked the store, is replaced.
///
/// # Errors
/// Fails if a session that the settings select was masked by other rules, and if the lake cannot be
/// reached.
pub fn push_sessions(
    store: &Store,
    place: &LakePlace,
    options: &PushOptions,
    redactor: &Redactor,
) -> Result<PushReport, ToolError> {
    let mut state = LakeState::read(store)?;
    if state.id.is_empty() {
        state.create_id()?;
        if !options.is_dry_run {
            state.write(store)?;
        }
    }
    let snapshot = store.take_snapshot().map_err(store_error)?;
    let own = own_sessions(&snapshot)?;
    let mut push = Push::prepare(store, place, options, redactor, &snapshot, &own, state)?;
    push.honour_tombstones()?;
    push.withdraw_unselected()?;
    push.note_irreplaceable();
    let changed = push.find_changed()?;
    push.publish(&changed)?;
    push.finish()?;
    push.report.add_warnings();
    push.report.requests = place.requests();
    Ok(push.report)
}
