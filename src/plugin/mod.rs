//! The plugins that give an agent the server, the skill, the hooks and a reader agent in one
//! installation, made from the registry of tools.
//!
//! ```text
//! .claude-plugin/marketplace.json     names claude/, for Claude Code
//! .agents/plugins/marketplace.json    names codex/, for Codex
//! claude/  codex/  gemini/            one plugin each; Antigravity CLI reads the one of Gemini CLI
//! opencode/  pi/                      one package of npm each, with a module that registers the server
//! portable/                           an Agent Plugins package, for other clients
//! */bin/sessions-mcp                  finds the program and starts the server
//! */bin/sessions-mcp.cmd              the same on Windows, which takes this for the file without an ending
//! */hooks/hooks.json                  for Claude Code, Codex and Gemini CLI
//! */bin/sessions-hook                 finds the program and runs a hook
//! */skills/sessions/SKILL.md
//! ```

mod agent;
mod hooks;
mod manifests;

use std::path::PathBuf;

use schemas::hook::HookClient;
use serde::Serialize;
use serde_json::Value;

use self::agent::{claude_agent, gemini_agent};
pub use self::hooks::hook_entries;
use self::hooks::{HOOK_LAUNCHER_PATH, HOOKS_PATH, plugin_hooks};
use self::manifests::{
    DESCRIPTION, LAUNCHER_PATH, MODULE_PATH, NAME, agent_plugin_mcp, agent_plugin_plugin,
    claude_marketplace, claude_mcp, claude_plugin, codex_marketplace, codex_mcp, codex_plugin,
    gemini_extension, opencode_package, pi_package,
};

const LAUNCHER: &str = include_str!("files/sessions-mcp");

const WINDOWS_LAUNCHER: &str = include_str!("files/sessions-mcp.cmd");

const HOOK_LAUNCHER: &str = include_str!("files/sessions-hook");

const OPENCODE_MODULE: &str = include_str!("files/opencode.js");

const PI_MODULE: &str = include_str!("files/pi.js");

const README: &str = include_str!("files/README.md");

/// A file of the plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFile {
    /// The path below the folder of all plugins, with slashes.
    pub path: String,
    pub text: String,
    pub is_program: bool,
}

/// The result of writing the plugins.
#[derive(Debug, Serialize)]
pub struct PluginsWritten {
    pub output: PathBuf,
    /// The paths of the files below `output`.
    pub files: Vec<String>,
}

/// Returns all files of the plugins. `skill` is the text of SKILL.md.
pub fn plugin_files(skill: &str) -> Vec<PluginFile> {
    let mut files = vec![
        text_file("README.md", fill_text(README)),
        json_file(".claude-plugin/marketplace.json", &claude_marketplace()),
        json_file("claude/.claude-plugin/plugin.json", &claude_plugin()),
        json_file("claude/.mcp.json", &claude_mcp()),
        text_file("claude/agents/history-reader.md", claude_agent()),
        json_file(".agents/plugins/marketplace.json", &codex_marketplace()),
        json_file("codex/.codex-plugin/plugin.json", &codex_plugin()),
        json_file("codex/.mcp.json", &codex_mcp()),
        json_file("gemini/gemini-extension.json", &gemini_extension()),
        text_file("gemini/agents/history-reader.md", gemini_agent()),
        json_file("opencode/package.json", &opencode_package()),
        text_file(&format!("opencode/{MODULE_PATH}"), fill_text(OPENCODE_MODULE)),
        json_file("pi/package.json", &pi_package()),
        text_file(&format!("pi/{MODULE_PATH}"), fill_text(PI_MODULE)),
        json_file("portable/plugin.json", &agent_plugin_plugin()),
        json_file("portable/mcp.json", &agent_plugin_mcp()),
    ];
    for plugin in ["claude", "codex", "gemini", "opencode", "pi", "portable"] {
        files.push(text_file(&format!("{plugin}/skills/{NAME}/SKILL.md"), skill.to_owned()));
        let launcher = text_file(&format!("{plugin}/{LAUNCHER_PATH}"), fill_text(LAUNCHER));
        files.push(PluginFile { is_program: true, ..launcher });
        // `cmd` needs these line ends to find labels.
        let windows_launcher = fill_text(WINDOWS_LAUNCHER).replace('\n', "\r\n");
        files.push(text_file(&format!("{plugin}/{LAUNCHER_PATH}.cmd"), windows_launcher));
    }
    for (plugin, client, root) in [
        ("claude", HookClient::Claude, "${CLAUDE_PLUGIN_ROOT}"),
        ("codex", HookClient::Codex, "${PLUGIN_ROOT}"),
        ("gemini", HookClient::Gemini, "${extensionPath}"),
    ] {
        files.push(json_file(&format!("{plugin}/{HOOKS_PATH}"), &plugin_hooks(client, root)));
        let launcher =
            text_file(&format!("{plugin}/{HOOK_LAUNCHER_PATH}"), HOOK_LAUNCHER.to_owned());
        files.push(PluginFile { is_program: true, ..launcher });
    }
    files
}

