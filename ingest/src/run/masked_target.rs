//! A target that masks rows before they reach the store. Every column that ingest writes passes
//! here.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use arrow::array::{AsArray, RecordBatch};
use schemas::problem::Problem;
use schemas::session::{EventRow, SessionRow, SourceRow};
use schemas::table::{PROBLEMS, SESSIONS, SOURCES};

use super::target::{Sink, Target};
use crate::plan::compare::rules_version;
use crate::redact::columns::ColumnMasker;
use crate::redact::{MaskedSecrets, Redactor};

/// A store whose rows are masked by the table of columns before they are written.
pub(crate) struct MaskedTarget<'t, T> {
    pub(crate) target: &'t T,
    pub(crate) redactor: Option<&'t Redactor>,
}

/// A sink whose rows are masked before they are written.
pub(crate) struct MaskedSink<'t, S> {
    sink: S,
    redactor: Option<&'t Redactor>,
    masker: ColumnMasker,
    /// The session of the last rows.
    session_id: String,
    /// The secrets masked in names and ids of the session in this run: from hash to kind.
    secrets: HashMap<u64, String>,
}

impl<'t, T: Target> Target for MaskedTarget<'t, T> {
    type Error = T::Error;
    type Sink = MaskedSink<'t, T::Sink>;

    fn sink(&self) -> Result<Self::Sink, Self::Error> {
        Ok(MaskedSink {
            sink: self.target.sink()?,
            redactor: self.redactor,
            masker: ColumnMasker::default(),
            session_id: String::new(),
            secrets: HashMap::new(),
        })
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, Self::Error> {
        self.target.record_hashes(session_id)
    }

    fn state(&self, path: &str) -> Result<Option<String>, Self::Error> {
        self.target.state(path)
    }

    fn events(
        &self,
        session_id: &str,
        ranges: &[Range<i32>],
    ) -> Result<Vec<EventRow>, Self::Error> {
        self.target.events(session_id, ranges)
    }
}

impl<S: Sink> Sink for MaskedSink<'_, S> {
    type Error = S::Error;

    fn segment(&mut self) -> Result<i64, Self::Error> {
        self.sink.segment()
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), Self::Error> {
        let mut found = MaskedSecrets::new();
        let masked = self.masker.mask_events(self.redactor, batch, &mut found);
        // All batches come from ingest, so their columns are those of the table.
        let masked = masked.expect("columns of the events table");

        let ids = masked.column_by_name("session_id").and_then(|ids| ids.as_string_opt::<i32>());
        if let Some(id) = ids.and_then(|ids| ids.iter().next()).flatten() {
            self.begin_session(id);
        }
        self.secrets.extend(found.into_iter().map(|(kind, secret)| (secret, kind)));
        self.sink.events(&masked)
    }

    fn checkpoint(
        &mut self,
        session: SessionRow,
        source: SourceRow,
        problems: Vec<Problem>,
    ) -> Result<(), Self::Error> {
        let mut masked_session =
            self.masker.mask_row(self.redactor, &SESSIONS, &session, &mut MaskedSecrets::new());
        let mut masked_source =
            self.masker.mask_row(self.redactor, &SOURCES, &source, &mut MaskedSecrets::new());
        if masked_source.session_id.is_none() {
            masked_source.redaction_rules = rules_version(self.redactor);
        }

        self.begin_session(&masked_session.session_id);
        add_counts(&mut masked_session.redactions, &self.secrets);

        let masked_problems = problems
            .iter()
            .map(|problem| {
                self.masker.mask_row(self.redactor, &PROBLEMS, problem, &mut MaskedSecrets::new())
            })
            .collect();
        self.sink.checkpoint(masked_session, masked_source, masked_problems)
    }

    fn finish(self) -> Result<(), Self::Error> {
        self.sink.finish()
    }
}

impl<S> MaskedSink<'_, S> {
    /// Forgets the secrets of the last session if rows of another one follow.
    fn begin_session(&mut self, session_id: &str) {
        if self.session_id != session_id {
            session_id.clone_into(&mut self.session_id);
            self.secrets.clear();
        }
    }
}

/// Adds the number of secrets per kind to the counts of a session.
pub(crate) fn add_counts(counts: &mut Option<String>, secrets: &HashMap<u64, String>) {
    if secrets.is_empty() {
        return;
    }
    let known = counts.as_deref().and_then(|json| serde_json::from_str(json).ok());
    let mut sums: BTreeMap<String, u64> = known.unwrap_or_default();
    for kind in secrets.values() {
        *sums.entry(kind.clone()).or_default() += 1;
    }
    *counts = serde_json::to_string(&sums).ok();
}
