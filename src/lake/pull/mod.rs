//! `sessions pull`: imports sessions of other machines from a lake into the store.
//!
//! A pull works in rounds. Each reads listings, imports what is new in them, and commits it. Another
//! round follows for machines that published again meanwhile, so that objects of their listing are
//! gone, and for sessions that can only be compared with what the first round imported.

mod known;
mod logs;
mod round;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use ingest::redact::Redactor;
use schemas::ToolError;

use self::known::{PullContext, source_path};
use self::round::Pull;
use super::place::LakePlace;
use super::publisher::versions_of;
use super::pull_report::{PullContent, PullFilter, PullReport};
use super::state::LakeState;
use store::{MACHINES, OutdatedCopy, Store, StoreWriter};
use tools::error::store_error;

/// Most rounds of a pull. Each follows a push that ended during the one before.
const MAX_ROUNDS: usize = 12;

/// Imports what a lake has and the store has not. `open_writer` is called if something must be
/// written.
///
/// # Errors
/// Fails if the lake cannot be reached, or the store cannot be written. A session or a listing that
/// is not valid is a problem of the report.
pub fn pull_sessions(
    store: &Store,
    place: &LakePlace,
    filter: &PullFilter,
    content: PullContent,
    redactor: &Redactor,
    open_writer: &dyn Fn() -> Result<StoreWriter, ToolError>,
) -> Result<PullReport, ToolError> {
    let context = PullContext { store, place, filter, content, redactor, open_writer };
    let mut state = LakeState::read(store)?;
    let versions = versions_of(&place.list(MACHINES)?);
    let known = state.lake(place.name());
    let last = known.pulled.take();
    let pulled_versions = std::mem::take(&mut known.pulled_versions);
    let is_within = filter.is_within(known.pulled_since, known.pulled_until);
    let contained = std::mem::take(&mut known.contained);
    let mut pull = Pull::new(context, &state.id, contained)?;

    let signature = pull.signature(&versions);
    if is_within && last.as_deref() == Some(signature.as_str()) {
        return Ok(pull.into_unchanged_report(versions.len()));
    }
    let filter_of = |signature: &str| signature.split(' ').next().map(str::to_owned);
    let is_same_filter = last.is_some_and(|last| filter_of(&last) == filter_of(&signature));
    let unchanged = if is_same_filter && is_within { pulled_versions } else { BTreeMap::new() };
    run_rounds(&mut pull, versions, unchanged)?;
    pull.remove_gone()?;
    if content == PullContent::Whole {
        settle_copies(&mut pull)?;
    }

    let is_complete = !pull.has_problems();
    let signature = pull.signature(pull.seen_versions());
    LakeState::update(store, |state| {
        let known = state.lake(place.name());
        // After a problem everything is examined again.
        known.pulled = is_complete.then_some(signature);
        known.pulled_since = filter.since.map(|since| since.0);
        known.pulled_until = filter.until.map(|until| until.0);
        let seen = if is_complete { pull.seen_versions().clone() } else { BTreeMap::new() };
        known.pulled_versions = seen;
        known.contained = pull.take_contained();
        Ok(())
    })?;
    Ok(pull.into_report())
}

/// Imports what changed since the listings had the versions `unchanged`.
fn run_rounds(
    pull: &mut Pull<'_>,
    mut versions: BTreeMap<String, String>,
    unchanged: BTreeMap<String, String>,
) -> Result<(), ToolError> {
    let mut to_read: BTreeSet<String> = versions
        .iter()
        .filter(|(id, version)| unchanged.get(*id) != Some(*version))
        .map(|(id, _)| id.clone())
        .collect();
    pull.assume_read(&unchanged);
    for _ in 0..MAX_ROUNDS {
        let again = pull.run_round(&versions, &to_read)?;
        if again.is_empty() {
            return Ok(());
        }
        let now = versions_of(&pull.context.place.list(MACHINES)?);
        to_read = again.postponed;
        to_read.extend(again.failed.into_iter().filter(|id| now.get(id) != versions.get(id)));
        if to_read.is_empty() {
            return Ok(());
        }
        versions = now;
    }
    Ok(())
}

/// Makes count what no session counts any more because another one was removed or changed: the sessions
/// that have it with marks are imported again. Each import sets marks itself.
fn settle_copies(pull: &mut Pull<'_>) -> Result<(), ToolError> {
    if !pull.snapshot.has_unsettled_copies().map_err(store_error)? {
        return Ok(());
    }
    let writer = (pull.context.open_writer)()?;
    let outdated = writer.settle_copies().map_err(store_error)?;
    drop(writer);
    pull.refresh()?;
    let versions = pull.seen_versions().clone();
    let prefix = source_path(pull.context.place, "");
    let mut machines = BTreeSet::new();
    let mut keys = HashSet::new();
    for OutdatedCopy { publisher, source_path } in outdated {
        if let Some(key) = source_path.strip_prefix(&prefix) {
            keys.insert(key.to_owned());
            machines.extend(Some(publisher).filter(|id| versions.contains_key(id)));
        }
    }
    if machines.is_empty() {
        return Ok(());
    }
    pull.import_again(keys);
    pull.run_round(&versions, &machines).map(drop)
}
