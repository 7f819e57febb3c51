//! Reads what a session said in a form that every agent has: prompts, answers, and calls with their results.
//! The size is bounded: the oldest turns are left out, and long texts are cut.

use std::collections::{HashMap, VecDeque};
use std::fmt::Write as _;

use schemas::session::{EventRow, SessionRow};
use schemas::{ErrorCode, EventType, Provider, ToolError};
use serde_json::{Map, Value, json};

use crate::export::raw_logs::RawLogs;
use base::sanitize::{clean_text, one_line};
use store::Snapshot;
use tools::error::store_error;
use tools::{Call, Tools, read_all_events};

/// Maximum size in bytes of all texts that are copied. It leaves most of the context of a model free.
const MAX_COPIED_BYTES: usize = 300_000;

/// Maximum size in bytes of a prompt or an answer, of the arguments or the result of a call, and of reasoning.
const MAX_WORDS_BYTES: usize = 40_000;
const MAX_RESULT_BYTES: usize = 16_000;
const MAX_REASONING_BYTES: usize = 2_000;

/// Maximum length in bytes of the name of a tool. The APIs of the models allow 64 or more.
const MAX_NAME_BYTES: usize = 64;

/// Maximum length in characters of a title, and of a name in the notice.
const MAX_TITLE_CHARS: usize = 120;

/// Number of subagents that the notice names.
const MAX_NAMED_SUBAGENTS: usize = 5;

/// A session as another agent can continue it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CopiedConversation {
    pub(crate) session_id: String,
    pub(crate) provider: Provider,
    pub(crate) title: String,
    pub(crate) branch: Option<String>,
    pub(crate) model: Option<String>,
    /// In their order; the first one says where the others come from.
    pub(crate) parts: Vec<CopiedPart>,
}

/// A part of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CopiedPart {
    /// The identity of the record in the log of the session.
    pub(crate) identity: u64,
    /// In microseconds since the epoch.
    pub(crate) time: i64,
    pub(crate) content: CopiedContent,
}

/// What was said or done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CopiedContent {
    /// Words of this program to the agent.
    Notice(String),
    /// Words of the user.
    Prompt(String),
    /// Words of the agent.
    Answer(String),
    Call(CopiedCall),
}

/// A call of a tool with its result. APIs refuse a call without one.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CopiedCall {
    /// Unique in the conversation, of letters, digits and underscores.
    pub(crate) id: String,
    /// Of letters, digits, underscores and hyphens.
    pub(crate) tool: String,
    /// Always an object.
    pub(crate) arguments: Value,
    pub(crate) result: String,
    pub(crate) is_error: bool,
    /// When the result came, in microseconds since the epoch.
    pub(crate) ended_at: i64,
}

impl CopiedPart {
    /// Returns the size of the texts in bytes.
    fn size(&self) -> usize {
        match &self.content {
            CopiedContent::Notice(text)
            | CopiedContent::Prompt(text)
            | CopiedContent::Answer(text) => text.len(),
            CopiedContent::Call(call) => call.arguments.to_string().len() + call.result.len(),
        }
    }

    fn is_prompt(&self) -> bool {
        matches!(self.content, CopiedContent::Prompt(_))
    }
}

/// Reads the conversation of a session of the store.
///
/// # Errors
/// Fails if the store cannot be read, or if the session has nothing to copy.
pub(crate) fn read_conversation(
    tools: &Tools,
    session_id: &str,
    call: &Call<'_>,
) -> Result<CopiedConversation, ToolError> {
    let snapshot = tools.snapshot(call)?;
    let at = snapshot.session_position(session_id).ok_or_else(|| nothing_to_copy(session_id))?;
    let row = snapshot.sessions()[at].row().map_err(store_error)?;
    let rows = read_all_events(snapshot, at, call)?;
    let arguments = RawLogs::read(snapshot, tools)?.find_arguments(session_id, &rows, call)?;
    let arguments = |index| arguments.get(&index).map(|found| found.object.clone());
    let parts = collect_parts(row, &rows, &arguments);
    let (parts, left_out) = keep_newest_turns(parts);
    let Some(first) = parts.first() else { return Err(nothing_to_copy(session_id)) };

    let notice = write_notice(row, left_out, &find_subagents(snapshot, &row.session_id));
    let notice = CopiedPart { content: CopiedContent::Notice(notice), ..first.clone() };
    let title = one_line(&clean_text(row.title.as_deref().unwrap_or("Untitled session")));
    Ok(CopiedConversation {
        session_id: row.session_id.clone(),
        provider: row.provider,
        title: title.chars().take(MAX_TITLE_CHARS).collect(),
        branch: row.git_branch.clone(),
        model: row.model.clone(),
        parts: std::iter::once(notice).chain(parts).collect(),
    })
}

