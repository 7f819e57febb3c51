//! Finds decisions about the files that a branch works on.

use std::collections::{BTreeSet, HashSet};

use schemas::ToolError;
use schemas::table::EventColumn;

use super::past_rows::{HistoryScope, PastRow, find_past_rows, read_past_rows};
use crate::error::store_error;
use crate::reply::convert;
use base::sanitize::clean_text;
use store::{RowFacts, Snapshot, StoreError};

/// Words of sentences that state a decision, in lower case.
const MARKERS: [&str; 4] = ["decided", "decision", "agreed", "settled"];

/// Maximum number of events with a marker whose texts are read.
const MAX_READ_EVENTS: usize = 60;

/// Maximum size in bytes of a sentence that states a decision.
const MAX_SENTENCE_BYTES: usize = 400;

/// Names of files with fewer bytes than this may be ordinary words.
const MIN_NAME_BYTES: usize = 5;

/// A sentence that states a decision. It is untrusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Position of the session in the snapshot.
    pub session: usize,
    pub event_id: String,
    pub sentence: String,
}

/// Returns at most `limit` decisions in `scope` that name a file which sessions on `branch` edited,
/// the newest first. `stop` ends the search.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn find_decisions(
    snapshot: &Snapshot,
    scope: &HistoryScope,
    branch: &str,
    limit: usize,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<Decision>, ToolError> {
    let names = collect_file_names(snapshot, scope, branch, stop).map_err(store_error)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let is_talk = |fact: &RowFacts| fact.event_type.is_talk();
    let mut places: BTreeSet<PastRow> = BTreeSet::new();
    for marker in MARKERS {
        if stop() {
            return Ok(Vec::new());
        }
        let words = [marker.to_owned()];
        let found = find_past_rows(snapshot, scope, &words, &is_talk, MAX_READ_EVENTS);
        places.extend(found.map_err(store_error)?);
    }
    let newest: Vec<PastRow> = places.into_iter().rev().take(MAX_READ_EVENTS).collect();
    let columns = [EventColumn::SessionId, EventColumn::EventIndex, EventColumn::Text];
    let mut decisions = Vec::new();
    for (place, row) in read_past_rows(snapshot, &newest, &columns).map_err(store_error)? {
        if let Some(sentence) = find_decision(&clean_text(&row.text), &names) {
            let event_id = convert::event_id(&row);
            decisions.push(Decision { session: place.session, event_id, sentence });
        }
        if decisions.len() == limit {
            break;
        }
    }
    Ok(decisions)
}

/// Returns the names of the files that calls on a branch name.
fn collect_file_names(
    snapshot: &Snapshot,
    scope: &HistoryScope,
    branch: &str,
    stop: &dyn Fn() -> bool,
) -> Result<HashSet<String>, StoreError> {
    let mut names = HashSet::new();
    for segment in snapshot.segments() {
        for span in segment.spans.iter().filter(|span| scope.sessions.contains(&span.session)) {
            let row = snapshot.sessions()[span.session].row()?;
            if row.git_branch.as_deref() != Some(branch) {
                continue;
            }
            if stop() {
                return Ok(HashSet::new());
            }
            // A segment without events has no index.
            let index = segment.skip_index()?;
            let facts = index.read_facts(span.start..span.start + span.count)?;
            let lists: HashSet<u32> = facts
                .iter()
                .filter(|fact| fact.time.is_some_and(|time| time < scope.until))
                .map(|fact| fact.file_list)
                .collect();
            for list in lists {
                let paths = index.file_lists()?.get(list as usize);
                let paths = paths.into_iter().flat_map(|paths| paths.lines());
                let of_list = paths.filter_map(|path| path.rsplit(['/', '\\']).next());
                names.extend(
                    of_list
                        .filter(|name| name.len() >= MIN_NAME_BYTES && name.contains('.'))
                        .map(str::to_lowercase),
                );
            }
        }
    }
    Ok(names)
}

/// Returns the first sentence that states a decision and names one of the files.
fn find_decision(text: &str, names: &HashSet<String>) -> Option<String> {
    let sentences = text.split(". ").flat_map(|part| part.split('\n')).map(str::trim);
    for sentence in sentences.filter(|sentence| sentence.len() <= MAX_SENTENCE_BYTES) {
        let lower = sentence.to_lowercase();
        let has_marker = MARKERS.iter().any(|marker| lower.contains(marker));
        let words = lower.split(|c: char| c.is_whitespace() || "/\\`'\"(),:;*[]".contains(c));
        let is_about_file =
            words.into_iter().any(|word| names.contains(word.trim_end_matches('.')));
        if has_marker && is_about_file {
            return Some(sentence.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_names_a_file_of_the_branch() {
        let names = HashSet::from(["limits.rs".to_owned()]);
        let text = "Done. We decided to keep the constants in `src/Limits.rs`. Next: tests.";
        assert_eq!(
            find_decision(text, &names).as_deref(),
            Some("We decided to keep the constants in `src/Limits.rs`")
        );
        for other in ["We decided to use main.rs.", "See limits.rs.", "undecided\nlimits.rs", ""] {
            assert_eq!(find_decision(other, &names), None, "{other}");
        }
    }
}
