//! Recounts the rows of a log that is gone or no longer recognised, after one of its originals
//! received events that the log had counted, or lost some, or after some of its events were
//! forgotten. Nothing else changes in the log's rows.

use std::collections::HashSet;

use schemas::EventType;
use schemas::session::{EventRow, SessionRow, SourceRow, SourceStatus};

use super::target::{LogCheckpoint, Sink, Target};
use super::worker::{BATCH_EVENTS, Worker, session_row};
use crate::plan::PlannedLog;
use crate::plan::compare::is_unrecognised;
use crate::provider::format_of;
use crate::stream::batch::{EventBatch, EventCells};
use crate::stream::forgotten::is_forgotten_event;
use crate::stream::replay::CopiedHistory;
use crate::stream::{SessionRecount, Stream, is_title_of, without_counts};

impl<T: Target> Worker<'_, T> {
    /// Rewrites the rows of a session, given the records that it may repeat (`history`) and those
    /// that its originals have `lost`.
    pub(super) fn recount_gone_log(
        &mut self,
        log: &PlannedLog,
        history: CopiedHistory,
        lost: &HashSet<u64>,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        let (Some(session), Some(source)) = (&log.session, &log.source) else { return Ok(()) };

        self.hand_over_read_logs(sink)?;
        let segment = sink.segment()?;
        let linked = session_row(log, true, segment);
        let own = format_of(log.claim.provider).has_unique_ids.then(HashSet::new);
        let mut stream = Stream::for_count(without_counts(linked), own, history);

        let events = i32::try_from(session.events).unwrap_or(i32::MAX);
        let mut batch = EventBatch::default();
        for from in (0..events).step_by(BATCH_EVENTS) {
            let range = from..from.saturating_add(BATCH_EVENTS as i32);
            for event in self.target.events(&log.session_id, std::slice::from_ref(&range))? {
                let is_replay = stream.recount_event(&event, lost);
                let cells = EventCells::of(&event);
                batch.push(&EventCells { is_replay, is_counted_elsewhere: false, ..cells });
            }
            if !batch.is_empty() {
                sink.events(&batch.finish(&self.schema, segment))?;
            }
        }

        let status =
            if is_unrecognised(source) { SourceStatus::UnknownFormat } else { SourceStatus::Gone };
        let counted = stream.session_row();
        let session = SessionRow {
            source_gone: status == SourceStatus::Gone,
            live_from: segment,
            row_start: 0,
            row_count: 0,
            model: session.model.clone(),
            usage_confidence: session.usage_confidence.clone(),
            ..counted
        };
        let source = SourceRow {
            status,
            ancestors: Some(log.ancestors.join(" ")),
            // Without state, a copy that comes back is read again from its start.
            state: None,
            ..SourceRow::clone(source)
        };
        let (session, source) = (Box::new(session), Box::new(source));
        sink.checkpoint(vec![LogCheckpoint { session, source, problems: Vec::new() }])
    }
}

/// Counts a stored session again, some of whose events were forgotten.
pub struct ForgottenRecount {
    recount: SessionRecount,
    /// The title of the session before.
    title: Option<String>,
    /// True if the title is from an event that stays.
    keeps_title: bool,
}

impl ForgottenRecount {
    /// Begins with the row of a session.
    pub fn new(session: &SessionRow) -> Self {
        let untitled = SessionRow { title: None, ..session.clone() };
        let recount = SessionRecount::new(&untitled);
        Self { recount, title: session.title.clone(), keeps_title: false }
    }

    /// Counts the next event.
    pub fn add_event(&mut self, event: &EventRow) {
        // Tokens that another session counts are not counted here either.
        self.recount.add_event(event);
        if is_forgotten_event(event) {
            return;
        }
        if let Some(title) = &self.title {
            self.keeps_title |= is_title_of(title, &event.text);
        }
        if event.event_type == EventType::User {
            self.recount.offer_prompt(&event.text);
        }
    }

    /// Returns the session. If its title is from an event that was forgotten, its first prompt names
    /// it.
    pub fn into_session(self) -> SessionRow {
        let session = self.recount.into_session();
        SessionRow { title: if self.keeps_title { self.title } else { session.title }, ..session }
    }
}
