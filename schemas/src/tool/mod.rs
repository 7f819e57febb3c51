//! Arguments and answers of the tools, one file a tool, and the registry row of each.
//!
//! The MCP tool and the command of the command line share these: the field names are the
//! argument names of the one and the flags of the other.

pub mod analyze;
pub mod details;
pub mod event;
pub mod label;
pub mod list;
pub mod metadata;
pub mod query;
pub mod schema;
pub mod search;
pub mod stats;

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::event::closed_enum;
use crate::{ErrorCode, ToolError};

/// Prefix of everything of ours in `_meta` and among the extensions: a name that the project's
/// owner controls, the first part of the server's name in `server.json`.
pub const NAMESPACE: &str = "io.github.agent-sessions";

/// Version of the arguments and answers of all tools; raised when one changes so that clients
/// notice. It stands in every tool's `_meta` as `schema_version`.
pub const CONTRACT_VERSION: u32 = 1;

/// One tool as clients see it. Nothing is defaulted: every row says everything. The served tool,
/// `tool_metadata`, the dashdash blocks, `--ai-help`, SKILL.md, the README's table and
/// `docs/mcp.md` are made from it.
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
    pub risk: Risk,
    pub category: Category,
    /// What a call does, in a line; `{argument}` stands for the argument's value.
    pub action_template: &'static str,
    /// The command that does the same.
    pub command: &'static str,
    /// What it answers, in a line for tables.
    pub answers: &'static str,
    /// Requests it is for, as people word them.
    pub use_when: &'static [&'static str],
    /// Calls that work on the sample sessions.
    pub examples: &'static [Example],
    /// What can go wrong, beside [`COMMON_ERRORS`].
    pub errors: &'static [ErrorCode],
    /// Earlier names, which still work.
    pub aliases: &'static [Alias],
    /// Schema of the arguments.
    pub input: fn() -> Value,
    /// Schema of the answer's `data`.
    pub output: fn() -> Value,
}

closed_enum! {
    /// What a tool is about.
    Category {
        Search = "search",
        Read = "read",
        Statistics = "statistics",
        Analysis = "analysis",
        Labels = "labels",
        Help = "help",
    }
}

/// The worst that a call can do to what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    Read,
    Write,
    Delete,
}

impl Risk {
    /// As `riskLevel` has it.
    pub const fn level(self) -> u8 {
        match self {
            Self::Read => 1,
            Self::Write => 2,
            Self::Delete => 3,
        }
    }
}

/// A call and the command that does the same.
#[derive(Debug, Clone, Copy)]
pub struct Example {
    pub description: &'static str,
    /// JSON.
    pub arguments: &'static str,
    pub command: &'static str,
}

/// An earlier name of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Alias {
    pub name: &'static str,
    /// The day from which it may be gone.
    pub sunset: &'static str,
}

/// What every tool may answer.
pub const COMMON_ERRORS: &[ErrorCode] = &[
    ErrorCode::InvalidArgument,
    ErrorCode::IndexEmpty,
    ErrorCode::RateLimitExceeded,
    ErrorCode::StoreUnavailable,
    ErrorCode::StoreDamaged,
    ErrorCode::InternalError,
];

/// Every tool, in the order of names.
pub const TOOLS: &[ToolSpec] = &[
    analyze::SPEC,
    event::SPEC,
    details::SPEC,
    list::SPEC,
    query::SPEC,
    search::SPEC,
    stats::SPEC,
    metadata::SPEC,
    label::SPEC,
];

impl ToolSpec {
    /// Every code that it may answer.
    pub fn all_errors(&self) -> impl Iterator<Item = ErrorCode> {
        self.errors.iter().chain(COMMON_ERRORS).copied()
    }
}

/// The tool of this name or earlier name; with the latter, the alias too.
pub fn find<'t>(tools: &'t [ToolSpec], name: &str) -> Option<(&'t ToolSpec, Option<Alias>)> {
    let by_name = tools.iter().find(|tool| tool.name == name).map(|tool| (tool, None));
    by_name.or_else(|| {
        tools.iter().find_map(|tool| {
            let alias = tool.aliases.iter().find(|alias| alias.name == name)?;
            Some((tool, Some(*alias)))
        })
    })
}

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
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rows_are_unique_sorted_and_short_enough() {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        let aliases = TOOLS.iter().flat_map(|tool| tool.aliases).map(|alias| alias.name);
        let all: Vec<_> = names.iter().copied().chain(aliases).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
        for tool in TOOLS {
            assert!(tool.description.len() <= 2048, "{}", tool.name);
            assert!(!tool.use_when.is_empty() && !tool.examples.is_empty(), "{}", tool.name);
            assert!(!(tool.read_only && tool.destructive), "{}", tool.name);
            assert_eq!(tool.read_only, tool.risk == Risk::Read, "{}", tool.name);
            for alias in tool.aliases {
                assert!(alias.sunset.parse::<jiff::civil::Date>().is_ok(), "{alias:?}");
            }
        }
    }

    #[test]
    fn templates_and_examples_name_real_arguments() {
        for tool in TOOLS {
            let input = (tool.input)();
            let known: BTreeSet<_> =
                schema::fields(&input).into_iter().map(|field| field.name).collect();
            for part in tool.action_template.split('{').skip(1) {
                let (name, _) = part.split_once('}').expect("closed");
                assert!(known.contains(name), "{}: {name}", tool.name);
            }
            for example in tool.examples {
                let given: serde_json::Map<String, Value> =
                    serde_json::from_str(example.arguments).expect(example.arguments);
                assert!(given.keys().all(|name| known.contains(name)), "{example:?}");
                for required in schema::fields(&input).iter().filter(|field| field.required) {
                    assert!(given.contains_key(&required.name), "{example:?}");
                }
                let command = format!("sessions {}", tool.command);
                assert!(example.command.starts_with(&command), "{example:?}");
            }
        }
    }

    #[test]
    fn an_earlier_name_finds_its_tool() {
        const ALIASES: &[Alias] = &[Alias { name: "grep_sessions", sunset: "2027-06-01" }];
        let tools = [ToolSpec { aliases: ALIASES, ..search::SPEC }];
        let (tool, alias) = find(&tools, "grep_sessions").expect("found");
        assert_eq!(tool.name, "search_events");
        assert_eq!(alias.expect("alias").sunset, "2027-06-01");
        assert!(find(&tools, "search_events").is_some_and(|(_, alias)| alias.is_none()));
        assert!(find(&tools, "search").is_none());
    }

    #[test]
    fn limits_have_bounds() {
        assert_eq!(checked_limit("limit", None, 10, 50).ok(), Some(10));
        for value in [0, 51] {
            assert!(checked_limit("limit", Some(value), 10, 50).is_err());
        }
    }
}
