//! Finds later statements that something was changed, about what a passage is about: a sentence with a word
//! of change and two names of code that a sentence of the passage has, too. Two names in one sentence are
//! rare; ordinary words are not compared, because most sentences that share some are about something else.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use fixedbitset::FixedBitSet;
use regex::Regex;

use super::passage::PassageFacts;
use super::project::LaterSessions;
use crate::analyze::PastRow;
use base::dropped_text::kept_part;
use search::read_row_texts;
use store::{RowFacts, SHORTEST_WORD, SkipIndex, Snapshot, StoreError, WordLookup};

/// Maximum number of names of a passage that are looked for, the longest first.
const MAX_NAMES: usize = 4;

/// Minimum size in bytes of a name of code, and of the longest one that two sentences share.
const MIN_NAME_BYTES: usize = 6;
const MIN_LONGEST_NAME_BYTES: usize = 8;

/// Number of names that two sentences about the same thing share.
const SHARED_NAMES: usize = 2;

/// Sizes in bytes of sentences that are compared. Longer ones are lists or pasted texts.
const MIN_SENTENCE_BYTES: usize = 20;
const MAX_SENTENCE_BYTES: usize = 300;

/// Maximum number of later events with two of the names and a word of change whose texts are read, the newest
/// first.
const MAX_READ_EVENTS: usize = 4;

/// Matches what says that something was changed; `None` if the pattern is invalid, which a test excludes.
static CHANGED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:instead of|no longer|revert(?:ed)?|rolled back|switched (?:from|to|back)|replaced|turned out|turns out|w(?:as|ere) wrong|decided|changed (?:from|to)|superseded|dropped)\b",
    )
    .ok()
});

/// The longest words of what [`CHANGED`] matches.
const CHANGE_WORDS: &[&str] = &[
    "instead",
    "longer",
    "revert",
    "reverted",
    "rolled",
    "switched",
    "replaced",
    "turned",
    "turns",
    "wrong",
    "decided",
    "changed",
    "superseded",
    "dropped",
];

/// Matches a sentence about what will be done, may be, or is not so; `None` as for [`CHANGED`].
static UNCERTAIN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        ^\W* (?: i.?m | i.?ll | i\ am | i\ need | let\ me | let.s | now | next | step\ \d+ ) \b
        | \[\ \]
        | n['\u{2019}]t \b
        | \b (?: not | never | nothing | none | cannot | maybe | perhaps | might | may | would | should
            | could | will | shall | can | if | unless | whether | plan | planned | plans | todo | better
            | suggest | suggests | suggested | propose | proposes | proposed | fine ) \b",
    )
    .ok()
});

/// What a passage says about parts of code.
pub(super) struct Statement<'a> {
    passage: &'a PassageFacts<'a>,
    later: &'a LaterSessions<'a>,
    /// In lower case, the longest first.
    names: Vec<String>,
}

impl<'a> Statement<'a> {
    /// Returns what a passage says; `None` if nobody said it, or if it does not name enough.
    pub(super) fn of_passage(
        passage: &'a PassageFacts<'a>,
        later: &'a LaterSessions<'a>,
    ) -> Option<Self> {
        if !passage.event_type.is_talk() {
            return None;
        }
        let project = later.session.origin.project.as_deref().unwrap_or_default();
        let mut names: Vec<String> = code_names(passage.text).into_iter().collect();
        names.retain(|name| !is_same_name(name, project));
        names.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        names.truncate(MAX_NAMES);
        (names.len() >= SHARED_NAMES).then_some(Self { passage, later, names })
    }

    pub(super) fn owner(&self) -> usize {
        self.passage.owner
    }

    /// True if an event may say that something was changed after the passage: in a later turn of its
    /// session, or in another session.
    fn may_be_changed_in(&self, session: usize, fact: &RowFacts) -> bool {
        let is_later =
            fact.time.is_some_and(|time| time > self.passage.time && time < self.later.until);
        let is_elsewhere = session != self.passage.session || fact.turn_index > self.passage.turn;
        fact.event_type.is_talk() && is_later && is_elsewhere && !fact.is_replay
    }

    fn may_be_in(&self, session: usize) -> bool {
        session == self.passage.session || self.later.sessions.contains(&session)
    }
}

/// A later event that has the words of two names of a statement, and a word of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LaterEvent {
    row: PastRow,
    /// Position of its segment, and its row there.
    place: (usize, usize),
}

