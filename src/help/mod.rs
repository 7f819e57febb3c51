//! Help for agents, made from the registry of tools and the command line's own description of
//! itself: `--ai-help`, the request `ai_help`, SKILL.md, the dashdash blocks and the tables of the
//! documentation. It follows dashdash 0.2.0.

pub mod dashdash;
mod guide;
pub mod reference;
mod served_lines;
mod skill;

use std::fmt::Write as _;

use schemas::tool::{ServedTools, TOOLS};
use serde_json::{Map, Value, json};

use self::dashdash::SPEC_VERSION;
use self::guide::QuickTask;
pub(crate) use self::served_lines::served_lines;

/// One command of the command line.
#[derive(Debug, Clone)]
pub struct CommandHelp {
    pub name: String,
    pub about: String,
    pub usage: String,
    /// The arguments and flags: how each is written, and its help.
    pub options: Vec<(String, String)>,
}

/// Help for agents, made from the commands and the registry of tools.
#[derive(Debug, Clone)]
pub struct Help {
    commands: Vec<CommandHelp>,
    /// The tools that the manual describes.
    served: ServedTools,
}

/// A chapter of the manual.
struct Section {
    /// Its name in `ai_help`.
    key: &'static str,
    title: &'static str,
    body: String,
}

impl Section {
    fn new(key: &'static str, title: &'static str, body: String) -> Self {
        Self { key, title, body }
    }
}

impl Help {
    /// Creates the help of a program with these commands.
    pub fn new(commands: Vec<CommandHelp>) -> Self {
        Self { commands, served: ServedTools::ALL }
    }

    /// Returns the help for clients of a server that serves these tools.
    #[must_use]
    pub fn with_tools(self, served: ServedTools) -> Self {
        Self { served, ..self }
    }

    /// Returns the whole manual with its front matter.
    pub fn manual(&self) -> String {
        let mut out = front_matter(self.served);
        out.push_str("\n# sessions\n");
        for section in self.sections() {
            let _ = write!(out, "\n## {}\n\n{}\n", section.title, section.body.trim_end());
        }
        out
    }

    /// Returns the help of one command, without front matter; `None` if there is no such command.
    pub fn command_manual(&self, name: &str) -> Option<String> {
        let command = self.commands.iter().find(|command| command.name == name)?;
        let mut out = format!("# sessions {name}\n\n{}.\n\n## Usage\n\n", command.about);
        out.push_str(&command_text(command));

        if let Some(tool) = TOOLS.iter().find(|tool| tool.command == name) {
            let _ = write!(
                out,
                "\n## What it does\n\n{}\n\nThe MCP tool `{}` does the same; `--json` prints exactly its answer.\n\n## Examples\n\n",
                tool.description, tool.name
            );
            for example in tool.examples {
                let _ =
                    write!(out, "{}:\n\n```sh\n{}\n```\n\n", example.description, example.command);
            }
            out.push_str("## Errors\n\n");
            for code in tool.all_errors() {
                let _ = writeln!(out, "- `{code}`: {}. {}.", code.meaning(), code.resolution());
            }
        }

        let _ = write!(out, "\n## Exit codes\n\n{}", guide::EXIT_CODES);
        Some(out)
    }

    /// Returns the answer to the request `ai_help`: the manual or a section of it, as Markdown or
    /// JSON. The error lists the sections.
    pub fn answer_request(&self, as_json: bool, section: Option<&str>) -> Result<Value, String> {
        let sections = self.sections();
        let wanted = match section {
            None => None,
            Some(name) => Some(find_section(&sections, name)?),
        };

        if as_json {
            let mut parts = Map::new();
            for section in &sections {
                if wanted.is_none_or(|wanted| wanted.key == section.key) {
                    parts.insert(section.key.to_owned(), self.section_as_json(section));
                }
            }
            let metadata = json!({
                "name": "sessions",
                "description": guide::DESCRIPTION,
                "specVersion": SPEC_VERSION,
            });
            return Ok(json!({
                "metadata": metadata,
                "sections": parts,
                "contentType": "application/json",
            }));
        }
        let content = match wanted {
            None => self.manual(),
            Some(section) => format!("## {}\n\n{}\n", section.title, section.body.trim_end()),
        };
        Ok(json!({ "content": content, "contentType": "text/markdown" }))
    }

