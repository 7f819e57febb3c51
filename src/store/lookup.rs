//! Finds a session by its id or by a unique prefix of it.

use schemas::limits::PREFIX_CHARS;

use super::snapshot::Snapshot;

/// Number of session ids that are listed if a prefix fits more.
const CANDIDATES: usize = 10;

/// Why an id or a prefix does not identify a single session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupError {
    /// The prefix has fewer than `least` characters.
    TooShort { least: usize },
    /// No session id begins with the prefix. `meant` is the id that begins most like it, if any is
    /// near.
    NotFound { meant: Option<String> },
    /// Several session ids begin with the prefix: `sessions` is their number, `candidates` lists
    /// some.
    Ambiguous { sessions: usize, candidates: Vec<String> },
}

impl Snapshot {
    /// Finds the position of a session by its id or any unique prefix of at least three characters.
    /// If all matches are copies of one id (`id`, `id~2`), returns the first.
    pub fn find(&self, prefix: &str) -> Result<usize, LookupError> {
        if let Some(at) = self.position(prefix) {
            return Ok(at);
        }
        if prefix.chars().count() < PREFIX_CHARS {
            return Err(LookupError::TooShort { least: PREFIX_CHARS });
        }
        let sessions = self.sessions();
        let from = sessions.partition_point(|row| row.session_id.as_str() < prefix);
        let matches = sessions[from..].iter().take_while(|row| row.session_id.starts_with(prefix));
        let ids: Vec<&str> = matches.map(|row| row.session_id.as_str()).collect();
        let Some((first, others)) = ids.split_first() else {
            let meant = self.begins_most_like(prefix).map(str::to_owned);
            return Err(LookupError::NotFound { meant });
        };
        let is_copy = |id: &&str| id.strip_prefix(first).is_some_and(|end| end.starts_with('~'));
        if others.iter().all(is_copy) {
            return Ok(from);
        }
        let candidates = ids.iter().take(CANDIDATES).map(|id| (*id).to_owned()).collect();
        Err(LookupError::Ambiguous { sessions: ids.len(), candidates })
    }

    /// Returns the id of the session that begins most like a mistyped prefix.
    fn begins_most_like(&self, prefix: &str) -> Option<&str> {
        let length = prefix.chars().count();
        let heads = self.sessions().iter().map(|row| head(&row.session_id, length));
        let near = schemas::nearest(prefix, heads)?;
        let near = self.sessions().iter().find(|row| row.session_id.starts_with(near))?;
        Some(&near.session_id)
    }
}

/// Returns the first `chars` characters of a text.
fn head(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}
