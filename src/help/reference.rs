//! Tables made from the registry: for the manual and `docs/mcp.md`.

use std::fmt::Write as _;

use schemas::ErrorCode;
use schemas::envelope::{DebugMetadata, Metadata, Pagination, Warning};
use schemas::tool::{ServedTools, TOOLS, ToolSpec, schema};
use serde_json::Value;

use super::guide::{arguments_table, escape_cell};

/// Returns the table of tools in `docs/mcp.md`.
pub fn tool_table() -> String {
    let mut out = String::from("| tool | answers | command |\n|---|---|---|\n");
    for tool in TOOLS {
        let _ =
            writeln!(out, "| `{}` | {} | `sessions {}` |", tool.name, tool.answers, tool.command);
    }
    out
}

/// Describes every served tool and its arguments.
pub(super) fn tools_text(served: ServedTools) -> String {
    let mut out = String::new();
    for tool in served.specs() {
        let _ = write!(
            out,
            "### {}\n\n{}\n\n{}\n",
            tool.name,
            tool.description,
            arguments_table(&(tool.input)())
        );
    }
    out
}

/// Returns the text of a tool in `docs/mcp.md`, up to its examples.
pub fn tool_text(tool: &ToolSpec) -> String {
    let codes: Vec<_> = tool.all_errors().map(|code| format!("`{code}`")).collect();
    let hints = format!(
        "read-only: {}, destructive: {}, idempotent: true, open world: false",
        tool.is_read_only(),
        !tool.is_read_only()
    );
    let mut out = format!(
        "## {name}\n\n{description}\n\nRisk level {level} (`{risk}`), about `{category}`, action template \"{template}\"; {hints}.\nCommand: `sessions {command}`.\n\n",
        name = tool.name,
        description = tool.description,
        level = tool.risk.level(),
        risk = tool.risk,
        category = tool.category,
        template = tool.action_template,
        command = tool.command,
    );
    out.push_str(&arguments_table(&(tool.input)()));
    let parts: Vec<_> = schema::describe_fields(&(tool.output)())
        .into_iter()
        .map(|field| format!("`{}`", field.name))
        .collect();
    let _ = write!(out, "\n`data` holds {}.\n\nErrors: {}.\n", parts.join(", "), codes.join(", "));
    out
}

/// Describes every field of the envelope: its type, whether it may be absent, and whether it is
/// approximate.
pub fn envelope_text() -> String {
    let mut out = String::new();
    for (name, schema) in [
        ("metadata", schema::documented_schema::<Metadata>()),
        ("pagination", schema::documented_schema::<Pagination>()),
        ("warnings (each)", schema::documented_schema::<Warning>()),
        (
            "_meta of a result, and metadata under --metadata full",
            schema::documented_schema::<DebugMetadata>(),
        ),
    ] {
        let _ = write!(out, "### {name}\n\n{}\n", fields_table(&schema));
    }
    out
}

fn fields_table(schema: &Value) -> String {
    let mut out =
        String::from("| field | type | present | exact | meaning |\n|---|---|---|---|---|\n");
    for field in schema::describe_fields(schema) {
        let is_approximate = field.description.contains("approximate");
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            field.name,
            escape_cell(&field.kind),
            if field.is_required { "always" } else { "may be absent" },
            if is_approximate { "approximate" } else { "exact" },
            escape_cell(&field.description)
        );
    }
    out
}

/// Returns the meaning of an error code and what to do. The documentation adds an example.
pub fn error_text(code: ErrorCode) -> String {
    format!(
        "### {code}\n\n{}. {}.{}\n",
        code.meaning(),
        code.resolution(),
        if code.is_retryable() { " The same call may succeed later." } else { "" }
    )
}
