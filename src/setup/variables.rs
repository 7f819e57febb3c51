//! Passes environment variables to servers that clients start without them.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ingest::discover::default_roots;
use ingest::provider::format::AgentFolders;
use schemas::client::Client;
use serde_json::{Value, json};

/// Adds the variables to the entry of a client that passes only those it is told of. Without them,
/// the server would look for logs in other folders than the program does here.
pub(super) fn pass_variables(client: Client, places: &AgentFolders<'_>, fields: &mut Value) {
    let names = folder_variables(places);
    if names.is_empty() {
        return;
    }
    if client == Client::Codex {
        fields["env_vars"] = json!(names);
    } else {
        // Gemini CLI replaces `$NAME` by the value that the variable has when it starts.
        let values = names.iter().map(|name| (name, format!("${name}")));
        fields["env"] = json!(values.collect::<BTreeMap<_, _>>());
    }
}

/// Returns the variables that are set here and move the folders of an agent's logs.
fn folder_variables(places: &AgentFolders<'_>) -> BTreeSet<String> {
    let names = RefCell::new(BTreeSet::new());
    let note_variable = |name: &str| {
        let value = places.env_path(name)?;
        names.borrow_mut().insert(name.to_owned());
        Some(value.to_string_lossy().into_owned())
    };
    default_roots(&AgentFolders::new(Path::new(""), &note_variable));
    names.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(client: Client, variable: &dyn Fn(&str) -> Option<String>) -> Value {
        let mut fields = json!({ "command": "sessions" });
        pass_variables(client, &AgentFolders::new(Path::new("/home/mira"), variable), &mut fields);
        fields
    }

    #[test]
    fn variables_that_move_logs_are_passed() {
        let variable = |name: &str| match name {
            "CODEX_HOME" | "CLAUDE_CONFIG_DIR" => Some("/elsewhere".to_owned()),
            "QWEN_HOME" => Some(String::new()),
            "PATH" => Some("/bin".to_owned()),
            _ => None,
        };
        assert_eq!(
            passed(Client::Codex, &variable),
            json!({ "command": "sessions", "env_vars": ["CLAUDE_CONFIG_DIR", "CODEX_HOME"] })
        );
        let values =
            json!({ "CLAUDE_CONFIG_DIR": "$CLAUDE_CONFIG_DIR", "CODEX_HOME": "$CODEX_HOME" });
        assert_eq!(
            passed(Client::Gemini, &variable),
            json!({ "command": "sessions", "env": values })
        );
        assert_eq!(passed(Client::Codex, &|_| None), json!({ "command": "sessions" }));
    }
}
