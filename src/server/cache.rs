//! A cache of answers for repeated calls, valid for a short time and only until the state that they
//! depend on changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use schemas::envelope::JsonAnswer;

/// Maximum number of bytes of JSON in the cache.
const MAX_CACHE_BYTES: usize = 4 << 20;

/// Answers by call, all from one state of the store.
pub(super) struct AnswerCache {
    lifetime: Duration,
    kept: Mutex<CachedAnswers>,
}

#[derive(Default)]
struct CachedAnswers {
    /// The result of [`tools::Tools::answer_state`] when the answers were computed.
    state: u64,
    answers: HashMap<String, CachedAnswer>,
    bytes: usize,
}

struct CachedAnswer {
    answer: Arc<JsonAnswer>,
    bytes: usize,
    at: Instant,
}

impl AnswerCache {
    pub(super) fn new(lifetime: Duration) -> Self {
        Self { lifetime, kept: Mutex::default() }
    }

    /// Returns the cached answer to `call` for this state of the store.
    pub(super) fn get(&self, state: u64, call: &str) -> Option<Arc<JsonAnswer>> {
        let kept = self.lock_for_state(state);
        let entry = kept.answers.get(call)?;
        (entry.at.elapsed() < self.lifetime).then(|| Arc::clone(&entry.answer))
    }

    /// Stores an answer.
    pub(super) fn insert(&self, state: u64, call: String, answer: &JsonAnswer) {
        // The text of the call is stored with its answer.
        let bytes = call.len() + answer.metadata.tokens * schemas::limits::BYTES_PER_TOKEN;
        if bytes > MAX_CACHE_BYTES {
            return;
        }
        let mut kept = self.lock_for_state(state);
        kept.answers.retain(|_, entry| entry.at.elapsed() < self.lifetime);
        kept.bytes = kept.answers.values().map(|entry| entry.bytes).sum();
        while kept.bytes + bytes > MAX_CACHE_BYTES {
            let oldest = kept.answers.iter().min_by_key(|(_, entry)| entry.at);
            let Some(oldest) = oldest.map(|(call, _)| call.clone()) else { break };
            kept.remove(&oldest);
        }
        kept.remove(&call);
        kept.bytes += bytes;
        let entry = CachedAnswer { answer: Arc::new(answer.clone()), bytes, at: Instant::now() };
        kept.answers.insert(call, entry);
    }

    /// Returns the cache of this state of the store. Answers of any other state are dropped.
    fn lock_for_state(&self, state: u64) -> MutexGuard<'_, CachedAnswers> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.state != state {
            *kept = CachedAnswers { state, ..CachedAnswers::default() };
        }
        kept
    }
}

impl CachedAnswers {
    fn remove(&mut self, call: &str) {
        if let Some(entry) = self.answers.remove(call) {
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schemas::envelope::{Metadata, Status};
    use serde_json::value::RawValue;

    fn answer(tokens: usize) -> JsonAnswer {
        JsonAnswer {
            status: Status::Ok,
            data: RawValue::NULL.to_owned(),
            pagination: None,
            hint: None,
            warnings: Vec::new(),
            metadata: Metadata { tokens, ..Metadata::default() },
        }
    }

    #[test]
    fn answers_live_for_a_time_in_one_state_of_the_store() {
        let cache = AnswerCache::new(Duration::from_secs(60));
        cache.insert(1, "a".to_owned(), &answer(7));
        assert_eq!(cache.get(1, "a").map(|answer| answer.metadata.tokens), Some(7));
        assert!(cache.get(1, "b").is_none());
        assert!(cache.get(2, "a").is_none() && cache.get(1, "a").is_none(), "the store changed");
        let brief = AnswerCache::new(Duration::ZERO);
        brief.insert(1, "a".to_owned(), &answer(7));
        assert!(brief.get(1, "a").is_none());
    }

    #[test]
    fn the_oldest_go_when_there_is_no_room() {
        let cache = AnswerCache::new(Duration::from_secs(60));
        let large = answer(MAX_CACHE_BYTES / 10);
        for call in ["a", "b", "a", "c"] {
            cache.insert(1, call.to_owned(), &large);
        }
        assert!(cache.get(1, "b").is_none() && cache.get(1, "a").is_some());
        assert!(cache.kept.lock().expect("kept").bytes <= MAX_CACHE_BYTES);
        cache.insert(1, "d".to_owned(), &answer(MAX_CACHE_BYTES));
        assert!(cache.get(1, "d").is_none() && cache.get(1, "c").is_some());
    }
}
