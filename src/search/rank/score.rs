//! Scores how well a text answers a question. Rare words count most, whole words more than parts,
//! adjacent words more than words apart, and texts of users and agents more than tool output.

use std::borrow::Cow;

use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::weight_tables::{Sums, bit, neighbours};
use crate::base::fold::{composed, fold};
use crate::base::stem::stem;
use crate::search::query::Query;
use crate::search::query::multi::{Every, Multi};
use crate::search::query::pattern::Pattern;

/// BM25 parameters: how soon further occurrences of a word stop counting, and how much long texts
/// are penalized.
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.6;

/// The part of a word's weight that does not depend on how often the word occurs.
pub(super) const ONCE: f64 = 0.4;

/// The share of the score that depends on how much of the question is covered.
const COVERAGE: f64 = 0.6;

/// Maximum distance in bytes at which two neighbours of the question still count as adjacent, and
/// the weight of such a pair.
const NEAR: usize = 40;
const TOGETHER: f64 = 0.4;

/// The share of the score that fades with age, and its half-life in microseconds: 30 days.
const FADING: f64 = 0.1;
const HALF_LIFE: f64 = 30.0 * 86_400e6;

/// A word must weigh the share `TELLING` of the heaviest word for an event to be found by it alone,
/// and the share `COUNTS` to count at all: every text has some of the lighter words.
const TELLING: f64 = 0.5;
const COUNTS: f64 = 0.15;

/// One word of the question.
#[derive(Debug, Clone)]
pub(super) struct Term {
    /// The text to search for: folded and without its ending.
    pub(super) stem: String,
    /// Number of bytes of the removed ending.
    ending: usize,
}

/// The inputs of a score besides the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Weights {
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
    pub(super) terms: Vec<Term>,
    pub(super) weights: Weights,
    /// True if no term has letters beyond ASCII, so that folding ASCII is enough.
    pub(super) ascii: bool,
    /// The stems of the terms that count.
    stems: Every,
    /// Weights of the terms, and of pairs of adjacent neighbours, stored under the second term.
    pub(super) sums: Sums,
    pairs: Sums,
    /// Total weight of all terms.
    pub(super) all: f64,
}

/// The score of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score {
    pub(super) score: f64,
    /// The share of the question's weight that the text covers, 0 to 1.
    pub(super) confidence: f64,
}

/// Returns the words of a query by which results are ranked.
pub(super) fn terms(query: &Query) -> Vec<Term> {
    let positive = query.clauses.iter().filter(|clause| !clause.excluded);
    let mut terms: Vec<Term> = Vec::new();
    let mut add = |term: Term| {
        if terms.iter().all(|known| known.stem != term.stem) {
            terms.push(term);
        }
    };
    for clause in positive {
        for pattern in &clause.any {
            let Pattern::Text(text) = pattern else { continue };
            let folded = fold(&composed(text).unwrap_or_else(|| text.clone())).into_owned();
            if clause.optional {
                words(&folded).for_each(&mut add);
            } else {
                add(Term { stem: folded, ending: 0 });
            }
        }
    }
    // Words of one or two bytes count only if there are no longer ones.
    if terms.iter().any(|term| term.stem.len() > 2) {
        terms.retain(|term| term.stem.len() > 2);
    }
    terms
}

/// Splits a folded text into words: runs without spaces and outer punctuation. Chinese, Japanese
/// and Korean text, which has no spaces, is split into pairs of characters.
fn words(text: &str) -> impl Iterator<Item = Term> {
    let mut words = Vec::new();
    for run in text.split_whitespace() {
        let run = run.trim_matches(|c: char| c.is_ascii_punctuation() && !matches!(c, '_' | '/'));
        let chars: Vec<char> = run.chars().collect();
        for part in chars.chunk_by(|a, b| is_cjk(*a) == is_cjk(*b)) {
            if is_cjk(part[0]) && part.len() > 1 {
                let pairs = part.windows(2).map(|pair| pair.iter().collect());
                words.extend(pairs.map(|stem| Term { stem, ending: 0 }));
            } else {
                let word: String = part.iter().collect();
                let stem = stem(&word).to_owned();
                words.push(Term { ending: word.len() - stem.len(), stem });
            }
        }
    }
    words.into_iter().filter(|term| !term.stem.is_empty())
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}')
}

