//! The words seen lately: which of them many blocks have, and which listed words they hold.

use super::numbers::{Held, NONE, Numbers};
use super::{ANY, PLACES, Word, hash, length, place};

/// A word is listed once this many blocks had it, if they are one in `SHARE` of those so far.
const LEAST_BLOCKS: u16 = 8;
const SHARE: u32 = 4;

/// The words seen lately.
#[derive(Default)]
pub(super) struct Seen {
    pairs: Vec<[Entry; 2]>,
    chosen: Vec<Word>,
}

#[derive(Clone, Copy)]
struct Entry {
    word: Word,
    /// The last block that had it and how many had.
    block: u32,
    blocks: u16,
    /// Falls when others want its place, rises when it occurs.
    life: u16,
    is_chosen: bool,
    /// The listed words that it holds, of the first `known` of them.
    known: u16,
    held: Held,
}

impl Entry {
    const fn new(word: Word) -> Self {
        let held = NONE;
        Self { word, block: 0, blocks: 0, life: 0, is_chosen: false, known: u16::MAX, held }
    }
}

impl Seen {
    /// Notes that block `block`, counted from 1, has a word. Returns which listed words it holds,
    /// if they are few, and the block for which it is noted: [`ANY`] when it need not be again.
    pub(super) fn note(
        &mut self,
        word: Word,
        block: u32,
        numbers: &Numbers,
    ) -> (Option<Held>, u32) {
        if self.pairs.is_empty() {
            self.pairs = vec![[Entry::new(0); 2]; PLACES];
        }
        let bytes = word.to_le_bytes();
        let held = || numbers.few_in(&bytes[..length(word)]);
        let [a, b] = &mut self.pairs[place(hash(word))];
        let entry = match (a.word == word, b.word == word) {
            (true, _) => a,
            (_, true) => b,
            _ => {
                let weaker = if a.life <= b.life { a } else { b };
                if weaker.life > 0 {
                    weaker.life -= 1;
                    return (held(), block);
                }
                *weaker = Entry::new(word);
                weaker
            }
        };
        entry.life = entry.life.saturating_add(1);
        if entry.block != block {
            entry.block = block;
            entry.blocks = entry.blocks.saturating_add(1);
            let often = entry.blocks >= LEAST_BLOCKS && u32::from(entry.blocks) * SHARE >= block;
            if often && !entry.is_chosen {
                entry.is_chosen = true;
                self.chosen.push(word);
            }
        }
        if entry.known != numbers.len() {
            match held() {
                Some(held) => (entry.held, entry.known) = (held, numbers.len()),
                None => return (None, block),
            }
        }
        (Some(entry.held), if entry.is_chosen { ANY } else { block })
    }

    /// The words that many blocks have, once each.
    pub(super) fn take_chosen(&mut self) -> Vec<Word> {
        std::mem::take(&mut self.chosen)
    }
}
