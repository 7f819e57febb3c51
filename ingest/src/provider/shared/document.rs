//! Splits logs that are read as a whole into their records. Documents are one JSON value with a
//! whole session. Files of lines are read as a whole if their agent rewrites them. A record is
//! identified by its position, so nothing is copied, and records before a cut are kept.

use std::borrow::Cow;

use schemas::problem::ProblemKind;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::provider::format::{RecordOutcome, RecordTally};
use crate::source::lines::{LogLine, LogLines};
use crate::stream::{RecordAt, Stream};
use crate::text::json::{JsonFields, LineItem, Parser, Value, replace_lone_surrogates};

/// The position of a record in its log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordSpan {
    pub(crate) offset: usize,
    pub(crate) length: usize,
    /// Line number, 1-based.
    pub(crate) line: u64,
}

impl RecordSpan {
    /// Returns the position in the form that events store.
    pub(crate) fn position(self) -> RecordAt {
        RecordAt { offset: self.offset as u64, length: self.length as u64, line: self.line }
    }

    /// Returns the bytes of the record, given those of its log.
    pub(crate) fn record_bytes(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.offset..self.offset + self.length).unwrap_or_default()
    }
}

/// The parts of a document that are read.
pub(crate) struct DocumentLayout {
    /// The field with the list of records, or `None` if the document itself is that list. The names of
    /// fields inside fields have `/` between them.
    pub(crate) list: Option<&'static str>,
    /// Other fields of the document that are read.
    pub(crate) header: &'static [&'static str],
}

/// The layout of a document that is assembled from a database.
pub(crate) const ASSEMBLED: DocumentLayout =
    DocumentLayout { list: Some("messages"), header: &["info"] };

/// A document split into its records and its wanted header fields.
pub(crate) struct Document<'b> {
    bytes: &'b [u8],
    fields: serde_json::Map<String, serde_json::Value>,
    pub(crate) records: Vec<RecordSpan>,
    /// The names of the fields that are not read.
    others: Vec<String>,
}

impl<'b> Document<'b> {
    /// Splits a document. Reports a cut or a syntax error as a problem.
    pub(crate) fn read(
        bytes: &'b [u8],
        layout: &DocumentLayout,
        out: &mut Stream,
        tally: &mut RecordTally,
    ) -> Self {
        let text = to_legible_text(bytes);
        let whole = RecordAt { offset: 0, length: bytes.len() as u64, line: 0 };
        if matches!(text, Cow::Owned(_)) {
            report_replaced_bytes(bytes, whole, out);
        }
        let mut parts = DocumentParts::default();
        let json = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let result = match layout.list {
            Some(list) => {
                let wanted = layout.header;
                deserializer.deserialize_map(PartsVisitor { parts: &mut parts, list, wanted })
            }
            None => ListSeed(&mut parts.records).deserialize(&mut deserializer),
        };
        tally.lines += text.lines().count() as u64;
        tally.count_object(RecordOutcome::Merged("document_header"));
        if let Err(error) = result {
            let message = format!("the document is incomplete or is not valid JSON: {error}");
            out.push_problem(whole, ProblemKind::BadJson, message);
        }

        let start = text.as_ptr() as usize;
        let mut records = Vec::with_capacity(parts.records.len());
        let mut line = 1;
        let mut counted = 0;
        for raw in &parts.records {
            let offset = raw.get().as_ptr() as usize - start;
            let between = bytes.get(counted..offset).unwrap_or_default();
            line += memchr::memchr_iter(b'\n', between).count() as u64;
            counted = offset;
            records.push(RecordSpan { offset, length: raw.get().len(), line });
        }
        Self { bytes, fields: parts.fields, records, others: parts.others }
    }

    /// Counts the fields of the document that are neither read nor in `known`.
    pub(crate) fn count_unknown_fields(&self, known: &[&str], out: &mut Stream) {
        for field in self.others.iter().filter(|field| !known.contains(&field.as_str())) {
            out.count_unknown("field", field);
        }
    }

    /// Returns the wanted header fields.
    pub(crate) fn fields(&self) -> &serde_json::Map<String, serde_json::Value> {
        &self.fields
    }

