//! Formats a session as a conversation for a screen: prompts and answers, runs of calls in a few
//! lines, edits as diffs.

use schemas::tool::list::Session;

use super::conversation_blocks::{
    BlockContent, CallEntry, CallStatus, Conversation, ConversationBlock, describe_tools,
};
use super::layout::Layout;
use super::markdown::{push_pieces, wrap_markdown};
use super::numbers::{count_of, format_dollars, format_short_count};
use super::painted::{
    AGENT, COST, DIM, FAILED, ID, PLAIN, PROJECT, PROMPT, Painted, STRONG, SUCCEEDED,
};
use super::session_table::all_tokens;
use super::wrapped::push_wrapped;
use base::cells::{text_width, truncate, truncate_end, truncate_start};
use base::sanitize::{clean_text, one_line};
use base::shell_word::shell_word;
use tools::Transcript;

/// Most lines of a prompt or an answer; `sessions event` shows the rest.
const MAX_MESSAGE_LINES: usize = 400;

/// Most lines of a diff.
const MAX_DIFF_LINES: usize = 12;

/// Most calls of a run that have a line of their own, if none of them failed or edited a file.
const MAX_LISTED_CALLS: usize = 3;

/// Most cells of the name of a tool.
const MAX_TOOL_WIDTH: usize = 24;

/// The cells before the text of a message.
const INDENT: &str = "  ";

/// A session to be read.
pub struct ConversationView {
    conversation: Conversation,
    /// The command line that resumes the session; `None` if its agent cannot.
    resume_line: Option<String>,
}

impl ConversationView {
    /// Creates the view of a session, with the model's reasoning if `has_reasoning` is true.
    pub fn new(transcript: Transcript, resume_line: Option<String>, has_reasoning: bool) -> Self {
        Self { conversation: Conversation::new(transcript, has_reasoning), resume_line }
    }

    /// Formats the conversation.
    pub fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        self.push_heading(&mut painted, layout);
        for block in &self.conversation.blocks {
            self.push_block(&mut painted, block, layout);
        }
        painted
    }

    /// Appends the title, the facts, the folder and the command that resumes the session.
    fn push_heading(&self, painted: &mut Painted, layout: &Layout) {
        let session = &self.conversation.session;
        painted.push_inline(STRONG, &truncate_end(&self.conversation.title, layout.width));
        painted.end_line();
        push_facts(painted, session, layout);
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
        if block.is_abandoned {
            painted.push(DIM, "  abandoned by a rewind");
        }
        painted.end_line();

        let text = text.trim();
        let style = if style == PROMPT { STRONG } else { DIM };
        let omitted = if matches!(block.content, BlockContent::Answer(_)) {
            push_answer(painted, text, layout.width)
        } else {
            push_wrapped(painted, style, INDENT, text, layout.width, MAX_MESSAGE_LINES)
        };
        let id = format!("{}:{}", self.conversation.session.session_id, block.first_event);
        let id = layout.short_event_id(&id);
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

/// Appends id, agent, project, branch, time, counts, tokens and cost, on as many lines as they need.
pub(super) fn push_facts(painted: &mut Painted, session: &Session, layout: &Layout) {
    let counts = session.counts.unwrap_or_default();
    let mut facts = vec![
        (ID, layout.short_id(&session.session_id).into_owned()),
        (AGENT, session.provider.to_string()),
    ];
    facts.extend(session.user_name.clone().map(|user| (AGENT, user)));
    facts.extend(session.machine.clone().map(|machine| (DIM, machine)));
    facts.extend(session.project.clone().map(|project| (PROJECT, project)));
    facts.extend(session.git_branch.clone().map(|branch| (DIM, branch)));
    facts.push((DIM, layout.time(session.ended_at.as_deref())));
    facts.push((PLAIN, count_of(counts.turns, "turn")));
    facts.push((PLAIN, count_of(counts.tool_calls, "call")));
    if counts.tool_errors > 0 {
        facts.push((FAILED, format!("{} failed", counts.tool_errors)));
    }
    if let Some(tokens) = all_tokens(session) {
        let total = u64::try_from(tokens.counted_once.total()).unwrap_or(0);
        facts.push((PLAIN, format!("{} tokens", format_short_count(total))));
        facts.extend(tokens.cost_usd.map(|cost| (COST, format_dollars(cost))));
    }

    let mut used = 0;
    for (style, fact) in facts {
        let fact = truncate_end(&one_line(&clean_text(&fact)), layout.width);
        let cells = text_width(&fact);
        if used > 0 && used + 2 + cells > layout.width {
            painted.end_line();
            used = 0;
        }
        if used > 0 {
            painted.push(PLAIN, "  ");
            used += 2;
        }
        painted.push(style, &fact);
        used += cells;
    }
    painted.end_line();
}

/// Appends an answer, wrapped to the width. Returns the number of lines that were left out.
fn push_answer(painted: &mut Painted, text: &str, width: usize) -> usize {
    let lines = wrap_markdown(text, width.saturating_sub(INDENT.len()));
    for line in lines.iter().take(MAX_MESSAGE_LINES) {
        painted.push(PLAIN, INDENT);
        push_pieces(painted, line);
        painted.end_line();
    }
    lines.len().saturating_sub(MAX_MESSAGE_LINES)
}

/// Appends a run of calls: a line with their number, then failures, edits and the first few others.
fn push_calls(painted: &mut Painted, calls: &[CallEntry], layout: &Layout) {
    let failed = calls.iter().filter(|call| call.status == CallStatus::Failed).count();
    painted.push(DIM, &format!("{INDENT}{}", count_of(calls.len(), "call")));
    if failed > 0 {
        painted.push(DIM, ", ").push(FAILED, &format!("{failed} failed"));
    }
    let room = layout.width.saturating_sub(30);
    painted.push_inline(DIM, &format!("  {}", truncate_end(&describe_tools(calls), room)));
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
    let (style, mark) = match call.status {
        CallStatus::Failed => (FAILED, "✗"),
        CallStatus::Succeeded => (SUCCEEDED, "✓"),
        CallStatus::Unknown => (DIM, "…"),
    };
    let tool = truncate_end(&call.tool, MAX_TOOL_WIDTH);
    let place = format!(" :{}", call.event_index);
    let used = 6 + text_width(&tool) + 1 + text_width(&place);
    let subject = truncate(&call.subject, layout.width.saturating_sub(used));
    painted.push(PLAIN, "    ").push(style, mark).push(PLAIN, " ");
    painted.push_inline(STRONG, &tool).push(PLAIN, " ").push_inline(PLAIN, &subject);
    painted.push(ID, &place);
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
            let (added, removed) = (diff.added, diff.removed);
            painted.push(DIM, &format!("      +{added} -{removed} lines in total"));
            painted.end_line();
        }
    }
}

/// Returns the style of a line of a diff.
pub(super) fn diff_style(line: &str) -> anstyle::Style {
    match line.as_bytes().first() {
        Some(b'-') => FAILED,
        Some(b'+') => SUCCEEDED,
        _ => DIM,
    }
}
