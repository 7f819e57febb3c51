//! Builds the program for another platform with zig, and compares it with the native one: a program for
//! Windows runs under wine, one for aarch64 under qemu-user.

use std::fs;
use std::path::Path;

use crate::cargo::Cargo;
use crate::duckdb;
use crate::failure::{Result, TaskFailure};
use crate::lock::{self, Platform};
use crate::shell;
use crate::zig::Zig;

/// A platform whose programs can run here.
pub(crate) struct ForeignPlatform {
    /// Its name in `tests/compare_platforms.py`.
    name: &'static str,
    /// Its name in Rust.
    triple: &'static str,
    /// Its name in npm's packages of DuckDB.
    npm: &'static str,
    /// The file name of DuckDB's library.
    library: &'static str,
    /// Adds what the library lacks to link and run the program.
    complete_libraries: fn(&Zig, &Path) -> Result<()>,
}

pub(crate) const WINDOWS: ForeignPlatform = ForeignPlatform {
    name: "windows",
    triple: "x86_64-pc-windows-gnu",
    npm: "win32-x64",
    library: "duckdb.dll",
    complete_libraries: complete_windows,
};

pub(crate) const ARM: ForeignPlatform = ForeignPlatform {
    name: "arm",
    triple: "aarch64-unknown-linux-gnu",
    npm: "linux-arm64",
    library: "libduckdb.so",
    complete_libraries: complete_arm,
};

/// Builds the program for the platform and for this machine, and compares what they do.
pub(crate) fn compare_programs(
    root: &Path,
    platform: &ForeignPlatform,
    is_bundled: bool,
) -> Result<()> {
    let libraries = root.join("target/foreign").join(platform.name);
    let library = Platform { package: lock::package_name(platform.npm), library: platform.library };
    duckdb::fetch_foreign_library(root, library, &libraries)?;
    let zig = Zig::install(root)?;
    (platform.complete_libraries)(&zig, &libraries)?;

    shell::run_program(root, "rustup", &["target", "add", platform.triple])?;
    let foreign =
        Cargo::with_library(root, &libraries).build_foreign_program(&zig, platform.triple)?;
    let native = Cargo::new(root, is_bundled)?.build_program(false)?;
    let paths = [&native, &foreign, &libraries].map(|path| path.to_string_lossy());
    let [native, foreign, libraries] = &paths;
    let script = "tests/compare_platforms.py";
    shell::run_program(root, "python3", &[script, native, foreign, platform.name, libraries])
}

/// Makes the import library, which npm's package lacks, and a library that wine 8 lacks.
fn complete_windows(zig: &Zig, folder: &Path) -> Result<()> {
    let library = folder.join(WINDOWS.library);
    let bytes = fs::read(&library).map_err(TaskFailure::io("read", &library))?;
    let names = find_function_names(&bytes);
    let definition = folder.join("duckdb.def");
    let text = format!("LIBRARY {}\nEXPORTS\n{}\n", WINDOWS.library, names.join("\n"));
    fs::write(&definition, text).map_err(TaskFailure::io("write", &definition))?;
    let machine = ["dlltool", "-m", "i386:x86-64"];
    zig.run(folder, &[&machine[..], &["-d", "duckdb.def", "-l", "duckdb.lib"]].concat())?;
    compile_library(
        zig,
        folder,
        ("process_prng.c", include_str!("process_prng.c")),
        &["-target", "x86_64-windows-gnu", "-o", "bcryptprimitives.dll", "-ladvapi32"],
    )
}

/// Makes the library that lets the program start itself under qemu-user.
fn complete_arm(zig: &Zig, folder: &Path) -> Result<()> {
    compile_library(
        zig,
        folder,
        ("start_under_qemu.c", include_str!("start_under_qemu.c")),
        &["-target", "aarch64-linux-gnu", "-fPIC", "-o", "start_under_qemu.so"],
    )
}

/// Compiles a shared library from one file of C, which is a name and its text.
fn compile_library(
    zig: &Zig,
    folder: &Path,
    (name, text): (&str, &str),
    arguments: &[&str],
) -> Result<()> {
    let source = folder.join(name);
    fs::write(&source, text).map_err(TaskFailure::io("write", &source))?;
    zig.run(folder, &[&["cc", "-shared", "-O1", name], arguments].concat())
}

/// Returns the names of DuckDB's functions of C in its library, in order. A name of anything else
/// does no harm in an import library.
fn find_function_names(library: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    for piece in library.split(|byte| *byte == 0).filter(|piece| piece.starts_with(b"duckdb_")) {
        if piece.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'_') {
            names.push(String::from_utf8_lossy(piece).into_owned());
        }
    }
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_functions_are_found_in_a_library() {
        let library = b"MZ\0duckdb_open\0\xffduckdb_x\0duckdb_close\0duckdb_ %s\0duckdb_open\0";
        assert_eq!(find_function_names(library), ["duckdb_close", "duckdb_open"]);
    }
}
