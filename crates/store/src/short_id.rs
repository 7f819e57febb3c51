//! Shortens session ids to the shortest unique prefix.

use std::borrow::Cow;

use super::lookup::is_copy_of;
use super::snapshot::Snapshot;

/// Minimum number of characters of a shortened id: enough that it stays unique for a while.
const MIN_SHORT_ID_CHARS: usize = 8;

impl Snapshot {
    /// Returns the shortest prefix of a session's id, of at least eight characters, that
    /// [`Snapshot::find_session`] resolves to this session. The id of a copy is that of its original
    /// with its number, `9ae82b3a~2`. An unknown id is returned whole.
    pub fn short_id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        if let Some((original, number)) = id.rsplit_once('~')
            && self.session_position(original).is_some()
        {
            let short = format!("{}~{number}", self.short_prefix(original));
            if self.find_session(&short).ok() == self.session_position(id) {
                return Cow::Owned(short);
            }
        }
        Cow::Borrowed(self.short_prefix(id))
    }

    /// Returns the shortest unique prefix of an id.
    fn short_prefix<'i>(&self, id: &'i str) -> &'i str {
        let Some(at) = self.session_position(id) else { return id };
        let sessions = self.sessions();
        let before = at.checked_sub(1).and_then(|before| sessions.get(before));
        // A prefix that matches copies of this session too refers to this one.
        let after = sessions.iter().skip(at + 1).find(|row| !is_copy_of(id, row.id()));
        let neighbors = before.into_iter().chain(after);
        let shared = neighbors.map(|row| count_shared_chars(id, row.id())).max();
        let chars = MIN_SHORT_ID_CHARS.max(shared.map_or(0, |shared| shared + 1));
        id.char_indices().nth(chars).map_or(id, |(end, _)| &id[..end])
    }
}

/// Returns the number of characters at the beginning of both texts that are equal.
fn count_shared_chars(one: &str, other: &str) -> usize {
    one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count()
}
