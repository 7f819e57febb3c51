//! Formats a session as a conversation for a screen: prompts and answers, runs of calls in a few
//! lines, edits as diffs.

use schemas::tool::event::Event;
use schemas::tool::list::Session;
use similar::{ChangeTag, TextDiff};

use super::layout::Layout;
use super::markdown::{push_pieces, wrap_markdown};
use super::numbers::{count_of, format_bytes, format_dollars, format_short_count};
use super::painted::{
    AGENT, COST, DIM, FAILED, ID, PLAIN, PROJECT, PROMPT, Painted, STRONG, SUCCEEDED,
};
use super::session_table::all_tokens;
use super::wrapped::push_wrapped;
use crate::export::transcript::{
    TranscriptPart, accompany_calls, collect_turns, describe_call_in, describe_notices,
    session_title,
};
use base::cells::{text_width, truncate, truncate_end, truncate_start};
use base::sanitize::{clean_text, one_line};
use base::shell_word::shell_word;
use tools::{Edit, LineCounts, Transcript};

/// Most lines of a prompt or an answer; `sessions event` shows the rest.
const MAX_MESSAGE_LINES: usize = 400;

/// Most lines of a diff.
const MAX_DIFF_LINES: usize = 12;

/// Most calls of a run that have a line of their own, if none of them failed or edited a file.
const MAX_LISTED_CALLS: usize = 3;

/// The unchanged lines around a change in a diff.
const DIFF_CONTEXT: usize = 2;

/// Most cells of the name of a tool.
const MAX_TOOL_WIDTH: usize = 24;

/// The cells before the text of a message.
const INDENT: &str = "  ";

/// A session to be read.
pub struct ConversationView {
    transcript: Transcript,
    /// The command line that resumes the session; `None` if its agent cannot.
    resume_line: Option<String>,
    /// True if the model's reasoning is shown.
    has_reasoning: bool,
}

/// A call with its result.
struct CallPair<'e> {
    call: &'e Event,
    result: Option<&'e Event>,
    /// The folder of the session.
    folder: Option<&'e str>,
}

impl ConversationView {
    /// Creates the view of a session.
    pub fn new(transcript: Transcript, resume_line: Option<String>, has_reasoning: bool) -> Self {
        Self { transcript, resume_line, has_reasoning }
    }

