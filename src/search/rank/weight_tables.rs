//! Sums the weights of a row's possible words from tables. Rows are many, and their words are bits.

/// The summed weights of up to 64 words: one table per byte of bits.
pub(super) struct Sums(Vec<[f64; 256]>);

impl Sums {
    /// Builds the tables from the weights of words. The last bit represents all words from the 64th
    /// on.
    pub(super) fn new(weights: &[f64]) -> Self {
        let mut of_bits: Vec<f64> = weights.iter().copied().take(63).collect();
        of_bits.extend((weights.len() > 63).then(|| weights[63..].iter().sum::<f64>()));
        let table = |of_byte: &[f64]| {
            std::array::from_fn(|byte: usize| {
                let set = of_byte.iter().enumerate().filter(|(bit, _)| byte >> bit & 1 != 0);
                set.map(|(_, weight)| weight).sum()
            })
        };
        Self(of_bits.chunks(8).map(table).collect())
    }

    /// Returns the total weight of the words whose bits are set.
    pub(super) fn of(&self, words: u64) -> f64 {
        let bytes = self.0.iter().zip(words.to_le_bytes());
        bytes.map(|(table, byte)| table[usize::from(byte)]).sum()
    }
}

/// Returns the bit of a word.
pub(super) const fn bit(word: usize) -> u64 {
    1 << if word < 63 { word } else { 63 }
}

/// Returns the bit of the second word of each pair of neighbours that may both occur.
pub(super) const fn neighbours(words: u64) -> u64 {
    const LAST: u64 = 1 << 63;
    words & (words << 1 | words & LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_added_by_bits() {
        let weights: Vec<f64> = (1..=70).map(f64::from).collect();
        let sums = Sums::new(&weights);
        assert_eq!(sums.of(0), 0.0);
        assert_eq!(sums.of(bit(0) | bit(9)), 11.0);
        assert_eq!(sums.of(bit(66)), f64::from((64..=70).sum::<u32>()));
        assert_eq!(sums.of(u64::MAX), f64::from((1..=70).sum::<u32>()));
        assert_eq!(Sums::new(&weights[..3]).of(u64::MAX), 6.0);
        assert_eq!(Sums::new(&[]).of(u64::MAX), 0.0);
    }

    #[test]
    fn neighbours_are_known_by_the_second() {
        assert_eq!(neighbours(0b1011), 0b0010);
        assert_eq!(neighbours(bit(62) | bit(63)), bit(63));
        assert_eq!(neighbours(bit(63)), bit(63), "some of those that it stands for");
    }
}