fn nothing_to_copy(session_id: &str) -> ToolError {
    let message = format!(
        "Session {session_id} has no prompt, answer or call that could be copied. Without --native, it is handed over"
    );
    ToolError::new(ErrorCode::InvalidArgument, message)
}

/// Collects the parts of the conversation. Abandoned branches and what subagents did are left out.
fn collect_parts(
    session: &SessionRow,
    rows: &[EventRow],
    arguments: &dyn Fn(i32) -> Option<Value>,
) -> Vec<CopiedPart> {
    let results = pair_results(rows);
    let mut time = session.started_at.unwrap_or(0);
    let mut parts = Vec::new();
    for row in rows {
        time = row.timestamp.unwrap_or(time);
        if row.is_sidechain || session.is_abandoned(row.event_index) || row.text.trim().is_empty() {
            continue;
        }
        let content = match row.event_type {
            EventType::User => CopiedContent::Prompt(cut(&row.text, MAX_WORDS_BYTES)),
            EventType::Message => CopiedContent::Answer(cut(&row.text, MAX_WORDS_BYTES)),
            // No service accepts the reasoning of another one.
            EventType::Reasoning => CopiedContent::Answer(format!(
                "[reasoning of {}] {}",
                session.provider,
                cut(&row.text, MAX_REASONING_BYTES)
            )),
            EventType::ToolCall => {
                let result = results.get(&row.event_index).copied();
                CopiedContent::Call(copy_call(row, result, arguments(row.event_index), time))
            }
            // A result is copied with its call.
            EventType::ToolResult | EventType::TokenUsage | EventType::Notification => continue,
        };
        parts.push(CopiedPart { identity: row.record_hash.cast_unsigned(), time, content });
    }
    parts
}

/// Returns the results of calls by the index of the call. A result may precede its call. Results without an id
/// follow their calls in order.
fn pair_results(rows: &[EventRow]) -> HashMap<i32, &EventRow> {
    let mut by_id: HashMap<Option<&str>, VecDeque<&EventRow>> = HashMap::new();
    for row in rows.iter().filter(|row| row.event_type == EventType::ToolResult) {
        by_id.entry(row.tool_call_id.as_deref()).or_default().push_back(row);
    }
    let mut results = HashMap::new();
    for row in rows.iter().filter(|row| row.event_type == EventType::ToolCall) {
        let of_call = by_id.get_mut(&row.tool_call_id.as_deref());
        if let Some(result) = of_call.and_then(VecDeque::pop_front) {
            results.insert(row.event_index, result);
        }
    }
    results
}

fn copy_call(
    call: &EventRow,
    result: Option<&EventRow>,
    arguments: Option<Value>,
    time: i64,
) -> CopiedCall {
    // Without its log, a call has the text of its arguments only.
    let arguments = arguments.filter(|object| object.to_string().len() <= MAX_RESULT_BYTES);
    let arguments = arguments.unwrap_or_else(|| match &call.command {
        Some(command) => json!({ "command": cut(command, MAX_RESULT_BYTES) }),
        None => json!({ "input": cut(&call.text, MAX_RESULT_BYTES) }),
    });
    let text = match result {
        Some(result) if !result.text.is_empty() => cut(&result.text, MAX_RESULT_BYTES),
        Some(_) => "[no output]".to_owned(),
        None => "[the log has no result of this call]".to_owned(),
    };
    CopiedCall {
        id: format!("copied_{}", call.event_index),
        tool: tool_name(call.tool_name.as_deref().unwrap_or_default()),
        arguments: if arguments.is_object() { arguments } else { Value::Object(Map::new()) },
        result: text,
        is_error: result.is_some_and(|result| result.is_error == Some(true)),
        ended_at: result.and_then(|result| result.timestamp).unwrap_or(time).max(time),
    }
}

