//! Arguments and answers of the tools, one file a tool, and the registry row of each.
//!
//! The MCP tool and the command of the command line share these: the field names are the
//! argument names of the one and the flags of the other.

pub mod details;
pub mod event;
pub mod list;
pub mod query;
pub mod search;
pub mod stats;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::ToolError;

/// One tool as clients see it. Nothing is defaulted: every row says everything.
#[derive(Debug, Clone, Copy)]
pub struct ToolSpec {
    pub name: &'static str,
    pub title: &'static str,
    /// First sentence is the purpose; at most 2 KB.
    pub description: &'static str,
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
    /// Largest answer in characters, for clients that cap results.
    pub max_result_chars: u32,
}

/// Every tool, in the order of names.
pub const TOOLS: &[ToolSpec] =
    &[event::SPEC, details::SPEC, list::SPEC, query::SPEC, search::SPEC, stats::SPEC];

/// One value or a list of them, as models write either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

/// By hand, so that a wrong value is answered with the valid ones.
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
    /// The values as a list.
    pub fn to_vec(&self) -> Vec<T> {
        match self {
            Self::One(value) => vec![value.clone()],
            Self::Many(values) => values.clone(),
        }
    }
}

/// Names the values once: they would be paid for twice with every tool list otherwise.
impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": T::json_schema(generator) })
    }
}

/// Checks a count against its bounds; absent is `default`.
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
    fn rows_are_unique_sorted_and_short_enough() {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(names, sorted);
        assert!(TOOLS.iter().all(|tool| tool.description.len() <= 2048));
    }

    #[test]
    fn limits_have_bounds() {
        assert_eq!(checked_limit("limit", None, 10, 50).ok(), Some(10));
        for value in [0, 51] {
            assert!(checked_limit("limit", Some(value), 10, 50).is_err());
        }
    }
}
