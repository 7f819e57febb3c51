//! Asks npm for packages and their checksums.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::failure::{Result, TaskFailure};
use crate::lock::Pin;

/// The result of a request to npm.
pub(crate) enum NpmAnswer<T> {
    Got(T),
    /// npm is missing or could not get the package, for the given reason.
    No(String),
}

/// Downloads the pinned package's tarball into `into`. It is a failure if npm reports that the
/// bytes differ from the published ones. Any other reason why the tarball is missing is an
/// [`NpmAnswer::No`].
pub(crate) fn download_tarball(npm: &OsStr, pin: &Pin, into: &Path) -> Result<NpmAnswer<PathBuf>> {
    let spec = format!("{}@{}", pin.package, pin.version);
    let output = match run_npm(npm, &["pack", &spec], into) {
        Ok(output) => output,
        Err(why) => return Ok(NpmAnswer::No(why)),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("EINTEGRITY") {
            return Err(TaskFailure::step(format!(
                "checksum of {spec}: {}",
                summarize_errors(&said)
            )));
        }
        return Ok(NpmAnswer::No(format!("`npm pack {spec}` failed: {}", summarize_errors(&said))));
    }
    let entries = fs::read_dir(into).map_err(TaskFailure::io("read", into))?;
    let tarball = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension() == Some(OsStr::new("tgz")));
    match tarball {
        Some(path) => Ok(NpmAnswer::Got(path)),
        None => Ok(NpmAnswer::No(format!("`npm pack {spec}` left no file"))),
    }
}

/// Returns the integrity that the registry gives for a package.
pub(crate) fn fetch_integrity(npm: &OsStr, spec: &str, inside: &Path) -> NpmAnswer<String> {
    let output = match run_npm(npm, &["view", spec, "dist.integrity"], inside) {
        Ok(output) => output,
        Err(why) => return NpmAnswer::No(why),
    };
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !said.is_empty() {
        NpmAnswer::Got(said)
    } else {
        NpmAnswer::No(summarize_errors(&String::from_utf8_lossy(&output.stderr)))
    }
}

/// Runs npm in a directory. The error says why npm could not be run.
fn run_npm(npm: &OsStr, args: &[&str], inside: &Path) -> std::result::Result<Output, String> {
    let mut command = Command::new(npm);
    command.args(args).current_dir(inside).stdin(Stdio::null());
    command.output().map_err(|error| {
        if error.kind() == std::io::ErrorKind::NotFound {
            "npm is not installed".to_owned()
        } else {
            format!("npm could not be run: {error}")
        }
    })
}

/// Returns the first line of npm's errors that is a sentence instead of a code.
fn summarize_errors(said: &str) -> String {
    let mut errors = Vec::new();
    for line in said.lines() {
        errors.extend(line.trim().strip_prefix("npm error "));
    }
    let coded = ["code ", "errno ", "syscall ", "network "];
    let sentence = errors.iter().find(|line| !coded.iter().any(|code| line.starts_with(code)));
    let line = sentence.or(errors.first()).copied().or_else(|| said.lines().next());
    line.map_or("it gave no reason", str::trim).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_is_picked_out_of_npms_errors() {
        let said = "npm warn x\nnpm error code E404\nnpm error 404 No match\nnpm error 404\n";
        assert_eq!(summarize_errors(said), "404 No match");
        assert_eq!(summarize_errors("sh: no such thing\n"), "sh: no such thing");
        assert_eq!(summarize_errors("npm error code ENOTFOUND\n"), "code ENOTFOUND");
        assert_eq!(summarize_errors(""), "it gave no reason");
    }
}
