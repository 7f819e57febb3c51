//! Finds words that the word lists do not have, such as numbers and words of other scripts, by
//! reading text.

use std::cmp::Reverse;
use std::collections::HashMap;

use fixedbitset::FixedBitSet;
use memchr::memmem;

use super::postings::{AskedRows, TermHit};
use super::question::QuestionTerm;
use base::fold::fold_text;
use base::parallel::in_parallel;
use store::{Grams, PageReader, Snapshot, StoreError, TextPage, needle_grams};

/// Most pages of text that are read for these words. So a question with a number costs the same in a store
/// of any size. Of 179 questions about 405 sessions, 128 pages find 122 first, 256 pages 124, 512 as many.
const MAX_PAGES: usize = 256;

/// Number of pages that a core takes at once.
const PAGES_AT_ONCE: usize = 4;

/// A page of text that may have some of the words.
struct UnreadPage {
    segment: usize,
    page: TextPage,
    newest: Option<i64>,
    /// Positions of the words in the question.
    terms: Vec<usize>,
}

/// Where such words are.
#[derive(Default)]
pub(super) struct TextHits {
    /// The rows of each segment that have such words, by the position of the segment.
    pub(super) by_segment: HashMap<usize, Vec<TermHit>>,
    /// The words that pages may have which were not read, a bit each.
    pub(super) unread: u32,
}

/// Finds such words in the events that are asked about, in the segments at the positions `segments`.
/// Returns `None` if `must_stop` returned true.
pub(super) fn find_text_terms(
    snapshot: &Snapshot,
    segments: &[usize],
    terms: &[QuestionTerm],
    asked: AskedRows<'_>,
    must_stop: &(dyn Fn() -> bool + Sync),
) -> Result<Option<TextHits>, StoreError> {
    let unlisted: Vec<(usize, Grams)> = terms
        .iter()
        .enumerate()
        .filter(|(_, term)| !term.is_indexed)
        .map(|(position, term)| (position, needle_grams(&term.stem)))
        .collect();
    if unlisted.is_empty() {
        return Ok(Some(TextHits::default()));
    }

    let mut pages = Vec::new();
    for number in segments {
        if must_stop() {
            return Ok(None);
        }
        append_pages(snapshot, *number, &unlisted, asked, &mut pages)?;
    }
    let (pages, unread) = choose_pages(pages, terms.len());

    let parts = in_parallel(&pages, PAGES_AT_ONCE, |pages| {
        let mut reader = PageReader::default();
        let mut hits: Vec<(usize, TermHit)> = Vec::new();
        for page in pages {
            if must_stop() {
                return Ok(None);
            }
            let texts = reader.read_page(&snapshot.segments()[page.segment], &page.page)?;
            for row in 0..texts.len() {
                let text = String::from_utf8_lossy(texts.get(row));
                let folded = fold_text(&text);
                for position in &page.terms {
                    if has_word(folded.as_bytes(), terms[*position].stem.as_bytes()) {
                        let hit = TermHit::new(page.page.start + row, *position, 1.0);
                        hits.push((page.segment, hit));
                    }
                }
            }
        }
        Ok::<_, StoreError>(Some(hits))
    })?;

    let mut by_segment: HashMap<usize, Vec<TermHit>> = HashMap::new();
    for part in parts {
        let Some(hits) = part else { return Ok(None) };
        for (segment, hit) in hits {
            by_segment.entry(segment).or_default().push(hit);
        }
    }
    Ok(Some(TextHits { by_segment, unread }))
}

/// Chooses the newest pages, first of the words that the fewest pages may have: these say the most, and their
/// pages are soon read. Also returns the words that other pages may have, a bit each.
fn choose_pages(mut pages: Vec<UnreadPage>, terms: usize) -> (Vec<UnreadPage>, u32) {
    pages.sort_by_key(|page| Reverse(page.newest));
    let mut counts = vec![0; terms];
    for term in pages.iter().flat_map(|page| &page.terms) {
        counts[*term] += 1;
    }
    let mut by_count: Vec<usize> = (0..terms).collect();
    by_count.sort_by_key(|term| counts[*term]);
    let mut chosen = FixedBitSet::with_capacity(pages.len());
    let mut space = MAX_PAGES;
    for term in by_count {
        for (position, page) in pages.iter().enumerate() {
            if space > 0 && page.terms.contains(&term) && !chosen.put(position) {
                space -= 1;
            }
        }
    }
    let mut unread = 0;
    let mut read = Vec::new();
    for (position, page) in pages.into_iter().enumerate() {
        if chosen.contains(position) {
            read.push(page);
        } else {
            unread = page.terms.iter().fold(unread, |unread, term| unread | 1 << term);
        }
    }
    (read, unread)
}

