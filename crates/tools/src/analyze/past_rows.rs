//! Finds rows of earlier sessions by the words in their texts, from the skip index alone.

use std::collections::{BTreeSet, HashSet};

use fixedbitset::FixedBitSet;
use schemas::session::EventRow;
use schemas::table::EventColumn;

use store::{
    RowFacts, SHORTEST_WORD, Segment, Snapshot, StoreError, WordPattern, single_event_ranges,
};

/// Maximum number of words that are looked up for a text. A few long words leave few rows.
const MAX_WORDS: usize = 4;

/// The part of the history that a lookup may see.
#[derive(Debug, Clone)]
pub struct HistoryScope {
    /// Positions in `Snapshot::sessions`.
    pub sessions: HashSet<usize>,
    /// Only events before this time count, in microseconds since the epoch. `i64::MAX` means no
    /// limit.
    pub until: i64,
}

/// The place of a row of an earlier session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PastRow {
    /// Microseconds since the epoch.
    pub time: i64,
    /// Position in `Snapshot::sessions`.
    pub session: usize,
    pub event_index: u32,
}

/// The names that replace varying parts in a normalized line.
const PLACEHOLDERS: [&str; 6] = ["<n>", "<hash>", "<time>", "<name>", "<url>", "<path>"];

/// The time of rows whose log gives none: they count only if the scope has no end.
const UNKNOWN_TIME: i64 = i64::MAX - 1;

/// Returns the words by which rows with a normalized line can be found: its longest runs of
/// letters, at most [`MAX_WORDS`].
pub(super) fn words_of(line: &str) -> Vec<String> {
    let mut plain = line.to_ascii_lowercase();
    for placeholder in PLACEHOLDERS {
        plain = plain.replace(placeholder, " ");
    }
    let letters = plain.split(|c: char| !c.is_ascii_alphabetic());
    let mut words: Vec<String> =
        letters.filter(|word| word.len() >= SHORTEST_WORD).map(str::to_owned).collect();
    words.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    words.dedup();
    words.truncate(MAX_WORDS);
    words
}

/// Returns the rows in `scope` that `is_wanted` accepts and whose texts may have all of `words`,
/// the newest first and at most `limit`.
pub(super) fn find_past_rows(
    snapshot: &Snapshot,
    scope: &HistoryScope,
    words: &[String],
    is_wanted: &dyn Fn(&RowFacts) -> bool,
    limit: usize,
) -> Result<Vec<PastRow>, StoreError> {
    let mut found = BTreeSet::new();
    for segment in snapshot.segments() {
        let spans = segment.spans.iter().filter(|span| scope.sessions.contains(&span.session));
        let spans: Vec<_> = spans.collect();
        if spans.is_empty() {
            continue;
        }
        let Some(possible) = rows_with_words(segment, words)? else { continue };
        for span in spans {
            let rows = span.start..span.start + span.count;
            if !rows.clone().any(|row| possible.contains(row)) {
                continue;
            }
            let facts = segment.skip_index()?.read_facts(rows.clone())?;
            for (fact, row) in facts.iter().zip(rows) {
                let time = fact.time.unwrap_or(UNKNOWN_TIME);
                let is_visible = time < scope.until && !fact.is_replay;
                if is_visible && possible.contains(row) && is_wanted(&fact) {
                    let offset = u32::try_from(row - span.start).unwrap_or(u32::MAX);
                    let event_index = span.first_index.saturating_add(offset);
                    found.insert(PastRow { time, session: span.session, event_index });
                }
            }
        }
        while found.len() > limit {
            found.pop_first();
        }
    }
    Ok(found.into_iter().rev().collect())
}

/// Returns the rows of a segment that may have all of `words`; `None` if no row has them.
fn rows_with_words(segment: &Segment, words: &[String]) -> Result<Option<FixedBitSet>, StoreError> {
    let index = segment.skip_index()?;
    let lookup = index.word_lookup();
    let mut possible = FixedBitSet::with_capacity(index.row_count());
    possible.insert_range(..);
    for word in words {
        let wanted = WordPattern { letters: word, must_begin_word: false, must_end_word: false };
        possible.intersect_with(&lookup.find_rows_with(&wanted)?.possible);
        if possible.is_clear() {
            return Ok(None);
        }
    }
    Ok(Some(possible))
}

/// Reads columns of rows, in the order of `rows`. Rows that are missing are left out.
pub(super) fn read_past_rows(
    snapshot: &Snapshot,
    rows: &[PastRow],
    columns: &[EventColumn],
) -> Result<Vec<(PastRow, EventRow)>, StoreError> {
    let sessions: BTreeSet<usize> = rows.iter().map(|row| row.session).collect();
    let mut read = Vec::with_capacity(rows.len());
    for session in sessions {
        let of_session: Vec<&PastRow> = rows.iter().filter(|row| row.session == session).collect();
        let indexes: BTreeSet<u32> = of_session.iter().map(|row| row.event_index).collect();
        let ranges = single_event_ranges(&indexes);
        for row in snapshot.events_of(session, &ranges, columns).read_rows()? {
            let index = u32::try_from(row.event_index).unwrap_or(0);
            if let Some(place) = of_session.iter().find(|place| place.event_index == index) {
                read.push((**place, row));
            }
        }
    }
    read.sort_by(|(a, _), (b, _)| b.cmp(a));
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_by_its_longest_words() {
        assert_eq!(
            words_of("error: unrecognized subcommand 'bun' in main.rs:<n> at <hash>"),
            ["unrecognized", "subcommand", "error", "main"]
        );
        assert_eq!(words_of("Vec<Item> is not <n>"), ["item", "not", "vec"]);
        assert!(words_of("<n> 12 -- a").is_empty());
    }
}
