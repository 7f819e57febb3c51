//! Finds the secrets in the string values of JSON text. What an agent sends back to its service, or
//! compares, stays as it is: signatures, encrypted reasoning, ids, hashes and pictures.

use std::ops::Range;

use serde::de::IgnoredAny;

use super::json_strings::{DecodedString, JsonString, for_each_string};
use crate::redact::{Redactor, SecretPlace, find_all_places, is_long};

/// Maximum depth of JSON text in strings of JSON text that is searched.
const MAX_NESTED_TEXTS: usize = 8;

/// Minimum length in bytes of a value that is a picture or another file.
const MIN_FILE_BYTES: usize = 64;

/// Finds the secrets in the records of a log.
pub(super) struct RecordScrubber<'r> {
    pub(super) redactor: &'r Redactor,
    /// The kind of secrets that are replaced; `None` for all.
    pub(super) kind: Option<&'r str>,
    /// True if the secrets of the events of a record are replaced also where they are short and
    /// nothing announces them.
    pub(super) is_thorough: bool,
}

impl RecordScrubber<'_> {
    /// Returns the places of secrets in the string values of JSON text, in order. `known` has kind
    /// and text of the secrets in the events of this text. Returns none if the text is not JSON.
    pub(super) fn find_places(&self, json: &str, known: &[(String, String)]) -> Vec<SecretPlace> {
        if !is_json(json) {
            return Vec::new();
        }
        let places = self.find_places_in(json, known, 0);
        // The text must stay JSON whatever was found in it.
        if places.is_empty() || is_json(&replace_places(json, &places)) {
            places
        } else {
            Vec::new()
        }
    }

    fn find_places_in(
        &self,
        json: &str,
        known: &[(String, String)],
        depth: usize,
    ) -> Vec<SecretPlace> {
        let mut places = Vec::new();
        for_each_string(json, &mut |JsonString { key, range }| {
            let written = json.get(range.clone()).unwrap_or_default();
            if written.is_empty() || is_sent_back(key) || is_file(key, written) {
                return;
            }
            let Some(decoded) = DecodedString::decode(written) else { return };
            for place in self.find_places_of_string(&decoded, known, depth) {
                let Range { start, end } = decoded.written_range(&place.range);
                let range = range.start + start..range.start + end;
                places.push(SecretPlace { range, kind: place.kind });
            }
        });
        places
    }

    fn find_places_of_string(
        &self,
        decoded: &DecodedString<'_>,
        known: &[(String, String)],
        depth: usize,
    ) -> Vec<SecretPlace> {
        let text = &*decoded.text;
        if depth < MAX_NESTED_TEXTS && text.trim_start().starts_with(['{', '[']) && is_json(text) {
            return self.find_places_in(text, known, depth + 1);
        }
        let is_sought = |secret: &str| self.is_thorough || is_long(secret);
        let mut places = find_all_places(self.redactor, text, known, &is_sought);
        places.retain(|place| self.kind.is_none_or(|kind| kind == place.kind));
        places
    }
}

/// Returns a text with placeholders at these places, which are in order.
pub(super) fn replace_places(text: &str, places: &[SecretPlace]) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut copied_end = 0;
    for place in places {
        replaced.push_str(text.get(copied_end..place.range.start).unwrap_or_default());
        replaced.push_str(&place.mask());
        copied_end = place.range.end;
    }
    replaced.push_str(text.get(copied_end..).unwrap_or_default());
    replaced
}

/// Returns whether a text is one or more values of JSON.
fn is_json(text: &str) -> bool {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>().peekable();
    values.peek().is_some() && values.all(|value| value.is_ok())
}

