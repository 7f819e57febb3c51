//! Measures how many of the events that answer a question a ranked search finds, and how often its
//! confidence is right.

use std::time::{Duration, Instant};

use schemas::tool::search::SearchSort;
use schemas::{EventId, Timestamp};
use search::{COUNTED_ROWS, Query, SearchRequest, can_rank, search_ranked};
use store::Snapshot;

use super::{Question, locomo, sessions_of};
use crate::measure::Times;

/// Events of an answer that are examined.
const RANKED: usize = 10;

/// Upper bounds of the confidences that are counted together.
const CONFIDENCE_BOUNDS: [f64; 8] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0];

/// The events that one question found.
struct Found {
    /// The ids of the events, best first.
    events: Vec<String>,
    /// The session of the best event.
    session: Option<String>,
    /// The confidence of the best event.
    confidence: f64,
    seconds: f64,
}

/// Asks each question of its own conversation. Prints which share of the answering events is among the
/// first ones, on average over the questions, and how often the session of the best one is right.
pub(super) fn print_recall(snapshot: &Snapshot, questions: &[Question]) {
    let asked: Vec<&Question> =
        questions.iter().filter(|question| !question.events.is_empty()).collect();
    let found: Vec<Found> = asked.iter().map(|question| find_events(snapshot, question)).collect();

    println!("\n| events by relevance | questions | recall@{RANKED} | any gold hit@{RANKED} |");
    println!("|---|---|---|---|");
    let is_tuned = |question: &Question| locomo::TUNED.contains(&question.conversation.as_str());
    print_row("LoCoMo 26 and 30 (weights tuned on these)", &asked, &found, &is_tuned);
    print_row("LoCoMo, the other conversations", &asked, &found, &|question| !is_tuned(question));
    print_row("LoCoMo, every conversation alone", &asked, &found, &|_| true);
    print_calibration(&asked, &found);
    let times = Times::of(found.iter().map(|found| found.seconds));
    println!("\none ranked search: p50 {:.2} ms, p99 {:.2} ms", times.p50, times.p99);
}

/// Prints the results of the questions that `is_included` accepts.
fn print_row(
    name: &str,
    asked: &[&Question],
    found: &[Found],
    is_included: &dyn Fn(&Question) -> bool,
) {
    let mut count = 0;
    let mut recall = 0.0;
    let mut with_any = 0;
    for (question, found) in asked.iter().zip(found) {
        if !is_included(question) {
            continue;
        }
        let gold = &question.events;
        let hits = gold.iter().filter(|event| found.events.contains(event)).count();
        count += 1;
        recall += hits as f64 / gold.len() as f64;
        with_any += usize::from(hits > 0);
    }
    let share = |sum: f64| 100.0 * sum / f64::max(f64::from(count), 1.0);
    println!("| {name} | {count} | {:.1} | {:.1} |", share(recall), share(with_any as f64));
}

/// Prints, for ranges of the confidence of the best event, how often its session answers the question.
fn print_calibration(asked: &[&Question], found: &[Found]) {
    println!("\n| confidence of the best event | questions | mean | of the right session |");
    println!("|---|---|---|---|");
    let mut low = 0.0;
    for high in CONFIDENCE_BOUNDS {
        let mut count = 0;
        let mut sum = 0.0;
        let mut right = 0;
        for (question, found) in asked.iter().zip(found) {
            let Some(session) = &found.session else { continue };
            if found.confidence > low && found.confidence <= high {
                count += 1;
                sum += found.confidence;
                right += usize::from(question.gold.contains(session));
            }
        }
        let mean = |sum: f64| sum / f64::max(f64::from(count), 1.0);
        let right = 100.0 * mean(right as f64);
        println!("| {low:.1} to {high:.1} | {count} | {:.2} | {right:.0} % |", mean(sum));
        low = high;
    }
}

/// Asks one question.
fn find_events(snapshot: &Snapshot, question: &Question) -> Found {
    let mut found = Found { events: Vec::new(), session: None, confidence: 0.0, seconds: 0.0 };
    let words = question.text.replace(['"', '/', ':'], " ");
    let Ok(mut query) = Query::parse(&words, Timestamp(0)) else { return found };
    query.sort = SearchSort::Relevance;
    if !can_rank(&query) {
        return found;
    }
    let start = Instant::now();
    let request = SearchRequest {
        query: &query,
        sessions: Some(sessions_of(snapshot, &question.conversation)),
        event_types: Vec::new(),
        since: None,
        limit: RANKED,
        one_per_session: false,
        after: None,
        counted_rows: COUNTED_ROWS,
        deadline: Some(start + Duration::from_secs(60)),
    };
    let page = search_ranked(snapshot, &request, None, &|| false).expect("searches");
    found.seconds = start.elapsed().as_secs_f64();
    let id = |session: usize| &snapshot.sessions()[session].session_id;
    for hit in &page.hits {
        found.events.push(EventId::format(id(hit.session), hit.event_index));
    }
    if let Some(best) = page.hits.first() {
        found.session = Some(id(best.session).clone());
        found.confidence = best.confidence.unwrap_or(0.0);
    }
    found
}
