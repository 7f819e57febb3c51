//! The environment of the process: its variables, the home directory and the paths derived from
//! them. No other module reads an environment variable.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ingest::discover::{default_roots, real_path};
use ingest::provider::format::AgentFolders;
use jiff::tz::TimeZone;
use schemas::{Provider, Zone};
use xxhash_rust::xxh3::xxh3_64;

/// Reads an environment variable; `None` if it is not set, empty or not Unicode.
pub fn read_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Reads an environment variable that names a path, which need not be Unicode; `None` if it is not
/// set or empty.
pub fn read_path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Returns the path of the running program, for other programs to start it.
pub fn program_path() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sessions"))
}

/// Returns the arguments of this process; the first one is the name that it was started with.
pub fn arguments() -> Vec<OsString> {
    std::env::args_os().collect()
}

/// Returns the path to start this program again. If its file has been replaced since, the path
/// still refers to the program that is running.
pub fn running_program_path() -> PathBuf {
    let running = Path::new("/proc/self/exe");
    if cfg!(target_os = "linux") && running.exists() {
        running.to_owned()
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}

/// Finds a program in the PATH. Entries of the PATH that are not full paths are ignored: they would
/// name a folder of the project in which the program starts.
pub fn find_program(name: &str) -> Option<PathBuf> {
    let endings: &[&str] = if cfg!(windows) { &[".exe", ".cmd", ""] } else { &[""] };
    let path = read_path_variable("PATH")?;
    for dir in std::env::split_paths(&path).filter(|dir| dir.is_absolute()) {
        for ending in endings {
            let program = dir.join(format!("{name}{ending}"));
            if program.is_file() {
                return Some(program);
            }
        }
    }
    None
}

/// Returns the user's home directory: that of the variable `HOME` (on Windows `USERPROFILE`),
/// otherwise the one that the system knows.
pub fn home_dir() -> PathBuf {
    std::env::home_dir().unwrap_or_default()
}

/// Returns the name of this machine: that of the variable `SESSIONS_MACHINE`, otherwise the first
/// part of the host's name, because the rest may change with the network.
pub(super) fn machine_name() -> String {
    let host = read_variable("SESSIONS_MACHINE").or_else(|| {
        let host = host_name()?;
        Some(host.split('.').next().unwrap_or_default().to_owned())
    });
    host.filter(|name| !name.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    read_variable("COMPUTERNAME")
}

/// Returns the login name of the user: that of the variable `SESSIONS_USER`, otherwise of the
/// variables that systems set.
pub(super) fn user_name() -> String {
    let variables = ["SESSIONS_USER", "USER", "LOGNAME", "USERNAME"];
    let named = variables.into_iter().find_map(read_variable);
    named.unwrap_or_else(|| "unknown".to_owned())
}

/// Returns the variables in which clouds expect addresses and credentials.
#[cfg(feature = "cloud")]
pub fn cloud_variables() -> Vec<(String, String)> {
    let is_of_cloud =
        |name: &str| ["AWS_", "GOOGLE_", "AZURE_"].iter().any(|prefix| name.starts_with(prefix));
    let named = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    named.filter(|(name, value)| is_of_cloud(name) && !value.is_empty()).collect()
}

/// Returns the default path of the store.
pub fn default_store() -> PathBuf {
    own_dir("XDG_DATA_HOME", ".local/share")
}

/// Returns the folder with what may be removed at any time.
pub fn cache_dir() -> PathBuf {
    own_dir("XDG_CACHE_HOME", ".cache")
}

/// Returns the path of the store with what an engine loaded of a lake. It may be removed at any time.
pub fn lake_store(lake: &str) -> PathBuf {
    let path = std::path::absolute(lake).unwrap_or_else(|_| PathBuf::from(lake));
    let name = format!("lake-{:016x}", xxh3_64(path.as_os_str().as_encoded_bytes()));
    cache_dir().join(name)
}

/// Returns the path of the history of the query shell.
pub fn query_history() -> PathBuf {
    own_dir("XDG_STATE_HOME", ".local/state").join("query_history")
}

/// Returns the default folder of the user's settings files.
pub(super) fn settings_dir() -> PathBuf {
    own_dir("XDG_CONFIG_HOME", ".config")
}

/// Returns the folder of this program in one of the XDG base directories: the directory that the
/// variable names, otherwise `usual` in the home directory.
fn own_dir(name: &str, usual: &str) -> PathBuf {
    let named_dir = read_path_variable(name).filter(|dir| dir.is_absolute());
    named_dir.unwrap_or_else(|| home_dir().join(usual)).join("sessions")
}

/// Has logs in the folders to which variables move them known as those of their agents.
pub fn name_moved_folders() {
    let home = home_dir();
    let places = AgentFolders::new(&home, &read_variable);
    ingest::provider::alias::name_moved_folders(&places, |path| real_path(&path).unwrap_or(path));
}

/// Returns the log folders of every known agent on this machine.
pub fn known_roots() -> Vec<PathBuf> {
    default_roots(&AgentFolders::new(&home_dir(), &read_variable))
}

/// Returns the log folders of some agents that do not exist on this machine.
pub fn absent_roots(agents: &BTreeSet<Provider>) -> Vec<PathBuf> {
    ingest::discover::absent_roots(&AgentFolders::new(&home_dir(), &read_variable), agents)
}

/// Returns the time zone of the system: that of the variable `TZ`, otherwise of the machine. UTC if
/// neither names a zone.
pub(super) fn system_zone() -> Zone {
    TimeZone::try_system().map_or(Zone::UTC, Zone::from_system)
}

/// Returns the folder in which the process was started; `None` if the system cannot tell, for
/// example because it was deleted.
pub fn current_dir() -> Option<PathBuf> {
    std::env::current_dir().ok()
}
