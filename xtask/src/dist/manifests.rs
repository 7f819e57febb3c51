//! Writes what other package managers read: a Homebrew formula, a Nix flake, manifests for Scoop
//! and winget, a Dockerfile, and the entry for the MCP registry. They name the archives and bundles of a
//! release by address and SHA-256, so each is made of those that are in the folder.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::names::{
    DESCRIPTION, HOMEPAGE, LICENCE, PACKAGE, REPOSITORY, WINGET_IDENTIFIER, publisher,
};
use super::release::{Artifact, hex_sha256};
use super::target::{TARGETS, Target};
use crate::failure::{Result, TaskFailure};

const FORMULA: &str = include_str!("files/formula.rb");
const FLAKE: &str = include_str!("files/flake.nix");
const DOCKERFILE: &str = include_str!("files/Dockerfile");

/// The entry for the MCP registry, without bundles.
const REGISTRY_ENTRY: &str = include_str!("../../../server.json");

/// An archive or a bundle of the release.
struct Archive {
    target: &'static Target,
    url: String,
    sha256: String,
}

/// Returns the manifests for the archives in `folder`.
pub(super) fn write_manifests(folder: &Path, version: &str) -> Result<Vec<Artifact>> {
    let archives = find_archives(folder, version, Target::archive_name)?;
    let bundles = find_archives(folder, version, Target::bundle_name)?;

    let mut manifests = Vec::new();
    if archives.iter().any(|archive| archive.target.nix.is_some()) {
        manifests.push(Artifact::text(format!("{PACKAGE}.rb"), formula_text(&archives, version)));
        manifests.push(Artifact::text("flake.nix", flake_text(&archives, version)));
    }
    if archives.iter().any(|archive| archive.target.is_linux()) {
        let text = fill_template(DOCKERFILE, &[("VERSION", version)]);
        manifests.push(Artifact::text("Dockerfile", text));
    }
    if let Some(archive) = archives.iter().find(|archive| archive.target.is_windows()) {
        manifests.push(Artifact::text(format!("{PACKAGE}.json"), scoop_text(archive, version)));
        manifests.extend(winget_manifests(archive, version));
    }
    if !bundles.is_empty() {
        manifests.push(Artifact::text("server.json", registry_text(&bundles)?));
    }
    Ok(manifests)
}

/// Returns the files of the release that are in the folder, one for each platform at most.
fn find_archives(
    folder: &Path,
    version: &str,
    name_of: fn(&Target, &str) -> String,
) -> Result<Vec<Archive>> {
    let mut archives = Vec::new();
    for target in TARGETS {
        let name = name_of(target, version);
        let path = folder.join(&name);
        if path.exists() {
            let bytes = std::fs::read(&path).map_err(TaskFailure::io("read", &path))?;
            let url = format!("{REPOSITORY}/releases/download/v{version}/{name}");
            archives.push(Archive { target, url, sha256: hex_sha256(&bytes) });
        }
    }
    Ok(archives)
}

/// Returns the entry for the MCP registry, with the bundles. The registry refuses a version in theirs.
fn registry_text(bundles: &[Archive]) -> Result<String> {
    let mut entry: Value = serde_json::from_str(REGISTRY_ENTRY)
        .map_err(|error| TaskFailure::step(format!("server.json is not JSON: {error}")))?;
    let packages = entry["packages"].as_array_mut();
    let packages = packages.ok_or_else(|| TaskFailure::step("server.json has no packages"))?;
    for bundle in bundles {
        packages.push(json!({
            "registryType": "mcpb",
            "identifier": bundle.url,
            "fileSha256": bundle.sha256,
            "transport": { "type": "stdio" },
        }));
    }
    Ok(format!("{entry:#}\n"))
}

/// Fills the placeholders `@NAME@` of a template.
fn fill_template(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    text
}

fn formula_text(archives: &[Archive], version: &str) -> String {
    let mut systems = String::new();
    for (os, block) in [("darwin", "on_macos"), ("linux", "on_linux")] {
        let mut processors = String::new();
        for archive in archives.iter().filter(|archive| archive.target.npm_os == os) {
            let processor = if archive.target.npm_cpu == "arm64" { "on_arm" } else { "on_intel" };
            processors.push_str(&format!(
                "    {processor} do\n      url \"{}\"\n      sha256 \"{}\"\n    end\n",
                archive.url, archive.sha256
            ));
        }
        if !processors.is_empty() {
            systems.push_str(&format!("\n  {block} do\n{processors}  end\n"));
        }
    }
    let description = DESCRIPTION.trim_end_matches('.');
    fill_template(
        FORMULA,
        &[
            ("DESCRIPTION", description),
            ("HOMEPAGE", HOMEPAGE),
            ("VERSION", version),
            ("SYSTEMS", &systems),
        ],
    )
}

