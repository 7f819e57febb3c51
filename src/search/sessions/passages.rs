//! Reads the texts of a few events: to see which words of the question are neighbours, and to cut
//! out passages.

use std::collections::HashMap;

use super::question::{QuestionTerm, SessionQuestion};
use super::score::ScoredEvent;
use crate::base::fold::fold_text;
use crate::store::{PageReader, Snapshot, StoreError};

/// Words between two words of the question that still count as neighbours.
const NEAR_WORDS: usize = 3;

/// Most bytes of a text that are looked at for neighbouring words and passages.
const MAX_TEXT_BYTES: usize = 64 << 10;

/// Most characters of a passage.
pub(super) const PASSAGE_CHARS: usize = 160;

/// Characters before the words of the question that a passage may begin with, to begin where a
/// sentence or line does.
const LEAD_CHARS: usize = 60;

/// Calls `take` with the text of each event, in no particular order.
pub(super) fn read_texts(
    snapshot: &Snapshot,
    events: &[ScoredEvent],
    take: &mut dyn FnMut(usize, &str),
) -> Result<(), StoreError> {
    let mut by_page: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
    for (position, event) in events.iter().enumerate() {
        let pages = snapshot.segments()[event.segment].text_pages()?;
        let page = pages.partition_point(|page| page.start + page.count <= event.row);
        by_page.entry((event.segment, page)).or_default().push(position);
    }

    let mut reader = PageReader::default();
    for ((segment, page), positions) in by_page {
        let segment = &snapshot.segments()[segment];
        let Some(page) = segment.text_pages()?.get(page) else { continue };
        let texts = reader.read_page(segment, page)?;
        for position in positions {
            let bytes = texts.get(events[position].row - page.start);
            take(position, &String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_TEXT_BYTES)]));
        }
    }
    Ok(())
}

/// A word of the question in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TermPlace {
    pub(super) term: usize,
    /// Number of words before it.
    ordinal: usize,
    /// Position in the text, in bytes.
    start: usize,
    end: usize,
}

/// Returns the places of the question's words in a text, in order.
pub(super) fn find_places(question: &SessionQuestion, text: &str) -> Vec<TermPlace> {
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
        let word = text[at..at + run].to_ascii_lowercase();
        let term = question.terms.iter().position(|term| term.is_indexed && term.is_form_of(&word));
        if let Some(term) = term {
            places.push(TermPlace { term, ordinal, start: at, end: at + run });
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
                places.push(TermPlace { term: position, ordinal, start, end: start + term.stem.len() });
            }
        }
        places.sort_by_key(|place| place.start);
    }
    places
}

/// Two words of the question that follow each other in it, if words that occur nowhere are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TermPair {
    first: usize,
    second: usize,
}

impl TermPair {
    /// Returns the pairs of the words that some event has in full. `counts` are the events of each
    /// word.
    pub(super) fn collect_pairs(counts: &[u64]) -> Vec<Self> {
        let present: Vec<usize> = (0..counts.len()).filter(|term| counts[*term] > 0).collect();
        present.windows(2).map(|pair| Self { first: pair[0], second: pair[1] }).collect()
    }

    /// True if both words are among those of an event, given as a bit each.
    pub(super) fn is_in(self, words: u32) -> bool {
        words >> self.first & words >> self.second & 1 != 0
    }
}

/// Returns the summed weight of the pairs whose words are near each other in a text. The weight of a
/// pair is that of its commoner word.
pub(super) fn weigh_pairs(places: &[TermPlace], pairs: &[TermPair], weights: &[f32]) -> f32 {
    let mut sum = 0.0;
    for pair in pairs {
        let is_near = |a: &TermPlace, b: &TermPlace| a.ordinal.abs_diff(b.ordinal) <= NEAR_WORDS;
        let mut of_first = places.iter().filter(|place| place.term == pair.first);
        let is_found =
            of_first.any(|a| places.iter().any(|b| b.term == pair.second && is_near(a, b)));
        if is_found {
            sum += weights[pair.first].min(weights[pair.second]);
        }
    }
    sum
}

/// Cuts out the part of `text` that has the rarest words of the question. It begins where a sentence
/// or line begins, if that is near. Line breaks become blanks.
pub(super) fn cut_passage(text: &str, places: &[TermPlace], weights: &[f32]) -> String {
    let start = best_start(places, weights);
    let lead_start = text[..start].char_indices().rev().take(LEAD_CHARS).last();
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
    let end = rest.char_indices().nth(PASSAGE_CHARS).map_or(rest.len(), |(at, _)| at);
    let mut passage: String =
        rest[..end].split_whitespace().collect::<Vec<&str>>().join(" ");
    if begin > 0 {
        passage.insert(0, '…');
    }
    if end < rest.len() {
        passage.push('…');
    }
    passage
}

/// Returns the place in the text from which the words of most weight follow within a passage. Of
/// places that are as good and within the same passage, it is the last, so that the words are close.
fn best_start(places: &[TermPlace], weights: &[f32]) -> usize {
    const REACH: usize = PASSAGE_CHARS - LEAD_CHARS;
    let mut best_sum = 0.0;
    let mut best_start = 0;
    for (position, first) in places.iter().enumerate() {
        let mut seen = vec![false; weights.len()];
        let mut sum = 0.0;
        for place in &places[position..] {
            if place.end > first.start + REACH {
                break;
            }
            if !std::mem::replace(&mut seen[place.term], true) {
                sum += weights[place.term];
            }
        }
        if sum > best_sum || (sum == best_sum && first.start < best_start + REACH) {
            best_sum = sum;
            best_start = first.start;
        }
    }
    best_start
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_words_near_each_other() {
        let question = SessionQuestion::parse("cache poisoning attack");
        let pairs = TermPair::collect_pairs(&[4, 2, 1]);
        let weigh =
            |text: &str| weigh_pairs(&find_places(&question, text), &pairs, &[3.0, 2.0, 5.0]);
        assert_eq!(weigh("Poisoned caches were attacked"), 4.0);
        assert_eq!(weigh("the cache of a poison"), 2.0);
        assert_eq!(weigh("cache a b c d e f g poison"), 0.0);
    }

    #[test]
    fn a_word_that_occurs_nowhere_does_not_part_its_neighbours() {
        let pairs = TermPair::collect_pairs(&[4, 0, 1]);
        assert_eq!(pairs, [TermPair { first: 0, second: 2 }]);
        assert!(pairs[0].is_in(0b101) && !pairs[0].is_in(0b011));
    }

    #[test]
    fn a_passage_begins_with_its_sentence() {
        let question = SessionQuestion::parse("retry budget");
        let text = format!("{} budget. Then we chose a retry budget of 3. {}", "x ".repeat(400), "y ".repeat(400));
        let places = find_places(&question, &text);
        let passage = cut_passage(&text, &places, &[2.0, 1.0]);
        assert!(passage.starts_with("…Then we chose a retry budget of 3. y"), "{passage}");
        assert!(passage.ends_with('…') && passage.chars().count() <= PASSAGE_CHARS + 2);
        assert_eq!(cut_passage("short text", &[], &[1.0]), "short text");
    }

    #[test]
    fn text_beyond_ascii_is_cut_at_characters() {
        let question = SessionQuestion::parse("指针 404");
        let text = "悬空指针与 404 号错误".repeat(40);
        let places = find_places(&question, &text);
        assert!(!places.is_empty());
        assert!(cut_passage(&text, &places, &[1.0, 1.0]).contains("指针"));
    }
}
