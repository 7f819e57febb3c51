//! Decides which files are read: compares the files found with the checkpoints, assigns session ids
//! to new logs, and groups logs that share history into one unit of work.

pub(crate) mod compare;
pub mod excluded;
mod gone;
mod ids;
mod in_order;
mod known_log;
mod lineage;
mod original_order;
pub(crate) mod planned_log;
mod record_keys;
pub(crate) mod relatives;

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::PathBuf;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::{SourceRow, SourceStatus};

use self::compare::is_unchanged;
pub use self::compare::{ReadState, is_of_this_decoder, rules_version, version_of_rules};
use self::compare::{
    RulesInForce, classify_change, collect_companions, is_gone_without_session, is_its_log,
    is_of_another, is_read_by_rules, is_unrecognised, last_change_us, logs_of_companions,
    was_out_of_reach,
};
pub(crate) use self::gone::path_aside;
use self::ids::NewIds;
pub(crate) use self::ids::is_id_of;
pub use self::ids::safe_session_id;
use self::known_log::{has_all_rows, plan_known_log, plan_unrecognised_log};
use self::lineage::{group_into_units, link_logs};
pub use self::planned_log::{Known, LogChange, Plan, PlannedLog};
use self::relatives::{MovedLogs, NewLogs, plan_gone_log, recorded_claim, schedule_rereads};
use crate::discover::Discovery;
use crate::discover::presence::{find_candidate, is_gone};
use crate::discover::sniff::{ClaimedLog, Sniffed, SniffedFiles, sniff_all};
use crate::provider::is_sidecar;
use crate::redact::Redactor;
use crate::source::candidate::LogCandidate;
use crate::source::container::{Content, oversized_message};
use crate::source::fingerprint::Fingerprint;

/// The content of a file that is no longer the log of its session.
enum Successor {
    /// The same log. It has named itself since it was read, or is now known to be another agent's.
    SameLog,
    /// Other content that overwrote the log.
    OtherContent,
}

/// Plans the work for the files found. Logs masked by other rules than those of `redactor` are read
/// again; without a redactor, no rules are in force.
///
/// ```rust
/// use ingest::discover::discover;
/// use ingest::plan::{Known, plan};
///
/// let dir = tempfile::tempdir()?;
/// let record = r#"{"type":"user","sessionId":"s1","message":{"role":"user","content":"Hi"}}"#;
/// std::fs::write(dir.path().join("s1.jsonl"), format!("{record}\n"))?;
///
/// // An empty store knows no file.
/// let plan = plan(discover(&[dir.path().to_owned()]), &Known::default(), None);
/// assert_eq!(plan.files, 1);
/// let ids: Vec<_> = plan.units.iter().flatten().map(|log| log.session_id.as_str()).collect();
/// assert_eq!(ids, ["s1"]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn plan(found: Discovery, known: &Known, redactor: Option<&Redactor>) -> Plan {
    let rules = RulesInForce { redactor, version: rules_version(redactor) };
    let mut plan = Plan { files: found.files.len() as u64, ..Plan::default() };
    plan.settle_vanished(&found, known);
    plan.problems.extend(found.problems);

    let mut logs = Vec::new();
    let mut renamed = Vec::new();
    let mut unseen = Vec::new();
    let companion_logs = logs_of_companions(&found.files, known);
    for file in found.files.into_iter().chain(companion_logs) {
        if known.sources.is_empty() {
            unseen.push(file);
            continue;
        }
        let row = known.sources.get(&file.key()).filter(|row| is_its_log(row, known));
        let Some(row) = row else {
            unseen.push(file);
            continue;
        };
        if is_unchanged(&file, row)
            && is_read_by_rules(row, rules)
            && !was_out_of_reach(row)
            && !is_gone_without_session(row)
        {
            plan.settle_unchanged(row, known);
            continue;
        }
        let is_log =
            matches!(row.status, SourceStatus::Ok | SourceStatus::Gone) && row.session_id.is_some();
        if !is_log && !is_unrecognised(row) {
            unseen.push(file);
            continue;
        }
        match plan.plan_known_file(file, row, rules, known, &mut logs) {
            Some((file, Successor::SameLog)) => {
                renamed.push(row);
                unseen.push(file);
            }
            Some((file, Successor::OtherContent)) => {
                plan.set_aside(row, known);
                unseen.push(file);
            }
            None => {}
        }
    }

    let remaining = plan.empty_renamed_sessions(&renamed, known);
    let remaining_known = remaining.as_ref().unwrap_or(known);
    plan.plan_new_files(unseen, rules, remaining_known, &mut logs);
    if !logs.is_empty() {
        let mut new_logs = NewLogs::default();
        if !remaining_known.sources.is_empty() {
            new_logs = NewLogs::from_logs(&logs);
            plan.plan_relatives(&new_logs, rules, remaining_known, &mut logs);
        }
        link_logs(&mut logs, remaining_known, &new_logs);
        schedule_rereads(&mut logs);
    }

    plan.bytes = logs.iter().map(|log| log.file.size.saturating_sub(log.expected_start())).sum();
    plan.units = group_into_units(logs);
    plan
}

