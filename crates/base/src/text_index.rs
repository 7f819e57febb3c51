//! Finds texts by their hashes.

use xxhash_rust::xxh3::xxh3_64;

/// Finds the positions of texts. The texts stay with the caller, so an entry takes 16 to 32 bytes.
///
/// ```text
/// slots  a power of two, at least twice as many as texts; a text is at the slot that its hash
///        names, or in the first of the next ones that is not taken by another text
/// slot   upper half of the hash (4 bytes), position + 1 (4 bytes; 0 for a free slot)
/// ```
#[derive(Debug, Default)]
pub struct TextIndex {
    slots: Vec<IndexSlot>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct IndexSlot {
    tag: u32,
    /// The position plus one; 0 if the slot is free.
    entry: u32,
}

impl TextIndex {
    /// Returns an index for up to `count` texts.
    pub fn new(count: usize) -> Self {
        Self { slots: vec![IndexSlot::default(); (2 * count).next_power_of_two().max(2)] }
    }

    /// Returns the position of a text. `text_at` returns the text at a position.
    pub fn find<'t>(&self, text: &str, text_at: impl Fn(usize) -> &'t str) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let slot = self.find_slot(xxh3_64(text.as_bytes()), |position| text_at(position) == text);
        self.slots[slot].position()
    }

    /// Sets the position of a text. Returns the one that it had before. There must not be more
    /// texts than the index was created for.
    pub fn insert<'t>(
        &mut self,
        text: &str,
        position: usize,
        text_at: impl Fn(usize) -> &'t str,
    ) -> Option<usize> {
        self.insert_hash(xxh3_64(text.as_bytes()), position, |position| text_at(position) == text)
    }

    fn insert_hash(
        &mut self,
        hash: u64,
        position: usize,
        is_text: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let slot = self.find_slot(hash, is_text);
        let before = self.slots[slot].position();
        // More texts than that fit into no memory.
        let entry = u32::try_from(position + 1).unwrap_or(u32::MAX);
        self.slots[slot] = IndexSlot { tag: tag_of(hash), entry };
        before
    }

    /// Returns the slot of a text with this hash, or the free slot where it belongs.
    fn find_slot(&self, hash: u64, is_text: impl Fn(usize) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        let tag = tag_of(hash);
        let mut at = usize::try_from(hash & mask as u64).unwrap_or(0);
        loop {
            let slot = self.slots[at];
            match slot.position() {
                Some(position) if slot.tag != tag || !is_text(position) => at = (at + 1) & mask,
                Some(_) | None => return at,
            }
        }
    }
}

impl IndexSlot {
    fn position(self) -> Option<usize> {
        (self.entry as usize).checked_sub(1)
    }
}

/// Returns the upper half of a hash.
fn tag_of(hash: u64) -> u32 {
    u32::try_from(hash >> u32::BITS).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_at_their_last_positions() {
        let texts: Vec<String> = (0..1000).map(|number| format!("text {}", number % 700)).collect();
        let text_at = |position: usize| texts[position].as_str();
        let mut index = TextIndex::new(700);
        for (position, text) in texts.iter().enumerate() {
            let before = index.insert(text, position, text_at);
            assert_eq!(before, position.checked_sub(700));
        }
        for number in 0..700 {
            let expected = if number < 300 { number + 700 } else { number };
            assert_eq!(index.find(&format!("text {number}"), text_at), Some(expected));
        }
        assert_eq!(index.find("text 700", text_at), None);
        assert_eq!(TextIndex::default().find("text 1", text_at), None);
    }

    #[test]
    fn texts_of_one_hash_are_kept_apart() {
        let texts = ["a", "b", "a", "c"];
        let mut index = TextIndex::new(3);
        let inserted = [0, 1, 2, 3]
            .map(|at: usize| index.insert_hash(7, at, |position| texts[position] == texts[at]));
        assert_eq!(inserted, [None, None, Some(0), None]);
        let found = ["a", "b", "c"].map(|text| {
            index.slots[index.find_slot(7, |position| texts[position] == text)].position()
        });
        assert_eq!(found, [Some(2), Some(1), Some(3)]);
    }
}