fn text_file(path: &str, text: String) -> PluginFile {
    PluginFile { path: path.to_owned(), text, is_program: false }
}

fn json_file(path: &str, value: &Value) -> PluginFile {
    text_file(path, format!("{value:#}\n"))
}

/// Replaces the placeholders of a file.
fn fill_text(text: &str) -> String {
    text.replace("@REPOSITORY@", env!("CARGO_PKG_REPOSITORY"))
        .replace("@PACKAGE@", env!("CARGO_PKG_NAME"))
        .replace("@DESCRIPTION@", DESCRIPTION)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schemas::tool::{Risk, TOOLS};

    use super::*;

    fn text_of(path: &str) -> String {
        let files = plugin_files("skill");
        files.into_iter().find(|file| file.path == path).expect(path).text
    }

    #[test]
    fn paths_are_unique_and_inside_the_folder() {
        let files = plugin_files("skill");
        let paths: BTreeSet<_> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths.len(), files.len());
        for path in paths {
            assert!(!path.starts_with('/') && !path.contains(".."), "{path}");
        }
        assert_eq!(files.iter().filter(|file| file.is_program).count(), 9);
        for mark in ["@REPOSITORY@", "@PACKAGE@", "@DESCRIPTION@"] {
            assert!(files.iter().all(|file| !file.text.contains(mark)), "{mark}");
        }
    }

    #[test]
    fn the_reader_may_call_the_tools_that_only_read() {
        for (path, prefix) in [
            ("claude/agents/history-reader.md", "mcp__plugin_sessions_sessions__"),
            ("gemini/agents/history-reader.md", "mcp_sessions_"),
        ] {
            let text = text_of(path);
            for tool in TOOLS {
                let is_allowed = text.contains(&format!("{prefix}{}\n", tool.name));
                assert_eq!(is_allowed, tool.risk == Risk::Read, "{path}: {}", tool.name);
            }
            let front_matter = text.split("---\n").nth(1).expect("front matter");
            let tools = front_matter.lines().filter(|line| line.starts_with("  - "));
            assert!(tools.clone().all(|line| line.contains(prefix)), "{path}: {front_matter}");
            assert!(tools.count() > 0, "without a list, an agent may call everything");
        }
    }

    #[test]
    fn hooks_run_the_launcher_of_the_plugin() {
        for (plugin, event, line) in [
            (
                "claude",
                "PostToolUseFailure",
                "sh \"${CLAUDE_PLUGIN_ROOT}/bin/sessions-hook\" hook post-tool-failure --client claude",
            ),
            (
                "codex",
                "UserPromptSubmit",
                "sh \"${PLUGIN_ROOT}/bin/sessions-hook\" hook prompt --client codex",
            ),
            (
                "gemini",
                "BeforeAgent",
                "sh \"${extensionPath}/bin/sessions-hook\" hook prompt --client gemini",
            ),
        ] {
            let file: Value = serde_json::from_str(&text_of(&format!("{plugin}/hooks/hooks.json")))
                .expect("JSON");
            assert_eq!(file["hooks"][event][0]["hooks"][0]["command"], line, "{plugin}");
            assert!(!text_of(&format!("{plugin}/bin/sessions-hook")).is_empty());
        }
        // Claude Code and Gemini CLI find the file themselves.
        let codex: Value =
            serde_json::from_str(&text_of("codex/.codex-plugin/plugin.json")).expect("JSON");
        assert_eq!(codex["hooks"], "./hooks/hooks.json");
    }

    #[test]
    fn manifests_have_the_version_of_the_program() {
        for path in [
            "claude/.claude-plugin/plugin.json",
            "codex/.codex-plugin/plugin.json",
            "gemini/gemini-extension.json",
            "opencode/package.json",
            "pi/package.json",
            "portable/plugin.json",
        ] {
            let manifest: Value = serde_json::from_str(&text_of(path)).expect(path);
            let name = match path.strip_suffix("/package.json") {
                Some(client) => format!("{}-{client}", env!("CARGO_PKG_NAME")),
                None => NAME.to_owned(),
            };
            assert_eq!(manifest["name"], name, "{path}");
            assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"), "{path}");
        }
    }
}
