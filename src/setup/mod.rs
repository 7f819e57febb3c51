//! Registers the server with its clients: computes the entry for their configuration, and writes it
//! without changing anything else.

pub mod check;
mod edit;
mod entry;
pub mod hooks;
pub mod installation;
mod link;
mod place;
pub mod uninstall;
mod variables;
mod yaml;

pub(crate) use self::edit::{exclude_folders, include_folders};

use std::fmt::Display;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use ingest::provider::format::AgentFolders;
use schemas::client::Client;
use schemas::{Timestamp, ToolError};
use serde::Serialize;
use serde_json::json;

use self::edit::edit_plain;
use self::entry::{SERVER_NAME, ServerEntry};
use self::link::install_link;
use self::place::{client_folder, config_path};
use self::variables::pass_variables;
use crate::files::outfile::{create_next_to, find_place, keep_copy, open_target};
use base::shell_word::shell_line;
use tools::error::unusable_path;

/// The entry that a client's configuration needs.
#[derive(Debug, Clone, Serialize)]
pub struct Registration {
    pub client: Client,
    /// The client's configuration file.
    pub path: PathBuf,
    /// The text to add to the file.
    pub config: String,
    /// The client's own command that adds the entry, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The link that adds the entry by a click, if the client has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    #[serde(skip)]
    entry: ServerEntry,
    /// The program that the client starts, and its arguments.
    #[serde(skip)]
    server: Vec<String>,
}

/// The result of writing a configuration file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConfigWritten {
    pub path: PathBuf,
    pub changed: bool,
    /// The path of the copy of the previous file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backup: Option<PathBuf>,
}

/// The result of registering the server with one of several clients.
#[derive(Debug, Serialize)]
pub struct ClientSetup {
    pub client: Client,
    /// The client's configuration file.
    pub path: PathBuf,
    /// `None` if nothing was to be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<ConfigWritten>,
    /// The reason why the file could not take the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The results of registering the server with every client that was found.
#[derive(Debug, Serialize)]
pub struct AllClientsSetup {
    pub clients: Vec<ClientSetup>,
}

/// Returns the registration of the server, which is started by `program` with `arguments`.
pub fn plan_registration(
    client: Client,
    places: &AgentFolders<'_>,
    program: &Path,
    arguments: &[String],
) -> Registration {
    let program = program.to_string_lossy().into_owned();
    let whole: Vec<_> = std::iter::once(&program).chain(arguments).map(String::as_str).collect();
    let path = config_path(client, places);
    let own_tables = [
        (Client::Codex, "mcp_servers"),
        (Client::Opencode, "mcp"),
        (Client::Vscode, "servers"),
        (Client::Zed, "context_servers"),
        (Client::Goose, "extensions"),
    ];
    let own_table = own_tables.iter().find(|(known, _)| *known == client);
    let table = own_table.map_or("mcpServers", |(_, table)| table);
    let fields = match client {
        Client::Codex | Client::Gemini => {
            let mut fields = json!({ "command": program, "args": arguments });
            pass_variables(client, places, &mut fields);
            fields
        }
        Client::Cursor
        | Client::ClaudeDesktop
        | Client::Windsurf
        | Client::Jetbrains
        | Client::Cline
        | Client::Kiro
        | Client::Antigravity => json!({ "command": program, "args": arguments }),
        Client::Zed => json!({ "source": "custom", "command": program, "args": arguments }),
        // Copilot needs the list of the tools that its model may call.
        Client::Copilot => {
            json!({ "type": "local", "command": program, "args": arguments, "tools": ["*"] })
        }
        Client::Goose => json!({
            "enabled": true,
            "type": "stdio",
            "name": SERVER_NAME,
            "cmd": program,
            "args": arguments,
            "timeout": 300,
        }),
        Client::Claude | Client::Vscode => {
            json!({ "type": "stdio", "command": program, "args": arguments })
        }
        Client::Opencode => json!({ "type": "local", "command": whole, "enabled": true }),
    };
    let entry = ServerEntry { table, fields: fields.as_object().cloned().unwrap_or_default() };

    let commands =
        [(Client::Claude, "claude mcp add --scope user"), (Client::Codex, "codex mcp add")];
    let own_command = commands.iter().find(|(known, _)| *known == client);
    let command = own_command
        .map(|(_, command)| format!("{command} {SERVER_NAME} -- {}", shell_line(&whole)));
    let config = edit::add_entry(&path, "", &entry).unwrap_or_default();
    let server = whole.iter().map(|word| (*word).to_owned()).collect();
    let link = install_link(client, &entry);
    Registration { client, path, config, command, link, entry, server }
}

/// Returns the clients that have been used on this machine: their folder or their file exists.
pub fn find_clients(places: &AgentFolders<'_>) -> Vec<Client> {
    let is_found = |client: &Client| {
        client_folder(*client, places).exists() || config_path(*client, places).exists()
    };
    Client::ALL.iter().copied().filter(is_found).collect()
}

impl Registration {
    /// Adds the entry to the client's file or updates it. The previous file is kept next to it, and
    /// the rest of the file is unchanged.
    pub fn write_config(&self, now: Timestamp) -> Result<ConfigWritten, ToolError> {
        change_config(&self.path, now, |text| edit::add_entry(&self.path, text, &self.entry))
    }

