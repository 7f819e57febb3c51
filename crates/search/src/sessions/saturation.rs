//! How much a word counts that occurs several times, as in BM25.

/// How soon further occurrences of a word count less (`k1` of BM25).
const SATURATION: f32 = 1.6;

/// How much a long event or window loses (`b` of BM25).
pub(super) const EVENT_LENGTH_WEIGHT: f32 = 0.6;

/// Returns what `count` occurrences count in a text of this length, relative to the average.
pub(super) fn saturate(count: f32, length_weight: f32, relative_length: f32) -> f32 {
    if count == 0.0 {
        return 0.0;
    }
    let norm = 1.0 - length_weight + length_weight * relative_length;
    count * (SATURATION + 1.0) / (count + SATURATION * norm)
}
