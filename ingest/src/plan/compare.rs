//! Compares what the store knows about a file with its present state.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use schemas::Provider;
use schemas::session::{SourceRow, SourceStatus};

use super::planned_log::{Known, LogChange};
use crate::discover::sniff::ClaimedLog;
use crate::provider::format::{LogReader, SessionClaim};
use crate::provider::{companion_paths, format_of, has_companions};
use crate::redact::{Redactor, UserRule, hash_rules};
use crate::source::candidate::LogCandidate;
use crate::text::names::truncate_name;

/// The redaction rules in force.
#[derive(Clone, Copy)]
pub(super) struct RulesInForce<'r> {
    pub(super) redactor: Option<&'r Redactor>,
    /// Version of the rules; 0 if there are none.
    pub(super) version: i64,
}

/// Returns the version of the rules in force, as the store keeps it; 0 if there are none.
pub fn rules_version(redactor: Option<&Redactor>) -> i64 {
    redactor.map_or(0, |redactor| stored_version(redactor.version()))
}

/// Returns the version of the built-in rules and these rules of the user, as [`rules_version`] does.
/// They are not compiled, which takes longer, so they may be invalid.
pub fn version_of_rules(user_rules: &[UserRule]) -> i64 {
    stored_version(hash_rules(user_rules))
}

/// Returns the hash of rules as the store keeps it, where 0 means no rules.
fn stored_version(hash: u64) -> i64 {
    (hash | 1).cast_signed()
}

/// The state of a file when it was last read, as the store knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadState {
    /// The agent that wrote the file. `None` if the file was not read as a log.
    pub provider: Option<Provider>,
    /// Whether the file has a session.
    pub has_session: bool,
    /// Size in bytes; -1 while only a part was read.
    pub size: i64,
    /// Time of the latest change of the file or its companion, in microseconds since the epoch.
    pub modified_us: i64,
    /// Version of the decoder that read the file.
    pub decoder_version: i64,
    /// Version of the rules that masked what is stored of the file.
    pub redaction_rules: i64,
}

impl ReadState {
    /// Returns the state that a row describes.
    pub fn of_row(row: &SourceRow) -> Self {
        Self {
            provider: row.provider,
            has_session: row.session_id.is_some(),
            size: row.size,
            modified_us: row.modified_us,
            decoder_version: row.decoder_version,
            redaction_rules: row.redaction_rules,
        }
    }

    /// Returns whether the file and its companion file are still in this state.
    pub fn is_current(&self, file: &LogCandidate) -> bool {
        self.size.cast_unsigned() == file.size
            && self.modified_us == last_change_us(file, self.provider)
    }

    /// Returns whether the content was read by the decoder of this version.
    pub fn is_of_this_decoder(&self) -> bool {
        match self.provider {
            Some(provider) if self.has_session => {
                self.decoder_version == i64::from(format_of(provider).decoder_version)
            }
            Some(_) | None => true,
        }
    }
}

/// Returns whether a log and its companion file are unchanged since the log was read.
pub(super) fn is_unchanged(file: &LogCandidate, row: &SourceRow) -> bool {
    ReadState::of_row(row).is_current(file)
}

/// Returns when a log or one of its companion files changed last, in microseconds. Only the time of
/// a companion is considered, not its size.
pub(super) fn last_change_us(file: &LogCandidate, provider: Option<Provider>) -> i64 {
    let Some(provider) = provider.filter(|provider| has_companions(*provider)) else {
        return file.modified_us;
    };
    let companions = companion_paths(provider, Path::new(&file.key())).into_iter();
    let present = companions.filter_map(|path| LogCandidate::from_path(path).ok());
    present.map(|companion| companion.modified_us).fold(file.modified_us, i64::max)
}

/// Returns whether the session of a file, if it has one, has not moved to another file.
pub(super) fn is_its_log(row: &SourceRow, known: &Known) -> bool {
    let is_known = row.session_id.as_ref().is_some_and(|id| known.sessions.contains_key(id));
    !is_known || known.session_of(row).is_some()
}

