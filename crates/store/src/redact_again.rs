//! Masks stored text again that other rules than those in force masked.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use ingest::plan::rules_version;
use ingest::redact::Redactor;
use ingest::run::remask::RowRemasker;
use ingest::run::{LogCheckpoint, Sink as _};
use schemas::session::SourceRow;

use super::compact::parse_problem_row;
use super::error::StoreError;
use super::ingest_target::WriterSink;
use super::labels::LabelBook;
use super::lake::keys::LAKE_PATH;
use super::manifest::Manifest;
use super::open_store::Store;
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;
use super::sources::read_table_of;
use super::writer::{StoreWriter, is_log_of};

/// The rows that are masked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowsToMask {
    /// Those that other rules masked.
    OfOtherRules,
    /// Also those of logs that were ingested with `--no-redact`.
    All,
}

/// What was masked again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedAgain {
    /// The number of logs whose rows are masked by the rules in force now.
    pub logs: usize,
    /// The sessions whose rows stay as they are, because some of them were lost by damage.
    pub damaged: Vec<String>,
}

impl RowsToMask {
    /// Returns whether rows are masked again that the rules of version `masked_by` masked, where 0
    /// means none. `rules` is the version of the rules in force.
    pub fn includes(self, masked_by: i64, rules: i64) -> bool {
        masked_by != rules && (masked_by != 0 || self == Self::All)
    }

    /// Returns whether a store has such rows. Most manifests show that there are none.
    fn are_in(self, store: &Path, manifest: &Manifest, rules: i64) -> Result<bool, StoreError> {
        let includes = |masked_by: &i64| self.includes(*masked_by, rules);
        if !manifest.segments.iter().flat_map(|segment| &segment.rules).any(includes) {
            return Ok(false);
        }
        let sources = read_table_of(store, manifest)?;
        let mut states = sources.iter().map(|source| &source.state);
        Ok(states.any(|state| state.has_session && includes(&state.redaction_rules)))
    }
}

impl Store {
    /// Returns whether other rules than those of version `rules` masked some text of the store: of
    /// events and sessions, or of labels and notes. What was ingested with `--no-redact` does not
    /// count.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn has_text_of_other_rules(&self, rules: i64) -> Result<bool, StoreError> {
        let labels = LabelBook::read(self.dir(), None);
        Ok(labels.is_of_other_rules(rules)
            || RowsToMask::OfOtherRules.are_in(self.dir(), &self.read_manifest()?, rules)?)
    }

    /// Masks the labels and notes again that other rules masked.
    ///
    /// # Errors
    /// Fails if another process holds their lock, or if they cannot be read or written.
    pub fn mask_labels_again(&self, redactor: &Redactor) -> Result<(), StoreError> {
        mask_labels_of(self.dir(), redactor)
    }
}

impl StoreWriter {
    /// Masks the labels and notes again that other rules masked.
    ///
    /// # Errors
    /// Fails if another process holds their lock, or if they cannot be read or written.
    pub fn mask_labels_again(&self, redactor: &Redactor) -> Result<(), StoreError> {
        mask_labels_of(&self.dir, redactor)
    }

    /// Masks the rows of sessions again that other rules masked than those of `redactor`: of logs that
    /// are gone or were not read now, and of sessions that came from a lake. The new rows supersede the
    /// earlier ones. Sessions that lost rows by damage stay as they are, because the rows of a session
    /// in one segment must have no gap.
    ///
    /// # Errors
    /// Fails if the store cannot be read or written.
    pub fn mask_again(
        &self,
        redactor: &Redactor,
        rows: RowsToMask,
    ) -> Result<MaskedAgain, StoreError> {
        let manifest = self.current_manifest();
        let rules = rules_version(Some(redactor));
        if !rows.are_in(&self.dir, &manifest, rules)? {
            return Ok(MaskedAgain::default());
        }
        let snapshot = Snapshot::load(&self.dir, manifest, Some(&self.before))?;
        let mut logs: HashMap<String, SourceRow> = HashMap::new();
        let mut others: Vec<SourceRow> = Vec::new();
        for row in snapshot.read_sources(true)? {
            let Some(session_id) = row.session_id.clone() else { continue };
            if !rows.includes(row.redaction_rules, rules) {
                continue;
            }
            let session = snapshot.session(&session_id);
            if session.is_some_and(|session| is_log_of(session, &row)) {
                logs.insert(session_id, row);
            } else {
                // The session continues in another file.
                others.push(row);
            }
        }
        self.mask_rows(&snapshot, &logs, others, redactor)
    }

    /// Masks the rows of the sessions of `logs`, and those of the files `others`.
    fn mask_rows(
        &self,
        snapshot: &Snapshot,
        logs: &HashMap<String, SourceRow>,
        others: Vec<SourceRow>,
        redactor: &Redactor,
    ) -> Result<MaskedAgain, StoreError> {
        let incomplete: HashSet<&str> =
            snapshot.incomplete_sessions().map(|row| row.session_id.as_str()).collect();
        let problems = snapshot.read_problems()?;
        let mut masked = MaskedAgain::default();
        let mut sink = WriterSink::new(self);
        for (at, session) in snapshot.sessions().iter().enumerate() {
            let Some(source) = logs.get(session.id()) else { continue };
            if incomplete.contains(session.id()) {
                masked.damaged.push(session.id().to_owned());
                continue;
            }

            let mut remask = RowRemasker::new(redactor, sink.segment()?);
            let mut events = snapshot.events_of(at, ALL_EVENTS, &[]);
            while let Some(batch) = events.next_batch()? {
                sink.events(
                    &remask.mask_events(&batch).map_err(|error| events.damaged_batch(error))?,
                )?;
            }
            let mut masked_problems = Vec::new();
            for row in &problems {
                if row.path == session.source_path
                    && let Some(problem) = parse_problem_row(row.clone())
                {
                    masked_problems.push(remask.mask_problem(problem));
                }
            }
            masked.logs += 1;
            sink.checkpoint(vec![LogCheckpoint {
                source: Box::new(mask_source(&remask, source)),
                session: Box::new(remask.mask_session(session.row()?)),
                problems: masked_problems,
            }])?;
        }
        for row in others {
            let remask = RowRemasker::new(redactor, sink.segment()?);
            sink.checkpoint(vec![LogCheckpoint {
                source: Box::new(mask_source(&remask, &row)),
                // Only the row of the file is written.
                session: Box::default(),
                problems: Vec::new(),
            }])?;
        }
        sink.finish()?;
        Ok(masked)
    }
}

/// Masks the row of a file. That of a session from a lake keeps what it says about the import, which
/// is not text of a log.
fn mask_source(remask: &RowRemasker<'_>, row: &SourceRow) -> SourceRow {
    let masked = remask.mask_source(row);
    let is_imported = row.path.starts_with(LAKE_PATH);
    if is_imported { SourceRow { state: row.state.clone(), ..masked } } else { masked }
}

/// Masks the labels and notes of the store in `dir` again, if other rules masked them.
fn mask_labels_of(dir: &Path, redactor: &Redactor) -> Result<(), StoreError> {
    if !LabelBook::read(dir, None).is_of_other_rules(rules_version(Some(redactor))) {
        return Ok(());
    }
    LabelBook::update(dir, |labels| labels.mask_again(redactor))
}
