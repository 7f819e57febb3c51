//! The JSON schemas of arguments and answers, small enough for a model's context.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

/// Returns the schema of a tool's arguments.
pub fn input_schema<T: JsonSchema>() -> Value {
    let mut schema = generate_schema::<T>(SchemaSettings::draft2020_12().for_deserialize());
    tidy_schema(&mut schema, true);
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("description");
        // A tool without arguments has an empty list of them.
        schema.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Returns the schema of a tool's data: the names and types of its parts. What rows hold is left out,
/// because every list of the tools would contain it, and the rows show it anyway.
pub fn output_schema<T: JsonSchema>() -> Value {
    let mut schema = generate_schema::<T>(SchemaSettings::draft2020_12().for_serialize());
    tidy_schema(&mut schema, false);
    if let Some(parts) = schema["properties"].as_object_mut() {
        for part in parts.values_mut() {
            if part["type"] == "array" || part["type"] == "object" {
                *part = json!({ "type": part["type"] });
            }
        }
    }
    schema
}

/// Returns the schema of a part of the envelope, with the documentation of its fields.
pub fn documented_schema<T: JsonSchema>() -> Value {
    let mut schema = generate_schema::<T>(SchemaSettings::draft2020_12().for_serialize());
    tidy_schema(&mut schema, true);
    schema
}

/// Generates the schema of a type without references.
fn generate_schema<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.inline_subschemas = true);
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// Removes what costs tokens or makes clients complain: dialect, titles, number formats, the null of
/// optional fields, and descriptions unless `is_described` is true.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn tidy_schema(schema: &mut Value, is_described: bool) {
    match schema {
        Value::Object(map) => {
            // A property may have one of these names. Only keywords are strings or numbers.
            for keyword in ["$schema", "title", "format"] {
                if map.get(keyword).is_some_and(Value::is_string) {
                    map.remove(keyword);
                }
            }
            if !is_described {
                if map.get("description").is_some_and(Value::is_string) {
                    map.remove("description");
                }
                // Fields that are absent when empty would not be required anyway.
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
            for value in map.values_mut() {
                tidy_schema(value, is_described);
            }
        }
        Value::Array(items) => {
            for item in items {
                tidy_schema(item, is_described);
            }
        }
        _ => {}
    }
}

/// One property of a schema, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaField {
    /// Name of the property.
    pub name: String,
    /// Type with bounds or valid values.
    pub kind: String,
    /// True if it is always present.
    pub is_required: bool,
    /// Value that is used if the property is absent. `None` if there is no default.
    pub default: Option<String>,
    /// What the property is for; empty if the schema does not describe it.
    pub description: String,
}

/// Returns the properties of a schema, in its order.
pub fn describe_fields(schema: &Value) -> Vec<SchemaField> {
    let Some(properties) = schema["properties"].as_object() else { return Vec::new() };
    let required = schema["required"].as_array().map_or(&[][..], Vec::as_slice);
    let mut fields = Vec::new();
    for (name, property) in properties {
        let default = property.get("default");
        fields.push(SchemaField {
            name: name.clone(),
            kind: describe_type(property),
            is_required: required.iter().any(|known| known == name),
            default: default
                .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned)),
            description: property["description"].as_str().unwrap_or_default().to_owned(),
        });
    }
    fields
}

/// Returns a type in words: `integer 1-50`, `one of a, b`, `list (1-50) of string`.
#[expect(clippy::wildcard_enum_match_arm, reason = "other values of JSON are alike here")]
fn describe_type(property: &Value) -> String {
    if let Some(values) = property["enum"].as_array() {
        let values: Vec<_> = values.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", values.join(", "));
    }
    match &property["type"] {
        Value::String(name) if name == "array" => {
            let items = describe_type(&property["items"]);
            match describe_bounds(property, "minItems", "maxItems") {
                Some(bounds) => format!("list ({bounds}) of {items}"),
                None => format!("list of {items}"),
            }
        }
        Value::String(name) => match describe_bounds(property, "minimum", "maximum") {
            Some(bounds) => format!("{name} {bounds}"),
            None => name.clone(),
        },
        _ => "any".to_owned(),
    }
}

/// Returns the bounds of a property in words, given the keywords of the lower and the upper one.
/// `None` if it has neither.
fn describe_bounds(property: &Value, low: &str, high: &str) -> Option<String> {
    match (property.get(low), property.get(high)) {
        (Some(low), Some(high)) => Some(format!("{low}-{high}")),
        (Some(low), None) => Some(format!("at least {low}")),
        (None, Some(high)) => Some(format!("at most {high}")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::list::ListArgs;

    #[test]
    fn fields_say_type_bounds_default_and_meaning() {
        let fields = describe_fields(&input_schema::<ListArgs>());
        let field = |name: &str| fields.iter().find(|field| field.name == name).expect("there");
        assert_eq!(field("limit").kind, "integer 1-100");
        assert_eq!(field("limit").default.as_deref(), Some("20"));
        assert_eq!(field("format").kind, "one of minimal, summary, full");
        assert_eq!(field("session_ids").kind, "list (at most 50) of string");
        assert!(fields.iter().all(|field| !field.is_required && !field.description.is_empty()));
    }

    #[test]
    fn optional_parts_of_the_envelope_are_not_required() {
        let fields = describe_fields(&documented_schema::<crate::envelope::Metadata>());
        let field = |name: &str| fields.iter().find(|field| field.name == name).expect("there");
        assert!(field("tokens").is_required && !field("results_total").is_required);
        assert!(fields.iter().all(|field| !field.description.is_empty()), "{fields:?}");
    }
}
