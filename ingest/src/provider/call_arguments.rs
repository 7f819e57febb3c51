//! Finds the arguments of a tool call in the raw record of its event.
//!
//! The store keeps arguments as text. The value with this text in the record is the arguments,
//! whatever the format of the log:
//!
//! ```text
//! command: ls -l
//! timeout: 5            {"type":"tool_use","name":"Bash","input":{"command":"ls -l","timeout":5}}
//! ```

use serde_json::Value as Json;

use super::shared::arguments::Arguments;
use crate::redact::{Redactor, has_placeholder, mask_record};
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

/// Finds the object in a record whose text as arguments is `text`, which is cleaned and masked. The
/// result shows nothing that the text does not show. `None` if the record has no such object.
pub fn find_call_arguments(
    record: &[u8],
    text: &str,
    redactor: &Redactor,
) -> Option<CallArguments> {
    let record: Json = serde_json::from_str(&legible_json(record)).ok()?;
    let is_masked = has_placeholder(text);
    let mut search = ArgumentSearch { text, redactor, is_masked, parser: Parser::default() };
    search.find_in(&record, 0)
}

struct ArgumentSearch<'a> {
    text: &'a str,
    redactor: &'a Redactor,
    is_masked: bool,
    parser: Parser,
}

impl ArgumentSearch<'_> {
    fn find_in(&mut self, value: &Json, depth: u8) -> Option<CallArguments> {
        match value {
            Json::Object(fields) => {
                let inner = fields.values().find_map(|value| self.find_in(value, depth));
                inner.or_else(|| self.match_object(value))
            }
            Json::Array(values) => values.iter().find_map(|value| self.find_in(value, depth)),
            Json::String(json) if depth < MAX_EMBEDDED_DEPTH && json.starts_with('{') => {
                let embedded = serde_json::from_str(json).ok()?;
                self.find_in(&embedded, depth + 1)
            }
            Json::String(_) | Json::Null | Json::Bool(_) | Json::Number(_) => None,
        }
    }

    /// Returns an object as arguments if it has the text.
    fn match_object(&mut self, object: &Json) -> Option<CallArguments> {
        let mut json = object.to_string();
        if self.is_masked {
            let masked = mask_record(self.redactor, json.as_bytes()).into_owned();
            json = String::from_utf8(masked).ok()?;
        }
        let mut object = serde_json::from_str(&json).ok()?;
        let arguments = self.read_arguments(&json);
        if arguments.decoded().text == self.text {
            return Some(CallArguments::new(object, &arguments));
        }
        if clean(arguments.decoded().text) != self.text {
            return None;
        }
        clean_strings(&mut object);
        let arguments = self.read_arguments(&object.to_string());
        (arguments.decoded().text == self.text).then(|| CallArguments::new(object, &arguments))
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

/// Cleans all strings of a value, also the names of fields.
fn clean_strings(value: &mut Json) {
    match value {
        Json::String(text) => *text = clean(text).into_owned(),
        Json::Array(values) => values.iter_mut().for_each(clean_strings),
        Json::Object(fields) => {
            let mut cleaned = serde_json::Map::new();
            for (name, mut value) in std::mem::take(fields) {
                clean_strings(&mut value);
                cleaned.insert(clean(&name).into_owned(), value);
            }
            *fields = cleaned;
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
        find_call_arguments(record.as_bytes(), text, &redactor)
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
