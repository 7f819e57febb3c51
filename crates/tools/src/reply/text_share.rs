//! Divides the space of a page among texts, so that a page with few of them shows more of each.

/// A text that loses less than this part of it by a cut is kept whole.
const KEPT_WHOLE_SHARE: usize = 8;

/// A text that has to share the space of a page.
#[derive(Debug, Clone, Copy)]
pub struct TextSize {
    /// Its length in bytes of JSON.
    pub bytes: usize,
    /// What it gets even if there is no room.
    pub least: usize,
    /// What it gets at most.
    pub most: usize,
}

impl TextSize {
    /// Returns the bytes that the text takes if texts are cut to `cap` bytes.
    fn cut_to(self, cap: usize) -> usize {
        let cap = cap.clamp(self.least, self.most.max(self.least));
        if self.bytes <= cap + cap / KEPT_WHOLE_SHARE { self.bytes } else { cap }
    }
}

/// Returns the bytes that each text may take, so that all of them take at most `room`, or what they
/// take at least. Short texts are whole, and all others get the same.
pub fn share_room(texts: &[TextSize], room: usize) -> Vec<usize> {
    let total = |cap: usize| -> usize { texts.iter().map(|text| text.cut_to(cap)).sum() };
    let mut low = 0;
    let mut high = texts.iter().map(|text| text.bytes).max().unwrap_or(0);
    // `low` fits, unless even the least does not.
    while low < high {
        let middle = (low + high).div_ceil(2);
        if total(middle) <= room {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    texts.iter().map(|text| text.cut_to(low)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn size(bytes: usize) -> TextSize {
        TextSize { bytes, least: 80, most: usize::MAX }
    }

    #[test]
    fn short_texts_are_whole_and_long_ones_share_the_rest() {
        let texts = [size(50), size(900), size(2_000)];
        assert_eq!(share_room(&texts, 1_000), [50, 475, 475]);
        assert_eq!(share_room(&texts, 1_700), [50, 799, 799]);
        assert_eq!(share_room(&texts, 9_000), [50, 900, 2_000]);
        assert_eq!(share_room(&texts, 0), [50, 80, 80]);
        let bounded = TextSize { most: 300, ..size(2_000) };
        assert_eq!(share_room(&[size(2_000), bounded], 9_000), [2_000, 300]);
    }

    #[test]
    fn a_text_that_would_lose_little_is_whole() {
        assert_eq!(share_room(&[size(90)], 0), [90]);
        assert_eq!(share_room(&[size(91)], 0), [80]);
        assert_eq!(share_room(&[size(1_100), size(1_000)], 2_100), [1_100, 1_000]);
    }

    proptest! {
        #[test]
        fn the_room_holds_unless_the_least_is_more(
            lengths in proptest::collection::vec(0..3_000_usize, 0..30), room in 0..30_000_usize,
        ) {
            let texts: Vec<TextSize> = lengths.iter().map(|bytes| size(*bytes)).collect();
            let shares = share_room(&texts, room);
            let least: usize = texts.iter().map(|text| text.cut_to(0)).sum();
            prop_assert!(shares.iter().sum::<usize>() <= room.max(least));
            for (share, text) in shares.iter().zip(&texts) {
                prop_assert!(*share <= text.bytes && *share >= text.bytes.min(text.least));
            }
        }
    }
}
