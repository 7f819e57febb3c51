//! Finds a session by its id or by a unique prefix of it.

use std::ops::Range;

use schemas::limits::PREFIX_CHARS;

use super::segment::session_table::StoredSession;
use super::snapshot::Snapshot;

/// Most session ids that are listed if a prefix is ambiguous.
const MAX_CANDIDATES: usize = 10;

/// The reason why an id or a prefix does not identify a single session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupError {
    /// The prefix has fewer than `least` characters.
    TooShort { least: usize },
    /// No session id begins with the prefix. `meant` is the id whose beginning is most similar to
    /// it, if any is similar enough.
    NotFound { meant: Option<String> },
    /// Several session ids begin with the prefix: `sessions` is their number, `candidates` lists
    /// some.
    Ambiguous { sessions: usize, candidates: Vec<String> },
}

impl Snapshot {
    /// Finds the position of a session by its id or any unique prefix of at least three characters.
    /// If all matches are copies of one id (`id`, `id~2`), returns the first.
    pub fn find_session(&self, prefix: &str) -> Result<usize, LookupError> {
        if let Some(at) = self.session_position(prefix) {
            return Ok(at);
        }
        if prefix.chars().count() < PREFIX_CHARS {
            return Err(LookupError::TooShort { least: PREFIX_CHARS });
        }

        let matches = self.sessions_with_prefix(prefix);
        let first_match = matches.start;
        let ids: Vec<&str> = self.sessions()[matches].iter().map(StoredSession::id).collect();

        let Some((first, others)) = ids.split_first() else {
            if let Some(copy) = self.find_copy(prefix) {
                return Ok(copy);
            }
            let meant = self.find_nearest_id(prefix).map(str::to_owned);
            return Err(LookupError::NotFound { meant });
        };
        if others.iter().all(|id| is_copy_of(first, id)) {
            return Ok(first_match);
        }
        let candidates = ids.iter().take(MAX_CANDIDATES).map(|id| (*id).to_owned()).collect();
        Err(LookupError::Ambiguous { sessions: ids.len(), candidates })
    }

    /// Returns the positions of the sessions whose ids begin with `prefix`.
    pub fn sessions_with_prefix(&self, prefix: &str) -> Range<usize> {
        let sessions = self.sessions();
        let start = sessions.partition_point(|row| row.id() < prefix);
        let count = sessions[start..].partition_point(|row| row.id().starts_with(prefix));
        start..start + count
    }

    /// Finds a copy by a prefix of its original and its number: `9ae82b3a~2`.
    fn find_copy(&self, text: &str) -> Option<usize> {
        let (prefix, number) = text.rsplit_once('~')?;
        let original = self.sessions().get(self.find_session(prefix).ok()?)?;
        self.session_position(&format!("{}~{number}", original.id()))
    }

    /// Returns the session id whose beginning is most similar to a mistyped prefix, if any is
    /// similar enough.
    fn find_nearest_id(&self, prefix: &str) -> Option<&str> {
        let length = prefix.chars().count();
        let heads = self.sessions().iter().map(|row| first_chars(row.id(), length));
        let nearest = schemas::nearest(prefix, heads)?;
        let session = self.sessions().iter().find(|row| row.id().starts_with(nearest))?;
        Some(session.id())
    }
}

/// True if `id` is the id of a copy of the session `original`: the same with an end like `~2`.
pub(super) fn is_copy_of(original: &str, id: &str) -> bool {
    id.strip_prefix(original).is_some_and(|end| end.starts_with('~'))
}

/// Returns the first `chars` characters of a text.
fn first_chars(text: &str, chars: usize) -> &str {
    text.char_indices().nth(chars).map_or(text, |(at, _)| &text[..at])
}
