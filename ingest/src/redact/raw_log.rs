//! Masks secrets in the bytes of a log: in the decoded strings of its JSON. All other bytes, and the
//! values that an agent sends back to its service, stay as they are.
//!
//! ```text
//! {"input":{"command":"deploy --token kJ8dPq2m..."},"signature":"EqQB..."}
//!                                     ^ masked                    ^ never touched
//! ```

use std::borrow::Cow;
use std::collections::VecDeque;

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;

use super::json_strings::{
    JsonString, decode_string, for_each_string, is_bracketed, is_json, is_json_sequence, raw_offset,
};
use super::places::{SecretRange, find_all_places, replace_places};
use super::redactor::Redactor;

/// Bytes of a log before a result in which its call is looked for. A result says what the call
/// printed, and some secrets are recognised by the command only.
pub const CALL_WINDOW_BYTES: u64 = 256 << 10;

/// Maximum number of calls that are remembered.
const MAX_CALLS: usize = 256;

/// Maximum number of JSON texts inside each other.
const MAX_DEPTH: usize = 4;

/// Strings of fewer bytes have no secret.
const MIN_STRING_BYTES: usize = 4;

/// Keys of the id of a call, and, but for the first, of the call that a result is of.
const CALL_KEYS: [&str; 7] =
    ["id", "call_id", "callId", "tool_call_id", "toolCallId", "tool_use_id", "toolUseId"];

/// Masks a log record by record, in their order.
pub struct RawLogMasker<'r> {
    redactor: &'r Redactor,
    /// The last calls with a command.
    calls: VecDeque<RecentCall>,
}

/// A call of a log.
struct RecentCall {
    /// Position of its line in the log.
    offset: u64,
    /// Hashes of its ids.
    ids: Vec<u64>,
    command: String,
}

/// The ids and the command of a record.
#[derive(Default)]
struct RecordLinks {
    ids: Vec<u64>,
    result_ids: Vec<u64>,
    command: String,
}

impl<'r> RawLogMasker<'r> {
    /// Creates a masker for the log from its beginning.
    pub fn new(redactor: &'r Redactor) -> Self {
        Self { redactor, calls: VecDeque::new() }
    }

    /// Notes the calls of lines that precede those to be masked. `offset` is the position of `lines` in
    /// the log, where a line begins.
    pub fn skip_lines(&mut self, lines: &[u8], offset: u64) {
        let mut at = offset;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            self.note_call(at, RecordLinks::of_line(line));
            at += line.len() as u64;
        }
    }

    /// Masks whole lines. `offset` is their position in the log.
    pub fn mask_lines<'l>(&mut self, lines: &'l [u8], offset: u64) -> Cow<'l, [u8]> {
        let mut places = Vec::new();
        let mut start = 0;
        for line in lines.split_inclusive(|byte| *byte == b'\n') {
            let at = offset + start as u64;
            let links = RecordLinks::of_line(line);
            let printed_by = self.find_command(&links, at).unwrap_or_default().to_owned();
            let first = places.len();
            self.find_in_record(line, &printed_by, &mut places);
            for place in &mut places[first..] {
                place.range = place.range.start + start..place.range.end + start;
            }
            self.note_call(at, links);
            start += line.len();
        }
        replace_places(lines, &places)
    }

    /// Masks a document.
    pub fn mask_document<'d>(&self, document: &'d [u8]) -> Cow<'d, [u8]> {
        let mut places = Vec::new();
        // The output of a tool may look like JSON.
        if is_json_sequence(document) {
            self.find_in_record(document, "", &mut places);
        } else {
            places = find_text_places(self.redactor, document);
        }
        replace_places(document, &places)
    }

    fn note_call(&mut self, offset: u64, links: RecordLinks) {
        if links.command.is_empty() || links.ids.is_empty() {
            return;
        }
        if self.calls.len() == MAX_CALLS {
            self.calls.pop_front();
        }
        self.calls.push_back(RecentCall { offset, ids: links.ids, command: links.command });
    }

    /// Returns the command of the call that a record has the result of. Calls too far before it do not
    /// count, so that the same is masked whether a log is masked in pieces or at once.
    fn find_command(&self, links: &RecordLinks, offset: u64) -> Option<&str> {
        let is_near = |call: &&RecentCall| call.offset + CALL_WINDOW_BYTES >= offset;
        let mut near = self.calls.iter().rev().take_while(is_near);
        let call = near.find(|call| call.ids.iter().any(|id| links.result_ids.contains(id)))?;
        Some(&call.command)
    }

    /// Finds the secrets of a record. What is not JSON is searched as text.
    fn find_in_record(&self, bytes: &[u8], printed_by: &str, places: &mut Vec<SecretRange>) {
        if is_bracketed(bytes) {
            self.find_in_json(bytes, printed_by, 0, places);
            return;
        }
        places.extend(find_text_places(self.redactor, bytes));
    }

    /// Finds the secrets in the strings of a JSON text.
    fn find_in_json(
        &self,
        bytes: &[u8],
        printed_by: &str,
        depth: usize,
        places: &mut Vec<SecretRange>,
    ) {
        for_each_string(bytes, &mut |string| {
            if string.raw.len() < MIN_STRING_BYTES || string.is_opaque() {
                return;
            }
            let text = decode_string(string.raw, None);
            let mut found = self.find_in_string(&text, &string, printed_by, depth);
            if found.is_empty() {
                return;
            }
            if matches!(text, Cow::Owned(_)) {
                let mut parts = Vec::new();
                decode_string(string.raw, Some(&mut parts));
                for place in &mut found {
                    let end = raw_offset(&parts, place.range.end);
                    place.range = raw_offset(&parts, place.range.start)..end;
                }
            }
            places.extend(found.into_iter().map(|place| place.moved_by(string.range.start)));
        });
    }

    /// Finds the secrets of a decoded string.
    fn find_in_string(
        &self,
        text: &str,
        string: &JsonString<'_>,
        printed_by: &str,
        depth: usize,
    ) -> Vec<SecretRange> {
        let mut found = Vec::new();
        if depth < MAX_DEPTH && is_bracketed(text.as_bytes()) && is_json(text) {
            self.find_in_json(text.as_bytes(), printed_by, depth + 1, &mut found);
            return found;
        }
        if string.is_key {
            return find_all_places(self.redactor, text, "", None);
        }
        if !printed_by.is_empty() {
            found = find_all_places(self.redactor, text, printed_by, None);
        }
        if found.is_empty() {
            found = find_named_places(self.redactor, text, string);
        }
        found
    }
}

