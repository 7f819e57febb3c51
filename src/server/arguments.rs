//! Reads the arguments of a tool and explains errors in them: the field, its value, the valid
//! values, and the value that was probably meant.

#![expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]

use schemas::{ErrorCode, ToolError, nearest};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_path_to_error::Segment;

use crate::search::is_qualifier;

/// Reads the arguments of the tool `name`.
pub(super) fn parse<T: DeserializeOwned>(name: &str, mut arguments: Value) -> Result<T, ToolError> {
    let schema = super::schema::input(name);
    fit(&mut arguments, schema);
    serde_path_to_error::deserialize(&arguments).map_err(|error| {
        explain(name, schema, &arguments, error.path(), &error.inner().to_string())
    })
}

/// Converts values that do not follow the schema but have a clear meaning, as models often write
/// them: a single value for a list, a list as text, a number as text, or the reverse.
fn fit(value: &mut Value, schema: &Value) {
    if let (Value::Object(values), Some(properties)) =
        (&mut *value, schema["properties"].as_object())
    {
        for (key, value) in values {
            properties.get(key).into_iter().for_each(|schema| fit(value, schema));
        }
        return;
    }
    let takes = |kind: &str| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|known| known == kind),
        single => single == kind,
    };
    if takes("array") {
        let one_of_many = schema["items"]["enum"].is_array();
        *value = match value.take() {
            Value::String(text) if text.trim_start().starts_with('[') => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
            Value::String(text) if one_of_many && text.contains(',') => {
                text.split(',').map(|part| Value::from(part.trim())).collect()
            }
            single @ (Value::String(_) | Value::Object(_)) if !takes("string") => {
                vec![single].into()
            }
            other => other,
        };
        let items = value.as_array_mut().into_iter().flatten();
        return items.for_each(|item| fit(item, &schema["items"]));
    }
    let meant = match &*value {
        Value::String(text) if takes("integer") => text.trim().parse::<i64>().ok().map(Value::from),
        Value::String(text) if takes("boolean") => {
            text.trim().parse::<bool>().ok().map(Value::from)
        }
        Value::Number(number) if takes("string") => Some(number.to_string().into()),
        // To JSON Schema 5.0 is an integer, and some clients write all numbers in this form.
        Value::Number(number) if takes("integer") && number.is_f64() => {
            let text = number.to_string();
            text.strip_suffix(".0").and_then(|text| text.parse::<i64>().ok()).map(Value::from)
        }
        _ => None,
    };
    if let Some(meant) = meant {
        *value = meant;
    }
}

/// Returns the error for `given` arguments that do not fit their schema.
fn explain(
    name: &str,
    schema: &Value,
    given: &Value,
    path: &serde_path_to_error::Path,
    reason: &str,
) -> ToolError {
    // Follows the path to the faulty value, while both the schema and the value have the next
    // segment.
    let (mut schema, mut value, mut field) = (schema, given, String::new());
    for segment in path.iter() {
        let (below, inner) = match segment {
            Segment::Map { key } => (&schema["properties"][key.as_str()], value.get(key)),
            Segment::Seq { index } => (&schema["items"], value.get(index)),
            Segment::Enum { .. } | Segment::Unknown => break,
        };
        // An unknown argument has no schema: the error is reported for the object that contains it.
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
            let qualifier = match is_qualifier(&shown) && known.contains(&"query") {
                true => format!(". It is a qualifier inside query: {shown}:value"),
                false => String::new(),
            };
            let known_list = known.join(", ");
            let message =
                format!("{place}: '{shown}' is no argument. Arguments: {known_list}{qualifier}");
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
    // In a list, the member that is invalid.
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

/// Describes the values that a schema allows.
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
    use schemas::tool::stats::StatsArgs;
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
    fn what_is_meant_is_taken() {
        let details: DetailArgs =
            parse("get_session_details", json!({ "session_id": "abc", "turns": 3 })).expect("fits");
        assert_eq!(details.turns.as_deref(), Some("3"));
        let args =
            json!({ "session_ids": "[\"abc\", \"def\"]", "limit": "5", "subagents": "true" });
        let list: ListArgs = parse("list_sessions", args).expect("fits");
        assert_eq!(
            (list.session_ids.map(|ids| ids.len()), list.limit, list.subagents),
            (Some(2), Some(5), Some(true))
        );
        let list: ListArgs = parse("list_sessions", json!({ "session_ids": "abc" })).expect("fits");
        assert_eq!(list.session_ids, Some(vec!["abc".to_owned()]));
        let list: ListArgs = parse("list_sessions", json!({ "limit": 5.0 })).expect("fits");
        assert_eq!(list.limit, Some(5));
        let stats: StatsArgs =
            parse("session_stats", json!({ "group_by": "tool, day" })).expect("fits");
        assert_eq!(stats.group_by.to_vec().len(), 2);
        let search: SearchArgs = parse("search_events", json!({ "query": 404 })).expect("fits");
        assert_eq!(search.query, "404");
        for limit in [json!("five"), json!(2.5), json!(1e20)] {
            assert!(parse::<ListArgs>("list_sessions", json!({ "limit": limit })).is_err());
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
            json!({ "query": "x", "until": "7d" }),
            "until",
            &["a qualifier inside query: until:value"],
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
            &["'ad' is no argument", "mean 'add'"],
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
        let error = parse::<DetailArgs>("get_session_details", arguments).expect_err("wrong");
        assert_eq!(error.code, ErrorCode::InvalidDetailLevel);
        assert_eq!(error.details["value"], "turn");
        assert_eq!(error.details["did_you_mean"], "turns");
    }
}
