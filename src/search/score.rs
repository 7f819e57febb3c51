//! How well a text answers a question: rare words count most, whole words more than parts, words
//! that stand together more than words apart, what was said more than what a tool printed.

use std::borrow::Cow;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use schemas::EventType;
use serde::{Deserialize, Serialize};

use super::multi::Multi;
use super::pattern::Pattern;
use super::query::Query;
use crate::fold::{composed, fold};
use crate::stem::stem;

/// How soon more occurrences of a word stop to count, and how much long texts are held back (BM25).
const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.6;

/// What one occurrence of a word is worth against many.
pub(super) const ONCE: f64 = 0.4;

/// Share of the score that depends on how much of the question is covered.
const COVERAGE: f64 = 0.6;

/// Bytes between two neighbours of the question that still stand together, and what that is worth.
const NEAR: usize = 40;
const TOGETHER: f64 = 0.4;

/// Share of the score that fades with age, and its half-life in microseconds: 30 days.
const FADING: f64 = 0.1;
const HALF_LIFE: f64 = 30.0 * 86_400e6;

/// A word must weigh this share of the heaviest for an event to be found by it alone, and this
/// share to count at all: of the rest every text has some.
const TELLING: f64 = 0.5;
const COUNTS: f64 = 0.15;

/// One word of the question.
#[derive(Debug, Clone)]
pub(super) struct Term {
    /// What is looked for: folded and without its ending.
    pub(super) stem: String,
    /// Letters that were taken off.
    ending: usize,
}

/// What scores are made of beside the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Weights {
    /// Of every term, by its rarity, in thousandths; 0 for those that do not count.
    pub(super) terms: Vec<u32>,
    /// Average length of a text in bytes.
    pub(super) average: u64,
    /// The newest event, from which age counts, in microseconds.
    pub(super) newest: i64,
    /// Weight of the words that no event has: they are part of the question all the same.
    pub(super) absent: u32,
}

/// The words of a question, ready to be looked for.
pub(super) struct Scorer {
    pub(super) terms: Vec<Term>,
    pub(super) weights: Weights,
    /// No term has letters beyond ASCII: texts need not be folded beyond it.
    pub(super) ascii: bool,
    automaton: AhoCorasick,
    /// The terms that the automaton looks for.
    of: Vec<usize>,
}

/// What a text scored.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Score {
    pub(super) score: f64,
    /// 0 to 1: the share of the question's weight that it covers.
    pub(super) confidence: f64,
}

/// The words of a query that are ranked by.
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
    // Words of one or two letters say something only when there are no others.
    if terms.iter().any(|term| term.stem.len() > 2) {
        terms.retain(|term| term.stem.len() > 2);
    }
    terms
}

