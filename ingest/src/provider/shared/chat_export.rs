//! Splits the export of a chat service into its conversations. One file has the list of all of them
//! and may be larger than a document may be (docs/formats.md#exports-of-chat-services).
//!
//! ```text
//! [{"uuid":"...","name":"...","chat_messages":[{...},{...}]},...]        claude.ai
//! [{"title":"...","create_time":1.5,"mapping":{"<id>":{...},...}},...]   ChatGPT
//! [{"header":"Gemini Apps","title":"Prompted ...","time":"..."},...]     Gemini: messages of any
//!                                                                        conversation
//! ```
//!
//! The file is read once to find its conversations, of which one at a time is in memory. Each is
//! assembled into a document: `{"info":{"store":"claudeai","uuid":"...",...},"messages":[...]}`.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use schemas::problem::ProblemKind;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};
use xxhash_rust::xxh3::xxh3_64;

use super::database::document_text::{document_bytes, info_json};
use super::database::tables::{missing_session, session_path, split_session_path, stamp_state};
use super::document::to_legible_text;
use crate::source::assembly::{AssembledSession, SessionList, SourceDefect};
use crate::source::candidate::FileState;
use crate::source::container::{MAX_DOCUMENT_BYTES, oversized_message};
use crate::stream::{parse_micros, push_bounded};
use crate::text::damaged_json::repair_json;

/// Number of bytes at the beginning of an export in which its list has an element.
const HEAD_BYTES: u64 = 64 << 10;

/// Number of bytes of an export that are read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Maximum number of exports whose conversations are remembered. A large export is in many files.
const MAX_LISTED_FILES: usize = 64;

/// The export of a chat service.
pub(crate) struct ChatExport {
    /// Value of `store` in the documents.
    pub(crate) store: &'static str,
    /// The names of its files without `.json`. A hyphen and more may follow.
    pub(crate) names: &'static [&'static str],
    /// The field of an element of the list with the messages of a conversation: a list, or an object
    /// whose values they are. `None` if an element is itself a message.
    pub(crate) messages: Option<&'static str>,
    /// Returns whether the fields of an element are those of this service.
    pub(crate) is_own: fn(&Fields) -> bool,
    /// Returns the id of the conversation of an element.
    pub(crate) id: fn(&Fields) -> Option<String>,
    /// The field with the time of the latest change: RFC 3339 text, or seconds since 1970.
    pub(crate) updated: &'static str,
    /// Puts the messages of a conversation in the order of the document.
    pub(crate) order: fn(Vec<&RawValue>) -> Vec<&RawValue>,
}

/// The fields of an element, without its messages.
pub(crate) type Fields = Map<String, Json>;

/// A conversation in an export.
struct Conversation {
    id: String,
    /// The places of its elements in the file, by offset and length in bytes.
    places: Vec<(u64, u64)>,
    /// Length in bytes of its messages.
    message_bytes: u64,
    /// Time of the latest change in microseconds since 1970.
    updated_us: i64,
    /// A hash of its bytes.
    hash: u64,
}

impl Conversation {
    /// Returns its length in bytes.
    fn length(&self) -> u64 {
        self.places.iter().map(|(_, length)| length).sum()
    }

    /// Returns about how long its document is, and never more: what is missing of the length would
    /// look unread.
    fn document_length(&self) -> u64 {
        let length = self.length();
        if length > MAX_DOCUMENT_BYTES { length } else { self.message_bytes }
    }
}

/// The conversations of an export.
struct ListedExport {
    conversations: Vec<Conversation>,
    /// The rows of `conversations` by id.
    rows: HashMap<String, usize>,
    defects: Vec<SourceDefect>,
}

/// An export that was listed while its file was in a state.
struct ListedFile {
    path: PathBuf,
    state: FileState,
    export: Arc<ListedExport>,
}

/// The exports listed last. Without it, the file would be read once for each conversation.
static LISTED: Mutex<VecDeque<ListedFile>> = Mutex::new(VecDeque::new());

