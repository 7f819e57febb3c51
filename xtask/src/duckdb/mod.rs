//! Gets DuckDB: fetches the prebuilt library if there is one, or decides to compile it.

#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::digest;
use crate::failure::{Failure, Result};
use crate::lock::{self, Pin, Platform};
use crate::npm::{self, Answer};
use crate::scratch::Scratch;

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
pub(crate) fn lane(root: &Path, bundled: bool) -> Result<Lane> {
    if bundled {
        return Ok(Lane::Bundled);
    }
    let own = directory(root);
    if let Some(set) = std::env::var_os("DUCKDB_LIB_DIR").map(PathBuf::from) {
        // cargo sets the variable to `own`, unless it was set outside.
        if std::path::absolute(&set).ok() != std::path::absolute(&own).ok() && !same(&set, &own) {
            eprintln!(
                "DuckDB: DUCKDB_LIB_DIR is set, so the library in {} is linked",
                set.display()
            );
            return Ok(Lane::Prebuilt(set));
        }
    }
    fetch(root)
}

/// Puts the pinned library into target/duckdb, if it is not there yet. The lane is `Bundled` if
/// there is no library for this platform or it cannot be fetched.
pub(crate) fn fetch(root: &Path) -> Result<Lane> {
    let directory = directory(root);
    let source = Source {
        pins: lock::read(root)?,
        platform: Platform::host(),
        directory: &directory,
        npm: OsStr::new("npm"),
    };
    match source.fetch()? {
        Answer::Got(()) => Ok(Lane::Prebuilt(directory)),
        Answer::No(why) => {
            eprintln!(
                "DuckDB: no prebuilt library: {why}\n\
                 DuckDB: it is compiled from source instead (feature `bundled`): about half an hour \
                 on two cores, once for each profile"
            );
            Ok(Lane::Bundled)
        }
    }
}

/// Returns the directory that DUCKDB_LIB_DIR names in .cargo/config.toml, whatever the target
/// directory is.
fn directory(root: &Path) -> PathBuf {
    root.join("target").join("duckdb")
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

struct Source<'a> {
    pins: Vec<Pin>,
    platform: std::result::Result<Platform, String>,
    directory: &'a Path,
    npm: &'a OsStr,
}

impl Source<'_> {
    fn fetch(&self) -> Result<Answer<()>> {
        let platform = match &self.platform {
            Ok(platform) => platform,
            Err(why) => return Ok(Answer::No(why.clone())),
        };
        let Some(pin) = self.pins.iter().find(|pin| pin.package == platform.package) else {
            let why = format!("{} has no line for {}", lock::PATH, platform.package);
            return Ok(Answer::No(format!("{why} (`cargo xtask pin` adds it if npm has it)")));
        };
        let library = self.directory.join(platform.library);
        let stamp = self.directory.join(STAMP);
        if fs::read_to_string(&stamp).is_ok_and(|found| found == stamp_text(pin, &library)) {
            return Ok(Answer::Got(()));
        }
        eprintln!("DuckDB: fetching {} {} (once)", pin.package, pin.version);
        let scratch = Scratch::new(self.directory)?;
        let tarball = match npm::pack(self.npm, pin, scratch.path())? {
            Answer::Got(tarball) => tarball,
            Answer::No(why) => return Ok(Answer::No(why)),
        };
        verify(pin, &tarball)?;
        let files = [platform.library, "LICENSE"];
        if let Answer::No(why) = unpack(&tarball, &files, scratch.path())? {
            return Ok(Answer::No(why));
        }
        let unpacked = scratch.path().join("package");
        rename(&unpacked.join("LICENSE"), &self.directory.join(LICENCE))?;
        rename(&unpacked.join(platform.library), &library)?;
        // The stamp is written last: without it nothing counts as fetched.
        let new = scratch.path().join(STAMP);
        fs::write(&new, stamp_text(pin, &library)).map_err(Failure::io("write", &new))?;
        rename(&new, &stamp)?;
        eprintln!("DuckDB: checksum is right; {} is in target/duckdb", platform.library);
        Ok(Answer::Got(()))
    }
}

/// Returns the text of the stamp for the pinned library that is in place: its pin and its size.
fn stamp_text(pin: &Pin, library: &Path) -> String {
    let size = fs::metadata(library).map_or(0, |data| data.len());
    format!("{} {} {} {size}\n", pin.package, pin.version, pin.integrity)
}

fn verify(pin: &Pin, tarball: &Path) -> Result<()> {
    let bytes = fs::read(tarball).map_err(Failure::io("read", tarball))?;
    let found = digest::integrity(&bytes);
    if found == pin.integrity {
        return Ok(());
    }
    Err(Failure::step(format!(
        "checksum of {} {} does not fit {}\n  expected {}\n  found    {found}\n\
         nothing was unpacked: either the package or the lock file was changed",
        pin.package,
        pin.version,
        lock::PATH,
        pin.integrity,
    )))
}

/// Unpacks these files of the package. Their modification time is the present, so that build.rs
/// notices a new library.
fn unpack(tarball: &Path, files: &[&str], into: &Path) -> Result<Answer<()>> {
    let mut command = Command::new("tar");
    command.arg("-xzmf").arg(tarball).arg("-C").arg(into).stdin(Stdio::null());
    command.args(files.iter().map(|file| format!("package/{file}")));
    match command.status() {
        Ok(status) if status.success() => Ok(Answer::Got(())),
        Ok(_) => Err(Failure::step(format!("tar could not unpack {}", tarball.display()))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(Answer::No("tar is not installed".to_owned()))
        }
        Err(error) => Err(Failure::step(format!("tar could not be run: {error}"))),
    }
}

fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(Failure::io("put in place", to))
}
