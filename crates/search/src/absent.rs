//! Finds the words of a query that occur in no event that its filters select.

use super::error::SearchError;
use super::query::pattern::QueryPattern;
use super::query::{Clause, Query, without_punctuation};
use super::rank::{question_stem, words_of};
use super::request::SearchRequest;
use super::scan::search;
use store::Snapshot;

/// Maximum number of words that are looked up, because each takes a search.
const MAX_WORDS: usize = 8;

/// A word that occurs in no event that the filters select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentWord {
    /// The word as it is in the query.
    pub word: String,
    /// True if another event of the store contains the word.
    pub is_in_store: bool,
}

/// What a search already knows about the words of its query that no selected event contains.
#[derive(Debug, Clone, Copy)]
pub enum KnownAbsence<'a> {
    /// Nothing: each word has to be searched for.
    Unknown,
    /// All words are absent.
    EveryWord,
    /// A word or phrase is absent if all words in it are among these.
    Words(&'a [String]),
}

/// Returns the words and phrases of the query that no selected event contains. The words of a
/// ranked search may lack their endings.
pub fn find_absent_words(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    is_ranked: bool,
    known: KnownAbsence<'_>,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<AbsentWord>, SearchError> {
    let mut absent: Vec<AbsentWord> = Vec::new();
    let mut looked_up = 0;
    for clause in request.query.clauses.iter().filter(|clause| !clause.is_excluded) {
        for pattern in &clause.any {
            let QueryPattern::Text(written) = pattern else { continue };
            let is_ranked_word = is_ranked && clause.is_optional;
            let word = if is_ranked_word { without_punctuation(written) } else { written };
            if looked_up == MAX_WORDS || absent.iter().any(|other| other.word == word) {
                continue;
            }
            let needle = if is_ranked_word { question_stem(word) } else { word.to_owned() };
            if let KnownAbsence::Words(words) = known
                && !consists_of(word, words)
            {
                continue;
            }

            looked_up += 1;
            let word_search = WordSearch { snapshot, request, needle, stop };
            let must_search = matches!(known, KnownAbsence::Unknown);
            if must_search && word_search.occurs_in_selection()? {
                continue;
            }
            let is_in_store = has_filters(request) && word_search.occurs_in_store()?;
            absent.push(AbsentWord { word: word.to_owned(), is_in_store });
        }
    }
    Ok(absent)
}

/// Returns true if `text` has words to look for, and all of them are among `words`.
fn consists_of(text: &str, words: &[String]) -> bool {
    let parts = words_of(text);
    !parts.is_empty() && parts.iter().all(|part| words.contains(part))
}

/// The search for one word.
struct WordSearch<'a> {
    snapshot: &'a Snapshot,
    request: &'a SearchRequest<'a>,
    needle: String,
    stop: &'a (dyn Fn() -> bool + Sync),
}

impl WordSearch<'_> {
    /// Returns true if an event that the filters select has the word, or if this is not known in
    /// time.
    fn occurs_in_selection(&self) -> Result<bool, SearchError> {
        let query = self.request.query;
        let narrow = Query {
            filters: query.filters.clone(),
            errors: query.errors,
            until: query.until,
            ..self.query()
        };
        self.has_match(&SearchRequest {
            sessions: self.request.sessions.clone(),
            event_types: self.request.event_types.clone(),
            since: self.request.since,
            ..SearchRequest::any(&narrow, self.request.deadline)
        })
    }

    /// Returns true if any event of the store has the word, or if this is not known in time.
    fn occurs_in_store(&self) -> Result<bool, SearchError> {
        self.has_match(&SearchRequest::any(&self.query(), self.request.deadline))
    }

    /// Returns the query that searches for the word alone.
    fn query(&self) -> Query {
        let clause = Clause {
            any: vec![QueryPattern::Text(self.needle.clone())],
            is_excluded: false,
            is_optional: false,
        };
        Query {
            clauses: vec![clause],
            is_case_sensitive: self.request.query.is_case_sensitive,
            includes_replay: self.request.query.includes_replay,
            ..Query::default()
        }
    }

    fn has_match(&self, request: &SearchRequest<'_>) -> Result<bool, SearchError> {
        let found = search(self.snapshot, request, self.stop)?;
        Ok(found.matched > 0 || !found.is_complete)
    }
}

/// Returns true if a request may leave out events that have the words of its query.
fn has_filters(request: &SearchRequest<'_>) -> bool {
    let query = request.query;
    request.sessions.is_some()
        || request.since.is_some()
        || !request.event_types.is_empty()
        || !query.filters.is_empty()
        || query.until.is_some()
        || query.errors.is_some()
}
