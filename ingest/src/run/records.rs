//! Passes records to decoders. If a decoder panics, which is a defect of the decoder, only the
//! current record is lost.

use schemas::EventType;
use schemas::problem::ProblemKind;

use crate::provider::format::{LineDecoder, Outcome, Tally};
use crate::source::panics::caught;
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{Found, Parser};

/// Decodes the records of one line.
pub(crate) fn line_records(
    bytes: &[u8],
    offset: u64,
    line: u64,
    parser: &mut Parser,
    decoder: &mut dyn LineDecoder,
    stream: &mut Stream,
    tally: &mut Tally,
) {
    // An empty object has nothing to decode or show.
    if bytes.trim_ascii() == b"{}" {
        return tally.object(Outcome::Merged("empty_object"));
    }
    parser.each(bytes, &mut |found| match found {
        Found::Object(object, range) => {
            let at =
                RecordAt { offset: offset + range.start as u64, length: range.len() as u64, line };
            match caught(|| decoder.record(object, &bytes[range], at, stream)) {
                Some(outcome) => {
                    debug_assert!(outcome == Outcome::Events || stream.pushed() == 0);
                    tally.object(outcome.seen(stream));
                }
                None => {
                    failed(at, stream);
                    tally.object(Outcome::Merged("decoder_failed"));
                }
            }
        }
        Found::Problem(kind, range, message) => {
            let at =
                RecordAt { offset: offset + range.start as u64, length: range.len() as u64, line };
            stream.problem(at, kind, message);
        }
    });
}

/// Lets a decoder of lines report what follows the last record.
pub(crate) fn line_end(decoder: &mut dyn LineDecoder, at: RecordAt, stream: &mut Stream) {
    if caught(|| decoder.end(at, stream)).is_none() {
        failed(at, stream);
    }
}

/// Decodes the records of a document.
pub(crate) fn document_records(
    bytes: &[u8],
    read: fn(&[u8], &mut Stream, &mut Tally),
    stream: &mut Stream,
    tally: &mut Tally,
) {
    if caught(|| read(bytes, stream, tally)).is_none() {
        failed(RecordAt { offset: 0, length: bytes.len() as u64, line: 0 }, stream);
    }
    stream.end_document();
}

/// Records a line that is too long to decode as a notification, which keeps its place and says
/// where the line is.
pub(crate) fn oversized(at: RecordAt, stream: &mut Stream) {
    let message = format!("a line of {} bytes was not decoded", at.length);
    stream.begin_record(at, None, None);
    let draft = Draft { subtype: Some("oversized_record"), text: &message, ..Draft::default() };
    stream.push(EventType::Notification, draft);
    stream.problem(at, ProblemKind::OversizedRecord, message);
}

fn failed(at: RecordAt, stream: &mut Stream) {
    let message = "the decoder failed here, which is a defect of sessions; please report it";
    stream.problem(at, ProblemKind::DecoderFailed, message.to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::StreamState;
    use crate::stream::replay::History;
    use crate::text::json::Value;
    use schemas::Provider;
    use schemas::session::SessionRow;

    /// Fails on records that say so.
    struct Brittle;

    impl LineDecoder for Brittle {
        fn record(&mut self, _: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> Outcome {
            out.begin_record(at, None, None);
            out.push(EventType::Message, Draft { text: "read", ..Draft::default() });
            assert!(!raw.ends_with(b"bad\"}"), "a defect");
            Outcome::Events
        }

        fn end(&mut self, _: RecordAt, _: &mut Stream) {
            panic!("a defect");
        }

        fn save(&self) -> serde_json::Value {
            serde_json::Value::Null
        }
    }

    fn broken(_: &[u8], _: &mut Stream, _: &mut Tally) {
        panic!("a defect");
    }

    #[test]
    fn a_decoder_that_fails_costs_the_record() {
        let session = SessionRow::default();
        let state = StreamState::default();
        let mut stream =
            Stream::new(Provider::Generic, session, state, None, History::default(), None);
        let mut tally = Tally::default();
        let (mut parser, line) = (Parser::default(), br#"{"a":"good"}{"a":"bad"}{"a":"good"}"#);
        line_records(line, 100, 7, &mut parser, &mut Brittle, &mut stream, &mut tally);
        document_records(b"{}", broken, &mut stream, &mut tally);
        line_end(&mut Brittle, RecordAt { offset: 200, length: 0, line: 8 }, &mut stream);
        assert_eq!((tally.objects, stream.batch().len()), (3, 3));
        let found: Vec<_> =
            stream.problems.iter().map(|problem| (problem.line, problem.byte)).collect();
        assert_eq!(found, [(7, 112), (0, 0), (8, 200)]);
        assert!(stream.problems.iter().all(|p| p.kind == ProblemKind::DecoderFailed));
    }
}
