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
use super::vocabulary::SortedWords;

/// Bytes of the numbers before the leaves.
pub(super) const HEAD_BYTES: usize = 3 * 4;

/// Bytes of a leaf: the positions of its first word and of its first list.
const LEAF_BYTES: usize = 2 * 4;

/// Number of words of a leaf; the last leaf may have fewer.
const LEAF_WORDS: usize = 8;

/// Bytes of the words that are read first for those with a prefix: few prefixes have more.
const FIRST_PART_BYTES: usize = 4 << 10;

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

/// Returns `words` in the written form for a segment of `rows` rows: the head with the leaves, the
/// words, the open rows, and the lists. Each list is freed when it is written, so that they are not
/// in memory twice.
pub(super) fn encode_word_table(words: SortedWords, open: &RowList, rows: usize) -> [Vec<u8>; 4] {
    let leaf_count = words.len().div_ceil(LEAF_WORDS);
    let mut head = Vec::with_capacity(HEAD_BYTES + leaf_count * LEAF_BYTES);
    head.resize(HEAD_BYTES, 0);
    let mut table: Vec<u8> = Vec::new();
    let mut lists: Vec<u8> = Vec::new();
    let mut number = 0;
    words.for_each(|letters, list| {
        if number % LEAF_WORDS == 0 {
            head.extend((table.len() as u32).to_le_bytes());
            head.extend((lists.len() as u32).to_le_bytes());
        }
        number += 1;
        let list_start = lists.len();
        list.append_to(rows, &mut lists);
        table.extend_from_slice(letters);
        append_length(&mut table, lists.len() - list_start);
    });
    let mut open_list: Vec<u8> = Vec::new();
    open.append_to(rows, &mut open_list);

    let counts = [leaf_count, table.len(), open_list.len()];
    for (bytes, number) in head.chunks_exact_mut(4).zip(counts) {
        bytes.copy_from_slice(&(number as u32).to_le_bytes());
    }
    [head, table, open_list, lists]
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

/// The words of a part of the table that begin with a prefix.
enum ListedWords {
    All(Vec<ListedWord>),
    /// The part ends before the words do.
    Cut,
    Damaged,
}

impl WordTableLayout {
    /// Returns the place of the leaves.
    pub(super) fn leaves(&self) -> Range<u64> {
        self.table.start..self.table.start + (self.leaves * LEAF_BYTES) as u64
    }

    /// Returns the words that begin with `prefix`, in alphabetical order. `leaves` are the bytes at
    /// [`WordTableLayout::leaves`], and `read` returns the bytes in a range of the section: only a few
    /// of the words are read. Returns `None` if the table is damaged.
    pub(super) fn find_words<E>(
        &self,
        leaves: &[u8],
        prefix: &str,
        read: impl Fn(Range<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Vec<ListedWord>>, E> {
        let words = self.leaves().end..self.table.end;
        let read_words = |start: usize, count: usize| {
            let start = words.start.saturating_add(start as u64).min(words.end);
            read(start..start.saturating_add(count as u64).min(words.end))
        };
        let (leaves, _) = leaves.as_chunks::<LEAF_BYTES>();
        // The words may begin in the last leaf whose first word is before them.
        let mut after_first = 0;
        let mut end = leaves.len();
        while after_first < end {
            let middle = after_first.midpoint(end);
            // One letter more than those of the prefix decides.
            let bytes = read_words(Leaf::read(&leaves[middle]).word, prefix.len() + 1)?;
            let letters = bytes.iter().take_while(|byte| **byte < 0x80).count();
            if bytes[..letters] < *prefix.as_bytes() {
                after_first = middle + 1;
            } else {
                end = middle;
            }
        }
        let first_leaf = leaves.get(after_first.saturating_sub(1)).map(Leaf::read);
        let Some(leaf) = first_leaf else { return Ok(Some(Vec::new())) };

        let mut part_bytes = FIRST_PART_BYTES;
        loop {
            let part = read_words(leaf.word, part_bytes)?;
            let is_last = part.len() < part_bytes;
            match self.list_words(&part, is_last, leaf.list, prefix) {
                ListedWords::All(found) => return Ok(Some(found)),
                ListedWords::Cut => part_bytes = part_bytes.saturating_mul(4),
                ListedWords::Damaged => return Ok(None),
            }
        }
    }

    /// Returns the words of a part of the table that begin with `prefix`. The list of the first word
    /// begins at `list`. `is_last` is true if the part ends with the table.
    fn list_words(&self, words: &[u8], is_last: bool, mut list: u64, prefix: &str) -> ListedWords {
        let lists_bytes = self.lists.end - self.lists.start;
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(word) = TableWord::read(words, at) {
            if word.end >= words.len() && !is_last {
                return ListedWords::Cut;
            }
            let letters = &words[word.letters.clone()];
            let Some(list_end) = list.checked_add(word.list) else { return ListedWords::Damaged };
            if letters.starts_with(prefix.as_bytes()) {
                if list_end > lists_bytes {
                    return ListedWords::Damaged;
                }
                let letters = String::from_utf8_lossy(letters).into_owned();
                found.push(ListedWord { letters, list: list..list_end });
            } else if letters > prefix.as_bytes() {
                return ListedWords::All(found);
            }
            at = word.end;
            list = list_end;
        }
        if is_last { ListedWords::All(found) } else { ListedWords::Cut }
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
