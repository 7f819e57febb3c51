//! `sessions pull`: imports sessions of other machines from a lake into the store.
//!
//! A pull works in rounds. Each reads listings, imports what is new in them, and commits it. Another
//! round follows for machines that published again meanwhile, so that objects of their listing are
//! gone, and for sessions that can only be compared with what the first round imported.

mod copies;
mod known;
mod logs;
mod round;

use std::collections::{BTreeMap, BTreeSet};

use ingest::redact::Redactor;
use schemas::ToolError;

use self::known::PullContext;
use self::round::Pull;
use super::place::LakePlace;
use super::publisher::versions_of;
use super::pull_report::{PullContent, PullFilter, PullReport};
use super::state::LakeState;
use store::{MACHINES, Store, StoreWriter};

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
    let (last, pulled_versions) = (known.pulled.take(), std::mem::take(&mut known.pulled_versions));
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

/// Marks what several sessions have in common, so that it counts once. A session that has more marks
/// than it should is imported again first.
fn settle_copies(pull: &mut Pull<'_>) -> Result<(), ToolError> {
    let outdated = copies::mark_copies(&pull.context)?;
    if outdated.is_empty() {
        return pull.refresh();
    }
    pull.import_again(&outdated)?;
    let versions = pull.seen_versions().clone();
    let machines = outdated.into_iter().map(|(machine, _)| machine);
    let machines = machines.filter(|id| versions.contains_key(id)).collect();
    pull.run_round(&versions, &machines)?;
    copies::mark_copies(&pull.context)?;
    pull.refresh()
}
