//! Finds the records of a log that are copies of forgotten ones, before the log is read. Only then is
//! it known of each record what follows it: a prompt like "continue" is a copy if those around it are.

use std::collections::HashSet;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use super::checkpoint::{ReadCursor, SavedState};
use super::line_reading::LineReading;
use super::logs::is_inside_line;
use super::records::{LogDecoder, decode_document, finish_lines, open_decoder};
use super::report::ContinuedSession;
use super::target::Target;
use super::worker::{Worker, session_row};
use crate::plan::PlannedLog;
use crate::provider::format::{LineDecoder, RecordTally};
use crate::provider::{base_of, format_of};
use crate::source::container::{MAX_DOCUMENT_BYTES, lock_giant_document};
use crate::source::lines::LogLines;
use crate::stream::forgotten::{RecordFacts, repeated_agent};
use crate::stream::replay::CopiedHistory;
use crate::stream::{ForgottenInLog, RecordAt, Stream, StreamState};
use crate::text::json::Parser;
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
        match open_decoder(log, reader, &mut saved.cloned()) {
            LogDecoder::Lines(decoder) => {
                self.probe_lines(log, saved.is_some(), decoder, &mut stream)?;
            }
            LogDecoder::Document(read) => {
                if log.file.size <= MAX_DOCUMENT_BYTES {
                    let _turn = lock_giant_document(log.file.size);
                    let mut bytes = Vec::new();
                    self.open_content(log, &mut stream)?.read_to_end(&mut bytes)?;
                    decode_document(&bytes, read, &mut stream, &mut RecordTally::default());
                }
            }
        }
        Ok(stream.take_probe())
    }

    /// Decodes the lines of a log from its checkpoint, or from its start.
    fn probe_lines(
        &mut self,
        log: &PlannedLog,
        is_continued: bool,
        decoder: Box<dyn LineDecoder>,
        stream: &mut Stream,
    ) -> io::Result<()> {
        let source = log.source.as_deref().filter(|_| is_continued);
        let start = source.map_or(0, |row| row.consumed.cast_unsigned());
        let mut file = self.open_content(log, stream)?;
        let is_line_counted = is_inside_line(&mut file, start)?;
        file.seek(SeekFrom::Start(start))?;
        let mut lines = LogLines::of_size(file, start, log.file.size.saturating_sub(start));
        let mut reading = LineReading {
            decoder,
            parser: Parser::default(),
            tally: RecordTally::default(),
            cursor: ReadCursor { consumed: start, line: 0, objects: 0, is_at_end: false },
            is_line_counted,
        };
        while let Some(line) = lines.next_line()? {
            if reading.decode_line(line, stream).is_break() || self.progress.is_cancelled() {
                break;
            }
        }
        finish_lines(reading.decoder.as_mut(), RecordAt::default(), stream);
        Ok(())
    }
}
