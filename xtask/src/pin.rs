//! `cargo xtask pin`: writes the lock file from the answers of npm.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::digest;
use crate::failure::{Result, TaskFailure};
use crate::lock::{self, Pin};
use crate::npm::{self, NpmAnswer};
use crate::options::TaskOptions;
use crate::scratch::create_scratch;
use crate::shell;

const HEADER: &str = "\
# The prebuilt DuckDB libraries that `cargo xtask fetch` may take, one a line:
# npm package, version, SHA-512 of its tarball (base64).
# A platform without a line compiles DuckDB from source. `cargo xtask pin` writes this file.
";

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    let old = lock::read_pins(root)?;
    let version = match &options.rest[..] {
        [] => old.first().map(|pin| pin.version.clone()),
        [version] if !version.starts_with('-') => Some(version.clone()),
        _ => return Err(TaskFailure::usage("`cargo xtask pin` takes one version")),
    };
    let version = version.ok_or_else(|| {
        TaskFailure::usage(format!("{} is empty: give a version", lock::LOCK_PATH))
    })?;

    // npm runs in another directory, so that it does not read the settings of a project.
    let scratch = create_scratch(&std::env::temp_dir())?;
    let mut pins = Vec::new();
    for platform in lock::PINNED {
        let package = lock::package_name(platform);
        let spec = format!("{package}@{version}");
        let known = old.iter().find(|pin| pin.package == package && pin.version == version);
        match npm::fetch_integrity(OsStr::new("npm"), &spec, scratch.path()) {
            NpmAnswer::Got(integrity) => {
                check_integrity(&spec, &integrity, known)?;
                shell::print_line(&format!("{spec}: {integrity}"));
                pins.push(Pin { package, version: version.clone(), integrity });
            }
            NpmAnswer::No(why) => {
                let kept = if known.is_some() { "line kept" } else { "no line" };
                shell::print_line(&format!("{spec}: {kept}: {why}"));
                pins.extend(known.cloned());
            }
        }
    }

    if pins.is_empty() {
        return Err(TaskFailure::step(format!(
            "npm has no package of {version}; nothing was written"
        )));
    }
    let path = root.join(lock::LOCK_PATH);
    fs::write(&path, lock_file_text(&pins)).map_err(TaskFailure::io("write", &path))
}

/// Refuses an integrity that is not a SHA-512 or differs from the known pin.
fn check_integrity(spec: &str, integrity: &str, known: Option<&Pin>) -> Result<()> {
    if !digest::is_integrity(integrity) {
        return Err(TaskFailure::step(format!("{spec} has no SHA-512: `{integrity}`")));
    }
    match known {
        Some(pin) if pin.integrity != integrity => Err(TaskFailure::step(format!(
            "{spec} was pinned with another checksum\n  pinned {}\n  npm    {integrity}",
            pin.integrity
        ))),
        _ => Ok(()),
    }
}

/// Returns the text of a lock file with these pins.
fn lock_file_text(pins: &[Pin]) -> String {
    let mut text = HEADER.to_owned();
    for pin in pins {
        text.push_str(&format!("{} {} {}\n", pin.package, pin.version, pin.integrity));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_file_is_as_written_by_this() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a workspace");
        let found = fs::read_to_string(root.join(lock::LOCK_PATH)).expect("read the lock file");
        assert_eq!(found, lock_file_text(&lock::read_pins(root).expect("parse the lock file")));
    }

    #[test]
    fn a_changed_checksum_is_refused() {
        let integrity = digest::compute_integrity(b"one");
        let pin = Pin { package: "p".into(), version: "1".into(), integrity: integrity.clone() };
        assert!(check_integrity("p@1", &integrity, Some(&pin)).is_ok());
        assert!(check_integrity("p@1", &integrity, None).is_ok());
        assert!(check_integrity("p@1", &digest::compute_integrity(b"two"), Some(&pin)).is_err());
        assert!(check_integrity("p@1", "sha1-abc", None).is_err());
    }
}
