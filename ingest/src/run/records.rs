//! Opens decoders and passes records to them. If a decoder panics, which is a defect of the decoder, only the
//! current record is lost. Token counts in parts that a decoder does not know lower the confidence of a
//! session, because not all its tokens are counted.

use std::path::Path;

use schemas::problem::ProblemKind;
use simd_json::prelude::*;

use super::checkpoint::SavedState;
use crate::plan::PlannedLog;
use crate::provider::format::{LineDecoder, LogReader, RecordOutcome, RecordTally};
use crate::source::panics::catch_panic;
use crate::stream::{RecordAt, Stream, UnknownItem};
use crate::text::json::{JsonFields, LineItem, Parser, Value};

/// Decodes a document as a whole.
pub(super) type DocumentDecoder = fn(&[u8], &mut Stream, &mut RecordTally);

/// The decoder of one log.
pub(super) enum LogDecoder {
    Lines(Box<dyn LineDecoder>),
    Document(DocumentDecoder),
}

/// Creates the decoder of a log from its saved state. If the files next to the log have changed what
/// the records read before give, drops the state: the log is then read from its start.
pub(super) fn open_decoder(
    log: &PlannedLog,
    reader: &LogReader,
    saved: &mut Option<SavedState>,
) -> LogDecoder {
    let open = match reader {
        LogReader::Document(read) => return LogDecoder::Document(*read),
        LogReader::Lines(open) => open,
    };
    let mut decoder = open(&log.claim, saved.as_ref().map(|saved| &saved.decoder));
    log.file.with_key(|path| {
        let path = Path::new(path);
        if !decoder.prepare(path) {
            *saved = None;
            decoder = open(&log.claim, None);
            decoder.prepare(path);
        }
    });
    LogDecoder::Lines(decoder)
}

/// Decodes the records of one line.
pub(crate) fn decode_line_records(
    bytes: &[u8],
    offset: u64,
    line: u64,
    parser: &mut Parser,
    decoder: &mut dyn LineDecoder,
    stream: &mut Stream,
    tally: &mut RecordTally,
) {
    // An empty object has nothing to decode or show.
    if bytes.trim_ascii() == b"{}" {
        return tally.count_object(RecordOutcome::Merged("empty_object"));
    }
    parser.for_each_item(bytes, &mut |found| match found {
        LineItem::Object(object, range) => {
            let at =
                RecordAt { offset: offset + range.start as u64, length: range.len() as u64, line };
            if stream.is_excess_copy(&bytes[range.clone()], at) {
                return tally.count_object(RecordOutcome::Merged("equal_record"));
            }
            if let Some(outcome) =
                catch_panic(|| decoder.decode_record(object, &bytes[range], at, stream))
            {
                debug_assert!(outcome == RecordOutcome::Events || stream.pushed_count() == 0);
                tally.count_object(outcome.merged_if_empty(stream));
                note_unknown_usage(object, stream);
            } else {
                push_decoder_failure(at, stream);
                tally.count_object(RecordOutcome::Merged("decoder_failed"));
            }
        }
        LineItem::Problem(kind, range, message) => {
            let at =
                RecordAt { offset: offset + range.start as u64, length: range.len() as u64, line };
            stream.push_problem(at, kind, message);
        }
    });
}

/// Lets a decoder of lines report what follows the last record.
pub(crate) fn finish_lines(decoder: &mut dyn LineDecoder, at: RecordAt, stream: &mut Stream) {
    if catch_panic(|| decoder.finish_reading(at, stream)).is_none() {
        push_decoder_failure(at, stream);
    }
    stream.count_unknown_blocks();
}

/// Decodes the records of a document.
pub(crate) fn decode_document(
    bytes: &[u8],
    read: fn(&[u8], &mut Stream, &mut RecordTally),
    stream: &mut Stream,
    tally: &mut RecordTally,
) {
    if catch_panic(|| read(bytes, stream, tally)).is_none() {
        push_decoder_failure(RecordAt { offset: 0, length: bytes.len() as u64, line: 0 }, stream);
    }
    stream.count_unknown_blocks();
    stream.end_document();
}

/// Pushes a notification for a line that is too long to decode. It keeps the place of the line and
/// says where the line is.
pub(crate) fn push_oversized_line(at: RecordAt, stream: &mut Stream) {
    let message = format!("a line of {} bytes was not decoded", at.length);
    stream.begin_record(at, None, None);
    stream.push_notification("oversized_record", &message);
    stream.push_problem(at, ProblemKind::OversizedRecord, message);
}