/// Returns for each statement the last event after it which says that something was changed about two
/// names that both have in a sentence.
pub(super) fn find_later_statements(
    snapshot: &Snapshot,
    statements: &[Statement<'_>],
) -> Result<Vec<Option<PastRow>>, StoreError> {
    let found = find_candidates(snapshot, statements)?;
    let mut last = Vec::new();
    for (statement, candidates) in statements.iter().zip(found) {
        last.push(find_change(snapshot, statement, &candidates)?);
    }
    Ok(last)
}

/// Returns for each statement the last events after it that may say that something was changed.
fn find_candidates(
    snapshot: &Snapshot,
    statements: &[Statement<'_>],
) -> Result<Vec<Vec<LaterEvent>>, StoreError> {
    let mut found: Vec<BTreeSet<LaterEvent>> = vec![BTreeSet::new(); statements.len()];
    for (number, segment) in snapshot.segments().iter().enumerate() {
        let mut wanted = Vec::new();
        for (statement, found) in statements.iter().zip(&mut found) {
            let spans = segment.spans.iter().filter(|span| statement.may_be_in(span.session));
            let spans: Vec<_> = spans.collect();
            if !spans.is_empty() {
                wanted.push((statement, spans, found));
            }
        }
        if wanted.is_empty() {
            continue;
        }
        let index = segment.skip_index()?;
        let mut words = KnownWords::new(index);
        for (statement, spans, found) in wanted {
            let mut rows = words.rows_with_names(&statement.names)?;
            if rows.is_clear() {
                continue;
            }
            rows.intersect_with(words.rows_with_change()?);
            for row in rows.ones() {
                let Some(span) =
                    spans.iter().find(|span| (span.start..span.start + span.count).contains(&row))
                else {
                    continue;
                };
                let facts = index.read_facts(row..row + 1)?;
                let fact = facts.iter().next();
                let fact = fact.filter(|fact| statement.may_be_changed_in(span.session, fact));
                if let Some(time) = fact.and_then(|fact| fact.time) {
                    let offset = u32::try_from(row - span.start).unwrap_or(u32::MAX);
                    let event_index = span.first_index.saturating_add(offset);
                    let at = PastRow { time, session: span.session, event_index };
                    found.insert(LaterEvent { row: at, place: (number, row) });
                }
            }
            while found.len() > MAX_READ_EVENTS {
                found.pop_first();
            }
        }
    }
    Ok(found.into_iter().map(|found| found.into_iter().collect()).collect())
}

/// The rows of a segment that have words which were looked up.
struct KnownWords<'i> {
    lookup: WordLookup<'i>,
    row_count: usize,
    rows: HashMap<String, FixedBitSet>,
    /// The rows with a word of change, once they are looked up.
    changed: Option<FixedBitSet>,
}

impl<'i> KnownWords<'i> {
    fn new(index: &'i SkipIndex) -> Self {
        Self {
            lookup: index.word_lookup(),
            row_count: index.row_count(),
            rows: HashMap::new(),
            changed: None,
        }
    }

    /// Returns the rows that are known to have a word.
    fn look_up(&self, word: &str) -> Result<FixedBitSet, StoreError> {
        let mut found = FixedBitSet::with_capacity(self.row_count);
        let mut take = |_: &str, rows: &FixedBitSet| found.union_with(rows);
        self.lookup.for_each_word(word, &|known| known == word, &mut take)?;
        Ok(found)
    }

    /// Returns the rows with the longest words of at least two of the names.
    fn rows_with_names(&mut self, names: &[String]) -> Result<FixedBitSet, StoreError> {
        let mut once = FixedBitSet::with_capacity(self.row_count);
        let mut twice = FixedBitSet::with_capacity(self.row_count);
        let words: BTreeSet<&str> = names.iter().filter_map(|name| longest_word(name)).collect();
        for word in words {
            if !self.rows.contains_key(word) {
                self.rows.insert(word.to_owned(), self.look_up(word)?);
            }
            let rows = &self.rows[word];
            let mut both = rows.clone();
            both.intersect_with(&once);
            twice.union_with(&both);
            once.union_with(rows);
        }
        Ok(twice)
    }

    /// Returns the rows with a word of change.
    fn rows_with_change(&mut self) -> Result<&FixedBitSet, StoreError> {
        let changed = match self.changed.take() {
            Some(changed) => changed,
            None => {
                let mut found = FixedBitSet::with_capacity(self.row_count);
                for word in CHANGE_WORDS {
                    found.union_with(&self.look_up(word)?);
                }
                found
            }
        };
        Ok(self.changed.insert(changed))
    }
}

/// Returns the longest word of a name, as the index lists it.
fn longest_word(name: &str) -> Option<&str> {
    let words = name.split(|c: char| !c.is_ascii_alphabetic());
    words.max_by_key(|word| word.len()).filter(|word| word.len() >= SHORTEST_WORD)
}

/// Returns the last of the candidates that says that something was changed.
fn find_change(
    snapshot: &Snapshot,
    statement: &Statement<'_>,
    candidates: &[LaterEvent],
) -> Result<Option<PastRow>, StoreError> {
    if candidates.is_empty() {
        return Ok(None);
    }
    let own = [statement.passage.place];
    let said = read_row_texts(snapshot, &own, |_, text| Ok(kept_part(text).to_owned()))?;
    let Some((_, said)) = said.into_iter().next() else { return Ok(None) };
    let names: HashSet<&str> = statement.names.iter().map(String::as_str).collect();
    let said_names: Vec<BTreeSet<String>> = sentences(&said).map(code_names).collect();
    let is_change = |sentence: &str| {
        says_change(sentence) && !said.contains(sentence) && {
            let changed = code_names(sentence);
            said_names.iter().any(|said| is_about_same(said, &changed, &names))
        }
    };
    let places: Vec<(usize, usize)> = candidates.iter().map(|found| found.place).collect();
    let changes =
        read_row_texts(snapshot, &places, |_, text| Ok(sentences(kept_part(text)).any(is_change)))?;
    let last = changes.into_iter().filter(|(_, is_change)| *is_change).map(|(at, _)| at).max();
    Ok(last.map(|at| candidates[at].row))
}

/// Returns true if two sentences share enough of the names that are looked for.
fn is_about_same(
    said: &BTreeSet<String>,
    changed: &BTreeSet<String>,
    names: &HashSet<&str>,
) -> bool {
    let shared = said.intersection(changed).filter(|name| names.contains(name.as_str()));
    let shared: Vec<&String> = shared.collect();
    shared.len() >= SHARED_NAMES && shared.iter().any(|name| name.len() >= MIN_LONGEST_NAME_BYTES)
}

/// Returns true if a sentence says that something was changed, not that it will or may be.
fn says_change(sentence: &str) -> bool {
    let is_change = CHANGED.as_ref().is_some_and(|pattern| pattern.is_match(sentence));
    let is_uncertain = UNCERTAIN.as_ref().is_none_or(|pattern| pattern.is_match(sentence));
    is_change && !is_uncertain && !sentence.ends_with('?')
}

/// Returns the sentences and lines of a text that are neither too short nor too long.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let parts = text
        .lines()
        .flat_map(|line| line.split_inclusive(". ").flat_map(|part| part.split_inclusive("? ")));
    parts
        .map(str::trim)
        .filter(|part| (MIN_SENTENCE_BYTES..=MAX_SENTENCE_BYTES).contains(&part.len()))
}

