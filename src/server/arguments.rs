//! Reads the arguments of a tool and explains errors in them: the field, its value, the valid
//! values, and the value that was probably meant.

#![expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]

use schemas::tool::memory;
use schemas::{ErrorCode, ToolError, nearest};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use search::is_qualifier;
use tools::Interface;

/// Maximum number of characters of an unknown argument's name that a message repeats.
const MAX_NAME_CHARS: usize = 60;

/// Reads the arguments of the tool `name`. `interface` words the tools that errors name.
pub(super) fn parse_arguments<T: DeserializeOwned>(
    name: &str,
    mut arguments: Value,
    interface: Interface,
) -> Result<T, ToolError> {
    let schema = super::schema::input_schema(name);
    remove_blank_values(&mut arguments, schema);
    coerce_value(&mut arguments, schema);
    serde_path_to_error::deserialize(&arguments)
        .map_err(|error| explain_error(name, schema, &arguments, &error, interface))
}

/// Removes blank texts of optional arguments: some clients send every argument, and mean with a blank
/// text that it is absent.
fn remove_blank_values(arguments: &mut Value, schema: &Value) {
    let Some(values) = arguments.as_object_mut() else { return };
    let required: Vec<&str> = required_names(schema).collect();
    values.retain(|name, value| {
        let is_blank = value.as_str().is_some_and(|text| text.trim().is_empty());
        !is_blank || required.contains(&name.as_str()) || schema["properties"][name].is_null()
    });
}

/// Converts values that do not follow the schema but have a clear meaning, as models often write
/// them: a single value for a list, a list as text, a number as text, or the reverse.
fn coerce_value(value: &mut Value, schema: &Value) {
    if let (Value::Object(values), Some(properties)) =
        (&mut *value, schema["properties"].as_object())
    {
        for (key, value) in values {
            if let Some(schema) = properties.get(key) {
                coerce_value(value, schema);
            }
        }
    } else if accepts_type(schema, "array") {
        coerce_list(value, schema);
    } else if let Some(meant) = coerce_scalar(value, schema) {
        *value = meant;
    }
}

/// Converts a value to the list that `schema` describes, and then its items.
fn coerce_list(value: &mut Value, schema: &Value) {
    let items_have_names = schema["items"]["enum"].is_array();
    *value = match value.take() {
        Value::String(text) if text.trim_start().starts_with('[') => {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        }
        Value::String(text) if items_have_names && text.contains(',') => {
            text.split(',').map(|part| Value::from(part.trim())).collect()
        }
        single @ (Value::String(_) | Value::Object(_)) if !accepts_type(schema, "string") => {
            vec![single].into()
        }
        other => other,
    };

    for item in value.as_array_mut().into_iter().flatten() {
        coerce_value(item, &schema["items"]);
    }
}

/// Returns the text, number or boolean that a value of another type means; `None` if the meaning is
/// not clear or the value needs no conversion.
fn coerce_scalar(value: &Value, schema: &Value) -> Option<Value> {
    match value {
        Value::String(text) if accepts_type(schema, "integer") => {
            text.trim().parse::<i64>().ok().map(Value::from)
        }
        Value::String(text) if accepts_type(schema, "boolean") => {
            text.trim().parse::<bool>().ok().map(Value::from)
        }
        Value::Number(number) if accepts_type(schema, "string") => Some(number.to_string().into()),
        // To JSON Schema 5.0 is an integer, and some clients write all numbers in this form.
        Value::Number(number) if accepts_type(schema, "integer") && number.is_f64() => {
            let text = number.to_string();
            text.strip_suffix(".0").and_then(|text| text.parse::<i64>().ok()).map(Value::from)
        }
        _ => None,
    }
}

/// Returns true if a schema allows values of this JSON type.
fn accepts_type(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|known| known == kind),
        single => single == kind,
    }
}

