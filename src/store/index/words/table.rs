//! The words of a segment as they are written, and the search for words that hold some letters.
//!
//! ```text
//! head       number of leaves, bytes of the words, bytes of the list of open rows
//! leaves     for every eight words, the positions of the first word and of its list
//! words      in alphabetical order, each followed by the length of its list
//! open rows  a list of rows; see `rows`
//! lists      the rows of every word, in the order of the words
//! ```
//!
//! Every number of the head and of a leaf has four bytes. The length of a list has seven bits a
//! byte from the lowest up, each byte with the highest bit set, which no letter has.

use std::ops::Range;

use memchr::memmem;

use super::rows::RowList;
use super::vocabulary;

/// Bytes of the numbers before the leaves.
pub(super) const HEAD_BYTES: usize = 3 * 4;

/// Bytes of a leaf: the positions of its first word and of its first list.
const LEAF_BYTES: usize = 2 * 4;

/// Number of words of a leaf; the last leaf may have fewer.
const LEAF_WORDS: usize = 8;

/// Letters to look for in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordPattern<'t> {
    /// Lowercase ASCII letters.
    pub letters: &'t str,
    /// Whether a word must begin with the letters.
    pub must_begin_word: bool,
    /// Whether a word must end with the letters.
    pub must_end_word: bool,
}

/// Returns `words`, which must be sorted, in the written form for a segment of `rows` rows.
pub(super) fn encode_word_table(
    words: &[vocabulary::WordRows],
    open: &RowList,
    rows: usize,
) -> Vec<u8> {
    let mut leaves: Vec<u8> = Vec::new();
    let mut table: Vec<u8> = Vec::new();
    let mut lists: Vec<u8> = Vec::new();
    for leaf in words.chunks(LEAF_WORDS) {
        leaves.extend((table.len() as u32).to_le_bytes());
        leaves.extend((lists.len() as u32).to_le_bytes());
        for (word, list) in leaf {
            let list_start = lists.len();
            list.append_to(rows, &mut lists);
            table.extend(word);
            append_length(&mut table, lists.len() - list_start);
        }
    }
    let mut open_list: Vec<u8> = Vec::new();
    open.append_to(rows, &mut open_list);

    let mut out: Vec<u8> = Vec::new();
    for number in [leaves.len() / LEAF_BYTES, table.len(), open_list.len()] {
        out.extend((number as u32).to_le_bytes());
    }
    out.extend(leaves);
    out.extend(table);
    out.extend(open_list);
    out.extend(lists);
    out
}

/// Appends the length of a list: seven bits a byte from the lowest up, each with the highest bit
/// set.
fn append_length(out: &mut Vec<u8>, mut length: usize) {
    loop {
        out.push(length as u8 | 0x80);
        length >>= 7;
        if length == 0 {
            return;
        }
    }
}

/// Positions of the parts after the head.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WordTableLayout {
    /// Number of leaves.
    leaves: usize,
    /// The leaves and the words.
    pub(super) table: Range<u64>,
    pub(super) open: Range<u64>,
    pub(super) lists: Range<u64>,
}

impl WordTableLayout {
    /// Parses `head`, the beginning of a section of `length` bytes; `None` if the section is too
    /// short.
    pub(super) fn read(head: [u8; HEAD_BYTES], length: u64) -> Option<Self> {
        let leaves = read_u32(&head, 0)?;
        let words_bytes = u64::from(read_u32(&head, 4)?);
        let open_bytes = u64::from(read_u32(&head, 8)?);

        let leaves_bytes = u64::from(leaves) * LEAF_BYTES as u64;
        let table = HEAD_BYTES as u64..HEAD_BYTES as u64 + leaves_bytes + words_bytes;
        let open = table.end..table.end + open_bytes;
        let lists = open.end..length;
        if open.end > length {
            return None;
        }
        Some(Self { leaves: usize::try_from(leaves).ok()?, table, open, lists })
    }

