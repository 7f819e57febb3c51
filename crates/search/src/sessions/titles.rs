//! Finds words of a question in the titles of sessions.

use super::postings::AskedRows;
use super::question::{FirstLetters, SessionQuestion};
use base::fold::fold_text;
use base::parallel::in_parallel;
use store::{SHORTEST_WORD, Snapshot, StoreError};

/// What a word that only begins like one of the question counts in a title.
const RELATED_VALUE: f32 = 0.25;

/// Number of sessions whose titles a core reads at once.
const SESSIONS_AT_ONCE: usize = 512;

/// A session whose title has words of the question.
pub(super) struct TitleHit {
    /// Position in `Snapshot::sessions`.
    pub(super) session: usize,
    /// Bytes of the title.
    pub(super) length: f32,
    /// For each word of the question that the title has: its position in the question, and 1, or
    /// less if the title has a related word only.
    pub(super) values: Vec<(usize, f32)>,
}

impl TitleHit {
    /// True if the title has a word of the question, not only a related one.
    pub(super) fn has_full_word(&self) -> bool {
        self.values.iter().any(|(_, value)| *value >= 1.0)
    }
}

/// Returns the titles of the sessions that are asked about and that have words of the question. Sessions
/// that only repeat others are left out, and those that continued after the time of the question, whose
/// title may be newer.
pub(super) fn find_title_hits(
    snapshot: &Snapshot,
    question: &SessionQuestion,
    asked: AskedRows<'_>,
) -> Result<Vec<TitleHit>, StoreError> {
    let sessions: Vec<usize> = (0..snapshot.sessions().len()).collect();
    let parts = in_parallel(&sessions, SESSIONS_AT_ONCE, |sessions| {
        Ok::<_, StoreError>(find_hits_of_sessions(snapshot, sessions, question, asked))
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// Returns the title hits of the sessions at the positions `sessions`.
fn find_hits_of_sessions(
    snapshot: &Snapshot,
    sessions: &[usize],
    question: &SessionQuestion,
    asked: AskedRows<'_>,
) -> Vec<TitleHit> {
    let letters = question.first_letters();
    let mut found = Vec::new();
    for session in sessions.iter().copied() {
        let summary = &snapshot.sessions()[session];
        let is_copy = summary.events > 0 && summary.replay_events == summary.events;
        if is_copy || !asked.includes(session) || asked.may_exclude_by_time(summary) {
            continue;
        }
        let Some(title) = &summary.title else { continue };
        let values = weigh_terms(question, &letters, title);
        if !values.is_empty() {
            found.push(TitleHit { session, length: title.len() as f32, values });
        }
    }
    found
}

/// Returns the terms that a title has, each with its value, in the order of the question.
fn weigh_terms(
    question: &SessionQuestion,
    letters: &FirstLetters,
    title: &str,
) -> Vec<(usize, f32)> {
    let mut values = Vec::new();
    for word in title.as_bytes().split(|byte| !byte.is_ascii_alphabetic()) {
        if word.len() < SHORTEST_WORD || !letters.may_begin(word[0]) {
            continue;
        }
        let word = String::from_utf8_lossy(word).to_ascii_lowercase();
        for (position, term) in
            question.terms.iter().enumerate().filter(|(_, term)| term.is_indexed)
        {
            if term.is_form_of(&word) {
                values.push((position, 1.0));
            } else if term.is_related_to(&word) {
                values.push((position, RELATED_VALUE));
            }
        }
    }
    if question.has_unlisted_terms() {
        let folded = fold_text(title);
        let unlisted = question.terms.iter().enumerate().filter(|(_, term)| !term.is_indexed);
        values.extend(
            unlisted.filter(|(_, term)| folded.contains(&term.stem)).map(|(at, _)| (at, 1.0)),
        );
    }
    // Several words of the title may be the same one of the question.
    values.sort_by(|(a, full), (b, part)| a.cmp(b).then(part.total_cmp(full)));
    values.dedup_by_key(|(position, _)| *position);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_have_words_in_other_forms_and_related_ones() {
        let question = SessionQuestion::parse("caching of configuration 指针 port 8080");
        let values = |title: &str| weigh_terms(&question, &question.first_letters(), title);
        assert_eq!(values("Cached ports"), [(0, 1.0), (3, 1.0)]);
        assert_eq!(values("the lamp"), []);
        assert_eq!(values("Configurable 悬空指针"), [(1, RELATED_VALUE), (2, 1.0)]);
        assert_eq!(values("listen on 8080"), [(4, 1.0)]);
    }
}
