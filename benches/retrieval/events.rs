//! Measures how many of the events that answer a question a ranked search finds.

use std::time::{Duration, Instant};

use schemas::tool::search::SearchSort;
use schemas::{EventId, Timestamp};
use sessions::search::{COUNTED_ROWS, Query, SearchRequest, can_rank, search_ranked};
use sessions::store::Snapshot;

use super::{Question, sessions_of};

/// Events of an answer that are looked at.
const RANKED: usize = 10;

/// Prints which share of the answering events is among the first of a ranked search, on average over
/// the questions, each asked of its own conversation.
pub(super) fn print_recall(snapshot: &Snapshot, questions: &[Question]) {
    let mut sum = 0.0;
    let mut asked = 0;
    for question in questions.iter().filter(|question| !question.events.is_empty()) {
        let found = find_events(snapshot, question);
        let hits = question.events.iter().filter(|event| found.contains(event)).count();
        sum += hits as f64 / question.events.len() as f64;
        asked += 1;
    }
    let recall = 100.0 * sum / f64::from(asked.max(1));
    println!("\nevents by relevance: recall@{RANKED} {recall:.1} over {asked} questions");
}

/// Returns the ids of the first events.
fn find_events(snapshot: &Snapshot, question: &Question) -> Vec<String> {
    let words = question.text.replace(['"', '/', ':'], " ");
    let Ok(mut query) = Query::parse(&words, Timestamp(0)) else { return Vec::new() };
    query.sort = SearchSort::Relevance;
    if !can_rank(&query) {
        return Vec::new();
    }
    let request = SearchRequest {
        query: &query,
        sessions: Some(sessions_of(snapshot, &question.conversation)),
        event_types: Vec::new(),
        since: None,
        limit: RANKED,
        after: None,
        counted_rows: COUNTED_ROWS,
        deadline: Some(Instant::now() + Duration::from_secs(60)),
    };
    let page = search_ranked(snapshot, &request, None, &|| false).expect("searches");
    let id = |session: usize| &snapshot.sessions()[session].session_id;
    page.hits.iter().map(|hit| EventId::format(id(hit.session), hit.event_index)).collect()
}
