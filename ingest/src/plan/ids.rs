//! Assigns session ids to new logs.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Maximum number of characters of a session id, without the number appended to it.
const MAX_ID_CHARS: usize = 128;

/// Returns the native id, with `~2`, `~3`, ... appended if it is taken. Whitespace and control
/// characters become underscores. `taken_ids` holds the ids assigned before and the last number tried
/// for each, because many logs may claim one id.
pub(super) fn assign_id<V>(
    native: &str,
    known: &HashMap<String, V>,
    taken_ids: &mut HashMap<String, u32>,
) -> String {
    let base = clean_id(native);
    // Most ids are their own.
    let base = match taken_ids.entry(base) {
        Entry::Vacant(free) if !known.contains_key(free.key()) => {
            let id = free.key().clone();
            free.insert(1);
            return id;
        }
        Entry::Vacant(free) => free.into_key(),
        Entry::Occupied(taken) => taken.key().clone(),
    };

    let mut number = taken_ids.get(&base).copied().unwrap_or(0);
    let id = loop {
        number += 1;
        let id = if number == 1 { base.clone() } else { format!("{base}~{number}") };
        if !known.contains_key(&id) && !taken_ids.contains_key(&id) {
            break id;
        }
    };

    taken_ids.insert(base, number);
    taken_ids.entry(id.clone()).or_insert(1);
    id
}

/// Returns a native id without whitespace and control characters, cut to the maximum length.
fn clean_id(native: &str) -> String {
    if (1..=MAX_ID_CHARS).contains(&native.len()) && native.bytes().all(|b| b.is_ascii_graphic()) {
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
        let (known, mut taken_ids) = (HashMap::from(known), HashMap::new());
        assert_eq!(assign_id("known", &known, &mut taken_ids), "known~2");
        assert_eq!(assign_id("a", &known, &mut taken_ids), "a");
        assert_eq!(assign_id("a", &known, &mut taken_ids), "a~2");
        assert_eq!(assign_id("a", &known, &mut taken_ids), "a~3");
        assert_eq!(assign_id("b c\n", &known, &mut taken_ids), "b_c_");
        assert_eq!(assign_id("", &known, &mut taken_ids), "session");
        assert_eq!(assign_id("b", &known, &mut taken_ids), "b~2");
        assert_eq!(assign_id("b", &known, &mut taken_ids), "b~4");
        // An id may look like one that was numbered.
        assert_eq!(assign_id("a~2", &known, &mut taken_ids), "a~2~2");
        assert_eq!(assign_id("a~4", &known, &mut taken_ids), "a~4");
        assert_eq!(assign_id("a", &known, &mut taken_ids), "a~5");
    }
}
