//! The words of a segment under construction, each with the rows that have it.

use std::collections::HashMap;

use fixedbitset::FixedBitSet;
use xxhash_rust::xxh3::xxh3_128;

use super::rows::RowList;

/// A word as a number: its letters from the lowest byte up, zero after the end. A longer word is
/// represented by a hash with the highest bit set, which no letter has.
type WordKey = u128;

/// Letters of the longest word that is its own key.
const MAX_KEY_LETTERS: usize = size_of::<WordKey>();

/// Distinguishes the keys of longer words.
const LONG_FLAG: WordKey = 1 << (WordKey::BITS - 1);

/// Number of words that are always kept. The limit grows with the text; see
/// [`TEXT_BYTES_PER_WORD`].
const MIN_WORD_LIMIT: usize = 1 << 13;

/// Most words that are kept, however long the text is.
const MAX_WORD_LIMIT: usize = 1 << 17;

/// Bytes of text that raise the limit on kept words by one.
const TEXT_BYTES_PER_WORD: usize = 32;

/// Space is made when more words were refused than the limit divided by this.
const REFUSED_DIVISOR: usize = 8;

/// The words of the rows so far, each with its rows.
pub(super) struct Vocabulary {
    /// Hash table with linear probing: a power of two of slots, at most half of them used.
    slots: Vec<Slot>,
    /// Number of slots that are not empty.
    used: usize,
    /// Rows of each word, indexed by the word's number.
    lists: Vec<RowList>,
    /// Numbers that no word uses any more.
    free: Vec<u32>,
    /// The letters of words longer than [`MAX_KEY_LETTERS`], by number.
    long: HashMap<u32, Box<[u8]>>,
    /// Rows with words that are not kept.
    open: FixedBitSet,
    /// Words refused since space was last made.
    refused: usize,
    /// Bytes of text so far.
    text: usize,
}

/// A slot of the hash table.
#[derive(Clone, Copy)]
struct Slot {
    /// Zero for an empty slot.
    key: WordKey,
    /// Number of the word.
    number: u32,
    /// The row after the last row that has the word.
    next_row: u32,
    /// Number of rows that have the word.
    rows: u32,
}

impl Slot {
    const NONE: Self = Self { key: 0, number: 0, next_row: 0, rows: 0 };
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
    pub(super) fn count_text(&mut self, text: usize) {
        self.text += text;
        if self.slots.is_empty() {
            self.slots = vec![Slot::NONE; 1 << 8];
        }
    }