    /// Passes the wanted header fields to `take`, as one object.
    pub(crate) fn with_header(&self, mut take: impl FnMut(Value<'_>)) {
        let fields = serde_json::to_vec(&self.fields).unwrap_or_default();
        Parser::default().for_each_item(&fields, &mut |found| {
            if let LineItem::Object(object, _) = found {
                take(object);
            }
        });
    }

    /// Passes the fields of the session to `take`, if an assembled document has them.
    pub(crate) fn with_info(&self, mut take: impl FnMut(Value<'_>)) {
        self.with_header(|header| {
            if let Some(info) = header.object("info") {
                take(info);
            }
        });
    }

    /// Passes every record to `decode`, and counts the outcome.
    pub(crate) fn for_each_record(
        &self,
        out: &mut Stream,
        tally: &mut RecordTally,
        decode: &mut TakeRecord<'_>,
    ) {
        for_each_record(self.bytes, &self.records, out, tally, decode);
    }

    /// Returns the bytes of every record.
    pub(crate) fn raw_records(&self) -> impl DoubleEndedIterator<Item = &'b [u8]> {
        self.records.iter().map(|span| span.record_bytes(self.bytes))
    }

    /// Returns whether `is_wanted` accepts a record. Only records that contain `part` are decoded.
    pub(crate) fn has_record(&self, part: &str, is_wanted: fn(Value<'_>) -> bool) -> bool {
        let mut parser = Parser::default();
        self.raw_records().any(|raw| {
            let mut is_found = false;
            if memchr::memmem::find(raw, part.as_bytes()).is_some() {
                parser.for_each_item(raw, &mut |item| {
                    is_found |= matches!(item, LineItem::Object(record, _) if is_wanted(record));
                });
            }
            is_found
        })
    }
}

/// Callback that decodes one record of a document, given its bytes.
pub(crate) type TakeRecord<'t> =
    dyn FnMut(Value<'_>, &[u8], RecordAt, &mut Stream) -> RecordOutcome + 't;

/// Passes the records at these places to `decode`, and counts the outcomes.
pub(crate) fn for_each_record(
    bytes: &[u8],
    records: &[RecordSpan],
    out: &mut Stream,
    tally: &mut RecordTally,
    decode: &mut TakeRecord<'_>,
) {
    let mut parser = Parser::default();
    for span in records {
        let raw = span.record_bytes(bytes);
        let at = span.position();
        parser.for_each_item(raw, &mut |found| match found {
            LineItem::Object(record, _) => {
                tally.count_object(decode(record, raw, at, out).merged_if_empty(out));
            }
            LineItem::Problem(kind, _, message) => out.push_problem(at, kind, message),
        });
    }
}

/// Returns whether a document is a list. Some editors put a byte order mark before it.
pub(crate) fn is_list(bytes: &[u8]) -> bool {
    trim_document(bytes).starts_with(b"[")
}

/// Returns a document without a byte order mark and without blanks around it.
fn trim_document(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii()
}

/// Returns whether a log is a file of lines, not a document with the field `list`. The first line
/// of such a file is complete JSON, and either another line follows or the first line lacks the
/// list.
pub(crate) fn is_lines(bytes: &[u8], list: &str) -> bool {
    let bytes = trim_document(bytes);
    let end = memchr::memchr(b'\n', bytes).unwrap_or(bytes.len());
    let (first, rest) = bytes.split_at(end);
    if first.is_empty() {
        return false;
    }

    let quoted_list = format!("\"{list}\"");
    if rest.is_empty() && memchr::memmem::find(first, quoted_list.as_bytes()).is_some() {
        return false;
    }
    Parser::default().complete_length(first) == first.trim_ascii_end().len()
}

/// Callback that receives the objects of a file of lines.
pub(crate) type TakeLine<'t> = dyn FnMut(Value<'_>, RecordSpan, &mut Stream, &mut RecordTally) + 't;

/// Passes every object of a file of lines to `take`, which counts it.
pub(crate) fn for_each_line(
    bytes: &[u8],
    out: &mut Stream,
    tally: &mut RecordTally,
    take: &mut TakeLine<'_>,
) {
    let mut parser = Parser::default();
    let mut reader = LogLines::new(bytes, 0);
    let mut number = 0;
    while let Ok(Some(line)) = reader.next_line() {
        number += 1;
        tally.lines += 1;
        let (offset, line) = match line {
            LogLine::Whole { offset, bytes } | LogLine::Tail { offset, bytes } => (offset, bytes),
            LogLine::Oversized { offset, length, .. } => {
                let at = RecordAt { offset, length, line: number };
                let message = format!("a line of {length} bytes was not read");
                out.push_problem(at, ProblemKind::OversizedRecord, message);
                continue;
            }
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        parser.for_each_item(line, &mut |found| match found {
            LineItem::Object(object, at) => {
                let span = RecordSpan { offset: start + at.start, length: at.len(), line: number };
                take(object, span, out, tally);
            }
            LineItem::Problem(kind, _, message) => {
                let at = RecordAt { offset, length: line.len() as u64, line: number };
                out.push_problem(at, kind, message);
            }
        });
    }
}

/// Passes every object of a file of lines to `decode`, as [`for_each_record`] does.
pub(crate) fn for_each_line_record(
    bytes: &[u8],
    out: &mut Stream,
    tally: &mut RecordTally,
    decode: &mut TakeRecord<'_>,
) {
    for_each_line(bytes, out, tally, &mut |record, span, out, tally| {
        let outcome = decode(record, span.record_bytes(bytes), span.position(), out);
        tally.count_object(outcome.merged_if_empty(out));
    });
}

/// Returns up to `max_elements` from the beginning of a document that is a list. The document may
/// be cut anywhere.
pub(crate) fn first_elements(text: &str, max_elements: usize) -> Vec<serde_json::Value> {
    let mut parts = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // A cut is not an error here: only the elements before it are needed.
    let _ = ListSeed(&mut parts).deserialize(&mut deserializer);
    parts.iter().take(max_elements).filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect()
}

/// Converts the bytes to text of the same length. Every byte that is not UTF-8 and every control
/// character that JSON does not allow becomes a question mark, and half a surrogate pair the replacement
/// character, so positions do not change.
pub(crate) fn to_legible_text(bytes: &[u8]) -> Cow<'_, str> {
    let has_controls = bytes.iter().copied().any(is_raw_control);
    if !has_controls && let Ok(text) = std::str::from_utf8(bytes) {
        return replace_lone_surrogates(text).map_or(Cow::Borrowed(text), Cow::Owned);
    }

    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let is_control = u8::try_from(c).is_ok_and(is_raw_control);
            text.push(if is_control { '?' } else { c });
        }
        text.extend(chunk.invalid().iter().map(|_| '?'));
    }
    Cow::Owned(replace_lone_surrogates(&text).unwrap_or(text))
}

