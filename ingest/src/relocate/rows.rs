//! Moves the rows of a session from its agent's database to that of another machine: selects the rows that
//! travel, and rewrites the cells that name the folder.
//!
//! The other machine may belong to another user. So the tables and columns that travel are listed: none
//! grants a permission, names a command or belongs to another session.

use std::path::{Path, PathBuf};

use schemas::Provider;

use super::fields::{FieldForm, FolderField, field, rewrite_record};
use super::folders::FolderMove;
use crate::provider::format::AgentFolders;
use crate::provider::shared::database::tables::{session_path, split_session_path};
use crate::provider::{base_of, format_of, log_folders};
use crate::rows::{RowDocument, find_session};
use crate::source::assembly::{Assembly, RowTables};

/// What travels of the rows of a session.
struct RowTravel {
    /// The tables with rows of one session, and their columns that stay behind.
    tables: &'static [(&'static str, &'static [&'static str])],
    /// The columns that travel of rows that several sessions need.
    shared_columns: &'static [&'static str],
    /// The cells that name the folder, by table and column.
    cells: &'static [(&'static str, &'static str, FolderCell)],
}

/// How a cell names the folder.
enum FolderCell {
    Path,
    /// A path without the slash at its beginning.
    Rootless,
    /// JSON with these fields.
    Json(&'static [FolderField]),
}

const OPENCODE: RowTravel = RowTravel {
    // `event` is what changed on one machine, and `session_share` has a secret.
    tables: &[
        ("session", SESSION_COLUMNS),
        ("session_v2", SESSION_COLUMNS),
        ("message", &[]),
        ("part", &[]),
        ("session_message", &[]),
        ("todo", &[]),
    ],
    shared_columns: &["id", "worktree", "vcs", "time_created", "time_updated", "sandboxes"],
    cells: &[
        ("session", "directory", FolderCell::Path),
        ("session", "path", FolderCell::Rootless),
        ("session_v2", "directory", FolderCell::Path),
        ("session_v2", "path", FolderCell::Rootless),
        ("project", "worktree", FolderCell::Path),
        (
            "message",
            "data",
            FolderCell::Json(&[
                field(&[], "path", 2, "cwd", FieldForm::Path),
                field(&[], "path", 2, "root", FieldForm::Path),
            ]),
        ),
    ],
};

/// Columns of a session of OpenCode that are of one machine.
const SESSION_COLUMNS: &[&str] = &["permission", "workspace_id", "share_url"];

fn travel_of(provider: Provider) -> Option<&'static RowTravel> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the rows of other agents stay")]
    match base_of(provider) {
        Provider::OpenCode => Some(&OPENCODE),
        _ => None,
    }
}

/// Returns whether the sessions of an agent travel as rows of its database.
pub(super) fn travels_as_rows(provider: Provider) -> bool {
    travel_of(provider).is_some()
}

/// Returns the assembly of an agent whose sessions are rows.
fn row_assembly(provider: Provider) -> Option<(&'static Assembly, &'static RowTables)> {
    let mut assemblies = format_of(provider).quirks.assemblies.iter();
    assemblies.find_map(|assembly| Some((assembly, assembly.rows.as_ref()?)))
}

/// Splits the place of a session that travels as rows into the name of its database and its id. `None` if its
/// place is that of a file.
fn split_place(provider: Provider, below: &str) -> Option<(String, String)> {
    travel_of(provider)?;
    let (database, id) = split_session_path(Path::new(below))?;
    let name = database.to_str()?;
    (!name.contains('/') && !id.is_empty()).then(|| (name.to_owned(), id))
}

/// Returns whether a session at a place travels as rows of a database, not as a file.
pub fn is_place_of_rows(provider: Provider, below: &str) -> bool {
    split_place(provider, below).is_some()
}

/// Returns the place of a session that the store knows as `key`: the name of its database, and its id. `None` if
/// its rows do not travel, or its database is not where the agent keeps it.
pub(super) fn below_database(
    provider: Provider,
    key: &Path,
    folders: &AgentFolders<'_>,
) -> Option<String> {
    travel_of(provider)?;
    let (_, database, id) = find_session(key.to_str()?)?;
    let name = database.file_name()?.to_str()?;
    let is_own = find_databases(provider, name, folders).contains(&database);
    is_own.then(|| session_path(Path::new(name), &id).to_string_lossy().into_owned())
}

/// Returns the databases of an agent that exist: those called `name` in its folders, and those it names
/// otherwise.
fn find_databases(provider: Provider, name: &str, folders: &AgentFolders<'_>) -> Vec<PathBuf> {
    let Some((assembly, _)) = row_assembly(provider) else { return Vec::new() };
    let roots = log_folders(provider, folders).into_iter();
    let candidates = roots.flat_map(|root| [root.join(name), root]);
    candidates.filter(|path| assembly.has_source(path) && path.is_file()).collect()
}

/// Returns where the rows of a session go: the path by which the store knows it then. `None` if its place is
/// that of a file.
pub(super) fn place_rows(
    provider: Provider,
    below: &str,
    folders: &AgentFolders<'_>,
) -> Option<Result<PathBuf, String>> {
    let (name, id) = split_place(provider, below)?;
    let databases = find_databases(provider, &name, folders);
    let has_name = |path: &&PathBuf| path.file_name().is_some_and(|found| found == name.as_str());
    let database = databases.iter().find(has_name).or(databases.first());
    let agent = row_assembly(provider).map_or("its agent", |(_, tables)| tables.agent);
    let missing =
        || format!("{agent} has no database here. Start it once, which creates it, and end it");
    Some(database.map(|database| session_path(database, &id)).ok_or_else(missing))
}

