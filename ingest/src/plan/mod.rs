//! Decides what is to be read: compares the files found with the checkpoints, gives new logs
//! their session ids, and puts logs that share history into one unit of work.

mod compare;
mod gone;
mod ids;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use schemas::event::Relation;
use schemas::problem::{Problem, ProblemKind};
use schemas::session::{SessionRow, SourceRow, SourceStatus};

pub use self::compare::unchanged;
use self::compare::{
    Rules, change, changed_at, companions, is_its_log, is_of_another, masked_by, told_of,
    was_out_of_reach,
};
pub(crate) use self::gone::path_aside;
use self::ids::free_id;
use crate::checkpoint::Fingerprint;
use crate::columns::shows_path;
use crate::container::Content;
use crate::discover::{Candidate, Discovery, is_gone};
use crate::kin::{Former, News, claim_of, left_behind, settle};
use crate::link::{link, units};
use crate::provider::{Claim, Reader, format, is_beside_log};
use crate::redact::Redactor;
use crate::sniff::{Sniffed, sniff, sniff_all};
use crate::worker::rules_version;

/// What the store knows: the latest row of every file (without decoder state) and session.
#[derive(Debug, Default)]
pub struct Known {
    pub sources: HashMap<String, SourceRow>,
    pub sessions: HashMap<String, Arc<SessionRow>>,
}

impl Known {
    /// The session that a file is the log of; none when its session lies elsewhere by now.
    pub(crate) fn session_of(&self, row: &SourceRow) -> Option<&Arc<SessionRow>> {
        let session = self.sessions.get(row.session_id.as_ref()?)?;
        shows_path(&session.source_path, &row.path).then_some(session)
    }
}

/// Why a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    New,
    Grown,
    Rewritten,
    /// It did not change. It is read anew where its original came later than it, or was behind it.
    Same,
    /// It is gone. Where it would be read anew, its rows in the store are counted anew.
    Gone,
}

/// What a file is that is no longer the log of its session.
enum Successor {
    /// The same log. It has named itself since it was read, or is known to be of another agent.
    SameLog,
    /// Something else was written over it.
    OtherContent,
}

/// One file to read.
#[derive(Debug, Clone)]
pub struct Work {
    pub file: Candidate,
    pub change: Change,
    pub claim: Claim,
    pub session_id: String,
    /// Session that this one hangs on, if it is known.
    pub parent_session_id: Option<String>,
    pub relation: Option<Relation>,
    /// Sessions whose records this one may repeat.
    pub ancestors: Vec<String>,
    /// Why the beginning of the log, which was recognised before, is not recognised any more.
    pub reason: Option<&'static str>,
    /// Where reading goes on.
    pub source: Option<Box<SourceRow>>,
    pub session: Option<Arc<SessionRow>>,
}

/// What is to be done.
#[derive(Debug, Default)]
pub struct Plan {
    /// Works of one unit are done one after the other, ancestors first.
    pub units: Vec<Vec<Work>>,
    /// Rows that change without anything to read: empty, unknown, failed and vanished files.
    pub settled: Vec<SourceRow>,
    /// Sessions whose log vanished or came back.
    pub sessions: Vec<SessionRow>,
    /// From the new paths of settled rows to those under which the store has their state.
    pub moved: HashMap<String, String>,
    /// Logs that are gone and that were masked by other rules than those in force: their rows are
    /// all there is to mask.
    pub outdated: Vec<String>,
    pub problems: Vec<Problem>,
    pub files: u64,
    pub unchanged: u64,
    /// Bytes that will be read.
    pub bytes: u64,
}

/// Makes the plan for what was found. Logs masked by other rules than `redactor`'s are read anew.
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
        let news = News::of(&works);
        plan.relatives(&news, rules, known, &mut works);
        link(&mut works, known, &news);
        settle(&mut works);
    }
    plan.bytes = works.iter().map(|work| work.file.size.saturating_sub(work.offset())).sum();
    plan.units = units(works);
    plan
}

impl Work {
    /// Where reading begins.
    pub fn offset(&self) -> u64 {
        match (&self.source, self.change) {
            (Some(row), Change::Grown) => row.consumed.cast_unsigned(),
            (_, Change::Same | Change::Gone) => self.file.size,
            _ => 0,
        }
    }
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

    /// Plans a file that was read before and is another now. Returns it if it is no longer the log of
    /// its session, with what it is instead.
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
            // It has named itself since, or begins as another agent's logs do.
            Ok((same, Sniffed::Log(claim))) if is_of_another(&claim, row, known) => {
                let is_same_log = same && row.consumed > 0;
                let other = if is_same_log { Successor::SameLog } else { Successor::OtherContent };
                return Some((file, other));
            }
            // What was read stays, and what follows is read by the same decoder.
            Ok((true, Sniffed::Unknown(reason))) if row.consumed > 0 => {
                works.extend(read_on(file, row, reason, rules, known));
            }
            // Truncated to nothing, or overwritten: what was read stays.
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

    /// Files that nothing is known of: new logs, and known ones under new names.
    fn new_files(
        &mut self,
        files: Vec<Candidate>,
        rules: Rules<'_>,
        known: &Known,
        works: &mut Vec<Work>,
    ) {
        let mut claims = self.claims(files, rules, known);
        // Among logs of one id the largest is the original; a rerun after a kill decides alike.
        // One that names its parent comes behind it.
        claims.sort_by(|(a, x), (b, y)| {
            let hangs = x.parent.is_some().cmp(&y.parent.is_some());
            hangs.then_with(|| b.size.cmp(&a.size)).then_with(|| a.path.cmp(&b.path))
        });
        let mut former = match claims.is_empty() {
            true => Former::default(),
            false => Former::of(known, works, &self.settled),
        };
        let mut taken = HashMap::new();
        for (mut file, claim) in claims {
            match former.take(&file, &claim) {
                Ok(Some((row, same))) => {
                    self.renamed(row);
                    // As one that was out of reach.
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

    /// Notes that the session of a log goes on in another file. The row of the former one still names
    /// the session, so that the move is found again when this run is killed before that is committed.
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

    /// Known logs that new ones have to do with, beside those planned: as far as they go by now.
    fn relatives(&mut self, news: &News, rules: Rules<'_>, known: &Known, works: &mut Vec<Work>) {
        for row in news.relatives(works, known) {
            let is_here = match Candidate::of_key(&row.path) {
                Some(file) if unchanged(&file, row) && masked_by(row, rules) => {
                    let claim = match sniff(&file, rules.redactor) {
                        Ok(Sniffed::Log(claim)) => Some(claim),
                        Ok(_) => known.session_of(row).and_then(|session| claim_of(row, session)),
                        Err(_) => None,
                    };
                    works.extend(claim.map(|claim| go_on(file, claim, row, Change::Same, known)));
                    true
                }
                // What was written over it is read when its own turn comes.
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

    /// Looks at files that are new; what is no log is settled at once.
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
        // Folders of logs hold settings and indexes in JSON too; lines are logs.
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

/// A log that goes on with the session of `row`.
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

/// Returns the work of a log whose grown beginning no decoder recognises: it stays with the decoder
/// that read it before. `None` if the store does not say which that was.
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

/// A document larger than this is not read: it has to be held whole.
pub(crate) const MAX_DOCUMENT: u64 = 64 << 20;

/// What is said of such a document.
pub(crate) fn too_large(length: u64) -> String {
    format!("a document of {length} bytes is more than {MAX_DOCUMENT} and was not read")
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