/// Reports that the decoder panicked on a record.
fn push_decoder_failure(at: RecordAt, stream: &mut Stream) {
    let message = "the decoder failed here, which is a bug in sessions; please report it";
    stream.push_problem(at, ProblemKind::DecoderFailed, message.to_owned());
}

/// Endings of the names of fields that count tokens.
const COUNT_ENDINGS: &[&str] = &["tokens", "Tokens", "token_count", "TokenCount"];

/// Maximum depth at which counts are searched.
const MAX_DEPTH: usize = 6;

/// Lowers the confidence of a session if `record` has token counts in a part that its decoder
/// reported as unknown.
fn note_unknown_usage(record: Value<'_>, out: &mut Stream) {
    for unknown in out.take_unknown_items() {
        let has_counts = match &unknown {
            UnknownItem::Field(name) => find_field(record, name)
                .is_some_and(|value| is_count(name, value) || has_token_counts(value, 0)),
            UnknownItem::Record(_) => has_token_counts(record, 0),
        };
        if has_counts {
            out.note_uncounted_usage(&unknown);
        }
    }
}

/// Returns the field of this name of a record, or of an object in it whose fields decoders check.
fn find_field<'v>(record: Value<'v>, name: &str) -> Option<Value<'v>> {
    let message = record.object("message");
    let usage = message.and_then(|message| message.object("usage"));
    let objects = [Some(record), record.object("payload"), message, usage];
    objects.into_iter().flatten().find_map(|object| object.field(name))
}

/// Returns whether a field counts tokens that were used. Limits begin with "max".
fn is_count(name: &str, value: Value<'_>) -> bool {
    let is_named_so = COUNT_ENDINGS.iter().any(|ending| name.ends_with(ending));
    is_named_so && !name.starts_with("max") && value.as_i64().is_some_and(|count| count > 0)
}

/// Returns whether a value contains fields that count tokens.
fn has_token_counts(value: Value<'_>, depth: usize) -> bool {
    if depth > MAX_DEPTH {
        return false;
    }
    if let Some(object) = value.as_object() {
        return object
            .iter()
            .any(|(name, value)| is_count(name, value) || has_token_counts(value, depth + 1));
    }
    let Some(list) = value.as_array() else { return false };
    list.iter().any(|value| has_token_counts(value, depth + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::StreamState;
    use crate::stream::replay::CopiedHistory;
    use crate::text::json::Value;
    use schemas::session::SessionRow;
    use schemas::{EventType, Provider};

    /// Fails on records that say so.
    struct Brittle;

    impl LineDecoder for Brittle {
        fn decode_record(
            &mut self,
            _: Value<'_>,
            raw: &[u8],
            at: RecordAt,
            out: &mut Stream,
        ) -> RecordOutcome {
            out.begin_record(at, None, None);
            out.push_text(EventType::Message, "read");
            assert!(!raw.ends_with(b"bad\"}"), "a defect");
            RecordOutcome::Events
        }

        fn finish_reading(&mut self, _: RecordAt, _: &mut Stream) {
            panic!("a defect");
        }

        fn save_state(&self) -> String {
            "null".to_owned()
        }
    }

    fn broken(_: &[u8], _: &mut Stream, _: &mut RecordTally) {
        panic!("a defect");
    }

    #[test]
    fn a_decoder_that_fails_costs_the_record() {
        let session = SessionRow::default();
        let state = StreamState::default();
        let (history, batch) = (CopiedHistory::default(), Box::default());
        let mut stream = Stream::new(Provider::Generic, session, state, None, history, None, batch);
        let mut tally = RecordTally::default();
        let (mut parser, line) = (Parser::default(), br#"{"a":"good"}{"a":"bad"}{"a":"good"}"#);
        decode_line_records(line, 100, 7, &mut parser, &mut Brittle, &mut stream, &mut tally);
        decode_document(b"{}", broken, &mut stream, &mut tally);
        finish_lines(&mut Brittle, RecordAt { offset: 200, length: 0, line: 8 }, &mut stream);
        assert_eq!((tally.objects, stream.row_count()), (3, 3));
        let found: Vec<_> =
            stream.problems.iter().map(|problem| (problem.line, problem.byte)).collect();
        assert_eq!(found, [(7, 112), (0, 0), (8, 200)]);
        assert!(stream.problems.iter().all(|p| p.kind == ProblemKind::DecoderFailed));
    }
}
