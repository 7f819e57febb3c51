//! `sessions push`: publishes sessions of this machine to a lake.
//!
//! The order of requests makes a killed push harmless. Objects are written first, then the listing
//! that names them, and objects that it no longer names are removed last. A push that begins again
//! writes the same bytes under the same keys.
//!
//! Two machines that publish one session for the first time see each other's row before they list it,
//! unless both begin at the same instant. So a push during which another machine wrote its listing
//! looks again at what it published.

mod log_source;
mod logs;
mod objects;
mod placement;
mod report;
mod unmasked;
mod work;

use std::collections::HashSet;

use ingest::redact::Redactor;
use schemas::ToolError;

pub use self::report::{PushOptions, PushReport, PushedSession};
use self::work::Push;
use super::place::LakePlace;
use super::selection::own_sessions;
use store::Store;
use tools::error::store_error;

/// Maximum number of times that a push checks what it published against concurrent pushes.
const MAX_PUSHES: usize = 3;

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
    let snapshot = store.take_snapshot().map_err(store_error)?;
    let own = own_sessions(&snapshot)?;
    let mut crossed = HashSet::new();
    let mut report: Option<PushReport> = None;
    for _ in 0..MAX_PUSHES {
        let mut push = Push::prepare(store, place, options, redactor, &snapshot, &own, &crossed)?;
        push.honour_tombstones()?;
        push.withdraw_unselected();
        push.note_irreplaceable();
        let changed = push.find_changed()?;
        push.publish(&changed)?;
        push.finish()?;
        push.report.add_warnings();
        let published = push.report.published.iter().map(|one| one.session_id.clone()).collect();
        let is_alone = !push.has_crossed;
        report = Some(match report {
            Some(before) => before.followed_by(push.report),
            None => push.report,
        });
        crossed = published;
        if is_alone || crossed.is_empty() {
            break;
        }
    }
    let report = report.unwrap_or_default();
    Ok(PushReport { requests: place.requests(), ..report })
}
