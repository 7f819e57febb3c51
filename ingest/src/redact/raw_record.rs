//! Masks secrets in a raw record of a log: all other bytes stay as they are, and JSON stays valid.
//!
//! ```text
//! {"type":"tool_use","id":"toolu_1","input":{"command":"curl -H 'X-Api-Key: k8J...'"}}
//! {"type":"tool_use","id":"toolu_1","input":{"command":"curl -H 'X-Api-Key: [REDACTED:api_key]'"}}
//! ```
//!
//! Strings are decoded, masked and written again only if they have a secret. JSON inside a string
//! is masked as JSON. A record may be cut or damaged: strings are found without its structure.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde::de::IgnoredAny;

use super::redactor::Redactor;
use super::secrets::mask_word;
use crate::text::json::{LineItem, Parser, repair_text};
use crate::text::render;

/// Fields whose value an agent sends back to its service, or by which records refer to each other.
/// A changed byte would break the session, so they are not masked, unless they are in
/// [`CONTENT_FIELDS`].
const OPAQUE_FIELDS: &[&str] = &[
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "encryptedContent",
    "reasoning_opaque",
    "id",
    "uuid",
    "parentUuid",
    "parentId",
    "parent_id",
    "logicalParentUuid",
    "leafUuid",
    "sessionId",
    "session_id",
    "sessionID",
    "messageId",
    "message_id",
    "messageID",
    "requestId",
    "request_id",
    "responseId",
    "response_id",
    "promptId",
    "threadId",
    "thread_id",
    "conversation_id",
    "turn_id",
    "item_id",
    "call_id",
    "callId",
    "callID",
    "tool_call_id",
    "toolCallId",
    "tool_use_id",
    "toolUseId",
    "toolUseID",
    "agentId",
    "hash",
    "sha",
    "sha256",
    "commit_hash",
    "projectHash",
    "digest",
    "checksum",
];

/// Fields whose value is what a model, a tool or a user wrote. Names inside them are not the agent's.
const CONTENT_FIELDS: &[&str] = &[
    "input",
    "arguments",
    "args",
    "parameters",
    "output",
    "response",
    "result",
    "toolUseResult",
    "env",
    "environment",
];

/// Maximum length in bytes of a value that is masked together with the name of its field.
const MAX_NAMED_BYTES: usize = 4096;

/// Minimum length in bytes of base64 that counts as binary data, such as a picture.
const MIN_BINARY_BYTES: usize = 512;

/// Maximum depth of JSON inside the strings of JSON.
const MAX_EMBEDDED_DEPTH: u8 = 4;

/// Maximum number of rounds in which the record as a whole shows further secrets.
const MAX_ROUNDS: usize = 4;

/// Masks the secrets in the bytes of a record, or of a document as a whole. The result is equal to
/// the record if it has none.
///
/// ```rust
/// use ingest::redact::{Redactor, mask_record};
///
/// let redactor = Redactor::new(&[])?;
/// let record = br#"{"id":"r1","text":"password: \"tr0ub4dor&3x\"", "n": 1.50}"#;
///
/// let masked = mask_record(&redactor, record);
///
/// assert_eq!(&*masked, br#"{"id":"r1","text":"password: \"[REDACTED:password]\"", "n": 1.50}"#);
/// # Ok::<(), ingest::redact::RuleError>(())
/// ```
pub fn mask_record<'r>(redactor: &Redactor, record: &'r [u8]) -> Cow<'r, [u8]> {
    let Ok(text) = std::str::from_utf8(record) else { return mask_damaged(redactor, record) };
    match mask_text_of_record(redactor, text) {
        Cow::Borrowed(_) => Cow::Borrowed(record),
        Cow::Owned(masked) => Cow::Owned(masked.into_bytes()),
    }
}

/// Masks JSON, and what is not JSON as text too.
fn mask_text_of_record<'t>(redactor: &Redactor, text: &'t str) -> Cow<'t, str> {
    let masked = mask_json(redactor, text, 0);
    let mut values = serde_json::Deserializer::from_str(&masked).into_iter::<IgnoredAny>();
    if values.all(|value| value.is_ok()) {
        return masked;
    }
    match redactor.mask_with(&masked, "", &mut |_, _| {}) {
        Cow::Borrowed(_) => masked,
        Cow::Owned(again) => Cow::Owned(again),
    }
}

/// Masks the valid parts of bytes that are not all UTF-8.
fn mask_damaged<'r>(redactor: &Redactor, record: &'r [u8]) -> Cow<'r, [u8]> {
    let mut masked = Vec::with_capacity(record.len());
    for chunk in record.utf8_chunks() {
        masked.extend_from_slice(mask_text_of_record(redactor, chunk.valid()).as_bytes());
        masked.extend_from_slice(chunk.invalid());
    }
    if masked == record { Cow::Borrowed(record) } else { Cow::Owned(masked) }
}

