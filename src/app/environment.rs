//! The environment of the process: its variables, the home directory and the places that follow from
//! them. No other module reads a variable.

use std::path::{Path, PathBuf};

use ingest::discover::default_roots;
use ingest::provider::Places;

/// Reads an environment variable; `None` if it is not set or empty.
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The program that runs, as other programs can start it.
pub fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sessions"))
}

/// This program, to be started again. Its file may have been replaced since; what runs is meant.
pub fn running() -> PathBuf {
    let running = Path::new("/proc/self/exe");
    if running.exists() { running.to_owned() } else { std::env::current_exe().unwrap_or_default() }
}

/// The user's home directory.
pub fn home() -> PathBuf {
    etcetera::home_dir().unwrap_or_default()
}

/// Where the store is when nobody says.
pub fn default_store() -> PathBuf {
    own_dir("XDG_DATA_HOME", ".local/share")
}

/// Where the user's settings files are when nobody says.
pub(super) fn settings_dir() -> PathBuf {
    own_dir("XDG_CONFIG_HOME", ".config")
}

/// The folder of this program in one of the XDG base directories: the one that the variable names,
/// else `usual` in the home directory.
fn own_dir(name: &str, usual: &str) -> PathBuf {
    let named = variable(name).map(PathBuf::from).filter(|dir| dir.is_absolute());
    named.unwrap_or_else(|| home().join(usual)).join("sessions")
}

/// The logs of every known agent on this machine.
pub fn known_roots() -> Vec<PathBuf> {
    default_roots(&Places::new(&home(), &variable))
}

/// The folder in which the process was started; `None` if it is gone.
pub fn current_dir() -> Option<PathBuf> {
    std::env::current_dir().ok()
}
