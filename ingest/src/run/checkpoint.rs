//! Hands over a worker's rows together with the checkpoint that they lead to.

use schemas::problem::Problem;
use schemas::session::{SessionRow, SourceRow, SourceStatus};
use serde::{Deserialize, Serialize};

use super::target::{Sink, Target};
use super::worker::{Trouble, Worker};
use crate::plan::Work;
use crate::plan::compare::rules_version;
use crate::provider::format::LineDecoder;
use crate::source::candidate::Container;
use crate::source::container::Content;
use crate::source::fingerprint::Fingerprint;
use crate::stream::{Stream, StreamState};

/// The state needed to continue a log later; saved as JSON in `sources.state`.
#[derive(Serialize, Deserialize)]
pub(super) struct Saved {
    pub(super) stream: StreamState,
    pub(super) decoder: serde_json::Value,
}

/// The position up to which a file was read.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    pub(super) consumed: u64,
    pub(super) line: u64,
    pub(super) objects: u64,
    /// Whether the whole file was read.
    pub(super) at_end: bool,
}

impl<T: Target> Worker<'_, T> {
    /// Hands the collected rows and the checkpoint they lead to over to the sink.
    pub(super) fn hand_over(
        &mut self,
        work: &Work,
        cursor: &Cursor,
        decoder: Option<&dyn LineDecoder>,
        content: &mut Content,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), Trouble<T::Error>> {
        let print = Fingerprint::take(content, cursor.consumed)?;
        let state = match decoder {
            Some(decoder) => {
                let saved = Saved { stream: stream.state().clone(), decoder: decoder.save() };
                serde_json::to_string(&saved).ok()
            }
            None if stream.messages().is_empty() => None,
            None => serde_json::to_string(stream.messages()).ok(),
        };
        let source = SourceRow {
            path: work.file.key(),
            status: SourceStatus::Ok,
            session_id: Some(work.session_id.clone()),
            provider: Some(work.claim.provider),
            // In the middle of a file the checkpoint must not look like the end: the differing size
            // is what makes the next run continue.
            size: match (cursor.at_end, work.file.container) {
                (true, Container::Plain) => work.file.size.max(cursor.consumed).cast_signed(),
                (true, _) => work.file.size.cast_signed(),
                (false, _) => -1,
            },
            modified_us: work.file.modified_us,
            consumed: cursor.consumed.cast_signed(),
            lines: cursor.line.cast_signed(),
            objects: cursor.objects.cast_signed(),
            head_hash: print.head_hash,
            head_length: print.head_length,
            tail_hash: print.tail_hash,
            first_record: work.claim.first_record.map(u64::cast_signed),
            ancestors: (!work.ancestors.is_empty()).then(|| work.ancestors.join(" ")),
            redaction_rules: rules_version(self.redactor.as_deref()),
            state,
            reason: work.reason.map(str::to_owned),
            segment: 0,
        };
        let problems = self.problems(stream);
        let segment = sink.segment().map_err(Trouble::Store)?;
        if !stream.batch().is_empty() {
            let batch = stream.batch().finish(&self.schema, segment);
            sink.events(&batch).map_err(Trouble::Store)?;
        }
        sink.checkpoint(stream.session_row(), source, problems).map_err(Trouble::Store)
    }

    /// Keeps the content read before of a log that cannot be read now, until the log changes.
    pub(super) fn keep(
        &mut self,
        work: &Work,
        session: &SessionRow,
        source: &SourceRow,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), Trouble<T::Error>> {
        let session = SessionRow {
            source_path: work.file.key(),
            source_gone: false,
            row_start: 0,
            row_count: 0,
            ..session.clone()
        };
        let source = SourceRow {
            path: work.file.key(),
            status: SourceStatus::Ok,
            size: work.file.size.cast_signed(),
            modified_us: work.file.modified_us,
            state: self.target.state(&source.path).map_err(Trouble::Store)?,
            ..source.clone()
        };
        let problems = self.problems(stream);
        sink.checkpoint(session, source, problems).map_err(Trouble::Store)
    }

    /// Takes and counts the problems since the last checkpoint.
    fn problems(&mut self, stream: &mut Stream) -> Vec<Problem> {
        let problems = std::mem::take(&mut stream.problems);
        for problem in &problems {
            self.report.problem(problem);
        }
        for (kind, count) in std::mem::take(&mut stream.unlisted) {
            *self.report.problems.entry(kind).or_default() += count;
        }
        problems
    }
}
