//! Searches for several needles at once: the first hit of any, or every hit of each.

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

/// Finds every hit of every needle, including overlapping ones.
pub(crate) struct EveryNeedleFinder {
    any: Option<AnyNeedleFinder>,
    /// The needles with their numbers, sorted by bytes, so that those with a common prefix are
    /// adjacent.
    needles: Vec<(Vec<u8>, usize)>,
}

impl EveryNeedleFinder {
    /// Creates a searcher for numbered needles.
    pub(crate) fn new<'n>(needles: impl Iterator<Item = (usize, &'n str)>) -> Self {
        let mut needles: Vec<_> =
            needles.map(|(number, needle)| (needle.as_bytes().to_vec(), number)).collect();
        needles.sort_unstable();
        let bytes: Vec<&[u8]> = needles.iter().map(|(needle, _)| needle.as_slice()).collect();
        Self { any: AnyNeedleFinder::new(&bytes), needles }
    }

    /// Calls `found` with the number, start and end of each hit, in the order of their starts.
    pub(crate) fn for_each_hit(&self, haystack: &[u8], found: &mut dyn FnMut(usize, usize, usize)) {
        let Some(any) = &self.any else { return };
        let mut search_start = 0;
        while let Some((at, length)) = any.find(&haystack[search_start..]) {
            let rest = &haystack[search_start + at..];
            // The hit is the shortest needle with this beginning.
            let first =
                self.needles.partition_point(|(needle, _)| needle.as_slice() < &rest[..length]);
            for (needle, number) in &self.needles[first..] {
                if !needle.starts_with(&rest[..length]) {
                    break;
                }
                if rest.starts_with(needle) {
                    found(*number, search_start + at, search_start + at + needle.len());
                }
            }
            search_start += at + 1;
        }
    }
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

    #[test]
    fn every_place_is_found() {
        let found = |needles: &[&str], haystack: &str| {
            let mut found = Vec::new();
            let every = EveryNeedleFinder::new(needles.iter().copied().enumerate());
            every.for_each_hit(haystack.as_bytes(), &mut |number, start, end| {
                assert_eq!(&haystack[start..end], needles[number]);
                found.push((start, number));
            });
            found.sort_unstable();
            found
        };
        assert_eq!(found(&["fail", "failur", "ilu"], "a failure"), [(2, 0), (2, 1), (4, 2)]);
        assert_eq!(found(&["aa"], "aaaa"), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(found(&["ab", "ab"], "xab"), [(1, 0), (1, 1)]);
        assert_eq!(found(&[], "a"), []);
        // Enough needles that an automaton is used.
        let words: Vec<String> = (0..300).map(|number| format!("w{number}x")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        assert_eq!(found(&words, "w7x w299xw29x"), [(0, 7), (4, 299), (9, 29)]);
    }
}
