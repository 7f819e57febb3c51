//! Finds the secrets in the string values of JSON text. What an agent sends back to its service, or
//! compares, stays as it is: signatures, encrypted reasoning, ids, hashes and pictures.

use crate::redact::json_strings::{
    JsonString, decode_string, for_each_string, is_bracketed, is_json, is_json_sequence, raw_offset,
};
use crate::redact::raw_log::{find_named_places, find_text_places};
use crate::redact::{KnownSecrets, Redactor, SecretRange, find_all_places, replace_places};

/// Maximum depth of JSON text in strings of JSON text that is searched.
const MAX_NESTED_TEXTS: usize = 8;

/// Maximum length in bytes of a value whose name may say that it is a secret.
const MAX_NAMED_BYTES: usize = 4096;

/// Keys of values that say what a record is. A word in them is never a secret because an event has a
/// secret of this text.
const STRUCTURE_KEYS: [&[u8]; 12] = [
    b"type",
    b"subtype",
    b"role",
    b"kind",
    b"status",
    b"level",
    b"event",
    b"name",
    b"tool",
    b"model",
    b"provider",
    b"version",
];

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
    /// Returns the places of secrets in the string values of a line or a document, in order. `known` has
    /// kind and text of the secrets in the events of this text. A text that is not JSON, such as a damaged
    /// line, is searched as a whole.
    pub(super) fn find_places(&self, json: &str, known: &[(String, String)]) -> Vec<SecretRange> {
        if !is_json_sequence(json.as_bytes()) {
            return self.find_text_places(json.as_bytes());
        }
        let known = (!known.is_empty()).then(|| KnownSecrets::new(known, self.is_thorough));
        let places = self.find_places_in(json.as_bytes(), known.as_ref(), 0);
        // The text must stay JSON whatever was found in it.
        let is_still_json = || is_json_sequence(&replace_places(json.as_bytes(), &places));
        if places.is_empty() || is_still_json() { places } else { Vec::new() }
    }

    /// Returns the places of secrets in bytes that are not JSON, in order.
    pub(super) fn find_text_places(&self, bytes: &[u8]) -> Vec<SecretRange> {
        let mut places = find_text_places(self.redactor, bytes);
        places.retain(|place| self.kind.is_none_or(|kind| kind == place.kind));
        places
    }

    fn find_places_in(
        &self,
        json: &[u8],
        known: Option<&KnownSecrets<'_>>,
        depth: usize,
    ) -> Vec<SecretRange> {
        let mut places = Vec::new();
        for_each_string(json, &mut |string| {
            if string.is_key || string.raw.is_empty() || string.is_opaque() {
                return;
            }
            let known = known.filter(|_| !STRUCTURE_KEYS.contains(&string.key));
            let mut parts = Vec::new();
            let text = decode_string(string.raw, Some(&mut parts));
            // A string without escapes is written as it is.
            let written = |at: usize| if parts.is_empty() { at } else { raw_offset(&parts, at) };
            let places_of_string = self.find_places_of_string(&text, &string, known, depth);
            for SecretRange { range, kind } in places_of_string {
                let range = written(range.start)..written(range.end);
                places.push(SecretRange { range, kind }.moved_by(string.range.start));
            }
        });
        places
    }

    fn find_places_of_string(
        &self,
        text: &str,
        string: &JsonString<'_>,
        known: Option<&KnownSecrets<'_>>,
        depth: usize,
    ) -> Vec<SecretRange> {
        if depth < MAX_NESTED_TEXTS && is_bracketed(text.as_bytes()) && is_json(text) {
            return self.find_places_in(text.as_bytes(), known, depth + 1);
        }
        let mut places = find_all_places(self.redactor, text, "", known);
        if places.is_empty() && text.len() <= MAX_NAMED_BYTES {
            places = find_named_places(self.redactor, text, string);
        }
        places.retain(|place| self.kind.is_none_or(|kind| kind == place.kind));
        places
    }
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
        let places = scrubber.find_places(json, &known);
        String::from_utf8(replace_places(json.as_bytes(), &places).into_owned()).expect("UTF-8")
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
    fn text_that_is_not_json_is_searched_as_a_whole() {
        for text in ["Kittiwake", "{\"a\":\"Kittiwake\"", "{\"a\":\"Kittiwake\"} x", ""] {
            assert_eq!(scrub(text, &[], true), text.replace("Kittiwake", "[REDACTED:boat]"));
        }
    }

    #[test]
    fn secrets_that_only_events_announce_are_found_by_their_text() {
        let known = [("password", "sea"), ("password", "barnacles")];
        let json = r#"{"a":"sea","b":"seaside barnacles","type":"sea"}"#;
        let some = r#"{"a":"sea","b":"seaside [REDACTED:password]","type":"sea"}"#;
        let all = r#"{"a":"[REDACTED:password]","b":"seaside [REDACTED:password]","type":"sea"}"#;
        assert_eq!(scrub(json, &known, false), some);
        assert_eq!(scrub(json, &known, true), all);
    }
}