/// Returns the places of secrets in bytes that are text, in order. Other bytes among them are left out.
pub(crate) fn find_text_places(redactor: &Redactor, bytes: &[u8]) -> Vec<SecretRange> {
    let mut places = Vec::new();
    let mut start = 0;
    for chunk in bytes.utf8_chunks() {
        let found = find_all_places(redactor, chunk.valid(), "", None).into_iter();
        places.extend(found.map(|place| place.moved_by(start)));
        start += chunk.valid().len() + chunk.invalid().len();
    }
    places
}

/// Returns the places of secrets in `text`, the decoded text of a string, in order. As calls are shown: the
/// name of a value says that it is a secret.
pub(crate) fn find_named_places(
    redactor: &Redactor,
    text: &str,
    string: &JsonString<'_>,
) -> Vec<SecretRange> {
    let mut named = String::with_capacity(string.key.len() + 2 + text.len());
    let is_pair = string.key == b"value" && !string.name.is_empty();
    named.push_str(&decode_string(if is_pair { string.name } else { string.key }, None));
    named.push_str(": ");
    let start = named.len();
    named.push_str(text);
    let mut found = Vec::new();
    for place in find_all_places(redactor, &named, "", None) {
        if place.range.end > start {
            let range = place.range.start.max(start) - start..place.range.end - start;
            found.push(SecretRange { range, ..place });
        }
    }
    found
}

impl RecordLinks {
    /// Collects the links of a line.
    fn of_line(line: &[u8]) -> Self {
        let mut links = Self::default();
        let has_command =
            [&b"command"[..], b"cmd"].iter().any(|word| memmem::find(line, word).is_some());
        links.add_strings(line, has_command, 0);
        links
    }

