//! Makes the checkpoints that the rows of a log lead to.

use schemas::problem::Problem;
use schemas::session::{SessionRow, SourceRow, SourceStatus};
use serde::Deserialize;

use super::target::{LogCheckpoint, Target};
use super::worker::{ReadError, Worker};
use crate::plan::PlannedLog;
use crate::plan::compare::rules_version;
use crate::provider::format::LineDecoder;
use crate::provider::format_of;
use crate::source::candidate::Container;
use crate::source::container::Content;
use crate::source::fingerprint::Fingerprint;
use crate::stream::{Stream, StreamState};

/// Maximum length in bytes of a state of a decoder that is remembered as harmless.
const MAX_REMEMBERED_STATE_BYTES: usize = 4 << 10;

/// Bytes that are reserved for the state of a stream and the names around it.
const STREAM_STATE_BYTES: usize = 160;

/// The state needed to continue a log later; saved as JSON in `sources.state` by [`state_of`].
#[derive(Clone, Deserialize)]
pub(super) struct SavedState {
    pub(super) stream: StreamState,
    pub(super) decoder: serde_json::Value,
}

/// The position up to which a file was read.
#[derive(Clone, Copy)]
pub(super) struct ReadCursor {
    /// Bytes read into events.
    pub(super) consumed: u64,
    /// Lines read.
    pub(super) line: u64,
    /// JSON objects read.
    pub(super) objects: u64,
    /// True if the whole file was read.
    pub(super) is_at_end: bool,
}

/// Returns the state from which a log is continued, as JSON.
fn state_of(stream: &StreamState, decoder: &str) -> Option<String> {
    let mut state = Vec::with_capacity(STREAM_STATE_BYTES + decoder.len());
    state.extend_from_slice(br#"{"stream":"#);
    serde_json::to_writer(&mut state, stream).ok()?;
    state.extend_from_slice(br#","decoder":"#);
    state.extend_from_slice(decoder.as_bytes());
    state.push(b'}');
    String::from_utf8(state).ok()
}

impl<T: Target> Worker<'_, T> {
    /// Adds the checkpoint that the collected rows lead to. It is handed over with them.
    pub(super) fn add_checkpoint(
        &mut self,
        log: &PlannedLog,
        cursor: &ReadCursor,
        decoder: Option<&dyn LineDecoder>,
        content: &mut Content,
        stream: &mut Stream,
    ) -> Result<(), ReadError<T::Error>> {
        let print = Fingerprint::of_content(content, cursor.consumed)?;
        let state = match decoder {
            Some(decoder) => {
                let decoder = decoder.save_state();
                // Records of the log may repeat a secret that the decoder remembers, so it cannot be
                // masked here. It may also remember forgotten records. Without state, the log is read
                // again from its start when it grows.
                if stream.has_forgotten() || self.has_secret(&decoder) {
                    None
                } else {
                    state_of(stream.state(), &decoder)
                }
            }
            None if stream.messages().is_empty() => None,
            None => serde_json::to_string(stream.messages()).ok(),
        };
        // In the middle of a file the checkpoint must not look like the end: the differing size is
        // what makes the next run continue.
        let size = if !cursor.is_at_end {
            -1
        } else if log.file.container == Container::Plain {
            log.file.size.max(cursor.consumed).cast_signed()
        } else {
            log.file.size.cast_signed()
        };
        let source = Box::new(SourceRow {
            path: log.file.key(),
            status: SourceStatus::Ok,
            session_id: Some(log.session_id.clone()),
            provider: Some(log.claim.provider),
            size,
            modified_us: log.file.modified_us,
            consumed: cursor.consumed.cast_signed(),
            lines: cursor.line.cast_signed(),
            objects: cursor.objects.cast_signed(),
            head_hash: print.head_hash,
            head_length: print.head_length,
            tail_hash: print.tail_hash,
            first_record: log.claim.first_record.map(u64::cast_signed),
            ancestors: (!log.ancestors.is_empty()).then(|| log.ancestors.join(" ")),
            redaction_rules: rules_version(self.redactor.as_deref()),
            state,
            reason: log.reason.map(str::to_owned),
            first_response: log.claim.first_response.map(u64::cast_signed),
            decoder_version: i64::from(format_of(log.claim.provider).decoder_version),
            segment: 0,
        });

        let problems = self.take_problems(stream);
        let session =
            if cursor.is_at_end { stream.take_session_row() } else { stream.session_row() };
        self.read_logs.push(LogCheckpoint { session: Box::new(session), source, problems });
        Ok(())
    }

    /// Keeps the content read before of a log that cannot be read now, until the log changes.
    pub(super) fn keep_known_rows(
        &mut self,
        log: &PlannedLog,
        session: &SessionRow,
        source: &SourceRow,
        stream: &mut Stream,
    ) -> Result<(), ReadError<T::Error>> {
        let kept_session = Box::new(SessionRow {
            source_path: log.file.key(),
            source_gone: false,
            row_start: 0,
            row_count: 0,
            ..session.clone()
        });
        let kept_source = Box::new(SourceRow {
            path: log.file.key(),
            status: SourceStatus::Ok,
            size: log.file.size.cast_signed(),
            modified_us: log.file.modified_us,
            state: self.target.state(&source.path).map_err(ReadError::Store)?,
            ..source.clone()
        });
        let problems = self.take_problems(stream);
        let kept = LogCheckpoint { session: kept_session, source: kept_source, problems };
        self.read_logs.push(kept);
        Ok(())
    }

    /// Returns whether the state of a decoder, as JSON, contains a secret.
    fn has_secret(&mut self, decoder: &str) -> bool {
        if decoder == self.harmless_state {
            return false;
        }
        let value = serde_json::from_str(decoder);
        if value.map_or(true, |value| self.masker.has_secret(self.redactor.as_deref(), &value)) {
            return true;
        }
        // Decoders of small logs mostly have the same state.
        if decoder.len() <= MAX_REMEMBERED_STATE_BYTES {
            decoder.clone_into(&mut self.harmless_state);
        }
        false
    }

    /// Takes and counts the problems since the last checkpoint.
    fn take_problems(&mut self, stream: &mut Stream) -> Vec<Problem> {
        let problems = std::mem::take(&mut stream.problems);
        for problem in &problems {
            self.report.add_problem(problem);
        }
        for (kind, count) in std::mem::take(&mut stream.unlisted) {
            *self.report.problems.entry(kind).or_default() += count;
        }
        problems
    }
}
