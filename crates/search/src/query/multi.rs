//! Searches for several needles at once.

use aho_corasick::{AhoCorasick, MatchKind, packed};

/// Finds any of several needles: with SIMD if they are few, else with an automaton.
pub(crate) enum AnyNeedleFinder {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

impl AnyNeedleFinder {
    /// Returns `None` if there are no needles, or too many for an automaton, which no query
    /// has.
    pub(crate) fn new<N: AsRef<[u8]>>(needles: &[N]) -> Option<Self> {
        if needles.is_empty() {
            return None;
        }
        // A needle that begins with another is found with it. As a separate hit it could hide
        // the other one if the end of a text cuts it off.
        let all: Vec<&[u8]> = needles.iter().map(AsRef::as_ref).collect();
        let mut uncovered: Vec<&[u8]> = Vec::new();
        for (at, &needle) in all.iter().enumerate() {
            if !is_covered(&all, at) {
                uncovered.push(needle);
            }
        }

        let kind = packed::MatchKind::LeftmostFirst;
        let mut builder = packed::Config::new().match_kind(kind).builder();
        if let Some(packed) = builder.extend(&uncovered).build() {
            return Some(Self::Packed(packed));
        }
        let mut builder = AhoCorasick::builder();
        builder.match_kind(MatchKind::LeftmostFirst);
        builder.build(&uncovered).ok().map(Self::Automaton)
    }

    /// Returns the start and the length of the first hit.
    pub(crate) fn find(&self, haystack: &[u8]) -> Option<(usize, usize)> {
        let found = match self {
            Self::Packed(packed) => packed.find(haystack),
            Self::Automaton(automaton) => automaton.find(haystack),
        };
        found.map(|found| (found.start(), found.len()))
    }

    pub(crate) fn is_match(&self, haystack: &[u8]) -> bool {
        self.find(haystack).is_some()
    }
}

/// Returns true if the needle at position `at` begins with another one or repeats an earlier one.
fn is_covered(needles: &[&[u8]], at: usize) -> bool {
    let needle = needles[at];
    needles.iter().enumerate().any(|(other, prefix)| {
        other != at && needle.starts_with(prefix) && (needle.len() > prefix.len() || other < at)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_needle_hides_no_shorter_one() {
        for needles in [["quokkas", "quokka"], ["quokka", "quokkas"], ["quokka", "quokka"]] {
            let multi = AnyNeedleFinder::new(&needles).expect("needles");
            assert_eq!(multi.find(b"a quokkas"), Some((2, 6)));
        }
        assert!(AnyNeedleFinder::new::<&str>(&[]).is_none());
        assert!(!AnyNeedleFinder::new(&["ab", "cd"]).expect("needles").is_match(b"a b c d"));
    }
}