/// Returns the error for `arguments` that do not fit their schema.
fn explain_error(
    name: &str,
    schema: &Value,
    arguments: &Value,
    error: &serde_path_to_error::Error<serde_json::Error>,
    interface: Interface,
) -> ToolError {
    let faulty = FaultyValue::find(schema, arguments, error.path());
    let known: Vec<&str> = property_names(faulty.schema).collect();
    if let Value::Object(object) = faulty.value
        && !known.is_empty()
    {
        if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
            return faulty.unknown_argument_error(name, unknown, known, interface);
        }
        if let Some(missing) = required_names(faulty.schema).find(|key| !object.contains_key(*key))
        {
            return faulty.missing_argument_error(name, missing);
        }
    }

    if faulty.field.is_empty() {
        return ToolError::new(ErrorCode::InvalidArgument, format!("{name}: {}", error.inner()));
    }
    faulty.invalid_value_error()
}

/// The value in which an error was found.
struct FaultyValue<'a> {
    /// The path from the arguments to the value, such as `updates[1]`; empty for the arguments
    /// themselves.
    field: String,
    schema: &'a Value,
    value: &'a Value,
}

impl<'a> FaultyValue<'a> {
    /// Follows `path` from `arguments`, while both the schema and the value have the next
    /// segment.
    fn find(schema: &'a Value, arguments: &'a Value, path: &serde_path_to_error::Path) -> Self {
        let mut found = Self { field: String::new(), schema, value: arguments };
        for segment in path {
            let schema = found.schema;
            let (schema, value) = match segment {
                Segment::Map { key } => (&schema["properties"][key.as_str()], found.value.get(key)),
                Segment::Seq { index } => (&schema["items"], found.value.get(index)),
                Segment::Enum { .. } | Segment::Unknown => break,
            };
            // An unknown argument has no schema: the error is reported for the object that contains
            // it.
            let Some(value) = value else { break };
            if schema.is_null() {
                break;
            }

            if matches!(segment, Segment::Map { .. }) && !found.field.is_empty() {
                found.field.push('.');
            }
            found.field.push_str(&segment.to_string());
            found.schema = schema;
            found.value = value;
        }
        found
    }

    /// Names the value for a message: the tool and, inside its arguments, the field.
    fn location(&self, tool: &str) -> String {
        if self.field.is_empty() { tool.to_owned() } else { format!("{tool}: {}", self.field) }
    }

    /// Returns the path of an argument inside this value.
    fn path_to(&self, argument: &str) -> String {
        if self.field.is_empty() {
            argument.to_owned()
        } else {
            format!("{}.{argument}", self.field)
        }
    }

    /// Returns the error for an argument that is not among the `known` ones.
    fn unknown_argument_error(
        &self,
        tool: &str,
        unknown: &str,
        known: Vec<&str>,
        interface: Interface,
    ) -> ToolError {
        let shown: String = unknown.chars().take(MAX_NAME_CHARS).collect();
        let mut message = format!(
            "{}: unknown argument '{shown}'. Arguments: {}",
            self.location(tool),
            known.join(", ")
        );
        if is_qualifier(&shown) && known.contains(&"query") {
            let place = if ["search_events", memory::SPEC.name].contains(&tool) {
                "It is a qualifier inside query".to_owned()
            } else {
                format!("{} takes it inside query", interface.tool_name("search_events"))
            };
            message.push_str(&format!(". {place}: {shown}:value"));
        }
        ToolError::new(ErrorCode::InvalidArgument, message)
            .with_detail("field", self.path_to(unknown))
            .with_detail("valid", known.clone())
            .with_suggestion(nearest(unknown, known))
    }

    /// Returns the error for a required argument that was not given.
    fn missing_argument_error(&self, tool: &str, missing: &str) -> ToolError {
        let schema = &self.schema["properties"][missing];
        let what = schema["description"].as_str().unwrap_or("required");
        let message = format!("{}: {missing} is missing: {what}", self.location(tool));
        ToolError::new(ErrorCode::InvalidArgument, message)
            .with_detail("field", self.path_to(missing))
            .with_detail("valid", describe_valid_values(schema))
    }