/// Returns the rows of the session at `below` that travel, in the document of its rows. `folders` moves the cells
/// that name the folder.
///
/// # Errors
/// Returns the reason if the document is not valid, or has rows of another session.
pub fn select_travelling_rows(
    provider: Provider,
    below: &str,
    document: &[u8],
    folders: Option<&FolderMove>,
) -> Result<Vec<u8>, String> {
    let place = split_place(provider, below);
    let (Some(travel), Some((_, tables)), Some((_, id))) =
        (travel_of(provider), row_assembly(provider), place)
    else {
        return Err("its rows stay on their machine".to_owned());
    };
    let invalid = |error: serde_json::Error| format!("its rows are not valid: {error}");
    let mut document: RowDocument = serde_json::from_slice(document).map_err(invalid)?;
    document.keep_rows_of(tables, &id, travel.shared_columns, &|table| {
        travel.tables.iter().find(|(name, _)| *name == table).map(|(_, left)| *left)
    })?;
    if let Some(folders) = folders {
        for (table, column, form) in travel.cells {
            document.change_texts(table, column, &|text| form.change(text, folders));
        }
    }
    serde_json::to_vec(&document).map_err(invalid)
}

impl FolderCell {
    /// Returns the new text of a cell. `None` if it stays.
    fn change(&self, text: &str, folders: &FolderMove) -> Option<String> {
        match self {
            Self::Path => folders.map(text),
            Self::Rootless => {
                let moved = folders.map(&format!("/{text}"))?;
                Some(moved.trim_start_matches('/').to_owned())
            }
            Self::Json(fields) => {
                let changed = rewrite_record(fields, text.as_bytes(), folders);
                String::from_utf8(changed.into_owned()).ok().filter(|changed| changed != text)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BELOW: &str = "opencode.db#ses_1";

    fn select(document: &str, folders: Option<&FolderMove>) -> Result<String, String> {
        let rows = select_travelling_rows(Provider::OpenCode, BELOW, document.as_bytes(), folders)?;
        Ok(String::from_utf8(rows).expect("UTF-8"))
    }

    #[test]
    fn only_rows_of_the_session_travel_and_name_the_folder_here() {
        let document = r#"{"version":1,"tables":[
            {"table":"project","is_shared":true,"rows":[{"cells":{"id":"p","worktree":"/a/harbor","commands":"rm"}},
                {"cells":{"id":"q","worktree":"/a/other"}}]},
            {"table":"session","rows":[{"cells":{"id":"ses_1","project_id":"p","directory":"/a/harbor/src",
                "path":"a/harbor/src","permission":"[]","title":"In /a/harbor"}}]},
            {"table":"message","rows":[{"cells":{"id":"m","session_id":"ses_1",
                "data":"{\"path\":{\"cwd\":\"/a/harbor/src\",\"root\":\"/\"},\"x\":{\"cwd\":\"/a/harbor\"}}"}}]},
            {"table":"session_share","rows":[{"cells":{"session_id":"ses_1","secret":"s"}}]},
            {"table":"permission","is_shared":true,"rows":[{"cells":{"id":"x"}}]}]}"#;
        let moved = FolderMove::new("/a/harbor", "/srv/quay");
        let wanted = r#"{"version":1,"tables":[{"table":"project","is_shared":true,"rows":[{"cells":{"id":"p","worktree":"/srv/quay"}}]},{"table":"session","rows":[{"cells":{"id":"ses_1","project_id":"p","directory":"/srv/quay/src","path":"srv/quay/src","title":"In /a/harbor"}}]},{"table":"message","rows":[{"cells":{"id":"m","session_id":"ses_1","data":"{\"path\":{\"cwd\":\"/srv/quay/src\",\"root\":\"/\"},\"x\":{\"cwd\":\"/a/harbor\"}}"}}]}]}"#;
        assert_eq!(select(document, Some(&moved)).as_deref(), Ok(wanted));
        for other in [r#"{"id":"ses_2"}"#, r#"{"title":"x"}"#] {
            let document = format!(
                r#"{{"version":1,"tables":[{{"table":"session","rows":[{{"cells":{other}}}]}}]}}"#
            );
            assert!(select(&document, None).is_err(), "{other}");
        }
        assert!(select("{}", None).is_err());
    }

    #[test]
    fn a_place_names_a_database_and_a_session() {
        for (provider, below, wanted) in [
            (Provider::OpenCode, BELOW, true),
            (Provider::Kilo, "kilo.db#ses_1", true),
            (Provider::OpenCode, "x/opencode.db#ses_1", false),
            (Provider::OpenCode, "opencode.db", false),
            (Provider::OpenCode, "opencode.db#", false),
            (Provider::OpenCode, "opencode.db#a%23b", true),
            (Provider::Claude, "opencode.db#ses_1", false),
        ] {
            assert_eq!(is_place_of_rows(provider, below), wanted, "{below}");
        }
        let place = split_place(Provider::OpenCode, "opencode.db#a%23b%25");
        assert_eq!(place, Some(("opencode.db".to_owned(), "a#b%".to_owned())));
    }
}
