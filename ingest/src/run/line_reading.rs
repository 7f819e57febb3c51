//! The position in a log of lines that is being read, with its decoder.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::ControlFlow;

use super::checkpoint::ReadCursor;
use super::records::{
    LogDecoder, decode_document, decode_line_records, finish_lines, push_oversized_line,
};
use crate::provider::format::{LineDecoder, RecordTally};
use crate::source::container::{Content, lock_giant_document};
use crate::source::lines::{LogLine, LogLines};
use crate::stream::{RecordAt, Stream};
use crate::text::json::Parser;

/// A log of lines that is being read.
pub(super) struct LineReading {
    pub(super) decoder: Box<dyn LineDecoder>,
    pub(super) parser: Parser,
    /// The records of this run.
    pub(super) tally: RecordTally,
    /// The position reached. Its objects are those of earlier runs.
    pub(super) cursor: ReadCursor,
    /// True if the next line was counted when its beginning was read.
    pub(super) is_line_counted: bool,
}

impl LineReading {
    /// Begins to read a log at its first line.
    pub(super) fn new(decoder: Box<dyn LineDecoder>) -> Self {
        Self {
            decoder,
            parser: Parser::default(),
            tally: RecordTally::default(),
            cursor: ReadCursor { consumed: 0, line: 0, objects: 0, is_at_end: false },
            is_line_counted: false,
        }
    }

    /// Decodes the records of a line. Breaks if the log ends with the line; the value is the
    /// position of an incomplete record.
    pub(super) fn decode_line(
        &mut self,
        line: LogLine<'_>,
        stream: &mut Stream,
    ) -> ControlFlow<Option<RecordAt>> {
        let new_lines = u64::from(!std::mem::take(&mut self.is_line_counted));
        match line {
            // Decodes whole objects only, so that the result does not depend on how much of the
            // line was there when the log was read before.
            LogLine::Tail { offset, bytes } => {
                let (whole, rest) = bytes.split_at(self.parser.complete_length(bytes));
                let number = self.cursor.line + new_lines;
                let end = offset + whole.len() as u64;
                if !whole.is_empty() {
                    self.cursor.line = number;
                    self.cursor.consumed = end;
                    self.tally.lines += new_lines;
                    self.decode_records(whole, offset, stream);
                }
                if rest.trim_ascii().is_empty() {
                    return ControlFlow::Break(None);
                }
                let at = RecordAt { offset: end, length: rest.len() as u64, line: number };
                return ControlFlow::Break(Some(at));
            }
            LogLine::Whole { offset, bytes } => {
                self.cursor.line += new_lines;
                self.tally.lines += new_lines;
                self.decode_records(bytes, offset, stream);
            }
            LogLine::Oversized { offset, length, has_newline: ended, .. } => {
                let at = RecordAt { offset, length, line: self.cursor.line + new_lines };
                if !ended {
                    return ControlFlow::Break(Some(at));
                }
                self.cursor.line += new_lines;
                self.tally.lines += new_lines;
                push_oversized_line(at, stream);
            }
        }
        ControlFlow::Continue(())
    }

    /// Decodes the records in a line, whose number is that of the cursor.
    fn decode_records(&mut self, bytes: &[u8], offset: u64, stream: &mut Stream) {
        let decoder = self.decoder.as_mut();
        let line = self.cursor.line;
        decode_line_records(
            bytes,
            offset,
            line,
            &mut self.parser,
            decoder,
            stream,
            &mut self.tally,
        );
    }

    /// Returns the position reached, with the objects of this run.
    pub(super) fn position(&self) -> ReadCursor {
        ReadCursor { objects: self.cursor.objects + self.tally.objects, ..self.cursor }
    }
}

/// Decodes a document, or a log of lines from `start` on. `open` opens its content, which has
/// `size` bytes. `after_line` is called after each line of a log of lines, and may end the
/// reading.
pub(super) fn decode_log(
    decoder: LogDecoder,
    open: impl FnOnce(&mut Stream) -> io::Result<Content>,
    size: u64,
    start: u64,
    stream: &mut Stream,
    after_line: &mut dyn FnMut(&mut Stream) -> ControlFlow<()>,
) -> io::Result<()> {
    let decoder = match decoder {
        LogDecoder::Lines(decoder) => decoder,
        LogDecoder::Document(read) => {
            let _turn = lock_giant_document(size);
            let mut bytes = Vec::new();
            open(stream)?.read_to_end(&mut bytes)?;
            decode_document(&bytes, read, stream, &mut RecordTally::default());
            return Ok(());
        }
    };
    let mut content = open(stream)?;
    let mut reading = LineReading::new(decoder);
    reading.is_line_counted = is_inside_line(&mut content, start)?;
    content.seek(SeekFrom::Start(start))?;
    let mut lines = LogLines::of_size(content, start, size.saturating_sub(start));
    while let Some(line) = lines.next_line()? {
        if reading.decode_line(line, stream).is_break() || after_line(stream).is_break() {
            break;
        }
    }
    let end = RecordAt { offset: lines.offset(), length: 0, line: reading.cursor.line };
    finish_lines(reading.decoder.as_mut(), end, stream);
    Ok(())
}

/// Returns whether `start` is inside a line: the byte before it is not a newline.
pub(super) fn is_inside_line(file: &mut Content, start: u64) -> io::Result<bool> {
    let Some(before) = start.checked_sub(1) else { return Ok(false) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut byte)?;
    Ok(byte != *b"\n")
}