    fn add_strings(&mut self, bytes: &[u8], has_command: bool, depth: usize) {
        for_each_string(bytes, &mut |string| {
            if string.is_key {
                return;
            }
            if let Some(at) = CALL_KEYS.iter().position(|key| key.as_bytes() == string.key) {
                let id = xxh3_64(string.raw);
                self.ids.push(id);
                if at > 0 {
                    self.result_ids.push(id);
                }
            }
            if !has_command {
                return;
            }
            if matches!(string.key, b"command" | b"cmd") {
                if !self.command.is_empty() {
                    self.command.push(' ');
                }
                self.command.push_str(&decode_string(string.raw, None));
            } else if depth < MAX_DEPTH && is_bracketed(string.raw) {
                let text = decode_string(string.raw, None);
                if is_json(&text) {
                    self.add_strings(text.as_bytes(), true, depth + 1);
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The token that GitHub's documentation shows, in the shape of one.
    const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

    fn mask(lines: &str) -> String {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let mut masker = RawLogMasker::new(&redactor);
        let masked = masker.mask_lines(lines.as_bytes(), 0).into_owned();
        let whole = String::from_utf8(masked).expect("UTF-8");
        // In pieces it is the same.
        let lines: Vec<&str> = lines.split_inclusive('\n').collect();
        for cut in 0..=lines.len() {
            let (before, after) = (lines[..cut].concat(), lines[cut..].concat());
            let mut first = RawLogMasker::new(&redactor);
            let mut second = RawLogMasker::new(&redactor);
            second.skip_lines(before.as_bytes(), 0);
            let pieces = [
                first.mask_lines(before.as_bytes(), 0),
                second.mask_lines(after.as_bytes(), before.len() as u64),
            ];
            assert_eq!(pieces.concat(), whole.as_bytes(), "cut at line {cut}");
        }
        whole
    }

    /// The time for a line must not grow faster than the line.
    #[test]
    fn many_secrets_in_one_line_cost_no_more_each() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let mask = |count: usize| {
            let line = format!("{{\"text\":\"{}\"}}\n", format!("x {TOKEN} ").repeat(count));
            let start = std::time::Instant::now();
            let masked = RawLogMasker::new(&redactor).mask_lines(line.as_bytes(), 0).len();
            (start.elapsed(), masked)
        };
        let (few, _) = mask(2_000);
        let (many, masked) = mask(64_000);
        assert!(masked > 64_000 * 20);
        assert!(many < few * 32 * 4, "{few:?} for 2,000 and {many:?} for 64,000");
    }

    #[test]
    fn only_secrets_change() {
        let mask_word = "[REDACTED:github_token]";
        for line in [
            r#"{"a" : "x TOKEN y", "b":[1, "\u00e9\/ TOKEN\n"], "n": 1.50 }"#,
            r#"{"arguments":"{\"a\": \"TOKEN\", \"b\":\"\\u00e9\"}"}"#,
            r#"{"TOKEN": 1}"#,
            r#"{"text":"cut TOKEN"#,
            "no JSON TOKEN\r\n",
        ] {
            let masked = mask(&line.replace("TOKEN", TOKEN));
            assert_eq!(masked, line.replace("TOKEN", mask_word), "{line}");
        }
    }

    #[test]
    fn a_document_that_only_looks_like_json_is_searched_as_text() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let text = format!("[begin] {TOKEN}\n[end]\n");
        let masked = RawLogMasker::new(&redactor).mask_document(text.as_bytes()).into_owned();
        assert_eq!(masked, b"[begin] [REDACTED:github_token]\n[end]\n");
    }

    #[test]
    fn sealed_values_ids_and_images_stay() {
        for key in ["signature", "encrypted_content", "thoughtSignature", "tool_use_id", "uuid"] {
            let line = format!(r#"{{"{key}":"{TOKEN}"}}"#);
            assert_eq!(mask(&line), line);
        }
        let image = format!(r#"{{"source":{{"data":"iVBORw0KGgo{}"}}}}"#, "AAAA".repeat(40));
        assert_eq!(mask(&image), image);
    }

    #[test]
    fn a_name_or_a_command_says_that_a_value_is_a_secret() {
        let masked = "[REDACTED:";
        for line in [
            r#"{"input":{"password":"kJ8dPq2mXv7Lr4TzWb9"}}"#,
            r#"{"env":[{"name":"API_KEY","value":"kJ8dPq2mXv7Lr4TzWb9"}]}"#,
            r#"{"arguments":"{\"password\":\"kJ8dPq2mXv7Lr4TzWb9\"}"}"#,
        ] {
            let shown = mask(line);
            assert!(shown.contains(masked) && !shown.contains("kJ8"), "{shown}");
        }
        let call = r#"{"content":[{"id":"t1","input":{"command":"vault kv get -field=password secret/db"}}]}"#;
        let result = r#"{"content":[{"tool_use_id":"t1","content":"barnacle"}]}"#;
        let shown = mask(&format!("{call}\n{result}\n"));
        assert!(shown.starts_with(call) && !shown.contains("barnacle"), "{shown}");
        let other = result.replace("t1", "t2");
        assert_eq!(mask(&format!("{call}\n{other}\n")), format!("{call}\n{other}\n"));
    }

    #[test]
    fn offsets_in_a_string_with_escapes_and_wrong_bytes_are_those_of_the_log() {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let mut line = br#"{"text":"\ud83d\ude00 \ud800 "#.to_vec();
        line.extend_from_slice(b"\xff\xfe ");
        let start = line.len();
        line.extend_from_slice(TOKEN.as_bytes());
        line.extend_from_slice(b" \\t end\"}\n");
        let masked = RawLogMasker::new(&redactor).mask_lines(&line, 0).into_owned();
        assert_eq!(masked[..start], line[..start]);
        assert!(masked[start..].starts_with(b"[REDACTED:github_token] \\t end"));
    }
}