    /// Returns the error for a value that its schema does not allow.
    fn invalid_value_error(&self) -> ToolError {
        let valid = describe_valid_values(self.schema);
        let valid: Vec<&str> = valid.iter().map(String::as_str).collect();

        let mut value = self.value;
        if let Value::Array(items) = value {
            // In a list, only the item that is invalid is shown.
            let invalid =
                items.iter().find(|item| item.as_str().is_some_and(|text| !valid.contains(&text)));
            value = invalid.unwrap_or(value);
        }
        let shown = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };

        let error = ToolError::invalid_value(&self.field, &shown, &valid);
        match self.field.as_str() {
            "detail_level" => ToolError { code: ErrorCode::InvalidDetailLevel, ..error },
            _ => error,
        }
    }
}

/// Returns the names of the arguments that a schema describes.
fn property_names(schema: &Value) -> impl Iterator<Item = &str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str())
}

/// Returns the names of the arguments that a schema requires.
fn required_names(schema: &Value) -> impl Iterator<Item = &str> {
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
}

/// Describes the values that a schema allows.
fn describe_valid_values(schema: &Value) -> Vec<String> {
    for schema in [schema, &schema["items"]] {
        if let Some(values) = schema["enum"].as_array() {
            return string_values(values);
        }
    }

    let kind = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => string_values(kinds).join(" or "),
        _ => "another value".to_owned(),
    };
    let range = match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(least), Some(most)) => format!(" {least}-{most}"),
        _ => String::new(),
    };
    let items = match schema["items"]["type"].as_str() {
        Some(kind) => format!(" of {kind}s"),
        None => String::new(),
    };
    vec![format!("{kind}{range}{items}")]
}

