//! Decides which files are read: compares the files found with the checkpoints, assigns session ids
//! to new logs, and groups logs that share history into one unit of work.

pub(crate) mod compare;
mod gone;
mod ids;
mod in_order;
mod lineage;
mod original_order;
pub(crate) mod relatives;
pub(crate) mod work;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use schemas::problem::{Problem, ProblemKind};
use schemas::session::{SourceRow, SourceStatus};

pub use self::compare::unchanged;
use self::compare::{
    Rules, change, changed_at, companions, is_its_log, is_of_another, masked_by, rules_version,
    told_of, was_out_of_reach,
};
use self::ids::free_id;
use self::lineage::{link, units};
use self::relatives::{MovedLogs, NewLogs, claim_of, left_behind, settle};
pub use self::work::{Change, Known, Plan, Work};
use crate::discover::Discovery;
use crate::discover::presence::{find_candidate, is_gone};
use crate::discover::sniff::{Sniffed, sniff, sniff_all};
use crate::provider::format::{Claim, Reader};
use crate::provider::{format, is_beside_log};
use crate::redact::Redactor;
use crate::source::candidate::Candidate;
use crate::source::container::{Content, MAX_DOCUMENT, too_large};
use crate::source::fingerprint::Fingerprint;

/// The content of a file that is no longer the log of its session.
enum Successor {
    /// The same log. It has named itself since it was read, or is now known to be another agent's.
    SameLog,
    /// Other content that overwrote the log.
    OtherContent,
}

