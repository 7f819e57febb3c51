//! Reads the texts of a few events: to see which words of the question are neighbours, and to cut
//! out passages.

use schemas::limits::SNIPPET_CHARS;

use super::question::{QuestionTerm, SessionQuestion};
use super::score::ScoredEvent;
use crate::scan::read_row_texts;
use base::fold::fold_text;
use base::word_form::common_form;
use store::{Snapshot, StoreError};

/// Words between two words of the question that still count as neighbours.
const NEAR_WORDS: usize = 4;

/// Maximum number of bytes of a text that are examined for neighbouring words and passages.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// How many passages a session has, and how long they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PassageSize {
    pub(crate) count: usize,
    /// Most characters of the part that a passage begins with: the one that has the rarest words of the
    /// question.
    pub(crate) best_chars: usize,
    /// Most characters of a passage.
    pub(crate) chars: usize,
}

impl PassageSize {
    /// Returns the size for the session at a place on the page, from 0. The first ones get more, and even
    /// more if `continues` is true. A page of ten sessions is cut to 900 tokens later.
    pub(crate) const fn at_place(place: usize, continues: bool) -> Self {
        let (count, best_chars) = match place {
            0 => (3, 160),
            1 | 2 => (2, 100),
            _ => return Self { count: 1, best_chars: 56, chars: 56 },
        };
        Self { count, best_chars, chars: if continues { 3 * best_chars } else { best_chars } }
    }
}

/// The part of a passage that may be before the words of the question, so that it begins where a
/// sentence or line does.
const LEAD_SHARE: usize = 3;

/// Longest part of a word in bytes that a passage leaves out to end with a whole word.
const MAX_CUT_WORD: usize = 20;

/// Returns for each event its position in `events` and what `read` makes of its text, in no particular
/// order.
pub(crate) fn read_texts<T: Send>(
    snapshot: &Snapshot,
    events: &[ScoredEvent],
    read: impl Fn(&ScoredEvent, &str) -> T + Sync,
) -> Result<Vec<(usize, T)>, StoreError> {
    let rows: Vec<(usize, usize)> =
        events.iter().map(|event| (event.segment(), event.row())).collect();
    read_row_texts(snapshot, &rows, |position, text| {
        Ok(read(&events[position], &text[..text.floor_char_boundary(MAX_TEXT_BYTES)]))
    })
}

/// A word of the question in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermPlace {
    pub(crate) term: usize,
    /// Number of words before it.
    ordinal: usize,
    /// Position in the text, in bytes.
    start: usize,
    end: usize,
}

/// Returns the places of the question's words in a text, in order.
pub(crate) fn find_places(question: &SessionQuestion, text: &str) -> Vec<TermPlace> {
    let letters = question.first_letters();
    let mut places = Vec::new();
    let mut ordinal = 0;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let run = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        if run == 0 {
            at += 1;
            continue;
        }
        if letters.may_begin(bytes[at]) {
            let word = text[at..at + run].to_ascii_lowercase();
            let stem = common_form(&word);
            let mut terms = question.terms.iter();
            if let Some(term) = terms.position(|term| term.is_indexed && term.stem == stem) {
                places.push(TermPlace { term, ordinal, start: at, end: at + run });
            }
        }
        ordinal += 1;
        at += run;
    }

    let unlisted: Vec<(usize, &QuestionTerm)> =
        question.terms.iter().enumerate().filter(|(_, term)| !term.is_indexed).collect();
    if !unlisted.is_empty() {
        // Folding keeps lengths except of few characters, whose places are then a little off.
        let folded = fold_text(text);
        for (position, term) in unlisted {
            for (start, _) in folded.match_indices(&term.stem) {
                let ordinal = places.partition_point(|place| place.start < start);
                places.push(TermPlace {
                    term: position,
                    ordinal,
                    start,
                    end: start + term.stem.len(),
                });
            }
        }
        places.sort_by_key(|place| place.start);
    }
    places
}

/// Two words of the question that follow each other in it, or have one word between them, if words
/// that occur nowhere are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TermPair {
    first: usize,
    second: usize,
    has_word_between: bool,
}

