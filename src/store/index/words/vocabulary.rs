//! The words of a segment under construction, each with the rows that have it.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;
use xxhash_rust::xxh3::xxh3_128;

use super::rows::Listed;

/// A word's letters, from the lowest byte up, zero behind its end; of a longer one a hash with the
/// highest bit, which no letter has.
type Key = u128;

/// Letters of the longest word that is its own key.
const LONGEST: usize = size_of::<Key>();
const IS_LONG: Key = 1 << (Key::BITS - 1);

/// So many words are kept in any case, and at most.
const FEW: usize = 1 << 13;
const MOST: usize = 1 << 17;

/// Bytes of text for every further word that is kept.
const TEXT_OF_A_WORD: usize = 32;

/// So many words find no room, as a share of those there are, before room is made.
const REFUSED: usize = 8;

/// A word's letters, and its rows.
pub(super) type Word = (Box<[u8]>, Listed);

pub(super) struct Vocabulary {
    /// A power of two of them, at most half of them used; a word lies at its hash or behind.
    slots: Vec<Slot>,
    used: usize,
    /// By a word's number.
    lists: Vec<Listed>,
    /// Numbers that no word has any more.
    free: Vec<u32>,
    /// The letters of long words, by number.
    long: HashMap<u32, Box<[u8]>>,
    /// Rows with words that are not kept.
    open: FixedBitSet,
    /// Words that found no room since it was last made.
    refused: usize,
    text: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    /// Zero for none.
    key: Key,
    number: u32,
    /// The row after the last that has it.
    next: u32,
    rows: u32,
}

impl Slot {
    const NONE: Self = Self { key: 0, number: 0, next: 0, rows: 0 };
}

impl Vocabulary {
    pub(super) fn new() -> Self {
        Self {
            slots: Vec::new(),
            used: 0,
            lists: Vec::new(),
            free: Vec::new(),
            long: HashMap::new(),
            open: FixedBitSet::new(),
            refused: 0,
            text: 0,
        }
    }

    /// Counts text whose words come next.
    pub(super) fn expect(&mut self, text: usize) {
        self.text += text;
        if self.slots.is_empty() {
            self.slots = vec![Slot::NONE; 1 << 8];
        }
    }

    /// Adds `row`, which is none before the last, to the word that is the first `length` bytes of
    /// `rest`, of which there is one at least.
    #[inline(always)]
    pub(super) fn add(&mut self, rest: &[u8], length: usize, row: u32) {
        let key = match length {
            ..=LONGEST => key(rest, length),
            _ => xxh3_128(&rest[..length]) | IS_LONG,
        };
        let mask = self.slots.len() - 1;
        let mut at = hash(key) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.key == key {
                if slot.next <= row {
                    self.lists[slot.number as usize].add(row - slot.next);
                    slot.next = row + 1;
                    slot.rows += 1;
                }
                return;
            }
            if slot.key == 0 {
                return self.first(key, &rest[..length], row);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a word that is not kept.
    #[inline(never)]
    fn first(&mut self, key: Key, letters: &[u8], row: u32) {
        let most = (self.text / TEXT_OF_A_WORD).clamp(FEW, MOST);
        if self.used >= most {
            self.open(row);
            self.refused += 1;
            if self.refused > most / REFUSED {
                self.make_room();
            }
            return;
        }
        let mut list = Listed::default();
        list.add(row);
        let number = match self.free.pop() {
            Some(number) => {
                self.lists[number as usize] = list;
                number
            }
            None => {
                self.lists.push(list);
                (self.lists.len() - 1) as u32
            }
        };
        if letters.len() > LONGEST {
            self.long.insert(number, letters.into());
        }
        let slot = Slot { key, number, next: row + 1, rows: 1 };
        if (self.used + 1) * 2 > self.slots.len() {
            let slots = std::mem::take(&mut self.slots);
            self.put(slots.len() * 2, slots);
        }
        self.put_one(slot);
    }

    fn open(&mut self, row: u32) {
        self.open.grow_and_insert(row as usize);
    }

    /// Forgets the words that one row has: where text is noise, nearly all of them are. What it
    /// leaves open are those rows.
    fn make_room(&mut self) {
        self.refused = 0;
        let (kept, gone): (Vec<Slot>, Vec<Slot>) =
            std::mem::take(&mut self.slots).into_iter().partition(|slot| slot.rows != 1);
        for slot in &gone {
            self.open(slot.next - 1);
            self.lists[slot.number as usize] = Listed::default();
            self.long.remove(&slot.number);
            self.free.push(slot.number);
        }
        self.put(kept.len() + gone.len(), kept);
    }

    /// Lays out slots anew, `count` of them.
    fn put(&mut self, count: usize, slots: Vec<Slot>) {
        self.slots = vec![Slot::NONE; count];
        self.used = 0;
        slots.into_iter().filter(|slot| slot.key != 0).for_each(|slot| self.put_one(slot));
    }

    fn put_one(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = hash(slot.key) as usize & mask;
        while self.slots[at].key != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        self.used += 1;
    }

    /// The words in the order of their letters, and the rows that have others.
    pub(super) fn finish(mut self) -> (Vec<Word>, Listed) {
        let slots = std::mem::take(&mut self.slots).into_iter().filter(|slot| slot.key != 0);
        let mut words: Vec<_> = slots
            .map(|slot| {
                let list = std::mem::take(&mut self.lists[slot.number as usize]);
                (self.long.remove(&slot.number).unwrap_or_else(|| letters(slot.key)), list)
            })
            .collect();
        words.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        (words, self.open.ones().collect())
    }
}

/// The key of the word of this length, at most [`LONGEST`], at the beginning of `rest`.
fn key(rest: &[u8], length: usize) -> Key {
    let key = match rest.first_chunk() {
        Some(chunk) => Key::from_le_bytes(*chunk),
        None => {
            let mut chunk = [0; LONGEST];
            chunk[..rest.len()].copy_from_slice(rest);
            Key::from_le_bytes(chunk)
        }
    };
    key & Key::MAX >> (Key::BITS - 8 * length as u32)
}

/// The letters of a word that is its own key.
fn letters(key: Key) -> Box<[u8]> {
    let length = LONGEST - key.leading_zeros() as usize / 8;
    key.to_le_bytes()[..length].into()
}

/// The halves multiplied, and both halves of the product joined.
const fn hash(key: Key) -> u64 {
    let low = key as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let high = (key >> 64) as u64 ^ 0xd6e8_feb8_6659_fd93;
    let product = low as u128 * high as u128;
    product as u64 ^ (product >> 64) as u64
}
