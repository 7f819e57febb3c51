//! Finds the arguments of tool calls in the raw record of their events.
//!
//! The store keeps arguments as text. The value with this text in the record is the arguments,
//! whatever the format of the log:
//!
//! ```text
//! command: ls -l
//! timeout: 5            {"type":"tool_use","name":"Bash","input":{"command":"ls -l","timeout":5}}
//! ```

use std::collections::{HashMap, HashSet};

use serde_json::Value as Json;

use super::shared::arguments::Arguments;
use crate::redact::{Redactor, find_secrets, has_placeholder, mask_found_secrets};
use crate::text::json::{LineItem, Parser, legible_json};
use crate::text::sanitize::clean;

/// Maximum depth of JSON inside the strings of JSON.
const MAX_EMBEDDED_DEPTH: u8 = 2;

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct CallArguments {
    /// The arguments as an object, cleaned and with masked secrets.
    pub object: Json,
    /// The paths that they name.
    pub files: Vec<String>,
    /// The command line that they run; empty if there is none.
    pub command: String,
}

/// Finds the objects in a record whose texts as arguments are `texts`, which are cleaned and masked.
/// The record is searched once. A result shows nothing that its text does not show, and is missing if
/// the record has no such object.
pub fn find_call_arguments<'t>(
    record: &[u8],
    texts: &[&'t str],
    redactor: &Redactor,
) -> HashMap<&'t str, CallArguments> {
    let mut search = ArgumentSearch {
        texts: texts.iter().copied().collect(),
        redactor,
        found: HashMap::new(),
        parser: Parser::default(),
    };
    if let Ok(record) = serde_json::from_str(&legible_json(record)) {
        search.find_in(&record, 0);
    }
    search.found
}

struct ArgumentSearch<'t, 'r> {
    /// The texts that are not found yet.
    texts: HashSet<&'t str>,
    redactor: &'r Redactor,
    found: HashMap<&'t str, CallArguments>,
    parser: Parser,
}

impl ArgumentSearch<'_, '_> {
    /// Searches a value, inner objects first.
    fn find_in(&mut self, value: &Json, depth: u8) {
        if self.texts.is_empty() {
            return;
        }
        match value {
            Json::Object(fields) => {
                fields.values().for_each(|value| self.find_in(value, depth));
                self.match_object(value);
            }
            Json::Array(values) => values.iter().for_each(|value| self.find_in(value, depth)),
            Json::String(json) if depth < MAX_EMBEDDED_DEPTH && json.starts_with('{') => {
                if let Ok(embedded) = serde_json::from_str(json) {
                    self.find_in(&embedded, depth + 1);
                }
            }
            Json::String(_) | Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
    }

    /// Takes an object as arguments if it has one of the texts: as it is, cleaned, or masked.
    fn match_object(&mut self, object: &Json) {
        if self.texts.is_empty() {
            return;
        }
        let json = object.to_string();
        let arguments = self.read_arguments(&json);
        let shown = arguments.decoded().text;
        if self.take_arguments(object, &arguments) {
            return;
        }
        let is_masked = self.texts.iter().any(|text| has_placeholder(text));
        if !is_masked && !self.texts.contains(&*clean(shown)) {
            return;
        }

        let mut object = object.clone();
        if is_masked {
            mask_arguments(self.redactor, &mut object, &arguments);
            let arguments = self.read_arguments(&object.to_string());
            if self.take_arguments(&object, &arguments) {
                return;
            }
        }
        change_strings(&mut object, &mut |text| *text = clean(text).into_owned());
        let arguments = self.read_arguments(&object.to_string());
        self.take_arguments(&object, &arguments);
    }

    /// Takes an object if its text is one of those that are not found yet. Returns whether it is.
    fn take_arguments(&mut self, object: &Json, arguments: &Arguments) -> bool {
        let Some(text) = self.texts.take(arguments.decoded().text) else { return false };
        self.found.insert(text, CallArguments::new(object.clone(), arguments));
        true
    }

    fn read_arguments(&mut self, json: &str) -> Arguments {
        let mut arguments = Arguments::default();
        self.parser.for_each_item(json.as_bytes(), &mut |item| {
            if let LineItem::Object(object, _) = item {
                arguments.read_value(object);
            }
        });
        arguments
    }
}

impl CallArguments {
    fn new(object: Json, arguments: &Arguments) -> Self {
        let decoded = arguments.decoded();
        Self { object, files: decoded.files.to_vec(), command: decoded.command.to_owned() }
    }
}

/// Masks the secrets of arguments as those of an event are masked: what their text, their command and
/// their files show.
fn mask_arguments(redactor: &Redactor, object: &mut Json, arguments: &Arguments) {
    let decoded = arguments.decoded();
    let shown = [decoded.text, decoded.command].into_iter();
    let shown = shown.chain(decoded.files.iter().map(String::as_str));
    let secrets: Vec<_> = shown.flat_map(|text| find_secrets(redactor, text, "")).collect();
    change_strings(object, &mut |text| {
        *text = mask_found_secrets(redactor, text, &secrets);
    });
}

/// Changes all strings of a value, also the names of fields.
fn change_strings(value: &mut Json, change: &mut dyn FnMut(&mut String)) {
    match value {
        Json::String(text) => change(text),
        Json::Array(values) => values.iter_mut().for_each(|value| change_strings(value, change)),
        Json::Object(fields) => {
            let mut changed = serde_json::Map::new();
            for (mut name, mut value) in std::mem::take(fields) {
                change(&mut name);
                change_strings(&mut value, change);
                changed.insert(name, value);
            }
            *fields = changed;
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn find(record: &str, text: &str) -> Option<CallArguments> {
        let redactor = Redactor::new(&[]).expect("the built-in rules");
        find_call_arguments(record.as_bytes(), &[text], &redactor).remove(text)
    }

    #[test]
    fn arguments_are_found_by_their_text() {
        let record =
            r#"{"content":[{"input":{"path":"a.rs"}},{"input":{"command":"ls -l","timeout":5}}]}"#;
        let found = find(record, "command: ls -l\ntimeout: 5").expect("found");
        assert_eq!(found.object, json!({ "command": "ls -l", "timeout": 5 }));
        assert_eq!(found.command, "ls -l");
        assert_eq!(find(record, "path: a.rs").expect("found").files, ["a.rs"]);
        assert_eq!(find(record, "path: b.rs"), None);
        assert_eq!(find("not JSON", "path: b.rs"), None);
    }

    #[test]
    fn arguments_may_be_json_in_a_string() {
        let record = r#"{"payload":{"arguments":"{\"cmd\":[\"git\",\"status\"]}"}}"#;
        let found = find(record, "cmd:\n  - git\n  - status").expect("found");
        assert_eq!(found.object, json!({ "cmd": ["git", "status"] }));
    }

    #[test]
    fn arguments_show_what_the_text_shows() {
        let token = concat!("ghp_", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
        let record = format!(r#"{{"input":{{"command":"echo {token}"}}}}"#);
        let found = find(&record, "command: echo [REDACTED:github_token]").expect("found");
        assert_eq!(found.object, json!({ "command": "echo [REDACTED:github_token]" }));

        let split =
            format!(r#"{{"input":{{"command":"echo {}\u200b{}"}}}}"#, &token[..9], &token[9..]);
        let found = find(&split, "command: echo [REDACTED:github_token]");
        assert_eq!(found, None, "a secret split by an invisible character");
        let red = r#"{"input":{"a\u200b":"\u001b[31mred\u001b[0m"}}"#;
        assert_eq!(find(red, "a: red").expect("found").object, json!({ "a": "red" }));
    }
}
