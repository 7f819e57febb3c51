//! `cargo xtask pin`: writes the lock file from the answers of npm.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::digest;
use crate::failure::{Failure, Result};
use crate::lock::{self, Pin};
use crate::npm::{self, Answer};
use crate::options::Options;
use crate::scratch::Scratch;
use crate::shell;

const HEADER: &str = "\
# The prebuilt DuckDB libraries that `cargo xtask fetch` may take, one a line:
# npm package, version, SHA-512 of its tarball (base64).
# A platform without a line compiles DuckDB from source. `cargo xtask pin` writes this file.
";

pub(crate) fn run(root: &Path, options: Options) -> Result<()> {
    let old = lock::read(root)?;
    let version = match &options.rest[..] {
        [] => old.first().map(|pin| pin.version.clone()),
        [version] if !version.starts_with('-') => Some(version.clone()),
        _ => return Err(Failure::usage("`cargo xtask pin` takes one version")),
    };
    let version = version
        .ok_or_else(|| Failure::usage(format!("{} is empty: give a version", lock::PATH)))?;
    // npm runs in another directory, so that it reads no settings of a project.
    let scratch = Scratch::new(&std::env::temp_dir())?;
    let mut pins = Vec::new();
    for platform in lock::PINNED {
        let package = lock::package(platform);
        let spec = format!("{package}@{version}");
        let known = old.iter().find(|pin| pin.package == package && pin.version == version);
        match npm::integrity(OsStr::new("npm"), &spec, scratch.path()) {
            Answer::Got(integrity) => {
                check(&spec, &integrity, known)?;
                shell::print(&format!("{spec}: {integrity}"));
                pins.push(Pin { package, version: version.clone(), integrity });
            }
            Answer::No(why) => {
                let kept = if known.is_some() { "line kept" } else { "no line" };
                shell::print(&format!("{spec}: {kept}: {why}"));
                pins.extend(known.cloned());
            }
        }
    }
    if pins.is_empty() {
        return Err(Failure::step(format!("npm has no package of {version}; nothing written")));
    }
    let path = root.join(lock::PATH);
    fs::write(&path, text(&pins)).map_err(Failure::io("write", &path))
}

fn check(spec: &str, integrity: &str, known: Option<&Pin>) -> Result<()> {
    if !digest::is_integrity(integrity) {
        return Err(Failure::step(format!("{spec} has no SHA-512: `{integrity}`")));
    }
    match known {
        Some(pin) if pin.integrity != integrity => Err(Failure::step(format!(
            "{spec} was pinned with another checksum\n  pinned {}\n  npm    {integrity}",
            pin.integrity
        ))),
        _ => Ok(()),
    }
}

fn text(pins: &[Pin]) -> String {
    let line = |pin: &Pin| format!("{} {} {}\n", pin.package, pin.version, pin.integrity);
    HEADER.to_owned() + &pins.iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_file_is_as_written_by_this() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        let found = fs::read_to_string(root.join(lock::PATH)).expect("read the lock file");
        assert_eq!(found, text(&lock::read(root).expect("parse the lock file")));
    }

    #[test]
    fn a_changed_checksum_is_refused() {
        let integrity = digest::integrity(b"one");
        let pin = Pin { package: "p".into(), version: "1".into(), integrity: integrity.clone() };
        assert!(check("p@1", &integrity, Some(&pin)).is_ok());
        assert!(check("p@1", &integrity, None).is_ok());
        assert!(check("p@1", &digest::integrity(b"two"), Some(&pin)).is_err());
        assert!(check("p@1", "sha1-abc", None).is_err());
    }
}