impl Plan {
    /// Counts an unchanged file. If it was gone, notes that it came back.
    fn settle_unchanged(&mut self, row: &SourceRow, known: &Known) {
        self.unchanged += 1;
        if row.status == SourceStatus::Gone {
            self.settled.push(SourceRow { status: SourceStatus::Ok, ..row.clone() });
            self.mark_session(row, false, known);
        }
    }

    /// Plans a known file that has changed. If the file is no longer the log of its session,
    /// returns it together with what it holds instead.
    fn plan_known_file(
        &mut self,
        file: LogCandidate,
        row: &SourceRow,
        rules: RulesInForce<'_>,
        known: &Known,
        logs: &mut Vec<PlannedLog>,
    ) -> Option<(LogCandidate, Successor)> {
        let is_same = Content::open(&file)
            .and_then(|mut content| Fingerprint::is_unchanged(&mut content, row));
        match is_same.and_then(|is_same| Ok((is_same, known.sniff(&file, rules.redactor)?))) {
            // The log has named itself since, or begins as another agent's logs do.
            Ok((is_same, Sniffed::Log(claim))) if is_of_another(&claim, row, known) => {
                let is_same_log = is_same && row.consumed > 0;
                let other = if is_same_log { Successor::SameLog } else { Successor::OtherContent };
                return Some((file, other));
            }
            // The content read before stays, and the rest is read by the same decoder.
            Ok((true, Sniffed::Unknown(reason))) if row.consumed > 0 => {
                logs.extend(plan_unrecognised_log(file, row, reason, rules, known));
            }
            Ok((_, Sniffed::Unknown(reason))) if has_all_rows(row, known) => {
                self.keep_unrecognised(&file, row, reason, known);
            }
            // Truncated to nothing: the content read before stays.
            Ok((_, Sniffed::Empty | Sniffed::Unknown(_))) => {
                return Some((file, Successor::OtherContent));
            }
            Ok((is_same, Sniffed::Log(claim))) => {
                let change = classify_change(&claim, row, is_same, rules);
                logs.push(plan_known_log(file, claim, row, change, known));
            }
            Err(error) => self.report_unreadable(&file, &error),
        }
        None
    }

    /// Plans files that the store does not know by path: new logs, and known logs under new names.
    fn plan_new_files(
        &mut self,
        files: Vec<LogCandidate>,
        rules: RulesInForce<'_>,
        known: &Known,
        logs: &mut Vec<PlannedLog>,
    ) {
        let mut claims = self.collect_claims(files, rules, known);
        // Among logs of one id the largest is the original; a rerun after a kill decides the same.
        // A log that names a parent comes after those that do not.
        let order = |ClaimedLog { file, claim, .. }: &ClaimedLog| {
            (claim.parent.is_some(), Reverse(file.size))
        };
        // The files mostly come by path, so their order is often right already.
        let is_before = |a: &ClaimedLog, b: &ClaimedLog| {
            (order(a), a.file.path.as_os_str()) <= (order(b), b.file.path.as_os_str())
        };
        if !claims.iter().flatten().is_sorted_by(|a, b| is_before(a, b)) {
            let mut all: Vec<_> = claims.into_iter().flatten().collect();
            all.sort_by_cached_key(|log| (order(log), log.file.path.as_os_str().to_owned()));
            claims = vec![all];
        }

        let count = claims.iter().map(Vec::len).sum();
        let mut moved_logs = if count == 0 {
            MovedLogs::default()
        } else {
            MovedLogs::new(known, logs, &self.settled)
        };
        let mut new_ids = NewIds::new(&known.sessions);
        logs.reserve(count);
        for ClaimedLog { mut file, claim, content } in claims.into_iter().flatten() {
            match moved_logs.take_match(&file, &claim) {
                Ok(Some((row, is_same))) => {
                    self.note_renamed(row);
                    // A log with ancestors is read from its start, like one that was out of reach.
                    let is_same = is_same && row.ancestors.is_none();
                    let change = classify_change(&claim, row, is_same, rules);
                    logs.push(plan_known_log(file, claim, row, change, known));
                }
                Ok(None) => {
                    file.modified_us = last_change_us(&file, Some(claim.provider));
                    let session_id = new_ids.assign(&claim.native_id);
                    let log = PlannedLog::new(file, LogChange::New, claim, session_id);
                    logs.push(PlannedLog { content, ..log });
                }
                Err(error) => self.report_unreadable(&file, &error),
            }
        }
    }

    /// Notes that the session of a log continues in another file. The row of the former file still
    /// names the session, so that the move is found again if this run is killed before the move is
    /// committed.
    fn note_renamed(&mut self, row: &SourceRow) {
        self.sessions.retain(|session| Some(&session.session_id) != row.session_id.as_ref());
        // Drops the row under which this plan set the session aside.
        self.settled.retain(|settled| {
            settled.session_id != row.session_id || !self.moved.contains_key(&settled.path)
        });
        if row.status != SourceStatus::Gone && self.settled.iter().all(|gone| gone.path != row.path)
        {
            self.settled.push(SourceRow { status: SourceStatus::Gone, ..row.clone() });
        }
    }

