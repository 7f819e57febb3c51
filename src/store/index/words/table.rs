//! The words of a segment as they are written, and how those that hold some letters are found.
//!
//! Three numbers: leaves, bytes of words, bytes of the list of open rows. Of every leaf, a few words,
//! where they and their lists begin. The words in their order, each behind it the length of its
//! list, seven bits a byte from the lowest up, each with the highest bit, which no letter has. Then
//! the open rows, and the lists.

use std::ops::Range;

use memchr::memmem;

use super::rows::Listed;
use super::vocabulary;

/// The numbers before the leaves, of four bytes each, as all are.
pub(super) const HEAD: usize = 3 * 4;
const LEAF: usize = 2 * 4;
const WORDS_OF_A_LEAF: usize = 8;

/// Letters that are looked for in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Letters<'t> {
    /// Small ASCII letters.
    pub letters: &'t str,
    /// Whether a word must begin with them, and end.
    pub begin: bool,
    pub end: bool,
}

/// Writes words, which come in their order, for a segment of so many rows.
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

/// Where the parts lie behind the head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places {
    leaves: usize,
    /// The leaves and the words.
    pub(super) table: Range<u64>,
    pub(super) open: Range<u64>,
    pub(super) lists: Range<u64>,
}

impl Places {
    /// Of `length` bytes that begin with `head`; `None` when they are too few.
    pub(super) fn read(head: [u8; HEAD], length: u64) -> Option<Self> {
        let number = |at: usize| number(&head, at * 4).map(u64::from);
        let (leaves, words, open) = (number(0)?, number(1)?, number(2)?);
        let table = HEAD as u64..HEAD as u64 + leaves * LEAF as u64 + words;
        let open = table.end..table.end + open;
        let lists = open.end..length;
        let leaves = usize::try_from(leaves).ok()?;
        (open.end <= length).then_some(Self { leaves, table, open, lists })
    }

    /// Where the lists of the words lie that hold `wanted`, among the lists, ascending; `table` is the
    /// bytes at [`Places::table`]. `None` when lists lie elsewhere.
    pub(super) fn holding(&self, table: &[u8], wanted: &Letters<'_>) -> Option<Vec<Range<u64>>> {
        let (leaves, words) = table.split_at_checked(self.leaves * LEAF)?;
        let most = self.lists.end - self.lists.start;
        let (leaves, _) = leaves.as_chunks::<LEAF>();
        let leaf = |at: usize| Some((number(leaves.get(at)?, 0)?, number(leaves.get(at)?, 4)?));
        let begin = |leaf: &[u8; LEAF]| number(leaf, 0).map_or(usize::MAX, |at| at as usize);
        let finder = memmem::Finder::new(wanted.letters);
        let mut found: Vec<Range<u64>> = Vec::new();
        // The next word, where its list begins, and from where letters are looked for.
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
    /// The word at `at`; `None` behind the last.
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