impl ChatExport {
    /// Returns whether a file is an export of this service, by its name and its first conversation.
    pub(crate) fn is_export(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_named = self.names.iter().any(|known| {
            let rest = name.strip_prefix(known).and_then(|rest| rest.strip_suffix(".json"));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        });
        if !is_named {
            return false;
        }
        let Ok(Some(first)) = File::open(path).and_then(read_first_element) else { return false };
        let text = repair_json(&to_legible_text(&first), &mut Vec::new()).unwrap_or_default();
        let parts = ConversationParts::read(&text, self.messages);
        parts.has_messages == self.messages.is_some() && (self.is_own)(&parts.info)
    }

    /// Lists the conversations in an export. The path of a conversation is `<file>#<id>`.
    pub(crate) fn list(&self, file: &Path) -> io::Result<SessionList> {
        let export = self.listed_export(file)?;
        let sessions = export.conversations.iter().map(|conversation| AssembledSession {
            path: session_path(file, &conversation.id),
            bytes: conversation.document_length(),
            updated_us: stamp_state(conversation.updated_us, conversation.hash),
        });
        Ok(SessionList { sessions: sessions.collect(), defects: export.defects.clone() })
    }

    /// Assembles the document of the conversation at a path.
    pub(crate) fn assemble(&self, path: &Path) -> io::Result<Vec<u8>> {
        let (file, id) = split_session_path(path).ok_or_else(missing_session)?;
        let export = self.listed_export(&file)?;
        let row = export.rows.get(&id).ok_or_else(missing_session)?;
        let conversation = &export.conversations[*row];
        if conversation.length() > MAX_DOCUMENT_BYTES {
            let message = oversized_message(conversation.length());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        let mut content = File::open(file)?;
        let mut elements = Vec::with_capacity(conversation.places.len());
        for (offset, length) in &conversation.places {
            content.seek(SeekFrom::Start(*offset))?;
            let mut bytes = Vec::new();
            (&mut content).take(*length).read_to_end(&mut bytes)?;
            // What is left out was reported with the list.
            elements.extend(repair_json(&to_legible_text(&bytes), &mut Vec::new()));
        }
        let mut parts = ConversationParts::default();
        match elements.first() {
            Some(element) if self.messages.is_some() => {
                parts = ConversationParts::read(element, self.messages);
            }
            _ => {
                parts.info.insert("id".to_owned(), id.into());
                let whole = elements.iter().filter_map(|text| serde_json::from_str(text).ok());
                parts.messages = whole.collect();
            }
        }
        let messages = (self.order)(parts.messages);
        // A line with an object would make the document look like a file of lines.
        let messages = messages.iter().map(|message| message.get().replace(['\n', '\r'], " "));
        let messages: Vec<String> = messages.collect();
        Ok(document_bytes(&info_json(self.store, parts.info), &messages))
    }

    /// Returns the conversations of an export. The file is read only if it was not, or has changed.
    fn listed_export(&self, path: &Path) -> io::Result<Arc<ListedExport>> {
        let file = File::open(path)?;
        let state = FileState::of_metadata(&file.metadata()?);
        let mut listed = LISTED.lock().unwrap_or_else(PoisonError::into_inner);
        listed.retain(|known| known.path != path || known.state == state);
        if let Some(known) = listed.iter().find(|known| known.path == path) {
            return Ok(Arc::clone(&known.export));
        }
        let export = Arc::new(self.read_export(file)?);
        let known = ListedFile { path: path.to_owned(), state, export: Arc::clone(&export) };
        push_bounded(&mut listed, MAX_LISTED_FILES, known);
        Ok(export)
    }

    /// Reads an export from its beginning and finds its conversations.
    fn read_export(&self, content: impl Read) -> io::Result<ListedExport> {
        let mut export =
            ListedExport { conversations: Vec::new(), rows: HashMap::new(), defects: Vec::new() };
        let mut bad = BadParts::default();
        let mut add = |element: ListElement<'_>| self.add_element(&element, &mut export, &mut bad);
        let end = split_list(content, &mut add)?;
        export.defects.extend(bad.defects());
        if let ListEnd::Cut(at) = end {
            // Other messages of any conversation may be behind the cut.
            let is_whole = self.messages.is_some();
            if !is_whole {
                export.conversations.clear();
                export.rows.clear();
            }
            let lost = if is_whole { "the conversations from there on are" } else { "its rest is" };
            let message = format!(
                "the export ends at byte {at} in the middle of its list: {lost} missing; download \
                 it again"
            );
            export.defects.push(SourceDefect { kind: ProblemKind::Unreadable, message });
        }
        Ok(export)
    }

    /// Adds an element of the list. What cannot be read of it is added to `bad`.
    fn add_element(
        &self,
        element: &ListElement<'_>,
        export: &mut ListedExport,
        bad: &mut BadParts,
    ) {
        let ListElement { offset, length, beginning } = *element;
        let legible = to_legible_text(beginning);
        let mut left_out = Vec::new();
        let text = repair_json(&legible, &mut left_out).unwrap_or_default();
        // Of a conversation that is too large, the beginning ends anywhere.
        if length == beginning.len() as u64 {
            for part in left_out {
                let at = part.as_ptr() as usize - legible.as_ptr() as usize;
                bad.left_out.add(|| {
                    format!(
                        "{} bytes at byte {} of the export are not valid JSON and were left out",
                        part.len(),
                        offset + at as u64
                    )
                });
            }
        }
        let ConversationParts { info, messages, .. } =
            ConversationParts::read(&text, self.messages);
        let message_bytes = match self.messages {
            Some(_) => messages.iter().map(|message| message.get().len() as u64).sum(),
            None => length.min(text.len() as u64),
        };
        let Some(mut id) = (self.id)(&info).filter(|id| !id.is_empty()) else {
            return bad.without_id.add(|| {
                format!(
                    "the conversation of {length} bytes at byte {offset} has no id to know it by"
                )
            });
        };
        let updated_us = info.get(self.updated).and_then(parse_json_time).unwrap_or(0);
        let hash = xxh3_64(beginning);
        match export.rows.get(&id) {
            Some(row) if self.messages.is_none() => {
                let known = &mut export.conversations[*row];
                known.places.push((offset, length));
                known.message_bytes += message_bytes;
                known.updated_us = known.updated_us.max(updated_us);
                known.hash = known.hash.wrapping_add(hash);
                return;
            }
            Some(_) => id = format!("{id}~{}", export.conversations.len()),
            None => {}
        }
        let places = vec![(offset, length)];
        export.rows.insert(id.clone(), export.conversations.len());
        export.conversations.push(Conversation { id, places, message_bytes, updated_us, hash });
    }
}

/// What could not be read of an export.
#[derive(Default)]
struct BadParts {
    left_out: CountedDefect,
    without_id: CountedDefect,
}

impl BadParts {
    fn defects(self) -> impl Iterator<Item = SourceDefect> {
        [self.left_out, self.without_id].into_iter().filter_map(CountedDefect::defect)
    }
}

/// A defect that an export may have any number of times: it is reported once.
#[derive(Default)]
struct CountedDefect {
    /// The message of the first one.
    first: String,
    count: u64,
}

impl CountedDefect {
    fn add(&mut self, message: impl FnOnce() -> String) {
        if self.count == 0 {
            self.first = message();
        }
        self.count += 1;
    }

