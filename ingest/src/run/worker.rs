//! A worker of a run: reads the logs of its units into a sink of its own. Its methods are in
//! `logs.rs`, `copies.rs`, `checkpoint.rs`, `handover.rs` and `recount.rs`.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use schemas::session::SessionRow;

use super::report::IngestReport;
use super::target::{LogCheckpoint, Progress, Target};
use crate::plan::PlannedLog;
use crate::redact::Redactor;
use crate::redact::columns::ColumnMasker;
use crate::stream::batch::EventBatch;
use crate::stream::{Repositories, Stream};
use crate::text::json::Parser;
use crate::text::names::truncate_name;

/// Bytes of text at which a batch is handed over.
const BATCH_BYTES: usize = 2 << 20;

/// Number of events at which a batch is handed over.
pub(super) const BATCH_EVENTS: usize = 8192;

/// Reads the logs of its units.
pub(super) struct Worker<'t, T: Target> {
    pub(super) target: &'t T,
    pub(super) progress: &'t dyn Progress,
    pub(super) redactor: Option<Arc<Redactor>>,
    /// Remembers which names have secrets.
    pub(super) masker: ColumnMasker,
    /// Remembers the repositories of working directories.
    pub(super) repositories: Arc<Repositories>,
    pub(super) schema: SchemaRef,
    pub(super) report: IngestReport,
    /// Rows of the logs that were read and not handed over yet. `None` before the first log, and
    /// while a log is read: its stream then has them and appends its own.
    pub(super) batch: Option<Box<EventBatch>>,
    /// The checkpoints of these logs, and of logs without new rows.
    pub(super) read_logs: Vec<LogCheckpoint>,
    /// Whether rows of the log that is being read were handed over. Then all of it is stored.
    pub(super) has_written_rows: bool,
    /// The last state of a decoder that was found to have no secret.
    pub(super) harmless_state: String,
    /// The parser, which logs of lines use one after the other. `None` if one of them has it.
    pub(super) parser: Option<Parser>,
    /// The shapes of objects that are known to have no unknown field; see [`Stream::shapes`].
    pub(super) shapes: HashSet<u64>,
}

/// An error that ended the reading of a file.
pub(super) enum ReadError<E> {
    /// The log could not be read. The run continues with the next log.
    Log(io::Error),
    /// The store failed, which ends the run.
    Store(E),
    /// What was added to the log changes events that were read before. Nothing was written, and the
    /// log is read again from its start.
    Changed,
}

impl<E> From<io::Error> for ReadError<E> {
    fn from(error: io::Error) -> Self {
        Self::Log(error)
    }
}

/// Returns the row that a session starts with in this run. It continues the known row if
/// `is_continued` is true.
pub(super) fn session_row(log: &PlannedLog, is_continued: bool, segment: i64) -> SessionRow {
    let mut row = match &log.session {
        Some(session) if is_continued => SessionRow::clone(session),
        Some(_) | None => SessionRow { live_from: segment, ..SessionRow::default() },
    };
    row.session_id.clone_from(&log.session_id);
    row.provider = log.claim.provider;
    row.source_path = log.file.key();
    row.native_id = Some(truncate_name(&log.claim.native_id).to_owned());
    row.agent_id = log.claim.agent_id.as_deref().map(|id| truncate_name(id).to_owned());
    row.parent_session_id = log.parent_session_id.as_deref().map(|id| truncate_name(id).to_owned());
    row.relation = log.relation.map(|relation| relation.to_string());
    row.source_gone = false;
    row
}

/// Returns whether the rows collected are to be handed over. They wait for the call of a result
/// among them, unless they are very many.
pub(super) fn is_batch_full(stream: &Stream) -> bool {
    let is_call_expected = stream.is_call_expected();
    let (bytes, events) = (stream.text_bytes(), stream.row_count());
    let is_over = |factor| bytes >= factor * BATCH_BYTES || events >= factor * BATCH_EVENTS;
    is_over(if is_call_expected { 4 } else { 1 })
}
