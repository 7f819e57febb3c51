//! The work of known logs. Logs that no decoder recognises any longer have not vanished: they keep
//! their decoder, their session and its rows.

use schemas::problem::ProblemKind;
use schemas::session::{SourceRow, SourceStatus};

use super::compare::{
    RulesInForce, classify_change, is_unchanged, is_unrecognised, last_change_us,
};
use super::planned_log::{Known, LogChange, Plan, PlannedLog};
use super::relatives::recorded_claim;
use crate::provider::format::SessionClaim;
use crate::source::candidate::LogCandidate;

/// Returns the work of a log that continues the session of `row`.
pub(super) fn plan_known_log(
    mut file: LogCandidate,
    claim: SessionClaim,
    row: &SourceRow,
    change: LogChange,
    known: &Known,
) -> PlannedLog {
    file.modified_us = last_change_us(&file, Some(claim.provider));
    let session_id = row.session_id.clone().unwrap_or_default();
    PlannedLog {
        session: known.sessions.get(&session_id).cloned(),
        source: Some(Box::new(row.clone())),
        ..PlannedLog::new(file, change, claim, session_id)
    }
}

/// Returns whether the session of a file is known and has lost no rows by damage of the store. A
/// negative modification time marks a session with lost rows.
pub(super) fn has_all_rows(row: &SourceRow, known: &Known) -> bool {
    row.modified_us >= 0 && known.session_of(row).is_some()
}

/// Returns the work of a log whose beginning is no longer recognised by any decoder, and which
/// still begins with the content read before. The log stays with the decoder that read it. `None`
/// if the file has no session, or if the store does not say which decoder read it or which id the
/// log gave.
pub(super) fn plan_unrecognised_log(
    file: LogCandidate,
    row: &SourceRow,
    reason: &'static str,
    rules: RulesInForce<'_>,
    known: &Known,
) -> Option<PlannedLog> {
    let claim = recorded_claim(row, known.session_of(row)?)?;
    let change = classify_change(&claim, row, true, rules);
    Some(PlannedLog { reason: Some(reason), ..plan_known_log(file, claim, row, change, known) })
}

impl Plan {
    /// Keeps the session of a log that was overwritten with content that no decoder recognises. The
    /// checkpoint stays that of the content read before, so that the log is continued if that
    /// content comes back.
    pub(super) fn keep_unrecognised(
        &mut self,
        file: &LogCandidate,
        row: &SourceRow,
        reason: &'static str,
        known: &Known,
    ) {
        if is_unrecognised(row) && is_unchanged(file, row) {
            self.unchanged += 1;
            return;
        }

        self.settled.push(SourceRow {
            status: SourceStatus::UnknownFormat,
            size: file.size.cast_signed(),
            modified_us: last_change_us(file, row.provider),
            reason: Some(reason.to_owned()),
            ..row.clone()
        });
        self.mark_session(row, false, known);
        let message = format!(
            "the log was overwritten with content that is not recognised ({reason}); its session \
             keeps the events read before"
        );
        self.push_problem(file, ProblemKind::UnknownFormat, message);
    }

    /// Returns whether a log is no longer recognised, as of this plan.
    pub(super) fn has_kept_unrecognised(&self, row: &SourceRow) -> bool {
        let settled = self.settled.iter().find(|settled| settled.path == row.path);
        is_unrecognised(settled.unwrap_or(row))
    }
}