/// What a pair counts that has a word between its words in the question.
const DISTANT_SHARE: f32 = 0.5;

impl TermPair {
    /// Returns the pairs of the words that some event has in full. `counts` are the events of each
    /// word.
    pub(crate) fn collect_pairs(counts: &[u64]) -> Vec<Self> {
        let present: Vec<usize> = (0..counts.len()).filter(|term| counts[*term] > 0).collect();
        let mut pairs = Vec::new();
        for (distance, has_word_between) in [(1, false), (2, true)] {
            for (first, second) in present.iter().zip(present.iter().skip(distance)) {
                pairs.push(Self { first: *first, second: *second, has_word_between });
            }
        }
        pairs
    }

    /// Returns what the pair counts: the weight of its commoner word, or a share of it.
    fn weight(self, weights: &[f32]) -> f32 {
        let share = if self.has_word_between { DISTANT_SHARE } else { 1.0 };
        share * weights[self.first].min(weights[self.second])
    }

    /// True if both words are among those of an event, given as a bit each.
    pub(crate) fn is_in(self, words: u32) -> bool {
        words >> self.first & words >> self.second & 1 != 0
    }
}

/// Returns the most that [`weigh_pairs`] can give for a text that has `words`, a bit each.
pub(crate) fn bound_pairs(words: u32, pairs: &[TermPair], weights: &[f32]) -> f32 {
    let present = pairs.iter().filter(|pair| pair.is_in(words));
    present.map(|pair| pair.weight(weights)).sum()
}

/// Returns the summed weight of the pairs whose words are near each other in a text.
pub(crate) fn weigh_pairs(places: &[TermPlace], pairs: &[TermPair], weights: &[f32]) -> f32 {
    let mut sum = 0.0;
    for pair in pairs {
        let is_near = |a: &TermPlace, b: &TermPlace| a.ordinal.abs_diff(b.ordinal) <= NEAR_WORDS;
        let mut of_first = places.iter().filter(|place| place.term == pair.first);
        let is_found =
            of_first.any(|a| places.iter().any(|b| b.term == pair.second && is_near(a, b)));
        if is_found {
            sum += pair.weight(weights);
        }
    }
    sum
}

