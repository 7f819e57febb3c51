//! Which records of a log are copies of another log's.

use std::collections::HashSet;

/// Records of other streams that this one may repeat.
#[derive(Debug, Default)]
pub enum History {
    /// Nothing to compare with.
    #[default]
    None,
    /// Records have ids of their own: a copy is known wherever it stands.
    Ids(HashSet<u64>),
    /// Records are known by their content, which may repeat by chance: only a run that follows
    /// the parent's order counts as copied.
    Sequence(Vec<u64>),
}

/// How far ahead the next copied record may stand in the parent's sequence; records that gave no
/// event are missing from it on either side.
const SEQUENCE_WINDOW: usize = 64;

impl History {
    /// Whether `hash` is a copy; `at` is the place in the sequence reached so far.
    pub(crate) fn contains(&self, hash: u64, at: &mut usize) -> bool {
        match self {
            Self::None => false,
            Self::Ids(hashes) => hashes.contains(&hash),
            Self::Sequence(hashes) => {
                let from = (*at).min(hashes.len());
                let to = (from + SEQUENCE_WINDOW).min(hashes.len());
                let found = hashes[from..to].iter().position(|other| *other == hash);
                if let Some(found) = found {
                    *at = from + found + 1;
                }
                found.is_some()
            }
        }
    }
}