    /// Returns the text of SKILL.md, which describes how an agent uses the tools.
    pub fn skill_text(&self) -> String {
        skill::skill_text()
    }

    /// Returns a section as data if it is a list, otherwise its text.
    fn section_as_json(&self, section: &Section) -> Value {
        match section.key {
            "whenToUse" => guide::when_to_use().into(),
            "quickReference" => guide::quick_reference(self.served).into_iter().map(quick_as_json).collect(),
            "commandReference" => self
                .commands
                .iter()
                .map(|command| json!({ "command": command.name, "description": command.about, "usage": command.usage }))
                .collect(),
            "errorHandling" => dashdash::error_list(schemas::ErrorCode::ALL.iter().copied()),
            "tools" => self.served.specs().map(dashdash::full_tool_block).collect(),
            _ => Value::String(section.body.trim_end().to_owned()),
        }
    }

    /// Returns the sections of the manual, in order.
    fn sections(&self) -> Vec<Section> {
        let served = self.served;
        let mut sections = vec![
            Section::new("whenToUse", "When to Use", guide::when_to_use_text()),
            Section::new("overview", "Overview", guide::OVERVIEW.to_owned()),
            Section::new("setup", "Setup", guide::SETUP.to_owned()),
            Section::new("quickReference", "Quick Reference", guide::quick_reference_text(served)),
            Section::new("tools", "MCP Tools", reference::tools_text(served)),
            Section::new("commandReference", "Command Reference", self.command_reference()),
            Section::new("inputSpecification", "Input Specification", guide::INPUT.to_owned()),
            Section::new("outputFormats", "Output Formats", guide::OUTPUT.to_owned()),
            Section::new("examples", "Examples", guide::examples_text(served)),
            Section::new("negativeExamples", "Negative Examples", guide::NEGATIVE.to_owned()),
            Section::new("inputSchema", "Input Schema", guide::input_schema_text(served)),
            Section::new("outputSchema", "Output Schema", guide::OUTPUT_SCHEMA.to_owned()),
            Section::new("formatConversion", "Format Conversion", guide::CONVERSION.to_owned()),
            Section::new(
                "authentication",
                "Authentication and Prerequisites",
                guide::AUTHENTICATION.to_owned(),
            ),
            Section::new(
                "rateLimits",
                "Rate Limits and Performance",
                guide::RATE_LIMITS.to_owned(),
            ),
            Section::new("errorHandling", "Error Handling", guide::errors_text()),
            Section::new("troubleshooting", "Troubleshooting", guide::TROUBLESHOOTING.to_owned()),
            Section::new("bestPractices", "Best Practices", guide::BEST_PRACTICES.to_owned()),
            Section::new(
                "operationalSemantics",
                "Operational Semantics",
                guide::SEMANTICS.to_owned(),
            ),
            Section::new("capabilities", "Capabilities and Tags", guide::capabilities_text(served)),
            Section::new("lifecycle", "Lifecycle", guide::LIFECYCLE.to_owned()),
        ];
        for section in &mut sections {
            section.body = served_lines(&section.body, served);
        }
        sections
    }

    /// Returns the usage and the options of every command.
    fn command_reference(&self) -> String {
        let mut out = String::from(
            "Every command has `--store DIR`, `--json` and `--quiet`, and `--ai-help` of its own.\n",
        );
        for command in &self.commands {
            let _ = write!(out, "\n### sessions {}\n\n{}.\n\n", command.name, command.about);
            out.push_str(&command_text(command));
        }
        out
    }
}

/// Returns the section with this key or title, in any spelling. The error lists the sections.
fn find_section<'s>(sections: &'s [Section], name: &str) -> Result<&'s Section, String> {
    for section in sections {
        if normalized_name(section.key) == normalized_name(name)
            || normalized_name(section.title) == normalized_name(name)
        {
            return Ok(section);
        }
    }
    let keys: Vec<_> = sections.iter().map(|section| section.key).collect();
    Err(format!("no section '{name}'. Sections: {}", keys.join(", ")))
}

