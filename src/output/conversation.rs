//! Formats a session as a conversation for a screen: prompts and answers, runs of calls in a few
//! lines, edits as diffs.

use super::conversation_blocks::{
    BlockContent, CallEntry, CallStatus, Conversation, ConversationBlock, run_line,
};
use super::event::abandoned_note;
use super::layout::Layout;
use super::list::push_session;
use super::markdown::wrap_markdown;
use super::painted::{AGENT, DIM, FAILED, ID, PLAIN, PROMPT, Painted, STRONG, diff_style};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::cells::{text_width, truncate_end, truncate_start};
use base::sanitize::{clean_text, one_line};
use base::shell_word::shell_word;
use tools::Transcript;

/// Most lines of a prompt or an answer; `sessions event` shows the rest.
const MAX_MESSAGE_LINES: usize = 400;

/// Most lines of a diff.
const MAX_DIFF_LINES: usize = 12;

/// Most calls of a run that have a line of their own, if none of them failed or edited a file.
const MAX_LISTED_CALLS: usize = 3;

/// The cells before the text of a message.
const INDENT: &str = "  ";

/// The cells before a call.
const CALL_INDENT: &str = "    ";

/// A session to be read on a screen.
pub struct ConversationView {
    conversation: Conversation,
    /// The command line that resumes the session; `None` if its agent cannot.
    resume_line: Option<String>,
}

impl Show for ConversationView {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        self.push_heading(&mut painted, layout);
        for block in &self.conversation.blocks {
            self.push_block(&mut painted, block, layout);
        }
        painted
    }
}

impl ConversationView {
    /// Creates the view of a session, with the model's reasoning if `has_reasoning` is true.
    pub fn new(transcript: Transcript, resume_line: Option<String>, has_reasoning: bool) -> Self {
        Self { conversation: Conversation::new(transcript, has_reasoning), resume_line }
    }

    /// Appends the session, its folder and the command that resumes it.
    fn push_heading(&self, painted: &mut Painted, layout: &Layout) {
        let session = &self.conversation.session;
        push_session(painted, session, layout);
        if let Some(folder) = &session.cwd {
            painted.push(DIM, "folder  ");
            let shown = truncate_start(folder, layout.width.saturating_sub(8));
            layout.push_path(painted, PLAIN, folder, &shown);
            painted.end_line();
        }
        if let Some(line) = &self.resume_line {
            painted.push(DIM, "resume  ").push_inline(PLAIN, line);
            painted.end_line();
        }
    }

    fn push_block(&self, painted: &mut Painted, block: &ConversationBlock, layout: &Layout) {
        let (style, who, text) = match &block.content {
            BlockContent::Prompt(text) => (PROMPT, "you", text),
            BlockContent::Answer(text) => (AGENT, block.model.as_deref().unwrap_or("agent"), text),
            BlockContent::Reasoning(text) => (DIM, "reasoning", text),
            BlockContent::Calls(calls) => return push_calls(painted, calls, layout),
            BlockContent::Notices(line) => {
                let line = format!("{INDENT}{}", one_line(line));
                painted.push_inline(DIM, &truncate_end(&line, layout.width));
                return painted.end_line();
            }
        };
        painted.end_line();
        painted.push(style, who).push(ID, &format!("  :{}", block.first_event));
        painted.push(DIM, &format!("  {}", layout.time(block.timestamp.as_deref())));
        painted.push(DIM, abandoned_note(block.is_abandoned));
        painted.end_line();

        let text = text.trim();
        let style = if style == PROMPT { STRONG } else { DIM };
        let omitted = if matches!(block.content, BlockContent::Answer(_)) {
            push_answer(painted, text, layout.width)
        } else {
            push_wrapped(painted, style, INDENT, text, layout.width, MAX_MESSAGE_LINES)
        };
        let id = format!("{}:{}", self.conversation.session.session_id, block.first_event);
        let id = layout.event_id(&id);
        let id = shell_word(&id);
        if omitted > 0 {
            painted.push(DIM, &format!("{INDENT}{omitted} more lines: sessions event {id}"));
            painted.end_line();
        }
        if block.has_image {
            painted.push(DIM, &format!("{INDENT}sessions event {id} --image -o FILE"));
            painted.end_line();
        }
    }
}

/// Appends an answer, wrapped to the width. Returns the number of lines that were left out.
fn push_answer(painted: &mut Painted, text: &str, width: usize) -> usize {
    let lines = wrap_markdown(text, width.saturating_sub(INDENT.len()));
    for line in lines.iter().take(MAX_MESSAGE_LINES) {
        painted.push(PLAIN, INDENT);
        for piece in line {
            painted.push(piece.kind.style(), &piece.text);
        }
        painted.end_line();
    }
    lines.len().saturating_sub(MAX_MESSAGE_LINES)
}

/// Appends a run of calls: a line with their number, then failures, edits and the first few others.
fn push_calls(painted: &mut Painted, calls: &[CallEntry], layout: &Layout) {
    painted.push(PLAIN, INDENT);
    painted.push_texts(&run_line(calls, layout.width.saturating_sub(INDENT.len())));
    painted.end_line();

    let mut listed = 0;
    for call in calls {
        let is_notable = call.status == CallStatus::Failed || call.diff.is_some();
        if !is_notable && (listed >= MAX_LISTED_CALLS || calls.len() > 2 * MAX_LISTED_CALLS) {
            continue;
        }
        listed += usize::from(!is_notable);
        push_call(painted, call, layout);
    }
}

/// Appends the line of a call: its outcome, tool, subject and place; then the error of a failed one, and
/// the diff of an edit.
fn push_call(painted: &mut Painted, call: &CallEntry, layout: &Layout) {
    let place = format!(" :{}", call.event_index);
    let width = layout.width.saturating_sub(CALL_INDENT.len() + text_width(&place));
    painted.push(PLAIN, CALL_INDENT).push_texts(&call.line(width)).push(ID, &place);
    painted.end_line();
    if let Some(error) = &call.error {
        let line = truncate_end(error, layout.width.saturating_sub(6));
        painted.push(PLAIN, "      ").push_inline(FAILED, &line);
        painted.end_line();
    }
    if let Some(diff) = &call.diff {
        for line in diff.text.lines().take(MAX_DIFF_LINES) {
            let shown = clean_text(&format!("      {line}")).replace('\t', "    ");
            painted.push_inline(diff_style(line), &truncate_end(&shown, layout.width));
            painted.end_line();
        }
        if diff.text.lines().count() > MAX_DIFF_LINES {
            painted.push(DIM, &format!("      +{} -{} lines in total", diff.added, diff.removed));
            painted.end_line();
        }
    }
}
