//! The page of one session, and its contribution to the sums.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::price::PriceTable;
use schemas::session::{EventRow, LONG_PROMPTS, ModelUsage, is_sum_of_requests};
use schemas::{EventId, EventType, Provider, Timestamp, Usage};
use serde::Serialize;

use super::read;
use super::spent::Spent;
use super::sums::{ReportSums, display_name};
use crate::base::sanitize::clean_text;
use crate::store::{Snapshot, StoreError};
use crate::tools::{TimeRange, error_signature, is_subagent};

/// Maximum number of turns shown.
const MAX_TURNS: usize = 500;

/// Maximum number of failures shown.
const MAX_FAILURES: usize = 10;

/// Maximum number of characters of a text that are shown.
const MAX_EXCERPT_CHARS: usize = 800;

/// A session in the form that its page shows.
#[derive(Debug, Default, Serialize)]
pub(super) struct SessionPage {
    pub(super) session_id: String,
    pub(super) provider: Provider,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    git_branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    relation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) parent_session_id: Option<String>,
    pub(super) is_subagent: bool,
    /// The sessions whose parent is this one.
    pub(super) children: Vec<String>,
    pub(super) turns: usize,
    pub(super) tool_calls: usize,
    pub(super) tool_errors: usize,
    #[serde(flatten)]
    pub(super) spent: Spent,
    /// The cost of the session and of all its subagents, including nested ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) family_cost_usd: Option<f64>,
    models: Vec<ModelSpent>,
    tools: Vec<SessionToolCount>,
    /// The last failures.
    failures: Vec<ShownFailure>,
    timeline: Vec<TimelineTurn>,
    timeline_omitted: usize,
}

#[derive(Debug, Serialize)]
struct ModelSpent {
    model: String,
    #[serde(flatten)]
    spent: Spent,
}

#[derive(Debug, Serialize)]
struct SessionToolCount {
    tool_name: String,
    calls: usize,
    errors: usize,
}

#[derive(Debug, Serialize)]
struct ShownFailure {
    event_id: String,
    turn_index: i32,
    tool_name: String,
    text: String,
}

/// A prompt with its last answer and the counts between them.
#[derive(Debug, Default, Serialize)]
struct TimelineTurn {
    turn_index: i32,
    /// The id of the first event.
    event_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    tool_calls: usize,
    tool_errors: usize,
    #[serde(flatten)]
    spent: Spent,
}

/// A turn while it is counted: its texts are not known yet.
#[derive(Default)]
struct CountedTurn {
    turn: TimelineTurn,
    /// The earliest and the latest time of an event.
    times: Option<(i64, i64)>,
    /// The index of the event with the prompt.
    prompt: Option<i32>,
    /// The index of the event with the last answer.
    answer: Option<i32>,
}

#[derive(Default)]
struct CallCounts {
    calls: usize,
    errors: usize,
}

/// The counts over a session.
#[derive(Default)]
struct SessionCounts {
    turns: BTreeMap<i32, CountedTurn>,
    models: BTreeMap<String, Spent>,
    tools: BTreeMap<String, CallCounts>,
    /// The failed results.
    failed: Vec<EventRow>,
    spent: Spent,
}

/// Reads the session at this position and adds it to the sums. Copied history is left out; so are
/// events outside the span of time.
pub(super) fn read_session_page(
    snapshot: &Snapshot,
    at: usize,
    range: TimeRange,
    prices: &PriceTable,
    sums: &mut ReportSums,
) -> Result<SessionPage, StoreError> {
    let row = &snapshot.sessions()[at];
    let id = row.session_id.as_str();
    let mut pricer = Pricer { prices, request: None };
    let mut count = SessionCounts::default();
    for event in read::read_events(snapshot, at)? {
        if is_counted(&event, range) {
            count.count_event(id, event, &mut pricer, sums);
        }
    }

    let mut turns: Vec<_> = count.turns.into_values().filter(CountedTurn::is_shown).collect();
    let whole_turns = turns.iter().filter(|counted| counted.turn.turn_index > 0).count();
    let turns_omitted = turns.len().saturating_sub(MAX_TURNS);
    turns.truncate(MAX_TURNS);
    let texts = EventTexts::read(snapshot, at, &turns, &count.failed)?;

    for event in &count.failed {
        let tool = display_name(event.tool_name.as_ref());
        let signature = error_signature(event, texts.get(event.event_index));
        sums.add_failure(id, &tool, event, signature);
    }
    let tools = most_called(count.tools);

    Ok(SessionPage {
        session_id: id.to_owned(),
        provider: row.provider,
        title: row.title.as_deref().map(clean_excerpt),
        project: row.project.as_deref().map(clean_excerpt),
        git_branch: row.git_branch.as_deref().map(clean_excerpt),
        model: row.model.as_deref().map(clean_excerpt),
        started_at: format_time(row.started_at),
        duration_ms: row.duration_ms(),
        relation: row.relation.clone(),
        parent_session_id: row.parent_session_id.clone(),
        is_subagent: is_subagent(row),
        children: Vec::new(),
        turns: whole_turns,
        tool_calls: tools.iter().map(|tool| tool.calls).sum(),
        tool_errors: count.failed.len(),
        spent: count.spent,
        family_cost_usd: None,
        models: count
            .models
            .into_iter()
            .map(|(model, spent)| ModelSpent { model, spent })
            .collect(),
        tools,
        failures: last_failures(id, &count.failed, &texts),
        timeline: turns.into_iter().map(|counted| counted.finish(&texts)).collect(),
        timeline_omitted: turns_omitted,
    })
}