/// Returns the name of a tool in the characters that all APIs accept.
fn tool_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let plain = name.chars().map(|c| if is_plain(c) { c } else { '_' });
    let plain: String = plain.take(MAX_NAME_BYTES).collect();
    if plain.is_empty() { "tool".to_owned() } else { plain }
}

/// Returns a text cleaned, and cut in its middle to a size in bytes.
fn cut(text: &str, max_bytes: usize) -> String {
    let text = clean_text(text);
    if text.len() <= max_bytes {
        return text;
    }
    let head = text.floor_char_boundary(max_bytes * 2 / 3);
    let tail = text.ceil_char_boundary(text.len() - max_bytes / 3);
    format!("{}\n[{} bytes left out]\n{}", &text[..head], tail - head, &text[tail..])
}

/// Keeps the newest turns that fit. Returns the number of turns that were left out as well. Of a turn that is
/// most of what fits, the prompt and the end are kept.
fn keep_newest_turns(mut parts: Vec<CopiedPart>) -> (Vec<CopiedPart>, usize) {
    let mut size = 0;
    let mut start = parts.len();
    while start > 0 && size + parts[start - 1].size() <= MAX_COPIED_BYTES {
        start -= 1;
        size += parts[start].size();
    }
    let mut prompt = None;
    if start > 0 && !parts[start].is_prompt() {
        let next_turn = parts[start..].iter().position(CopiedPart::is_prompt);
        let skipped =
            |turn: &usize| parts[start..start + turn].iter().map(CopiedPart::size).sum::<usize>();
        match next_turn.filter(|turn| 2 * skipped(turn) < size) {
            Some(turn) => start += turn,
            // The turn is long: its end is kept, after its prompt.
            None => prompt = parts[..start].iter().rfind(|part| part.is_prompt()).cloned(),
        }
    }
    let kept = parts.split_off(start);
    let mut left_out = parts.iter().filter(|part| part.is_prompt()).count();
    if prompt.is_some() {
        left_out -= 1;
    }
    let left_out = left_out.max(usize::from(!parts.is_empty()));
    (prompt.into_iter().chain(kept).collect(), left_out)
}

/// Returns the ids of the subagents of a session.
fn find_subagents(snapshot: &Snapshot, session_id: &str) -> Vec<String> {
    let sessions = snapshot.sessions().iter().filter(|session| {
        session.is_subagent && session.parent_session_id.as_deref() == Some(session_id)
    });
    sessions.map(|session| session.id().to_owned()).collect()
}

/// Writes what tells the agent where the conversation comes from.
fn write_notice(session: &SessionRow, left_out: usize, subagents: &[String]) -> String {
    let SessionRow { session_id, provider, .. } = session;
    let mut notice = format!(
        "[This conversation was held with {provider} and continues here. `sessions` copied it from session \
        {session_id}. [REDACTED:...] stands for a secret, and the tools are those of {provider}."
    );
    if left_out > 0 {
        let turns = if left_out == 1 { "turn was" } else { "turns were" };
        let _ = write!(
            notice,
            " The oldest {left_out} {turns} left out: `sessions show {session_id}` has all."
        );
    }
    if !subagents.is_empty() {
        let named = &subagents[..subagents.len().min(MAX_NAMED_SUBAGENTS)];
        let _ = write!(
            notice,
            " What its {} subagents did was not copied; `sessions show ID` has it: {}.",
            subagents.len(),
            named.join(", ")
        );
    }
    notice.push(']');
    notice
}
