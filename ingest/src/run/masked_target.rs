//! A target that masks rows before they reach the store. Every column that ingest writes passes
//! here.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use schemas::session::{EventRow, SessionRow, SourceRow};
use schemas::table::{PROBLEMS, SESSIONS, SOURCES};

use super::report::ContinuedSession;
use super::target::{LogCheckpoint, Sink, Target};
use crate::plan::compare::rules_version;
use crate::redact::columns::ColumnMasker;
use crate::redact::{MaskedSecrets, Redactor};
use crate::stream::RecordAliases;
use crate::stream::batch::rows_by_session;
use crate::stream::forgotten::ForgottenRecords;

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
    /// The secrets masked in names and ids of sessions in this run, by session and from hash to
    /// kind. Holds the sessions since the last checkpoint, and the last one before it, whose log may
    /// not be read to its end yet.
    secrets: HashMap<String, HashMap<u64, String>>,
}

impl<'t, T: Target> Target for MaskedTarget<'t, T> {
    type Error = T::Error;
    type Sink = MaskedSink<'t, T::Sink>;

    fn sink(&self) -> Result<Self::Sink, Self::Error> {
        Ok(MaskedSink {
            sink: self.target.sink()?,
            redactor: self.redactor,
            masker: ColumnMasker::default(),
            secrets: HashMap::new(),
        })
    }

    fn record_hashes(&self, session_id: &str) -> Result<Vec<u64>, Self::Error> {
        self.target.record_hashes(session_id)
    }

    fn state(&self, path: &str) -> Result<Option<String>, Self::Error> {
        self.target.state(path)
    }

    fn find_excluded_row(&self, session: &SessionRow, source: &SourceRow) -> Option<SourceRow> {
        self.target.find_excluded_row(session, source)
    }

    fn events(
        &self,
        session_id: &str,
        ranges: &[Range<i32>],
    ) -> Result<Vec<EventRow>, Self::Error> {
        self.target.events(session_id, ranges)
    }

    fn forgotten_records(&self) -> Option<&ForgottenRecords> {
        self.target.forgotten_records()
    }

    fn record_aliases(&self) -> Arc<RecordAliases> {
        self.target.record_aliases()
    }

    fn note_forgotten_copies(&self, found: ContinuedSession) {
        self.target.note_forgotten_copies(found);
    }
}

impl<S: Sink> Sink for MaskedSink<'_, S> {
    type Error = S::Error;

    fn segment(&mut self) -> Result<i64, Self::Error> {
        self.sink.segment()
    }

    fn events(&mut self, batch: &RecordBatch) -> Result<(), Self::Error> {
        let (masked, found) = self.mask_events(batch);
        if !found.is_empty() {
            self.note_secrets(&masked, batch);
        }
        self.sink.events(&masked)
    }

    fn checkpoint(&mut self, mut logs: Vec<LogCheckpoint>) -> Result<(), Self::Error> {
        for log in &mut logs {
            self.mask_log(log);
        }
        let last = logs.last().map(|log| log.session.session_id.as_str());
        self.secrets.retain(|session_id, _| Some(session_id.as_str()) == last);
        self.sink.checkpoint(logs)
    }

    fn finish(self) -> Result<(), Self::Error> {
        self.sink.finish()
    }
}

