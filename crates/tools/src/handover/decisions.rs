//! Finds what was decided in a session: the last plan, answers to questions of the agent, and sentences
//! in which the agent says what it chose. Finds the later prompts of the user, too.

use schemas::EventType;
use schemas::session::EventRow;

use crate::analyze::{is_plan_call, plan_text};
use crate::reply::event_predicates::{is_of_tools, is_slash_or_shell_command, is_type};
use base::sanitize::clean_text;

/// A decision or a prompt as the log words it.
pub(super) struct QuotedDecision<'e> {
    /// What it is, in words of this program.
    pub kind: &'static str,
    pub event: &'e EventRow,
    pub text: String,
    /// Maximum size of the quote in bytes.
    pub max_bytes: usize,
}

/// Words of a sentence that names a decision, in lower case.
const DECISION_WORDS: &[&str] = &[
    "decided",
    "decision",
    "instead of",
    "rather than",
    "root cause",
    "the fix is",
    "we'll use",
    "i'll use",
    "chose ",
    "chosen",
    "going with",
    "agreed",
    "trade-off",
    "tradeoff",
];

/// The names of tools with which an agent asks the user, in lower case without separators.
const QUESTION_TOOLS: &[&str] = &["askuserquestion", "askuser", "requestuserinput", "question"];

/// Maximum number of sentences, later prompts and answers to questions.
const MAX_SENTENCES: usize = 6;
const MAX_PROMPTS: usize = 8;
const MAX_ANSWERS: usize = 4;

const MAX_PLAN_BYTES: usize = 1_200;
const MAX_SENTENCE_BYTES: usize = 300;
const MAX_PROMPT_BYTES: usize = 240;

/// Returns the decisions in the order in which a reader needs them: the plan, answers, and sentences of
/// the agent; the last ones of each, in their order.
pub(super) fn collect_decisions<'e>(own: &[&'e EventRow]) -> Vec<QuotedDecision<'e>> {
    let mut decisions = Vec::new();
    let plan = own.iter().rfind(|event| is_plan_call(event));
    decisions.extend(plan.map(|event| {
        let decision = decide("The last plan", event, MAX_PLAN_BYTES);
        QuotedDecision { text: plan_text(&decision.text).to_owned(), ..decision }
    }));

    let answers: Vec<_> = own
        .iter()
        .filter(|event| is_type(event, EventType::ToolResult) && is_of_tools(event, QUESTION_TOOLS))
        .collect();
    for event in last_of(&answers, MAX_ANSWERS) {
        decisions.push(decide("An answer of the user", event, MAX_PROMPT_BYTES));
    }

    let mut sentences = Vec::new();
    for event in own.iter().filter(|event| is_type(event, EventType::Message)) {
        if let Some(sentence) = decision_sentence(&clean_text(&event.text)) {
            sentences.push(QuotedDecision {
                kind: "The agent said",
                event,
                text: sentence,
                max_bytes: MAX_SENTENCE_BYTES,
            });
        }
    }
    let skipped = sentences.len().saturating_sub(MAX_SENTENCES);
    decisions.extend(sentences.into_iter().skip(skipped));
    decisions
}

/// Returns the last prompts between the first and the last one, which are the goal.
pub(super) fn collect_later_prompts<'e>(own: &[&'e EventRow]) -> Vec<QuotedDecision<'e>> {
    let prompts: Vec<_> = own
        .iter()
        .filter(|event| is_type(event, EventType::User) && !is_slash_or_shell_command(&event.text))
        .collect();
    let later = prompts.get(1..prompts.len().saturating_sub(1)).unwrap_or_default();
    let shown = last_of(later, MAX_PROMPTS).iter();
    shown.map(|event| decide("A later prompt", event, MAX_PROMPT_BYTES)).collect()
}

fn decide<'e>(kind: &'static str, event: &'e EventRow, max_bytes: usize) -> QuotedDecision<'e> {
    QuotedDecision { kind, event, text: clean_text(&event.text), max_bytes }
}

fn last_of<T>(items: &[T], count: usize) -> &[T] {
    items.get(items.len().saturating_sub(count)..).unwrap_or_default()
}

/// Returns the first line or sentence of a message that names a decision.
fn decision_sentence(text: &str) -> Option<String> {
    let sentences = text.lines().flat_map(|line| line.split_inclusive(". "));
    let mut named = sentences.filter(|sentence| {
        let lower = sentence.to_lowercase();
        DECISION_WORDS.iter().any(|word| lower.contains(word))
    });
    named.next().map(|sentence| sentence.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_and_sentences_are_decisions_and_prompts_are_not() {
        let event = |index, event_type, tool: Option<&str>, text: &str| EventRow {
            session_id: "s".to_owned(),
            event_index: index,
            event_type,
            tool_name: tool.map(str::to_owned),
            text: text.to_owned(),
            ..EventRow::default()
        };
        let rows = [
            event(0, EventType::User, None, "Build it"),
            event(1, EventType::ToolCall, Some("ExitPlanMode"), "plan: first"),
            event(2, EventType::User, None, "No, keep the old name"),
            event(3, EventType::Message, None, "Fine. I chose a map instead of a list. Done."),
            event(4, EventType::Message, None, "All green."),
            event(5, EventType::User, None, "Ship it"),
        ];
        let own: Vec<&EventRow> = rows.iter().collect();
        let decisions = collect_decisions(&own);
        let found: Vec<_> = decisions.iter().map(|found| (found.kind, &*found.text)).collect();
        assert_eq!(
            found,
            [("The last plan", "first"), ("The agent said", "I chose a map instead of a list."),]
        );
        let prompts = collect_later_prompts(&own);
        let prompts: Vec<_> = prompts.iter().map(|found| &*found.text).collect();
        assert_eq!(prompts, ["No, keep the old name"]);
    }
}
