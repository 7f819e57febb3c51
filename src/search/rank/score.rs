//! Scores how well a text answers a question. Rare words count most, whole words more than parts,
//! adjacent words more than words apart, and texts of users and agents more than tool output.

use std::borrow::Cow;

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::terms::QueryTerm;
use super::weight_tables::{WeightSums, pair_bits, word_bit};
use crate::base::fold::{fold_text, nfc_if_different};
use crate::search::query::multi::{AnyNeedleFinder, EveryNeedleFinder};

/// BM25 parameter `k1`: how soon further occurrences of a word stop counting.
const SATURATION: f64 = 1.2;

/// The share of answers that are of the right session, by the share of the question's weight that the
/// best match covers: measured on LoCoMo (26 and 30: 0.54 at a third, 0.81 at 0.55; the others alike).
const RIGHT_PER_SHARE: f64 = 1.45;

/// The largest confidence: one in ten questions whose words a match has is about another session.
const MAX_CONFIDENCE: f64 = 0.9;

/// BM25 parameter `b`: how much long texts are penalized.
const LENGTH_PENALTY: f64 = 0.6;

/// The part of a word's weight that does not depend on how often the word occurs.
pub(super) const ONCE_SHARE: f64 = 0.4;

/// The share of the score that depends on how much of the question is covered.
const COVERAGE_SHARE: f64 = 0.6;

/// Maximum distance in bytes at which two neighbours of the question still count as adjacent.
const MAX_PAIR_GAP_BYTES: usize = 40;

/// The weight of a pair of adjacent words, relative to the lighter word.
const PAIR_WEIGHT: f64 = 0.4;

/// The share of the score that fades with age.
const FADING_SHARE: f64 = 0.1;

/// The half-life of [`FADING_SHARE`] in microseconds: 30 days.
const HALF_LIFE_US: f64 = 30.0 * 86_400e6;

/// An event is found by one word alone only if the word has at least this share of the weight of
/// the heaviest word.
const MIN_ESSENTIAL_SHARE: f64 = 0.5;

/// A word counts only if it has at least this share of the weight of the heaviest word: every text
/// has some of the lighter words.
const MIN_COUNTED_SHARE: f64 = 0.15;

/// Maximum length in bytes of the place that is shown of a text.
const MAX_PLACE_BYTES: usize = 160;

/// The inputs of a score in addition to the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TermWeights {
    /// The weight of every term by its rarity, in thousandths; 0 for terms that do not count.
    pub(super) terms: Vec<u32>,
    /// Average length of a text in bytes.
    pub(super) average: u64,
    /// Time of the newest event, from which age is measured, in microseconds.
    pub(super) newest: i64,
    /// Total weight of the words that no event has: they are still part of the question.
    pub(super) absent: u32,
}

/// The words of a question, prepared for searching.
pub(super) struct Scorer {
    pub(super) terms: Vec<QueryTerm>,
    pub(super) weights: TermWeights,
    /// True if no term has letters beyond ASCII, so that folding ASCII is enough.
    pub(super) is_ascii: bool,
    /// The stems of the terms that count.
    stems: EveryNeedleFinder,
    /// Weights of the terms, and of pairs of adjacent neighbours, stored under the second term.
    pub(super) term_sums: WeightSums,
    pair_sums: WeightSums,
    /// Total weight of all terms.
    pub(super) total_weight: f64,
}

/// The score of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TextScore {
    pub(super) score: f64,
    /// How likely a best match like this is of the right session, at most [`MAX_CONFIDENCE`].
    pub(super) confidence: f64,
}