fn flake_text(archives: &[Archive], version: &str) -> String {
    let mut systems = String::new();
    for archive in archives {
        if let Some(system) = archive.target.nix {
            systems.push_str(&format!(
                "        {system} = {{\n          url = \"{}\";\n          sha256 = \"{}\";\n        }};\n",
                archive.url, archive.sha256
            ));
        }
    }
    fill_template(
        FLAKE,
        &[
            ("DESCRIPTION", DESCRIPTION),
            ("PACKAGE", PACKAGE),
            ("HOMEPAGE", HOMEPAGE),
            ("VERSION", version),
            ("SYSTEMS", systems.trim_end()),
        ],
    )
}

fn scoop_text(archive: &Archive, version: &str) -> String {
    let mut architecture = Map::new();
    architecture.insert(
        "64bit".to_owned(),
        json!({
            "url": archive.url,
            "hash": archive.sha256,
            "extract_dir": archive.target.archive_stem(version),
        }),
    );
    let manifest = json!({
        "version": version,
        "description": DESCRIPTION,
        "homepage": HOMEPAGE,
        "license": LICENCE.replace(" OR ", "|"),
        "architecture": architecture,
        "bin": archive.target.program_name(),
    });
    format!("{manifest:#}\n")
}

/// Returns the three files that winget wants for a version. JSON is valid YAML.
fn winget_manifests(archive: &Archive, version: &str) -> Vec<Artifact> {
    const SCHEMA: &str = "1.10.0";
    let folder = archive.target.archive_stem(version);
    let installer = json!({
        "PackageIdentifier": WINGET_IDENTIFIER,
        "PackageVersion": version,
        "InstallerType": "zip",
        "NestedInstallerType": "portable",
        "NestedInstallerFiles": [{
            "RelativeFilePath": format!("{folder}\\{}", archive.target.program_name()),
            "PortableCommandAlias": "sessions",
        }],
        "Installers": [{
            "Architecture": "x64",
            "InstallerUrl": archive.url,
            "InstallerSha256": archive.sha256.to_uppercase(),
        }],
        "ManifestType": "installer",
        "ManifestVersion": SCHEMA,
    });
    let locale = json!({
        "PackageIdentifier": WINGET_IDENTIFIER,
        "PackageVersion": version,
        "PackageLocale": "en-US",
        "Publisher": publisher(),
        "PackageName": "sessions",
        "PackageUrl": HOMEPAGE,
        "License": LICENCE,
        "ShortDescription": DESCRIPTION,
        "ManifestType": "defaultLocale",
        "ManifestVersion": SCHEMA,
    });
    let version = json!({
        "PackageIdentifier": WINGET_IDENTIFIER,
        "PackageVersion": version,
        "DefaultLocale": "en-US",
        "ManifestType": "version",
        "ManifestVersion": SCHEMA,
    });
    [("installer", installer), ("locale.en-US", locale), ("", version)]
        .map(|(part, manifest)| {
            let dot = if part.is_empty() { "" } else { "." };
            Artifact::text(
                format!("{WINGET_IDENTIFIER}{dot}{part}.yaml"),
                format!("{manifest:#}\n"),
            )
        })
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_manifest_names_the_archives_that_are_there() {
        let scratch = crate::scratch::create_scratch(&std::env::temp_dir()).expect("creates");
        for target in TARGETS {
            let path = scratch.path().join(target.archive_name("1.2.3"));
            std::fs::write(path, target.triple).expect("writes");
            let path = scratch.path().join(target.bundle_name("1.2.3"));
            std::fs::write(path, target.triple).expect("writes");
        }
        let manifests = write_manifests(scratch.path(), "1.2.3").expect("writes");
        let text = |name: &str| {
            let found = manifests.iter().find(|manifest| manifest.name == name).expect(name);
            String::from_utf8(found.bytes.clone()).expect("text")
        };
        for target in TARGETS {
            let hash = hex_sha256(target.triple.as_bytes());
            let readers: &[&str] = if target.is_windows() {
                &["sessions-mcp.json"]
            } else {
                &["sessions-mcp.rb", "flake.nix"]
            };
            for name in readers.iter().chain(&["server.json"]) {
                assert!(text(name).contains(&hash), "{name}: {}", target.triple);
            }
            assert!(text("server.json").contains(&target.bundle_name("1.2.3")));
            for name in readers {
                assert!(text(name).contains(&target.archive_name("1.2.3")), "{name}");
                assert!(!text(name).contains('@'), "{name} has an unfilled placeholder");
            }
        }
        let installer = text("AgentSessions.Sessions.installer.yaml");
        let hash = hex_sha256(b"x86_64-pc-windows-msvc").to_uppercase();
        assert!(installer.contains(&hash), "{installer}");
        assert!(text("Dockerfile").contains("sessions-mcp-1.2.3-${TARGET}.tar.gz"));
        assert_eq!(manifests.len(), 8);
    }

    #[test]
    fn without_archives_there_are_no_manifests() {
        let scratch = crate::scratch::create_scratch(&std::env::temp_dir()).expect("creates");
        assert_eq!(write_manifests(scratch.path(), "1.2.3").expect("reads").len(), 0);
    }
}
