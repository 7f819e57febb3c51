//! Approximate lengths of texts, of which the index knows the number of bits.

/// Returns the approximate length in bytes of a text whose length has `bits` bits: three
/// quarters of 2^`bits`, the middle of that range.
pub(super) fn typical_length(bits: u8) -> f64 {
    (1u64 << bits) as f64 * 0.75
}