/// The words of a folded text: runs without space or outer punctuation; Chinese, Japanese and
/// Korean text, which has no spaces, in pairs of characters.
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
    /// `None` when the stems are no automaton, which those of a query always are.
    pub(super) fn new(terms: Vec<Term>, mut weights: Weights) -> Option<Self> {
        let heaviest = weights.terms.iter().copied().max().unwrap_or(0);
        for weight in &mut weights.terms {
            if f64::from(*weight) < f64::from(heaviest) * COUNTS {
                *weight = 0;
            }
        }
        let ascii = terms.iter().all(|term| term.stem.is_ascii());
        let of: Vec<usize> = (0..terms.len()).filter(|term| weights.terms[*term] > 0).collect();
        let automaton = automaton(of.iter().map(|term| &terms[*term].stem))?;
        Some(Self { terms, weights, ascii, automaton, of })
    }

    /// The words of which an event must have one: the telling ones, and of those only the heaviest
    /// when the rest together is not worth `threshold`, the score to beat.
    pub(super) fn essential(&self, threshold: f64) -> Option<Multi> {
        let heaviest = (0..self.terms.len()).map(|term| self.weight(term)).fold(0.0, f64::max);
        let mut order: Vec<usize> = (0..self.terms.len()).collect();
        order.sort_by_key(|term| self.weights.terms[*term]);
        let mut dropped = vec![false; self.terms.len()];
        order.retain(|term| {
            dropped[*term] = true;
            let needed = self.bound(|term| dropped[term], Some(self.weights.newest)) >= threshold;
            needed && self.weight(*term) >= heaviest * TELLING
        });
        let stems: Vec<_> = order.iter().map(|term| &self.terms[*term].stem).collect();
        Multi::new(&stems)
    }

    /// The most that a prompt or message with these terms can score, at its newest.
    pub(super) fn bound(&self, present: impl Fn(usize) -> bool, newest: Option<i64>) -> f64 {
        let weight = |term: usize| if present(term) { self.weight(term) } else { 0.0 };
        let words: f64 = (0..self.terms.len()).map(weight).sum();
        let pairs: f64 = (1..self.terms.len()).map(|term| weight(term).min(weight(term - 1))).sum();
        let all: f64 = (0..self.terms.len()).map(|term| self.weight(term)).sum();
        (words + TOGETHER * pairs) * covering(words, all) * self.fading(newest)
    }

    /// How many occurrences in a text of so many bytes are worth half of endlessly many.
    pub(super) fn held_back(&self, length: f64) -> f64 {
        SATURATION * (1.0 - LENGTH + LENGTH * length / self.weights.average.max(1) as f64)
    }

    /// Scores a text as [`form`] gives it.
    pub(super) fn score(&self, text: &[u8], kind: EventType, time: Option<i64>) -> Score {
        let mut counts = vec![0.0f64; self.terms.len()];
        let mut quality = vec![0.0f64; self.terms.len()];
        let mut ends = vec![None; self.terms.len()];
        let mut together = vec![false; self.terms.len()];
        for found in self.automaton.find_overlapping_iter(text) {
            let term = self.of[found.pattern().as_usize()];
            let fit = self.fit(text, term, found.start(), found.end());
            counts[term] += fit;
            quality[term] = quality[term].max(fit);
            let near = |other: Option<usize>| other.is_some_and(|end| found.start() <= end + NEAR);
            if term > 0 && near(ends[term - 1]) {
                together[term] = true;
            }
            if near(ends.get(term + 1).copied().flatten()) {
                together[term + 1] = true;
            }
            ends[term] = Some(found.end());
        }
        let held_back = self.held_back(text.len() as f64);
        let (mut words, mut pairs, mut covered, mut all) = (0.0, 0.0, 0.0, 0.0);
        for term in 0..self.terms.len() {
            let weight = self.weight(term);
            let often = counts[term] / (counts[term] + held_back);
            words += weight * quality[term].sqrt() * (ONCE + (1.0 - ONCE) * often);
            covered += weight * quality[term];
            all += weight;
            if together[term] {
                pairs += weight.min(self.weight(term - 1));
            }
        }
        let score = (words + TOGETHER * pairs)
            * covering(covered, all)
            * type_weight(kind)
            * self.fading(time);
        let asked = all + f64::from(self.weights.absent) / 1000.0;
        Score { score, confidence: covered / f64::max(asked, f64::MIN_POSITIVE) }
    }

    /// How well an occurrence is the word: 1 the word itself in another form, less the beginning
    /// of a longer one, least the middle of one.
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

    /// Where the heaviest of the question's words stand together in `text`.
    pub(super) fn place(&self, text: &str) -> Option<(usize, usize)> {
        let form = form(text);
        // A text that changed its length is shown from its beginning.
        if form.len() != text.len() {
            return None;
        }
        let found: Vec<_> = self.automaton.find_overlapping_iter(form.as_bytes()).collect();
        let mut best = (0.0, None);
        for (at, first) in found.iter().enumerate() {
            let within = found[at..].iter().take_while(|m| m.end() <= first.start() + 160);
            let mut seen = vec![false; self.terms.len()];
            let (mut weight, mut end) = (0.0, first.end());
            for one in within {
                let term = self.of[one.pattern().as_usize()];
                if !std::mem::replace(&mut seen[term], true) {
                    weight +=
                        self.weight(term) * self.fit(form.as_bytes(), term, one.start(), one.end());
                    end = end.max(one.end());
                }
            }
            if weight > best.0 {
                best = (weight, Some((first.start(), end)));
            }
        }
        best.1
    }
}

/// Finds stems: a table for every letter, as nearly every text that is looked at holds some, and
/// looking for rare letters first takes longer.
pub(super) fn automaton<'s>(stems: impl Iterator<Item = &'s String>) -> Option<AhoCorasick> {
    AhoCorasick::builder().prefilter(false).kind(Some(AhoCorasickKind::DFA)).build(stems).ok()
}

/// A text that has more of the question's weight is worth more than its words alone.
pub(super) fn covering(covered: f64, all: f64) -> f64 {
    1.0 - COVERAGE + COVERAGE * covered / f64::max(all, f64::MIN_POSITIVE)
}

/// A text as it is scored: composed and folded.
pub(super) fn form(text: &str) -> Cow<'_, str> {
    match composed(text) {
        Some(composed) => Cow::Owned(fold(&composed).into_owned()),
        None => fold(text),
    }
}

/// The weight, in thousandths, of a word that so many of `all` events have; never nothing.
pub(super) fn rarity(events: f64, all: f64) -> u32 {
    let weight = (1.0 + (all - events + 0.5).max(0.0) / (events + 0.5)).ln();
    (weight * 1000.0).round().max(1.0) as u32
}

/// What people and agents said answers questions; what tools printed holds the words.
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
        Scorer::new(terms, weights).expect("an automaton")
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
        let bound = scorer.bound(|_| true, Some(0));
        assert!(score(&scorer, &text, EventType::User).score <= bound);
        assert!(scorer.bound(|term| term == 0, Some(0)) < bound);
    }

    #[test]
    fn the_place_is_where_the_words_stand_together() {
        let scorer = scorer("cache poisoning");
        let text = format!("cache {} a cache with poisoning.", "x ".repeat(200));
        let (from, to) = scorer.place(&text).expect("found");
        assert_eq!(&text[from..to], "cache with poison");
    }
}
