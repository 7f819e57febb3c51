//! A session as a conversation: prompts, answers, and runs of calls between them. All text is safe
//! for a terminal.

use std::ops::Range;

use schemas::tool::event::Event;
use schemas::tool::list::Session;

use crate::export::transcript::{
    TranscriptPart, accompany_calls, collect_turns, describe_call_in, describe_notices,
    event_remarks, session_title, truncate_chars,
};
use crate::output::shorten_image_notes;
use base::sanitize::clean_text;
use base::shell_word::shell_word;
use tools::Transcript;

/// The most characters of a prompt or an answer.
const MAX_MESSAGE_CHARS: usize = 40_000;

/// The most characters of what a call got or returned.
const MAX_OUTPUT_CHARS: usize = 4_000;

/// A session as a conversation.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) session: Session,
    /// The title in one line, or the id.
    pub(super) title: String,
    pub(super) blocks: Vec<ConversationBlock>,
    /// The indexes of its events, if it is a part of a long session.
    events: Range<u32>,
    /// True if it has all events of the session.
    pub(super) is_whole: bool,
}

/// A part of a conversation that is shown as a whole.
#[derive(Debug)]
pub(super) struct ConversationBlock {
    pub(super) content: BlockContent,
    /// The first event of the block.
    pub(super) first_event: u32,
    /// The last event of the block.
    pub(super) last_event: u32,
    /// Time of the first event as RFC 3339.
    pub(super) timestamp: Option<String>,
}

/// The content of a block.
#[derive(Debug)]
pub(super) enum BlockContent {
    Prompt(String),
    Answer(String),
    Reasoning(String),
    Calls(Vec<CallEntry>),
    /// The number of notices of each kind.
    Notices(String),
}

/// A call with its result.
#[derive(Debug)]
pub(super) struct CallEntry {
    pub(super) tool: String,
    /// The command, the file or the beginning of the arguments, in one line.
    pub(super) subject: String,
    /// Duration, outcome and origin.
    pub(super) remarks: Vec<String>,
    pub(super) status: CallStatus,
    /// The arguments and the result.
    pub(super) details: String,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStatus {
    Succeeded,
    Failed,
    /// The log has no result.
    Unknown,
}

impl Conversation {
    /// Arranges the events of a session.
    pub(super) fn new(whole: Transcript) -> Self {
        let mut blocks: Vec<ConversationBlock> = Vec::new();
        for turn in collect_turns(&whole.events) {
            for part in &turn.parts {
                append_part(&mut blocks, part, whole.session.cwd.as_deref());
            }
        }
        let title = clean_text(&session_title(&whole.session));
        let Transcript { session, range: events, is_whole, .. } = whole;
        Self { session, title, blocks, events, is_whole }
    }

    /// Returns the index of the first event that is shown; `None` if there is none.
    pub(super) fn first_event(&self) -> Option<u32> {
        self.blocks.first().map(|block| block.first_event)
    }

    /// Returns true if it has an event, or the beginning of the session without one.
    pub(super) fn has_event(&self, event_index: Option<u32>) -> bool {
        self.is_whole || self.events.contains(&event_index.unwrap_or(0))
    }

    /// Returns the position of the block that holds an event, or of the one before it.
    pub(super) fn block_of_event(&self, event_index: u32) -> usize {
        let holds = |block: &ConversationBlock| {
            (block.first_event..=block.last_event).contains(&event_index)
        };
        let holder = self.blocks.iter().position(holds);
        let before = || self.blocks.iter().rposition(|block| block.first_event <= event_index);
        holder.or_else(before).unwrap_or(0)
    }
}

/// Appends a part of a turn. Calls that follow each other become one block. `folder` is that of the
/// session.
fn append_part(
    blocks: &mut Vec<ConversationBlock>,
    part: &TranscriptPart<'_>,
    folder: Option<&str>,
) {
    match part {
        TranscriptPart::Prompt(event) => push_message(blocks, event, BlockContent::Prompt),
        TranscriptPart::Answer(event) => push_message(blocks, event, BlockContent::Answer),
        TranscriptPart::Reasoning(event) => push_message(blocks, event, BlockContent::Reasoning),
        TranscriptPart::Call { call, result } => push_call(blocks, call, *result, folder),
        TranscriptPart::Result(event) => push_call(blocks, event, Some(event), folder),
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
    });
}

fn push_call(
    blocks: &mut Vec<ConversationBlock>,
    call: &Event,
    result: Option<&Event>,
    folder: Option<&str>,
) {
    let last_event = result.map_or(call.event_index, |result| result.event_index);
    let entry = describe_entry(call, result, folder);
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

fn describe_entry(call: &Event, result: Option<&Event>, folder: Option<&str>) -> CallEntry {
    let status = match result.map(|result| (result.is_error, result.exit_code)) {
        None => CallStatus::Unknown,
        Some((Some(true), _)) => CallStatus::Failed,
        Some((None, Some(code))) if code != 0 => CallStatus::Failed,
        Some(_) => CallStatus::Succeeded,
    };
    let mut details = shown_text(call.text.as_deref().unwrap_or_default(), MAX_OUTPUT_CHARS, call);
    let output = result.filter(|result| result.event_id != call.event_id);
    if let Some(output) = output {
        let text = output.text.as_deref().unwrap_or_default();
        details.push('\n');
        details.push_str(&shown_text(text, MAX_OUTPUT_CHARS, output));
    }
    CallEntry {
        tool: clean_text(call.tool_name.as_deref().unwrap_or("tool")),
        subject: clean_text(&describe_call_in(call, folder)),
        // The first remark is the time of day in UTC, which the lines do not show.
        remarks: event_remarks(call, result)
            .into_iter()
            .skip(usize::from(call.timestamp.is_some()))
            .map(|remark| clean_text(&remark))
            .collect(),
        status,
        details,
    }
}

/// Returns the beginning of a text without the characters that a terminal should not get, and says
/// what is left out.
fn shown_text(text: &str, max_chars: usize, event: &Event) -> String {
    let (text, omitted) = truncate_chars(text.trim_end(), max_chars);
    let mut shown = shorten_image_notes(&clean_text(&text).replace('\t', "    "));
    if omitted > 0 {
        let id = shell_word(&event.event_id);
        shown.push_str(&format!("\n{omitted} more characters: sessions event {id}"));
    }
    shown
}
