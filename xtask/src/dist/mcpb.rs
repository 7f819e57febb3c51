//! Writes the MCPB bundle, which Claude Desktop installs by a click.

use serde_json::{Value, json};

use super::entry::ArchiveFile;
use super::names::{DESCRIPTION, LICENCE, PACKAGE, REPOSITORY, SBOM_NAME, publisher};
use super::release::{Artifact, Release};
use super::zip;
use crate::failure::{Result, TaskFailure};

/// Returns the bundle of a release.
pub(super) fn pack_bundle(release: &Release) -> Result<Artifact> {
    let program = format!("server/{}", release.target.program_name());
    let manifest = json!({
        "manifest_version": "0.3",
        "name": PACKAGE,
        "display_name": "Session logs of coding agents",
        "version": release.version,
        "description": DESCRIPTION,
        "author": { "name": publisher() },
        "repository": { "type": "git", "url": format!("{REPOSITORY}.git") },
        "license": LICENCE,
        "keywords": ["history", "sessions", "agents", "search"],
        "server": {
            "type": "binary",
            "entry_point": program,
            "mcp_config": {
                "command": format!("${{__dirname}}/{program}"),
                "args": ["mcp"],
                "env": {},
            },
        },
        "tools": tool_list(&release.tools)?,
        "compatibility": { "platforms": [release.target.npm_os] },
    });
    let mut files = vec![
        ArchiveFile::plain("manifest.json", format!("{manifest:#}\n")),
        ArchiveFile::program(program, &release.program),
        ArchiveFile::plain(SBOM_NAME, release.sbom.as_str()),
    ];
    for (name, text) in &release.licences {
        files.push(ArchiveFile::plain(name.as_str(), text.as_str()));
    }
    let bytes = zip::pack_zip(&files, release.compression)?;
    Ok(Artifact { name: release.target.bundle_name(&release.version), bytes })
}

/// Returns names and titles of the tools that the server lists, from the answer of `sessions tools`.
/// Those that need a flag of the server are left out.
fn tool_list(answer: &Value) -> Result<Value> {
    let mut tools = Vec::new();
    for tool in answer["data"]["tools"].as_array().into_iter().flatten() {
        let (Some(name), Some(title)) = (tool["tool"].as_str(), tool["title"].as_str()) else {
            continue;
        };
        if tool["category"] == "read" {
            tools.push(json!({ "name": name, "description": title }));
        }
    }
    if tools.is_empty() {
        return Err(TaskFailure::step("`sessions tools --json` lists no tool that reads"));
    }
    Ok(tools.into())
}
