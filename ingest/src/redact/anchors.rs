//! One pass over a text that finds where the anchors of rules stand.
//!
//! Every four bytes in a row, with the letters' case folded away, are one number; a bitmap says
//! whether some anchor begins with it. One load, one multiplication and one bit a byte, whatever
//! the text: in real logs one position in four hundred passes, and is then compared as a whole.

/// Bits of a number in the bitmap: 2^17 bits are 16 KB, which stay in the nearest cache.
const HASH_BITS: u32 = 17;
const WORDS: usize = 1 << (HASH_BITS - 6);

/// Anchors, and what each of them leads to.
pub(super) struct Anchors<T> {
    bitmap: Box<[u64; WORDS]>,
    /// Sorted by key.
    entries: Vec<Entry<T>>,
}

struct Entry<T> {
    key: u32,
    anchor: &'static str,
    any_case: bool,
    leads_to: T,
}

impl<T: Copy> Anchors<T> {
    /// Each anchor has four bytes or more and says whether it counts in any case. `?` in it
    /// stands for a letter, digit, `_` or `-`, `#` for a hex digit, `%` for a digit.
    pub(super) fn new(anchors: impl IntoIterator<Item = (&'static str, bool, T)>) -> Self {
        let mut bitmap = Box::new([0; WORDS]);
        let mut entries = Vec::new();
        for (anchor, any_case, leads_to) in anchors {
            for key in keys(anchor) {
                let (word, bit) = place(key);
                bitmap[word] |= 1 << bit;
                entries.push(Entry { key, anchor, any_case, leads_to });
            }
        }
        entries.sort_by_key(|entry| entry.key);
        Self { bitmap, entries }
    }

    /// Calls `found` with every place where an anchor stands, in order.
    pub(super) fn each(&self, text: &[u8], mut found: impl FnMut(usize, T)) {
        for (at, window) in text.windows(4).enumerate() {
            let [a, b, c, d] = *window else { continue };
            let key = fold([a, b, c, d]);
            let (word, bit) = place(key);
            if (self.bitmap[word] >> bit) & 1 == 1 {
                self.compare(key, text, at, &mut found);
            }
        }
    }

    #[inline(never)]
    fn compare(&self, key: u32, text: &[u8], at: usize, found: &mut impl FnMut(usize, T)) {
        let first = self.entries.partition_point(|entry| entry.key < key);
        let entries = self.entries.get(first..).unwrap_or_default();
        for entry in entries.iter().take_while(|entry| entry.key == key) {
            let mut rest = text.get(at..).unwrap_or_default().iter();
            let mut wanted = entry.anchor.bytes();
            if wanted.all(|want| rest.next().is_some_and(|byte| fits(want, *byte, entry.any_case)))
            {
                found(at, entry.leads_to);
            }
        }
    }
}

/// A number for four bytes that is the same in upper and lower case.
fn fold(bytes: [u8; 4]) -> u32 {
    u32::from_le_bytes(bytes) | 0x2020_2020
}

/// Word and bit of a key in the bitmap.
fn place(key: u32) -> (usize, u32) {
    let hash = key.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS);
    ((hash >> 6) as usize % WORDS, hash & 63)
}

/// The keys with which a text that holds the anchor may begin.
fn keys(anchor: &str) -> Vec<u32> {
    let mut keys = vec![0];
    for (at, want) in anchor.bytes().take(4).enumerate() {
        let choices: Vec<u8> = (0..0x80).filter(|byte| fits(want, *byte, true)).collect();
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
        b'%' => byte.is_ascii_digit(),
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
    }
}
