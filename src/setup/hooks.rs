//! Installs the hooks in the configuration of an agent, and removes them. A handler is ours if its
//! command line calls `hook NAME --client CLIENT`.

use std::path::{Path, PathBuf};

use ingest::provider::format::AgentFolders;
use jsonc_parser::cst::{CstArray, CstNode, CstObject};
use schemas::client::Client;
use schemas::hook::{HookClient, HookName};
use schemas::{Timestamp, ToolError};
use serde::Serialize;
use serde_json::{Value, json};

use super::edit::{parse_json, to_cst_value};
use super::place::client_folder;
use super::{ConfigWritten, change_config, is_changed_by};
use crate::plugin::hook_entries;
use base::shell_word::shell_line;

/// The hooks to be installed in an agent.
#[derive(Debug, Clone, Serialize)]
pub struct HookInstallation {
    pub client: HookClient,
    /// The agent's file with hooks.
    pub path: PathBuf,
    /// The text to add to the file.
    pub config: String,
    /// The entry of each event, by the agent's name of the event.
    #[serde(skip)]
    entries: Vec<(&'static str, Value)>,
}

/// Returns the hooks of an agent. They run `program`, with `arguments` before the name of the
/// command.
pub fn plan_hooks(
    client: HookClient,
    places: &AgentFolders<'_>,
    program: &Path,
    arguments: &[String],
) -> HookInstallation {
    let program = program.to_string_lossy();
    let words = std::iter::once(&*program).chain(arguments.iter().map(String::as_str));
    let command_line = shell_line(words);
    let entries = hook_entries(client, &command_line);
    let path = match client {
        HookClient::Claude => client_folder(Client::Claude, places).join("settings.json"),
        HookClient::Codex => client_folder(Client::Codex, places).join("hooks.json"),
        HookClient::Gemini => client_folder(Client::Gemini, places).join("settings.json"),
        HookClient::Copilot => client_folder(Client::Copilot, places).join("hooks/sessions.json"),
    };
    let mut installation = HookInstallation { client, path, config: String::new(), entries };
    installation.config = installation.add_to("").unwrap_or_default();
    installation
}

impl HookInstallation {
    /// Adds the hooks to the agent's file, or updates them. The previous file is kept next to it,
    /// and the rest of the file is unchanged.
    ///
    /// # Errors
    /// Returns an error that names the file if it cannot be read, changed or written.
    pub fn install(&self, now: Timestamp) -> Result<ConfigWritten, ToolError> {
        change_config(&self.path, now, |text| self.add_to(text))
    }

    /// Removes the hooks from the agent's file.
    ///
    /// # Errors
    /// Returns an error that names the file if it cannot be read, changed or written.
    pub fn remove(&self, now: Timestamp) -> Result<ConfigWritten, ToolError> {
        if !self.path.exists() {
            return Ok(ConfigWritten { path: self.path.clone(), changed: false, backup: None });
        }
        change_config(&self.path, now, |text| self.remove_from(text))
    }

    /// Returns whether the agent's file has hooks of this program.
    pub fn is_installed(&self) -> bool {
        is_changed_by(&self.path, |text| self.remove_from(text))
    }

    /// Returns `text` with the hooks added. The error is the reason why it cannot take them.
    fn add_to(&self, text: &str) -> Result<String, String> {
        let root = parse_json(text)?;
        let object = root.object_value_or_create().ok_or("it is not a JSON object")?;
        if self.client == HookClient::Copilot && object.get("version").is_none() {
            object.append("version", to_cst_value(&json!(1)));
        }
        let hooks =
            object.object_value_or_create("hooks").ok_or("'hooks' in it is not an object")?;
        for (event, entry) in &self.entries {
            let list = hooks
                .array_value_or_create(event)
                .ok_or_else(|| format!("'hooks.{event}' in it is not a list"))?;
            let has_entry =
                list.elements().iter().any(|known| known.to_serde_value().as_ref() == Some(entry));
            if !has_entry {
                self.remove_own(&list);
                list.append(to_cst_value(entry));
            }
        }
        Ok(root.to_string())
    }

    /// Returns `text` without the hooks.
    fn remove_from(&self, text: &str) -> Result<String, String> {
        let root = parse_json(text)?;
        let Some(object) = root.object_value() else { return Ok(text.to_owned()) };
        let Some(hooks) = object.object_value("hooks") else { return Ok(text.to_owned()) };
        for property in hooks.properties() {
            let Some(list) = property.array_value() else { continue };
            if self.remove_own(&list) && list.elements().is_empty() {
                property.remove();
            }
        }
        if hooks.properties().is_empty()
            && let Some(property) = object.get("hooks")
        {
            property.remove();
        }
        Ok(root.to_string())
    }

