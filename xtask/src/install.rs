//! `cargo xtask install`: puts a release build where the shell finds it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::Cargo;
use crate::duckdb::{LICENCE, Lane};
use crate::failure::{Failure, Result};
use crate::lock::Platform;
use crate::options::{self, Options};

pub(crate) fn run(root: &Path, options: Options) -> Result<()> {
    let prefix = prefix(&options.rest)?;
    let cargo = Cargo::new(root, options.bundled)?;
    let built = cargo.program(true)?;
    let name = built.file_name().unwrap_or(OsStr::new("sessions"));
    let installed = prefix.join("bin").join(name);
    if let Lane::Prebuilt(from) = &cargo.lane {
        // build.rs gives the program an rpath to this place.
        let library = Platform::host().map_err(Failure::step)?.library;
        let into = prefix.join("lib").join("sessions");
        copy(&from.join(library), &into.join(library))?;
        if from.join(LICENCE).exists() {
            copy(&from.join(LICENCE), &into.join(LICENCE))?;
        }
    }
    copy(&built, &installed)?;
    check(&installed)?;
    options::print(&format!("installed {}", installed.display()));
    if !on_path(installed.parent()) {
        options::print(&format!("{} is not on PATH", prefix.join("bin").display()));
    }
    Ok(())
}

/// Reads `--prefix DIR` or `--prefix=DIR`; the default is ~/.local.
fn prefix(args: &[String]) -> Result<PathBuf> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let given = match args[..] {
        [] => {
            let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
            let home = home
                .ok_or_else(|| Failure::usage("there is no home directory: give `--prefix DIR`"))?;
            return Ok(home.join(".local"));
        }
        ["--prefix", dir] => dir,
        [arg] if arg.starts_with("--prefix=") => &arg["--prefix=".len()..],
        ["--prefix"] => "",
        _ => {
            let typed = options::typed(args.iter().copied());
            return Err(Failure::usage(format!(
                "`cargo xtask install` takes `--prefix DIR` and `--bundled`, not `{typed}`"
            )));
        }
    };
    if given.is_empty() {
        return Err(Failure::usage("`--prefix` needs a directory"));
    }
    std::path::absolute(given).map_err(Failure::io("find", Path::new(given)))
}

/// Copies to a name of its own and renames, so that a running program keeps its file.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(Failure::io("make", parent))?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let new = parent.join(format!(".{name}.{}", std::process::id()));
    let copied = fs::copy(from, &new).map_err(Failure::io("copy", from));
    let placed = copied.and_then(|_| fs::rename(&new, to).map_err(Failure::io("put in place", to)));
    if placed.is_err() {
        let _ = fs::remove_file(&new);
    }
    placed
}

/// Starts the installed program, which shows that it finds its library.
fn check(installed: &Path) -> Result<()> {
    let mut command = Command::new(installed);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(Failure::step(format!("`{} --version` failed: {status}", installed.display())))
        }
        Err(error) => Err(Failure::step(format!("cannot run {}: {error}", installed.display()))),
    }
}

fn on_path(directory: Option<&Path>) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|entry| Some(entry.as_path()) == directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<PathBuf> {
        prefix(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn the_prefix_is_read_in_both_forms() {
        let here = std::env::current_dir().expect("a current directory");
        assert_eq!(read(&["--prefix", "x/y"]).expect("a prefix"), here.join("x/y"));
        assert_eq!(read(&["--prefix=x"]).expect("a prefix"), here.join("x"));
    }

    #[test]
    fn other_arguments_are_refused() {
        for args in [&["--prefix"][..], &["--prefix="], &["x"], &["--prefix", "a", "b"]] {
            assert!(matches!(read(args), Err(Failure::Usage(_))), "{args:?}");
        }
    }
}