    fn defect(self) -> Option<SourceDefect> {
        let message = match self.count {
            0 => return None,
            1 => self.first,
            count => format!("{}, and the same in {} more places", self.first, count - 1),
        };
        Some(SourceDefect { kind: ProblemKind::BadJson, message })
    }
}

/// Parses RFC 3339 text or seconds since 1970 into microseconds.
pub(crate) fn parse_json_time(time: &Json) -> Option<i64> {
    let Some(seconds) = time.as_f64() else { return parse_micros(time.as_str()) };
    #[expect(clippy::cast_possible_truncation, reason = "such a time is far below the limit")]
    let micros = (seconds.clamp(0.0, 1e11) * 1e6).round() as i64;
    Some(micros)
}

/// A conversation, split into its messages and its other fields.
#[derive(Default)]
struct ConversationParts<'a> {
    info: Fields,
    messages: Vec<&'a RawValue>,
    /// True if it has the field of the messages.
    has_messages: bool,
}

impl<'a> ConversationParts<'a> {
    /// Splits the JSON of a conversation, whose field `field` has the messages, if it has any.
    fn read(text: &'a str, field: Option<&str>) -> Self {
        let mut parts = Self::default();
        for (key, value) in raw_fields(text) {
            if field == Some(key.as_str()) {
                parts.has_messages = true;
                parts.messages = serde_json::from_str(value.get()).unwrap_or_else(|_| {
                    raw_fields(value.get()).into_iter().map(|(_, message)| message).collect()
                });
            } else {
                // What is nested too deep is nothing that is read.
                let value = serde_json::from_str(value.get()).unwrap_or_default();
                parts.info.insert(key, value);
            }
        }
        parts
    }
}

