//! The runs of letters of a text.

/// Calls `word` with where every run of letters of a folded text begins and ends.
pub(super) fn each_word(text: &[u8], mut word: impl FnMut(usize, usize)) {
    let (mut from, mut before) = (None, 0);
    let mut edges_of = |at: usize, letters: u64| {
        let mut edges = letters ^ (letters << 1 | before);
        before = letters >> 63;
        while edges != 0 {
            let edge = at + edges.trailing_zeros() as usize;
            edges &= edges - 1;
            from = match from {
                None => Some(edge),
                Some(from) => {
                    word(from, edge);
                    None
                }
            };
        }
    };
    let (chunks, rest) = text.as_chunks::<64>();
    for (number, chunk) in chunks.iter().enumerate() {
        edges_of(number * 64, letters(chunk));
    }
    // Behind the end stands no letter, so every run ends.
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    edges_of(chunks.len() * 64, letters(&last));
}

/// A bit for each of the bytes that is a small letter: found for eight at a time, by whether adding
/// what is left to 128 sets a byte's highest bit.
fn letters(chunk: &[u8; 64]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let (eights, _) = chunk.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, eight| {
        let bytes = u64::from_le_bytes(*eight);
        let low = bytes & !HIGH;
        let from_a = low + (0x80 - u64::from(b'a')) * ONES;
        let beyond_z = low + (0x80 - u64::from(b'z') - 1) * ONES;
        let found = (from_a & !beyond_z & !bytes & HIGH) >> 7;
        // Gathers the lowest bits of the eight bytes at the top.
        bits << 8 | found.wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_letters_are_found_wherever_they_lie() {
        for length in [0, 1, 63, 64, 65, 127, 128, 129] {
            let text: Vec<u8> =
                (0..length).map(|at: u32| (at.wrapping_mul(41) >> 1) as u8).collect();
            let text = [text, b"az`{\xe1".repeat(length as usize % 7)].concat();
            let mut found = Vec::new();
            each_word(&text, |from, end| found.push(&text[from..end]));
            let expected = text.split(|byte| !byte.is_ascii_lowercase());
            assert!(found.into_iter().eq(expected.filter(|run| !run.is_empty())), "{length}");
        }
    }
}
