//! Writes the packages for npm: one with the program for each platform, and a launcher that
//! depends on all of them. npm installs the one for its platform. No package has an install script.

use serde_json::{Map, Value, json};

use super::entry::ArchiveFile;
use super::names::{DESCRIPTION, LICENCE, PACKAGE, REPOSITORY, SBOM_NAME, registry_name};
use super::release::{Artifact, Release};
use super::tar::pack_tar_gz;
use super::target::TARGETS;
use crate::failure::Result;

const LAUNCHER: &str = include_str!("files/launcher.js");

/// Returns the package with the program.
pub(super) fn pack_platform(release: &Release) -> Result<Artifact> {
    let target = release.target;
    let name = target.npm_package();
    let mut manifest = json!({
        "name": name,
        "version": release.version,
        "description": format!("The program of {PACKAGE} for {} on {}", target.npm_os, target.npm_cpu),
        "license": LICENCE,
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
        "os": [target.npm_os],
        "cpu": [target.npm_cpu],
        "preferUnplugged": true,
    });
    if target.is_linux() {
        manifest["libc"] = json!(["glibc"]);
    }
    let readme =
        format!("The program of the package `{PACKAGE}` for one platform. Install that.\n");
    let files = vec![
        package_json(&manifest),
        ArchiveFile::program(format!("package/bin/{}", target.program_name()), &release.program),
        ArchiveFile::plain("package/README.md", readme),
        ArchiveFile::plain(format!("package/{}", SBOM_NAME), release.sbom.as_str()),
    ];
    pack(release, &name, files)
}

/// Returns the launcher.
pub(super) fn pack_launcher(release: &Release) -> Result<Artifact> {
    let mut platforms = Map::new();
    for target in TARGETS {
        platforms.insert(target.npm_package(), Value::from(release.version.as_str()));
    }
    let manifest = json!({
        "name": PACKAGE,
        "version": release.version,
        "description": DESCRIPTION,
        "license": LICENCE,
        "repository": { "type": "git", "url": format!("git+{REPOSITORY}.git") },
        "mcpName": registry_name(),
        "bin": { "sessions": "bin/sessions.js", PACKAGE: "bin/sessions.js" },
        "engines": { "node": ">=18" },
        "optionalDependencies": platforms,
    });
    let files = vec![
        package_json(&manifest),
        ArchiveFile::program("package/bin/sessions.js", LAUNCHER.as_bytes()),
        ArchiveFile::plain("package/README.md", release.readme.as_str()),
    ];
    pack(release, PACKAGE, files)
}

fn package_json(manifest: &Value) -> ArchiveFile {
    ArchiveFile::plain("package/package.json", format!("{manifest:#}\n"))
}

/// Packs the files of a package and the licences.
fn pack(release: &Release, name: &str, mut files: Vec<ArchiveFile>) -> Result<Artifact> {
    for (licence, text) in &release.licences {
        files.push(ArchiveFile::plain(format!("package/{licence}"), text.as_str()));
    }
    let bytes = pack_tar_gz(&files, release.compression)?;
    Ok(Artifact { name: format!("{name}-{}.tgz", release.version), bytes })
}