/// Returns the fields of a JSON object in their order. What is no object has none.
fn raw_fields(json: &str) -> Vec<(String, &RawValue)> {
    let mut fields = Vec::new();
    // The JSON was repaired.
    let _ = serde_json::Deserializer::from_str(json).deserialize_map(FieldsVisitor(&mut fields));
    fields
}

/// Collects the fields of an object.
struct FieldsVisitor<'p, 'a>(&'p mut Vec<(String, &'a RawValue)>);

impl<'de> Visitor<'de> for FieldsVisitor<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(field) = map.next_entry()? {
            self.0.push(field);
        }
        Ok(())
    }
}

/// An object in the list of an export.
struct ListElement<'b> {
    offset: u64,
    /// Length in bytes.
    length: u64,
    /// Its bytes, at most [`MAX_DOCUMENT_BYTES`] of them.
    beginning: &'b [u8],
}

/// Returns the first object in the list of an export, or its beginning. `None` if the file is no such
/// list.
fn read_first_element(mut content: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    content.by_ref().take(HEAD_BYTES).read_to_end(&mut head)?;
    let list = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head).trim_ascii_start();
    if !list.starts_with(b"[") {
        return Ok(None);
    }
    let mut first = None;
    let mut splitter = ListSplitter::default();
    let mut chunk = list.to_vec();
    loop {
        splitter.read_chunk(&chunk, 0, &mut |element| {
            first.get_or_insert_with(|| element.beginning.to_vec());
        });
        if first.is_some() || splitter.is_closed || splitter.start.is_none() {
            return Ok(first);
        }
        chunk.clear();
        if content.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut chunk)? == 0 {
            return Ok(Some(splitter.beginning));
        }
    }
}

/// How the list of an export ends.
#[derive(Debug, PartialEq, Eq)]
enum ListEnd {
    Closed,
    /// The file ends at this byte.
    Cut(u64),
}

/// Passes the objects of a list to `take`. An object in which the file ends is not passed: a document
/// that lost its end would replace the one that was read before.
fn split_list(
    mut content: impl Read,
    take: &mut dyn FnMut(ListElement<'_>),
) -> io::Result<ListEnd> {
    let mut splitter = ListSplitter::default();
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        let read = match content.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        splitter.read_chunk(&chunk[..read], at, take);
        at += read as u64;
        if splitter.is_closed {
            return Ok(ListEnd::Closed);
        }
    }
    Ok(ListEnd::Cut(at))
}

/// Finds the objects of a list by their brackets.
#[derive(Default)]
struct ListSplitter {
    /// Number of open brackets; 1 in the list.
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    is_closed: bool,
    /// Offset of the object that is open.
    start: Option<u64>,
    beginning: Vec<u8>,
}

impl ListSplitter {
    /// Reads the bytes of the file from offset `at` on.
    fn read_chunk(&mut self, chunk: &[u8], at: u64, take: &mut dyn FnMut(ListElement<'_>)) {
        let mut next = 0;
        // The bytes of the open object in this chunk begin here.
        let mut kept = 0;
        while let Some(byte) = chunk.get(next).filter(|_| !self.is_closed) {
            if self.is_escaped {
                self.is_escaped = false;
            } else if self.is_in_string {
                let Some(found) = memchr::memchr2(b'"', b'\\', &chunk[next..]) else { break };
                next += found;
                self.is_escaped = chunk[next] == b'\\';
                self.is_in_string = self.is_escaped;
            } else {
                match byte {
                    b'"' => self.is_in_string = true,
                    b'{' | b'[' => {
                        if self.depth == 1 {
                            self.start = Some(at + next as u64);
                            kept = next;
                        }
                        self.depth += 1;
                    }
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 1 {
                            self.keep(&chunk[kept..=next]);
                            self.end_element(at + next as u64 + 1, take);
                        }
                        self.is_closed = self.depth == 0;
                    }
                    _ => {}
                }
            }
            next += 1;
        }
        if self.start.is_some() {
            self.keep(&chunk[kept..]);
        }
    }

