//! Reads sessions that an agent keeps in a database, and puts them together into documents.

pub(crate) mod cells;
pub(crate) mod connection;
pub(crate) mod document_text;
pub(crate) mod listing;
pub(crate) mod own_database;
pub(crate) mod size_limit;
pub(crate) mod tables;
mod wal;

/// Maximum number of characters of a name in a message.
const MAX_NAME_CHARS: usize = 120;

/// Returns an id or the name of a file without characters that ids do not have, because messages
/// contain no other text of a log.
pub(crate) fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    name.chars().take(MAX_NAME_CHARS).map(|c| if is_plain(c) { c } else { '?' }).collect()
}
