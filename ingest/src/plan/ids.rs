//! Assigns session ids to new logs.
//!
//! An id is typed, pasted and printed in commands. Agents write UUIDs and words such as `ses_51a8`,
//! `agent-ab20` or `agent:main:x`, but a log can claim any text. An id with other characters is
//! replaced by one that no shell reads as anything but a word:
//!
//! ```text
//! claimed: nightly run $(date)
//! id:      nightly_run___date_~5f0c3a91
//! ```

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of characters of a session id, without the number appended to it.
const MAX_ID_CHARS: usize = 128;

/// Number of digits of a hash at the end of a replaced id, so that two claimed ids do not become one.
const HASH_DIGITS: usize = 8;

/// Characters besides letters and digits that an id keeps.
const SAFE_MARKS: &[u8] = b"-_.:~@+=/";

/// Assigns ids to new logs that are not those of other sessions.
pub(super) struct NewIds<'k, V> {
    /// The sessions of the store, by id.
    known: &'k HashMap<String, V>,
    /// The ids assigned before, with the last number tried for each: many logs may claim one id.
    taken: HashMap<String, u32>,
}

impl<'k, V> NewIds<'k, V> {
    /// Prepares to assign ids to new logs.
    pub(super) fn new(known: &'k HashMap<String, V>) -> Self {
        Self { known, taken: HashMap::new() }
    }

    /// Returns the native id, or the safe id that replaces it, with `~2`, `~3`, ... appended if it is
    /// taken.
    pub(super) fn assign(&mut self, native: &str) -> String {
        let base = safe_session_id(native).into_owned();
        // Most ids are their own.
        let base = match self.taken.entry(base) {
            Entry::Vacant(free) if !self.known.contains_key(free.key()) => {
                let id = free.key().clone();
                free.insert(1);
                return id;
            }
            Entry::Vacant(free) => free.into_key(),
            Entry::Occupied(taken) => taken.key().clone(),
        };

        let mut number = self.taken.get(&base).copied().unwrap_or(0);
        let id = loop {
            number += 1;
            let id = if number == 1 { base.clone() } else { format!("{base}~{number}") };
            if !self.known.contains_key(&id) && !self.taken.contains_key(&id) {
                break id;
            }
        };

        self.taken.insert(base, number);
        self.taken.entry(id.clone()).or_insert(1);
        id
    }
}

/// Returns whether a session id was assigned to a log that claims `native`.
pub(crate) fn is_id_of(session_id: &str, native: &str) -> bool {
    let is_numbered = |base: &str| {
        session_id.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('~'))
    };
    is_numbered(native) || is_numbered(&safe_session_id(native))
}

/// Returns the session id of a log that claims this id: the same, or one that replaces it if a shell
/// could read it as anything but a word, or if it is long. The id of a replaced id is the same.
///
/// ```rust
/// use ingest::plan::safe_session_id;
///
/// assert_eq!(safe_session_id("agent:main:x"), "agent:main:x");
/// assert!(safe_session_id("$(date)").starts_with("__date_~"));
/// ```
pub fn safe_session_id(native: &str) -> Cow<'_, str> {
    if is_safe_id(native) {
        return Cow::Borrowed(native);
    }
    let kept = native.chars().take(MAX_ID_CHARS - HASH_DIGITS - 1).enumerate();
    let mut id: String = kept
        .map(|(at, c)| {
            let is_kept = c.is_alphanumeric() || (at > 0 && is_safe_mark(c));
            if is_kept { c } else { '_' }
        })
        .collect();
    if id.is_empty() {
        id.push_str("session");
    }
    let hash = format!("{:016x}", xxh3_64(native.as_bytes()));
    id.push('~');
    id.push_str(&hash[..HASH_DIGITS]);
    Cow::Owned(id)
}

/// Returns whether a native id can be a session id as it is.
fn is_safe_id(native: &str) -> bool {
    let is_short = native.len() <= MAX_ID_CHARS || native.chars().count() <= MAX_ID_CHARS;
    let begins_well = native.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    is_short && begins_well && native.chars().all(|c| c.is_alphanumeric() || is_safe_mark(c))
}

fn is_safe_mark(c: char) -> bool {
    u8::try_from(c).is_ok_and(|byte| SAFE_MARKS.contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_taken_get_a_number_and_odd_ones_are_cleaned() {
        let known = ["known", "b", "b~3"].map(|id| (id.to_owned(), ()));
        let known = HashMap::from(known);
        let mut ids = NewIds::new(&known);
        assert_eq!(ids.assign("known"), "known~2");
        assert_eq!(ids.assign("a"), "a");
        assert_eq!(ids.assign("a"), "a~2");
        assert_eq!(ids.assign("a"), "a~3");
        let odd = ids.assign("b c\n");
        assert!(odd.starts_with("b_c_~"), "{odd}");
        assert_eq!(ids.assign("b c\n"), format!("{odd}~2"));
        assert!(ids.assign("").starts_with("session~"));
        assert_eq!(ids.assign("b"), "b~2");
        assert_eq!(ids.assign("b"), "b~4");
        // An id may look like one that was numbered.
        assert_eq!(ids.assign("a~2"), "a~2~2");
        assert_eq!(ids.assign("a~4"), "a~4");
        assert_eq!(ids.assign("a"), "a~5");
    }

    #[test]
    fn ids_that_a_shell_could_run_are_replaced() {
        let agents = [
            "019a0b1c-7d2e-7f00-8000-000000000001",
            "ses_51a8e12c9fffffeJ61AHhkiNSYErI",
            "T-019a2b7e-41c8-7d30-9b15-6e0f3c8a7d24",
            "agent:main:telegram:group:-100",
            "mira@pier/night+1",
            "a~2",
            "_x=1",
            "übung-1",
        ];
        for id in agents {
            assert_eq!(safe_session_id(id), id);
        }
        let long = "a".repeat(MAX_ID_CHARS + 1);
        let hostile = [
            "$(touch x)",
            "`x`",
            "a;b",
            "a b",
            "a\nb",
            "a'b",
            "a\"b",
            "a!b",
            "a*b",
            "a|b",
            "a&b",
            "a>b",
            "-rf",
            "~root",
            "=ls",
            "/etc/x",
            ".x",
            "a%b",
            "a,b",
            "a\u{1b}[2J",
            "a\u{202e}b",
            "a\\b",
            "a{b",
            "a#b",
            "[x]",
            "",
            &long,
        ];
        let mut seen = std::collections::HashSet::new();
        for id in hostile {
            let safe = safe_session_id(id).into_owned();
            assert_ne!(safe, id);
            assert_eq!(safe_session_id(&safe), safe, "of a replaced id");
            assert!(safe.chars().count() <= MAX_ID_CHARS, "{safe}");
            assert!(is_id_of(&safe, id) && is_id_of(&format!("{safe}~2"), id), "{safe}");
            assert!(!is_id_of(&format!("{safe}2"), id), "{safe}");
            assert!(seen.insert(safe), "{id}");
        }
        // A store may have an id from before they were replaced.
        assert!(is_id_of("$(x)~2", "$(x)"));
    }
}