    /// Keeps bytes of the open object, as many as a document may have.
    fn keep(&mut self, bytes: &[u8]) {
        let limit = usize::try_from(MAX_DOCUMENT_BYTES).unwrap_or(usize::MAX);
        let room = limit.saturating_sub(self.beginning.len());
        self.beginning.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    /// Passes the open object, which ends at offset `end`.
    fn end_element(&mut self, end: u64, take: &mut dyn FnMut(ListElement<'_>)) {
        if let Some(offset) = self.start.take() {
            take(ListElement { offset, length: end - offset, beginning: &self.beginning });
            self.beginning.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Gives its bytes in pieces of at most this length.
    struct Pieces<'b>(&'b [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let length = self.1.min(self.0.len()).min(into.len());
            into[..length].copy_from_slice(&self.0[..length]);
            self.0 = &self.0[length..];
            Ok(length)
        }
    }

    /// The elements of a list that is read in pieces, and its end.
    fn elements(list: &[u8], piece: usize) -> (Vec<(u64, String)>, ListEnd) {
        let mut found = Vec::new();
        let end = split_list(Pieces(list, piece), &mut |element| {
            let text = String::from_utf8_lossy(element.beginning).into_owned();
            assert_eq!(element.length, text.len() as u64);
            found.push((element.offset, text));
        });
        (found, end.expect("reads"))
    }

    #[test]
    fn brackets_and_quotes_in_texts_do_not_end_a_conversation() {
        let list = br#" [{"a":"]}\"[{\\"} ,
 {"b":[{"c":[]}],"d":"\\\""},{}] {"e":1}"#;
        let want =
            [r#"{"a":"]}\"[{\\"}"#, r#"{"b":[{"c":[]}],"d":"\\\""}"#, "{}"].map(str::to_owned);
        for piece in 1..=list.len() {
            let (found, end) = elements(list, piece);
            assert_eq!(end, ListEnd::Closed);
            for (offset, text) in &found {
                let offset = usize::try_from(*offset).expect("fits");
                assert_eq!(&list[offset..offset + text.len()], text.as_bytes());
            }
            assert_eq!(found.into_iter().map(|(_, text)| text).collect::<Vec<_>>(), want);
        }
    }

    proptest! {
        #[test]
        fn an_export_that_is_cut_anywhere_gives_what_is_before_the_cut(
            texts in proptest::collection::vec("[\\[\\]{}\"\\\\a,:é]{0,9}", 1..6),
            cut in any::<proptest::sample::Index>(),
            piece in 1usize..9,
        ) {
            let whole: Vec<String> =
                texts.iter().map(|text| serde_json::json!({ "x": [text] }).to_string()).collect();
            let list = format!("[{}]", whole.join(", "));
            let (found, end) = elements(list.as_bytes(), piece);
            prop_assert_eq!(end, ListEnd::Closed);
            let found: Vec<String> = found.into_iter().map(|(_, text)| text).collect();
            prop_assert_eq!(&found, &whole);

            let cut = cut.index(list.len());
            let mut before = 0;
            let end = split_list(Pieces(&list.as_bytes()[..cut], piece), &mut |element| {
                before += usize::from(whole.iter().any(|text| text.as_bytes() == element.beginning));
            });
            prop_assert_eq!(end.expect("reads"), ListEnd::Cut(cut as u64));
            let complete = whole.iter().scan(1, |at, text| {
                *at += text.len() + 2;
                Some(*at - 2)
            });
            prop_assert_eq!(before, complete.filter(|end| *end <= cut).count());
        }
    }
}
