//! Reads the arguments of a tool, and says exactly what is wrong with them: the field, its value,
//! what is valid there, and what was probably meant.

use schemas::tool::TOOLS;
use schemas::{ErrorCode, ToolError, nearest};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

/// Reads the arguments of the tool `name`.
pub(super) fn parse<T: DeserializeOwned>(name: &str, arguments: Value) -> Result<T, ToolError> {
    let given = arguments.clone();
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let tool = TOOLS.iter().find(|tool| tool.name == name);
        let schema = tool.map(|tool| (tool.input)()).unwrap_or_default();
        explain(name, &schema, &given, error.path(), &error.inner().to_string())
    })
}

/// The error for `given` arguments that do not fit their schema.
fn explain(
    name: &str,
    schema: &Value,
    given: &Value,
    path: &serde_path_to_error::Path,
    reason: &str,
) -> ToolError {
    // Where the trouble is: down the path as far as both sides know it.
    let (mut schema, mut value, mut field) = (schema, given, String::new());
    for segment in path.iter() {
        let (below, inner) = match segment {
            Segment::Map { key } => (&schema["properties"][key.as_str()], value.get(key)),
            Segment::Seq { index } => (&schema["items"], value.get(index)),
            Segment::Enum { .. } | Segment::Unknown => break,
        };
        // An argument that nobody knows has no schema: the object it stands in is at fault.
        let Some(inner) = inner.filter(|_| !below.is_null()) else { break };
        match segment {
            Segment::Map { key } if field.is_empty() => field.clone_from(key),
            segment => field = format!("{field}{}{segment}", separator(segment)),
        }
        (schema, value) = (below, inner);
    }
    let known: Vec<&str> = properties(schema).collect();
    let place = if field.is_empty() { name.to_owned() } else { format!("{name}: {field}") };
    if let Value::Object(object) = value
        && !known.is_empty()
    {
        if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
            let shown: String = unknown.chars().take(60).collect();
            let message =
                format!("{place}: '{shown}' is no argument. Arguments: {}", known.join(", "));
            return ToolError::new(ErrorCode::InvalidArgument, message)
                .with("field", inside(&field, unknown))
                .with("valid", known.clone())
                .meant(nearest(unknown, known));
        }
        let required =
            schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(missing) = required.into_iter().find(|key| !object.contains_key(*key)) {
            let what = schema["properties"][missing]["description"].as_str().unwrap_or("required");
            let message = format!("{place}: {missing} is missing: {what}");
            return ToolError::new(ErrorCode::InvalidArgument, message)
                .with("field", inside(&field, missing))
                .with("valid", valid(&schema["properties"][missing]));
        }
    }
    if field.is_empty() {
        return ToolError::new(ErrorCode::InvalidArgument, format!("{name}: {reason}"));
    }
    let valid = valid(schema);
    let valid: Vec<&str> = valid.iter().map(String::as_str).collect();
    // Of a list the member that is wrong.
    let wrong = |text: &&Value| text.as_str().is_some_and(|text| !valid.contains(&text));
    let value = value.as_array().and_then(|values| values.iter().find(wrong)).unwrap_or(value);
    let shown = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let error = ToolError::invalid_value(&field, &shown, &valid);
    match field.as_str() {
        "detail_level" => ToolError { code: ErrorCode::InvalidDetailLevel, ..error },
        _ => error,
    }
}

fn separator(segment: &Segment) -> &'static str {
    if matches!(segment, Segment::Map { .. }) { "." } else { "" }
}

fn inside(field: &str, key: &str) -> String {
    if field.is_empty() { key.to_owned() } else { format!("{field}.{key}") }
}

fn properties(schema: &Value) -> impl Iterator<Item = &str> {
    schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.as_str())
}

/// What a schema allows, in words.
fn valid(schema: &Value) -> Vec<String> {
    let own = |schema: &Value| schema["enum"].as_array().map(|values| words(values));
    if let Some(values) = own(schema).or_else(|| own(&schema["items"])) {
        return values;
    }
    let kind = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => words(kinds).join(" or "),
        _ => "another value".to_owned(),
    };
    let range = match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(least), Some(most)) => format!(" {least}-{most}"),
        _ => String::new(),
    };
    let of = match schema["items"]["type"].as_str() {
        Some(kind) => format!(" of {kind}s"),
        None => String::new(),
    };
    vec![format!("{kind}{range}{of}")]
}

fn words(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::tool::details::DetailArgs;
    use schemas::tool::label::LabelArgs;
    use schemas::tool::list::ListArgs;
    use schemas::tool::search::SearchArgs;
    use serde_json::json;

    fn check<T: DeserializeOwned + std::fmt::Debug>(
        name: &str,
        arguments: Value,
        field: &str,
        says: &[&str],
    ) {
        let error = parse::<T>(name, arguments.clone()).expect_err("wrong");
        assert_eq!(error.details["field"], field, "{arguments}: {error}");
        for word in says {
            assert!(error.message.contains(word), "{arguments}: {error}");
        }
    }

    #[test]
    fn errors_name_field_value_and_valid_values() {
        let search = "search_events";
        check::<SearchArgs>(search, json!({}), "query", &["query is missing", "Words"]);
        check::<SearchArgs>(
            search,
            json!({ "query": "x", "limt": 3 }),
            "limt",
            &["'limt' is no argument", "exclude_current", "mean 'limit'"],
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
        check::<SearchArgs>(search, json!({ "query": 7 }), "query", &["'7'", "string"]);
        check::<ListArgs>(
            "list_sessions",
            json!({ "session_ids": "a" }),
            "session_ids",
            &["'a'", "array of strings"],
        );
        check::<LabelArgs>(
            "update_session_labels",
            json!({ "updates": [{ "session_id": "a" }, { "session_id": "b", "ad": ["x"] }] }),
            "updates[1].ad",
            &["'ad' is no argument", "mean 'add'"],
        );
        check::<LabelArgs>(
            "update_session_labels",
            json!({ "updates": [{ "session_id": 7 }] }),
            "updates[0].session_id",
            &["'7'", "string"],
        );
    }

    #[test]
    fn a_wrong_level_has_a_code_of_its_own() {
        let arguments = json!({ "session_id": "abc", "detail_level": "turn" });
        let error = parse::<DetailArgs>("get_session_details", arguments).expect_err("wrong");
        assert_eq!(error.code, ErrorCode::InvalidDetailLevel);
        assert_eq!(error.details["value"], "turn");
        assert_eq!(error.details["did_you_mean"], "turns");
    }
}