/// Appends the pages of a segment that have events which are asked about and may have one of the words.
fn append_pages(
    snapshot: &Snapshot,
    number: usize,
    terms: &[(usize, Grams)],
    asked: AskedRows<'_>,
    pages: &mut Vec<UnreadPage>,
) -> Result<(), StoreError> {
    let segment = &snapshot.segments()[number];
    let index = segment.skip_index()?;
    let blocks = index.blocks();
    let mut terms_of_blocks: Vec<Vec<usize>> = vec![Vec::new(); blocks.len()];
    for (position, grams) in terms {
        // Without runs, any block may have the word.
        for block in index.find_candidate_blocks(grams)?.ones() {
            terms_of_blocks[block].push(*position);
        }
    }
    let mut spans = segment.spans.clone();
    spans.retain(|span| asked.includes(span.session));
    for page in segment.text_pages()? {
        let end = page.start + page.count;
        let next_span = spans.partition_point(|span| span.start + span.count <= page.start);
        if spans.get(next_span).is_none_or(|span| span.start >= end) {
            continue;
        }
        let first = blocks.partition_point(|block| block.start + block.count <= page.start);
        let after = blocks.partition_point(|block| block.start < end);
        let mut on_page: Vec<usize> = terms_of_blocks[first..after].concat();
        on_page.sort_unstable();
        on_page.dedup();
        if !on_page.is_empty() {
            let times = blocks[first..after].iter().filter_map(|block| block.times);
            let newest = times.map(|(_, newest)| newest).max();
            pages.push(UnreadPage { segment: number, page: *page, newest, terms: on_page });
        }
    }
    Ok(())
}

/// True if `text` has `word`. A number must not be part of a longer one, and a code of letters and digits must
/// not begin within another word; a longer one may be the whole hash.
fn has_word(text: &[u8], word: &[u8]) -> bool {
    let is_number = word.iter().all(u8::is_ascii_digit);
    let is_code = word.iter().all(u8::is_ascii_alphanumeric);
    memmem::find_iter(text, word).any(|start| {
        let before = start.checked_sub(1).and_then(|at| text.get(at));
        let after = text.get(start + word.len());
        if is_number {
            return ![before, after].into_iter().flatten().any(u8::is_ascii_digit);
        }
        !is_code || !before.is_some_and(u8::is_ascii_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_of_rare_words_are_read_first() {
        let page = |newest: i64, terms: &[usize]| UnreadPage {
            segment: 0,
            page: TextPage::default(),
            newest: Some(newest),
            terms: terms.to_vec(),
        };
        let mut pages: Vec<UnreadPage> = (0..1000).map(|newest| page(newest, &[0])).collect();
        pages.push(page(-5, &[1]));
        pages.push(page(-9, &[0, 2]));
        let (pages, unread) = choose_pages(pages, 3);
        assert_eq!((unread, pages.len()), (0b1, MAX_PAGES));
        let newest: Vec<i64> = pages.iter().filter_map(|page| page.newest).collect();
        assert!(newest.is_sorted_by(|a, b| a > b));
        assert_eq!(newest[MAX_PAGES - 3..], [1000 - MAX_PAGES as i64 + 2, -5, -9]);
    }

    #[test]
    fn a_number_is_a_whole_one() {
        assert!(has_word(b"error 404.", b"404") && has_word(b"x404y", b"404"));
        assert!(!has_word(b"1404 and 4040", b"404"));
        assert!(has_word(b"error[e0502]", b"e0502") && has_word(b"48fd9f4ab1", b"48fd9f4"));
        assert!(!has_word(b"77e0502fab", b"e0502"));
        assert!(has_word("悬空指针".as_bytes(), "空指".as_bytes()));
    }
}