    /// Formats the conversation.
    pub fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        self.push_heading(&mut painted, layout);
        for turn in collect_turns(&self.transcript.events) {
            let folder = self.transcript.session.cwd.as_deref();
            let mut calls: Vec<CallPair<'_>> = Vec::new();
            for part in &turn.parts {
                match part {
                    TranscriptPart::Call { call, result } => {
                        calls.push(CallPair { call, result: *result, folder });
                        continue;
                    }
                    TranscriptPart::Result(result) => {
                        calls.push(CallPair { call: result, result: Some(result), folder });
                        continue;
                    }
                    // They would only split a run of calls.
                    TranscriptPart::Reasoning(_) if !self.has_reasoning => continue,
                    TranscriptPart::Notices(notices)
                        if !calls.is_empty() && accompany_calls(notices) =>
                    {
                        continue;
                    }
                    TranscriptPart::Prompt(_)
                    | TranscriptPart::Answer(_)
                    | TranscriptPart::Reasoning(_)
                    | TranscriptPart::Notices(_) => {}
                }
                push_calls(&mut painted, &calls, layout);
                calls.clear();
                push_part(&mut painted, part, layout);
            }
            push_calls(&mut painted, &calls, layout);
        }
        painted
    }

    /// Appends the title, the facts, the folder and the command that resumes the session.
    fn push_heading(&self, painted: &mut Painted, layout: &Layout) {
        let session = &self.transcript.session;
        painted.push_inline(STRONG, &truncate_end(&session_title(session), layout.width));
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

/// Appends a message or the notices of an agent.
fn push_part(painted: &mut Painted, part: &TranscriptPart<'_>, layout: &Layout) {
    match part {
        TranscriptPart::Prompt(event) => {
            painted.end_line();
            painted.push(PROMPT, "you");
            push_place(painted, event, layout);
            push_message(painted, event, layout, STRONG);
        }
        TranscriptPart::Answer(event) => {
            painted.end_line();
            painted.push(AGENT, event.model.as_deref().unwrap_or("agent"));
            push_place(painted, event, layout);
            push_answer(painted, event, layout);
        }
        TranscriptPart::Reasoning(event) => {
            painted.end_line();
            painted.push(DIM, "reasoning");
            push_place(painted, event, layout);
            push_message(painted, event, layout, DIM);
        }
        TranscriptPart::Notices(notices) => {
            let text = format!("{INDENT}{}", describe_notices(notices));
            painted.push_inline(DIM, &truncate_end(&one_line(&text), layout.width));
            painted.end_line();
        }
        TranscriptPart::Call { .. } | TranscriptPart::Result(_) => {}
    }
}

/// Appends the position and the time of an event, and ends the line.
fn push_place(painted: &mut Painted, event: &Event, layout: &Layout) {
    painted.push(ID, &format!("  :{}", event.event_index));
    painted.push(DIM, &format!("  {}", layout.time(event.timestamp.as_deref())));
    if event.is_abandoned {
        painted.push(DIM, "  abandoned by a rewind");
    }
    painted.end_line();
}

/// Appends a prompt or the reasoning of a model, wrapped to the width.
fn push_message(painted: &mut Painted, event: &Event, layout: &Layout, style: anstyle::Style) {
    let text = message_text(event);
    let omitted = push_wrapped(painted, style, INDENT, &text, layout.width, MAX_MESSAGE_LINES);
    push_commands(painted, event, layout, omitted);
}

/// Appends an answer, wrapped to the width.
fn push_answer(painted: &mut Painted, event: &Event, layout: &Layout) {
    let lines = wrap_markdown(&message_text(event), layout.width.saturating_sub(INDENT.len()));
    for line in lines.iter().take(MAX_MESSAGE_LINES) {
        painted.push(PLAIN, INDENT);
        push_pieces(painted, line);
        painted.end_line();
    }
    push_commands(painted, event, layout, lines.len().saturating_sub(MAX_MESSAGE_LINES));
}

/// Returns the text of a message, safe for a screen.
fn message_text(event: &Event) -> String {
    let whole = clean_text(event.text.as_deref().unwrap_or_default()).replace('\t', "    ");
    shorten_image_notes(whole.trim())
}

/// Appends the commands that show the lines of a message that were left out, and its image.
fn push_commands(painted: &mut Painted, event: &Event, layout: &Layout, omitted: usize) {
    if omitted > 0 {
        let id = layout.short_event_id(&event.event_id);
        let note = format!("{INDENT}{omitted} more lines: sessions event {}", shell_word(&id));
        painted.push(DIM, &note);
        painted.end_line();
    }
    let text = event.text.as_deref().unwrap_or_default();
    if shorten_image_notes(text).len() < text.len() {
        let id = layout.short_event_id(&event.event_id);
        let note = format!("{INDENT}sessions event {} --image -o FILE", shell_word(&id));
        painted.push(DIM, &note);
        painted.end_line();
    }
}

/// Appends a run of calls: a line with their number, then failures, edits and the first few others.
fn push_calls(painted: &mut Painted, calls: &[CallPair<'_>], layout: &Layout) {
    if calls.is_empty() {
        return;
    }
    let failed = calls.iter().filter(|pair| pair.has_failed()).count();
    painted.push(DIM, &format!("{INDENT}{}", count_of(calls.len(), "call")));
    if failed > 0 {
        painted.push(DIM, ", ").push(FAILED, &format!("{failed} failed"));
    }
    let names = tool_names(calls);
    let room = layout.width.saturating_sub(30);
    painted.push_inline(DIM, &format!("  {}", truncate_end(&names, room)));
    painted.end_line();

    let mut listed = 0;
    for pair in calls {
        let edit = pair.edit();
        let is_notable = pair.has_failed() || edit.is_some();
        if !is_notable && (listed >= MAX_LISTED_CALLS || calls.len() > 2 * MAX_LISTED_CALLS) {
            continue;
        }
        listed += usize::from(!is_notable);
        push_call(painted, pair, layout);
        if let Some(edit) = edit {
            let result = pair.result.and_then(|result| result.text.as_deref());
            let counts = result.and_then(LineCounts::of_result);
            push_diff(painted, &edit, counts, layout.width);
        }
    }
}

/// Names the tools of calls with their counts, in the order in which they occur first.
fn tool_names(calls: &[CallPair<'_>]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for pair in calls {
        let name = pair.call.tool_name.as_deref().unwrap_or("tool");
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    let names = counts.iter().map(|(name, count)| match count {
        1 => (*name).to_owned(),
        count => format!("{name} ×{count}"),
    });
    names.collect::<Vec<_>>().join(", ")
}

impl CallPair<'_> {
    fn has_failed(&self) -> bool {
        self.result.is_some_and(|result| {
            result.is_error == Some(true)
                || result.is_error.is_none() && result.exit_code.is_some_and(|code| code != 0)
        })
    }

    /// Returns what the call changed in a file, if it is an edit.
    fn edit(&self) -> Option<Edit> {
        let is_edit = self.call.tool_kind == Some(schemas::ToolKind::Edit);
        if is_edit { Edit::parse(self.call.text.as_deref()?) } else { None }
    }
}

/// Appends the line of a call: its outcome, tool, subject and place, and the error of a failed one.
fn push_call(painted: &mut Painted, pair: &CallPair<'_>, layout: &Layout) {
    let (style, mark) = match (pair.has_failed(), pair.result) {
        (true, _) => (FAILED, "✗"),
        (false, Some(_)) => (SUCCEEDED, "✓"),
        (false, None) => (DIM, "…"),
    };
    let tool = truncate_end(pair.call.tool_name.as_deref().unwrap_or("tool"), MAX_TOOL_WIDTH);
    let place = format!(" :{}", pair.call.event_index);
    let subject = clean_text(&describe_call_in(pair.call, pair.folder));
    let used = 6 + text_width(&tool) + 1 + text_width(&place);
    let room = layout.width.saturating_sub(used);
    let subject = truncate(&subject, room);
    painted.push(PLAIN, "    ").push(style, mark).push(PLAIN, " ");
    painted.push_inline(STRONG, &tool).push(PLAIN, " ").push_inline(PLAIN, &subject);
    painted.push(ID, &place);
    painted.end_line();
    let error = pair.result.filter(|_| pair.has_failed()).and_then(|result| result.text.as_deref());
    if let Some(line) = error.and_then(|text| text.lines().find(|line| !line.trim().is_empty())) {
        let line = truncate_end(line.trim(), layout.width.saturating_sub(6));
        painted.push(PLAIN, "      ").push_inline(FAILED, &line);
        painted.end_line();
    }
}

/// Appends the changed lines of an edit with a few lines around them, and their counts, which `counts`
/// has if the result says them.
fn push_diff(painted: &mut Painted, edit: &Edit, counts: Option<LineCounts>, width: usize) {
    let diff = TextDiff::from_lines(&edit.removed, &edit.added);
    let mut lines = Vec::new();
    let mut shown = LineCounts { added: 0, removed: 0 };
    for group in diff.grouped_ops(DIFF_CONTEXT) {
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let (style, sign) = match change.tag() {
                ChangeTag::Delete => (FAILED, '-'),
                ChangeTag::Insert => (SUCCEEDED, '+'),
                ChangeTag::Equal => (DIM, ' '),
            };
            shown.removed += usize::from(change.tag() == ChangeTag::Delete);
            shown.added += usize::from(change.tag() == ChangeTag::Insert);
            let line = change.value().trim_end_matches(['\n', '\r']).replace('\t', "    ");
            lines.push((style, format!("      {sign} {line}")));
        }
    }
    for (style, line) in lines.iter().take(MAX_DIFF_LINES) {
        painted.push_inline(*style, &truncate_end(&clean_text(line), width));
        painted.end_line();
    }
    if lines.len() > MAX_DIFF_LINES {
        let LineCounts { added, removed } = counts.unwrap_or(shown);
        painted.push(DIM, &format!("      +{added} -{removed} lines in all"));
        painted.end_line();
    }
}

/// Shortens the notes in place of images: `[image/png 20480 bytes]` becomes `[image 20 KB]`.
pub(crate) fn shorten_image_notes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("[image/") {
        let (before, note) = rest.split_at(at);
        let Some(end) = note.find(']') else { break };
        out.push_str(before);
        let words: Vec<&str> = note[1..end].split(' ').collect();
        match words.as_slice() {
            [_, bytes, "bytes"] if bytes.parse::<u64>().is_ok() => {
                let bytes = bytes.parse().unwrap_or(0);
                out.push_str(&format!("[image {}]", format_bytes(bytes)));
            }
            _ => out.push_str(&note[..=end]),
        }
        rest = &note[end + 1..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_named_by_their_size() {
        let text = "see [image/png 20480 bytes] and [image/x] or [image/png";
        assert_eq!(shorten_image_notes(text), "see [image 20 KB] and [image/x] or [image/png");
        assert_eq!(shorten_image_notes("none"), "none");
    }
}
