//! Machine text in the user's role as Codex writes it (docs/formats.md#codex).

use crate::provider::shared::machine_text::MachineText;

/// Text that no user typed.
#[rustfmt::skip]
pub(super) const TEXTS: &[MachineText] = &[
    MachineText { start: "<environment_context>", end: "</environment_context>", subtype: "environment_context", seen: "0.142.4" },
    MachineText { start: "<user_instructions>", end: "</user_instructions>", subtype: "user_instructions", seen: "docs" },
    MachineText { start: "# AGENTS.md instructions", end: "</INSTRUCTIONS>", subtype: "agents_md", seen: "0.142.4" },
    MachineText { start: "<permissions instructions>", end: "</permissions instructions>", subtype: "permissions", seen: "docs" },
    MachineText { start: "<turn_aborted>", end: "</turn_aborted>", subtype: "interrupted", seen: "0.142.4" },
    MachineText { start: "<skill>", end: "</skill>", subtype: "skill", seen: "0.142.3" },
    MachineText { start: "<skills_instructions>", end: "</skills_instructions>", subtype: "skill", seen: "docs" },
    MachineText { start: "<recommended_plugins>", end: "</recommended_plugins>", subtype: "recommended_plugins", seen: "docs" },
    MachineText { start: "<plugins_instructions>", end: "</plugins_instructions>", subtype: "plugins", seen: "docs" },
    MachineText { start: "<apps_instructions>", end: "</apps_instructions>", subtype: "apps", seen: "docs" },
    MachineText { start: "<app-context>", end: "</app-context>", subtype: "app_context", seen: "docs" },
    MachineText { start: "<in-app-browser-context", end: "</in-app-browser-context>", subtype: "browser_context", seen: "docs" },
    MachineText { start: "<collaboration_mode>", end: "</collaboration_mode>", subtype: "collaboration_mode", seen: "docs" },
    MachineText { start: "<model_switch>", end: "</model_switch>", subtype: "model_switch", seen: "docs" },
    MachineText { start: "<personality_spec>", end: "</personality_spec>", subtype: "personality", seen: "docs" },
    MachineText { start: "<subagent_notification>", end: "</subagent_notification>", subtype: "subagent_notification", seen: "docs" },
    MachineText { start: "<user_shell_command>", end: "</user_shell_command>", subtype: USER_SHELL_COMMAND, seen: "docs" },
    MachineText { start: "<user_action>", end: "</user_action>", subtype: "user_action", seen: "docs" },
    MachineText { start: "<hook_prompt", end: "</hook_prompt>", subtype: "hook_prompt", seen: "docs" },
    MachineText { start: "<goal_context>", end: "</goal_context>", subtype: "goal_context", seen: "docs" },
    MachineText { start: "<codex_internal_context", end: "</codex_internal_context>", subtype: "internal_context", seen: "docs" },
];

/// Subtype of a command that the user ran. It is shown as typed.
pub(super) const USER_SHELL_COMMAND: &str = "user_shell_command";

/// Beginning of a warning that Codex puts into the user's role for the model. No event repeats it.
pub(super) const WARNING_START: &str = "Warning: ";

/// Beginnings of the prompts that `/review` sends to the reviewer.
pub(super) const REVIEW_PROMPTS: &[&str] =
    &["Review the current code changes", "Review the code changes"];