fn quick_as_json(row: &QuickTask) -> Value {
    let mut entry = json!({ "task": row.task, "command": row.command });
    if !row.tool.is_empty() {
        entry["tool"] = row.tool.into();
    }
    entry
}

/// Returns the usage and the options of a command.
fn command_text(command: &CommandHelp) -> String {
    let mut out = format!("```sh\n{}\n```\n", command.usage);
    if !command.options.is_empty() {
        out.push('\n');
    }
    for (form, help) in &command.options {
        let _ = writeln!(out, "- `{form}`: {help}");
    }
    out
}

/// Returns the front matter: YAML between lines of dashes. Its texts need no quotes in YAML.
fn front_matter(served: ServedTools) -> String {
    let allowed: Vec<_> = served.specs().map(|tool| tool.name).collect();
    format!(
        "---\nname: sessions\ndescription: >-\n  {description}\nspec-url: https://github.com/visionik/dashdash\nspec-version: {SPEC_VERSION}\n\
         subcommand-help: true\naccess-level: {access}\ncli-url: none\nweb-url: none\nmcp-url: none\napi-url: none\n\
         argument-hint: COMMAND [OPTIONS]\ninstall:\n  cargo: cargo xtask install\nrequires:\n  bins: []\n  os: [linux, macos, windows]\n  env: []\n\
         invocation:\n  model-invocable: true\n  user-invocable: true\n  allowed-tools: [{allowed}]\ncontent-version: {version}\n---\n",
        description = guide::DESCRIPTION,
        access = dashdash::access_level(),
        allowed = allowed.join(", "),
        version = env!("CARGO_PKG_VERSION"),
    )
}

/// Returns a name in the form in which `whenToUse`, `when-to-use` and `When to Use` are equal.
fn normalized_name(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn help() -> Help {
        Help::new(vec![CommandHelp {
            name: "search".to_owned(),
            about: "Find events by their text".to_owned(),
            usage: "sessions search QUERY".to_owned(),
            options: vec![("--limit <N>".to_owned(), "Matches per page".to_owned())],
        }])
    }

    #[test]
    fn the_manual_has_every_section_that_the_specification_asks_for() {
        let text = help().manual();
        assert!(text.starts_with("---\nname: sessions\n"), "{text}");
        for title in [
            "When to Use",
            "Overview",
            "Setup",
            "Quick Reference",
            "Command Reference",
            "Input Specification",
            "Output Formats",
            "Examples",
            "Authentication and Prerequisites",
            "Rate Limits and Performance",
            "Troubleshooting",
            "Negative Examples",
            "Format Conversion",
            "Best Practices",
            "Error Handling",
            "Input Schema",
            "Output Schema",
            "Operational Semantics",
            "Capabilities and Tags",
            "Lifecycle",
        ] {
            assert_eq!(text.matches(&format!("\n## {title}\n")).count(), 1, "{title}");
        }
        assert!(text.contains("Do NOT use"));
        assert!(text.len() / 4 < 25_000, "{} tokens", text.len() / 4);
        // Fences are closed and empty lines do not pile up.
        assert_eq!(text.matches("```").count() % 2, 0);
        assert!(!text.contains("\n\n\n"));
    }

    #[test]
    fn sections_are_found_by_any_spelling_and_others_named() {
        for name in ["whenToUse", "when-to-use", "When to Use", "when_to_use"] {
            let answer = help().answer_request(false, Some(name)).expect(name);
            let content = answer["content"].as_str().expect("text");
            assert!(content.starts_with("## When to Use\n"), "{content}");
        }
        let json = help().answer_request(true, None).expect("all");
        assert!(json["sections"]["whenToUse"].as_array().is_some_and(|list| list.len() > 3));
        assert_eq!(json["sections"]["tools"].as_array().map(Vec::len), Some(TOOLS.len()));
        assert_eq!(json["metadata"]["specVersion"], SPEC_VERSION);
        let error = help().answer_request(true, Some("nonsense")).expect_err("unknown");
        assert!(error.contains("quickReference"), "{error}");
    }

    #[test]
    fn a_commands_help_has_no_front_matter() {
        let text = help().command_manual("search").expect("known");
        assert!(text.starts_with("# sessions search\n") && text.contains("search_events"));
        assert!(help().command_manual("nonsense").is_none());
    }
}
