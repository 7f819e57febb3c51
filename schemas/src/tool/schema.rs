//! The JSON schemas of arguments and answers, small enough for a model's context.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// The schema of a tool's arguments.
pub fn input<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_deserialize());
    tidy(&mut schema, true);
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
        // A tool without arguments has an empty list of them.
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// The schema of a tool's data: the names and types of its parts. What the rows hold would be
/// paid with every list of the tools; the rows show it themselves.
pub fn output<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
    tidy(&mut schema, false);
    for part in
        schema["properties"].as_object_mut().into_iter().flat_map(|parts| parts.values_mut())
    {
        let inner = if part["type"] == "array" { &mut part["items"] } else { part };
        if inner["type"] == "object" {
            *inner = json!({ "type": "object" });
        }
    }
    schema
}

/// The schema of a part of the envelope, with the documentation of its fields.
pub fn documented<T: JsonSchema>() -> Value {
    let mut schema = generate::<T>(SchemaSettings::draft2020_12().for_serialize());
    tidy(&mut schema, true);
    schema
}

fn generate<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Takes out what costs tokens or makes clients complain: dialect, titles, number formats, the
/// null of optional fields, and descriptions where `described` is false.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn tidy(schema: &mut Value, described: bool) {
    match schema {
        Value::Object(map) => {
            // A property may have one of these names: only keywords are strings or numbers.
            for keyword in ["$schema", "title", "format"] {
                if map.get(keyword).is_some_and(Value::is_string) {
                    map.remove(keyword);
                }
            }
            if !described {
                if map.get("description").is_some_and(Value::is_string) {
                    map.remove("description");
                }
                // What is absent when empty says nothing more as required.
                map.remove("required");
            }
            if map.get("minimum") == Some(&json!(0)) {
                map.remove("minimum");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [single] = types.as_slice() {
                    let single = single.clone();
                    map.insert("type".to_owned(), single);
                }
            }
            if let Some(Value::Array(options)) = map.get_mut("anyOf") {
                options.retain(|option| *option != json!({ "type": "null" }));
                if let [Value::Object(single)] = options.as_slice() {
                    let single = single.clone();
                    map.remove("anyOf");
                    map.extend(single);
                }
            }
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            map.values_mut().for_each(|value| tidy(value, described));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| tidy(item, described)),
        _ => {}
    }
}

/// One property of a schema, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name of the property.
    pub name: String,
    /// Type with bounds or valid values.
    pub kind: String,
    /// True if it is always present.
    pub required: bool,
    /// Value that is used if the property is absent. `None` if there is no default.
    pub default: Option<String>,
    /// What it is for; empty if the schema does not describe it.
    pub description: String,
}

/// The properties of a schema, in its order.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required = |name: &str| {
        schema["required"].as_array().is_some_and(|names| names.iter().any(|known| known == name))
    };
    let properties = schema["properties"].as_object();
    properties
        .into_iter()
        .flatten()
        .map(|(name, property)| Field {
            name: name.clone(),
            kind: kind(property),
            required: required(name),
            default: property
                .get("default")
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            description: property["description"].as_str().unwrap_or_default().to_owned(),
        })
        .collect()
}

/// A type in words: `integer 1-50`, `one of a, b`, `list of strings, 1-50`.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn kind(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", values.join(", "));
    }
    let bounds = |low: &str, high: &str| match (property.get(low), property.get(high)) {
        (Some(low), Some(high)) => Some(format!("{low}-{high}")),
        (Some(low), None) => Some(format!("at least {low}")),
        (None, Some(high)) => Some(format!("at most {high}")),
        (None, None) => None,
    };
    match &property["type"] {
        Value::String(name) if name == "array" => {
            let items = kind(&property["items"]);
            match bounds("minItems", "maxItems") {
                Some(bounds) => format!("list ({bounds}) of {items}"),
                None => format!("list of {items}"),
            }
        }
        Value::String(name) => match bounds("minimum", "maximum") {
            Some(bounds) => format!("{name} {bounds}"),
            None => name.clone(),
        },
        // One value or a list of them.
        Value::Array(_) => {
            let items = kind(&property["items"]);
            format!("{items}, or a list of these")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::list::ListArgs;

    #[test]
    fn fields_say_type_bounds_default_and_meaning() {
        let fields = fields(&input::<ListArgs>());
        let field = |name: &str| fields.iter().find(|field| field.name == name).expect("there");
        assert_eq!(field("limit").kind, "integer 1-100");
        assert_eq!(field("limit").default.as_deref(), Some("20"));
        assert_eq!(field("format").kind, "one of minimal, summary, full");
        assert_eq!(field("session_ids").kind, "list (at most 50) of string");
        assert!(fields.iter().all(|field| !field.required && !field.description.is_empty()));
    }

    #[test]
    fn optional_parts_of_the_envelope_are_not_required() {
        let fields = fields(&documented::<crate::envelope::Metadata>());
        let field = |name: &str| fields.iter().find(|field| field.name == name).expect("there");
        assert!(field("tokens").required && !field("results_total").required);
        assert!(fields.iter().all(|field| !field.description.is_empty()), "{fields:?}");
    }
}