/// Plans the work for the files found. Logs masked by other rules than those of `redactor` are read
/// again.
pub fn plan(found: Discovery, known: &Known, redactor: Option<&Redactor>) -> Plan {
    let rules = Rules { redactor, version: rules_version(redactor) };
    let mut plan = Plan { files: found.files.len() as u64, ..Plan::default() };
    plan.vanished(&found, known);
    plan.outdated(&found.files, rules, known);
    plan.problems.extend(found.problems);
    let mut works = Vec::new();
    let mut renamed = Vec::new();
    let mut unseen = Vec::new();
    let told = told_of(&found.files, known);
    for file in found.files.into_iter().chain(told) {
        match known.sources.get(&file.key()).filter(|row| is_its_log(row, known)) {
            Some(row)
                if unchanged(&file, row) && masked_by(row, rules) && !was_out_of_reach(row) =>
            {
                plan.settle_unchanged(row, known);
            }
            Some(row)
                if matches!(row.status, SourceStatus::Ok | SourceStatus::Gone)
                    && row.session_id.is_some() =>
            {
                match plan.known_file(file, row, rules, known, &mut works) {
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
            _ => unseen.push(file),
        }
    }
    let remaining = plan.dissolve(&renamed, known);
    let known = remaining.as_ref().unwrap_or(known);
    plan.new_files(unseen, rules, known, &mut works);
    if !works.is_empty() {
        let news = NewLogs::of(&works);
        plan.relatives(&news, rules, known, &mut works);
        link(&mut works, known, &news);
        settle(&mut works);
    }
    plan.bytes = works.iter().map(|work| work.file.size.saturating_sub(work.offset())).sum();
    plan.units = units(works);
    plan
}

impl Plan {
    fn settle_unchanged(&mut self, row: &SourceRow, known: &Known) {
        self.unchanged += 1;
        if row.status == SourceStatus::Gone {
            let status =
                if row.session_id.is_some() { SourceStatus::Ok } else { SourceStatus::Empty };
            self.settled.push(SourceRow { status, ..row.clone() });
            self.mark_session(row, false, known);
        }
    }

    /// Plans a known file that has changed. If the file is no longer the log of its session,
    /// returns it together with what it holds instead.
    fn known_file(
        &mut self,
        file: Candidate,
        row: &SourceRow,
        rules: Rules<'_>,
        known: &Known,
        works: &mut Vec<Work>,
    ) -> Option<(Candidate, Successor)> {
        let same =
            Content::open(&file).and_then(|mut content| Fingerprint::matches(&mut content, row));
        match same.and_then(|same| Ok((same, sniff(&file, rules.redactor)?))) {
            // The log has named itself since, or begins as another agent's logs do.
            Ok((same, Sniffed::Log(claim))) if is_of_another(&claim, row, known) => {
                let is_same_log = same && row.consumed > 0;
                let other = if is_same_log { Successor::SameLog } else { Successor::OtherContent };
                return Some((file, other));
            }
            // The content read before stays, and the rest is read by the same decoder.
            Ok((true, Sniffed::Unknown(reason))) if row.consumed > 0 => {
                works.extend(read_on(file, row, reason, rules, known));
            }
            // Truncated to nothing, or overwritten: the content read before stays.
            Ok((_, Sniffed::Empty | Sniffed::Unknown(_))) => {
                return Some((file, Successor::OtherContent));
            }
            Ok((same, Sniffed::Log(claim))) => {
                let change = change(&claim, row, same, rules);
                works.push(go_on(file, claim, row, change, known));
            }
            Err(error) => self.failed(&file, &error),
        }
        None
    }

    /// Plans files that the store does not know by path: new logs, and known logs under new names.
    fn new_files(
        &mut self,
        files: Vec<Candidate>,
        rules: Rules<'_>,
        known: &Known,
        works: &mut Vec<Work>,
    ) {
        let mut claims = self.claims(files, rules, known);
        // Among logs of one id the largest is the original; a rerun after a kill decides the same.
        // A log that names a parent comes after those that do not.
        claims.sort_by(|(a, x), (b, y)| {
            let hangs = x.parent.is_some().cmp(&y.parent.is_some());
            hangs.then_with(|| b.size.cmp(&a.size)).then_with(|| a.path.cmp(&b.path))
        });
        let mut former = match claims.is_empty() {
            true => MovedLogs::default(),
            false => MovedLogs::of(known, works, &self.settled),
        };
        let mut taken = HashMap::new();
        for (mut file, claim) in claims {
            match former.take(&file, &claim) {
                Ok(Some((row, same))) => {
                    self.renamed(row);
                    // A log with ancestors is read from its start, like one that was out of reach.
                    let same = same && row.ancestors.is_none();
                    let change = change(&claim, row, same, rules);
                    works.push(go_on(file, claim, row, change, known));
                }
                Ok(None) => {
                    file.modified_us = changed_at(&file, Some(claim.provider));
                    works.push(Work {
                        session_id: free_id(&claim.native_id, &known.sessions, &mut taken),
                        file,
                        change: Change::New,
                        relation: claim.relation,
                        claim,
                        parent_session_id: None,
                        ancestors: Vec::new(),
                        reason: None,
                        source: None,
                        session: None,
                    });
                }
                Err(error) => self.failed(&file, &error),
            }
        }
    }

    /// Notes that the session of a log continues in another file. The row of the former file still
    /// names the session, so that the move is found again if this run is killed before the move is
    /// committed.
    fn renamed(&mut self, row: &SourceRow) {
        let of_it = |id: Option<&String>| id == row.session_id.as_ref();
        self.sessions.retain(|session| !of_it(Some(&session.session_id)));
        let is_aside = |gone: &SourceRow| self.moved.contains_key(&gone.path);
        self.settled.retain(|gone| !(of_it(gone.session_id.as_ref()) && is_aside(gone)));
        if row.status != SourceStatus::Gone && self.settled.iter().all(|gone| gone.path != row.path)
        {
            self.settled.push(SourceRow { status: SourceStatus::Gone, ..row.clone() });
        }
    }

    /// Adds known logs that new logs affect, besides those already planned, in their present state.
    fn relatives(
        &mut self,
        news: &NewLogs,
        rules: Rules<'_>,
        known: &Known,
        works: &mut Vec<Work>,
    ) {
        for row in news.relatives(works, known) {
            let is_here = match find_candidate(&row.path) {
                Some(file) if unchanged(&file, row) && masked_by(row, rules) => {
                    let claim = match sniff(&file, rules.redactor) {
                        Ok(Sniffed::Log(claim)) => Some(claim),
                        Ok(_) => known.session_of(row).and_then(|session| claim_of(row, session)),
                        Err(_) => None,
                    };
                    works.extend(claim.map(|claim| go_on(file, claim, row, Change::Same, known)));
                    true
                }
                // New content that overwrote the log is read in its own turn.
                Some(file) => {
                    let successor = self.known_file(file, row, rules, known, works);
                    !matches!(successor, Some((_, Successor::OtherContent)))
                }
                None => !is_gone(&row.path),
            };
            if !is_here {
                let of_it = |gone: &&SourceRow| gone.session_id == row.session_id;
                let row = self.settled.iter().find(of_it).unwrap_or(row);
                works.extend(left_behind(row, known));
            }
        }
    }

    /// Sniffs files that are new. Files that are not logs are settled at once.
    fn claims(
        &mut self,
        files: Vec<Candidate>,
        rules: Rules<'_>,
        known: &Known,
    ) -> Vec<(Candidate, Claim)> {
        let (mut claims, mut unknown) = (Vec::new(), Vec::new());
        for (file, sniffed) in sniff_all(files, rules.redactor) {
            match sniffed {
                Ok(Sniffed::Log(claim)) if is_too_large(&file, &claim) => {
                    let reason = Some("too large a document");
                    self.settled.push(settled(&file, SourceStatus::Failed, reason));
                    self.problem(&file, ProblemKind::OversizedDocument, too_large(file.size));
                }
                Ok(Sniffed::Log(claim)) => claims.push((file, claim)),
                Ok(Sniffed::Empty) => self.settled.push(settled(&file, SourceStatus::Empty, None)),
                Ok(Sniffed::Unknown(reason)) => unknown.push((file, reason)),
                Err(error) => self.failed(&file, &error),
            }
        }
        if !unknown.is_empty() {
            let companions = companions(&claims, known);
            unknown.iter().for_each(|(file, reason)| self.unknown(file, reason, &companions));
        }
        claims
    }

    fn unknown(&mut self, file: &Candidate, reason: &str, companions: &HashSet<PathBuf>) {
        if is_beside_log(file.key().as_ref()) || companions.contains(&file.path) {
            return self.settled.push(settled(file, SourceStatus::Beside, None));
        }
        self.settled.push(settled(file, SourceStatus::UnknownFormat, Some(reason)));
        // Folders of logs also hold settings and indexes in `.json` files, so only other files are
        // reported.
        if file.path.extension().is_none_or(|ext| ext != "json") {
            self.problem(file, ProblemKind::UnknownFormat, reason.to_owned());
        }
    }

    fn failed(&mut self, file: &Candidate, error: &std::io::Error) {
        let is_too_large = error.kind() == std::io::ErrorKind::FileTooLarge;
        let kind =
            if is_too_large { ProblemKind::OversizedDocument } else { ProblemKind::Unreadable };
        // Not settled: the next run tries again.
        self.problem(file, kind, error.to_string());
    }

    fn problem(&mut self, file: &Candidate, kind: ProblemKind, message: String) {
        self.problems.push(Problem { path: file.key(), line: 0, byte: 0, kind, message });
    }
}

/// Returns the work of a log that continues the session of `row`.
fn go_on(
    mut file: Candidate,
    claim: Claim,
    row: &SourceRow,
    change: Change,
    known: &Known,
) -> Work {
    file.modified_us = changed_at(&file, Some(claim.provider));
    let session_id = row.session_id.clone().unwrap_or_default();
    Work {
        file,
        change,
        relation: claim.relation,
        claim,
        session: known.sessions.get(&session_id).cloned(),
        session_id,
        parent_session_id: None,
        ancestors: Vec::new(),
        reason: None,
        source: Some(Box::new(row.clone())),
    }
}

/// Returns the work of a log whose beginning is no longer recognised by any decoder. The log stays
/// with the decoder that read it before. `None` if the store does not say which decoder that was.
fn read_on(
    file: Candidate,
    row: &SourceRow,
    reason: &'static str,
    rules: Rules<'_>,
    known: &Known,
) -> Option<Work> {
    let claim = claim_of(row, known.session_of(row)?)?;
    let change = change(&claim, row, true, rules);
    Some(Work { reason: Some(reason), ..go_on(file, claim, row, change, known) })
}

fn is_too_large(file: &Candidate, claim: &Claim) -> bool {
    matches!(format(claim.provider).reader, Reader::Document(_)) && file.size > MAX_DOCUMENT
}

fn settled(file: &Candidate, status: SourceStatus, reason: Option<&str>) -> SourceRow {
    SourceRow {
        path: file.key(),
        status,
        session_id: None,
        provider: None,
        size: file.size.cast_signed(),
        modified_us: file.modified_us,
        consumed: 0,
        lines: 0,
        objects: 0,
        head_hash: 0,
        head_length: 0,
        tail_hash: 0,
        first_record: None,
        ancestors: None,
        redaction_rules: 0,
        state: None,
        reason: reason.map(str::to_owned),
        segment: 0,
    }
}