/// Returns the names of code in a text, in lower case: words with an underscore, or with a capital after a
/// small letter. The targets of links are left out.
fn code_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, part) in text.split("](").enumerate() {
        let shown = if at == 0 { part } else { part.split_once(')').map_or("", |(_, rest)| rest) };
        let words = shown.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for word in words.map(|word| word.trim_matches('_')) {
            if word.len() >= MIN_NAME_BYTES && is_code_name(word) {
                names.insert(word.to_ascii_lowercase());
            }
        }
    }
    names
}

fn is_code_name(word: &str) -> bool {
    let mut pairs = word.as_bytes().windows(2);
    word.contains('_')
        || pairs.any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase())
}

/// Returns true if a name is that of a project, however both are written.
fn is_same_name(name: &str, project: &str) -> bool {
    let plain = |text: &str| {
        let letters = text.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|letter| letter.to_ascii_lowercase()).collect::<String>()
    };
    plain(project).contains(&plain(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_code_are_told_from_words() {
        let text = "Use `retry_budget` of [RetryQueue](src/linkTarget.rs) in MiraHarbor::takeTurn, not Retry.";
        let names: Vec<String> = code_names(text).into_iter().collect();
        assert_eq!(names, ["miraharbor", "retry_budget", "retryqueue", "taketurn"]);
        assert!(is_same_name("miraharbor", "mira-harbor") && !is_same_name("taketurn", "harbor"));
    }

    #[test]
    fn a_plan_or_a_question_is_no_change() {
        assert!(says_change("`retryBudget` is no longer shared with `RetryQueue`."));
        assert!(says_change("- Replaced `retryBudget` by `RetryQueue`"));
        for sentence in [
            "I'll use `retryBudget` instead of `RetryQueue`.",
            "Should `retryBudget` be replaced?",
            "`retryBudget` is shared.",
            "`retryBudget` is not replaced in `LampQueue`.",
            "`retryBudget` wasn\u{2019}t dropped from `LampQueue`.",
            "- [ ] `retryBudget` gets dropped from `LampQueue`",
            "Maybe `retryBudget` was wrong in `LampQueue`.",
            "The user said `retryBudget` should be replaced by `LampQueue`.",
            "It turns out that `retryBudget` is fine in `LampQueue`.",
        ] {
            assert!(!says_change(sentence), "{sentence}");
        }
    }

    #[test]
    fn sentences_end_at_stops_and_lines() {
        let found: Vec<&str> = sentences(
            "The first one is here. The second one is too\nshort\nA third one comes after",
        )
        .collect();
        assert_eq!(
            found,
            ["The first one is here.", "The second one is too", "A third one comes after"]
        );
    }
}