    /// Returns whether the client's file has the entry.
    pub fn is_written(&self) -> bool {
        is_changed_by(&self.path, |text| edit::remove_entry(&self.path, text, &self.entry))
    }

    /// Removes the entry from the client's file. The previous file is kept next to it, and the rest of
    /// the file is unchanged.
    pub fn remove_config(&self, now: Timestamp) -> Result<ConfigWritten, ToolError> {
        change_config(&self.path, now, |text| edit::remove_entry(&self.path, text, &self.entry))
    }
}

/// Returns whether `edit` changes the text of a file. A file that cannot be read is not changed.
fn is_changed_by(path: &Path, edit: impl FnOnce(&str) -> Result<String, String>) -> bool {
    let Ok(text) = open_target(path).and_then(io::read_to_string) else { return false };
    edit_plain(&text, edit).is_ok_and(|after| after != text)
}

/// Replaces the text of a configuration file by what `edit` makes of it; a file that does not exist
/// is empty. The previous file is kept next to it. The error of `edit` is the reason why the text
/// cannot be changed.
pub(crate) fn change_config(
    named: &Path,
    now: Timestamp,
    edit: impl FnOnce(&str) -> Result<String, String>,
) -> Result<ConfigWritten, ToolError> {
    // If the path is a link, the file that it points to is changed.
    let path = find_place(named)?;
    let before = match open_target(&path).and_then(io::read_to_string) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(unusable_config(named, error)),
    };
    let after = edit_plain(before.as_deref().unwrap_or(""), edit)
        .map_err(|reason| unusable_config(&path, reason))?;
    if before.as_deref() == Some(after.as_str()) {
        return Ok(ConfigWritten { path, changed: false, backup: None });
    }

    let backup = match before {
        Some(_) => Some(back_up(&path, now).map_err(|error| unusable_config(named, error))?),
        None => None,
    };
    replace_file(&path, &after).map_err(|error| unusable_config(named, error))?;
    Ok(ConfigWritten { path, changed: true, backup })
}

/// Copies a file to a new file next to it whose name contains the time. Returns its path.
fn back_up(path: &Path, now: Timestamp) -> io::Result<PathBuf> {
    let time: String = now.to_string().chars().filter(char::is_ascii_alphanumeric).collect();
    keep_copy(path, &format!(".{time}.bak"))
}