    /// Adds `row` to the word formed by the first `length` bytes of `rest`. `length` is at least 1,
    /// and `row` is not less than the rows added before.
    #[inline(always)]
    pub(super) fn add_row(&mut self, rest: &[u8], length: usize, row: u32) {
        let key = if length <= MAX_KEY_LETTERS {
            short_word_key(rest, length)
        } else {
            xxh3_128(&rest[..length]) | LONG_FLAG
        };
        let mask = self.slots.len() - 1;
        let mut at = hash_key(key) as usize & mask;
        loop {
            let slot = &mut self.slots[at];
            if slot.key == key {
                if slot.next_row <= row {
                    self.lists[slot.number as usize].push_gap(row - slot.next_row);
                    slot.next_row = row + 1;
                    slot.rows += 1;
                }
                return;
            }
            if slot.key == 0 {
                self.add_new_word(key, &rest[..length], row);
                return;
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a word that has no slot yet, or refuses it if the limit is reached.
    #[inline(never)]
    fn add_new_word(&mut self, key: WordKey, letters: &[u8], row: u32) {
        let limit = (self.text / TEXT_BYTES_PER_WORD).clamp(MIN_WORD_LIMIT, MAX_WORD_LIMIT);
        if self.used >= limit {
            self.mark_row_open(row);
            self.refused += 1;
            if self.refused > limit / REFUSED_DIVISOR {
                self.make_room();
            }
            return;
        }

        let list = RowList::starting_with(row);
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
        if letters.len() > MAX_KEY_LETTERS {
            self.long.insert(number, letters.into());
        }

        let slot = Slot { key, number, next_row: row + 1, rows: 1 };
        if (self.used + 1) * 2 > self.slots.len() {
            let slots = std::mem::take(&mut self.slots);
            self.rebuild_slots(slots.len() * 2, slots);
        }
        self.insert_slot(slot);
    }

    /// Notes that `row` has a word that is not kept.
    fn mark_row_open(&mut self, row: u32) {
        self.open.grow_and_insert(row as usize);
    }

    /// Forgets the words that occur in a single row, as nearly all words of noise do. Those rows
    /// become open.
    fn make_room(&mut self) {
        self.refused = 0;
        let (kept, gone): (Vec<Slot>, Vec<Slot>) =
            std::mem::take(&mut self.slots).into_iter().partition(|slot| slot.rows != 1);
        for slot in &gone {
            self.mark_row_open(slot.next_row - 1);
            self.lists[slot.number as usize] = RowList::default();
            self.long.remove(&slot.number);
            self.free.push(slot.number);
        }
        self.rebuild_slots(kept.len() + gone.len(), kept);
    }

    /// Rebuilds the table with `count` slots and inserts `slots` into it.
    fn rebuild_slots(&mut self, count: usize, slots: Vec<Slot>) {
        self.slots = vec![Slot::NONE; count];
        self.used = 0;
        for slot in slots {
            if slot.key != 0 {
                self.insert_slot(slot);
            }
        }
    }

    /// Inserts a slot whose key is not in the table.
    fn insert_slot(&mut self, slot: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = hash_key(slot.key) as usize & mask;
        while self.slots[at].key != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
        self.used += 1;
    }

    /// Returns the words sorted by their letters, and the rows that have words not kept.
    pub(super) fn finish(self) -> (SortedWords, RowList) {
        let open = self.open.ones().collect();
        let used = self.slots.into_iter().filter(|slot| slot.key != 0);
        let mut words: Vec<SortedWord> = Vec::with_capacity(self.used);
        for slot in used {
            let key = if slot.key & LONG_FLAG == 0 {
                slot.key
            } else {
                short_word_key(&self.long[&slot.number], MAX_KEY_LETTERS)
            };
            // The first letter becomes the highest byte.
            words.push(SortedWord { first_letters: key.swap_bytes(), number: slot.number });
        }
        let long = self.long;
        let rest = |word: &SortedWord| long.get(&word.number);
        words.sort_unstable_by(|a, b| {
            a.first_letters.cmp(&b.first_letters).then_with(|| rest(a).cmp(&rest(b)))
        });
        (SortedWords { words, lists: self.lists, long }, open)
    }
}

/// The words of a finished vocabulary, sorted by their letters.
pub(super) struct SortedWords {
    words: Vec<SortedWord>,
    /// Rows of each word, indexed by the word's number.
    lists: Vec<RowList>,
    /// The letters of words longer than [`MAX_KEY_LETTERS`], by number.
    long: HashMap<u32, Box<[u8]>>,
}

/// A word with its first letters as a number, by which words are sorted faster than by letters.
struct SortedWord {
    /// The first letter is in the highest byte; zeros follow the last.
    first_letters: WordKey,
    number: u32,
}

impl SortedWords {
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// Calls `take` with the letters and the rows of each word. The rows are freed afterwards.
    pub(super) fn for_each(mut self, mut take: impl FnMut(&[u8], &RowList)) {
        for word in self.words {
            let list = std::mem::take(&mut self.lists[word.number as usize]);
            match self.long.get(&word.number) {
                Some(letters) => take(letters, &list),
                None => {
                    let length = MAX_KEY_LETTERS - word.first_letters.trailing_zeros() as usize / 8;
                    take(&word.first_letters.to_be_bytes()[..length], &list);
                }
            }
        }
    }
}

/// Returns the key of the word of this length, at most [`MAX_KEY_LETTERS`], at the beginning of
/// `rest`.
fn short_word_key(rest: &[u8], length: usize) -> WordKey {
    let key = match rest.first_chunk() {
        Some(chunk) => WordKey::from_le_bytes(*chunk),
        None => {
            let mut chunk = [0; MAX_KEY_LETTERS];
            chunk[..rest.len()].copy_from_slice(rest);
            WordKey::from_le_bytes(chunk)
        }
    };
    key & WordKey::MAX >> (WordKey::BITS - 8 * length as u32)
}

/// Multiplies the two halves of a key and joins both halves of the product.
const fn hash_key(key: WordKey) -> u64 {
    let low = key as u64 ^ 0x9e37_79b9_7f4a_7c15;
    let high = (key >> 64) as u64 ^ 0xd6e8_feb8_6659_fd93;
    let product = low as u128 * high as u128;
    product as u64 ^ (product >> 64) as u64
}
