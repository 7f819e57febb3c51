//! The words of a segment under construction, each with the rows that have it.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;
use xxhash_rust::xxh3::xxh3_128;

use super::rows::Listed;

/// A word as a number: its letters from the lowest byte up, zero after the end. A longer word is
/// represented by a hash with the highest bit set, which no letter has.
type Key = u128;

/// Letters of the longest word that is its own key.
const LONGEST: usize = size_of::<Key>();
const IS_LONG: Key = 1 << (Key::BITS - 1);

/// Bounds of the number of words kept: the limit grows with the text (see [`TEXT_OF_A_WORD`]) from
/// `FEW` to `MOST`.
const FEW: usize = 1 << 13;
const MOST: usize = 1 << 17;

/// Bytes of text that raise the limit on kept words by one.
const TEXT_OF_A_WORD: usize = 32;

/// Room is made once more words than this share of the limit, one eighth, were refused.
const REFUSED: usize = 8;

/// A word's letters, and its rows.
pub(super) type Word = (Box<[u8]>, Listed);

pub(super) struct Vocabulary {
    /// Hash table with linear probing: a power of two of slots, at most half of them used.
    slots: Vec<Slot>,
    used: usize,
    /// Rows of each word, indexed by the word's number.
    lists: Vec<Listed>,
    /// Numbers that no word uses any more.
    free: Vec<u32>,
    /// The letters of words longer than [`LONGEST`], by number.
    long: HashMap<u32, Box<[u8]>>,
    /// Rows with words that are not kept.
    open: FixedBitSet,
    /// Words refused since room was last made.
    refused: usize,
    text: usize,
}

#[derive(Clone, Copy)]
struct Slot {
    /// Zero for an empty slot.
    key: Key,
    number: u32,
    /// The row after the last row that has the word.
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

    /// Counts the bytes of a text whose words are added next.
    pub(super) fn expect(&mut self, text: usize) {
        self.text += text;
        if self.slots.is_empty() {
            self.slots = vec![Slot::NONE; 1 << 8];
        }
    }

    /// Adds `row` to the word formed by the first `length` bytes of `rest`. `length` is at least 1,
    /// and `row` is not less than the rows added before.
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

    /// Adds a word that has no slot yet, or refuses it if the limit is reached.
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

    /// Forgets the words that occur in a single row, as nearly all do in text that is noise. Those
    /// rows become open.
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

    /// Rebuilds the table with `count` slots and inserts `slots` into it.
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

    /// Returns the words sorted by their letters, and the rows that have words not kept.
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

/// Returns the key of the word of this length, at most [`LONGEST`], at the beginning of `rest`.
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

/// Returns the letters of a word that is its own key.
fn letters(key: Key) -> Box<[u8]> {
    let length = LONGEST - key.leading_zeros() as usize / 8;
    key.to_le_bytes()[..length].into()
}

/// Multiplies the two halves of a key and joins both halves of the product.
const fn hash(key: Key) -> u64 {
    let low = key as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let high = (key >> 64) as u64 ^ 0xd6e8_feb8_6659_fd93;
    let product = low as u128 * high as u128;
    product as u64 ^ (product >> 64) as u64
}