/// Returns whether the service of an agent, or the agent, expects the value of a field unchanged.
fn is_sent_back(key: &str) -> bool {
    let name: String = key.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect();
    if ["password", "secret", "token", "key", "client"].iter().any(|word| name.contains(word)) {
        return false;
    }
    let is_id = key.ends_with("Id")
        || key.ends_with("ID")
        || key.ends_with("_id")
        || key.ends_with("Uuid")
        || matches!(name.as_str(), "id" | "ids" | "uuid");
    is_id
        || name.contains("encrypted")
        || ["signature", "opaque", "hash", "checksum", "digest", "etag", "sha", "sha256"]
            .iter()
            .any(|end| name.ends_with(end))
}

/// Returns whether a string is a picture or another file in base64.
fn is_file(key: &str, written: &str) -> bool {
    if written.starts_with("data:") && written.contains(";base64,") {
        return true;
    }
    let holds_file =
        matches!(key, "data" | "base64" | "bytes" | "blob" | "image" | "b64_json" | "imageBytes");
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\\-_".contains(&byte);
    holds_file && written.len() >= MIN_FILE_BYTES && written.bytes().all(is_base64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::UserRule;

    fn scrub(json: &str, known: &[(&str, &str)], is_thorough: bool) -> String {
        let rule = UserRule { name: "boat".to_owned(), regex: "Kittiwake".to_owned() };
        let redactor = Redactor::new(&[rule]).expect("a rule");
        let known: Vec<(String, String)> =
            known.iter().map(|(kind, text)| ((*kind).to_owned(), (*text).to_owned())).collect();
        let scrubber = RecordScrubber { redactor: &redactor, kind: None, is_thorough };
        replace_places(json, &scrubber.find_places(json, &known))
    }

    #[test]
    fn only_the_secrets_of_string_values_are_replaced() {
        let json = r#"{ "Kittiwake" : "a\u0020Kittiwake\n" ,"n":1.50,"l":["Kittiwake\/x"]}"#;
        let wanted =
            r#"{ "Kittiwake" : "a\u0020[REDACTED:boat]\n" ,"n":1.50,"l":["[REDACTED:boat]\/x"]}"#;
        assert_eq!(scrub(json, &[], false), wanted);
    }

    #[test]
    fn json_in_strings_stays_json() {
        let json =
            r#"{"arguments":"{\"command\":[\"sail\",\"Kittiwake\\n\"],\"id\":\"Kittiwake\"}"}"#;
        let wanted = r#"{"arguments":"{\"command\":[\"sail\",\"[REDACTED:boat]\\n\"],\"id\":\"Kittiwake\"}"}"#;
        assert_eq!(scrub(json, &[], false), wanted);
    }

    #[test]
    fn what_the_agent_sends_back_stays() {
        for key in ["signature", "encrypted_content", "thoughtSignature", "id", "tool_use_id"] {
            let json = format!(r#"{{"{key}":"Kittiwake"}}"#);
            assert_eq!(scrub(&json, &[], true), json);
        }
        let picture = format!(r#"{{"data":"{}"}}"#, "Kittiwake".repeat(20));
        assert_eq!(scrub(&picture, &[], true), picture);
        assert!(!scrub(r#"{"access_key_id":"Kittiwake"}"#, &[], true).contains("Kittiwake"));
    }

    #[test]
    fn text_that_is_not_json_stays() {
        for text in ["Kittiwake", "{\"a\":\"Kittiwake\"", "{\"a\":\"Kittiwake\"} x", ""] {
            assert_eq!(scrub(text, &[], true), text);
        }
    }

    #[test]
    fn secrets_that_only_events_announce_are_found_by_their_text() {
        let known = [("password", "sea"), ("password", "barnacles")];
        let json = r#"{"a":"sea","b":"seaside barnacles"}"#;
        let some = r#"{"a":"sea","b":"seaside [REDACTED:password]"}"#;
        let all = r#"{"a":"[REDACTED:password]","b":"seaside [REDACTED:password]"}"#;
        assert_eq!(scrub(json, &known, false), some);
        assert_eq!(scrub(json, &known, true), all);
    }
}
