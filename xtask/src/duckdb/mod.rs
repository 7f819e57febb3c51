//! Gets DuckDB: fetches the prebuilt library if there is one, or decides to compile it.
//!
//! How it is linked stands in a file that .cargo/config.toml includes. The build script of
//! libduckdb-sys would do the same, but it can also download DuckDB, and what it needs for that is a
//! seventh of what the program takes to compile.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::digest;
use crate::failure::{Result, TaskFailure};
use crate::lock::{self, Pin, Platform};
use crate::npm::{self, NpmAnswer};
use crate::scratch::create_scratch;
use crate::shell::read_json;

pub(crate) const LICENCE: &str = "LICENSE.duckdb";
const STAMP: &str = "stamp";

/// The settings for cargo that .cargo/config.toml includes, if they exist.
const LINK_SETTINGS: &str = "link.toml";

/// The declarations of DuckDB's functions, by the name under which libduckdb-sys includes them.
const BINDINGS: &str = "bindgen.rs";

/// The origin of DuckDB in a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The shared library in this directory is linked.
    Prebuilt(PathBuf),
    /// DuckDB is compiled from source into the program.
    Bundled,
}

/// Chooses the lane for a build, fetches the library if it is to be linked, and tells cargo.
pub(crate) fn choose_lane(root: &Path, bundled: bool) -> Result<Lane> {
    let lane = find_lane(root, bundled)?;
    let settings = library_directory(root).join(LINK_SETTINGS);
    // On Windows, and for what is compiled from source, the build script does it.
    let (Lane::Prebuilt(library), Some(triple)) = (&lane, host_triple()) else {
        return match fs::remove_file(&settings) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(TaskFailure::io("remove", &settings)(error))
            }
            Ok(()) | Err(_) => Ok(lane),
        };
    };
    fs::create_dir_all(library_directory(root)).map_err(TaskFailure::io("make", &settings))?;
    update_file(&settings.with_file_name(BINDINGS), &read_bindings(root, &triple)?)?;
    update_file(&settings, &link_settings(&triple, library, &library_directory(root)))?;
    Ok(lane)
}

/// Returns the name in Rust of the platform that xtask was built for, if it links a prebuilt library.
fn host_triple() -> Option<String> {
    let system = match std::env::consts::OS {
        "linux" if cfg!(target_env = "musl") => "unknown-linux-musl",
        "linux" => "unknown-linux-gnu",
        "macos" => "apple-darwin",
        _ => return None,
    };
    Some(format!("{}-{system}", std::env::consts::ARCH))
}

/// Returns the settings with which cargo links the library instead of running the build script of the
/// crate that has `links = "duckdb"`.
fn link_settings(triple: &str, library: &Path, bindings: &Path) -> String {
    let quoted = |path: &Path| Value::from(path.to_string_lossy());
    format!(
        "# Written by `cargo xtask`.\n[target.{triple}.duckdb]\nrustc-link-lib = [\"dylib=duckdb\"]\n\
         rustc-link-search = [{}]\nrustc-env = {{ OUT_DIR = {} }}\n",
        quoted(library),
        quoted(bindings)
    )
}

/// Reads the declarations that libduckdb-sys has for the pinned version.
fn read_bindings(root: &Path, triple: &str) -> Result<String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["metadata", "--format-version", "1", "--filter-platform", triple]);
    cargo.current_dir(root);
    let metadata = read_json(cargo)?;
    let packages = metadata["packages"].as_array();
    let found = packages.into_iter().flatten().find(|one| one["name"] == "libduckdb-sys");
    let manifest = found.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest
        .ok_or_else(|| TaskFailure::step("`cargo metadata` does not name libduckdb-sys"))?;
    let path = Path::new(manifest).with_file_name("src").join("bindgen_bundled_version.rs");
    fs::read_to_string(&path).map_err(TaskFailure::io("read", &path))
}

