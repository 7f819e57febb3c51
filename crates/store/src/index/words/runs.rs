//! Finds the runs of letters in a text.

/// Letters of the shortest word that is indexed.
pub const SHORTEST_WORD: usize = 3;

/// Appends the start and end of every run of at least three letters in a folded text.
pub(super) fn append_runs(text: &[u8], found: &mut Vec<(u32, u32)>) {
    let (chunks, rest) = text.as_chunks::<64>();
    // No letter follows the end of the text, so every run ends.
    let mut last = [0; 64];
    last[..rest.len()].copy_from_slice(rest);
    // Start of a run that continues in the next chunk.
    let mut open: Option<usize> = None;
    for (number, chunk) in chunks.iter().chain([&last]).enumerate() {
        let at = number * 64;
        let mut bits = letter_mask(chunk);
        if let Some(open_start) = open {
            let more = bits.trailing_ones();
            if more == 64 {
                continue;
            }
            let end = at + more as usize;
            if end - open_start >= SHORTEST_WORD {
                found.push((open_start as u32, end as u32));
            }
            open = None;
            bits &= u64::MAX << more;
        }

        // Drops shorter runs at once, unless they may continue in the next chunk.
        let three = bits & (bits >> 1 | 1 << 63) & (bits >> 2 | 3 << 62);
        bits &= three | three << 1 | three << 2;
        while bits != 0 {
            let first_bit = bits.trailing_zeros();
            // The addition carries over the whole run.
            let end_bit = bits.wrapping_add(1 << first_bit);
            if end_bit == 0 {
                open = Some(at + first_bit as usize);
                break;
            }
            bits &= end_bit;
            let start = at + first_bit as usize;
            found.push((start as u32, (at + end_bit.trailing_zeros() as usize) as u32));
        }
    }
}

/// Returns a bit for each byte that is a lowercase letter. Tests eight bytes at a time: adding 128
/// minus a letter to a byte sets its highest bit if it is that letter or a later one.
fn letter_mask(chunk: &[u8; 64]) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let (eights, _) = chunk.as_chunks::<8>();
    eights.iter().rev().fold(0, |bits, eight| {
        let bytes = u64::from_le_bytes(*eight);
        let low = bytes & !HIGH;
        let from_a = low + (0x80 - u64::from(b'a')) * ONES;
        let beyond_z = low + (0x80 - u64::from(b'z') - 1) * ONES;
        let found = (from_a & !beyond_z & !bytes & HIGH) >> 7;
        // Gathers the lowest bits of the eight bytes in the top byte.
        bits << 8 | found.wrapping_mul(0x0102_0408_1020_4080) >> 56
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &[u8]) {
        let mut found = Vec::new();
        append_runs(text, &mut found);
        let found = found.iter().map(|(from, end)| &text[*from as usize..*end as usize]);
        let expected = text.split(|byte| !byte.is_ascii_lowercase());
        assert!(found.eq(expected.filter(|run| run.len() >= SHORTEST_WORD)), "{text:?}");
    }

    #[test]
    fn letters_are_those_from_a_to_z() {
        for byte in 0..=u8::MAX {
            check(&[byte; 5]);
        }
    }

    proptest! {
        #[test]
        fn runs_are_found_wherever_they_lie(
            runs in proptest::collection::vec((0..80usize, 1..4usize), 0..12),
        ) {
            let run = |(length, gap): (usize, usize)| "z".repeat(length) + &"-".repeat(gap);
            let text: String = runs.into_iter().map(run).collect();
            check(text.as_bytes());
            check(text.trim_end_matches('-').as_bytes());
        }
    }
}