    /// Removes our handlers from the list of an event, and the groups that they leave empty. Returns
    /// whether there were any.
    fn remove_own(&self, list: &CstArray) -> bool {
        let mut is_removed = false;
        for element in list.elements() {
            let Some(group) = element.as_object() else { continue };
            if self.is_own(&group) {
                element.remove();
                is_removed = true;
                continue;
            }
            let Some(handlers) = group.array_value("hooks") else { continue };
            let own: Vec<CstNode> = handlers
                .elements()
                .into_iter()
                .filter(|handler| handler.as_object().is_some_and(|handler| self.is_own(&handler)))
                .collect();
            is_removed |= !own.is_empty();
            let is_left_empty = !own.is_empty() && own.len() == handlers.elements().len();
            own.into_iter().for_each(CstNode::remove);
            if is_left_empty {
                element.remove();
            }
        }
        is_removed
    }

    /// Returns true if a handler is ours.
    fn is_own(&self, handler: &CstObject) -> bool {
        let lines = ["command", "bash", "powershell"]
            .into_iter()
            .filter_map(|name| handler.get(name)?.to_serde_value()?.as_str().map(str::to_owned));
        let calls: Vec<String> = HookName::ALL
            .iter()
            .map(|hook| format!(" hook {hook} --client {}", self.client))
            .collect();
        lines.into_iter().any(|line| calls.iter().any(|call| line.contains(call)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(client: HookClient, program: &str) -> HookInstallation {
        let no_variable = |_: &str| None;
        let places = AgentFolders::new(Path::new("/home/mira"), &no_variable);
        plan_hooks(client, &places, Path::new(program), &[])
    }

    fn parsed(text: &str) -> Value {
        let root = parse_json(text).expect("JSON");
        root.object_value().and_then(|object| object.to_serde_value()).expect("an object")
    }

    #[test]
    fn installing_is_idempotent_and_removing_restores_the_file() {
        let before = "{\n  // mine\n  \"model\": \"x\",\n  \"hooks\": {\n    \"SessionStart\": [\n      { \"hooks\": [{ \"type\": \"command\", \"command\": \"mine\" }] }\n    ]\n  }\n}\n";
        for client in HookClient::ALL {
            let plan = planned(*client, "/opt/sessions");
            let added = plan.add_to(before).expect("adds");
            assert!(added.contains("// mine"), "{added}");
            assert_eq!(plan.add_to(&added).as_ref(), Ok(&added), "{client}: twice");
            let removed = plan.remove_from(&added).expect("removes");
            let mut expected = parsed(before);
            if *client == HookClient::Copilot {
                expected["version"] = json!(1);
            }
            assert_eq!(parsed(&removed), expected, "{client}");
            assert_eq!(plan.remove_from(&removed).as_ref(), Ok(&removed), "{client}: twice");
        }
    }

    #[test]
    fn a_moved_program_replaces_its_handlers_and_others_stay() {
        let old = planned(HookClient::Claude, "/old/sessions").add_to("").expect("adds");
        let new = planned(HookClient::Claude, "/new/my sessions").add_to(&old).expect("adds");
        assert!(!new.contains("/old/"), "{new}");
        assert_eq!(new.matches("'/new/my sessions' hook prompt").count(), 1);
        // The user added a handler to our group.
        let shared = r#"{"hooks": {"SessionEnd": [{"hooks": [
            {"type": "command", "command": "/x/sessions hook session-end --client claude"},
            {"type": "command", "command": "mine"}]}]}}"#;
        let removed =
            planned(HookClient::Claude, "/x/sessions").remove_from(shared).expect("removes");
        let kept =
            json!({"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "mine"}]}]}});
        assert_eq!(parsed(&removed), kept);
    }

    #[test]
    fn timeouts_are_in_the_unit_of_the_agent() {
        let of =
            |client: HookClient| parsed(&planned(client, "/opt/sessions").config)["hooks"].clone();
        assert_eq!(of(HookClient::Claude)["SessionStart"][0]["hooks"][0]["timeout"], 5);
        assert_eq!(of(HookClient::Codex)["PostToolUse"][0]["hooks"][0]["timeout"], 5);
        assert_eq!(of(HookClient::Gemini)["AfterTool"][0]["hooks"][0]["timeout"], 5000);
        assert_eq!(of(HookClient::Copilot)["postToolUseFailure"][0]["timeoutSec"], 5);
        assert_eq!(of(HookClient::Codex)["SessionEnd"], Value::Null);
        assert_eq!(of(HookClient::Gemini)["BeforeTool"], Value::Null);
        assert_eq!(of(HookClient::Copilot)["preToolUse"], Value::Null);
    }

    #[test]
    fn what_cannot_take_hooks_is_refused() {
        let plan = planned(HookClient::Claude, "/opt/sessions");
        for text in ["{ broken", "[]", r#"{"hooks": 3}"#, r#"{"hooks": {"SessionStart": 3}}"#] {
            assert!(plan.add_to(text).is_err(), "{text}");
        }
    }
}
