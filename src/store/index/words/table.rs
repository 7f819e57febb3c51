//! The words of a segment as they are written, and the search for words that hold some letters.
//!
//! The section begins with three numbers: leaves, bytes of words, bytes of the list of open rows.
//! For every leaf, a group of eight words, follow the positions of its first word and first list.
//! Then come the words in alphabetical order. After each word is the length of its list, seven bits
//! a byte from the lowest up, each byte with the highest bit set, which no letter has. The open
//! rows and the lists are last.

use std::ops::Range;

use memchr::memmem;

use super::rows::Listed;
use super::vocabulary;

/// Bytes of the numbers before the leaves. Every number has four bytes.
pub(super) const HEAD: usize = 3 * 4;
const LEAF: usize = 2 * 4;
const WORDS_OF_A_LEAF: usize = 8;

/// Letters to look for in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letters<'t> {
    /// Lowercase ASCII letters.
    pub letters: &'t str,
    /// Whether a word must begin with the letters, and whether it must end with them.
    pub begin: bool,
    pub end: bool,
}

/// Returns `words`, which must be sorted, in the written form for a segment of `rows` rows.
pub(super) fn write(words: &[vocabulary::Word], open: &Listed, rows: usize) -> Vec<u8> {
    let (mut leaves, mut table, mut lists) = (Vec::new(), Vec::new(), Vec::new());
    for leaf in words.chunks(WORDS_OF_A_LEAF) {
        leaves.extend([table.len(), lists.len()].map(|at| at as u32).map(u32::to_le_bytes));
        for (word, list) in leaf {
            let from = lists.len();
            list.write(rows, &mut lists);
            table.extend(word);
            let mut length = lists.len() - from;
            loop {
                table.push(length as u8 | 0x80);
                length >>= 7;
                if length == 0 {
                    break;
                }
            }
        }
    }
    let mut of_open = Vec::new();
    open.write(rows, &mut of_open);
    let head = [leaves.len() / 2, table.len(), of_open.len()];
    let head = head.into_iter().flat_map(|number| (number as u32).to_le_bytes());
    let mut out: Vec<u8> = head.chain(leaves.into_iter().flatten()).collect();
    out.extend(table);
    out.extend(of_open);
    out.extend(lists);
    out
}

/// Positions of the parts after the head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places {
    leaves: usize,
    /// The leaves and the words.
    pub(super) table: Range<u64>,
    pub(super) open: Range<u64>,
    pub(super) lists: Range<u64>,
}

impl Places {
    /// Parses `head`, the beginning of a section of `length` bytes; `None` if the section is too
    /// short.
    pub(super) fn read(head: [u8; HEAD], length: u64) -> Option<Self> {
        let number = |at: usize| number(&head, at * 4).map(u64::from);
        let (leaves, words, open) = (number(0)?, number(1)?, number(2)?);
        let table = HEAD as u64..HEAD as u64 + leaves * LEAF as u64 + words;
        let open = table.end..table.end + open;
        let lists = open.end..length;
        let leaves = usize::try_from(leaves).ok()?;
        (open.end <= length).then_some(Self { leaves, table, open, lists })
    }

    /// Returns the ranges of the lists of all words that hold `wanted`, ascending, relative to the
    /// first list. `table` is the bytes at [`Places::table`]. Returns `None` if a range is outside
    /// the lists.
    pub(super) fn holding(&self, table: &[u8], wanted: &Letters<'_>) -> Option<Vec<Range<u64>>> {
        let (leaves, words) = table.split_at_checked(self.leaves * LEAF)?;
        let most = self.lists.end - self.lists.start;
        let (leaves, _) = leaves.as_chunks::<LEAF>();
        let leaf = |at: usize| Some((number(leaves.get(at)?, 0)?, number(leaves.get(at)?, 4)?));
        let begin = |leaf: &[u8; LEAF]| number(leaf, 0).map_or(usize::MAX, |at| at as usize);
        let finder = memmem::Finder::new(wanted.letters);
        let mut found: Vec<Range<u64>> = Vec::new();
        // Position of the next word, begin of its list, and where the search for letters continues.
        let (mut at, mut list, mut from) = (0, 0, 0);
        while let Some(hit) = words.get(from..).and_then(|words| finder.find(words)) {
            let hit = from + hit;
            from = hit + 1;
            let last = leaves.partition_point(|leaf| begin(leaf) <= hit);
            if let Some((word, of_leaf)) = last.checked_sub(1).and_then(leaf)
                && word as usize > at
            {
                (at, list) = (word as usize, u64::from(of_leaf));
            }
            while let Some(word) = Word::read(words, at) {
                if hit < word.letters.end {
                    let begins = hit == word.letters.start || !wanted.begin;
                    let ends = hit + wanted.letters.len() == word.letters.end || !wanted.end;
                    if begins && ends {
                        let end = list + word.list;
                        let last = found.last().map_or(0, |last| last.end);
                        (last <= list && end <= most).then(|| found.push(list..end))?;
                        from = word.letters.end;
                    }
                    break;
                }
                (at, list) = (word.end, list + word.list);
            }
        }
        Some(found)
    }
}

/// A word in the table.
struct Word {
    letters: Range<usize>,
    /// Bytes of its list.
    list: u64,
    end: usize,
}

impl Word {
    /// Reads the word at `at`; `None` after the last.
    fn read(words: &[u8], at: usize) -> Option<Self> {
        let letters = words.get(at..)?.iter().take_while(|byte| **byte < 0x80).count();
        let behind = &words[at + letters..];
        let digits = behind.iter().take_while(|byte| **byte >= 0x80);
        let (mut list, mut length) = (0, 0);
        for digit in digits {
            list |= u64::from(digit & 0x7f) << (length * 7 % 35);
            length += 1;
        }
        let end = at + letters + length;
        (length > 0).then_some(Self { letters: at..at + letters, list, end })
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}
