//! The English words of seed phrases, as BIP 39 lists them, and the checksum of a phrase.

use std::sync::LazyLock;

use bip39::{Language, Mnemonic};

/// Length of the longest word of the list in bytes.
const MAX_WORD_BYTES: usize = 8;

/// log2 of the bits of [`HASHES`]: 8 KB, which stay in the nearest cache.
const HASH_BITS: u32 = 16;

/// A bit for the hash of each word of the list.
static HASHES: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut bits = vec![0; 1 << (HASH_BITS - 6)];
    let words = Language::English.word_list().iter();
    for packed in words.filter_map(|word| pack_word(word.as_bytes())) {
        let hash = hash_word(packed);
        if let Some(bits) = bits.get_mut(hash >> 6) {
            *bits |= 1_u64 << (hash & 63);
        }
    }
    bits
});

/// Returns whether the list may contain a word: a quick look that excludes nearly all others.
/// `packed` is the word in lower case, its letters from the lowest byte up.
pub(super) fn may_be_listed(packed: u64) -> bool {
    let hash = hash_word(packed);
    HASHES.get(hash >> 6).is_some_and(|bits| bits >> (hash & 63) & 1 == 1)
}

/// Returns a word in lower case as a number; `None` if it is longer than [`MAX_WORD_BYTES`].
fn pack_word(word: &[u8]) -> Option<u64> {
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let letters = word.iter().rev();
    Some(letters.fold(0, |packed, byte| packed << 8 | u64::from(byte.to_ascii_lowercase())))
}

/// Returns a hash of [`HASH_BITS`] bits.
fn hash_word(packed: u64) -> usize {
    (packed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - HASH_BITS)) as usize
}

/// Returns the word of the list that equals `word` in upper or lower case. The search in the list
/// takes longer than the quick look before it.
pub(super) fn find_listed_word(word: &[u8]) -> Option<&'static str> {
    if !may_be_listed(pack_word(word)?) {
        return None;
    }
    let lower = str::from_utf8(word).ok()?.to_ascii_lowercase();
    let number = Language::English.find_word(&lower)?;
    Language::English.word_list().get(usize::from(number)).copied()
}

/// Returns whether words of the list are a phrase: the last one contains the right checksum.
pub(super) fn is_phrase(words: &[&str]) -> bool {
    Mnemonic::parse_in_normalized(Language::English, &words.join(" ")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case() {
        for word in Language::English.word_list() {
            assert_eq!(find_listed_word(word.as_bytes()), Some(*word));
        }
        assert_eq!(find_listed_word(b"Zoo"), Some("zoo"));
        for other in ["", "the", "aband", "abandonment"] {
            assert_eq!(find_listed_word(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn few_other_words_may_be_listed() {
        let packed = |word: &str| pack_word(word.as_bytes()).expect("a short word");
        let others = (0..10_000).filter(|n| may_be_listed(packed(&format!("x{n}"))));
        assert!(others.count() < 500);
    }

    #[test]
    fn a_phrase_has_a_checksum() {
        let is_phrase = |phrase: &str| is_phrase(&phrase.split(' ').collect::<Vec<_>>());
        // The phrases of the test vectors of BIP 39.
        assert!(is_phrase(
            "legal winner thank year wave sausage worth useful legal winner thank yellow"
        ));
        assert!(is_phrase(
            "letter advice cage absurd amount doctor acoustic avoid letter advice cage absurd \
             amount doctor acoustic avoid letter advice cage absurd amount doctor acoustic bless"
        ));
        assert!(!is_phrase(
            "legal winner thank year wave sausage worth useful legal winner yellow thank"
        ));
    }
}
