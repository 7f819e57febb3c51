//! The numbers of the listed words, and which of them a word holds.

use super::{MOST_WORDS, SHORTEST, Word, length, place, word_at};

/// The numbers of the listed words.
pub(super) struct Numbers {
    words: Vec<Word>,
    /// Number and one of the words by their place or the next free one.
    places: Box<[u16; PLACES]>,
    /// By a hash of three bytes: lengths of the words that begin with them, a bit each.
    beginnings: Box<[u16; BEGINNINGS]>,
}

const PLACES: usize = 4 * MOST_WORDS;
const BEGINNINGS: usize = 1 << 12;

impl Numbers {
    pub(super) fn new() -> Self {
        let (places, beginnings) = (Box::new([0; PLACES]), Box::new([0; BEGINNINGS]));
        Self { words: Vec::new(), places, beginnings }
    }

    /// The place of a word, or the free one where it belongs.
    fn place(&self, word: Word) -> usize {
        let mut at = place(word) % PLACES;
        while let Some(number) = self.places[at].checked_sub(1)
            && self.words[usize::from(number)] != word
        {
            at = (at + 1) % PLACES;
        }
        at
    }

    /// Gives a word the next number; false when it has one.
    pub(super) fn add(&mut self, word: Word) -> bool {
        let at = self.place(word);
        let is_new = self.places[at] == 0;
        if is_new {
            self.words.push(word);
            self.places[at] = self.words.len() as u16;
            self.beginnings[beginning(&word.to_le_bytes())] |= 1 << (length(word) - 1);
        }
        is_new
    }

    /// Calls `found` with every listed word in a longer one, or in itself.
    pub(super) fn held(&self, word: &[u8], mut found: impl FnMut(u16)) {
        for at in 0..=word.len().saturating_sub(SHORTEST) {
            let rest = &word[at..];
            let mut lengths = self.beginnings[beginning(rest)];
            while lengths != 0 {
                let length = lengths.trailing_zeros() as usize + 1;
                lengths &= lengths - 1;
                if length > rest.len() {
                    break;
                }
                let at = self.place(word_at(rest, length));
                if let Some(number) = self.places[at].checked_sub(1) {
                    found(number);
                }
            }
        }
    }
}

fn beginning(bytes: &[u8]) -> usize {
    let three = bytes.iter().take(3).fold(0u32, |three, byte| (three << 8) | u32::from(*byte));
    (three.wrapping_mul(0x9e37_79b1) >> (32 - BEGINNINGS.trailing_zeros())) as usize
}
