//! Formats findings: the session, the counts, the context, and what was found, most severe first.

use anstyle::Style;
use schemas::envelope::Severity;
use schemas::tool::analyze::{AnalyzeData, CheckCount, Context, Finding, Fix, Lost};

use super::layout::Layout;
use super::list::{SessionLine, push_title};
use super::painted::{
    DIM, FAILED, ID, PLAIN, PROJECT, PROMPT, Painted, STRONG, SUCCEEDED, WARNED, diff_style,
};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::cells::{text_width, truncate_end};
use base::numbers::{bar, count_of};
use base::sanitize::{clean_text, one_line};

/// The cells before the lines of a finding.
const INDENT: &str = "    ";

/// Least and most cells of the name of a tool.
const MIN_TOOL_WIDTH: usize = 6;
const MAX_TOOL_WIDTH: usize = 24;

/// Most lines of the message of a finding on a screen.
const MAX_MESSAGE_LINES: usize = 6;

/// Most lines of a diff on a screen.
const MAX_DIFF_LINES: usize = 8;

impl Show for AnalyzeData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        match &self.session {
            Some(session) => {
                let line = SessionLine {
                    id: &session.session_id,
                    time: &layout.time(session.ended_at.as_deref()),
                    agent: session.provider.as_str(),
                    project: session.project.as_deref(),
                };
                line.push_to(&mut painted, layout);
                painted.end_line();
                // The answer has the beginning of the title only.
                let title = layout.session_title(&session.session_id).or(session.title.clone());
                push_title(&mut painted, title.as_deref(), layout);
            }
            None => {
                painted.push(STRONG, &count_of(self.sessions, "session")).end_line();
            }
        }
        push_counts(&mut painted, self, layout);
        if let Some(context) = &self.context {
            push_context(&mut painted, context, layout);
        }
        for finding in &self.findings {
            painted.end_line();
            push_finding(&mut painted, finding, layout);
        }
        painted
    }
}

/// Appends how many findings each check has, and which tools failed most.
fn push_counts(painted: &mut Painted, data: &AnalyzeData, layout: &Layout) {
    if !data.counts.is_empty() {
        let counts: Vec<String> = data.counts.iter().map(describe_count).collect();
        push_wrapped(painted, PLAIN, "", &counts.join(" · "), layout.width, usize::MAX);
    }
    let mut tools = Vec::new();
    for tool in &data.tools {
        tools.push(format!("{} {} of {}", tool.tool_name, tool.errors, tool.calls));
    }
    if !tools.is_empty() {
        let text = clean_text(&format!("failed most: {}", tools.join(", ")));
        push_wrapped(painted, DIM, "", &text, layout.width, usize::MAX);
    }
}

/// Describes the findings of a check: `failures 6 (2 errors, 3 warnings, 1 note)`.
fn describe_count(count: &CheckCount) -> String {
    let mut severities = Vec::new();
    let notes = count.findings.saturating_sub(count.errors + count.warnings);
    let notes = if notes == count.findings { 0 } else { notes };
    for (number, noun) in [(count.errors, "error"), (count.warnings, "warning"), (notes, "note")] {
        if number > 0 {
            severities.push(count_of(number, noun));
        }
    }
    let findings = format!("{} {}", count.check, count.findings);
    if severities.is_empty() { findings } else { format!("{findings} ({})", severities.join(", ")) }
}

/// Appends how the context grew, with one bar for each request, or for each few.
fn push_context(painted: &mut Painted, context: &Context, layout: &Layout) {
    let text = format!(
        "context {} at the start, {} at the peak ({}), {} at the end; {}, {}",
        layout.short_count(context.first_tokens),
        layout.short_count(context.peak_tokens),
        layout.event_place(&context.peak_event_id),
        layout.short_count(context.last_tokens),
        count_of(context.requests, "request"),
        count_of(context.compactions, "compaction"),
    );
    push_wrapped(painted, DIM, "", &text, layout.width, usize::MAX);
    let step = context.series.len().div_ceil(layout.width.max(1)).max(1);
    let peak = context.peak_tokens.unsigned_abs();
    let bars: String = context
        .series
        .chunks(step)
        .filter_map(|requests| requests.iter().map(|[_, tokens]| tokens.unsigned_abs()).max())
        .map(|tokens| bar(tokens, peak))
        .collect();
    painted.push(DIM, &bars);
    painted.end_line();
}

