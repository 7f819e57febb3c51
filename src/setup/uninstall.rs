//! Finds what this program has written into the configurations of clients, and removes it with the program.

use std::fs;
use std::path::{Path, PathBuf};

use ingest::provider::format::AgentFolders;
use schemas::client::Client;
use schemas::hook::HookClient;
use schemas::{Timestamp, ToolError};
use serde::Serialize;

use super::hooks::plan_hooks;
use super::installation::{describe_installation, remove_program};
use super::plan_registration;
use tools::error::unusable_path;

/// The files of shells that may connect them with `sessions init`.
const SHELL_FILES: [&str; 4] = [".bashrc", ".bash_profile", ".zshrc", ".config/fish/config.fish"];

/// Something that is removed with the program.
#[derive(Debug, Serialize)]
pub struct RemovedPart {
    /// What it is: `MCP server`, `hooks`, `program`, `store` or `cache`.
    pub what: &'static str,
    pub path: PathBuf,
    /// Why it could not be removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What is removed, and what the user has to do.
#[derive(Debug, Serialize)]
pub struct Uninstall {
    /// False if this only shows what would be removed.
    pub is_done: bool,
    pub parts: Vec<RemovedPart>,
    /// What remains, in whole sentences.
    pub remaining: Vec<String>,
}

/// Removes everything but the folders, or shows it if `is_done` is false. `program` is this program,
/// without links. `folders` are removed as well.
pub fn uninstall(
    program: &Path,
    places: &AgentFolders<'_>,
    home: &Path,
    folders: Vec<(&'static str, PathBuf)>,
    is_done: bool,
) -> Uninstall {
    let now = Timestamp::now();
    let mut done = Uninstall { is_done, parts: Vec::new(), remaining: Vec::new() };
    for client in Client::ALL {
        let registration = plan_registration(*client, places, program, &[]);
        if registration.is_written() {
            let remove = || registration.remove_config(now).map(drop);
            done.remove("MCP server", registration.path.clone(), remove);
        }
    }
    for client in HookClient::ALL {
        let hooks = plan_hooks(*client, places, program, &[]);
        if hooks.is_installed() {
            done.remove("hooks", hooks.path.clone(), || hooks.remove(now).map(drop));
        }
    }
    for (what, folder) in folders.into_iter().filter(|(_, folder)| folder.exists()) {
        let remove = || fs::remove_dir_all(&folder).map_err(|error| unusable_path(&folder, error));
        done.remove(what, folder.clone(), remove);
    }
    for name in SHELL_FILES {
        let path = home.join(name);
        if fs::read_to_string(&path).is_ok_and(|text| text.contains("sessions init")) {
            let path = path.display();
            done.remaining.push(format!("{path} has a line with `sessions init`; remove it"));
        }
    }
    match describe_installation(program).remove {
        Some(command) => done.remaining.push(format!("To remove the program, run: {command}")),
        None => {
            let remove = || remove_program(program).map_err(|error| unusable_path(program, error));
            done.remove("program", program.to_owned(), remove);
        }
    }
    done
}

impl Uninstall {
    /// Removes a part, unless it is only shown.
    fn remove(
        &mut self,
        what: &'static str,
        path: PathBuf,
        remove: impl FnOnce() -> Result<(), ToolError>,
    ) {
        let error = if self.is_done { remove().err().map(|error| error.message) } else { None };
        self.parts.push(RemovedPart { what, path, error });
    }

    /// Returns whether something could not be removed.
    pub fn has_errors(&self) -> bool {
        self.parts.iter().any(|part| part.error.is_some())
    }
}