    /// Returns the ranges of the lists of all words that hold `wanted`, ascending, relative to the
    /// first list. `table` is the bytes at [`WordTableLayout::table`]. Returns `None` if the table
    /// is too short for its leaves, or if a range is outside the lists.
    pub(super) fn find_lists(
        &self,
        table: &[u8],
        wanted: &WordPattern<'_>,
    ) -> Option<Vec<Range<u64>>> {
        let (leaves, words) = table.split_at_checked(self.leaves * LEAF_BYTES)?;
        let lists_bytes = self.lists.end - self.lists.start;
        let (leaves, _) = leaves.as_chunks::<LEAF_BYTES>();
        let finder = memmem::Finder::new(wanted.letters);
        let mut found: Vec<Range<u64>> = Vec::new();
        // Positions of the next word and of its list.
        let mut at: usize = 0;
        let mut list: u64 = 0;
        // Where the search for letters continues.
        let mut search_start: usize = 0;
        while let Some(offset) = words.get(search_start..).and_then(|words| finder.find(words)) {
            let hit = search_start + offset;
            search_start = hit + 1;

            // Skips to the leaf of the hit.
            let next_leaf = leaves.partition_point(|leaf| Leaf::read(leaf).word <= hit);
            if let Some(leaf) = next_leaf.checked_sub(1).and_then(|leaf| leaves.get(leaf)) {
                let leaf = Leaf::read(leaf);
                if leaf.word > at {
                    at = leaf.word;
                    list = leaf.list;
                }
            }

            while let Some(word) = TableWord::read(words, at) {
                if hit >= word.letters.end {
                    at = word.end;
                    list += word.list;
                    continue;
                }
                let has_right_begin = hit == word.letters.start || !wanted.must_begin_word;
                let has_right_end =
                    hit + wanted.letters.len() == word.letters.end || !wanted.must_end_word;
                if has_right_begin && has_right_end {
                    let list_end = list + word.list;
                    let last_end = found.last().map_or(0, |last| last.end);
                    if list < last_end || list_end > lists_bytes {
                        return None;
                    }
                    found.push(list..list_end);
                    search_start = word.letters.end;
                }
                break;
            }
        }
        Some(found)
    }
}

/// A word of the table, and the place of its list relative to the first list.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListedWord {
    pub(super) letters: String,
    pub(super) list: Range<u64>,
}

impl WordTableLayout {
    /// Returns the words that begin with `prefix`, in alphabetical order. `table` is the bytes at
    /// [`WordTableLayout::table`]. Returns `None` if the table is too short for its leaves, or if a
    /// list is outside the lists.
    pub(super) fn find_words(&self, table: &[u8], prefix: &str) -> Option<Vec<ListedWord>> {
        let (leaves, words) = table.split_at_checked(self.leaves * LEAF_BYTES)?;
        let lists_bytes = self.lists.end - self.lists.start;
        let (leaves, _) = leaves.as_chunks::<LEAF_BYTES>();
        let is_before = |leaf: &[u8; LEAF_BYTES]| {
            let at = Leaf::read(leaf).word;
            TableWord::read(words, at).is_some_and(|word| words[word.letters] < *prefix.as_bytes())
        };
        // The words may begin in the last leaf whose first word is before them.
        let first_leaf = leaves.partition_point(is_before).saturating_sub(1);
        let Some(leaf) = leaves.get(first_leaf).map(Leaf::read) else { return Some(Vec::new()) };

        let mut found = Vec::new();
        let mut at = leaf.word;
        let mut list = leaf.list;
        while let Some(word) = TableWord::read(words, at) {
            let letters = &words[word.letters.clone()];
            let list_end = list.checked_add(word.list)?;
            if letters.starts_with(prefix.as_bytes()) {
                if list_end > lists_bytes {
                    return None;
                }
                let letters = String::from_utf8_lossy(letters).into_owned();
                found.push(ListedWord { letters, list: list..list_end });
            } else if letters > prefix.as_bytes() {
                break;
            }
            at = word.end;
            list = list_end;
        }
        Some(found)
    }
}

/// Positions of the first word of a leaf and of its list.
struct Leaf {
    word: usize,
    list: u64,
}

impl Leaf {
    fn read(bytes: &[u8; LEAF_BYTES]) -> Self {
        let [a, b, c, d, e, f, g, h] = *bytes;
        Self {
            word: u32::from_le_bytes([a, b, c, d]) as usize,
            list: u64::from(u32::from_le_bytes([e, f, g, h])),
        }
    }
}

/// A word in the table.
struct TableWord {
    letters: Range<usize>,
    /// Bytes of its list.
    list: u64,
    /// Position of the next word.
    end: usize,
}

impl TableWord {
    /// Reads the word at `at`; `None` after the last word, and if its length is missing.
    fn read(words: &[u8], at: usize) -> Option<Self> {
        let letters = words.get(at..)?.iter().take_while(|byte| **byte < 0x80).count();
        let after_letters = &words[at + letters..];
        let digits = after_letters.iter().take_while(|byte| **byte >= 0x80);
        let mut list: u64 = 0;
        let mut length = 0;
        for digit in digits {
            list |= u64::from(digit & 0x7f) << (length * 7 % 35);
            length += 1;
        }
        if length == 0 {
            return None;
        }
        Some(Self { letters: at..at + letters, list, end: at + letters + length })
    }
}

/// Reads the number in the four bytes at `at`.
fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}