    /// Adds known logs that new logs affect, besides those already planned, in their present state.
    fn plan_relatives(
        &mut self,
        new_logs: &NewLogs,
        rules: RulesInForce<'_>,
        known: &Known,
        logs: &mut Vec<PlannedLog>,
    ) {
        for row in new_logs.related_logs(logs, known) {
            let is_earlier_version =
                known.session_of(row).is_some_and(|session| session.is_earlier_version());
            if is_earlier_version || !self.plan_present_relative(row, rules, known, logs) {
                let settled = self.settled.iter().find(|gone| gone.session_id == row.session_id);
                logs.extend(plan_gone_log(settled.unwrap_or(row), known));
            }
        }
    }

    /// Adds a known log in its present state. Returns false if the log no longer exists, or is no
    /// longer recognised.
    fn plan_present_relative(
        &mut self,
        row: &SourceRow,
        rules: RulesInForce<'_>,
        known: &Known,
        logs: &mut Vec<PlannedLog>,
    ) -> bool {
        if self.has_kept_unrecognised(row) {
            return false;
        }
        let Some(file) = find_candidate(&row.path) else { return !is_gone(&row.path) };
        if !is_unchanged(&file, row) || !is_read_by_rules(row, rules) {
            // New content that overwrote the log is read in its own turn.
            let successor = self.plan_known_file(file, row, rules, known, logs);
            return !matches!(successor, Some((_, Successor::OtherContent)))
                && !self.has_kept_unrecognised(row);
        }

        let claim = match known.sniff(&file, rules.redactor) {
            Ok(Sniffed::Log(claim)) => Some(claim),
            Ok(Sniffed::Empty | Sniffed::Unknown(_)) => {
                known.session_of(row).and_then(|session| recorded_claim(row, session))
            }
            Err(_) => None,
        };
        if let Some(claim) = claim {
            logs.push(plan_known_log(file, claim, row, LogChange::Same, known));
        }
        true
    }

    /// Sniffs files that are new. Files that are not logs are settled at once. Returns the logs in
    /// the order of `files`, in several parts.
    fn collect_claims(
        &mut self,
        files: Vec<LogCandidate>,
        rules: RulesInForce<'_>,
        known: &Known,
    ) -> Vec<Vec<ClaimedLog>> {
        let mut claims = Vec::new();
        let mut unknown = Vec::new();
        for SniffedFiles { mut logs, others } in sniff_all(files, rules.redactor) {
            for log in &mut logs {
                log.claim.resolve_records(&known.aliases);
            }
            claims.push(logs);
            for (file, sniffed) in others {
                match sniffed {
                    // A document that is too large.
                    Ok(Sniffed::Log(_)) => {
                        let reason = Some("too large a document");
                        self.settled.push(settled_row(&file, SourceStatus::Failed, reason));
                        let message = oversized_message(file.size);
                        self.push_problem(&file, ProblemKind::OversizedDocument, message);
                    }
                    Ok(Sniffed::Empty) => {
                        self.settled.push(settled_row(&file, SourceStatus::Empty, None));
                    }
                    Ok(Sniffed::Unknown(reason)) => unknown.push((file, reason)),
                    Err(error) => self.report_unreadable(&file, &error),
                }
            }
        }
        if !unknown.is_empty() {
            let companions = collect_companions(&claims, known);
            for (file, reason) in &unknown {
                self.settle_unknown(file, reason, &companions);
            }
        }
        claims
    }

    /// Settles a file that no decoder recognises.
    fn settle_unknown(&mut self, file: &LogCandidate, reason: &str, companions: &HashSet<PathBuf>) {
        if is_sidecar(file.key().as_ref()) || companions.contains(&file.path) {
            self.settled.push(settled_row(file, SourceStatus::Sidecar, None));
            return;
        }

        self.settled.push(settled_row(file, SourceStatus::UnknownFormat, Some(reason)));
        // Folders of logs also hold settings and indexes in `.json` files, so only other files are
        // reported.
        if file.path.extension().is_none_or(|ext| ext != "json") {
            self.push_problem(file, ProblemKind::UnknownFormat, reason.to_owned());
        }
    }

    /// Reports a file that could not be opened or read.
    fn report_unreadable(&mut self, file: &LogCandidate, error: &std::io::Error) {
        let is_too_large = error.kind() == std::io::ErrorKind::FileTooLarge;
        let kind =
            if is_too_large { ProblemKind::OversizedDocument } else { ProblemKind::Unreadable };
        // Not settled: the next run tries again.
        self.push_problem(file, kind, error.to_string());
    }

    /// Reports a problem with a file as a whole.
    fn push_problem(&mut self, file: &LogCandidate, kind: ProblemKind, message: String) {
        self.problems.push(Problem { path: file.key(), line: 0, byte: 0, kind, message });
    }
}

/// Returns the row of a file that is not read as a log.
fn settled_row(file: &LogCandidate, status: SourceStatus, reason: Option<&str>) -> SourceRow {
    let row = SourceRow::unread(file.key(), status, file.size.cast_signed(), file.modified_us);
    SourceRow { reason: reason.map(str::to_owned), ..row }
}
