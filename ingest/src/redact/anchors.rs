//! Finds all places of a text where the anchors of rules occur, in one pass.
//!
//! Every four consecutive bytes, with the case of letters removed, form one number, and a bitmap
//! shows whether an anchor begins with that number. This takes one load, one multiplication and one
//! bit test for each byte, eight bytes at a time, for any text. In real logs one position in a
//! hundred passes and is then compared as a whole.

/// Bits of a hash that select a bit of the bitmap. 2^17 bits are 16 KB, which stay in the nearest
/// cache.
const HASH_BITS: u32 = 17;
const WORDS: usize = 1 << (HASH_BITS - 6);

/// Bits of a hash that select a list of entries.
const LIST_BITS: u32 = 10;
const LISTS: usize = 1 << LIST_BITS;

/// Positions examined in one step, and the bytes that they span.
const STEP: usize = 8;
const BLOCK: usize = STEP + 3;

/// A set of anchors, and the value that each of them leads to.
pub(super) struct Anchors<T> {
    bitmap: Box<[u64; WORDS]>,
    /// Start of each list in `entries`, and after the last one its end.
    lists: Vec<usize>,
    /// Keys of the entries, sorted by list and within a list in the order given.
    keys: Vec<u32>,
    entries: Vec<Entry<T>>,
}

struct Entry<T> {
    anchor: &'static str,
    any_case: bool,
    leads_to: T,
}

impl<T: Copy> Anchors<T> {
    /// Builds the set. Each anchor has at least four bytes and says whether it matches in any case.
    /// In an anchor, `?` matches a letter, digit, `_` or `-`, `#` matches a hex digit and `^` a
    /// digit.
    pub(super) fn new(anchors: impl IntoIterator<Item = (&'static str, bool, T)>) -> Self {
        let mut keyed = Vec::new();
        for (anchor, any_case, leads_to) in anchors {
            let entry = |key| (key, Entry { anchor, any_case, leads_to });
            keyed.extend(keys(anchor).into_iter().map(entry));
        }
        keyed.sort_by_key(|(key, _)| list(hash(*key)));
        let mut bitmap = Box::new([0; WORDS]);
        for (key, _) in &keyed {
            let (word, bit) = place(hash(*key));
            bitmap[word] |= 1 << bit;
        }
        let begins = |number| keyed.partition_point(|(key, _)| list(hash(*key)) < number);
        let lists = (0..=LISTS).map(begins).collect();
        let (keys, entries) = keyed.into_iter().unzip();
        Self { bitmap, lists, keys, entries }
    }

    /// Calls `found` for every place where an anchor occurs, in the order of the text.
    pub(super) fn each(&self, text: &[u8], mut found: impl FnMut(usize, T)) {
        let mut at = 0;
        while let Some((block, mut hits)) = self.next(text, at) {
            while hits != 0 {
                self.compare(text, block + hits.trailing_zeros() as usize, &mut found);
                hits &= hits - 1;
            }
            at = block + STEP;
        }
    }

    /// Returns the next block of positions from `from` on in which an anchor may begin, with one
    /// bit set for each such position.
    #[inline(never)]
    fn next(&self, text: &[u8], from: usize) -> Option<(usize, u8)> {
        let mut at = from;
        while let Some(block) = text.get(at..).and_then(<[u8]>::first_chunk::<BLOCK>) {
            let hits = self.hits(block);
            if hits != 0 {
                return Some((at, hits));
            }
            at += STEP;
        }
        // The zeros after the end begin no anchor.
        let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
        let mut block = [0; BLOCK];
        block.iter_mut().zip(rest).for_each(|(to, byte)| *to = *byte);
        Some((at, self.hits(&block)))
    }

    #[inline(always)]
    fn hits(&self, block: &[u8; BLOCK]) -> u8 {
        let mut hits = 0;
        for (n, window) in block.windows(4).enumerate() {
            let [a, b, c, d] = *window else { continue };
            let (word, bit) = place(hash(fold([a, b, c, d])));
            hits |= u8::from((self.bitmap[word] >> bit) & 1 == 1) << n;
        }
        hits
    }

    #[inline(never)]
    fn compare(&self, text: &[u8], at: usize, found: &mut impl FnMut(usize, T)) {
        let rest = text.get(at..).unwrap_or_default();
        let Some(key) = rest.first_chunk::<4>().map(|bytes| fold(*bytes)) else { return };
        let list = list(hash(key));
        let (Some(from), Some(to)) = (self.lists.get(list), self.lists.get(list + 1)) else {
            return;
        };
        let keys = self.keys.get(*from..*to).unwrap_or_default();
        for (n, _) in keys.iter().enumerate().filter(|(_, other)| **other == key) {
            let Some(entry) = self.entries.get(from + n) else { return };
            let mut bytes = rest.iter();
            let fits = |want| bytes.next().is_some_and(|byte| fits(want, *byte, entry.any_case));
            if entry.anchor.bytes().all(fits) {
                found(at, entry.leads_to);
            }
        }
    }
}

/// Turns four bytes into a number that is the same in upper and lower case.
fn fold(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes) | 0x2020_2020
}