/// Writes a file, unless it has this text: cargo compiles again what depends on a newer file.
fn update_file(path: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(path).is_ok_and(|known| known == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(TaskFailure::io("write", path))
}

fn find_lane(root: &Path, bundled: bool) -> Result<Lane> {
    if bundled {
        return Ok(Lane::Bundled);
    }
    let own = library_directory(root);
    if let Some(set) = std::env::var_os("DUCKDB_LIB_DIR").map(PathBuf::from) {
        // cargo sets the variable to `own`, unless it was set outside.
        if std::path::absolute(&set).ok() != std::path::absolute(&own).ok()
            && !is_same_directory(&set, &own)
        {
            eprintln!(
                "DuckDB: DUCKDB_LIB_DIR is set, so the library in {} is linked",
                set.display()
            );
            return Ok(Lane::Prebuilt(set));
        }
    }
    fetch_library(root)
}

/// Puts the pinned library into target/duckdb, if it is not there yet. The lane is `Bundled` if
/// there is no library for this platform or it cannot be fetched.
fn fetch_library(root: &Path) -> Result<Lane> {
    let directory = library_directory(root);
    let source = LibrarySource {
        pins: lock::read_pins(root)?,
        platform: Platform::for_host(),
        directory: &directory,
        npm: OsStr::new("npm"),
    };
    match source.fetch()? {
        NpmAnswer::Got(()) => Ok(Lane::Prebuilt(directory)),
        NpmAnswer::No(why) => {
            eprintln!(
                "DuckDB: no prebuilt library: {why}\n\
                 DuckDB: it is compiled from source instead (feature `bundled`): about half an hour \
                 on two cores, once for each profile"
            );
            Ok(Lane::Bundled)
        }
    }
}

/// Puts the pinned library of another platform into a directory, if it is not there yet.
pub(crate) fn fetch_foreign_library(
    root: &Path,
    platform: Platform,
    directory: &Path,
) -> Result<()> {
    let pins = lock::read_pins(root)?;
    let source = LibrarySource { pins, platform: Ok(platform), directory, npm: OsStr::new("npm") };
    match source.fetch()? {
        NpmAnswer::Got(()) => Ok(()),
        NpmAnswer::No(why) => Err(TaskFailure::step(format!("DuckDB: {why}"))),
    }
}

/// Returns the directory that DUCKDB_LIB_DIR names in .cargo/config.toml, whatever the target
/// directory is.
fn library_directory(root: &Path) -> PathBuf {
    root.join("target").join("duckdb")
}

/// Returns true if two paths lead to the same directory.
fn is_same_directory(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// The place that the library comes from, and the directory that it goes to.
struct LibrarySource<'a> {
    pins: Vec<Pin>,
    platform: std::result::Result<Platform, String>,
    directory: &'a Path,
    npm: &'a OsStr,
}

impl LibrarySource<'_> {
    /// Puts the library and its licence into the directory, unless they are there already.
    fn fetch(&self) -> Result<NpmAnswer<()>> {
        let platform = match &self.platform {
            Ok(platform) => platform,
            Err(why) => return Ok(NpmAnswer::No(why.clone())),
        };
        let Some(pin) = self.pins.iter().find(|pin| pin.package == platform.package) else {
            let why = format!("{} has no line for {}", lock::LOCK_PATH, platform.package);
            return Ok(NpmAnswer::No(format!("{why} (`cargo xtask pin` adds it if npm has it)")));
        };
        let library = self.directory.join(platform.library);
        let stamp = self.directory.join(STAMP);
        if fs::read_to_string(&stamp).is_ok_and(|found| found == stamp_text(pin, &library)) {
            return Ok(NpmAnswer::Got(()));
        }

        eprintln!("DuckDB: fetching {} {} (once)", pin.package, pin.version);
        let scratch = create_scratch(self.directory)?;
        let tarball = match npm::download_tarball(self.npm, pin, scratch.path())? {
            NpmAnswer::Got(tarball) => tarball,
            NpmAnswer::No(why) => return Ok(NpmAnswer::No(why)),
        };
        verify_checksum(pin, &tarball)?;
        let files = [platform.library, "LICENSE"];
        if let NpmAnswer::No(why) = unpack_files(&tarball, &files, scratch.path())? {
            return Ok(NpmAnswer::No(why));
        }

        let unpacked = scratch.path().join("package");
        move_file(&unpacked.join("LICENSE"), &self.directory.join(LICENCE))?;
        move_file(&unpacked.join(platform.library), &library)?;
        // The stamp is written last: without it nothing counts as fetched.
        let new = scratch.path().join(STAMP);
        fs::write(&new, stamp_text(pin, &library)).map_err(TaskFailure::io("write", &new))?;
        move_file(&new, &stamp)?;
        eprintln!("DuckDB: the checksum is correct; the library is {}", library.display());
        Ok(NpmAnswer::Got(()))
    }
}

/// Returns the text of the stamp for the pinned library that is in place: its pin and its size.
fn stamp_text(pin: &Pin, library: &Path) -> String {
    let size = fs::metadata(library).map_or(0, |data| data.len());
    format!("{} {} {} {size}\n", pin.package, pin.version, pin.integrity)
}

/// Refuses a tarball whose checksum is not the pinned one.
fn verify_checksum(pin: &Pin, tarball: &Path) -> Result<()> {
    let bytes = fs::read(tarball).map_err(TaskFailure::io("read", tarball))?;
    let found = digest::compute_integrity(&bytes);
    if found == pin.integrity {
        return Ok(());
    }
    Err(TaskFailure::step(format!(
        "checksum of {} {} does not fit {}\n  expected {}\n  found    {found}\n\
         nothing was unpacked: either the package or the lock file was changed",
        pin.package,
        pin.version,
        lock::LOCK_PATH,
        pin.integrity,
    )))
}

/// Unpacks these files of the package. Their modification time is the present, so that build.rs
/// notices a new library.
fn unpack_files(tarball: &Path, files: &[&str], into: &Path) -> Result<NpmAnswer<()>> {
    let mut command = Command::new("tar");
    command.arg("-xzmf").arg(tarball).arg("-C").arg(into).stdin(Stdio::null());
    command.args(files.iter().map(|file| format!("package/{file}")));
    match command.status() {
        Ok(status) if status.success() => Ok(NpmAnswer::Got(())),
        Ok(_) => Err(TaskFailure::step(format!("tar could not unpack {}", tarball.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(NpmAnswer::No("tar is not installed".to_owned()))
        }
        Err(error) => Err(TaskFailure::step(format!("tar could not be run: {error}"))),
    }
}

/// Moves a file to its place.
fn move_file(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(TaskFailure::io("put in place", to))
}
