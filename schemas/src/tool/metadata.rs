//! `tool_metadata`: describes the tools to hosts that show or guard them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::argument::OneOrMany;
use super::schema;
use super::spec::{Category, Risk, ToolExample, ToolSpec};

/// The registry row of `tool_metadata`.
pub const SPEC: ToolSpec = ToolSpec {
    name: "tool_metadata",
    title: "Describe the tools",
    description: "Describes these tools for a host that shows or guards them: title, riskLevel (1 reads, 2 writes, 3 deletes), category (read, write, delete), \
actionTemplate with {argument} placeholders. All tools, or those named.",
    risk: Risk::Read,
    category: Category::Help,
    action_template: "Describe the tools {tools}",
    command: "tools",
    position: Some("tools"),
    answers: "title, risk, category and action template of the tools",
    use_when: &["which of these tools write anything", "how should a call be shown to the user"],
    examples: &[ToolExample {
        description: "One tool",
        arguments: r#"{"tools": ["search_events"]}"#,
        command: "sessions tools search_events",
    }],
    errors: &[],
    input: schema::input_schema::<MetadataArgs>,
    output: schema::output_schema::<MetadataData>,
};

/// The connector that all tools belong to.
pub const CONNECTOR: &str = "sessions";

/// Arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetadataArgs {
    /// Only these tools
    pub tools: Option<OneOrMany<String>>,
}

/// Answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MetadataData {
    /// The requested tools, or all of them.
    pub tools: Vec<ToolMetadata>,
    /// Requested names that are not the name of a tool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_found: Vec<String>,
}

/// One tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolMetadata {
    /// Name of the tool.
    pub tool: &'static str,
    /// The connector that the tool belongs to.
    pub connector_id: &'static str,
    /// Name of the tool for people.
    pub title: &'static str,
    /// 1 reads, 2 writes, 3 deletes.
    pub risk_level: u8,
    /// The worst that a call does: `read`, `write` or `delete`.
    pub category: Risk,
    /// What a call does, in one line; `{argument}` is replaced by the argument's value.
    pub action_template: &'static str,
}

impl From<&ToolSpec> for ToolMetadata {
    fn from(spec: &ToolSpec) -> Self {
        Self {
            tool: spec.name,
            connector_id: CONNECTOR,
            title: spec.title,
            risk_level: spec.risk.level(),
            category: spec.risk,
            action_template: spec.action_template,
        }
    }
}
