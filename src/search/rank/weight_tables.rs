//! Sums the weights of a row's possible words, which are bits. It uses tables because a store has
//! many rows.

/// The summed weights of up to 64 words: one table per byte of bits.
pub(super) struct WeightSums(Vec<[f64; 256]>);

impl WeightSums {
    /// Builds the tables from the weights of words. The last bit represents all words from the 64th
    /// on.
    pub(super) fn new(weights: &[f64]) -> Self {
        let mut bit_weights: Vec<f64> = weights.iter().copied().take(63).collect();
        if weights.len() > 63 {
            bit_weights.push(weights[63..].iter().sum());
        }
        Self(bit_weights.chunks(8).map(sum_table).collect())
    }

    /// Returns the total weight of the words whose bits are set.
    pub(super) fn weight_of(&self, words: u64) -> f64 {
        let bytes = self.0.iter().zip(words.to_le_bytes());
        bytes.map(|(table, byte)| table[usize::from(byte)]).sum()
    }
}

/// Returns the summed weights for every value of a byte, given the weights of its bits.
fn sum_table(weights: &[f64]) -> [f64; 256] {
    std::array::from_fn(|byte| {
        let set = weights.iter().enumerate().filter(|(bit, _)| byte >> bit & 1 != 0);
        set.map(|(_, weight)| weight).sum()
    })
}

/// Returns the bit of a word.
pub(super) const fn word_bit(word: usize) -> u64 {
    1 << if word < 63 { word } else { 63 }
}

/// Returns the bit of the second word of each pair of neighbours that may both occur.
pub(super) const fn pair_bits(words: u64) -> u64 {
    const LAST: u64 = 1 << 63;
    words & (words << 1 | words & LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_added_by_bits() {
        let weights: Vec<f64> = (1..=70).map(f64::from).collect();
        let sums = WeightSums::new(&weights);
        assert_eq!(sums.weight_of(0), 0.0);
        assert_eq!(sums.weight_of(word_bit(0) | word_bit(9)), 11.0);
        assert_eq!(sums.weight_of(word_bit(66)), f64::from((64..=70).sum::<u32>()));
        assert_eq!(sums.weight_of(u64::MAX), f64::from((1..=70).sum::<u32>()));
        assert_eq!(WeightSums::new(&weights[..3]).weight_of(u64::MAX), 6.0);
        assert_eq!(WeightSums::new(&[]).weight_of(u64::MAX), 0.0);
    }

    #[test]
    fn neighbours_are_known_by_the_second() {
        assert_eq!(pair_bits(0b1011), 0b0010);
        assert_eq!(pair_bits(word_bit(62) | word_bit(63)), word_bit(63));
        assert_eq!(pair_bits(word_bit(63)), word_bit(63), "some of those that it stands for");
    }
}