/// Masks JSON: first each string by itself, then what the fields of the record show together, such as
/// a name and a value in two fields.
fn mask_json<'t>(redactor: &Redactor, json: &'t str, depth: u8) -> Cow<'t, str> {
    let mut masked = rewrite_strings(json, &mut |place, text| {
        if place.is_opaque { None } else { mask_string(redactor, place.field, text, depth) }
    });
    for _ in 0..MAX_ROUNDS {
        let secrets = secrets_of_whole(redactor, &masked);
        if secrets.is_empty() {
            break;
        }
        let again = rewrite_strings(&masked, &mut |place, text| {
            if place.is_opaque || is_binary(text) { None } else { mask_words(text, &secrets) }
        });
        let Cow::Owned(again) = again else { break };
        masked = Cow::Owned(again);
    }
    masked
}

/// Returns the kind and the text of each secret that the record shows as a whole.
fn secrets_of_whole(redactor: &Redactor, json: &str) -> Vec<(String, String)> {
    let mut shown = String::new();
    let (json, _) = repair_text(json.as_bytes());
    Parser::default().for_each_item(json.as_bytes(), &mut |item| {
        if let LineItem::Object(object, _) = item {
            render::begin_new_line(&mut shown);
            render::append_value(object, &mut shown);
        }
    });
    let mut secrets = Vec::new();
    redactor.mask_with(&shown, "", &mut |kind, secret| {
        secrets.push((kind.to_owned(), secret.to_owned()));
    });
    secrets
}

/// Masks these secrets wherever a text has them. `None` if it has none.
fn mask_words(text: &str, secrets: &[(String, String)]) -> Option<String> {
    let mut masked = Cow::Borrowed(text);
    for (kind, secret) in secrets {
        mask_word(&mut masked, secret, kind);
    }
    match masked {
        Cow::Borrowed(_) => None,
        Cow::Owned(masked) => Some(masked),
    }
}

/// Masks a decoded string, the value of `field`. `None` if it has no secret.
fn mask_string(redactor: &Redactor, field: &str, text: &str, depth: u8) -> Option<String> {
    if is_binary(text) {
        return None;
    }
    let is_json = depth < MAX_EMBEDDED_DEPTH
        && text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<IgnoredAny>(text).is_ok();
    let mut masked =
        if is_json { mask_json(redactor, text, depth + 1) } else { Cow::Borrowed(text) };

    masked = Cow::Owned(redactor.mask_with(&masked, "", &mut |_, _| {}).into_owned());
    if !field.is_empty() && masked.len() <= MAX_NAMED_BYTES {
        let lead = format!("{field}: ");
        let named = format!("{lead}{masked}");
        let with_name = redactor.mask_with(&named, "", &mut |_, _| {});
        if let Some(value) = with_name.strip_prefix(&lead) {
            masked = Cow::Owned(value.to_owned());
        }
    }
    (masked != text).then(|| masked.into_owned())
}

/// Returns whether a string is binary data in base64.
fn is_binary(text: &str) -> bool {
    let data = match text.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,").map_or("", |(_, data)| data),
        None => text,
    };
    data.len() >= MIN_BINARY_BYTES
        && data.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'='))
}

/// Where a string is in JSON.
struct StringPlace<'f> {
    /// The name of the field; that of the list for its elements. Empty for names themselves.
    field: &'f str,
    is_opaque: bool,
}

/// Replaces the strings of JSON for which `rewrite` returns another text, and leaves all other bytes.
/// Numbers are passed as text as well, and become strings if they are replaced. The JSON may be cut:
/// a string without an end ends with the text.
fn rewrite_strings<'t>(
    json: &'t str,
    rewrite: &mut dyn FnMut(&StringPlace<'_>, &str) -> Option<String>,
) -> Cow<'t, str> {
    let bytes = json.as_bytes();
    let mut out = String::new();
    let mut copied_end = 0;
    // The names of the fields that the open objects and lists are the values of.
    let mut open: Vec<String> = Vec::new();
    let mut field = String::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                open.push(field.clone());
                at += 1;
            }
            b'}' | b']' => {
                field = open.pop().unwrap_or_default();
                at += 1;
            }
            b'"' => {
                let end = string_end(bytes, at);
                let is_closed = end > at + 1 && bytes.get(end - 1) == Some(&b'"');
                let inner = &json[at + 1..if is_closed { end - 1 } else { end }];
                let text = decode_string(inner);
                let is_name = json[end..].trim_start().starts_with(':');
                let place = StringPlace {
                    field: if is_name { "" } else { &field },
                    is_opaque: !is_name && is_opaque(&field, &open),
                };
                if let Some(new) = rewrite(&place, &text) {
                    out.push_str(&json[copied_end..=at]);
                    append_escaped(&new, &mut out);
                    copied_end = at + 1 + inner.len();
                }
                if is_name {
                    field = text.into_owned();
                }
                at = end;
            }
            b'-' | b'0'..=b'9' => {
                let end = number_end(bytes, at);
                let place = StringPlace { field: &field, is_opaque: is_opaque(&field, &open) };
                if let Some(new) = rewrite(&place, &json[at..end]) {
                    out.push_str(&json[copied_end..at]);
                    out.push('"');
                    append_escaped(&new, &mut out);
                    out.push('"');
                    copied_end = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied_end == 0 && out.is_empty() {
        return Cow::Borrowed(json);
    }
    out.push_str(&json[copied_end..]);
    Cow::Owned(out)
}

/// Returns whether the value of a field is opaque. `open` are the fields around it.
fn is_opaque(field: &str, open: &[String]) -> bool {
    OPAQUE_FIELDS.contains(&field)
        && !open.iter().any(|outer| CONTENT_FIELDS.contains(&outer.as_str()))
}

/// Returns the end of the string that begins at `start`, after its closing quote if it has one.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        at += found;
        if bytes[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    bytes.len()
}

/// Returns the end of the number that begins at `start`.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let is_part = |b: &u8| b.is_ascii_digit() || matches!(b, b'-' | b'+' | b'.' | b'e' | b'E');
    start + bytes[start..].iter().take_while(|b| is_part(b)).count().max(1)
}

