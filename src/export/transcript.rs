//! The structure of a transcript: turns, with messages, actions, and calls with their results.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use schemas::EventType;
use schemas::tool::event::Event;
use schemas::tool::list::Session;

use base::numbers::{format_count, format_dollars, format_duration};
use base::shell_word::shell_word;

/// A prompt with everything up to the next prompt.
#[derive(Default)]
pub(crate) struct TranscriptTurn<'e> {
    pub(crate) index: u32,
    pub(crate) timestamp: Option<&'e str>,
    pub(crate) parts: Vec<TranscriptPart<'e>>,
}

/// A message or an action.
pub(crate) enum TranscriptPart<'e> {
    Prompt(&'e Event),
    Answer(&'e Event),
    Reasoning(&'e Event),
    Call {
        call: &'e Event,
        result: Option<&'e Event>,
    },
    /// A result whose call is not in the log.
    Result(&'e Event),
    /// Consecutive records of the agent.
    Notices(Vec<&'e Event>),
}

/// Returns the turns that contain something to read.
pub(crate) fn collect_turns(events: &[Event]) -> Vec<TranscriptTurn<'_>> {
    let by_id: HashMap<&str, &Event> =
        events.iter().map(|event| (event.event_id.as_str(), event)).collect();
    let mut answered = HashSet::new();
    for event in events.iter().filter(|event| event.event_type == EventType::ToolCall) {
        if let Some(result) = result_of(event, &by_id) {
            answered.insert(result.event_id.as_str());
        }
    }

    let mut turns: BTreeMap<u32, TranscriptTurn<'_>> = BTreeMap::new();
    for (event, _) in events.iter().zip(find_repeats(events)).filter(|(_, is_repeat)| !is_repeat) {
        let turn = turns.entry(event.turn_index).or_default();
        turn.index = event.turn_index;
        turn.timestamp = turn.timestamp.or(event.timestamp.as_deref());

        let has_text = event.text.as_ref().is_some_and(|text| !text.trim().is_empty());
        match event.event_type {
            EventType::User if has_text => turn.parts.push(TranscriptPart::Prompt(event)),
            EventType::Message if has_text => turn.parts.push(TranscriptPart::Answer(event)),
            EventType::Reasoning if has_text => turn.parts.push(TranscriptPart::Reasoning(event)),
            EventType::ToolCall => {
                turn.parts
                    .push(TranscriptPart::Call { call: event, result: result_of(event, &by_id) });
            }
            EventType::ToolResult if !answered.contains(event.event_id.as_str()) => {
                turn.parts.push(TranscriptPart::Result(event));
            }
            EventType::Notification => match turn.parts.last_mut() {
                Some(TranscriptPart::Notices(notices)) => notices.push(event),
                _ => turn.parts.push(TranscriptPart::Notices(vec![event])),
            },
            EventType::User
            | EventType::Message
            | EventType::Reasoning
            | EventType::ToolResult
            | EventType::TokenUsage => {}
        }
    }
    turns.into_values().filter(|turn| !turn.parts.is_empty()).collect()
}

/// Returns the events without those that repeat earlier ones; see [`find_repeats`].
pub(crate) fn without_repeats(events: &[Event]) -> Cow<'_, [Event]> {
    let repeats = find_repeats(events);
    if !repeats.contains(&true) {
        return Cow::Borrowed(events);
    }
    let told = events.iter().zip(repeats).filter(|(_, is_repeat)| !is_repeat);
    told.map(|(event, _)| event.clone()).collect()
}

/// Returns, for each event, whether it is a copy of an earlier one of the same session: some agents
/// write rows of a log again, as when they compact it twice. Equal texts alone do not show it: what
/// precedes or follows must be equal as well.
fn find_repeats(events: &[Event]) -> Vec<bool> {
    let hashes: Vec<u64> = events.iter().map(hash_event).collect();
    let mut pairs = HashSet::new();
    let mut repeats = Vec::with_capacity(events.len());
    for (at, event) in events.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| (hashes[before], hashes[at]));
        let after = hashes.get(at + 1).map(|after| (hashes[at], *after));
        let is_known = [before, after].iter().flatten().any(|pair| pairs.contains(pair));
        repeats.push(event.is_replay && is_known);
        pairs.extend(before);
    }
    repeats
}

/// Returns a hash of what an event says and when.
fn hash_event(event: &Event) -> u64 {
    let mut hasher = DefaultHasher::new();
    let Event { event_type, subtype, timestamp, text, .. } = event;
    (event_type.as_str(), subtype, timestamp, text).hash(&mut hasher);
    hasher.finish()
}

/// Returns the result of a call, if it is among the events.
fn result_of<'e>(call: &Event, by_id: &HashMap<&str, &'e Event>) -> Option<&'e Event> {
    let result = by_id.get(call.linked_event_id.as_deref()?).copied()?;
    if result.event_type == EventType::ToolResult { Some(result) } else { None }
}

/// Returns a call or a notice in one line.
pub(crate) fn event_line(event: &Event) -> &str {
    event.line.as_deref().unwrap_or_default()
}

/// Returns the diff of an edit, or the arguments of another call.
pub(crate) fn call_text(call: &Event) -> &str {
    let diff = call.diff.as_ref().map(|diff| diff.text.as_str());
    diff.filter(|diff| !diff.is_empty()).or(call.text.as_deref()).unwrap_or_default()
}

