//! Splits text in the user's role into the words that the user typed and the text of machines
//! (docs/formats.md#codex).

use super::machine;
use crate::provider::shared::machine_text::{MachineBlock, split_machine_text};
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

/// Headings of the user's words after the context that an editor adds.
const REQUEST_HEADINGS: &[&str] = &["## My request for Codex:", "## My request:"];

/// A message in the user's role, split by author.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UserInput {
    /// Text of machines, each with the subtype of its notification.
    pub(super) machine: Vec<(&'static str, String)>,
    /// Words that the user typed, and pictures.
    pub(super) typed: String,
}

impl UserInput {
    /// Splits the content of a message. Each of its blocks is judged by itself.
    pub(super) fn from_content(content: Option<Value<'_>>) -> Self {
        let mut input = Self::default();
        let Some(content) = content else { return input };
        if let Some(text) = string_value(content) {
            input.add_block(text);
        } else if let Some(blocks) = content.as_array() {
            let mut text = String::new();
            for block in &blocks {
                if block.text("text").is_some_and(render::is_image_tag) {
                    continue;
                }
                text.clear();
                render::append_block(block, &mut text);
                input.add_block(&text);
            }
        } else {
            render::append_content(content, &mut input.typed);
        }
        input
    }

    /// Splits a text.
    pub(super) fn from_text(text: &str) -> Self {
        let mut input = Self::default();
        input.add_block(text);
        input
    }

    /// Returns whether no part of the message was typed.
    pub(super) fn is_machine_only(&self) -> bool {
        !self.machine.is_empty() && self.typed.trim().is_empty()
    }

    /// Adds a block of a message.
    fn add_block(&mut self, block: &str) {
        let mut rest = block;
        let mut is_after_machine = false;
        while let Some(MachineBlock { subtype, text, rest: after }) =
            split_machine_text(machine::TEXTS, rest)
        {
            self.machine.push((subtype, text.to_owned()));
            rest = after;
            is_after_machine = true;
        }
        if is_after_machine {
            let heading = REQUEST_HEADINGS.iter().find_map(|heading| rest.strip_prefix(heading));
            rest = heading.unwrap_or(rest).trim();
            if rest.is_empty() {
                return;
            }
        }
        render::append_line(rest, &mut self.typed);
    }
}

/// Splits the context that an editor adds (open or attached files, findings of a review) from the
/// user's request after it.
pub(super) fn split_request(text: &str) -> (Option<&str>, &str) {
    if !text.trim_start().starts_with("# ") {
        return (None, text);
    }
    for heading in REQUEST_HEADINGS {
        if let Some((context, typed)) = text.split_once(heading)
            && context.ends_with('\n')
            && !typed.trim().is_empty()
        {
            return (Some(context.trim()), typed.trim());
        }
    }
    (None, text)
}

/// Returns the agent's folder that a machine text names. In the flat generation it is recorded
/// nowhere else.
pub(super) fn working_folder(context: &str) -> Option<&str> {
    if let Some((_, rest)) = context.split_once("<cwd>")
        && let Some((folder, _)) = rest.split_once("</cwd>")
    {
        return Some(folder.trim());
    }
    let (_, rest) = context.split_once("Current working directory: ")?;
    rest.lines().next().map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, machine: &[&str], typed: &str) {
        let input = UserInput::from_text(text);
        let subtypes: Vec<_> = input.machine.iter().map(|(subtype, _)| *subtype).collect();
        assert_eq!((subtypes.as_slice(), input.typed.as_str()), (machine, typed), "{text}");
    }

    #[test]
    fn machine_text_is_told_from_prompts() {
        check("<environment_context>\n x", &["environment_context"], "");
        check("# AGENTS.md instructions for /x", &["agents_md"], "");
        check("# Review findings:", &[], "# Review findings:");
        check("<html> is broken", &[], "<html> is broken");
    }

    #[test]
    fn joined_texts_are_judged_one_by_one() {
        let plugins = "<recommended_plugins>\n- a\n</recommended_plugins>";
        let agents =
            "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>";
        let both = ["recommended_plugins", "agents_md"];
        check(&format!("{plugins}\n{agents}"), &both, "");
        check(&format!("{plugins}\n{agents}\nFix it."), &both, "Fix it.");
        let browser = "<in-app-browser-context source=\"x\">\ny\n</in-app-browser-context>";
        check(&format!("{browser}\n\n## My request:\nGo on."), &["browser_context"], "Go on.");
    }

    #[test]
    fn what_an_editor_tells_is_no_part_of_the_prompt() {
        let text = "\n# Files mentioned by the user:\n\n## a.png: /a.png\n\n## My request for Codex:\nUse it\n";
        let context = "# Files mentioned by the user:\n\n## a.png: /a.png";
        assert_eq!(split_request(text), (Some(context), "Use it"));
        for whole in
            ["# Findings:\n\n## My request for Codex:\n", "say\n## My request for Codex: x"]
        {
            assert_eq!(split_request(whole), (None, whole));
        }
    }
}
