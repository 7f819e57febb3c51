//! Masks the stored rows of logs again that cannot be re-read.

use std::collections::{HashMap, HashSet};

use ingest::redact::Redactor;
use ingest::run::remask::RowRemasker;
use ingest::run::{LogCheckpoint, Sink as _};
use schemas::session::SourceRow;

use super::compact::parse_problem_row;
use super::error::StoreError;
use super::ingest_target::WriterSink;
use super::session_events::ALL_EVENTS;
use super::snapshot::Snapshot;
use super::writer::StoreWriter;

impl StoreWriter {
    /// Redacts the stored rows of logs that no longer exist and therefore cannot be re-read.
    /// `paths` are their files. The redacted rows supersede the earlier ones. Sessions that lost
    /// rows by damage stay as they are, because the rows of a session in one segment must have no
    /// gap.
    pub fn redact_again(&self, paths: &[String], redactor: &Redactor) -> Result<(), StoreError> {
        let snapshot = Snapshot::load(&self.dir, self.current_manifest(), Some(&self.before))?;
        let mut sources: HashMap<String, SourceRow> = HashMap::new();
        for row in snapshot.read_sources(true)? {
            if let Some(session_id) = &row.session_id
                && paths.contains(&row.path)
            {
                sources.insert(session_id.clone(), row);
            }
        }
        let damaged: HashSet<&str> =
            snapshot.incomplete_sessions().map(|row| row.session_id.as_str()).collect();
        let problems = snapshot.read_problems()?;
        let mut sink = WriterSink::new(self);
        for (at, session) in snapshot.sessions().iter().enumerate() {
            if damaged.contains(session.session_id.as_str()) {
                continue;
            }
            let Some(source) = sources.get(&session.session_id) else { continue };

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
            sink.checkpoint(vec![LogCheckpoint {
                source: Box::new(remask.mask_source(source)),
                session: Box::new(remask.mask_session(session)),
                problems: masked_problems,
            }])?;
        }
        sink.finish()
    }
}
