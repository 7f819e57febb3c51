//! Recognises from the beginning of a file which agent's log it is.

use std::io;
use std::path::Path;

use serde::de::{Deserializer, MapAccess, Visitor};

use crate::provider::FORMATS;
use crate::provider::format::{LogFormat, LogHead, LogReader, SessionClaim};
use crate::provider::shared::document::{ListSeed, first_elements};
use crate::redact::Redactor;
use crate::source::candidate::Container;
use crate::source::candidate::LogCandidate;
use crate::source::container::{Content, lock_giant_document};
use crate::source::lines::{LogLine, LogLines, MAX_LINE_BYTES, SMALL_CHUNK_BYTES, fitting_chunk};
use crate::source::panics::catch_panic;

/// Maximum number of objects examined. Objects that name a session are at the top, and the first
/// response of the model is mostly among these.
const MAX_OBJECTS: usize = 24;

/// Maximum number of lines examined in a document that gives no objects.
const MAX_LINES: usize = 2000;

/// Maximum number of bytes examined at the beginning of a document over several lines.
const MAX_DOCUMENT_BYTES: usize = 64 << 10;

/// Number of files for which one more thread is started.
const FILES_PER_THREAD: usize = 16;

/// The result of examining the beginning of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sniffed {
    /// The file is a log, which says this about itself.
    Log(SessionClaim),
    /// The file holds nothing but whitespace.
    Empty,
    /// No decoder recognises the file; the text is the reason for the report.
    Unknown(&'static str),
}

/// Examines the beginning of a log. The ids that it names are cleaned and masked by `redactor`.
///
/// # Errors
/// Returns the errors of opening and reading the file.
///
/// ```rust
/// use ingest::discover::discover;
/// use ingest::discover::sniff::{Sniffed, sniff};
/// use schemas::Provider;
///
/// let dir = tempfile::tempdir()?;
/// let path = dir.path().join("s1.jsonl");
/// let record = r#"{"type":"user","sessionId":"s1","message":{"role":"user","content":"Hi"}}"#;
/// std::fs::write(&path, record)?;
///
/// let found = discover(&[path]);
/// let Sniffed::Log(claim) = sniff(&found.files[0], None)? else {
///     panic!("not recognised");
/// };
/// assert_eq!(claim.provider, Provider::Claude);
/// assert_eq!(claim.native_id, "s1");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn sniff(file: &LogCandidate, redactor: Option<&Redactor>) -> io::Result<Sniffed> {
    match catch_examine_panic(|| examine_file(file))? {
        Sniffed::Log(claim) => Ok(Sniffed::Log(claim.with_redacted_ids(redactor))),
        Sniffed::Empty => Ok(Sniffed::Empty),
        Sniffed::Unknown(reason) => Ok(Sniffed::Unknown(reason)),
    }
}

/// Sniffs many logs on all cores. Returns the results in the order of `files`.
pub(crate) fn sniff_all(
    files: Vec<LogCandidate>,
    redactor: Option<&Redactor>,
) -> Vec<(LogCandidate, io::Result<Sniffed>)> {
    let threads = std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(files.len().div_ceil(FILES_PER_THREAD))
        .max(1);
    let chunk_files = files.len().div_ceil(threads).max(1);

    let mut results = Vec::with_capacity(files.len());
    std::thread::scope(|scope| {
        let mut handles = Vec::with_capacity(threads);
        for chunk in files.chunks(chunk_files) {
            handles.push(scope.spawn(move || sniff_chunk(chunk, redactor)));
        }
        for handle in handles {
            results.extend(handle.join().unwrap_or_default());
        }
    });
    results
}

/// Sniffs logs one after the other.
fn sniff_chunk(
    files: &[LogCandidate],
    redactor: Option<&Redactor>,
) -> Vec<(LogCandidate, io::Result<Sniffed>)> {
    files.iter().map(|file| (file.clone(), sniff(file, redactor))).collect()
}

