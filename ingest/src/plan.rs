//! Decides what is to be read: compares the files found with the checkpoints, gives new logs
//! their session ids, and puts logs that share history into one unit of work.

mod compare;
mod ids;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemas::event::Relation;
use schemas::problem::{Problem, ProblemKind};
use schemas::session::{SessionRow, SourceRow, SourceStatus};

pub(crate) use self::compare::provider_of;
pub use self::compare::unchanged;
use self::compare::{
    Rules, change, changed_at, companions, is_its_log, is_of_another, masked_by, told_of,
    was_out_of_reach,
};
use self::ids::free_id;
use crate::checkpoint::Fingerprint;
use crate::columns::shows_path;
use crate::container::Content;
use crate::discover::{Candidate, Discovery};
use crate::kin::{Former, News, left_behind, settle};
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
    /// Where reading goes on.
    pub source: Option<SourceRow>,
    pub session: Option<SessionRow>,
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
    let mut plan =
        Plan { files: found.files.len() as u64, problems: found.problems, ..Plan::default() };
    plan.vanished(&found.files, &found.roots, known);
    plan.outdated(&found.files, rules, known);
    let mut works = Vec::new();
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
                if let Some(file) = plan.known_file(file, row, rules, known, &mut works) {
                    plan.set_aside(row, known);
                    unseen.push(file);
                }
            }
            _ => unseen.push(file),
        }
    }
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
    /// Files below a readable root that are no longer there.
    fn vanished(&mut self, files: &[Candidate], roots: &[PathBuf], known: &Known) {
        let present: HashSet<String> = files.iter().map(Candidate::key).collect();
        let roots: Vec<_> =
            roots.iter().filter_map(|root| std::path::absolute(root).ok()).collect();
        let mut gone: Vec<_> = known
            .sources
            .values()
            .filter(|row| row.status != SourceStatus::Gone && !present.contains(&row.path))
            .filter(|row| roots.iter().any(|root| Path::new(&row.path).starts_with(root)))
            .collect();
        gone.sort_by(|a, b| a.path.cmp(&b.path));
        for row in gone {
            self.settled.push(SourceRow { status: SourceStatus::Gone, ..row.clone() });
            self.mark_session(row, true, known);
        }
    }

    /// Notes the logs that are gone, now or before, and were masked by other rules.
    fn outdated(&mut self, files: &[Candidate], rules: Rules<'_>, known: &Known) {
        // Without rules nothing is unmasked.
        if rules.version == 0 {
            return;
        }
        let rows = known.sources.values().filter(|row| row.status == SourceStatus::Gone);
        let mut paths: Vec<String> = rows
            .chain(&self.settled)
            .filter(|row| !masked_by(row, rules) && is_its_log(row, known))
            .map(|row| row.path.clone())
            .collect();
        // What came back is read anew.
        let present: HashSet<String> = files.iter().map(Candidate::key).collect();
        paths.retain(|path| !present.contains(path));
        self.outdated = paths;
    }

    fn mark_session(&mut self, row: &SourceRow, gone: bool, known: &Known) {
        if let Some(session) = known.session_of(row).filter(|session| session.source_gone != gone) {
            self.sessions.push(SessionRow {
                source_gone: gone,
                row_start: 0,
                row_count: 0,
                ..SessionRow::clone(session)
            });
        }
    }

    fn settle_unchanged(&mut self, row: &SourceRow, known: &Known) {
        self.unchanged += 1;
        if row.status == SourceStatus::Gone {
            let status =
                if row.session_id.is_some() { SourceStatus::Ok } else { SourceStatus::Empty };
            self.settled.push(SourceRow { status, ..row.clone() });
            self.mark_session(row, false, known);
        }
    }

    /// A file that was read before and is another now; returned if it is no longer the log of its
    /// session.
    fn known_file(
        &mut self,
        file: Candidate,
        row: &SourceRow,
        rules: Rules<'_>,
        known: &Known,
        works: &mut Vec<Work>,
    ) -> Option<Candidate> {
        let same =
            Content::open(&file).and_then(|mut content| Fingerprint::matches(&mut content, row));
        match same.and_then(|same| Ok((same, sniff(&file, rules.redactor)?))) {
            Ok((false, Sniffed::Log(claim))) if is_of_another(&claim, row, known) => {
                return Some(file);
            }
            // Truncated to nothing, or overwritten: what was read stays.
            Ok((false, Sniffed::Empty | Sniffed::Unknown(_))) => return Some(file),
            Ok((same, Sniffed::Log(claim))) => {
                let change = change(&claim, row, same, rules);
                works.push(go_on(file, claim, row, change, known));
            }
            Ok(_) => {}
            Err(error) => self.failed(&file, &error),
        }
        None
    }

    /// Keeps the session of a file that something else was written over, as one whose log is gone:
    /// under a path that no file has.
    fn set_aside(&mut self, row: &SourceRow, known: &Known) {
        let Some(session) = known.session_of(row) else { return };
        let path = path_aside(&row.path, &session.session_id);
        let status = SourceStatus::Gone;
        self.moved.insert(path.clone(), row.path.clone());
        self.settled.push(SourceRow { path: path.clone(), status, ..row.clone() });
        self.sessions.push(SessionRow {
            source_path: path,
            source_gone: true,
            row_start: 0,
            row_count: 0,
            ..SessionRow::clone(session)
        });
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
                    if let Ok(Sniffed::Log(claim)) = sniff(&file, rules.redactor) {
                        works.push(go_on(file, claim, row, Change::Same, known));
                    }
                    true
                }
                // What was written over it is read when its own turn comes.
                Some(file) => self.known_file(file, row, rules, known, works).is_none(),
                None => false,
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
        let kind = match error.kind() {
            std::io::ErrorKind::FileTooLarge => ProblemKind::OversizedDocument,
            _ => ProblemKind::Unreadable,
        };
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
        session: known.sessions.get(&session_id).map(|row| SessionRow::clone(row)),
        session_id,
        parent_session_id: None,
        ancestors: Vec::new(),
        source: Some(row.clone()),
    }
}

/// A document larger than this is not read: it has to be held whole.
pub(crate) const MAX_DOCUMENT: u64 = 64 << 20;

/// What is said of such a document.
pub(crate) fn too_large(length: u64) -> String {
    format!("a document of {length} bytes is more than {MAX_DOCUMENT} and was not read")
}

/// Where the session of a file is kept that something else was written over.
pub(crate) fn path_aside(file: &str, session_id: &str) -> String {
    format!("{file}#{session_id}")
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