/// Decodes what is between the quotes of a string. What JSON does not allow there stays as it is.
fn decode_string(inner: &str) -> Cow<'_, str> {
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let quoted = format!("\"{inner}\"");
    let (quoted, _) = repair_text(quoted.as_bytes());
    serde_json::from_str(&quoted).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// Appends a text as JSON has it between the quotes of a string.
fn append_escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::UserRule;

    const TOKEN: &str = concat!("ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");

    fn mask(record: &str) -> String {
        let rule = UserRule { name: "boat".to_owned(), regex: "Kittiwake".to_owned() };
        let redactor = Redactor::new(&[rule]).expect("a rule");
        let masked = mask_record(&redactor, record.as_bytes());
        String::from_utf8(masked.into_owned()).expect("UTF-8")
    }

    #[test]
    fn all_other_bytes_stay() {
        let record =
            " {\"a\" : \"x\\u00e9\\/ \\ud83d\", \"n\":1.50e0,\t\"b\":[null,true , \"\"]}\r";
        assert_eq!(mask(record), record);
        let secret = record.replace("\"\"]", "\"Kittiwake\"]");
        assert_eq!(mask(&secret), record.replace("\"\"]", "\"[REDACTED:boat]\"]"));
    }

    #[test]
    fn decoded_strings_are_masked() {
        let escaped = r#"{"text":"say \"Kitti\u0077ake\"\nnow"}"#;
        assert_eq!(mask(escaped), r#"{"text":"say \"[REDACTED:boat]\"\nnow"}"#);
        let named = r#"{"settings":{"password":"tr0ub4dor&3x"}}"#;
        assert_eq!(mask(named), r#"{"settings":{"password":"[REDACTED:password]"}}"#);
        let name = r#"{"changes":{"/tmp/Kittiwake":1}}"#;
        assert_eq!(mask(name), r#"{"changes":{"/tmp/[REDACTED:boat]":1}}"#);
    }

    #[test]
    fn json_in_strings_stays_json() {
        let record = r#"{"arguments":"{\"command\":\"echo \\\"Kittiwake\\\"\",\"n\":1}"}"#;
        let masked = mask(record);
        let outer: serde_json::Value = serde_json::from_str(&masked).expect("JSON");
        let inner: serde_json::Value =
            serde_json::from_str(outer["arguments"].as_str().expect("text")).expect("JSON");
        assert_eq!(inner["command"], "echo \"[REDACTED:boat]\"");
    }

    #[test]
    fn opaque_fields_stay_outside_of_content() {
        let record = format!(r#"{{"id":"{TOKEN}","signature":"Kittiwake","input":{{"id":"x"}}}}"#);
        assert_eq!(mask(&record), record);
        let content = format!(r#"{{"input":{{"id":"{TOKEN}"}}}}"#);
        assert_eq!(mask(&content), r#"{"input":{"id":"[REDACTED:github_token]"}}"#);
    }

    #[test]
    fn names_and_values_in_two_fields_are_masked() {
        let record = r#"{"vars":[{"name":"DB_PASSWORD","value":"tr0ub4dor&3x"}]}"#;
        assert!(!mask(record).contains("tr0ub4dor"), "{}", mask(record));
    }

    #[test]
    fn damaged_records_are_masked_too() {
        for (record, wanted) in [
            (r#"{"text":"a Kittiwake b"#, r#"{"text":"a [REDACTED:boat] b"#),
            (r#""text":"Kittiwake"}]"#, r#""text":"[REDACTED:boat]"}]"#),
            (r#"{"text":"Kittiwake\"#, r#"{"text":"[REDACTED:boat]\\"#),
            ("not JSON: Kittiwake", "not JSON: [REDACTED:boat]"),
            ("", ""),
            ("\"", "\""),
            ("{\"", "{\""),
        ] {
            assert_eq!(mask(record), wanted, "{record}");
        }
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        let bytes = [b"{\"a\":\"\xff ".as_slice(), TOKEN.as_bytes(), b"\"}\xfe"].concat();
        let masked = mask_record(&redactor, &bytes);
        assert_eq!(&*masked, b"{\"a\":\"\xff [REDACTED:github_token]\"}\xfe");
    }

    #[test]
    fn pictures_stay() {
        let record = format!(r#"{{"data":"{}"}}"#, "QUJD".repeat(200));
        assert_eq!(mask(&record), record);
    }
}
