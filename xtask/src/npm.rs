//! Asks npm for packages and their checksums.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::failure::{Failure, Result};
use crate::lock::Pin;

/// The result of a request to npm.
pub(crate) enum Answer<T> {
    Got(T),
    /// npm is missing or could not get the package, for the given reason.
    No(String),
}

/// Downloads the pinned package's tarball into `into`. It is a failure if npm reports that the
/// bytes differ from the published ones. Any other reason why the tarball is missing is an
/// [`Answer::No`].
pub(crate) fn pack(npm: &OsStr, pin: &Pin, into: &Path) -> Result<Answer<PathBuf>> {
    let spec = format!("{}@{}", pin.package, pin.version);
    let output = match run(npm, &["pack", &spec], into) {
        Ok(output) => output,
        Err(why) => return Ok(Answer::No(why)),
    };
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("EINTEGRITY") {
            return Err(Failure::step(format!("checksum of {spec}: {}", summary(&said))));
        }
        return Ok(Answer::No(format!("`npm pack {spec}` failed: {}", summary(&said))));
    }
    let entries = fs::read_dir(into).map_err(Failure::io("read", into))?;
    let tarball = entries
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| path.extension() == Some(OsStr::new("tgz")));
    match tarball {
        Some(path) => Ok(Answer::Got(path)),
        None => Ok(Answer::No(format!("`npm pack {spec}` left no file"))),
    }
}

/// Returns the integrity that the registry gives for a package.
pub(crate) fn integrity(npm: &OsStr, spec: &str, inside: &Path) -> Answer<String> {
    let output = match run(npm, &["view", spec, "dist.integrity"], inside) {
        Ok(output) => output,
        Err(why) => return Answer::No(why),
    };
    let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !said.is_empty() {
        Answer::Got(said)
    } else {
        Answer::No(summary(&String::from_utf8_lossy(&output.stderr)))
    }
}

fn run(npm: &OsStr, args: &[&str], inside: &Path) -> std::result::Result<Output, String> {
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
fn summary(said: &str) -> String {
    let errors = || said.lines().filter_map(|line| line.trim().strip_prefix("npm error "));
    let coded = ["code ", "errno ", "syscall ", "network "];
    let sentence = errors().find(|line| !coded.iter().any(|code| line.starts_with(code)));
    let line = sentence.or_else(|| errors().next()).or_else(|| said.lines().next());
    line.map_or("it gave no reason", str::trim).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_is_picked_out_of_npms_errors() {
        let said = "npm warn x\nnpm error code E404\nnpm error 404 No match\nnpm error 404\n";
        assert_eq!(summary(said), "404 No match");
        assert_eq!(summary("sh: no such thing\n"), "sh: no such thing");
        assert_eq!(summary("npm error code ENOTFOUND\n"), "code ENOTFOUND");
        assert_eq!(summary(""), "it gave no reason");
    }
}