impl Scorer {
    pub(super) fn new(terms: Vec<QueryTerm>, mut weights: TermWeights) -> Self {
        let heaviest = weights.terms.iter().copied().max().unwrap_or(0);
        for weight in &mut weights.terms {
            if f64::from(*weight) < f64::from(heaviest) * MIN_COUNTED_SHARE {
                *weight = 0;
            }
        }

        let counted = (0..terms.len()).filter(|term| weights.terms[*term] > 0);
        let stems = EveryNeedleFinder::new(counted.map(|term| (term, terms[term].stem.as_str())));

        let term_weights = weights.terms.iter().map(|weight| f64::from(*weight) / 1000.0);
        let term_weights: Vec<f64> = term_weights.collect();
        let mut pair_weights = vec![0.0; term_weights.len()];
        for second in 1..term_weights.len() {
            pair_weights[second] = term_weights[second].min(term_weights[second - 1]);
        }

        Self {
            is_ascii: terms.iter().all(|term| term.stem.is_ascii()),
            stems,
            term_sums: WeightSums::new(&term_weights),
            pair_sums: WeightSums::new(&pair_weights),
            total_weight: term_weights.iter().sum(),
            terms,
            weights,
        }
    }

    /// Returns a search for the essential words: an event must have at least one. These are the
    /// heavy words, without the lightest that together with all lighter words cannot reach
    /// `threshold`, the score to beat.
    pub(super) fn essential_words(&self, threshold: f64) -> Option<AnyNeedleFinder> {
        let heaviest = (0..self.terms.len()).map(|term| self.term_weight(term)).fold(0.0, f64::max);
        let mut lightest_first: Vec<usize> = (0..self.terms.len()).collect();
        lightest_first.sort_by_key(|term| self.weights.terms[*term]);

        let mut lighter = 0;
        let mut stems = Vec::new();
        for term in lightest_first {
            lighter |= word_bit(term);
            let can_reach = self.max_score(lighter, Some(self.weights.newest)) >= threshold;
            if can_reach && self.term_weight(term) >= heaviest * MIN_ESSENTIAL_SHARE {
                stems.push(&self.terms[term].stem);
            }
        }
        AnyNeedleFinder::new(&stems)
    }

    /// Returns the maximum score of a prompt or message with these terms (a bit each) at the
    /// time `newest`.
    pub(super) fn max_score(&self, terms: u64, newest: Option<i64>) -> f64 {
        let words = self.term_sums.weight_of(terms);
        let pairs = self.pair_sums.weight_of(pair_bits(terms));
        (words + PAIR_WEIGHT * pairs)
            * coverage_factor(words, self.total_weight)
            * self.age_factor(newest)
    }

    /// Returns the number of occurrences that are worth half of infinitely many, in a text of
    /// `length` bytes.
    pub(super) fn half_saturation(&self, length: f64) -> f64 {
        let average = self.weights.average.max(1) as f64;
        SATURATION * (1.0 - LENGTH_PENALTY + LENGTH_PENALTY * length / average)
    }

    /// Scores a text that is composed and folded.
    pub(super) fn score_text(&self, text: &[u8], kind: EventType, time: Option<i64>) -> TextScore {
        let mut counts = vec![0.0f64; self.terms.len()];
        let mut quality = vec![0.0f64; self.terms.len()];
        let mut last_ends = vec![None; self.terms.len()];
        let mut together = vec![false; self.terms.len()];
        self.stems.for_each_hit(text, &mut |term, start, end| {
            let fit = self.rate_occurrence(text, term, start, end);
            counts[term] += fit;
            quality[term] = quality[term].max(fit);
            if term > 0 && is_near(last_ends[term - 1], start) {
                together[term] = true;
            }
            if is_near(last_ends.get(term + 1).copied().flatten(), start) {
                together[term + 1] = true;
            }
            last_ends[term] = Some(end);
        });

        let held_back = self.half_saturation(text.len() as f64);
        let mut words = 0.0;
        let mut pairs = 0.0;
        let mut covered = 0.0;
        for term in 0..self.terms.len() {
            let weight = self.term_weight(term);
            let often = counts[term] / (counts[term] + held_back);
            words += weight * quality[term].sqrt() * (ONCE_SHARE + (1.0 - ONCE_SHARE) * often);
            covered += weight * quality[term];
            if together[term] {
                pairs += weight.min(self.term_weight(term - 1));
            }
        }

        let score = (words + PAIR_WEIGHT * pairs)
            * coverage_factor(covered, self.total_weight)
            * type_weight(kind)
            * self.age_factor(time);
        let query_weight = self.total_weight + f64::from(self.weights.absent) / 1000.0;
        let share = covered / f64::max(query_weight, f64::MIN_POSITIVE);
        TextScore { score, confidence: f64::min(share * RIGHT_PER_SHARE, MAX_CONFIDENCE) }
    }