impl<S> MaskedSink<'_, S> {
    /// Returns rows masked, and the secrets in them.
    fn mask_events(&mut self, batch: &RecordBatch) -> (RecordBatch, MaskedSecrets) {
        let mut found = MaskedSecrets::new();
        let masked = self.masker.mask_events(self.redactor, batch, &mut found);
        // All batches come from ingest, so their columns are those of the table.
        (masked.expect("columns of the events table"), found)
    }

    /// Notes the secrets in the rows of each session. `masked` are the rows of `batch` after they
    /// were masked.
    fn note_secrets(&mut self, masked: &RecordBatch, batch: &RecordBatch) {
        for session in rows_by_session(masked) {
            let rows = batch.slice(session.rows.start, session.rows.len());
            let (_, found) = self.mask_events(&rows);
            let secrets = self.secrets.entry(session.session_id.to_owned()).or_default();
            secrets.extend(found.into_iter().map(|(kind, secret)| (secret, kind)));
        }
    }

    /// Masks the rows of a log, and adds the secrets in its events to the counts of its session.
    fn mask_log(&mut self, log: &mut LogCheckpoint) {
        let mut ignored = MaskedSecrets::new();
        self.masker.mask_row(self.redactor, &SESSIONS, &mut *log.session, &mut ignored);
        self.masker.mask_row(self.redactor, &SOURCES, &mut *log.source, &mut ignored);
        for problem in &mut log.problems {
            self.masker.mask_row(self.redactor, &PROBLEMS, problem, &mut ignored);
        }
        if log.source.session_id.is_none() {
            log.source.redaction_rules = rules_version(self.redactor);
        }
        if let Some(secrets) = self.secrets.get(&log.session.session_id) {
            add_counts(&mut log.session.redactions, secrets);
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use schemas::session::SourceStatus;

    use super::*;
    use crate::redact::UserRule;
    use crate::stream::batch::{EventBatch, EventCells, events_schema};

    /// Keeps the sessions.
    #[derive(Default)]
    struct SessionList(Vec<SessionRow>);

    impl Sink for SessionList {
        type Error = Infallible;

        fn segment(&mut self) -> Result<i64, Infallible> {
            Ok(1)
        }

        fn events(&mut self, _: &RecordBatch) -> Result<(), Infallible> {
            Ok(())
        }

        fn checkpoint(&mut self, logs: Vec<LogCheckpoint>) -> Result<(), Infallible> {
            self.0.extend(logs.into_iter().map(|log| *log.session));
            Ok(())
        }

        fn finish(self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    fn batch(rows: &[(&str, &str)]) -> RecordBatch {
        let mut batch = EventBatch::default();
        for (session_id, tool) in rows {
            let tool_name = Some(*tool);
            batch.push(&EventCells { session_id, tool_name, ..EventCells::default() });
        }
        batch.finish(&events_schema(), 1)
    }

    fn checkpoint(session_id: &str) -> LogCheckpoint {
        let session = SessionRow { session_id: session_id.to_owned(), ..SessionRow::default() };
        let source = SourceRow::unread("/log".to_owned(), SourceStatus::Ok, 1, 0);
        LogCheckpoint { session: Box::new(session), source: Box::new(source), problems: Vec::new() }
    }

    #[test]
    fn a_secret_of_several_sessions_counts_once_in_each() {
        let rules = ["heron", "osprey"]
            .map(|name| UserRule { name: name.to_owned(), regex: name.to_owned() });
        let redactor = Redactor::new(&rules).expect("rules");
        let mut sink = MaskedSink {
            sink: SessionList::default(),
            redactor: Some(&redactor),
            masker: ColumnMasker::default(),
            secrets: HashMap::new(),
        };
        let Ok(()) = sink.events(&batch(&[
            ("a", "heron"),
            ("a", "heron"),
            ("b", "heron"),
            ("c", "none"),
            ("d", "heron"),
        ]));
        let Ok(()) = sink.checkpoint(["a", "b", "c", "d"].map(checkpoint).into());
        // The last log continues.
        let Ok(()) = sink.events(&batch(&[("d", "osprey"), ("e", "none")]));
        let Ok(()) = sink.checkpoint(["d", "e"].map(checkpoint).into());

        let sessions = &sink.sink.0;
        let counts: Vec<_> = sessions
            .iter()
            .map(|row| (row.session_id.as_str(), row.redactions.as_deref().unwrap_or("")))
            .collect();
        let heron = r#"{"heron":1}"#;
        let both = r#"{"heron":1,"osprey":1}"#;
        let expected =
            [("a", heron), ("b", heron), ("c", ""), ("d", heron), ("d", both), ("e", "")];
        assert_eq!(counts, expected);
    }
}