/// Runs `examine` and turns a panic, which is a bug in the code, into an error of this file, so that
/// the other files are still read.
fn catch_examine_panic(examine: impl FnOnce() -> io::Result<Sniffed>) -> io::Result<Sniffed> {
    let failed = "examining the file failed, which is a bug in sessions; please report it";
    catch_panic(examine).unwrap_or_else(|| Err(io::Error::other(failed)))
}

/// Offers the beginning of a file to every format.
fn examine_file(file: &LogCandidate) -> io::Result<Sniffed> {
    let is_assembled = matches!(file.container, Container::Assembled(_));
    let _turn = if is_assembled { lock_giant_document(file.size) } else { None };
    let Some(head) = read_head(file)? else { return Ok(Sniffed::Empty) };
    if head.objects.is_empty() && head.document.is_none() {
        return Ok(Sniffed::Unknown("holds no JSON object"));
    }

    let claim = FORMATS
        .iter()
        .filter(|format| may_read(format, &head))
        .find_map(|format| (format.sniff)(&head));
    Ok(claim.map_or(Sniffed::Unknown("no known agent writes such records"), Sniffed::Log))
}

/// Returns whether a format may read a file. A list is a document, which no reader of lines can
/// read.
fn may_read(format: &LogFormat, head: &LogHead<'_>) -> bool {
    !head.is_list || matches!(format.reader, LogReader::Document(_))
}

/// Returns the objects on the first lines, or the top-level fields of a document over several
/// lines. `None` if the file is blank.
fn read_head(file: &LogCandidate) -> io::Result<Option<LogHead<'_>>> {
    let chunk = fitting_chunk(file.size, SMALL_CHUNK_BYTES);
    let mut lines = LogLines::with_bounds(Content::open_stream(file)?, 0, MAX_LINE_BYTES, chunk);
    let name = file.path.to_str();
    let path = name.map_or(&*file.path, |name| Path::new(Container::of_name(name).1));

    let mut objects = Vec::new();
    let mut beginning = Vec::new();
    let mut line_count = 0;
    let mut is_blank = true;
    let mut is_document = false;
    while line_count < MAX_LINES
        && objects.len() < MAX_OBJECTS
        && beginning.len() < MAX_DOCUMENT_BYTES
    {
        let Some(line) = lines.next_line()? else { break };
        line_count += 1;
        let (LogLine::Whole { bytes, .. }
        | LogLine::Tail { bytes, .. }
        | LogLine::Oversized { head: bytes, .. }) = line;
        is_blank &= bytes.iter().all(u8::is_ascii_whitespace);
        if beginning.len() < MAX_DOCUMENT_BYTES {
            beginning.extend_from_slice(&bytes[..bytes.len().min(MAX_DOCUMENT_BYTES)]);
            beginning.push(b'\n');
        }

        let text = String::from_utf8_lossy(bytes);
        // In a document over several lines, or in a list, no line is a record.
        let opens_document =
            matches!(text.trim(), "{" | "[") || text.trim_start().starts_with("[{");
        is_document |= opens_document && objects.is_empty();
        if is_document {
            continue;
        }
        let values = serde_json::Deserializer::from_str(&text).into_iter::<serde_json::Value>();
        objects.extend(values.map_while(Result::ok).filter(serde_json::Value::is_object));
    }
    if is_blank {
        return Ok(None);
    }

    if beginning.trim_ascii_start().starts_with(b"[") {
        let objects = first_elements(&String::from_utf8_lossy(&beginning), MAX_OBJECTS);
        return Ok(Some(LogHead { path, objects, document: None, is_list: true }));
    }
    // A document on one line is one object; one over several lines gives no objects.
    let is_single = objects.len() == 1 && line_count == 1;
    let document = if objects.is_empty() || is_single {
        parse_top_fields(&String::from_utf8_lossy(&beginning))
    } else {
        None
    };
    Ok(Some(LogHead { path, objects, document, is_list: false }))
}

