//! A session as a conversation: prompts, answers, and runs of calls between them. All text is safe
//! for a terminal.

use std::ops::Range;

use schemas::tool::event::{EditDiff, Event};
use schemas::tool::list::Session;

use super::painted::{DIM, FAILED, PLAIN, STRONG, SUCCEEDED, StyledText};
use crate::export::transcript::{
    TranscriptPart, accompany_calls, call_text, collect_turns, describe_notices, event_line,
    event_remarks, has_failed, session_title, truncate_chars,
};
use base::cells::{text_width, truncate, truncate_end};
use base::image_notes::{has_image_note, shorten_image_notes};
use base::numbers::count_of;
use base::sanitize::clean_text;
use base::shell_word::shell_word;
use tools::Transcript;

/// The most characters of a prompt or an answer.
const MAX_MESSAGE_CHARS: usize = 40_000;

/// The most characters of what a call got or returned.
const MAX_OUTPUT_CHARS: usize = 4_000;

/// The most tools named in the line of a run of calls.
const MAX_NAMED_TOOLS: usize = 4;

/// Most cells of the name of a tool.
const MAX_TOOL_WIDTH: usize = 24;

/// A session as a conversation.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) session: Session,
    /// The title in one line, or the id.
    pub(crate) title: String,
    pub(crate) blocks: Vec<ConversationBlock>,
    /// The indexes of its events, if it is a part of a long session.
    events: Range<u32>,
    /// True if it has all events of the session.
    pub(crate) is_whole: bool,
}

/// A part of a conversation that is shown as a whole.
#[derive(Debug)]
pub(crate) struct ConversationBlock {
    pub(crate) content: BlockContent,
    /// The first event of the block.
    pub(crate) first_event: u32,
    /// The last event of the block.
    pub(crate) last_event: u32,
    /// Time of the first event as RFC 3339.
    pub(crate) timestamp: Option<String>,
    pub(crate) model: Option<String>,
    /// On a branch that a rewind left behind.
    pub(crate) is_abandoned: bool,
    /// True if the first event has an image.
    pub(crate) has_image: bool,
}

/// The content of a block.
#[derive(Debug)]
pub(crate) enum BlockContent {
    Prompt(String),
    Answer(String),
    Reasoning(String),
    Calls(Vec<CallEntry>),
    /// What the agent noted, in one line.
    Notices(String),
}

/// A call with its result.
#[derive(Debug)]
pub(crate) struct CallEntry {
    pub(crate) tool: String,
    /// The command, the file or the beginning of the arguments, in one line.
    pub(crate) subject: String,
    /// Duration, outcome and origin.
    pub(crate) remarks: Vec<String>,
    pub(crate) status: CallStatus,
    /// The arguments or the diff of an edit, and the result.
    pub(crate) details: String,
    pub(crate) event_index: u32,
    pub(crate) diff: Option<EditDiff>,
    /// The first line of what a failed call returned.
    pub(crate) error: Option<String>,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallStatus {
    Succeeded,
    Failed,
    /// The log has no result.
    Unknown,
}

impl CallStatus {
    /// Returns the outcome that a result shows.
    pub(super) fn of(result: Option<&Event>) -> Self {
        match result {
            None => Self::Unknown,
            Some(result) if has_failed(result) => Self::Failed,
            Some(_) => Self::Succeeded,
        }
    }
}

impl Conversation {
    /// Arranges the events of a session. Without its reasoning, the calls before and after are one run.
    pub(crate) fn new(whole: Transcript, has_reasoning: bool) -> Self {
        let mut blocks: Vec<ConversationBlock> = Vec::new();
        for turn in collect_turns(&whole.events) {
            for part in &turn.parts {
                if has_reasoning || !matches!(part, TranscriptPart::Reasoning(_)) {
                    append_part(&mut blocks, part);
                }
            }
        }
        let title = clean_text(&session_title(&whole.session));
        let Transcript { session, range: events, is_whole, .. } = whole;
        Self { session, title, blocks, events, is_whole }
    }