/// True if a result failed, as the log says or its exit code shows.
pub(crate) fn has_failed(result: &Event) -> bool {
    match result.is_error {
        Some(is_error) => is_error,
        None => result.exit_code.is_some_and(|code| code != 0),
    }
}

/// True if notices only accompany calls, as those of hooks and of progress do. They would split a run of
/// calls and say little.
pub(crate) fn accompany_calls(notices: &[&Event]) -> bool {
    let is_minor = |kind: &String| kind.contains("hook") || kind.contains("progress");
    notices.iter().all(|notice| notice.subtype.as_ref().is_some_and(is_minor))
}

/// Returns the time of an event in UTC, the lines that it changed, its duration and its outcome.
pub(crate) fn event_remarks(event: &Event, result: Option<&Event>) -> Vec<String> {
    let clock = event.timestamp.as_deref().and_then(|time| time.get(11..19));
    let mut remarks: Vec<String> = clock.map(str::to_owned).into_iter().collect();
    remarks.extend(outcome_remarks(event, result));
    remarks
}

/// Returns the lines that an event changed, its duration and its outcome.
pub(super) fn outcome_remarks(event: &Event, result: Option<&Event>) -> Vec<String> {
    let outcome = result.unwrap_or(event);
    let mut remarks: Vec<String> = Vec::new();
    remarks.extend(event.diff.as_ref().map(|diff| format!("+{} -{}", diff.added, diff.removed)));
    remarks.extend(
        outcome.duration_ms.or(event.duration_ms).map(|ms| format_duration(ms.unsigned_abs())),
    );
    if outcome.is_error == Some(true) {
        remarks.push("failed".to_owned());
    }
    let code = outcome.exit_code.filter(|code| *code != 0);
    remarks.extend(code.map(|code| format!("exit code {code}")));
    if event.is_replay {
        remarks.push("copied from another session".to_owned());
    }
    if event.is_abandoned {
        remarks.push("abandoned by a rewind".to_owned());
    }
    if event.is_sidechain {
        remarks.push("subagent".to_owned());
    }
    remarks
}

/// Returns notices in one line: "Mode: plan · Hook: SessionStart ×3".
pub(crate) fn describe_notices(notices: &[&Event]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for notice in notices {
        let line = event_line(notice);
        match counts.iter_mut().find(|(known, _)| *known == line) {
            Some((_, count)) => *count += 1,
            None => counts.push((line, 1)),
        }
    }
    let lines = counts.iter().map(|(line, count)| match count {
        1 => (*line).to_owned(),
        count => format!("{line} ×{count}"),
    });
    lines.collect::<Vec<_>>().join(" · ")
}

/// Returns the facts in the heading of a transcript.
pub(crate) fn session_facts(session: &Session) -> Vec<(&'static str, String)> {
    let mut facts = vec![("Session", session.session_id.clone())];
    let version = session.agent_version.as_ref().map(|version| format!(" {version}"));
    facts.push(("Agent", format!("{}{}", session.provider, version.unwrap_or_default())));
    let known = [
        ("Project", session.project.clone()),
        ("Branch", session.git_branch.clone()),
        ("Model", session.model.clone()),
        ("Began", session.started_at.clone()),
        ("Ended", session.ended_at.clone()),
        ("Duration", session.duration_ms.map(|ms| format_duration(ms.unsigned_abs()))),
    ];
    facts.extend(known.into_iter().filter_map(|(name, value)| Some((name, value?))));
    if let Some((relation, parent)) = session.relation.zip(session.parent_session_id.as_ref()) {
        facts.push(("Parent", format!("{parent} ({relation})")));
    }
    if let Some(counts) = session.counts {
        let text = format!(
            "{} turns, {} tool calls, {} failed",
            counts.turns, counts.tool_calls, counts.tool_errors
        );
        facts.push(("Counts", text));
    }
    if let Some(tokens) = &session.tokens {
        let cost = tokens.cost_usd.map(|cost| format!(", {}", format_dollars(cost)));
        let cost = cost.unwrap_or_default();
        let total = format_count(tokens.counted_once.total().unsigned_abs());
        facts.push(("Tokens", format!("{total}{cost}")));
    }
    facts
}

/// Returns the title in one line, or the id if there is no title.
pub(crate) fn session_title(session: &Session) -> String {
    let words = session.title.as_deref().unwrap_or_default().split_whitespace();
    let title = words.collect::<Vec<_>>().join(" ");
    if title.is_empty() { session.session_id.clone() } else { title }
}

/// Returns the beginning of a text, and the number of characters left out.
pub(crate) fn truncate_chars(text: &str, chars: usize) -> (String, usize) {
    match text.char_indices().nth(chars) {
        Some((at, _)) => {
            let (head, rest) = text.split_at(at);
            (format!("{head}…"), rest.chars().count())
        }
        None => (text.to_owned(), 0),
    }
}

/// Returns the sentence about the characters left out.
pub(crate) fn omission_sentence(event: &Event, chars: usize) -> Option<String> {
    if chars == 0 {
        return None;
    }
    Some(format!("{chars} more characters: sessions event {}", shell_word(&event.event_id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_at_characters() {
        assert_eq!(truncate_chars("日本語", 2), ("日本…".to_owned(), 1));
        assert_eq!(truncate_chars("ab", 2), ("ab".to_owned(), 0));
    }
}
