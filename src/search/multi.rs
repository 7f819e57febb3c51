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
        let kind = packed::MatchKind::LeftmostFirst;
        let mut builder = packed::Config::new().match_kind(kind).builder();
        match builder.extend(needles).build() {
            Some(packed) => Some(Self::Packed(packed)),
            None => {
                let mut builder = AhoCorasick::builder();
                builder.match_kind(MatchKind::LeftmostFirst);
                builder.build(needles).ok().map(Self::Automaton)
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