    /// Returns the index of the first event that is shown; `None` if there is none.
    pub(crate) fn first_event(&self) -> Option<u32> {
        self.blocks.first().map(|block| block.first_event)
    }

    /// Returns true if it has an event, or the beginning of the session without one.
    pub(crate) fn has_event(&self, event_index: Option<u32>) -> bool {
        self.is_whole || self.events.contains(&event_index.unwrap_or(0))
    }

    /// Returns the position of the block that holds an event, or of the one before it.
    pub(crate) fn block_of_event(&self, event_index: u32) -> usize {
        let holds = |block: &ConversationBlock| {
            (block.first_event..=block.last_event).contains(&event_index)
        };
        let holder = self.blocks.iter().position(holds);
        let before = || self.blocks.iter().rposition(|block| block.first_event <= event_index);
        holder.or_else(before).unwrap_or(0)
    }
}

/// Appends a part of a turn. Calls that follow each other become one block.
fn append_part(blocks: &mut Vec<ConversationBlock>, part: &TranscriptPart<'_>) {
    match part {
        TranscriptPart::Prompt(event) => push_message(blocks, event, BlockContent::Prompt),
        TranscriptPart::Answer(event) => push_message(blocks, event, BlockContent::Answer),
        TranscriptPart::Reasoning(event) => push_message(blocks, event, BlockContent::Reasoning),
        TranscriptPart::Call { call, result } => push_call(blocks, call, *result),
        TranscriptPart::Result(event) => push_call(blocks, event, Some(event)),
        TranscriptPart::Notices(notices) => {
            if accompany_calls(notices) && extend_calls(blocks, notices) {
                return;
            }
            if let [first, ..] = notices.as_slice() {
                let content = BlockContent::Notices(clean_text(&describe_notices(notices)));
                push_block(blocks, first, content);
            }
        }
    }
}

/// Counts notices among the events of the run of calls before them. Returns false if there is none.
fn extend_calls(blocks: &mut [ConversationBlock], notices: &[&Event]) -> bool {
    let Some(ConversationBlock { content: BlockContent::Calls(_), last_event, .. }) =
        blocks.last_mut()
    else {
        return false;
    };
    let last = notices.iter().map(|notice| notice.event_index).max();
    *last_event = last.map_or(*last_event, |last| last.max(*last_event));
    true
}

fn push_message(
    blocks: &mut Vec<ConversationBlock>,
    event: &Event,
    to_content: impl FnOnce(String) -> BlockContent,
) {
    let text = event.text.as_deref().unwrap_or_default();
    let content = to_content(shown_text(text, MAX_MESSAGE_CHARS, event));
    push_block(blocks, event, content);
}

fn push_block(blocks: &mut Vec<ConversationBlock>, event: &Event, content: BlockContent) {
    blocks.push(ConversationBlock {
        content,
        first_event: event.event_index,
        last_event: event.event_index,
        timestamp: event.timestamp.clone(),
        model: event.model.clone(),
        is_abandoned: event.is_abandoned,
        has_image: event.text.as_deref().is_some_and(has_image_note),
    });
}

fn push_call(blocks: &mut Vec<ConversationBlock>, call: &Event, result: Option<&Event>) {
    let last_event = result.map_or(call.event_index, |result| result.event_index);
    let entry = describe_entry(call, result);
    if let Some(ConversationBlock {
        content: BlockContent::Calls(entries), last_event: last, ..
    }) = blocks.last_mut()
    {
        entries.push(entry);
        *last = (*last).max(last_event);
        return;
    }
    push_block(blocks, call, BlockContent::Calls(vec![entry]));
    if let Some(block) = blocks.last_mut() {
        block.last_event = block.last_event.max(last_event);
    }
}

fn describe_entry(call: &Event, result: Option<&Event>) -> CallEntry {
    let status = CallStatus::of(result);
    let mut details = shown_text(call_text(call), MAX_OUTPUT_CHARS, call);
    let output = result.filter(|result| result.event_id != call.event_id);
    if let Some(output) = output {
        let text = output.text.as_deref().unwrap_or_default();
        details.push('\n');
        details.push_str(&shown_text(text, MAX_OUTPUT_CHARS, output));
    }
    let error = result.filter(|_| status == CallStatus::Failed).and_then(|result| {
        let mut lines = result.text.as_deref()?.lines().map(str::trim);
        lines.find(|line| !line.is_empty()).map(clean_text)
    });
    CallEntry {
        tool: clean_text(call.tool_name.as_deref().unwrap_or("tool")),
        subject: clean_text(event_line(call)),
        // The first remark is the time of day in UTC, which the lines do not show.
        remarks: event_remarks(call, result)
            .into_iter()
            .skip(usize::from(call.timestamp.is_some()))
            .map(|remark| clean_text(&remark))
            .collect(),
        status,
        details,
        event_index: call.event_index,
        diff: call.diff.clone(),
        error,
    }
}

impl CallEntry {
    /// Returns the outcome, the tool and the subject in at most `width` cells.
    pub(crate) fn line(&self, width: usize) -> [StyledText; 4] {
        call_line(self.status, &truncate_end(&self.tool, MAX_TOOL_WIDTH), &self.subject, width)
    }
}

/// Returns the line of a call in at most `width` cells: its outcome, its tool and its subject.
pub(super) fn call_line(
    status: CallStatus,
    tool: &str,
    subject: &str,
    width: usize,
) -> [StyledText; 4] {
    let (style, mark) = match status {
        CallStatus::Succeeded => (SUCCEEDED, "✓"),
        CallStatus::Failed => (FAILED, "✗"),
        CallStatus::Unknown => (DIM, "…"),
    };
    let used = text_width(mark) + text_width(tool) + 2;
    let subject = truncate(subject, width.saturating_sub(used));
    let gap = (PLAIN, " ".to_owned());
    [(style, mark.to_owned()), gap, (STRONG, tool.to_owned()), (PLAIN, format!(" {subject}"))]
}

/// Returns the line of a run of calls in at most `width` cells: how many, how many failed, and with which
/// tools.
pub(crate) fn run_line(calls: &[CallEntry], width: usize) -> Vec<StyledText> {
    let failed = calls.iter().filter(|call| call.status == CallStatus::Failed).count();
    let mut line = vec![(PLAIN, count_of(calls.len(), "call"))];
    if failed > 0 {
        line.push((FAILED, format!(", {failed} failed")));
    }
    let used: usize = line.iter().map(|(_, text)| text_width(text)).sum();
    let tools = truncate_end(&describe_tools(calls), width.saturating_sub(used + 2));
    line.push((DIM, format!("  {tools}")));
    line
}

/// Names the tools of calls, the one with the most calls first: `Bash ×9, Edit ×4, Read`.
fn describe_tools(calls: &[CallEntry]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for call in calls {
        match counts.iter_mut().find(|(tool, _)| *tool == call.tool) {
            Some((_, count)) => *count += 1,
            None => counts.push((&call.tool, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let shown = counts.iter().take(MAX_NAMED_TOOLS).map(|(tool, count)| match count {
        1 => (*tool).to_owned(),
        count => format!("{tool} ×{count}"),
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if counts.len() > MAX_NAMED_TOOLS {
        text.push_str(", …");
    }
    text
}

/// Returns the beginning of a text without the characters that a terminal should not get, and says
/// what is left out.
fn shown_text(text: &str, max_chars: usize, event: &Event) -> String {
    let (text, omitted) = truncate_chars(text.trim_end(), max_chars);
    let mut shown = shorten_image_notes(&clean_text(&text).replace('\t', "    ")).into_owned();
    if omitted > 0 {
        let id = shell_word(&event.event_id);
        shown.push_str(&format!("\n{omitted} more characters: sessions event {id}"));
    }
    shown
}
