//! Finds a page of matches that fits into an answer.

use std::collections::BTreeMap;

use schemas::tool::search::{Match, SearchArgs};
use schemas::{EventId, ToolError, limits};

use super::parsed::ParsedSearch;
use super::quotes::{quote_diff, quote_snippet, show_texts};
use crate::error::{search_error, store_error};
use crate::reply::budget::Budget;
use crate::reply::call::Call;
use crate::reply::convert;
use crate::reply::cursor::{self, PageEnd};
use base::sanitize::clean_text;
use search::{ResultPosition, SearchHit, SearchRequest};
use store::{Snapshot, StoreError};

/// A page of matches, within the budget of an answer.
pub(super) struct MatchPage {
    pub(super) matches: Vec<Match>,
    /// The number of matches on the pages before this one.
    pub(super) before: usize,
    pub(super) next: Option<String>,
    pub(super) matched: usize,
    pub(super) is_complete: bool,
    pub(super) is_timed_out: bool,
    /// True if everything that was found fits into an answer.
    pub(super) includes_all_hits: bool,
    /// The words of a ranked search that no searched event has.
    pub(super) absent_words: Vec<String>,
}

impl MatchPage {
    /// True if nothing matches, on this page or before it.
    pub(super) fn is_empty(&self) -> bool {
        self.matches.is_empty() && self.before == 0
    }
}

/// Finds the newest or the oldest matches.
pub(super) fn find_matches_by_time(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    parsed: &ParsedSearch<'_>,
    call: &Call<'_>,
) -> Result<MatchPage, ToolError> {
    let ParsedSearch { bound, seen, .. } = parsed;
    let found = search::search(snapshot, request, call.stop).map_err(search_error)?;
    let shows_diffs = request.query.clauses.is_empty();
    let matches = collect_matches(snapshot, bound, &found.hits, 0, shows_diffs)?;
    let includes_all_hits = matches.len() == found.hits.len();

    // A page that was cut continues after its last match.
    let last = if includes_all_hits { None } else { matches.len().checked_sub(1) };
    let next_position = match last {
        Some(last) => Some(hit_position(snapshot, request, &found.hits[last])),
        None => found.next,
    };
    let next =
        next_position.map(|at| cursor::encode(bound, &PageEnd { at, seen: seen + matches.len() }));

    Ok(MatchPage {
        matches,
        before: *seen,
        next,
        matched: seen + found.matched,
        is_complete: found.is_complete,
        is_timed_out: found.is_timed_out,
        includes_all_hits,
        absent_words: Vec::new(),
    })
}

fn hit_position(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    hit: &SearchHit,
) -> ResultPosition {
    let session_id = snapshot.sessions()[hit.session].id();
    ResultPosition::new(request.query.sort, hit.facts.time, session_id, hit.event_index)
}

/// Finds the best matches, with more of their texts than snippets if `shows_texts` is true.
pub(super) fn find_best_matches(
    snapshot: &Snapshot,
    request: &SearchRequest<'_>,
    parsed: &ParsedSearch<'_>,
    shows_texts: bool,
    call: &Call<'_>,
) -> Result<MatchPage, ToolError> {
    let ParsedSearch { bound, seen, .. } = parsed;
    let found = search::search_ranked(snapshot, request, parsed.after_rank.as_ref(), call.stop)
        .map_err(search_error)?;
    let mut matches = collect_matches(snapshot, bound, &found.hits, found.cursor_bytes(), false)?;
    if shows_texts {
        show_texts(snapshot, &mut matches, &found.hits)?;
    }
    let includes_all_hits = matches.len() == found.hits.len();

    // After a timeout, matches that were not examined may rank before these.
    let has_next = (found.has_more || !includes_all_hits) && !found.is_timed_out;
    let last = if has_next { matches.len().checked_sub(1) } else { None };
    let next = last.map(|last| {
        let at = found.position_after(last + 1, snapshot);
        cursor::encode(bound, &PageEnd { at, seen: seen + matches.len() })
    });

    Ok(MatchPage {
        matches,
        before: *seen,
        next,
        matched: seen + found.matched,
        is_complete: found.is_complete,
        is_timed_out: found.is_timed_out,
        includes_all_hits,
        absent_words: found.absent_words,
    })
}

/// Returns the matches of the hits that fit into an answer. The budget leaves space for the query,
/// which the answer repeats, and for a cursor of about `cursor_bytes`. With `shows_diffs`, the
/// snippets of edits are diffs.
fn collect_matches(
    snapshot: &Snapshot,
    args: &SearchArgs,
    hits: &[SearchHit],
    cursor_bytes: usize,
    shows_diffs: bool,
) -> Result<Vec<Match>, ToolError> {
    let reserved = 4 * args.query.len() + cursor_bytes;
    let mut budget = Budget::new(limits::ANSWER_BYTES.saturating_sub(reserved));
    let mut matches: Vec<Match> = Vec::new();
    for hit in hits {
        let mut found = convert_hit(snapshot, hit).map_err(store_error)?;
        if matches.last().is_some_and(|last| last.session_id == found.session_id) {
            found.provider = None;
            found.project = None;
        }
        if shows_diffs && let Some(diff) = quote_diff(snapshot, &found, hit)? {
            found.snippet = diff;
            found.is_diff = true;
        }
        if !budget.take(&found) {
            break;
        }
        matches.push(found);
    }
    Ok(matches)
}

fn convert_hit(snapshot: &Snapshot, hit: &SearchHit) -> Result<Match, StoreError> {
    let facts = &hit.facts;
    let session = snapshot.sessions()[hit.session].row()?;
    Ok(Match {
        event_id: EventId::format(&session.session_id, hit.event_index),
        session_id: session.session_id.clone(),
        event_index: hit.event_index,
        turn_index: facts.turn_index,
        step_index: facts.step_index,
        event_type: facts.event_type,
        subtype: hit.tags.subtype.as_deref().map(clean_text),
        timestamp: convert::format_time(facts.time),
        provider: Some(session.provider),
        project: session.project.as_deref().map(clean_text),
        tool_name: hit.tags.tool.as_deref().map(clean_text),
        is_error: facts.is_error,
        is_replay: facts.is_replay,
        is_abandoned: i32::try_from(hit.event_index).is_ok_and(|at| session.is_abandoned(at)),
        confidence: hit.confidence,
        snippet: quote_snippet(&hit.snippet),
        is_diff: false,
        context: BTreeMap::new(),
    })
}