    /// Rates an occurrence: 1 for the word itself in another form, less for the beginning of a
    /// longer word, least for the middle of one.
    fn rate_occurrence(&self, text: &[u8], term: usize, start: usize, end: usize) -> f64 {
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        let begins_word = !before.is_some_and(u8::is_ascii_alphanumeric);
        let more = text[end..].iter().take(5).take_while(|byte| byte.is_ascii_alphanumeric());
        let more = more.count();
        if !begins_word {
            return if more == 0 { 0.5 } else { 0.25 };
        }

        let ending = self.terms[term].ending;
        if more == ending {
            1.0
        } else if ending > 0 && more <= 4 {
            0.95
        } else if more <= 2 {
            0.9
        } else {
            0.6
        }
    }

    fn term_weight(&self, term: usize) -> f64 {
        f64::from(self.weights.terms[term]) / 1000.0
    }

    /// Returns the factor that lowers the score of older events, between 1 minus
    /// [`FADING_SHARE`] and 1.
    pub(super) fn age_factor(&self, time: Option<i64>) -> f64 {
        let age = match time {
            Some(time) => self.weights.newest.saturating_sub(time).max(0) as f64,
            None => f64::INFINITY,
        };
        1.0 - FADING_SHARE + FADING_SHARE * (-age / HALF_LIFE_US).exp2()
    }

    /// Returns the place in `text` where the heaviest words of the question occur close together.
    pub(super) fn find_best_place(&self, text: &str) -> Option<(usize, usize)> {
        let form = folded_form(text);
        // A text whose length changed is shown from its beginning.
        if form.len() != text.len() {
            return None;
        }
        let mut found = Vec::new();
        self.stems
            .for_each_hit(form.as_bytes(), &mut |term, start, end| found.push((term, start, end)));

        let mut best_weight = 0.0;
        let mut best_place = None;
        for (at, &(_, first, mut reach)) in found.iter().enumerate() {
            let last = first + MAX_PLACE_BYTES;
            let within = found[at..].iter().take_while(|(_, _, end)| *end <= last);
            let mut seen = vec![false; self.terms.len()];
            let mut weight = 0.0;
            for &(term, start, end) in within {
                if !std::mem::replace(&mut seen[term], true) {
                    weight += self.term_weight(term)
                        * self.rate_occurrence(form.as_bytes(), term, start, end);
                    reach = reach.max(end);
                }
            }
            if weight > best_weight {
                best_weight = weight;
                best_place = Some((first, reach));
            }
        }
        best_place
    }
}

/// Returns true if a word that starts at `start` is adjacent to one that ends at `end`.
fn is_near(end: Option<usize>, start: usize) -> bool {
    end.is_some_and(|end| start <= end + MAX_PAIR_GAP_BYTES)
}

/// Returns the factor that rewards a text for the share of the question's weight that it covers.
pub(super) fn coverage_factor(covered: f64, all: f64) -> f64 {
    1.0 - COVERAGE_SHARE + COVERAGE_SHARE * covered / f64::max(all, f64::MIN_POSITIVE)
}

/// Returns the form of a text that is scored: composed and folded.
pub(super) fn folded_form(text: &str) -> Cow<'_, str> {
    match nfc_if_different(text) {
        Some(composed) => Cow::Owned(fold_text(&composed).into_owned()),
        None => fold_text(text),
    }
}

/// Returns the form of a text that is scored. If `ascii` is true, all terms are ASCII and only
/// ASCII letters are lowered. `lower` is a scratch buffer.
pub(super) fn scored_form<'t>(text: &[u8], lower: &'t mut Vec<u8>, ascii: bool) -> Cow<'t, [u8]> {
    if !ascii
        && !text.is_ascii()
        && let Ok(text) = std::str::from_utf8(text)
    {
        return folded_form(text).into_owned().into_bytes().into();
    }
    lower.clear();
    lower.extend_from_slice(text);
    lower.make_ascii_lowercase();
    lower.as_slice().into()
}