/// Returns the tools, the most used first.
fn most_called(tools: BTreeMap<String, CallCounts>) -> Vec<SessionToolCount> {
    let mut counts = Vec::new();
    for (tool_name, CallCounts { calls, errors }) in tools {
        counts.push(SessionToolCount { tool_name, calls, errors });
    }
    counts.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
    counts
}

/// Returns the last of the `failed` results of the session `id`.
fn last_failures(id: &str, failed: &[EventRow], texts: &EventTexts) -> Vec<ShownFailure> {
    let mut failures = Vec::new();
    for event in failed.iter().skip(failed.len().saturating_sub(MAX_FAILURES)) {
        failures.push(ShownFailure {
            event_id: event_id(id, event),
            turn_index: event.turn_index,
            tool_name: display_name(event.tool_name.as_ref()),
            text: clean_excerpt(texts.get(event.event_index)),
        });
    }
    failures
}

/// Returns true if an event is not copied history and in the span of time.
fn is_counted(event: &EventRow, range: TimeRange) -> bool {
    !event.is_replay && range.includes(event.timestamp)
}

impl SessionCounts {
    /// Counts an event of the session `id`.
    fn count_event(
        &mut self,
        id: &str,
        event: EventRow,
        pricer: &mut Pricer<'_>,
        sums: &mut ReportSums,
    ) {
        let counted = self.turns.entry(event.turn_index).or_insert_with(|| CountedTurn {
            turn: TimelineTurn {
                turn_index: event.turn_index,
                event_id: event_id(id, &event),
                ..TimelineTurn::default()
            },
            ..CountedTurn::default()
        });
        if let Some(time) = event.timestamp {
            let (start, end) = counted.times.unwrap_or((time, time));
            counted.times = Some((start.min(time), end.max(time)));
        }

        match event.event_type {
            EventType::User if !event.is_sidechain => {
                counted.prompt = counted.prompt.or(Some(event.event_index));
            }
            EventType::Message if !event.is_sidechain => counted.answer = Some(event.event_index),
            EventType::ToolCall => {
                let tool = display_name(event.tool_name.as_ref());
                counted.turn.tool_calls += 1;
                sums.add_call(id, &tool, &event);
                self.tools.entry(tool).or_default().calls += 1;
            }
            EventType::ToolResult => {
                let tool = display_name(event.tool_name.as_ref());
                sums.add_result(&tool, &event);
                if event.is_error == Some(true) {
                    counted.turn.tool_errors += 1;
                    self.tools.entry(tool).or_default().errors += 1;
                    self.failed.push(event);
                }
            }
            EventType::TokenUsage => {
                let usage = event.usage();
                let cost = pricer.price_event(&event);
                let model = display_name(event.model.as_ref());
                sums.add_tokens(&event, &model, cost);
                counted.turn.spent.add(usage, cost);
                self.models.entry(model).or_default().add(usage, cost);
                self.spent.add(usage, cost);
            }
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::Notification => {}
        }
    }
}

impl CountedTurn {
    /// Returns true if the turn is shown. Events before the first prompt are seldom more than
    /// settings.
    fn is_shown(&self) -> bool {
        let turn = &self.turn;
        let has_text = self.prompt.is_some() || self.answer.is_some();
        turn.turn_index > 0 || has_text || turn.tool_calls > 0 || turn.spent.total_tokens > 0
    }

    /// Returns the turn with its texts and times.
    fn finish(self, texts: &EventTexts) -> TimelineTurn {
        TimelineTurn {
            prompt: texts.excerpt_at(self.prompt),
            answer: texts.excerpt_at(self.answer),
            timestamp: format_time(self.times.map(|(start, _)| start)),
            duration_ms: self.times.map(|(start, end)| (end - start) / 1000),
            ..self.turn
        }
    }
}

