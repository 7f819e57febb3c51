//! Assigns session ids to new logs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use xxhash_rust::xxh3::xxh3_64;

/// Maximum number of characters of a session id, without the number appended to it.
const MAX_ID_CHARS: usize = 128;

/// Assigns ids to new logs that are not those of other sessions.
pub(super) struct NewIds<'k, V> {
    /// The sessions of the store, by id.
    known: &'k HashMap<String, V>,
    /// True if the logs have different ids, and the store is empty.
    are_unique: bool,
    /// The ids assigned before, with the last number tried for each: many logs may claim one id.
    taken: HashMap<String, u32>,
}

impl<'k, V> NewIds<'k, V> {
    /// Prepares to assign ids to logs with these native ids.
    pub(super) fn new<'n>(
        native_ids: impl Iterator<Item = &'n str> + Clone,
        known: &'k HashMap<String, V>,
    ) -> Self {
        let are_unique = known.is_empty()
            && native_ids.clone().all(is_clean_id)
            && are_different(native_ids.map(|id| xxh3_64(id.as_bytes())));
        Self { known, are_unique, taken: HashMap::new() }
    }

    /// Returns the native id, with `~2`, `~3`, ... appended if it is taken. Whitespace and control
    /// characters become underscores.
    pub(super) fn assign(&mut self, native: &str) -> String {
        if self.are_unique {
            return native.to_owned();
        }
        let base = clean_id(native);
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

/// Returns whether no two of these hashes are equal.
pub(super) fn are_different(hashes: impl Iterator<Item = u64>) -> bool {
    let mut hashes: Vec<_> = hashes.collect();
    hashes.sort_unstable();
    hashes.is_sorted_by(|before, after| before < after)
}

/// Returns whether a native id can be a session id as it is.
fn is_clean_id(native: &str) -> bool {
    (1..=MAX_ID_CHARS).contains(&native.len()) && native.bytes().all(|b| b.is_ascii_graphic())
}

/// Returns a native id without whitespace and control characters, cut to the maximum length.
fn clean_id(native: &str) -> String {
    if is_clean_id(native) {
        return native.to_owned();
    }
    let clean: String = native
        .chars()
        .map(|c| if c.is_control() || c.is_whitespace() { '_' } else { c })
        .take(MAX_ID_CHARS)
        .collect();
    if clean.is_empty() { "session".to_owned() } else { clean }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_are_taken_get_a_number_and_odd_ones_are_cleaned() {
        let known = ["known", "b", "b~3"].map(|id| (id.to_owned(), ()));
        let known = HashMap::from(known);
        let mut ids = NewIds::new(["a"].into_iter(), &known);
        assert_eq!(ids.assign("known"), "known~2");
        assert_eq!(ids.assign("a"), "a");
        assert_eq!(ids.assign("a"), "a~2");
        assert_eq!(ids.assign("a"), "a~3");
        assert_eq!(ids.assign("b c\n"), "b_c_");
        assert_eq!(ids.assign(""), "session");
        assert_eq!(ids.assign("b"), "b~2");
        assert_eq!(ids.assign("b"), "b~4");
        // An id may look like one that was numbered.
        assert_eq!(ids.assign("a~2"), "a~2~2");
        assert_eq!(ids.assign("a~4"), "a~4");
        assert_eq!(ids.assign("a"), "a~5");
    }

    #[test]
    fn ids_without_equals_are_taken_as_they_are() {
        let none = HashMap::<String, ()>::new();
        let natives = ["a", "b", "a~2"];
        let mut ids = NewIds::new(natives.into_iter(), &none);
        assert!(ids.are_unique);
        assert_eq!(natives.map(|native| ids.assign(native)), natives);

        let natives = ["a", "b", "a"];
        let mut ids = NewIds::new(natives.into_iter(), &none);
        assert_eq!(natives.map(|native| ids.assign(native)), ["a", "b", "a~2"]);
        assert!(!NewIds::new(["a b"].into_iter(), &none).are_unique);
        let known = HashMap::from([("c".to_owned(), ())]);
        assert!(!NewIds::new(["a"].into_iter(), &known).are_unique);
    }
}
