//! `cargo xtask install`: puts a release build where the shell finds it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cargo::Cargo;
use crate::duckdb::{LICENCE, Lane};
use crate::failure::{Result, TaskFailure};
use crate::lock::Platform;
use crate::options::TaskOptions;
use crate::shell;

pub(crate) fn run(root: &Path, options: TaskOptions) -> Result<()> {
    let prefix = parse_prefix(&options.rest)?;
    let cargo = Cargo::new(root, options.bundled)?;
    let built = cargo.build_program(true)?;
    let name = built.file_name().unwrap_or(OsStr::new("sessions"));
    let installed = prefix.join("bin").join(name);
    if let Lane::Prebuilt(from) = &cargo.lane {
        // build.rs gives the program an rpath to this place.
        let library = Platform::for_host().map_err(TaskFailure::step)?.library;
        let into = prefix.join("lib").join("sessions");
        install_file(&from.join(library), &into.join(library))?;
        if from.join(LICENCE).exists() {
            install_file(&from.join(LICENCE), &into.join(LICENCE))?;
        }
    }
    install_file(&built, &installed)?;

    check_program(&installed)?;
    let command = if is_on_path(installed.parent()) { Path::new("sessions") } else { &installed };
    let command = shell::quote_arguments([&*command.to_string_lossy()]);
    shell::print_line(&format!("Installed {}. Run: {command}", installed.display()));
    Ok(())
}

/// Reads `--prefix DIR` or `--prefix=DIR`; the default is ~/.local.
fn parse_prefix(args: &[String]) -> Result<PathBuf> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let given = match args[..] {
        [] => {
            let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
            let home = home.ok_or_else(|| {
                TaskFailure::usage("there is no home directory: give `--prefix DIR`")
            })?;
            return Ok(home.join(".local"));
        }
        ["--prefix", dir] => dir,
        [arg] if arg.starts_with("--prefix=") => &arg["--prefix=".len()..],
        ["--prefix"] => "",
        _ => {
            let typed = shell::quote_arguments(args.iter().copied());
            return Err(TaskFailure::usage(format!(
                "`cargo xtask install` takes `--prefix DIR` and `--bundled`, not `{typed}`"
            )));
        }
    };
    if given.is_empty() {
        return Err(TaskFailure::usage("`--prefix` needs a directory"));
    }
    std::path::absolute(given).map_err(TaskFailure::io("find", Path::new(given)))
}

/// Copies to a temporary name and renames, so that a running program keeps its file. A killed run leaves
/// that file, and the next one removes it. Only a regular file, or a link to one, is replaced.
fn install_file(from: &Path, to: &Path) -> Result<()> {
    let parent = to.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(TaskFailure::io("make", parent))?;
    refuse_special_file(to)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let new = parent.join(format!(".sessions-tmp-{name}"));
    let _ = fs::remove_file(&new);
    let copied = fs::copy(from, &new).map_err(TaskFailure::io("copy", from));
    let placed =
        copied.and_then(|_| fs::rename(&new, to).map_err(TaskFailure::io("put in place", to)));
    if placed.is_err() {
        let _ = fs::remove_file(&new);
    }
    placed
}

/// Refuses to replace a device, a pipe, a socket or a folder by the program.
fn refuse_special_file(to: &Path) -> Result<()> {
    match fs::metadata(to) {
        Ok(metadata) if !metadata.is_file() => Err(TaskFailure::step(format!(
            "{} is not a regular file, so it stays as it is: move it away, or give another `--prefix DIR`",
            to.display()
        ))),
        _ => Ok(()),
    }
}

/// Starts the installed program, which shows that it finds its library.
fn check_program(installed: &Path) -> Result<()> {
    let mut command = Command::new(installed);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => {
            Err(TaskFailure::step(format!("`{} --version` failed: {status}", installed.display())))
        }
        Err(error) => {
            Err(TaskFailure::step(format!("cannot run {}: {error}", installed.display())))
        }
    }
}

/// Returns true if PATH has this directory.
fn is_on_path(directory: Option<&Path>) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|entry| Some(entry.as_path()) == directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<PathBuf> {
        parse_prefix(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
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
            assert!(matches!(read(args), Err(TaskFailure::Usage(_))), "{args:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_regular_files_are_replaced_and_leftovers_go() {
        use std::os::unix::fs::FileTypeExt as _;
        let scratch = std::env::temp_dir().join(format!("xtask-install-{}", std::process::id()));
        fs::create_dir_all(&scratch).expect("creates");
        let from = scratch.join("built");
        fs::write(&from, "program").expect("writes");
        let pipe = scratch.join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("runs").success());
        let link = scratch.join("link");
        std::os::unix::fs::symlink(&pipe, &link).expect("links");
        for to in [&pipe, &link, &scratch] {
            assert!(install_file(&from, to).is_err(), "{}", to.display());
        }
        assert!(fs::metadata(&pipe).expect("there").file_type().is_fifo());

        let left = scratch.join(".sessions-tmp-sessions");
        fs::write(&left, "half").expect("writes");
        let to = scratch.join("sessions");
        install_file(&from, &to).expect("copies");
        install_file(&from, &to).expect("copies again");
        assert_eq!(fs::read_to_string(&to).expect("reads"), "program");
        assert!(!left.exists(), "what a killed run left");
        fs::remove_dir_all(&scratch).expect("removes");
    }
}