/// Returns whether the content read from a file was masked by these rules.
pub(super) fn is_masked_by(row: &SourceRow, rules: RulesInForce<'_>) -> bool {
    row.redaction_rules == rules.version
}

/// Returns whether the content read from a file was read by the decoder of this version.
pub fn is_of_this_decoder(row: &SourceRow) -> bool {
    ReadState::of_row(row).is_of_this_decoder()
}

/// Returns whether the content read from a file was masked by these rules and read by the decoder
/// of this version. If not, the log is read again.
pub(super) fn is_read_by_rules(row: &SourceRow, rules: RulesInForce<'_>) -> bool {
    is_masked_by(row, rules) && is_of_this_decoder(row)
}

/// Returns how a known log changed. `is_same` is true if the log still begins with the content read
/// before.
pub(super) fn classify_change(
    claim: &SessionClaim,
    row: &SourceRow,
    is_same: bool,
    rules: RulesInForce<'_>,
) -> LogChange {
    let may_grow = matches!(format_of(claim.provider).reader, LogReader::Lines(_));
    let was_out_of_reach = was_out_of_reach(row) || is_unrecognised(row) && row.ancestors.is_some();
    if may_grow && is_same && is_read_by_rules(row, rules) && !was_out_of_reach {
        LogChange::Grown
    } else {
        LogChange::Rewritten
    }
}

/// Returns whether the file of `row` now holds another session, written over the one in `row`.
pub(super) fn is_of_another(claim: &SessionClaim, row: &SourceRow, known: &Known) -> bool {
    let Some(session) = known.session_of(row) else { return false };
    session.native_id.as_deref() != Some(truncate_name(&claim.native_id))
        || row.provider != Some(claim.provider)
}

/// Returns whether a log was missing while its originals may have received events that it counts as
/// its own.
pub(super) fn was_out_of_reach(row: &SourceRow) -> bool {
    row.status == SourceStatus::Gone && row.ancestors.is_some()
}

/// Returns whether a file is no longer recognised as the log of its session.
pub(crate) fn is_unrecognised(row: &SourceRow) -> bool {
    row.status == SourceStatus::UnknownFormat && row.session_id.is_some()
}

/// Returns whether a file was gone that was not read as a log, so that only its content says what
/// it is.
pub(super) fn is_gone_without_session(row: &SourceRow) -> bool {
    row.status == SourceStatus::Gone && row.session_id.is_none()
}

/// Collects the paths of the companion files of all logs found or known.
pub(super) fn collect_companions(claims: &[Vec<ClaimedLog>], known: &Known) -> HashSet<PathBuf> {
    let mut companions = HashSet::new();
    for ClaimedLog { file, claim, .. } in claims.iter().flatten() {
        companions.extend(companion_paths(claim.provider, Path::new(&file.key())));
    }
    for row in known.sources.values() {
        if let Some(provider) = row.provider {
            companions.extend(companion_paths(provider, Path::new(&row.path)));
        }
    }
    companions
}

/// Returns logs whose companion file was found without them: only the companion changed, and only
/// the companion was named.
pub(super) fn logs_of_companions(found: &[LogCandidate], known: &Known) -> Vec<LogCandidate> {
    let mut logs = Vec::new();
    if known.sources.is_empty() {
        return logs;
    }
    let present: HashSet<String> = found.iter().map(LogCandidate::key).collect();
    for row in known.sources.values() {
        let Some(provider) = row.provider else { continue };
        let companions = companion_paths(provider, Path::new(&row.path));
        let is_found = companions.iter().any(|path| present.contains(&*path.to_string_lossy()));
        if is_found && !present.contains(&row.path) {
            logs.extend(LogCandidate::from_path(PathBuf::from(&row.path)).ok());
        }
    }
    logs
}