/// Replaces a file in one step. The new file has the permissions of the old one.
fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    let mut file = create_next_to(path)?;
    file.write_all(text.as_bytes())?;
    if let Ok(metadata) = fs::metadata(path) {
        file.as_file().set_permissions(metadata.permissions())?;
    }
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Returns the error for a configuration file that cannot take the entry.
fn unusable_config(path: &Path, reason: impl Display) -> ToolError {
    let what = format_args!(
        "{reason}. Nothing was changed: edit it by hand. `sessions setup CLIENT` without --write prints the entry of a client"
    );
    unusable_path(path, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_variable(_: &str) -> Option<String> {
        None
    }

    fn registered(client: Client, home: &Path) -> Registration {
        let places = AgentFolders::new(home, &no_variable);
        let arguments = ["--store".to_owned(), "/my store".to_owned(), "mcp".to_owned()];
        plan_registration(client, &places, Path::new("/opt/sessions"), &arguments)
    }

    #[test]
    fn every_client_gets_the_whole_command() {
        for client in Client::ALL {
            let registration = registered(*client, Path::new("/home/mira"));
            assert!(registration.path.starts_with("/home/mira"), "{client}");
            for word in ["/opt/sessions", "--store", "/my store", "mcp"] {
                assert!(registration.config.contains(&format!("\"{word}\"")), "{client}: {word}");
            }
        }
        let claude = registered(Client::Claude, Path::new("/home/mira"));
        let command = claude.command.expect("has one");
        assert!(command.ends_with("-- /opt/sessions --store '/my store' mcp"), "{command}");
    }

    #[test]
    fn only_clients_with_a_folder_or_a_file_are_found() {
        let home = tempfile::tempdir().expect("tempdir");
        let places = AgentFolders::new(home.path(), &no_variable);
        assert!(find_clients(&places).is_empty());
        fs::create_dir_all(home.path().join(".codex")).expect("creates");
        fs::create_dir_all(home.path().join(".kiro")).expect("creates");
        fs::write(home.path().join(".claude.json"), "{}").expect("writes");
        assert_eq!(find_clients(&places), [Client::Claude, Client::Codex, Client::Kiro]);
    }

    #[test]
    fn antigravity_is_registered_in_the_folder_that_its_version_reads() {
        let home = tempfile::tempdir().expect("tempdir");
        let file = |folder: &str| home.path().join(".gemini").join(folder).join("mcp_config.json");
        let path = || registered(Client::Antigravity, home.path()).path;
        assert_eq!(path(), file("config"));
        for folder in ["antigravity", "antigravity-cli", "config"] {
            fs::create_dir_all(home.path().join(".gemini").join(folder)).expect("creates");
            assert_eq!(path(), file(folder));
        }
        // It replaces no `$NAME`, so nothing of the environment is passed.
        let registration = registered(Client::Antigravity, home.path());
        registration.write_config(Timestamp(0)).expect("writes");
        assert!(registration.is_written());
        registration.remove_config(Timestamp(0)).expect("removes");
        assert!(!registration.is_written());
    }

    #[test]
    fn writing_keeps_the_file_before_and_is_done_once() {
        let home = tempfile::tempdir().expect("tempdir");
        let registration = registered(Client::Gemini, home.path());
        let made = registration.write_config(Timestamp(0)).expect("writes");
        assert!(made.changed && made.backup.is_none());
        fs::write(&registration.path, "{ \"theme\": \"x\" }\n").expect("writes");
        let changed = registration.write_config(Timestamp(0)).expect("writes");
        let backup = changed.backup.expect("kept");
        assert_eq!(fs::read_to_string(backup).expect("reads"), "{ \"theme\": \"x\" }\n");
        let text = fs::read_to_string(&registration.path).expect("reads");
        assert!(text.contains("\"theme\": \"x\"") && text.contains("/opt/sessions"), "{text}");
        assert!(!registration.write_config(Timestamp(0)).expect("reads").changed);
        fs::write(&registration.path, "not json").expect("writes");
        assert!(registration.write_config(Timestamp(0)).is_err());
        assert_eq!(fs::read_to_string(&registration.path).expect("reads"), "not json");
    }
}
