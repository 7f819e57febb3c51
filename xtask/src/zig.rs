//! Compiles for other platforms, and for older systems than this one, with zig as the C compiler and
//! linker.

use std::path::Path;
use std::process::Command;

use crate::failure::Result;
use crate::python::Venv;
use crate::shell;

/// The C compiler, and the program that gives it to cargo.
const PACKAGES: &[&str] = &["cargo-zigbuild==0.24.1", "ziglang==0.17.1"];

const FOLDER: &str = "target/zig";

/// Zig for cargo, installed below the workspace's root.
pub(crate) struct Zig {
    venv: Venv,
}

impl Zig {
    pub(crate) fn install(root: &Path) -> Result<Self> {
        Ok(Self { venv: Venv::install(root, "python3", FOLDER, PACKAGES)? })
    }

    /// Runs zig in a folder.
    pub(crate) fn run(&self, folder: &Path, args: &[&str]) -> Result<()> {
        shell::run_program(folder, &self.venv.program("python-zig"), args)
    }

    /// Returns a command of cargo that uses zig: `zigbuild` or `check`.
    pub(crate) fn cargo_command(&self, root: &Path, args: &[&str]) -> Command {
        let mut command = Command::new(self.venv.program("cargo-zigbuild"));
        command.env("CARGO_ZIGBUILD_ZIG_PATH", self.venv.program("python-zig"));
        command.args(args).current_dir(root);
        command
    }
}

/// Returns the minor version of the C library here: 36 for glibc 2.36. `None` if it is not glibc.
pub(crate) fn host_glibc_minor() -> Option<u32> {
    let output = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    parse_glibc_minor(&String::from_utf8_lossy(&output.stdout))
}

fn parse_glibc_minor(version: &str) -> Option<u32> {
    version.trim().strip_prefix("glibc 2.")?.split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_glibc_is_read() {
        assert_eq!(parse_glibc_minor("glibc 2.36\n"), Some(36));
        assert_eq!(parse_glibc_minor("glibc 2.28.1"), Some(28));
        assert_eq!(parse_glibc_minor("musl 1.2"), None);
        assert_eq!(parse_glibc_minor(""), None);
    }
}
