//! Gets DuckDB: fetches the prebuilt library if there is one, or decides to compile it.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::digest;
use crate::failure::{Result, TaskFailure};
use crate::lock::{self, Pin, Platform};
use crate::npm::{self, NpmAnswer};
use crate::scratch::create_scratch;

pub(crate) const LICENCE: &str = "LICENSE.duckdb";
const STAMP: &str = "stamp";

/// The origin of DuckDB in a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lane {
    /// The shared library in this directory is linked.
    Prebuilt(PathBuf),
    /// DuckDB is compiled from source into the program.
    Bundled,
}

/// Chooses the lane for a build, and fetches the library if it is to be linked.
pub(crate) fn choose_lane(root: &Path, bundled: bool) -> Result<Lane> {
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
pub(crate) fn fetch_library(root: &Path) -> Result<Lane> {
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
