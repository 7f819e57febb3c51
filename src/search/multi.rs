//! Looks for several needles at once.

use aho_corasick::{AhoCorasick, MatchKind, packed};

/// Finds any of some needles: with SIMD when they are few, else by automaton.
pub(super) enum Multi {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

impl Multi {
    /// `None` when there are no needles, or too many for an automaton, which no query has.
    pub(super) fn new<N: AsRef<[u8]>>(needles: &[N]) -> Option<Self> {
        if needles.is_empty() {
            return None;
        }
        // A needle that begins with another is found with it; as a hit of its own it could hide the
        // other one, where the end of a text cuts it off.
        let needles: Vec<&[u8]> = needles.iter().map(AsRef::as_ref).collect();
        let shortest = |at: &usize| {
            let others = needles.iter().enumerate().filter(|(other, _)| other != at);
            let begins = |(other, prefix): (usize, &&[u8])| {
                needles[*at].starts_with(prefix)
                    && (needles[*at].len() > prefix.len() || other < *at)
            };
            !others.into_iter().any(begins)
        };
        let needles: Vec<&[u8]> =
            (0..needles.len()).filter(shortest).map(|at| needles[at]).collect();
        let kind = packed::MatchKind::LeftmostFirst;
        let mut builder = packed::Config::new().match_kind(kind).builder();
        match builder.extend(&needles).build() {
            Some(packed) => Some(Self::Packed(packed)),
            None => {
                let mut builder = AhoCorasick::builder();
                builder.match_kind(MatchKind::LeftmostFirst);
                builder.build(&needles).ok().map(Self::Automaton)
            }
        }
    }

    /// Where the first of them begins and how long it is.
    pub(super) fn find(&self, haystack: &[u8]) -> Option<(usize, usize)> {
        let found = match self {
            Self::Packed(packed) => packed.find(haystack),
            Self::Automaton(automaton) => automaton.find(haystack),
        };
        found.map(|found| (found.start(), found.len()))
    }

    pub(super) fn is_match(&self, haystack: &[u8]) -> bool {
        self.find(haystack).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_needle_hides_no_shorter_one() {
        for needles in [["quokkas", "quokka"], ["quokka", "quokkas"], ["quokka", "quokka"]] {
            let multi = Multi::new(&needles).expect("needles");
            assert_eq!(multi.find(b"a quokkas"), Some((2, 6)));
        }
        assert!(Multi::new::<&str>(&[]).is_none());
        assert!(!Multi::new(&["ab", "cd"]).expect("needles").is_match(b"a b c d"));
    }
}