/// Prices token counts in the same way as the sums of a session: by the size of the request's whole
/// prompt, even if a request is counted in several events.
struct Pricer<'p> {
    prices: &'p PriceTable,
    /// The id of the last request, and the size of its prompt.
    request: Option<(String, i64)>,
}

impl Pricer<'_> {
    /// Returns the cost of an event's tokens; `None` if they are unknown, or if a kind of them has
    /// no price for its model.
    fn price_event(&mut self, event: &EventRow) -> Option<f64> {
        let usage = event.usage();
        let mut prompt = Usage { output: None, ..usage }.total();
        if let Some((id, earlier)) = &self.request
            && event.request_id.as_ref() == Some(id)
        {
            prompt = prompt.max(*earlier);
        }
        self.request = event.request_id.clone().map(|id| (id, prompt));

        let is_sum = is_sum_of_requests(event.subtype.as_deref());
        let priced_prompt = if is_sum { 0 } else { prompt };
        let prompt_over =
            LONG_PROMPTS.iter().rfind(|size| priced_prompt > **size).copied().unwrap_or(0);
        let mode = event.price_mode();
        ModelUsage { model: event.model.clone(), prompt_over, mode, usage }.cost(self.prices)
    }
}

/// The texts of prompts, answers and failures, by the index of their event.
struct EventTexts(HashMap<i32, String>);

impl EventTexts {
    fn read(
        snapshot: &Snapshot,
        session: usize,
        turns: &[CountedTurn],
        failed: &[EventRow],
    ) -> Result<Self, StoreError> {
        let turn_indices = turns.iter().flat_map(|turn| [turn.prompt, turn.answer]).flatten();
        let indices = turn_indices.chain(failed.iter().map(|event| event.event_index));
        let wanted: BTreeSet<u32> = indices.filter_map(|index| u32::try_from(index).ok()).collect();
        Ok(Self(read::read_texts(snapshot, session, &wanted)?))
    }

    fn get(&self, index: i32) -> &str {
        self.0.get(&index).map_or("", String::as_str)
    }

    /// Returns the beginning of the text of an event; `None` if `index` is `None`, or if the text
    /// is blank.
    fn excerpt_at(&self, index: Option<i32>) -> Option<String> {
        let text = clean_excerpt(self.get(index?));
        if text.trim().is_empty() { None } else { Some(text) }
    }
}

fn event_id(session: &str, event: &EventRow) -> String {
    EventId::format(session, u32::try_from(event.event_index).unwrap_or(0))
}

fn format_time(micros: Option<i64>) -> Option<String> {
    micros.map(|micros| Timestamp(micros).to_string())
}

/// Returns the beginning of a text, cleaned for display.
fn clean_excerpt(text: &str) -> String {
    let (head, cut) = match text.char_indices().nth(MAX_EXCERPT_CHARS) {
        Some((at, _)) => (text.get(..at).unwrap_or(text), "…"),
        None => (text, ""),
    };
    format!("{}{cut}", clean_text(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(request: &str, cache_read: Option<i64>, output: Option<i64>) -> EventRow {
        EventRow {
            model: Some("m".into()),
            request_id: Some(request.into()),
            cache_read_tokens: cache_read,
            output_tokens: output,
            ..EventRow::default()
        }
    }

    #[test]
    fn pieces_of_a_long_request_are_long() {
        let prices = PriceTable::with_overrides(
            "[models.m]\ninput = 1.0\noutput = 1.0\ncache_read = 1.0\n\
             long = { above_tokens = 200000, input = 2.0, output = 2.0, cache_read = 2.0 }\n",
        )
        .expect("prices");
        let mut pricer = Pricer { prices: &prices, request: None };
        let million = Some(1_000_000);
        assert_eq!(pricer.price_event(&event("a", million, None)), Some(2.0));
        assert_eq!(pricer.price_event(&event("a", None, million)), Some(2.0), "the rest of it");
        assert_eq!(pricer.price_event(&event("b", None, million)), Some(1.0), "another one");
    }

    #[test]
    fn excerpts_are_cut_at_characters() {
        assert_eq!(clean_excerpt("a\u{1b}[1mb"), "ab");
        let long = "é".repeat(MAX_EXCERPT_CHARS + 1);
        assert_eq!(clean_excerpt(&long).chars().count(), MAX_EXCERPT_CHARS + 1);
        assert!(clean_excerpt(&long).ends_with('…'));
    }
}
