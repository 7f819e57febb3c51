//! Remembers which events of a ranking were shown, in a few bytes each.
//!
//! Scores change when logs are ingested, because every event changes how rare words are, and the
//! events next to it. A score could therefore not say where a next page begins: events would come
//! twice or not at all.

use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use store::Snapshot;

/// Bytes of a hash. Of a million events, one in a million is taken for one that was shown.
const HASH_BYTES: usize = 5;

/// Most events that are remembered, because a cursor carries them: this many take 45 KB there. A
/// ranking ends after as many.
const MAX_SEEN_EVENTS: usize = 5000;

/// The end of a page of ranked results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankedPosition {
    /// The hashes of all events until there, in base64.
    #[serde(rename = "s")]
    seen: String,
}

/// The events that were shown on earlier pages.
#[derive(Debug, Clone, Default)]
pub(super) struct SeenEvents {
    hashes: Vec<u64>,
    known: HashSet<u64>,
}

impl SeenEvents {
    /// Reads the events that were shown before a page begins.
    pub(super) fn until(position: Option<&RankedPosition>) -> Self {
        let bytes = position.and_then(|end| URL_SAFE_NO_PAD.decode(&end.seen).ok());
        let mut seen = Self::default();
        for chunk in bytes.unwrap_or_default().chunks_exact(HASH_BYTES) {
            let mut whole = [0; 8];
            whole[..HASH_BYTES].copy_from_slice(chunk);
            seen.push(u64::from_le_bytes(whole));
        }
        seen
    }

    /// Adds an event.
    pub(super) fn add(&mut self, session_id: &str, event_index: u32) {
        self.push(hash_event(session_id, event_index));
    }

    fn push(&mut self, hash: u64) {
        self.hashes.push(hash);
        self.known.insert(hash);
    }

    /// True if the event at an index of the session at a position was shown.
    pub(super) fn contains(&self, snapshot: &Snapshot, session: usize, event_index: u32) -> bool {
        !self.hashes.is_empty() && self.contains_id(snapshot.sessions()[session].id(), event_index)
    }

    fn contains_id(&self, session_id: &str, event_index: u32) -> bool {
        self.known.contains(&hash_event(session_id, event_index))
    }

    /// True if no further page is possible.
    pub(super) fn is_full(&self) -> bool {
        self.hashes.len() >= MAX_SEEN_EVENTS
    }

    /// Returns about how many bytes of a cursor these events take, which encodes them twice.
    pub(super) fn cursor_bytes(&self) -> usize {
        self.hashes.len() * HASH_BYTES * 16 / 9
    }

    /// Returns the end of a page that shows these events last.
    pub(super) fn position(&self) -> RankedPosition {
        let hashes = self.hashes.iter();
        let bytes: Vec<u8> =
            hashes.flat_map(|hash| hash.to_le_bytes().into_iter().take(HASH_BYTES)).collect();
        RankedPosition { seen: URL_SAFE_NO_PAD.encode(bytes) }
    }
}

fn hash_event(session_id: &str, event_index: u32) -> u64 {
    let hash = xxh3_64_with_seed(session_id.as_bytes(), u64::from(event_index));
    hash & ((1 << (8 * HASH_BYTES)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_remembers_what_was_shown() {
        let mut seen = SeenEvents::until(None);
        seen.add("harbor", 3);
        seen.add("pier", 3);
        let again = SeenEvents::until(Some(&seen.position()));
        assert!(again.contains_id("harbor", 3) && again.contains_id("pier", 3));
        assert!(!again.contains_id("harbor", 4) && !again.is_full());
        assert_eq!(again.position(), seen.position());
    }
}
