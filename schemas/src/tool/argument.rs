//! Defines the forms of arguments that several tools share: one value or a list, and counts with
//! bounds.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::ToolError;

/// One value or a list of values, because models write either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One value, which is not in a list.
    One(T),
    /// A list of values, which may be empty.
    Many(Vec<T>),
}

impl<T> Default for OneOrMany<T> {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

/// Written by hand, so that the error for a wrong value lists the valid ones.
impl<'de, T: DeserializeOwned> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let result = if value.is_array() {
            serde_json::from_value(value).map(Self::Many)
        } else {
            serde_json::from_value(value).map(Self::One)
        };
        result.map_err(serde::de::Error::custom)
    }
}

impl<T: Clone> OneOrMany<T> {
    /// Returns the values as a list.
    pub fn to_vec(&self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value.clone()],
            Self::Many(values) => values.clone(),
        }
    }
}

/// Describes a plain list, because clients that convert schemas for other models refuse several types.
/// A single value is still read.
impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "items": T::json_schema(generator) })
    }
}

/// Checks that a count is between 1 and `max`. `None` means `default`.
///
/// # Errors
/// Returns an error that names `field` and the bounds.
pub fn checked_limit(
    field: &str,
    value: Option<u32>,
    default: u32,
    max: u32,
) -> Result<usize, ToolError> {
    match value.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit as usize),
        limit => Err(ToolError::invalid_value(field, &limit.to_string(), &[&format!("1-{max}")])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_bounds() {
        assert_eq!(checked_limit("limit", None, 10, 50).ok(), Some(10));
        for value in [0, 51] {
            assert!(checked_limit("limit", Some(value), 10, 50).is_err());
        }
    }
}
