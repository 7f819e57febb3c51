//! Compresses the content of a log into frames, masked or as it is, and writes it out again.

use std::borrow::Cow;
use std::io::{self, Write};

use ingest::discover::RawLog;
use ingest::redact::Redactor;
use ingest::redact::raw_log::{CALL_WINDOW_BYTES, RawLogMasker};

use super::archive_file::Frame;

/// Bytes of a log in a frame. More of them compress hardly better.
const FRAME_BYTES: u64 = 4 << 20;

/// A frame of fewer bytes is written again when its log grows, so that a log that grows by a few bytes
/// at a time is not kept in as many frames.
pub(super) const SMALL_FRAME_BYTES: i64 = 256 << 10;

/// Level of compression. The next levels take twice the time for a tenth less.
const LEVEL: i32 = 3;

/// How the bytes of a file are divided into records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContentForm {
    Lines,
    Document,
}

/// Compresses the bytes of a log from `start` to `end`. With a redactor, their secrets are masked.
/// Frames of lines end at the end of a line.
///
/// # Errors
/// Returns the errors of reading, and an error if the log ends before `end`.
pub(super) fn pack_content(
    log: &mut RawLog,
    form: ContentForm,
    start: u64,
    end: u64,
    redactor: Option<&Redactor>,
) -> io::Result<Vec<Frame>> {
    let mut masker = redactor.map(RawLogMasker::new);
    if let Some(masker) = &mut masker
        && form == ContentForm::Lines
        && start > 0
    {
        let window = start.saturating_sub(CALL_WINDOW_BYTES);
        let before = log.read_record(window, start - window)?;
        // Begins with a whole line.
        let cut = before.iter().position(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let skipped = if window == 0 { 0 } else { cut };
        masker.skip_lines(before.get(skipped..).unwrap_or_default(), window + skipped as u64);
    }

    let mut frames = Vec::new();
    let mut at = start;
    while at < end {
        let bytes = read_frame(log, form, at, end)?;
        let masked = match (&mut masker, form) {
            (None, _) => Cow::Borrowed(&bytes[..]),
            (Some(masker), ContentForm::Lines) => masker.mask_lines(&bytes, at),
            (Some(masker), ContentForm::Document) => masker.mask_document(&bytes),
        };
        frames.push(Frame {
            start: at.cast_signed(),
            length: bytes.len() as i64,
            packed: zstd::bulk::compress(&masked, LEVEL)?,
        });
        at += bytes.len() as u64;
    }
    Ok(frames)
}

/// Compresses the bytes of a log that is in memory. With a redactor, their secrets are masked.
///
/// # Errors
/// Fails if they cannot be compressed.
pub(super) fn pack_bytes(
    bytes: &[u8],
    form: ContentForm,
    redactor: Option<&Redactor>,
) -> io::Result<Vec<Frame>> {
    let mut masker = redactor.map(|redactor| FrameMasker::new(redactor, form));
    let mut frames = Vec::new();
    let mut start = 0;
    while start < bytes.len() {
        let rest = &bytes[start..];
        let length = match form {
            ContentForm::Lines if rest.len() as u64 > FRAME_BYTES => {
                let whole = &rest[..FRAME_BYTES as usize];
                let after = || memchr::memchr(b'\n', rest);
                memchr::memrchr(b'\n', whole).or_else(after).map_or(rest.len(), |at| at + 1)
            }
            ContentForm::Lines | ContentForm::Document => rest.len(),
        };
        let frame = Frame { start: start as i64, length: length as i64, packed: Vec::new() };
        let bytes = &rest[..length];
        let masked = match &mut masker {
            Some(masker) => masker.mask(&frame, bytes),
            None => Cow::Borrowed(bytes),
        };
        frames.push(Frame { packed: zstd::bulk::compress(&masked, LEVEL)?, ..frame });
        start += length;
    }
    Ok(frames)
}

/// Reads the bytes of the frame that begins at `start`.
fn read_frame(log: &mut RawLog, form: ContentForm, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut length = match form {
        ContentForm::Lines => FRAME_BYTES.min(end - start),
        ContentForm::Document => end - start,
    };
    loop {
        let mut bytes = log.read_record(start, length)?;
        if bytes.len() as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if start + length == end {
            return Ok(bytes);
        }
        if let Some(last) = memchr::memrchr(b'\n', &bytes) {
            bytes.truncate(last + 1);
            return Ok(bytes);
        }
        // A line longer than a frame.
        length = (length * 2).min(end - start);
    }
}

/// Masks the secrets of the content of frames, in their order.
pub(super) struct FrameMasker<'r> {
    masker: RawLogMasker<'r>,
    form: ContentForm,
}

impl<'r> FrameMasker<'r> {
    pub(super) fn new(redactor: &'r Redactor, form: ContentForm) -> Self {
        Self { masker: RawLogMasker::new(redactor), form }
    }

    /// Returns the content of the next frame, masked.
    pub(super) fn mask<'b>(&mut self, frame: &Frame, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        match self.form {
            ContentForm::Lines => self.masker.mask_lines(bytes, frame.start.cast_unsigned()),
            ContentForm::Document => self.masker.mask_document(bytes),
        }
    }

    /// Returns the next frame with its content masked.
    pub(super) fn mask_frame(&mut self, frame: &Frame) -> io::Result<Frame> {
        let bytes = zstd::decode_all(&frame.packed[..])?;
        let packed = zstd::bulk::compress(&self.mask(frame, &bytes), LEVEL)?;
        Ok(Frame { packed, ..*frame })
    }
}

/// Writes the content of a frame, masked if there is a masker.
pub(super) fn unpack_frame(
    frame: &Frame,
    masker: Option<&mut FrameMasker<'_>>,
    out: &mut dyn Write,
) -> io::Result<u64> {
    let bytes = zstd::decode_all(&frame.packed[..])?;
    let bytes = match masker {
        Some(masker) => masker.mask(frame, &bytes),
        None => Cow::Borrowed(&bytes[..]),
    };
    out.write_all(&bytes)?;
    Ok(bytes.len() as u64)
}