/// Cuts out the part of `text` that has the rarest words of the question. It begins where a sentence
/// or line begins, if that is near, and continues to the most characters that its size gives. Line
/// breaks become blanks.
pub(crate) fn cut_passage(
    text: &str,
    places: &[TermPlace],
    weights: &[f32],
    size: PassageSize,
) -> String {
    let lead_chars = size.best_chars / LEAD_SHARE;
    let start = text.floor_char_boundary(best_start(places, weights, size.best_chars - lead_chars));
    let lead_start = text[..start].char_indices().rev().take(lead_chars).last();
    let lead_start = lead_start.map_or(start, |(at, _)| at);
    let lead = &text[lead_start..start];
    let sentence_start = [". ", "! ", "? ", "\n"]
        .into_iter()
        .filter_map(|end| lead.rfind(end).map(|at| at + end.len()))
        .max();
    let begin = match sentence_start {
        Some(offset) => lead_start + offset,
        None if lead_start == 0 => 0,
        None => start,
    };

    let rest = text[begin..].trim_start();
    let end = match rest.char_indices().nth(size.chars) {
        Some((end, _)) => end_of_word_before(rest, end),
        None => rest.len(),
    };
    rest[..end].split_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Returns the end of the last whole word of `text` up to `end`, or `end` within a very long word.
fn end_of_word_before(text: &str, end: usize) -> usize {
    if text[end..].starts_with(char::is_whitespace) {
        return end;
    }
    match text[..end].rfind(char::is_whitespace) {
        Some(blank) if end - blank <= MAX_CUT_WORD => blank,
        Some(_) | None => end,
    }
}

/// Returns the start and end of the place in `text` where the words of most weight are close together;
/// `None` if it has none of them.
pub(crate) fn find_best_place(
    question: &SessionQuestion,
    weights: &[f32],
    text: &str,
) -> Option<(usize, usize)> {
    let text = &text[..text.floor_char_boundary(MAX_TEXT_BYTES)];
    let places = find_places(question, text);
    let start = best_start(&places, weights, SNIPPET_CHARS);
    let within = |place: &&TermPlace| place.start >= start && place.end <= start + SNIPPET_CHARS;
    let end = places.iter().filter(within).map(|place| place.end).max()?;
    Some((start, end))
}

/// Returns the place in the text from which the words of most weight follow within `reach` bytes. Of
/// places that are as good and as near each other, it is the last, so that the words are close.
fn best_start(places: &[TermPlace], weights: &[f32], reach: usize) -> usize {
    let mut best_sum = 0.0;
    let mut best_start = 0;
    for (position, first) in places.iter().enumerate() {
        let mut seen = vec![false; weights.len()];
        let mut sum = 0.0;
        for place in &places[position..] {
            if place.end > first.start + reach {
                break;
            }
            if !std::mem::replace(&mut seen[place.term], true) {
                sum += weights[place.term];
            }
        }
        if sum > best_sum || (sum == best_sum && first.start < best_start + reach) {
            best_sum = sum;
            best_start = first.start;
        }
    }
    best_start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(chars: usize) -> PassageSize {
        PassageSize { count: 1, best_chars: chars, chars }
    }

    #[test]
    fn pairs_are_words_near_each_other() {
        let question = SessionQuestion::parse("cache poisoning attack");
        let pairs = TermPair::collect_pairs(&[4, 2, 1]);
        let weigh =
            |text: &str| weigh_pairs(&find_places(&question, text), &pairs, &[3.0, 2.0, 5.0]);
        // Two pairs of neighbours, and half of that of the first and the last word.
        assert_eq!(weigh("Poisoned caches were attacked"), 4.0 + 1.5);
        assert_eq!(weigh("the cache of a poison"), 2.0);
        assert_eq!(weigh("cache a b c d e f g poison"), 0.0);
    }

    #[test]
    fn a_word_that_occurs_nowhere_does_not_part_its_neighbours() {
        let pairs = TermPair::collect_pairs(&[4, 0, 1]);
        assert_eq!(pairs, [TermPair { first: 0, second: 2, has_word_between: false }]);
        assert!(pairs[0].is_in(0b101) && !pairs[0].is_in(0b011));
    }

    #[test]
    fn a_passage_begins_with_its_sentence() {
        let question = SessionQuestion::parse("retry budget");
        let text = format!(
            "{} budget. Then we chose a retry budget of 3. {}",
            "x ".repeat(400),
            "y ".repeat(400)
        );
        let places = find_places(&question, &text);
        let passage = cut_passage(&text, &places, &[2.0, 1.0], size(100));
        assert!(passage.starts_with("Then we chose a retry budget of 3. y"), "{passage}");
        assert!(passage.chars().count() <= 100);
        // A longer one begins at the same place.
        let longer =
            cut_passage(&text, &places, &[2.0, 1.0], PassageSize { chars: 300, ..size(100) });
        assert!(longer.starts_with(passage.as_str()) && longer.len() > 280, "{longer}");
        assert!(longer.ends_with('y') && text.contains(&longer), "{longer}");
        assert_eq!(cut_passage("short text", &[], &[1.0], size(100)), "short text");
    }

    #[test]
    fn text_beyond_ascii_is_cut_at_characters() {
        let question = SessionQuestion::parse("指针 404");
        let text = "悬空指针与 404 号错误".repeat(40);
        let places = find_places(&question, &text);
        assert!(!places.is_empty());
        assert!(cut_passage(&text, &places, &[1.0, 1.0], size(50)).contains("指针"));

        // A letter that is shorter when it is folded shifts the places.
        let text = "ẞẞ".to_owned() + &"悬空指针".repeat(3);
        let places = find_places(&question, &text);
        assert!(
            !places.is_empty() && !cut_passage(&text, &places, &[1.0, 1.0], size(8)).is_empty()
        );
    }
}