fn hash(key: u32) -> u32 {
    key.wrapping_mul(0x9e37_79b1)
}

/// Returns word and bit of a hash in the bitmap.
fn place(hash: u32) -> (usize, u32) {
    let hash = hash >> (32 - HASH_BITS);
    ((hash >> 6) as usize % WORDS, hash & 63)
}

/// Returns the number of the list that contains the entries of a hash.
fn list(hash: u32) -> usize {
    (hash >> (32 - LIST_BITS)) as usize
}

/// Returns the keys with which a text that contains the anchor may begin.
fn keys(anchor: &str) -> Vec<u32> {
    let mut keys = vec![0];
    for (at, want) in anchor.bytes().take(4).enumerate() {
        let choices: Vec<u8> = (0..=u8::MAX).filter(|byte| fits(want, *byte, true)).collect();
        let mut longer: Vec<u32> = keys
            .iter()
            .flat_map(|key| choices.iter().map(move |byte| (key, byte)))
            .map(|(key, byte)| key | (u32::from(byte | 0x20) << (8 * at)))
            .collect();
        longer.sort_unstable();
        longer.dedup();
        keys = longer;
    }
    keys
}

fn fits(want: u8, byte: u8, any_case: bool) -> bool {
    match want {
        b'?' => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
        b'#' => byte.is_ascii_hexdigit(),
        b'^' => byte.is_ascii_digit(),
        _ if any_case => byte.eq_ignore_ascii_case(&want),
        _ => byte == want,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(anchors: &[(&'static str, bool)], text: &str) -> Vec<(usize, usize)> {
        let numbered = anchors.iter().enumerate();
        let anchors = Anchors::new(numbered.map(|(n, (anchor, any))| (*anchor, *any, n)));
        let mut found = Vec::new();
        anchors.each(text.as_bytes(), |at, n| found.push((at, n)));
        found
    }

    #[test]
    fn anchors_are_found_where_they_stand_and_in_their_case() {
        let anchors = &[("ghp_", false), ("token", true), ("sk-?", false), ("SK##", false)];
        assert_eq!(found(anchors, "ghp_ GHP_ TOKEN toke"), [(0, 0), (10, 1)]);
        assert_eq!(found(anchors, "sk-a sk-. SKab SKag"), [(0, 2), (10, 3)]);
        assert!(found(anchors, "tok").is_empty());
        assert_eq!(found(&[("%3A^", false)], "%3A %3A1 %3Ax"), [(4, 0)]);
        assert_eq!(found(anchors, "xtoken"), [(1, 1)]);
    }

    #[test]
    fn anchors_that_begin_alike_are_both_found() {
        let anchors = &[("secret", true), ("secret_?", false), ("secr", false)];
        assert_eq!(found(anchors, "secret_x"), [(0, 0), (0, 1), (0, 2)]);
    }

    #[test]
    fn other_characters_are_no_trouble() {
        assert_eq!(found(&[("eyJ?", false)], "größe→eyJh"), [(10, 0)]);
        assert_eq!(found(&[("пароль", true), ("密码", true)], "密码 пароль"), [(0, 1), (7, 0)]);
    }
}
