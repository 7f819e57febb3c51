//! Writes the wheel for PyPI. It has no Python code: the program is a script of the wheel.
//!
//! ```text
//! sessions_mcp-0.1.0.data/scripts/sessions
//! sessions_mcp-0.1.0.data/scripts/sessions-mcp     runs `sessions`; `uvx` needs a script of this name
//! sessions_mcp-0.1.0.dist-info/{METADATA,WHEEL,RECORD,licenses/..,sboms/..}
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::entry::ArchiveFile;
use super::names::{DESCRIPTION, LICENCE, PACKAGE, REPOSITORY, SBOM_NAME};
use super::release::{Artifact, Release};
use super::target::{GLIBC_MINOR, needed_glibc};
use super::zip;
use crate::failure::Result;

/// Starts the program next to it. A link to the script is followed.
const SECOND_NAME: &str =
    "#!/bin/sh\nexec \"$(dirname \"$(readlink -f \"$0\")\")/sessions\" \"$@\"\n";

/// Returns the wheel of a release.
pub(super) fn pack_wheel(release: &Release) -> Result<Artifact> {
    let target = release.target;
    let stem = format!("{}-{}", PACKAGE.replace('-', "_"), release.version);
    let scripts = format!("{stem}.data/scripts");
    let info = format!("{stem}.dist-info");
    let tag = format!("py3-none-{}", platform_tag(release));

    let mut files = vec![ArchiveFile::program(
        format!("{scripts}/{}", target.program_name()),
        &release.program,
    )];
    let second = if target.is_windows() {
        ArchiveFile::program(format!("{scripts}/{PACKAGE}.exe"), &release.program)
    } else {
        ArchiveFile::program(format!("{scripts}/{PACKAGE}"), SECOND_NAME.as_bytes())
    };
    files.push(second);
    for (name, text) in &release.licences {
        files.push(ArchiveFile::plain(format!("{info}/licenses/{name}"), text.as_str()));
    }
    files.push(ArchiveFile::plain(format!("{info}/sboms/{SBOM_NAME}"), release.sbom.as_str()));
    files.push(ArchiveFile::plain(format!("{info}/METADATA"), metadata_text(release)));
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: xtask {}\nRoot-Is-Purelib: false\nTag: {tag}\n",
        release.version
    );
    files.push(ArchiveFile::plain(format!("{info}/WHEEL"), wheel));
    let record = record_text(&files, &info);
    files.push(ArchiveFile::plain(format!("{info}/RECORD"), record));

    let bytes = zip::pack_zip(&files, release.compression)?;
    Ok(Artifact { name: format!("{stem}-{tag}.whl"), bytes })
}

/// Returns the platform of the wheel. On Linux it says which glibc the program needs at least.
fn platform_tag(release: &Release) -> String {
    if !release.target.is_linux() {
        return release.target.wheel.to_owned();
    }
    let minor = needed_glibc(&release.program).unwrap_or_default().max(GLIBC_MINOR);
    format!("manylinux_2_{minor}_{}", release.target.wheel)
}

/// Returns the metadata, with the README as description. PyPI's entry in the MCP registry is
/// verified by the line `mcp-name:` in it.
fn metadata_text(release: &Release) -> String {
    let mut text = format!(
        "Metadata-Version: 2.4\nName: {PACKAGE}\nVersion: {}\nSummary: {DESCRIPTION}\n\
         License-Expression: {LICENCE}\n",
        release.version
    );
    for (name, _) in &release.licences {
        text.push_str(&format!("License-File: {name}\n"));
    }
    text.push_str(&format!(
        "Project-URL: Repository, {REPOSITORY}\nDescription-Content-Type: text/markdown\n\n{}",
        release.readme
    ));
    text
}

/// Returns the list of the files of the wheel, with their hashes.
fn record_text(files: &[ArchiveFile], info: &str) -> String {
    let mut text = String::new();
    for file in files {
        let hash = STANDARD.encode(Sha256::digest(&file.bytes));
        let hash = hash.trim_end_matches('=').replace('+', "-").replace('/', "_");
        text.push_str(&format!("{},sha256={hash},{}\n", file.path, file.bytes.len()));
    }
    text.push_str(&format!("{info}/RECORD,,\n"));
    text
}
