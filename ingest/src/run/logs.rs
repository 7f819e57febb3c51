//! Reads the logs of a unit from their checkpoints into a sink.

use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use schemas::problem::{Problem, ProblemKind};
use schemas::session::SourceRow;

use super::checkpoint::{Cursor, Saved};
use super::copies::{ReadRecords, Records};
use super::records::{document_records, line_end, line_records, oversized};
use super::report::ProviderReport;
use super::target::{Sink, Target};
use super::worker::{BATCH_BYTES, BATCH_EVENTS, Trouble, Worker, session_row};
use crate::plan::relatives::has_other_ancestors;
use crate::plan::{Change, Work};
use crate::provider::format;
use crate::provider::format::{LineDecoder, Reader, Tally};
use crate::source::container::{Content, MAX_DOCUMENT, giant_turn, too_large};
use crate::source::lines::{Line, Lines};
use crate::stream::{Dropped, Messages, RecordAt, Stream, StreamState};
use crate::text::json::Parser;

impl<T: Target> Worker<'_, T> {
    /// Does units of work until none is left.
    pub(crate) fn work(
        &mut self,
        units: &[Vec<Work>],
        next: &AtomicUsize,
        failed: &AtomicBool,
    ) -> Result<(), T::Error> {
        let mut sink = None;
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            let sink = match &mut sink {
                Some(sink) => sink,
                none => none.insert(self.target.sink()?),
            };
            let mut records = Records::default();
            for work in unit {
                if failed.load(Ordering::Relaxed) || self.progress.cancelled() {
                    break;
                }
                let read = self.file(work, &mut records, sink)?;
                if unit.len() > 1 {
                    records.read.insert(&work.session_id, read);
                }
            }
        }
        sink.map_or(Ok(()), Sink::finish)
    }

    /// Reads one file. Returns the identities of the records read.
    fn file(
        &mut self,
        work: &Work,
        records: &mut Records<'_>,
        sink: &mut T::Sink,
    ) -> Result<ReadRecords, T::Error> {
        let format = format(work.claim.provider);
        let shifted = self.shifted(work, format, records)?;
        let anew = shifted.is_some();
        if work.change == Change::Same && !anew {
            return Ok(ReadRecords::default());
        }
        if work.change == Change::Gone {
            if anew || has_other_ancestors(work) {
                let history = self.history(work, format, records)?;
                self.recount(work, history, &shifted.unwrap_or_default(), sink)?;
            }
            return Ok(ReadRecords::default());
        }
        let saved = match work.change {
            _ if anew => None,
            // Looked up by the path at which the log was read: it may have moved since.
            Change::Grown => match &work.source {
                Some(source) => self.target.state(&source.path)?,
                None => None,
            },
            Change::New | Change::Rewritten | Change::Same | Change::Gone => None,
        };
        let saved: Option<Saved> = saved.and_then(|json| serde_json::from_str(&json).ok());
        // A log without saved state cannot be continued, so it is read again from its start.
        let grown = work.change == Change::Grown && saved.is_some();
        let history = self.history(work, format, records)?;
        let own = if format.unique_ids {
            let hashes =
                if grown { self.target.record_hashes(&work.session_id)? } else { Vec::new() };
            Some(hashes.into_iter().collect::<HashSet<u64>>())
        } else {
            None
        };
        let session = session_row(work, grown, sink.segment()?);
        let (state, decoder) = match saved {
            Some(saved) if grown => (saved.stream, Some(saved.decoder)),
            _ => (StreamState::default(), None),
        };
        let mut stream =
            Stream::new(work.claim.provider, session, state, own, history, self.redactor.clone());
        let events_before = stream.session.events;
        let result = match format.reader {
            Reader::Lines(open) => {
                let decoder = open(&work.claim, decoder.as_ref());
                let source = work.source.as_deref().filter(|_| grown);
                self.lines(work, source, decoder, &mut stream, sink)
            }
            Reader::Document(read) => self.document(work, read, &mut stream, sink),
        };
        self.count(work, grown, &stream, stream.session.events - events_before);
        match result {
            Ok(()) => {}
            Err(Trouble::Log(error)) => {
                let message = error.to_string();
                let problem = Problem {
                    path: work.file.key(),
                    line: 0,
                    byte: 0,
                    kind: ProblemKind::Unreadable,
                    message,
                };
                self.report.files_failed += 1;
                self.report.problem(&problem);
            }
            Err(Trouble::Store(error)) => return Err(error),
        }
        Ok(ReadRecords { from_start: !grown, hashes: stream.take_sequence() })
    }

    fn count(&mut self, work: &Work, grown: bool, stream: &Stream, events: i64) {
        let report = &mut self.report;
        match work.change {
            Change::New => report.files_new += 1,
            Change::Grown if grown => report.files_grown += 1,
            Change::Grown | Change::Rewritten | Change::Same | Change::Gone => {
                report.files_rewritten += 1;
            }
        }
        report.sessions += 1;
        report.events += events.cast_unsigned();
        report.replay_events += stream.session.replay_events.cast_unsigned();
        let numbers = report.by_provider.entry(work.claim.provider.to_string()).or_default();
        numbers.files += 1;
        numbers.events += events.cast_unsigned();
    }

    fn lines(
        &mut self,
        work: &Work,
        source: Option<&SourceRow>,
        mut decoder: Box<dyn LineDecoder>,
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), Trouble<T::Error>> {
        let start = source.map_or(0, |row| row.consumed.cast_unsigned());
        let mut file = self.open(work, stream)?;
        if let Some(reason) = work.reason
            && source.is_none_or(|source| source.reason.is_none())
        {
            let message = format!(
                "its beginning is not recognised any more ({reason}); it is read on as a log of {}",
                work.claim.provider
            );
            stream.problem(RecordAt::default(), ProblemKind::UnknownFormat, message);
        }
        // If the last record read had no newline, its line is counted already.
        let mut counted = inside_line(&mut file, start)?;
        file.seek(SeekFrom::Start(start))?;
        let mut cursor = Cursor {
            consumed: start,
            line: source.map_or(0, |row| row.lines.cast_unsigned()),
            objects: source.map_or(0, |row| row.objects.cast_unsigned()),
            at_end: false,
        };
        let mut lines = Lines::new(file, start);
        let mut parser = Parser::default();
        let mut tally = Tally::default();
        let mut noted = start;
        while let Some(line) = lines.next_line()? {
            let new = u64::from(!std::mem::take(&mut counted));
            match line {
                // Decodes whole objects only, so that the result does not depend on how much of the
                // line was there when the log was read before.
                Line::Tail { offset, bytes } => {
                    let (whole, rest) = bytes.split_at(parser.whole(bytes));
                    let (number, end) = (cursor.line + new, offset + whole.len() as u64);
                    if !whole.is_empty() {
                        (cursor.line, cursor.consumed) = (number, end);
                        tally.lines += new;
                        let decoder = decoder.as_mut();
                        line_records(
                            whole,
                            offset,
                            number,
                            &mut parser,
                            decoder,
                            stream,
                            &mut tally,
                        );
                    }
                    if !rest.trim_ascii().is_empty() {
                        let length = rest.len() as u64;
                        self.incomplete(work, RecordAt { offset: end, length, line: number });
                    }
                    break;
                }
                Line::Whole { offset, bytes } => {
                    cursor.line += new;
                    tally.lines += new;
                    line_records(
                        bytes,
                        offset,
                        cursor.line,
                        &mut parser,
                        decoder.as_mut(),
                        stream,
                        &mut tally,
                    );
                }
                Line::Oversized { offset, length, ended, .. } => {
                    if !ended {
                        self.incomplete(work, RecordAt { offset, length, line: cursor.line + new });
                        break;
                    }
                    cursor.line += new;
                    tally.lines += new;
                    oversized(RecordAt { offset, length, line: cursor.line }, stream);
                }
            }
            cursor.consumed = lines.offset();
            if stream.batch().text_bytes() >= BATCH_BYTES || stream.batch().len() >= BATCH_EVENTS {
                self.progress.advanced(cursor.consumed - noted);
                noted = cursor.consumed;
                let objects = cursor.objects + tally.objects;
                let at = Cursor { objects, ..cursor };
                self.hand_over(work, &at, Some(decoder.as_ref()), lines.source(), stream, sink)?;
                if self.progress.cancelled() {
                    return Ok(());
                }
            }
        }
        cursor.at_end = true;
        let end = RecordAt { offset: cursor.consumed, length: 0, line: cursor.line };
        line_end(decoder.as_mut(), end, stream);
        self.progress.advanced(cursor.consumed - noted);
        self.report.bytes_read += cursor.consumed - start;
        cursor.objects += tally.objects;
        self.tally(work, &tally, cursor.consumed - start);
        self.hand_over(work, &cursor, Some(decoder.as_ref()), lines.source(), stream, sink)
    }

    fn document(
        &mut self,
        work: &Work,
        read: fn(&[u8], &mut Stream, &mut Tally),
        stream: &mut Stream,
        sink: &mut T::Sink,
    ) -> Result<(), Trouble<T::Error>> {
        let _turn = giant_turn(work.file.size);
        let mut file = self.open(work, stream)?;
        let mut bytes = Vec::new();
        let length = file.length()?;
        let mut tally = Tally::default();
        if length > MAX_DOCUMENT {
            let at = RecordAt { offset: 0, length, line: 0 };
            stream.problem(at, ProblemKind::OversizedDocument, too_large(length));
            if let (Some(session), Some(source)) = (&work.session, &work.source) {
                return self.keep(work, session, source, stream, sink);
            }
        } else {
            file.read_to_end(&mut bytes)?;
            document_records(&bytes, read, stream, &mut tally);
            if let Some(dropped) = self.dropped(work, stream).map_err(Trouble::Store)? {
                let segment = sink.segment().map_err(Trouble::Store)?;
                let before = work.session.clone().unwrap_or_default();
                stream.start_over(session_row(work, false, segment), &before, dropped);
                tally = Tally::default();
                document_records(&bytes, read, stream, &mut tally);
            }
        }
        let consumed = bytes.len() as u64;
        // Frees the document, because the store is about to hold its texts again.
        drop(bytes);
        self.progress.advanced(consumed);
        self.report.bytes_read += consumed;
        self.tally(work, &tally, consumed);
        let cursor = Cursor { consumed, line: tally.lines, objects: tally.objects, at_end: true };
        self.hand_over(work, &cursor, None, &mut file, stream, sink)
    }

    /// Returns the messages that a document held when it was read before and no longer holds.
    fn dropped(&self, work: &Work, stream: &Stream) -> Result<Option<Dropped>, T::Error> {
        let before = work.session.as_ref().and(work.source.as_ref());
        let Some(source) = before else { return Ok(None) };
        let before = Messages::of(self.target.state(&source.path)?.as_deref());
        let gone = before.map(|before| before.gone(stream.messages())).unwrap_or_default();
        if gone.is_empty() {
            return Ok(None);
        }
        let read = |events: &[_]| self.target.events(&work.session_id, events);
        Dropped::read(gone, read).map(Some)
    }

    fn open(&mut self, work: &Work, stream: &mut Stream) -> io::Result<Content> {
        self.report.files_opened += 1;
        let content = Content::open(&work.file)?;
        if let Some(cut) = content.cut() {
            let kind = ProblemKind::UnpackedInPart;
            stream.problem(RecordAt::default(), kind, cut.to_owned());
        }
        Ok(content)
    }

    fn tally(&mut self, work: &Work, tally: &Tally, bytes: u64) {
        self.report.tally(tally);
        let numbers: &mut ProviderReport =
            self.report.by_provider.entry(work.claim.provider.to_string()).or_default();
        numbers.objects += tally.objects;
        numbers.bytes += bytes;
    }

    /// Reports an incomplete record in this run only: the next run may find the rest.
    fn incomplete(&mut self, work: &Work, at: RecordAt) {
        let message = format!("the file ends inside a record, {} bytes in", at.length);
        let kind = ProblemKind::IncompleteLine;
        self.report.problem(&Problem {
            path: work.file.key(),
            line: at.line,
            byte: at.offset,
            kind,
            message,
        });
    }
}

/// Returns whether `start` is inside a line: the byte before it is not a newline.
fn inside_line(file: &mut Content, start: u64) -> io::Result<bool> {
    let Some(before) = start.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut byte)?;
    Ok(byte != *b"\n")
}
