//! Reads the logs of a unit from their checkpoints into a sink.

use std::collections::HashSet;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use schemas::problem::{Problem, ProblemKind};
use schemas::session::SourceRow;

use super::checkpoint::{ReadCursor, SavedState};
use super::copies::{ReadRecords, UnitRecords};
use super::line_reading::{LineReading, is_inside_line};
use super::records::{DocumentDecoder, LogDecoder, decode_document, finish_lines, open_decoder};
use super::target::{Sink, Target};
use super::worker::{ReadError, Worker, is_batch_full, session_row};
use crate::plan::relatives::has_changed_ancestors;
use crate::plan::{LogChange, PlannedLog};
use crate::provider::format::{LineDecoder, RecordTally};
use crate::provider::format_of;
use crate::source::container::{
    Content, MAX_DOCUMENT_BYTES, lock_giant_document, oversized_message,
};
use crate::source::lines::LogLines;
use crate::stream::{DocumentMessages, DroppedMessages, RecordAt, Stream, StreamState};

impl<T: Target> Worker<'_, T> {
    /// Reads units until none remains. The workers take them in their order: `next` is the position
    /// of the next one. A worker without work opens no sink.
    pub(crate) fn run_units(
        &mut self,
        units: &[Vec<PlannedLog>],
        next: &AtomicUsize,
        failed: &AtomicBool,
    ) -> Result<(), T::Error> {
        let take_unit = || units.get(next.fetch_add(1, Ordering::Relaxed));
        let mut taken = take_unit();
        if taken.is_none() {
            return Ok(());
        }

        let mut sink = self.target.sink()?;
        while let Some(unit) = taken {
            self.read_unit(unit, failed, &mut sink)?;
            taken = take_unit();
        }
        self.hand_over_read_logs(&mut sink)?;
        sink.finish()
    }

    /// Reads the logs of a unit, unless the run was ended.
    fn read_unit(
        &mut self,
        unit: &[PlannedLog],
        failed: &AtomicBool,
        sink: &mut T::Sink,
    ) -> Result<(), T::Error> {
        let mut records = UnitRecords::of_unit(unit);
        let has_relatives = unit.len() > 1;
        for log in unit {
            if failed.load(Ordering::Relaxed) || self.progress.is_cancelled() {
                break;
            }
            let read = self.read_file(log, &mut records, sink)?;
            if has_relatives {
                records.read.insert(&log.session_id, read);
            }
        }
        Ok(())
    }

    /// Reads one file. Returns the identities of the records read.
    fn read_file<'w>(
        &mut self,
        log: &'w PlannedLog,
        records: &mut UnitRecords<'w>,
        sink: &mut T::Sink,
    ) -> Result<ReadRecords, T::Error> {
        if log.is_earlier_version() {
            self.recount_earlier_version(log, records, sink)?;
            return Ok(ReadRecords::default());
        }
        let format = format_of(log.claim.provider);
        let shifted = self.find_shifted_records(log, format, records)?;
        if log.change == LogChange::Same && shifted.is_none() {
            return Ok(ReadRecords::default());
        }
        if log.change == LogChange::Gone {
            if shifted.is_some() || has_changed_ancestors(log) {
                let history = self.collect_history(log, format, records)?;
                self.recount_gone_log(log, history, &shifted.unwrap_or_default(), sink)?;
            }
            return Ok(ReadRecords::default());
        }

        // A log without saved state cannot be continued, so it is read again from its start.
        let saved = if shifted.is_some() { None } else { self.read_saved_state(log)? };
        let read = match self.read_from(log, saved, records, sink)? {
            Some(read) => Some(read),
            None => self.read_from(log, None, records, sink)?,
        };
        Ok(read.unwrap_or_default())
    }

    /// Reads one file from the state that was saved, or from its start. Returns the identities of
    /// the records read. `None` if the log must be read from its start instead.
    fn read_from<'w>(
        &mut self,
        log: &'w PlannedLog,
        mut saved: Option<SavedState>,
        records: &mut UnitRecords<'w>,
        sink: &mut T::Sink,
    ) -> Result<Option<ReadRecords>, T::Error> {
        let format = format_of(log.claim.provider);
        let decoder = open_decoder(log, &format.reader, &mut saved);
        let is_continued = saved.is_some();
        let mut kept = Vec::new();
        if !is_continued {
            match self.keep_lost_records(log, records, sink)? {
                Ok(lost) => kept = lost,
                Err(error) => {
                    self.report_unreadable(log, &error);
                    return Ok(Some(ReadRecords::default()));
                }
            }
        }
        let history = self.collect_history(log, format, records)?;
        let mut own: Option<HashSet<u64>> = format.has_unique_ids.then(HashSet::new);
        if let Some(own) = &mut own
            && is_continued
        {
            own.extend(self.target.record_hashes(&log.session_id)?);
        }
        self.has_written_rows = false;
        let session = session_row(log, is_continued, sink.segment()?);
        let forgotten = match self.find_forgotten_copies(log, saved.as_ref(), &own, &history) {
            Ok(forgotten) => forgotten,
            Err(error) => {
                self.report_unreadable(log, &error);
                return Ok(Some(ReadRecords::default()));
            }
        };
        // A log of its own agent that has no events says nothing about the session.
        let is_whole_copy = log.is_whole_copy && !history.is_empty();
        let state = saved.map_or_else(StreamState::default, |saved| saved.stream);
        let redactor = self.redactor.clone();
        let batch = self.batch.take().unwrap_or_default();
        let mut stream =
            Stream::new(log.claim.provider, session, state, own, history, redactor, batch);
        stream.set_forgotten(forgotten);
        if is_whole_copy {
            stream.set_whole_copy();
        }
        stream.aliases = self.target.record_aliases();
        stream.repositories = Arc::clone(&self.repositories);
        stream.shapes = std::mem::take(&mut self.shapes);

        let events_before = stream.session.events;
        let result = match decoder {
            LogDecoder::Lines(decoder) => {
                let source = if is_continued { log.source.as_deref() } else { None };
                self.read_lines(log, source, decoder, &mut stream, sink)
            }
            LogDecoder::Document(read) => self.read_document(log, read, &mut stream, sink),
        };
        self.shapes = std::mem::take(&mut stream.shapes);
        match result {
            Ok(()) => {}
            Err(ReadError::Log(error)) => {
                self.drop_rows(&mut stream, sink)?;
                self.report_unreadable(log, &error);
            }
            Err(ReadError::Store(error)) => return Err(error),
            Err(ReadError::Changed) => {
                self.drop_rows(&mut stream, sink)?;
                self.batch = Some(stream.into_batch());
                return Ok(None);
            }
        }
        let hashes = if self.leave_out_unwanted(log, &mut stream, sink)? {
            // What is not stored is not there to be copied.
            Vec::new()
        } else {
            self.count_log(log, is_continued, &stream, stream.session.events - events_before);
            stream.take_sequence()
        };
        self.batch = Some(stream.into_batch());
        self.hand_over_full_batch(sink)?;
        Ok(Some(ReadRecords { is_from_start: !is_continued, hashes, kept }))
    }

    /// Reads the state from which a log that grew is continued. `None` if the log did not grow, or
    /// has no state that this version can parse.
    fn read_saved_state(&self, log: &PlannedLog) -> Result<Option<SavedState>, T::Error> {
        if log.change != LogChange::Grown {
            return Ok(None);
        }
        // Looked up by the path at which the log was read: it may have moved since.
        let Some(source) = &log.source else { return Ok(None) };
        let state = self.target.state(&source.path)?;
        Ok(state.and_then(|json| serde_json::from_str(&json).ok()))
    }

    /// Counts a log that was read, with the number of events that it gave.
    fn count_log(&mut self, log: &PlannedLog, is_continued: bool, stream: &Stream, events: i64) {
        let report = &mut self.report;
        match log.change {
            LogChange::New => report.files_new += 1,
            LogChange::Grown if is_continued => report.files_grown += 1,
            LogChange::Grown | LogChange::Rewritten | LogChange::Same | LogChange::Gone => {
                report.files_rewritten += 1;
            }
        }
        report.sessions += 1;
        report.events += events.cast_unsigned();
        report.replay_events += stream.session.replay_events.cast_unsigned();
        let numbers = report.provider_mut(log.claim.provider);
        numbers.files += 1;
        numbers.events += events.cast_unsigned();
    }

    /// Reports a log that could not be read.
    pub(super) fn report_unreadable(&mut self, log: &PlannedLog, error: &io::Error) {
        self.report.files_failed += 1;
        self.report.add_problem(&Problem {
            path: log.file.key(),
            line: 0,
            byte: 0,
            kind: ProblemKind::Unreadable,
            message: error.to_string(),
        });
    }

    /// Reads a log of lines. `source` is its checkpoint; `None` if it is read from its start.
    fn read_lines(
        &mut self,
        log: &PlannedLog,
        source: Option<&SourceRow>,
        decoder: Box<dyn LineDecoder>,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), ReadError<T::Error>> {
        let start = source.map_or(0, |row| row.consumed.cast_unsigned());
        let mut file = self.open_content(log, stream)?;
        if let Some(reason) = log.reason
            && source.is_none_or(|source| source.reason.is_none())
        {
            let message = format!(
                "the beginning of the log is no longer recognised ({reason}); \
                 the log is still read as a log of {}",
                log.claim.provider
            );
            stream.push_problem(RecordAt::default(), ProblemKind::UnknownFormat, message);
        }

        // If the last record read had no newline, its line is counted already.
        let is_line_counted = is_inside_line(&mut file, start)?;
        file.seek(SeekFrom::Start(start))?;
        let mut lines = LogLines::of_size(file, start, log.file.size.saturating_sub(start));
        let mut reading = LineReading {
            decoder,
            parser: self.parser.take().unwrap_or_default(),
            tally: RecordTally::default(),
            cursor: ReadCursor {
                consumed: start,
                line: source.map_or(0, |row| row.lines.cast_unsigned()),
                objects: source.map_or(0, |row| row.objects.cast_unsigned()),
                is_at_end: false,
            },
            is_line_counted,
        };
        let mut reported = start;
        // Rows of an earlier reading can be replaced until rows of this one are handed over.
        let mut has_earlier_rows = source.is_some();
        while let Some(line) = lines.next_line()? {
            if let ControlFlow::Break(incomplete) = reading.decode_line(line, stream) {
                if let Some(at) = incomplete {
                    self.report_incomplete_record(log, at);
                }
                break;
            }
            reading.cursor.consumed = lines.offset();
            if is_batch_full(stream) {
                check_earlier_rows(has_earlier_rows, stream)?;
                self.progress.add_bytes_read(reading.cursor.consumed - reported);
                reported = reading.cursor.consumed;
                let cursor = reading.position();
                let decoder: &dyn LineDecoder = reading.decoder.as_ref();
                self.add_checkpoint(log, &cursor, Some(decoder), lines.file_mut(), stream)?;
                if !self.leave_out_unwanted(log, stream, sink).map_err(ReadError::Store)? {
                    self.hand_over_stream(stream, sink).map_err(ReadError::Store)?;
                }
                has_earlier_rows = false;
                if self.progress.is_cancelled() {
                    return Ok(());
                }
            }
        }

        reading.cursor.is_at_end = true;
        let consumed = reading.cursor.consumed;
        let end = RecordAt { offset: consumed, length: 0, line: reading.cursor.line };
        finish_lines(reading.decoder.as_mut(), end, stream);
        check_earlier_rows(has_earlier_rows, stream)?;
        self.progress.add_bytes_read(consumed - reported);
        self.report.bytes_read += consumed - start;
        self.add_tally(log, &reading.tally, consumed - start);
        let cursor = reading.position();
        let decoder: &dyn LineDecoder = reading.decoder.as_ref();
        self.add_checkpoint(log, &cursor, Some(decoder), lines.file_mut(), stream)?;
        self.parser = Some(reading.parser);
        Ok(())
    }

    /// Reads a document as a whole.
    fn read_document(
        &mut self,
        log: &PlannedLog,
        read: DocumentDecoder,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), ReadError<T::Error>> {
        let _turn = lock_giant_document(log.file.size);
        let mut file = self.open_content(log, stream)?;
        let mut bytes = Vec::new();
        let length = file.length()?;
        let mut tally = RecordTally::default();
        if length > MAX_DOCUMENT_BYTES {
            let at = RecordAt { offset: 0, length, line: 0 };
            stream.push_problem(at, ProblemKind::OversizedDocument, oversized_message(length));
            if let (Some(session), Some(source)) = (&log.session, &log.source) {
                return self.keep_known_rows(log, session, source, stream);
            }
        } else {
            file.read_to_end(&mut bytes)?;
            decode_document(&bytes, read, stream, &mut tally);
            if let Some(dropped) =
                self.read_dropped_messages(log, stream).map_err(ReadError::Store)?
            {
                self.drop_rows(stream, sink).map_err(ReadError::Store)?;
                let segment = sink.segment().map_err(ReadError::Store)?;
                let before = log.session.clone().unwrap_or_default();
                stream.restart_document(session_row(log, false, segment), &before, dropped);
                tally = RecordTally::default();
                decode_document(&bytes, read, stream, &mut tally);
            }
        }

        let consumed = bytes.len() as u64;
        // Frees the document, because the store is about to hold its texts again.
        drop(bytes);
        self.progress.add_bytes_read(consumed);
        self.report.bytes_read += consumed;
        self.add_tally(log, &tally, consumed);
        let cursor =
            ReadCursor { consumed, line: tally.lines, objects: tally.objects, is_at_end: true };
        self.add_checkpoint(log, &cursor, None, &mut file, stream)
    }

    /// Returns the messages that a document held when it was read before and no longer holds.
    /// `None` if there are none, or if the log was not read as a document before.
    fn read_dropped_messages(
        &self,
        log: &PlannedLog,
        stream: &Stream,
    ) -> Result<Option<DroppedMessages>, T::Error> {
        let (Some(_), Some(source)) = (&log.session, &log.source) else { return Ok(None) };
        let state = self.target.state(&source.path)?;
        let Some(before) = DocumentMessages::from_state(state.as_deref()) else { return Ok(None) };
        let gone_messages = before.find_gone(stream.messages());
        if gone_messages.is_empty() {
            return Ok(None);
        }
        DroppedMessages::read_events(gone_messages, |events| {
            self.target.events(&log.session_id, events)
        })
        .map(Some)
    }

    /// Opens the content of a file. Reports if only a part of it could be unpacked.
    pub(super) fn open_content(
        &mut self,
        log: &PlannedLog,
        stream: &mut Stream,
    ) -> io::Result<Content> {
        self.report.files_opened += 1;
        let content = match &log.content {
            Some(content) => Content::Memory(Cursor::new(content.clone())),
            None => Content::open(&log.file)?,
        };
        if let Some(cut) = content.cut_reason() {
            let kind = ProblemKind::UnpackedInPart;
            stream.push_problem(RecordAt::default(), kind, cut.to_owned());
        }
        Ok(content)
    }

    /// Counts the records and bytes read from a log.
    fn add_tally(&mut self, log: &PlannedLog, tally: &RecordTally, bytes: u64) {
        self.report.add_tally(tally);
        let numbers = self.report.provider_mut(log.claim.provider);
        numbers.objects += tally.objects;
        numbers.bytes += bytes;
    }

    /// Reports an incomplete record in this run only: the next run may find the rest.
    fn report_incomplete_record(&mut self, log: &PlannedLog, at: RecordAt) {
        self.report.add_problem(&Problem {
            path: log.file.key(),
            line: at.line,
            byte: at.offset,
            kind: ProblemKind::IncompleteLine,
            message: format!("the file ends inside a record, after {} bytes of it", at.length),
        });
    }
}

/// Fails if a record of this reading changes rows of an earlier one that can be replaced.
fn check_earlier_rows<E>(has_earlier_rows: bool, stream: &Stream) -> Result<(), ReadError<E>> {
    if has_earlier_rows && stream.has_missed_result() { Err(ReadError::Changed) } else { Ok(()) }
}