impl Scorer {
    pub(super) fn new(terms: Vec<Term>, mut weights: Weights) -> Self {
        let heaviest = weights.terms.iter().copied().max().unwrap_or(0);
        for weight in &mut weights.terms {
            if f64::from(*weight) < f64::from(heaviest) * COUNTS {
                *weight = 0;
            }
        }
        let ascii = terms.iter().all(|term| term.stem.is_ascii());
        let stems = (0..terms.len()).filter(|term| weights.terms[*term] > 0);
        let stems = Every::new(stems.map(|term| (term, terms[term].stem.as_str())));
        let of = weights.terms.iter().map(|weight| f64::from(*weight) / 1000.0);
        let of: Vec<f64> = of.collect();
        let of_pair =
            |term: usize| term.checked_sub(1).map_or(0.0, |other| of[term].min(of[other]));
        let pairs: Vec<f64> = (0..of.len()).map(of_pair).collect();
        let (sums, pairs) = (Sums::new(&of), Sums::new(&pairs));
        let all = of.iter().sum();
        Self { terms, weights, ascii, stems, sums, pairs, all }
    }

    /// Returns a search for the essential words: an event must have at least one. These are the
    /// heavy words, without the lightest that together with all lighter words cannot reach
    /// `threshold`, the score to beat.
    pub(super) fn essential(&self, threshold: f64) -> Option<Multi> {
        let heaviest = (0..self.terms.len()).map(|term| self.weight(term)).fold(0.0, f64::max);
        let mut order: Vec<usize> = (0..self.terms.len()).collect();
        order.sort_by_key(|term| self.weights.terms[*term]);
        let mut dropped = 0;
        order.retain(|term| {
            dropped |= bit(*term);
            let needed = self.bound(dropped, Some(self.weights.newest)) >= threshold;
            needed && self.weight(*term) >= heaviest * TELLING
        });
        let stems: Vec<_> = order.iter().map(|term| &self.terms[*term].stem).collect();
        Multi::new(&stems)
    }

    /// Returns the maximum score of a prompt or message with these terms (a [`bit`] each) at the
    /// time `newest`.
    pub(super) fn bound(&self, terms: u64, newest: Option<i64>) -> f64 {
        let words = self.sums.of(terms);
        let pairs = self.pairs.of(neighbours(terms));
        (words + TOGETHER * pairs) * covering(words, self.all) * self.fading(newest)
    }

    /// Returns the number of occurrences that are worth half of infinitely many, in a text of
    /// `length` bytes.
    pub(super) fn held_back(&self, length: f64) -> f64 {
        SATURATION * (1.0 - LENGTH + LENGTH * length / self.weights.average.max(1) as f64)
    }

    /// Scores a text in the form that [`form`] returns.
    pub(super) fn score(&self, text: &[u8], kind: EventType, time: Option<i64>) -> Score {
        let mut counts = vec![0.0f64; self.terms.len()];
        let mut quality = vec![0.0f64; self.terms.len()];
        let mut ends = vec![None; self.terms.len()];
        let mut together = vec![false; self.terms.len()];
        self.stems.each(text, &mut |term, start, end| {
            let fit = self.fit(text, term, start, end);
            counts[term] += fit;
            quality[term] = quality[term].max(fit);
            let near = |other: Option<usize>| other.is_some_and(|end| start <= end + NEAR);
            if term > 0 && near(ends[term - 1]) {
                together[term] = true;
            }
            if near(ends.get(term + 1).copied().flatten()) {
                together[term + 1] = true;
            }
            ends[term] = Some(end);
        });
        let held_back = self.held_back(text.len() as f64);
        let (mut words, mut pairs, mut covered) = (0.0, 0.0, 0.0);
        for term in 0..self.terms.len() {
            let weight = self.weight(term);
            let often = counts[term] / (counts[term] + held_back);
            words += weight * quality[term].sqrt() * (ONCE + (1.0 - ONCE) * often);
            covered += weight * quality[term];
            if together[term] {
                pairs += weight.min(self.weight(term - 1));
            }
        }
        let score = (words + TOGETHER * pairs)
            * covering(covered, self.all)
            * type_weight(kind)
            * self.fading(time);
        let asked = self.all + f64::from(self.weights.absent) / 1000.0;
        Score { score, confidence: covered / f64::max(asked, f64::MIN_POSITIVE) }
    }

    /// Rates an occurrence: 1 for the word itself in another form, less for the beginning of a
    /// longer word, least for the middle of one.
    fn fit(&self, text: &[u8], term: usize, start: usize, end: usize) -> f64 {
        let letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let begins = !letter(start.checked_sub(1).and_then(|at| text.get(at)));
        let more = text[end..].iter().take(5).take_while(|byte| letter(Some(byte))).count();
        match (begins, more) {
            (true, more) if more == self.terms[term].ending => 1.0,
            (true, more) if self.terms[term].ending > 0 && more <= 4 => 0.95,
            (true, more) if more <= 2 => 0.9,
            (true, _) => 0.6,
            (false, 0) => 0.5,
            (false, _) => 0.25,
        }
    }

