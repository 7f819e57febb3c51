//! Reads the pinned DuckDB libraries from `xtask/duckdb.lock`, and chooses the one for this
//! platform.

use std::fs;
use std::path::Path;

use crate::digest;
use crate::failure::{Result, TaskFailure};

/// The path of the lock file in the workspace.
pub(crate) const LOCK_PATH: &str = "xtask/duckdb.lock";

/// One line of the lock file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pin {
    pub(crate) package: String,
    pub(crate) version: String,
    pub(crate) integrity: String,
}

/// Reads the lock file.
pub(crate) fn read_pins(root: &Path) -> Result<Vec<Pin>> {
    let path = root.join(LOCK_PATH);
    let text = fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))?;
    parse_pins(&text)
}

/// Parses the text of the lock file.
fn parse_pins(text: &str) -> Result<Vec<Pin>> {
    let mut pins = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [package, version, integrity] if digest::is_integrity(integrity) => pins.push(Pin {
                package: package.to_owned(),
                version: version.to_owned(),
                integrity: integrity.to_owned(),
            }),
            _ => {
                return Err(TaskFailure::step(format!(
                    "{LOCK_PATH}:{}: expected `<package> <version> sha512-<base64>`, found `{line}`",
                    at + 1
                )));
            }
        }
    }
    Ok(pins)
}

/// A platform as npm's packages name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Platform {
    pub(crate) package: String,
    pub(crate) library: &'static str,
}

/// The platforms that `cargo xtask pin` pins.
pub(crate) const PINNED: &[&str] =
    &["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64", "win32-x64"];

impl Platform {
    /// Returns the platform that xtask was built for, or why DuckDB has no library for it.
    pub(crate) fn for_host() -> std::result::Result<Self, String> {
        let libc = if cfg!(target_env = "musl") { "-musl" } else { "" };
        Self::for_target(std::env::consts::OS, std::env::consts::ARCH, libc)
    }

    /// Returns the platform with these names in Rust; `libc` is `-musl` or empty.
    fn for_target(os: &str, arch: &str, libc: &str) -> std::result::Result<Self, String> {
        let (system, library) = match os {
            "linux" => ("linux", "libduckdb.so"),
            "macos" => ("darwin", "libduckdb.dylib"),
            "windows" => return Err("the package for Windows has no import library".to_owned()),
            _ => return Err(format!("there is no package for {os}")),
        };
        let cpu = match arch {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            _ => return Err(format!("there is no package for {os} on {arch}")),
        };
        Ok(Self { package: package_name(&format!("{system}-{cpu}{libc}")), library })
    }
}

/// Returns the npm package with DuckDB for a platform.
pub(crate) fn package_name(platform: &str) -> String {
    format!("@duckdb/node-bindings-{platform}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is in the workspace")
    }

    /// Returns DuckDB's version for the version of the crate: `1.10506` is DuckDB `1.5.6`. The
    /// second number of the crate's version contains three numbers of two digits.
    fn duckdb_version(requirement: &str) -> Option<String> {
        let digits = requirement.trim_start_matches(['~', '=', '^']).split('.').nth(1)?;
        let number: u32 = digits.parse().ok()?;
        Some(format!("{}.{}.{}", number / 10_000, number / 100 % 100, number % 100))
    }

    #[test]
    fn the_crates_number_is_read() {
        assert_eq!(duckdb_version("~1.10506").as_deref(), Some("1.5.6"));
        assert_eq!(duckdb_version("=1.20013.2").as_deref(), Some("2.0.13"));
    }

    #[test]
    fn the_pinned_library_fits_the_crate() {
        let manifest = root().join("crates/sql/Cargo.toml");
        let manifest = fs::read_to_string(manifest).expect("read the manifest of sql");
        let line = manifest.lines().find(|line| line.starts_with("duckdb = ")).expect("a line");
        let requirement = line.split('"').nth(1).expect("a version in quotes");
        let version = duckdb_version(requirement).expect("a version of the crate");
        let pins = read_pins(root()).expect("read the lock file");
        assert!(!pins.is_empty());
        for pin in pins {
            let fits = pin.version.split('-').next() == Some(version.as_str());
            assert!(fits, "{} {} is not DuckDB {version}", pin.package, pin.version);
        }
    }

    #[test]
    fn each_line_names_a_platform_once() {
        let mut left: Vec<String> = PINNED.iter().map(|platform| package_name(platform)).collect();
        for pin in read_pins(root()).expect("read the lock file") {
            let at = left.iter().position(|package| *package == pin.package);
            left.remove(at.unwrap_or_else(|| panic!("{} is unknown or pinned twice", pin.package)));
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        let error = parse_pins("# comment\n\n@duckdb/x 1.0.0 sha1-abc\n").expect_err("a bad line");
        assert!(error.to_string().starts_with("xtask/duckdb.lock:3: "), "{error}");
    }

    fn package_for(os: &str, arch: &str, libc: &str) -> std::result::Result<String, String> {
        Platform::for_target(os, arch, libc).map(|platform| platform.package)
    }

    #[test]
    fn platforms_have_npms_names() {
        assert_eq!(package_for("linux", "x86_64", ""), Ok(package_name("linux-x64")));
        assert_eq!(package_for("linux", "x86_64", "-musl"), Ok(package_name("linux-x64-musl")));
        assert_eq!(package_for("macos", "aarch64", ""), Ok(package_name("darwin-arm64")));
        assert!(package_for("windows", "x86_64", "").is_err());
        assert!(package_for("linux", "riscv64", "").is_err());
    }
}
