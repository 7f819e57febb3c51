//! The page of one session, and its contribution to the sums.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::price::PriceTable;
use schemas::session::{EventRow, LONG_PROMPTS, ModelUsage};
use schemas::{EventId, EventType, Provider, Timestamp, Usage};
use serde::Serialize;

use super::read;
use super::spent::Spent;
use super::sums::{Sums, shown};
use crate::base::sanitize::clean;
use crate::store::{Snapshot, StoreError};
use crate::tools::{error_signature, is_subagent};

/// Maximum number of turns and of failures shown, and of characters in an excerpt.
const TURNS: usize = 60;
const FAILURES: usize = 10;
const EXCERPT: usize = 400;

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
    tools: Vec<ToolCount>,
    /// The last failures.
    failures: Vec<Failure>,
    timeline: Vec<Turn>,
    timeline_omitted: usize,
}

#[derive(Debug, Serialize)]
struct ModelSpent {
    model: String,
    #[serde(flatten)]
    spent: Spent,
}

#[derive(Debug, Serialize)]
struct ToolCount {
    tool_name: String,
    calls: usize,
    errors: usize,
}

#[derive(Debug, Serialize)]
struct Failure {
    event_id: String,
    turn_index: i32,
    tool_name: String,
    text: String,
}

/// A prompt with its last answer and the counts between them.
#[derive(Debug, Default, Serialize)]
struct Turn {
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
struct Counted {
    turn: Turn,
    times: Option<(i64, i64)>,
    prompt: Option<i32>,
    answer: Option<i32>,
}

/// The counts over a session.
#[derive(Default)]
struct Count {
    turns: BTreeMap<i32, Counted>,
    models: BTreeMap<String, Spent>,
    tools: BTreeMap<String, (usize, usize)>,
    /// The failed results.
    failed: Vec<EventRow>,
    spent: Spent,
}

/// Reads the session at this position and adds it to the sums. Copied history is left out; with
/// `since`, earlier events are left out too.
pub(super) fn page(
    snapshot: &Snapshot,
    at: usize,
    since: Option<Timestamp>,
    prices: &PriceTable,
    sums: &mut Sums,
) -> Result<SessionPage, StoreError> {
    let counts = |event: &EventRow| {
        let late = |since: Timestamp| event.timestamp.is_some_and(|time| time >= since.0);
        !event.is_replay && since.is_none_or(late)
    };
    let row = &snapshot.sessions()[at];
    let id = row.session_id.as_str();
    let mut pricer = Pricer { prices, request: None };
    let mut count = Count::default();
    for event in read::events(snapshot, at)?.into_iter().filter(counts) {
        count.event(id, event, &mut pricer, sums);
    }
    let mut turns: Vec<_> = count.turns.into_values().filter(Counted::is_shown).collect();
    let whole_turns = turns.iter().filter(|counted| counted.turn.turn_index > 0).count();
    let omitted = turns.len().saturating_sub(TURNS);
    turns.truncate(TURNS);
    let texts = texts(snapshot, at, &turns, &count.failed)?;
    let text = |index: i32| texts.get(&index).map_or("", String::as_str);
    for event in &count.failed {
        let tool = shown(event.tool_name.as_ref());
        sums.failed(id, &tool, event, error_signature(event, text(event.event_index)));
    }
    let tool_errors = count.failed.len();
    let failures = count.failed.iter().skip(tool_errors.saturating_sub(FAILURES));
    let failure = |event: &EventRow| Failure {
        event_id: event_id(id, event),
        turn_index: event.turn_index,
        tool_name: shown(event.tool_name.as_ref()),
        text: excerpt(text(event.event_index)),
    };
    let said = |index: Option<i32>| {
        index.map(|index| excerpt(text(index))).filter(|text| !text.trim().is_empty())
    };
    let finish = |counted: Counted| Turn {
        prompt: said(counted.prompt),
        answer: said(counted.answer),
        timestamp: time(counted.times.map(|(start, _)| start)),
        duration_ms: counted.times.map(|(start, end)| (end - start) / 1000),
        ..counted.turn
    };
    let mut tools: Vec<_> = count
        .tools
        .into_iter()
        .map(|(tool_name, (calls, errors))| ToolCount { tool_name, calls, errors })
        .collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.calls));
    let cleaned = |text: &Option<String>| text.as_ref().map(|text| excerpt(text));
    Ok(SessionPage {
        session_id: id.to_owned(),
        provider: row.provider,
        title: cleaned(&row.title),
        project: cleaned(&row.project),
        git_branch: cleaned(&row.git_branch),
        model: cleaned(&row.model),
        started_at: time(row.started_at),
        duration_ms: row.duration_ms(),
        relation: row.relation.clone(),
        parent_session_id: row.parent_session_id.clone(),
        is_subagent: is_subagent(row),
        children: Vec::new(),
        turns: whole_turns,
        tool_calls: tools.iter().map(|tool| tool.calls).sum(),
        tool_errors,
        spent: count.spent,
        family_cost_usd: None,
        models: count
            .models
            .into_iter()
            .map(|(model, spent)| ModelSpent { model, spent })
            .collect(),
        tools,
        failures: failures.map(failure).collect(),
        timeline: turns.into_iter().map(finish).collect(),
        timeline_omitted: omitted,
    })
}

