//! The numbers of the listed words, and which of them a word holds.

use super::{LONGEST, MASKS, MOST_WORDS, SHORTEST, Word, length, word_at};

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

/// Words of one chain.
const MOST_ALIKE: usize = 32;

impl Numbers {
    pub(super) fn new() -> Self {
        let (begins, last) = (Box::new([0; BEGINS / 64]), Box::new([0; CHAINS]));
        Self { words: Vec::new(), begins, last, before: Vec::new() }
    }

    pub(super) fn len(&self) -> u16 {
        self.words.len() as u16
    }

    /// Whether no word can be added any more.
    pub(super) fn are_full(&self) -> bool {
        self.words.len() == MOST_WORDS
    }

    /// The word with a number.
    pub(super) fn word(&self, number: usize) -> Word {
        self.words[number]
    }

    /// Gives a word the next number; false when it has one, or there are none left, or many words
    /// begin like it: all of them are looked at wherever one may begin.
    pub(super) fn add(&mut self, word: Word) -> bool {
        let four = word as u32;
        let is_short = length(word) == SHORTEST;
        let chain = chain(if is_short { three(four) } else { four });
        let is_known = self.chain(chain).any(|number| self.words[usize::from(number)] == word);
        let is_room = !self.are_full() && self.chain(chain).count() < MOST_ALIKE;
        if is_known || !is_room {
            return false;
        }
        self.words.push(word);
        let number = self.len();
        let last = std::mem::replace(&mut self.last[chain], number);
        self.before.push(last);
        let mut begins = |four| {
            let bit = spread(four);
            self.begins[bit / 64] |= 1 << (bit % 64);
        };
        begins(four);
        if is_short {
            (b'a'..=b'z').for_each(|fourth| begins(four | u32::from(fourth) << 24));
        }
        true
    }

    /// The numbers in a chain.
    fn chain(&self, chain: usize) -> impl Iterator<Item = u16> {
        let number = |next: u16| next.checked_sub(1);
        let before = move |of: &u16| number(self.before[usize::from(*of)]);
        std::iter::successors(number(self.last[chain]), before)
    }

    /// Calls `found` with every listed word in a longer one, or in itself.
    pub(super) fn each_in(&self, word: &[u8], mut found: impl FnMut(u16)) {
        let whole = word.len().saturating_sub(LONGEST);
        for window in word.windows(LONGEST).take(whole) {
            self.beginning(word_at(window, LONGEST), &mut found);
        }
        let mut rest = word_at(&word[whole..], word.len() - whole);
        while length(rest) >= SHORTEST {
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
        let bit = spread(rest as u32);
        if self.begins[bit / 64] & 1 << (bit % 64) != 0 {
            self.compare(rest, found);
        }
    }

    #[inline(never)]
    fn compare(&self, rest: Word, found: &mut impl FnMut(u16)) {
        let four = rest as u32;
        let chains = [three(four), four].map(chain);
        for chain in &chains[usize::from(chains[0] == chains[1])..] {
            for number in self.chain(*chain) {
                let word = self.words[usize::from(number)];
                if rest & MASKS[length(word)] == word {
                    found(number);
                }
            }
        }
    }
}

const fn three(four: u32) -> u32 {
    four & 0xff_ffff
}

/// A hash of four letters.
const fn spread(four: u32) -> usize {
    (four.wrapping_mul(0x9e37_79b1) >> (32 - BEGINS.trailing_zeros())) as usize
}

const fn chain(beginning: u32) -> usize {
    spread(beginning) % CHAINS
}
