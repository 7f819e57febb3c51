//! Tables made from the registry: for the README, the manual and `docs/mcp.md`.

use std::fmt::Write as _;

use schemas::ErrorCode;
use schemas::envelope::{DebugMetadata, Metadata, Pagination, Warning};
use schemas::tool::{TOOLS, ToolSpec, schema};
use serde_json::Value;

use super::guide::{arguments_table, cell};

/// The README's table of tools.
pub fn tool_table() -> String {
    let mut out = String::from("| tool | answers | command |\n|---|---|---|\n");
    for tool in TOOLS {
        let _ =
            writeln!(out, "| `{}` | {} | `sessions {}` |", tool.name, tool.answers, tool.command);
    }
    out
}

/// Every tool with its description and arguments.
pub(super) fn tools_text() -> String {
    let mut out = String::new();
    for tool in TOOLS {
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

/// What `docs/mcp.md` says of a tool before its examples.
pub fn tool_text(tool: &ToolSpec) -> String {
    let codes: Vec<_> = tool.all_errors().map(|code| format!("`{code}`")).collect();
    let hints = format!(
        "read-only: {}, destructive: {}, idempotent: {}, open world: {}",
        tool.read_only, tool.destructive, tool.idempotent, tool.open_world
    );
    let mut out = format!(
        "## {name}\n\n{description}\n\nRisk level {risk}, category `{category}`, action template \"{template}\"; {hints}.\nCommand: `sessions {command}`.\n\n",
        name = tool.name,
        description = tool.description,
        risk = tool.risk.level(),
        category = tool.category,
        template = tool.action_template,
        command = tool.command,
    );
    for alias in tool.aliases {
        let _ = writeln!(out, "Earlier name: `{}`, until {}.\n", alias.name, alias.sunset);
    }
    out.push_str(&arguments_table(&(tool.input)()));
    let parts: Vec<_> = schema::fields(&(tool.output)())
        .into_iter()
        .map(|field| format!("`{}`", field.name))
        .collect();
    let _ = write!(out, "\n`data` holds {}.\n\nErrors: {}.\n", parts.join(", "), codes.join(", "));
    out
}

/// Every field of the envelope: its type, whether it may be absent, whether it is approximate.
pub fn envelope_text() -> String {
    let mut out = String::new();
    for (name, schema) in [
        ("metadata", schema::documented::<Metadata>()),
        ("pagination", schema::documented::<Pagination>()),
        ("warnings (each)", schema::documented::<Warning>()),
        (
            "_meta of a result, and metadata under --metadata full",
            schema::documented::<DebugMetadata>(),
        ),
    ] {
        let _ = write!(out, "### {name}\n\n{}\n", fields_table(&schema));
    }
    out
}

fn fields_table(schema: &Value) -> String {
    let mut out =
        String::from("| field | type | present | exact | meaning |\n|---|---|---|---|---|\n");
    for field in schema::fields(schema) {
        let approximate = field.description.contains("approximate");
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            field.name,
            cell(&field.kind),
            if field.required { "always" } else { "may be absent" },
            if approximate { "approximate" } else { "exact" },
            cell(&field.description)
        );
    }
    out
}

/// What a code means and what to do; its example follows in the documentation.
pub fn error_text(code: ErrorCode) -> String {
    format!(
        "### {code}\n\n{}. {}.{}\n",
        code.meaning(),
        code.resolution(),
        if code.retryable() { " The same call may succeed later." } else { "" }
    )
}