impl Count {
    fn event(&mut self, id: &str, event: EventRow, pricer: &mut Pricer<'_>, sums: &mut Sums) {
        let counted = self.turns.entry(event.turn_index).or_insert_with(|| Counted {
            turn: Turn {
                turn_index: event.turn_index,
                event_id: event_id(id, &event),
                ..Turn::default()
            },
            ..Counted::default()
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
                let tool = shown(event.tool_name.as_ref());
                counted.turn.tool_calls += 1;
                sums.called(id, &tool, &event);
                self.tools.entry(tool).or_default().0 += 1;
            }
            EventType::ToolResult => {
                let tool = shown(event.tool_name.as_ref());
                sums.answered(&tool, &event);
                if event.is_error == Some(true) {
                    counted.turn.tool_errors += 1;
                    self.tools.entry(tool).or_default().1 += 1;
                    self.failed.push(event);
                }
            }
            EventType::TokenUsage => {
                let (usage, cost) = (event.usage(), pricer.cost(&event));
                let model = shown(event.model.as_ref());
                sums.spend(&event, &model, cost);
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

impl Counted {
    /// Returns true if the turn is shown. Events before the first prompt are seldom more than
    /// settings.
    fn is_shown(&self) -> bool {
        let turn = &self.turn;
        let said = self.prompt.is_some() || self.answer.is_some();
        turn.turn_index > 0 || said || turn.tool_calls > 0 || turn.spent.total_tokens > 0
    }
}

/// Prices token counts in the same way as the sums of a session: by the size of the request's whole
/// prompt, even if a request is counted in several events.
struct Pricer<'p> {
    prices: &'p PriceTable,
    request: Option<(String, i64)>,
}

impl Pricer<'_> {
    fn cost(&mut self, event: &EventRow) -> Option<f64> {
        let usage = event.usage();
        let prompt = Usage { output: None, ..usage }.total();
        let same = self.request.as_ref().filter(|(id, _)| Some(id) == event.request_id.as_ref());
        let prompt = prompt.max(same.map_or(0, |(_, prompt)| *prompt));
        self.request = event.request_id.clone().map(|id| (id, prompt));
        // A shutdown sums up many requests.
        let prompt = if event.subtype.as_deref() == Some("shutdown") { 0 } else { prompt };
        let prompt_over = LONG_PROMPTS.iter().rfind(|size| prompt > **size).copied().unwrap_or(0);
        ModelUsage { model: event.model.clone(), prompt_over, usage }.cost(self.prices)
    }
}

/// Reads the texts of prompts, answers and failures.
fn texts(
    snapshot: &Snapshot,
    session: usize,
    turns: &[Counted],
    failed: &[EventRow],
) -> Result<HashMap<i32, String>, StoreError> {
    let of_turns = turns.iter().flat_map(|turn| [turn.prompt, turn.answer]).flatten();
    let wanted = of_turns.chain(failed.iter().map(|event| event.event_index));
    let wanted: BTreeSet<u32> = wanted.filter_map(|index| u32::try_from(index).ok()).collect();
    read::texts(snapshot, session, &wanted)
}

fn event_id(session: &str, event: &EventRow) -> String {
    EventId::format(session, u32::try_from(event.event_index).unwrap_or(0))
}

fn time(micros: Option<i64>) -> Option<String> {
    micros.map(|micros| Timestamp(micros).to_string())
}

/// Returns the beginning of a text, cleaned for display.
fn excerpt(text: &str) -> String {
    let (head, cut) = match text.char_indices().nth(EXCERPT) {
        Some((at, _)) => (text.get(..at).unwrap_or(text), "…"),
        None => (text, ""),
    };
    format!("{}{cut}", clean(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_a_long_request_are_long() {
        let prices = PriceTable::with_overrides(
            "[models.m]\ninput = 1.0\noutput = 1.0\ncache_read = 1.0\n\
             long = { above_tokens = 200000, input = 2.0, output = 2.0, cache_read = 2.0 }\n",
        )
        .expect("prices");
        let mut pricer = Pricer { prices: &prices, request: None };
        let event = |request: &str, cache_read, output| EventRow {
            model: Some("m".into()),
            request_id: Some(request.into()),
            cache_read_tokens: cache_read,
            output_tokens: output,
            ..EventRow::default()
        };
        let million = Some(1_000_000);
        assert_eq!(pricer.cost(&event("a", million, None)), Some(2.0));
        assert_eq!(pricer.cost(&event("a", None, million)), Some(2.0), "the rest of it");
        assert_eq!(pricer.cost(&event("b", None, million)), Some(1.0), "another one");
    }

    #[test]
    fn excerpts_are_cut_at_characters() {
        assert_eq!(excerpt("a\u{1b}[1mb"), "ab");
        let long = "é".repeat(EXCERPT + 1);
        assert_eq!(excerpt(&long).chars().count(), EXCERPT + 1);
        assert!(excerpt(&long).ends_with('…'));
    }
}