/// Reports the bytes that were replaced in the document at `whole`.
fn report_replaced_bytes(bytes: &[u8], whole: RecordAt, out: &mut Stream) {
    if str::from_utf8(bytes).is_err() {
        out.push_problem(whole, ProblemKind::InvalidUtf8, "invalid UTF-8 was replaced");
    }
    if bytes.iter().copied().any(is_raw_control) {
        let message = "raw control characters were replaced";
        out.push_problem(whole, ProblemKind::ControlCharacters, message);
    }
    if str::from_utf8(bytes).is_ok_and(|text| replace_lone_surrogates(text).is_some()) {
        let message = "half a surrogate pair was replaced";
        out.push_problem(whole, ProblemKind::LoneSurrogate, message);
    }
}

/// Returns whether a byte is a control character that JSON allows nowhere.
fn is_raw_control(byte: u8) -> bool {
    byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r')
}

/// The parts of a document found so far. They are filled while it is read.
#[derive(Default)]
struct DocumentParts<'a> {
    fields: serde_json::Map<String, serde_json::Value>,
    records: Vec<&'a RawValue>,
    others: Vec<String>,
}

/// Collects the parts of a document that is an object.
struct PartsVisitor<'p, 'a> {
    parts: &'p mut DocumentParts<'a>,
    list: &'p str,
    wanted: &'p [&'p str],
}

impl<'de> DeserializeSeed<'de> for PartsVisitor<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PartsVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "an object with {}", self.list)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (list, inner) = self.list.split_once('/').unwrap_or((self.list, ""));
        while let Some(key) = map.next_key::<String>()? {
            if key == list && inner.is_empty() {
                map.next_value_seed(ListSeed(&mut self.parts.records))?;
            } else if key == list {
                let parts = &mut *self.parts;
                map.next_value_seed(PartsVisitor { parts, list: inner, wanted: &[] })?;
            } else if self.wanted.contains(&key.as_str()) {
                self.parts.fields.insert(key, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
                self.parts.others.push(key);
            }
        }
        Ok(())
    }
}

/// Deserializer of the list of records. If the list is cut, it collects the records before the cut.
pub(crate) struct ListSeed<'p, 'a>(pub(crate) &'p mut Vec<&'a RawValue>);

impl<'de> DeserializeSeed<'de> for ListSeed<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ListSeed<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of records")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(record) = seq.next_element()? {
            self.0.push(record);
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_told_from_documents() {
        for lines in ["{\"a\":1}\n{\"a\":2}\n", "{\"a\":1}\n", "{\"a\":1}\n{\"cut"] {
            assert!(is_lines(lines.as_bytes(), "list"), "{lines}");
        }
        for document in
            ["{\"list\":[]}\n\n", "{\n \"list\": []\n}", "[{\n}]", "", "{\"list\":[{\"cut"]
        {
            assert!(!is_lines(document.as_bytes(), "list"), "{document}");
        }
    }

    #[test]
    fn lists_are_told_from_objects() {
        assert!(
            is_list(b"\xef\xbb\xbf [{}]") && is_list(b"\n[") && !is_list(b"\xef\xbb\xbf{\"a\":[]}")
        );
    }

    #[test]
    fn bad_bytes_keep_their_place() {
        assert_eq!(to_legible_text(b"a\xff\xe2\x82b"), "a???b");
        assert_eq!(to_legible_text("\u{1}é\t\n\0".as_bytes()), "?é\t\n?");
        assert_eq!(to_legible_text(br"a\ud83d\ude00 \ud83d."), r"a\ud83d\ude00 \ufffd.");
        assert!(matches!(to_legible_text("é".as_bytes()), Cow::Borrowed("é")));
    }

    #[test]
    fn the_head_of_a_list_is_enough() {
        let elements = first_elements(r#"[{"ts":1},{"ts":2},{"ts":3,"te"#, 5);
        assert_eq!(elements.len(), 2);
        assert_eq!(elements[1]["ts"], 2);
        assert_eq!(first_elements(r#"[{"a":1},{"a":2}]"#, 1).len(), 1);
        assert!(first_elements(r#"{"a":[{}]}"#, 5).is_empty());
    }
}
