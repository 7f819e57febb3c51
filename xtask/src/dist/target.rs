//! The platforms that packages are made for, with the names that each kind of package gives them.

use super::names::PACKAGE;
use crate::failure::{Result, TaskFailure};

/// Highest version of glibc that a published program for Linux may need: `2.28`.
pub(crate) const GLIBC_MINOR: u32 = 28;

/// A platform.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The name in Rust.
    pub(crate) triple: &'static str,
    /// `os` of npm, also the platform of an MCPB bundle.
    pub(crate) npm_os: &'static str,
    pub(crate) npm_cpu: &'static str,
    /// The last part of the tag of a wheel. On Linux the version of glibc comes before it.
    pub(crate) wheel: &'static str,
    /// The architecture of a Debian package; `None` if the platform has none.
    pub(crate) debian: Option<&'static str>,
    /// The system in Nix; `None` if Nix does not run there.
    pub(crate) nix: Option<&'static str>,
}

pub(crate) const TARGETS: &[Target] = &[
    Target {
        triple: "x86_64-unknown-linux-gnu",
        npm_os: "linux",
        npm_cpu: "x64",
        wheel: "x86_64",
        debian: Some("amd64"),
        nix: Some("x86_64-linux"),
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        npm_os: "linux",
        npm_cpu: "arm64",
        wheel: "aarch64",
        debian: Some("arm64"),
        nix: Some("aarch64-linux"),
    },
    Target {
        triple: "x86_64-apple-darwin",
        npm_os: "darwin",
        npm_cpu: "x64",
        wheel: "macosx_11_0_x86_64",
        debian: None,
        nix: Some("x86_64-darwin"),
    },
    Target {
        triple: "aarch64-apple-darwin",
        npm_os: "darwin",
        npm_cpu: "arm64",
        wheel: "macosx_11_0_arm64",
        debian: None,
        nix: Some("aarch64-darwin"),
    },
    Target {
        triple: "x86_64-pc-windows-msvc",
        npm_os: "win32",
        npm_cpu: "x64",
        wheel: "win_amd64",
        debian: None,
        nix: None,
    },
];

impl Target {
    /// Returns the platform with this name in Rust.
    pub(crate) fn find(triple: &str) -> Result<&'static Self> {
        TARGETS.iter().find(|target| target.triple == triple).ok_or_else(|| {
            let names: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
            TaskFailure::usage(format!(
                "there are no packages for `{triple}`; the targets are {}",
                names.join(", ")
            ))
        })
    }

    /// Returns the platform that xtask was built for.
    pub(crate) fn for_host() -> Result<&'static Self> {
        let system = match std::env::consts::OS {
            "linux" => "unknown-linux-gnu",
            "macos" => "apple-darwin",
            "windows" => "pc-windows-msvc",
            other => other,
        };
        Self::find(&format!("{}-{system}", std::env::consts::ARCH))
    }

    pub(crate) fn is_windows(&self) -> bool {
        self.npm_os == "win32"
    }

    pub(crate) fn is_linux(&self) -> bool {
        self.npm_os == "linux"
    }

    /// Returns the file name of the program.
    pub(crate) fn program_name(&self) -> &'static str {
        if self.is_windows() { "sessions.exe" } else { "sessions" }
    }

    /// Returns the npm package that has the program for this platform.
    pub(crate) fn npm_package(&self) -> String {
        format!("{}-{}-{}", PACKAGE, self.npm_os, self.npm_cpu)
    }

    /// Returns the file name of the archive without its ending, which is also its folder.
    pub(crate) fn archive_stem(&self, version: &str) -> String {
        format!("{}-{version}-{}", PACKAGE, self.triple)
    }

    /// Returns the file name of the MCPB bundle.
    pub(crate) fn bundle_name(&self, version: &str) -> String {
        format!("{}.mcpb", self.archive_stem(version))
    }

    /// Returns the file name of the archive.
    pub(crate) fn archive_name(&self, version: &str) -> String {
        let ending = if self.is_windows() { "zip" } else { "tar.gz" };
        format!("{}.{ending}", self.archive_stem(version))
    }
}

/// Returns the highest minor version of glibc 2 whose symbols the program needs, or `None` if it
/// names none. The versions are strings in the program: `GLIBC_2.17`.
pub(crate) fn needed_glibc(program: &[u8]) -> Option<u32> {
    const MARK: &[u8] = b"GLIBC_2.";
    let mut highest = None;
    for at in 0..program.len() {
        if program[at..].starts_with(MARK) {
            let digits: String = program[at + MARK.len()..]
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .map(|byte| char::from(*byte))
                .collect();
            highest = highest.max(digits.parse().ok());
        }
    }
    highest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_version_of_glibc_is_found() {
        assert_eq!(needed_glibc(b"x\0GLIBC_2.17\0GLIBC_2.9\0GLIBC_2.2.5\0"), Some(17));
        assert_eq!(needed_glibc(b"GLIBCXX_3.4.30"), None);
    }

    #[test]
    fn every_platform_has_names_of_its_own() {
        assert!(Target::find("riscv64gc-unknown-linux-gnu").is_err());
        for target in TARGETS {
            assert_eq!(Target::find(target.triple).expect("known"), target);
        }
    }
}
