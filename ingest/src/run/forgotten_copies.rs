//! Finds the records of a log that are copies of forgotten ones, before the log is read. Only then is
//! it known of each record what follows it: a prompt like "continue" is a copy if those around it are.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;

use super::checkpoint::SavedState;
use super::line_reading::decode_log;
use super::records::open_decoder;
use super::report::ContinuedSession;
use super::target::Target;
use super::worker::{Worker, session_row};
use crate::plan::PlannedLog;
use crate::provider::format::LogReader;
use crate::provider::{base_of, format_of};
use crate::source::container::MAX_DOCUMENT_BYTES;
use crate::stream::forgotten::{RecordFacts, repeated_agent};
use crate::stream::replay::CopiedHistory;
use crate::stream::{ForgottenInLog, Stream, StreamState};
use crate::text::names::truncate_name;

impl<T: Target> Worker<'_, T> {
    /// Decodes a log, from the state that was saved or from its start, and returns which of its
    /// records are copies of forgotten ones. Costs nothing if no session of its agent was forgotten.
    pub(super) fn find_forgotten_copies(
        &mut self,
        log: &PlannedLog,
        saved: Option<&SavedState>,
        own: &Option<HashSet<u64>>,
        history: &CopiedHistory,
    ) -> io::Result<ForgottenInLog> {
        let target = self.target;
        let claim = &log.claim;
        let base = base_of(claim.provider);
        let records = target.forgotten_records();
        let repeated = repeated_agent(base, log.relation);
        let Some(forgotten) = records.filter(|all| all.may_be_repeated_by(repeated)) else {
            return Ok(ForgottenInLog::default());
        };

        let mut facts = self.probe_records(log, saved, (own, history), false)?;
        if forgotten.needs_texts(repeated, &facts) {
            facts = self.probe_records(log, saved, (own, history), true)?;
        }
        let key = forgotten.key();
        let agent_id = claim.agent_id.as_deref().map(truncate_name);
        let own_id = key.mark_id(base, truncate_name(&claim.native_id), agent_id);
        let has_ids = format_of(base).has_unique_ids || repeated != base;
        let found = forgotten.find_copies(repeated, has_ids, own_id, &facts);
        let Some(found) = found else { return Ok(ForgottenInLog::default()) };
        let records = found.record_numbers(&facts);
        target.note_forgotten_copies(ContinuedSession {
            session_id: log.session_id.clone(),
            forgotten_sessions: found.session_ids.into_iter().collect(),
            events_left_out: found.left_out,
            events_kept: found.kept,
            is_whole: found.is_whole && saved.is_none(),
        });
        Ok(ForgottenInLog { records, titles: found.titles, key })
    }

    /// Decodes a log and returns the facts about its records. `known` has the records that were read
    /// before, and those that the log may repeat.
    fn probe_records(
        &mut self,
        log: &PlannedLog,
        saved: Option<&SavedState>,
        known: (&Option<HashSet<u64>>, &CopiedHistory),
        needs_texts: bool,
    ) -> io::Result<Vec<RecordFacts>> {
        let mut stream = Stream::new(
            log.claim.provider,
            session_row(log, saved.is_some(), 0),
            saved.map_or_else(StreamState::default, |saved| saved.stream.clone()),
            known.0.clone(),
            known.1.clone(),
            self.redactor.clone(),
            Box::default(),
        );
        stream.aliases = self.target.record_aliases();
        stream.begin_probe(needs_texts);
        let reader = &format_of(log.claim.provider).reader;
        let decoder = open_decoder(log, reader, &mut saved.cloned());
        let is_document = matches!(reader, LogReader::Document(_));
        if !is_document || log.file.size <= MAX_DOCUMENT_BYTES {
            let source = log.source.as_deref().filter(|_| saved.is_some());
            let start = source.map_or(0, |row| row.consumed.cast_unsigned());
            let progress = self.progress;
            let open = |stream: &mut Stream| self.open_content(log, stream);
            decode_log(decoder, open, log.file.size, start, &mut stream, &mut |_| {
                if progress.is_cancelled() {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        }
        Ok(stream.take_probe())
    }
}