/// Returns the values that are texts.
fn string_values(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_arguments<T: DeserializeOwned>(name: &str, arguments: Value) -> Result<T, ToolError> {
        super::parse_arguments(name, arguments, Interface::default())
    }
    use schemas::tool::details::DetailArgs;
    use schemas::tool::find::FindArgs;
    use schemas::tool::label::LabelArgs;
    use schemas::tool::list::ListArgs;
    use schemas::tool::search::SearchArgs;
    use schemas::tool::stats::StatsArgs;
    use serde_json::json;

    fn check<T: DeserializeOwned + std::fmt::Debug>(
        name: &str,
        arguments: Value,
        field: &str,
        says: &[&str],
    ) {
        let error = parse_arguments::<T>(name, arguments.clone()).expect_err("wrong");
        assert_eq!(error.details["field"], field, "{arguments}: {error}");
        for word in says {
            assert!(error.message.contains(word), "{arguments}: {error}");
        }
    }

    #[test]
    fn what_is_meant_is_taken() {
        let details: DetailArgs =
            parse_arguments("get_session_details", json!({ "session_id": "abc", "turns": 3 }))
                .expect("fits");
        assert_eq!(details.turns.as_deref(), Some("3"));
        let args =
            json!({ "session_ids": "[\"abc\", \"def\"]", "limit": "5", "subagents": "true" });
        let list: ListArgs = parse_arguments("list_sessions", args).expect("fits");
        assert_eq!(
            (list.session_ids.map(|ids| ids.len()), list.limit, list.subagents),
            (Some(2), Some(5), Some(true))
        );
        let list: ListArgs =
            parse_arguments("list_sessions", json!({ "session_ids": "abc" })).expect("fits");
        assert_eq!(list.session_ids, Some(vec!["abc".to_owned()]));
        let list: ListArgs =
            parse_arguments("list_sessions", json!({ "limit": 5.0 })).expect("fits");
        assert_eq!(list.limit, Some(5));
        let stats: StatsArgs =
            parse_arguments("session_stats", json!({ "group_by": "tool, day" })).expect("fits");
        assert_eq!(stats.group_by.to_vec().len(), 2);
        let search: SearchArgs =
            parse_arguments("search_events", json!({ "query": 404 })).expect("fits");
        assert_eq!(search.query, "404");
        for limit in [json!("five"), json!(2.5), json!(1e20)] {
            assert!(
                parse_arguments::<ListArgs>("list_sessions", json!({ "limit": limit })).is_err()
            );
        }
    }

    #[test]
    fn a_blank_optional_text_is_absent() {
        let blank = json!({
            "query": "berths", "cursor": "", "since": " ", "project": "", "provider": "",
            "session_id": "", "event_type": "", "limit": "", "exclude_current": ""
        });
        let search: SearchArgs = parse_arguments("search_events", blank).expect("fits");
        assert_eq!(search, SearchArgs { query: "berths".to_owned(), ..SearchArgs::default() });
        let level = json!({ "session_id": "abc", "detail_level": "", "turns": "", "cursor": "" });
        let details: DetailArgs = parse_arguments("get_session_details", level).expect("fits");
        assert_eq!((details.detail_level, details.turns, details.cursor), (None, None, None));
        // A required text must be given, and an unknown argument stays an error.
        assert!(parse_arguments::<StatsArgs>("session_stats", json!({ "group_by": "" })).is_err());
        check::<SearchArgs>("search_events", json!({ "query": "x", "limt": "" }), "limt", &[]);
    }

    #[test]
    fn errors_name_field_value_and_valid_values() {
        let search = "search_events";
        check::<SearchArgs>(search, json!({}), "query", &["query is missing", "Words"]);
        check::<SearchArgs>(
            search,
            json!({ "query": "x", "limt": 3 }),
            "limt",
            &["unknown argument 'limt'", "exclude_current", "mean 'limit'"],
        );
        check::<SearchArgs>(
            search,
            json!({ "query": "x", "branch": "main" }),
            "branch",
            &["a qualifier inside query: branch:value"],
        );
        check::<FindArgs>(
            "search_sessions",
            json!({ "query": "x", "sort": "newest" }),
            "sort",
            &["search_events takes it inside query: sort:value"],
        );
        check::<SearchArgs>(
            search,
            json!({ "query": "x", "event_type": ["tool_cal"] }),
            "event_type",
            &["'tool_cal'", "tool_result", "mean 'tool_call'"],
        );
        check::<SearchArgs>(
            search,
            json!({ "query": "x", "event_type": "tool_cal" }),
            "event_type",
            &["mean 'tool_call'"],
        );
        check::<SearchArgs>(
            search,
            json!({ "query": "x", "limit": "ten" }),
            "limit",
            &["'ten'", "integer 1-50"],
        );
        check::<SearchArgs>(search, json!({ "query": true }), "query", &["'true'", "string"]);
        check::<ListArgs>(
            "list_sessions",
            json!({ "session_ids": true }),
            "session_ids",
            &["'true'", "array of strings"],
        );
        check::<LabelArgs>(
            "update_session_labels",
            json!({ "updates": [{ "session_id": "a" }, { "session_id": "b", "ad": ["x"] }] }),
            "updates[1].ad",
            &["unknown argument 'ad'", "mean 'add'"],
        );
        check::<LabelArgs>(
            "update_session_labels",
            json!({ "updates": [{ "session_id": false }] }),
            "updates[0].session_id",
            &["'false'", "string"],
        );
    }

    #[test]
    fn a_wrong_level_has_a_code_of_its_own() {
        let arguments = json!({ "session_id": "abc", "detail_level": "turn" });
        let error =
            parse_arguments::<DetailArgs>("get_session_details", arguments).expect_err("wrong");
        assert_eq!(error.code, ErrorCode::InvalidDetailLevel);
        assert_eq!(error.details["value"], "turn");
        assert_eq!(error.details["did_you_mean"], "turns");
    }
}