fn push_finding(painted: &mut Painted, finding: &Finding, layout: &Layout) {
    let (style, mark) = match finding.severity {
        Severity::Error => (FAILED, "✗"),
        Severity::Warning => (WARNED, "!"),
        Severity::Info => (DIM, "·"),
    };
    let mark = layout.mark(mark, finding.severity.as_str());
    let check = finding.check.as_str();
    let id = layout.event_id(&finding.event_id);
    let time = layout.time(finding.timestamp.as_deref());
    let place = format!("  turn {}  {time}", finding.turn_index);
    painted.push(style, mark).push(PLAIN, " ").push(style, check);
    if let Some(tool) = &finding.tool_name {
        let used = check.len() + text_width(&id) + text_width(&place) + 5;
        let width = layout.width.saturating_sub(used);
        let tool = truncate_end(tool, width.clamp(MIN_TOOL_WIDTH, layout.limit(MAX_TOOL_WIDTH)));
        painted.push(PLAIN, " ").push_inline(STRONG, &tool);
    }
    painted.push(PLAIN, "  ").push_inline(ID, &id).push(DIM, &place);
    painted.end_line();
    push_text(painted, PLAIN, &finding.reason, layout, usize::MAX);
    if let Some(call) = &finding.call {
        let call = truncate_end(&one_line(call), layout.width.saturating_sub(INDENT.len()));
        push_text(painted, STRONG, &call, layout, 1);
    }
    if let Some(message) = &finding.message {
        let lines = message.lines().filter(|line| !line.trim().is_empty());
        let message = lines.collect::<Vec<_>>().join("\n");
        push_text(painted, style, &message, layout, MAX_MESSAGE_LINES);
    }
    if let Some(fix) = &finding.fix {
        push_fix(painted, fix, layout);
    }
    if let Some(lost) = &finding.lost {
        push_lost(painted, lost, layout);
    }
    if !finding.related_event_ids.is_empty() {
        let ids = finding.related_event_ids.iter().map(|id| layout.event_id(id));
        let text = format!("see also {}", ids.collect::<Vec<_>>().join(" "));
        push_text(painted, DIM, &text, layout, 2);
    }
}

/// Appends a text in the indent of a finding, with a mark if its last lines are left out.
fn push_text(painted: &mut Painted, style: Style, text: &str, layout: &Layout, max_lines: usize) {
    let max_lines = layout.limit(max_lines);
    let omitted = push_wrapped(painted, style, INDENT, &layout.text(text), layout.width, max_lines);
    if omitted > 0 && max_lines > 1 {
        painted.push(DIM, &format!("{INDENT}… {}", count_of(omitted, "more line")));
        painted.end_line();
    }
}

/// Appends the call that worked, with what changed before it.
fn push_fix(painted: &mut Painted, fix: &Fix, layout: &Layout) {
    let id = layout.event_id(&fix.event_id);
    painted.push(PLAIN, INDENT).push(SUCCEEDED, "✓ fixed by ").push_inline(ID, &id);
    painted.end_line();
    let kind = fix.matched.as_str().replace('_', " ");
    let result = fix.result_event_id.as_deref().map(|id| layout.event_place(id));
    let result = result.map(|place| format!(", result {place}")).unwrap_or_default();
    let text = format!("{kind}, {} between{result}", count_of(fix.calls_between, "call"));
    push_text(painted, DIM, &text, layout, usize::MAX);
    push_changes(painted, fix.diff.as_deref(), layout);
    if fix.edits_omitted > 0 {
        let text = format!("and {}", count_of(fix.edits_omitted, "earlier edit"));
        push_text(painted, DIM, &text, layout, 1);
    }
    for edit in &fix.edits {
        let files = one_line(&edit.files.join(" "));
        let files = truncate_end(&files, layout.width.saturating_sub(30));
        painted.push(PLAIN, INDENT).push(STRONG, "edit ");
        painted.push_inline(ID, &layout.event_id(&edit.event_id)).push(PLAIN, " ");
        painted.push_inline(PROJECT, &files);
        painted.end_line();
        push_changes(painted, edit.diff.as_deref(), layout);
    }
}

/// Appends the lines of a diff in their colours.
fn push_changes(painted: &mut Painted, diff: Option<&str>, layout: &Layout) {
    let diff = layout.text(diff.unwrap_or(""));
    let max_lines = layout.limit(MAX_DIFF_LINES);
    for line in diff.lines().take(max_lines) {
        let shown = truncate_end(line, layout.width.saturating_sub(INDENT.len() + 2));
        painted.push(PLAIN, "      ").push(diff_style(line), &shown);
        painted.end_line();
    }
    let omitted = diff.lines().count().saturating_sub(max_lines);
    if omitted > 0 {
        painted.push(DIM, &format!("      … {}", count_of(omitted, "more line")));
        painted.end_line();
    }
}

/// Appends what a compaction lost.
fn push_lost(painted: &mut Painted, lost: &Lost, layout: &Layout) {
    for prompt in &lost.prompts {
        let cut = if prompt.omitted > 0 { "…" } else { "" };
        let place = layout.event_place(&prompt.event_id);
        let text = format!("lost prompt {place}  {}{cut}", one_line(prompt.text.trim()));
        let width = layout.width.saturating_sub(INDENT.len());
        push_text(painted, PROMPT, &truncate_end(&text, width), layout, 1);
    }
    if lost.prompts_omitted > 0 {
        let text = format!("and {}", count_of(lost.prompts_omitted, "more prompt"));
        push_text(painted, DIM, &text, layout, 1);
    }
    if !lost.files.is_empty() {
        let more = match lost.files_omitted {
            0 => String::new(),
            omitted => format!(" and {omitted} more"),
        };
        let text = format!("lost files {}{more}", lost.files.join(" "));
        push_text(painted, PLAIN, &text, layout, 3);
    }
}
