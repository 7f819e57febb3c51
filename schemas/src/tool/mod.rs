//! The arguments, the answer and the registry row of each tool, in one file per tool.
//!
//! The MCP tool and the command of the command line share these: the names of the fields are the
//! names of the tool's arguments and of the command's flags. `memory` is the exception: a small tool
//! that answers with the others, without a command.

pub mod analyze;
mod argument;
pub mod details;
pub mod event;
pub mod find;
pub mod label;
pub mod list;
pub mod memory;
pub mod metadata;
pub mod query;
mod registry;
pub mod schema;
pub mod search;
mod spec;
pub mod stats;

pub use argument::{OneOrMany, checked_limit};
pub use registry::{ServedTools, TOOLS, find_servable_tool};
pub use spec::{COMMON_ERRORS, Category, Risk, ToolExample, ToolSpec, flag_name};

/// Returns the prefix of the project's own keys in `_meta` and among the extensions, which is also the
/// first part of the server's name in `server.json`. It belongs to the owner of the repository on GitHub.
pub fn namespace() -> String {
    let owner = env!("CARGO_PKG_REPOSITORY").split('/').nth(3).unwrap_or_default();
    format!("io.github.{owner}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn rows_are_unique_sorted_and_short_enough() {
        let names: Vec<_> = TOOLS.iter().map(|tool| tool.name).collect();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        assert_eq!(names, sorted);
        sorted.dedup();
        assert_eq!(sorted.len(), names.len(), "{names:?}");
        for tool in TOOLS {
            assert!(tool.description.len() <= 2048, "{}", tool.name);
            assert!(!tool.use_when.is_empty() && !tool.examples.is_empty(), "{}", tool.name);
        }
    }

    #[test]
    fn templates_and_examples_name_real_arguments() {
        for tool in TOOLS {
            let input = (tool.input)();
            let known: BTreeSet<_> =
                schema::describe_fields(&input).into_iter().map(|field| field.name).collect();
            for part in tool.action_template.split('{').skip(1) {
                let (name, _) = part.split_once('}').expect("closed");
                assert!(known.contains(name), "{}: {name}", tool.name);
            }
            for example in tool.examples {
                let given: serde_json::Map<String, Value> =
                    serde_json::from_str(example.arguments).expect(example.arguments);
                assert!(given.keys().all(|name| known.contains(name)), "{example:?}");
                for required in
                    schema::describe_fields(&input).iter().filter(|field| field.is_required)
                {
                    assert!(given.contains_key(&required.name), "{example:?}");
                }
                let command = format!("sessions {}", tool.command);
                assert!(example.command.starts_with(&command), "{example:?}");
            }
        }
    }
}