/// Returns the scalar fields at the top of a document that may be cut anywhere, and its first
/// message.
fn parse_top_fields(text: &str) -> Option<serde_json::Map<String, serde_json::Value>> {
    struct Top<'m>(&'m mut serde_json::Map<String, serde_json::Value>);

    impl<'de> Visitor<'de> for Top<'_> {
        type Value = ();

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<String>()? {
                // The key alone is useful even if its value is cut.
                self.0.insert(key.clone(), serde_json::Value::Null);
                if key == "messages" {
                    let mut messages = Vec::new();
                    let read = map.next_value_seed(ListSeed(&mut messages));
                    let first: Option<serde_json::Value> =
                        messages.first().and_then(|raw| serde_json::from_str(raw.get()).ok());
                    if let Some(first) = first {
                        self.0.insert(key, vec![first].into());
                    }
                    read?;
                } else {
                    self.0.insert(key, map.next_value()?);
                }
            }
            Ok(())
        }
    }

    let mut fields = serde_json::Map::new();
    let read = serde_json::Deserializer::from_str(text).deserialize_map(Top(&mut fields));
    (read.is_ok() || !fields.is_empty()).then_some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::Provider;

    fn check(name: &str, content: &str, want: Option<(Provider, &str)>) {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join(name);
        std::fs::write(&path, content).expect("writes");
        let got = match sniff(&LogCandidate::from_path(path).expect("there"), None).expect("reads")
        {
            Sniffed::Log(claim) => Some((claim.provider, claim.native_id)),
            Sniffed::Empty | Sniffed::Unknown(_) => None,
        };
        assert_eq!(got, want.map(|(provider, id)| (provider, id.to_owned())), "{content}");
    }

    #[test]
    fn provider_is_told_from_content() {
        let user = r#"{"type":"user","sessionId":"s1","message":{"role":"user","content":"x"}}"#;
        check("x.jsonl", user, Some((Provider::Claude, "s1")));
        check(
            "x.jsonl",
            &format!("\u{feff}{{\"type\":\"mode\",\"sessionId\":\"s2\"}}\r\n{user}"),
            Some((Provider::Claude, "s2")),
        );
        check(
            "x.jsonl",
            r#"{"timestamp":"t","type":"session_meta","payload":{"id":"c1"}}"#,
            Some((Provider::Codex, "c1")),
        );
        check(
            "x.jsonl",
            r#"{"id":"c2","timestamp":"t","instructions":null}"#,
            Some((Provider::Codex, "c2")),
        );
        check(
            "x.json",
            "{\n \"sessionId\": \"g1\",\n \"projectHash\": \"h\",\n \"messages\": [ {\"id\": ",
            Some((Provider::Gemini, "g1")),
        );
        check(
            "x.json",
            r#"{"sessionId":"g2","startTime":"t","messages":[]}"#,
            Some((Provider::Gemini, "g2")),
        );
        check(
            "x.jsonl",
            "{\"sessionId\":\"g3\",\"projectHash\":\"h\"}\n{\"id\":\"1\"}",
            Some((Provider::Gemini, "g3")),
        );
    }

    #[test]
    fn agents_that_borrowed_each_others_shapes_are_told_apart() {
        let check = |line: &str, want| check("x.jsonl", line, Some(want));
        check(
            r#"{"type":"session.start","data":{"sessionId":"x"},"id":"1","timestamp":"t","parentId":null}"#,
            (Provider::Copilot, "x"),
        );
        check(
            r#"{"type":"session","version":3,"id":"x","timestamp":"t","cwd":"/"}"#,
            (Provider::Pi, "x"),
        );
        check(
            r#"{"uuid":"u","sessionId":"s","type":"user","message":{"role":"user","parts":[]}}"#,
            (Provider::Qwen, "s"),
        );
    }

    #[test]
    fn a_look_that_fails_costs_one_file() {
        let error = catch_examine_panic(|| panic!("a defect")).expect_err("an error");
        assert!(error.to_string().contains("please report it"), "{error}");
        assert_eq!(catch_examine_panic(|| Ok(Sniffed::Empty)).expect("as it was"), Sniffed::Empty);
    }

    #[test]
    fn others_are_left_alone() {
        check("package.json", "{\n \"name\": \"x\"\n}", None);
        check("x.jsonl", "\u{0}\u{1}binary", None);
        check("x.jsonl", " \n ", None);
    }
}
