//! Searches for several needles at once: the first hit of any, or every hit of each.

use aho_corasick::{AhoCorasick, MatchKind, packed};

/// Finds any of several needles: with SIMD if they are few, else with an automaton.
pub(crate) enum Multi {
    Packed(packed::Searcher),
    Automaton(AhoCorasick),
}

impl Multi {
    /// Returns `None` if there are no needles, or too many for an automaton, which no query
    /// has.
    pub(crate) fn new<N: AsRef<[u8]>>(needles: &[N]) -> Option<Self> {
        if needles.is_empty() {
            return None;
        }
        // A needle that begins with another is found with it. As a separate hit it could hide
        // the other one if the end of a text cuts it off.
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

/// Finds every hit of every needle, including overlapping ones.
pub(crate) struct Every {
    any: Option<Multi>,
    /// The needles with their numbers, sorted by bytes, so that those with a common prefix are
    /// adjacent.
    needles: Vec<(Vec<u8>, usize)>,
}

impl Every {
    /// Creates a searcher for numbered needles.
    pub(crate) fn new<'n>(needles: impl Iterator<Item = (usize, &'n str)>) -> Self {
        let mut needles: Vec<_> =
            needles.map(|(number, needle)| (needle.as_bytes().to_vec(), number)).collect();
        needles.sort_unstable();
        let bytes: Vec<&[u8]> = needles.iter().map(|(needle, _)| needle.as_slice()).collect();
        Self { any: Multi::new(&bytes), needles }
    }

    /// Calls `found` with the number, start and end of each hit, in the order of their starts.
    pub(crate) fn each(&self, haystack: &[u8], found: &mut dyn FnMut(usize, usize, usize)) {
        let Some(any) = &self.any else { return };
        let mut from = 0;
        while let Some((at, length)) = any.find(&haystack[from..]) {
            let rest = &haystack[from + at..];
            // The hit is the shortest needle with this beginning.
            let first =
                self.needles.partition_point(|(needle, _)| needle.as_slice() < &rest[..length]);
            let alike = self.needles[first..].iter();
            for (needle, number) in
                alike.take_while(|(needle, _)| needle.starts_with(&rest[..length]))
            {
                if rest.starts_with(needle) {
                    found(*number, from + at, from + at + needle.len());
                }
            }
            from += at + 1;
        }
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

    #[test]
    fn every_place_is_found() {
        let found = |needles: &[&str], haystack: &str| {
            let mut found = Vec::new();
            let every = Every::new(needles.iter().copied().enumerate());
            every.each(haystack.as_bytes(), &mut |number, start, end| {
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