    pub(super) fn weight(&self, term: usize) -> f64 {
        f64::from(self.weights.terms[term]) / 1000.0
    }

    pub(super) fn fading(&self, time: Option<i64>) -> f64 {
        let age = time
            .map_or(f64::INFINITY, |time| self.weights.newest.saturating_sub(time).max(0) as f64);
        1.0 - FADING + FADING * (-age / HALF_LIFE).exp2()
    }

    /// Returns the place in `text` where the heaviest words of the question occur close together.
    pub(super) fn place(&self, text: &str) -> Option<(usize, usize)> {
        let form = form(text);
        // A text whose length changed is shown from its beginning.
        if form.len() != text.len() {
            return None;
        }
        let mut found = Vec::new();
        self.stems.each(form.as_bytes(), &mut |term, start, end| found.push((term, start, end)));
        let mut best = (0.0, None);
        for (at, &(_, first, mut reach)) in found.iter().enumerate() {
            let within = found[at..].iter().take_while(|(_, _, end)| *end <= first + 160);
            let mut seen = vec![false; self.terms.len()];
            let mut weight = 0.0;
            for &(term, start, end) in within {
                if !std::mem::replace(&mut seen[term], true) {
                    weight += self.weight(term) * self.fit(form.as_bytes(), term, start, end);
                    reach = reach.max(end);
                }
            }
            if weight > best.0 {
                best = (weight, Some((first, reach)));
            }
        }
        best.1
    }
}

/// Returns the factor that rewards a text for the share of the question's weight that it covers.
pub(super) fn covering(covered: f64, all: f64) -> f64 {
    1.0 - COVERAGE + COVERAGE * covered / f64::max(all, f64::MIN_POSITIVE)
}

/// Returns the form of a text that is scored: composed and folded.
pub(super) fn form(text: &str) -> Cow<'_, str> {
    match composed(text) {
        Some(composed) => Cow::Owned(fold(&composed).into_owned()),
        None => fold(text),
    }
}

/// Returns the form of a text that is scored. If `ascii` is true, all terms are ASCII and only
/// ASCII letters are lowered. `lower` is a scratch buffer.
pub(super) fn scored_form<'t>(text: &[u8], lower: &'t mut Vec<u8>, ascii: bool) -> Cow<'t, [u8]> {
    if !ascii
        && !text.is_ascii()
        && let Ok(text) = std::str::from_utf8(text)
    {
        return form(text).into_owned().into_bytes().into();
    }
    lower.clear();
    lower.extend_from_slice(text);
    lower.make_ascii_lowercase();
    lower.as_slice().into()
}

/// Returns the weight, in thousandths, of a word that `events` of `all` events have; at least 1.
pub(super) fn rarity(events: f64, all: f64) -> u32 {
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
    use super::*;
    use schemas::Timestamp;

    fn scorer(query: &str) -> Scorer {
        let query = Query::parse(query, Timestamp(0)).expect("parses");
        let terms = terms(&query);
        let weights =
            Weights { terms: vec![1000; terms.len()], average: 100, newest: 0, absent: 0 };
        Scorer::new(terms, weights)
    }

    fn score(scorer: &Scorer, text: &str, kind: EventType) -> Score {
        scorer.score(form(text).as_bytes(), kind, Some(0))
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
        let old = scorer.score(b"cache poisoning", EventType::Message, Some(-90 * 86_400_000_000));
        assert!(message("cache poisoning") > old.score);
    }

    #[test]
    fn confidence_is_the_share_covered() {
        let scorer = scorer("cache poisoning");
        let confidence = |text| score(&scorer, text, EventType::Message).confidence;
        assert_eq!(confidence("Cache poisoning"), 1.0);
        assert_eq!(confidence("only the cache"), 0.5);
        assert_eq!(confidence("nothing"), 0.0);
    }

    #[test]
    fn no_text_scores_above_its_bound() {
        let scorer = scorer("cache poisoning ledger");
        let text = "cache poisoning ledger ".repeat(500);
        let bound = scorer.bound(u64::MAX, Some(0));
        assert!(score(&scorer, &text, EventType::User).score <= bound);
        assert!(scorer.bound(bit(0), Some(0)) < bound);
    }

    #[test]
    fn the_place_is_where_the_words_stand_together() {
        let scorer = scorer("cache poisoning");
        let text = format!("cache {} a cache with poisoning.", "x ".repeat(200));
        let (from, to) = scorer.place(&text).expect("found");
        assert_eq!(&text[from..to], "cache with poison");
    }
}