/// Returns the weight, in thousandths, of a word that `events` of `all` events have; at least 1.
pub(super) fn rarity_weight(events: f64, all: f64) -> u32 {
    let weight = (1.0 + (all - events + 0.5).max(0.0) / (events + 0.5)).ln();
    (weight * 1000.0).round().max(1.0) as u32
}

/// Returns the weight of an event type: texts of users and agents answer questions, tool output
/// only contains the words.
pub(super) const fn type_weight(kind: EventType) -> f64 {
    match kind {
        EventType::User | EventType::Message => 1.0,
        EventType::Reasoning => 0.7,
        EventType::ToolCall => 0.55,
        EventType::ToolResult => 0.5,
        EventType::Notification => 0.45,
        EventType::TokenUsage => 0.1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::terms::ranked_terms;
    use super::*;
    use crate::search::query::Query;
    use schemas::Timestamp;

    fn scorer(query: &str) -> Scorer {
        let query = Query::parse(query, Timestamp(0)).expect("parses");
        let terms = ranked_terms(&query);
        let weights =
            TermWeights { terms: vec![1000; terms.len()], average: 100, newest: 0, absent: 0 };
        Scorer::new(terms, weights)
    }

    fn score(scorer: &Scorer, text: &str, kind: EventType) -> TextScore {
        scorer.score_text(folded_form(text).as_bytes(), kind, Some(0))
    }

    #[test]
    fn words_lose_endings_and_punctuation() {
        let stems = |query| -> Vec<String> {
            scorer(query).terms.into_iter().map(|term| term.stem).collect()
        };
        assert_eq!(
            stems("Why did the builds fail, and where?"),
            ["why", "did", "the", "build", "fail", "and", "wher"]
        );
        assert_eq!(stems("caching caches is"), ["cach"]);
        assert_eq!(stems("is it"), ["is", "it"]);
        assert_eq!(stems("连接失败 main.rs"), ["连接", "接失", "失败", "main.rs"]);
        assert_eq!(stems("\"The Builds\""), ["the builds"]);
    }

    #[test]
    fn together_beats_apart_whole_beats_part_prompt_beats_output() {
        let scorer = scorer("cache poisoning");
        let message = |text| score(&scorer, text, EventType::Message).score;
        let apart = format!("cache {} poisoning", "x ".repeat(60));
        let near = format!("cache poisoning {}", "x ".repeat(60));
        assert!(message(&near) > message(&apart));
        assert!(message("the cache is poisoned") > message("xcachex unpoisonedly"));
        let output = score(&scorer, "cache poisoning", EventType::ToolResult).score;
        assert!(message("cache poisoning") > output);
        let old =
            scorer.score_text(b"cache poisoning", EventType::Message, Some(-90 * 86_400_000_000));
        assert!(message("cache poisoning") > old.score);
    }

    #[test]
    fn confidence_follows_the_share_covered() {
        let scorer = scorer("cache poisoning");
        let confidence = |text| score(&scorer, text, EventType::Message).confidence;
        assert_eq!(confidence("Cache poisoning"), MAX_CONFIDENCE);
        assert_eq!(confidence("only the cache"), 0.5 * RIGHT_PER_SHARE);
        assert_eq!(confidence("nothing"), 0.0);
    }

    #[test]
    fn no_text_scores_above_its_bound() {
        let scorer = scorer("cache poisoning ledger");
        let text = "cache poisoning ledger ".repeat(500);
        let bound = scorer.max_score(u64::MAX, Some(0));
        assert!(score(&scorer, &text, EventType::User).score <= bound);
        assert!(scorer.max_score(word_bit(0), Some(0)) < bound);
    }

    #[test]
    fn the_place_is_where_the_words_stand_together() {
        let scorer = scorer("cache poisoning");
        let text = format!("cache {} a cache with poisoning.", "x ".repeat(200));
        let (from, to) = scorer.find_best_place(&text).expect("found");
        assert_eq!(&text[from..to], "cache with poison");
    }
}
