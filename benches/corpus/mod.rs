//! Writes a folder of invented Claude Code logs of the requested size. This file chooses the
//! sessions and what is planted in them; `log` writes the records, `tools` has calls and results,
//! and `text` the words.
//!
//! Sizes, shares and frequencies follow real logs. The same seed and size give the same bytes.

pub(crate) mod agents;
mod log;
mod text;
mod tools;

use std::path::Path;

use log::Log;
use text::{Language, Random};

/// A word in one event of every 16th session. The next three constants are planted as often.
pub(crate) const RARE_WORD: &str = "zyzzogeton";

/// A phrase of common words that occur together in no other event.
pub(crate) const PHRASE: &str = "lazy proxy quorum";

/// A word with a character outside ASCII.
pub(crate) const FOREIGN_WORD: &str = "wärmezähler";

/// A pattern that finds the planted ids among many that begin alike.
pub(crate) const ERROR_ID: &str = "err_[0-9]{5}_quokka";

/// Common words that occur together in one event of every 32nd session and nowhere else.
pub(crate) const TOGETHER: [&str; 3] = ["jitter", "quota", "frozen"];

/// The number of the session that ends with [`QUESTION`] and [`ANSWER`].
pub(crate) const ANSWER_SESSION: usize = 20;

/// A prompt that has only one rare word.
pub(crate) const QUESTION: &str =
    "why does the flumox cache poison the widget ledger after a restart?";

/// The answer that a search for [`QUESTION`] must find first, together with the question itself.
pub(crate) const ANSWER: &str = "the flumox cache does poison the widget ledger: after a restart it \
    replays stale pages before the ledger is locked, so widgets are counted from an old flumox \
    page. clear the flumox cache first and the ledger is right after every restart.";

/// Sentences that contain common words of [`QUESTION`], but not the rare one.
const DECOYS: [&str; 4] = [
    "why does the cache lose the widget after a restart",
    "the widget ledger is right, the cache is stale after the restart",
    "a stale page in the cache does poison the ledger",
    "why the restart opens the ledger before the widget cache",
];

/// Bytes of a session: the median, the standard deviation in quarters of a doubling, and the
/// limits.
const MEDIAN: u64 = 300 << 10;
const QUARTERS: u64 = 7;
const SMALLEST: u64 = 20 << 10;
const LARGEST: u64 = 20 << 20;

/// The numbers of what was written, and of the events that contain each planted text.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Corpus {
    pub bytes: u64,
    pub sessions: usize,
    pub rare_words: usize,
    pub phrases: usize,
    pub foreign_words: usize,
    pub error_ids: usize,
    pub together: usize,
    pub decoys: usize,
}

impl Corpus {
    /// Writes about `bytes` of logs as `<dir>/<project>/<session id>.jsonl`.
    pub(crate) fn generate(dir: &Path, seed: u64, bytes: u64) -> std::io::Result<Self> {
        let mut random = Random(seed);
        let language = Language::new(&mut random);
        // Even the smallest corpus has enough sessions for everything that is planted.
        let largest = LARGEST.min(bytes / 32).max(SMALLEST);
        let mut corpus = Self::default();
        while corpus.bytes + SMALLEST <= bytes {
            let number = corpus.sessions;
            let size = random.around(MEDIAN, QUARTERS).clamp(SMALLEST, largest);
            let size = size.min(bytes - corpus.bytes);
            let mut log = Log::create(dir, number, &language, Random(random.next()))?;
            log.converse(size, corpus.plants(number))?;
            if number == ANSWER_SESSION {
                log.exchange(QUESTION, ANSWER)?;
            }
            corpus.bytes += log.finish()?;
            corpus.sessions += 1;
        }
        Ok(corpus)
    }

    /// Returns the id of a session, which depends only on its number and not on the seed.
    pub(crate) fn session_id(number: usize) -> String {
        Random(number as u64).uuid()
    }

    /// Counts and returns the texts to plant in a session, each in an event of its own.
    fn plants(&mut self, number: usize) -> Vec<String> {
        let mut plants = Vec::new();
        let mut plant = |every: usize, first: usize, count: &mut usize, text: String| {
            if number % every == first {
                *count += 1;
                plants.push(text);
            }
        };
        let [a, b, c] = TOGETHER;
        plant(16, 3, &mut self.rare_words, RARE_WORD.to_owned());
        plant(16, 6, &mut self.phrases, PHRASE.to_owned());
        plant(16, 9, &mut self.foreign_words, FOREIGN_WORD.to_owned());
        plant(16, 12, &mut self.error_ids, format!("err_{:05}_quokka", number * 7919 % 100_000));
        plant(32, 15, &mut self.together, format!("{c} since the {b} went to another {a}"));
        plant(4, 1, &mut self.decoys, DECOYS[number / 4 % DECOYS.len()].to_owned());
        plants
    }
}
