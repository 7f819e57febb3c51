//! The readers of the HTTP server: who they are, by the hash of their token, and which projects they
//! may read.
//!
//! ```text
//! [[reader]]
//! name = "ana"
//! token_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//! projects = ["harbor", "~/code/acme/**"]
//! ```

use std::path::Path;

use schemas::ToolError;
use serde::Deserialize;

use super::patterns::{FolderPatterns, folder_of, is_whole};
use super::settings::invalid_file_error;
use crate::files::outfile::open_target;
use crate::files::stdin::read_text;
use store::SessionOrigin;

/// Maximum size of the file in bytes.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// The pattern of all projects. No other reader sees sessions without a project.
const ALL_PROJECTS: &str = "**";

/// Bytes of a SHA-256.
const HASH_BYTES: usize = 32;

/// A reader of the HTTP server.
#[derive(Debug)]
pub struct Reader {
    pub name: String,
    pub token_sha256: [u8; HASH_BYTES],
    may_read_all: bool,
    /// Names of projects, in lower case.
    names: Vec<String>,
    folders: FolderPatterns,
}

impl Reader {
    /// Returns whether the reader may read the sessions of an origin.
    pub fn may_read(&self, origin: &SessionOrigin) -> bool {
        let project = origin.project.as_ref().map(|project| project.to_lowercase());
        self.may_read_all
            || project.is_some_and(|project| self.names.contains(&project))
            || origin.cwd.as_ref().is_some_and(|cwd| self.folders.is_match(cwd))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadersFile {
    reader: Vec<ReaderEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReaderEntry {
    name: String,
    token_sha256: String,
    projects: Vec<String>,
}

/// Reads the file of readers.
///
/// # Errors
/// Returns an error that names the file if it cannot be read, or if one of its readers is not valid.
pub fn read_readers(path: &Path) -> Result<Vec<Reader>, ToolError> {
    let text = open_target(path).and_then(|file| read_text(file, MAX_FILE_BYTES));
    let text = text.map_err(|error| invalid_file_error(path, error))?;
    parse_readers(&text).map_err(|reason| invalid_file_error(path, reason))
}

/// Parses the text of the file. The error is the reason why it is not valid.
fn parse_readers(text: &str) -> Result<Vec<Reader>, String> {
    let file: ReadersFile =
        toml::from_str(text).map_err(|error| error.message().trim_end().to_owned())?;
    let mut readers: Vec<Reader> = Vec::new();
    for entry in file.reader {
        let reader = parse_reader(&entry)
            .map_err(|reason| format!("reader '{}': {reason}", entry.name.escape_debug()))?;
        if readers.iter().any(|known| known.token_sha256 == reader.token_sha256) {
            return Err(format!("reader '{}' has the same token as another reader", reader.name));
        }
        readers.push(reader);
    }
    if readers.is_empty() { Err("it defines no reader".to_owned()) } else { Ok(readers) }
}

fn parse_reader(entry: &ReaderEntry) -> Result<Reader, String> {
    let token_sha256 =
        parse_hash(entry.token_sha256.trim()).ok_or("token_sha256 is not 64 hexadecimal digits")?;
    let mut names = Vec::new();
    let mut folders = Vec::new();
    for pattern in &entry.projects {
        let pattern = pattern.trim();
        if !pattern.contains(['/', '\\', '*']) {
            names.push(pattern.to_lowercase());
        }
        // `~` stays: it is what published paths begin with.
        let folder = folder_of(pattern);
        let folder = if is_whole(&folder) { folder } else { format!("**/{folder}") };
        FolderPatterns::build(std::slice::from_ref(&folder))
            .map_err(|error| format!("'{pattern}': {}", error.kind()))?;
        folders.push(folder);
    }
    let folders = FolderPatterns::build(&folders).map_err(|error| error.kind().to_string())?;
    let may_read_all = entry.projects.iter().any(|pattern| pattern.trim() == ALL_PROJECTS);
    Ok(Reader { name: entry.name.clone(), token_sha256, may_read_all, names, folders })
}

/// Parses hexadecimal digits of a SHA-256.
fn parse_hash(text: &str) -> Option<[u8; HASH_BYTES]> {
    if text.len() != 2 * HASH_BYTES || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut hash = [0; HASH_BYTES];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(projects: &str) -> Reader {
        let hash = "ab".repeat(HASH_BYTES);
        let text =
            format!("[[reader]]\nname = 'ana'\ntoken_sha256 = '{hash}'\nprojects = [{projects}]\n");
        parse_readers(&text).expect("valid").remove(0)
    }

    fn origin(project: Option<&str>, cwd: Option<&str>) -> SessionOrigin {
        SessionOrigin {
            project: project.map(str::to_owned),
            cwd: cwd.map(str::to_owned),
            ..SessionOrigin::default()
        }
    }

    #[test]
    fn projects_are_named_by_their_name_or_their_folder() {
        let ana = reader("'Harbor', '~/code/acme/**'");
        assert_eq!(ana.token_sha256, [0xab; HASH_BYTES]);
        assert!(ana.may_read(&origin(Some("harbor"), None)));
        assert!(ana.may_read(&origin(Some("api"), Some("~/code/acme/api"))));
        assert!(ana.may_read(&origin(None, Some("~/code/acme"))));
        for (project, cwd) in [
            (Some("harbor-ui"), Some("~/code/harbor-ui")),
            (Some("acme2"), Some("~/code/acme2")),
            (None, None),
            (None, Some("/")),
        ] {
            assert!(!ana.may_read(&origin(project, cwd)), "{project:?} {cwd:?}");
        }
        assert!(reader("'**'").may_read(&origin(None, None)));
        assert!(!reader("").may_read(&origin(None, None)));
    }

    #[test]
    fn a_wrong_file_says_what_is_wrong() {
        for (text, reason) in [
            ("", "missing field `reader`"),
            ("reader = []", "defines no reader"),
            ("[[reader]]\nname='a'\ntoken_sha256='xyz'\nprojects=[]\n", "64 hexadecimal"),
        ] {
            let error = parse_readers(text).expect_err("wrong");
            assert!(error.contains(reason), "{error}");
        }
    }
}
