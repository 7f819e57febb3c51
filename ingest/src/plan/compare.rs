//! Compares what the store knows about a file with its present state.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemas::Provider;
use schemas::session::{SessionRow, SourceRow, SourceStatus};

use super::work::{Change, Known};
use crate::provider::format::{Claim, Reader};
use crate::provider::{companion, format};
use crate::redact::Redactor;
use crate::source::candidate::Candidate;
use crate::text::names::short;

/// The redaction rules in force.
#[derive(Clone, Copy)]
pub(super) struct Rules<'r> {
    pub(super) redactor: Option<&'r Redactor>,
    pub(super) version: i64,
}

/// Returns the version of the rules in force, as the store keeps it; 0 if there are none.
pub(crate) fn rules_version(redactor: Option<&Redactor>) -> i64 {
    redactor.map_or(0, |redactor| (redactor.version() | 1).cast_signed())
}

/// Returns whether a log and its companion file are unchanged since the log was read.
pub fn unchanged(file: &Candidate, row: &SourceRow) -> bool {
    row.size.cast_unsigned() == file.size && row.modified_us == changed_at(file, row.provider)
}

/// Returns when a log or its companion file changed last, in microseconds. Only the companion's
/// time is considered, not its size.
pub(super) fn changed_at(file: &Candidate, provider: Option<Provider>) -> i64 {
    let beside = provider.and_then(|provider| companion(provider, Path::new(&file.key())));
    let beside = beside.and_then(|path| Candidate::named(path).ok());
    beside.map_or(file.modified_us, |beside| beside.modified_us.max(file.modified_us))
}

/// Returns whether the session of a file, if it has one, has not moved to another file.
pub(super) fn is_its_log(row: &SourceRow, known: &Known) -> bool {
    let is_known = row.session_id.as_ref().is_some_and(|id| known.sessions.contains_key(id));
    !is_known || known.session_of(row).is_some()
}

/// Returns whether the content read from a file was masked by these rules.
pub(super) fn masked_by(row: &SourceRow, rules: Rules<'_>) -> bool {
    row.redaction_rules == rules.version || row.session_id.is_none()
}

/// Returns how a known log changed. `same` is true if the log still begins with the content read
/// before.
pub(super) fn change(claim: &Claim, row: &SourceRow, same: bool, rules: Rules<'_>) -> Change {
    let grows = matches!(format(claim.provider).reader, Reader::Lines(_));
    let goes_on = grows && same && masked_by(row, rules) && !was_out_of_reach(row);
    if goes_on { Change::Grown } else { Change::Rewritten }
}

/// Returns whether the file of `row` now holds another session, written over the one in `row`.
pub(super) fn is_of_another(claim: &Claim, row: &SourceRow, known: &Known) -> bool {
    let is_other = |session: &Arc<SessionRow>| {
        session.native_id.as_deref() != Some(short(&claim.native_id))
            || row.provider != Some(claim.provider)
    };
    known.session_of(row).is_some_and(is_other)
}

/// Returns whether a log was missing while its originals may have received events that it counts as
/// its own.
pub(super) fn was_out_of_reach(row: &SourceRow) -> bool {
    row.status == SourceStatus::Gone && row.ancestors.is_some()
}

/// Collects the paths of the companion files of all logs found or known.
pub(super) fn companions(claims: &[(Candidate, Claim)], known: &Known) -> HashSet<PathBuf> {
    let found = claims.iter().map(|(file, claim)| (claim.provider, file.key()));
    let known = known.sources.values();
    let known = known.filter_map(|row| Some((row.provider?, row.path.clone())));
    found.chain(known).filter_map(|(provider, path)| companion(provider, path.as_ref())).collect()
}

/// Returns logs whose companion file was found without them: only the companion changed, and only
/// the companion was named.
pub(super) fn told_of(found: &[Candidate], known: &Known) -> Vec<Candidate> {
    let present: HashSet<String> = found.iter().map(Candidate::key).collect();
    let is_told_of = |row: &&SourceRow| {
        let beside = row.provider.and_then(|provider| companion(provider, Path::new(&row.path)));
        beside.is_some_and(|beside| present.contains(&*beside.to_string_lossy()))
            && !present.contains(&row.path)
    };
    let logs = known.sources.values().filter(is_told_of);
    logs.filter_map(|row| Candidate::named(PathBuf::from(&row.path)).ok()).collect()
}
