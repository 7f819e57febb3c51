//! The numbers of the listed words, and which of them a word holds.

use super::{LONGEST, MASKS, MOST_WORDS, SHORTEST, Word, letters, word_at};

/// Listed words that one word is remembered to hold; one with more is looked through every time.
pub(super) const MOST_HELD: usize = 5;

/// Numbers of listed words; in places that are left over, numbers that no word has, each in
/// another 64.
pub(super) type Held = [u16; MOST_HELD];

pub(super) const NONE: Held = {
    let (mut none, mut at) = ([0; MOST_HELD], 0);
    while at < MOST_HELD {
        none[at] = (MOST_WORDS + 64 * at) as u16;
        at += 1;
    }
    none
};

/// The listed words by their numbers.
pub(super) struct Numbers {
    words: Vec<Word>,
    /// Whether a word of three letters or the first four letters of a longer one may have a hash.
    begins: Box<[u64; BEGINS / 64]>,
    /// By a shorter hash of the same: one more than the number of the last such word.
    last: Box<[u16; CHAINS]>,
    /// The same for the one before, by number.
    before: Vec<u16>,
}

/// So many bits are 4 KB, which stay in the nearest cache.
const BEGINS: usize = 1 << 15;
const CHAINS: usize = 1 << 12;

impl Numbers {
    pub(super) fn new() -> Self {
        let (begins, last) = (Box::new([0; BEGINS / 64]), Box::new([0; CHAINS]));
        Self { words: Vec::new(), begins, last, before: Vec::new() }
    }

    pub(super) fn len(&self) -> u16 {
        self.words.len() as u16
    }

    /// The word with a number.
    pub(super) fn word(&self, number: usize) -> Word {
        self.words[number]
    }

    /// Gives a word the next number; false when it has one, or there are none left.
    pub(super) fn add(&mut self, word: Word) -> bool {
        let mut is_new = self.words.len() < MOST_WORDS;
        self.beginning(word, &mut |number| is_new &= self.words[usize::from(number)] != word);
        if !is_new {
            return false;
        }
        let four = word as u32;
        let mut begins = |four| {
            let bit = hash(four) % BEGINS;
            self.begins[bit / 64] |= 1 << (bit % 64);
        };
        begins(four);
        let mut chain = four;
        if letters(word) == SHORTEST {
            (b'a'..=b'z').for_each(|fourth| begins(four | u32::from(fourth) << 24));
            chain = three(four);
        }
        self.words.push(word);
        let last = std::mem::replace(&mut self.last[hash(chain) % CHAINS], self.words.len() as u16);
        self.before.push(last);
        true
    }

    /// Calls `found` with every listed word in a longer one, or in itself.
    pub(super) fn each_in(&self, word: &[u8], mut found: impl FnMut(u16)) {
        let whole = word.len().saturating_sub(LONGEST);
        for window in word.windows(LONGEST).take(whole) {
            self.beginning(word_at(window, LONGEST), &mut found);
        }
        let mut rest = word_at(&word[whole..], word.len() - whole);
        while letters(rest) >= SHORTEST {
            self.beginning(rest, &mut found);
            rest >>= 8;
        }
    }

    /// The listed words in a word, unless they are many.
    pub(super) fn few_in(&self, word: &[u8]) -> Option<Held> {
        let (mut held, mut count) = (NONE, 0);
        self.each_in(word, |number| {
            if let Some(held) = held.get_mut(count) {
                *held = number;
            }
            count += 1;
        });
        (count <= MOST_HELD).then_some(held)
    }

    /// Calls `found` with every listed word at the beginning of `rest`.
    #[inline(always)]
    fn beginning(&self, rest: Word, found: &mut impl FnMut(u16)) {
        let bit = hash(rest as u32) % BEGINS;
        if self.begins[bit / 64] & 1 << (bit % 64) != 0 {
            self.compare(rest, found);
        }
    }

    #[inline(never)]
    fn compare(&self, rest: Word, found: &mut impl FnMut(u16)) {
        let four = rest as u32;
        let chains = [three(four), four].map(|beginning| hash(beginning) % CHAINS);
        for chain in &chains[usize::from(chains[0] == chains[1])..] {
            let mut next = self.last[*chain];
            while let Some(number) = next.checked_sub(1) {
                let word = self.words[usize::from(number)];
                if rest & MASKS[letters(word)] == word {
                    found(number);
                }
                next = self.before[usize::from(number)];
            }
        }
    }
}

const fn three(four: u32) -> u32 {
    four & 0xff_ffff
}

const fn hash(four: u32) -> usize {
    (four.wrapping_mul(0x9e37_79b1) >> (32 - BEGINS.trailing_zeros())) as usize
}
