//! Compares what the store knows of a file with what is there now.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemas::Provider;
use schemas::session::{SessionRow, SourceRow, SourceStatus};

use super::{Change, Known};
use crate::discover::Candidate;
use crate::provider::{Claim, Reader, companion, format};
use crate::redact::Redactor;
use crate::stream::short;

/// The rules of masking that are in force.
#[derive(Clone, Copy)]
pub(super) struct Rules<'r> {
    pub(super) redactor: Option<&'r Redactor>,
    pub(super) version: i64,
}

/// Whether a log is as it was when it was read, and the file that tells of it too.
pub fn unchanged(file: &Candidate, row: &SourceRow) -> bool {
    row.size.cast_unsigned() == file.size && row.modified_us == changed_at(file, row.provider)
}

/// When a log changed last, or the file that tells of it. Only that file's time is looked at.
pub(super) fn changed_at(file: &Candidate, provider: Option<Provider>) -> i64 {
    let beside = provider.and_then(|provider| companion(provider, Path::new(&file.key())));
    let beside = beside.and_then(|path| Candidate::named(path).ok());
    beside.map_or(file.modified_us, |beside| beside.modified_us.max(file.modified_us))
}

/// Whether the session of a file, if it has one, does not lie elsewhere by now.
pub(super) fn is_its_log(row: &SourceRow, known: &Known) -> bool {
    let is_known = row.session_id.as_ref().is_some_and(|id| known.sessions.contains_key(id));
    !is_known || known.session_of(row).is_some()
}

/// Whether what was read of a file was masked by these rules.
pub(super) fn masked_by(row: &SourceRow, rules: Rules<'_>) -> bool {
    row.redaction_rules == rules.version || row.session_id.is_none()
}

/// How a known log changed that begins with what was read of it, or not.
pub(super) fn change(claim: &Claim, row: &SourceRow, same: bool, rules: Rules<'_>) -> Change {
    let grows = matches!(format(claim.provider).reader, Reader::Lines(_));
    let goes_on = grows && same && masked_by(row, rules) && !was_out_of_reach(row);
    if goes_on { Change::Grown } else { Change::Rewritten }
}

/// Whether another session than that of `row` was written over its file.
pub(super) fn is_of_another(claim: &Claim, row: &SourceRow, known: &Known) -> bool {
    let is_other = |session: &Arc<SessionRow>| {
        session.native_id.as_deref() != Some(short(&claim.native_id))
            || row.provider != Some(claim.provider)
    };
    known.session_of(row).is_some_and(is_other)
}

/// Whether a log was not there while its originals may have got what it has counted.
pub(super) fn was_out_of_reach(row: &SourceRow) -> bool {
    row.status == SourceStatus::Gone && row.ancestors.is_some()
}

/// The files that tell of the logs that are found or known.
pub(super) fn companions(claims: &[(Candidate, Claim)], known: &Known) -> HashSet<PathBuf> {
    let found = claims.iter().map(|(file, claim)| (claim.provider, file.key()));
    let known = known.sources.values();
    let known = known.filter_map(|row| Some((row.provider?, row.path.clone())));
    found.chain(known).filter_map(|(provider, path)| companion(provider, path.as_ref())).collect()
}

/// Logs that were not found themselves, only the file that tells of them: it changed alone, and was
/// named alone.
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
