//! Formats findings as text.

use std::fmt::Write as _;

use schemas::tool::analyze::{AnalyzeData, Context, Finding, Fix, Lost};

use super::analyze_screen::paint_findings;
use super::layout::Layout;
use super::numbers::{bar, count_of};
use super::painted::Painted;
use super::show::{Show, indent_lines};
use base::sanitize::one_line;

impl Show for AnalyzeData {
    fn to_text(&self) -> String {
        let mut out = String::new();
        match &self.session {
            Some(session) => {
                let title = one_line(session.title.as_deref().unwrap_or(""));
                let _ = writeln!(out, "{}  {}  {title}", session.session_id, session.provider);
            }
            None => _ = writeln!(out, "{}", count_of(self.sessions, "session")),
        }
        for count in &self.counts {
            let _ = writeln!(
                out,
                "    {}: {} ({} errors, {} warnings)",
                count.check, count.findings, count.errors, count.warnings
            );
        }
        if !self.tools.is_empty() {
            out.push_str("tools that failed most\n");
        }
        for tool in &self.tools {
            let _ = writeln!(out, "    {} {} of {} calls", tool.tool_name, tool.errors, tool.calls);
        }
        out.extend(self.context.as_ref().map(context_lines));
        out.push('\n');
        out.extend(self.findings.iter().map(finding_lines));
        out
    }

    fn paint(&self, layout: &Layout) -> Painted {
        paint_findings(self, layout)
    }
}

fn context_lines(context: &Context) -> String {
    format!(
        "context: {} tokens at the start, {} at the peak ({}), {} at the end; {} requests, {} \
        compactions\n    {}\n",
        context.first_tokens,
        context.peak_tokens,
        context.peak_event_id,
        context.last_tokens,
        context.requests,
        context.compactions,
        context_sparkline(context),
    )
}

/// Draws the context size over the session, one bar per request.
fn context_sparkline(context: &Context) -> String {
    context.series.iter().map(|[_, tokens]| bar(*tokens, context.peak_tokens)).collect()
}

fn finding_lines(finding: &Finding) -> String {
    let mut out = String::new();
    let tool = finding.tool_name.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
    let _ = writeln!(
        out,
        "{} {}{tool}  {}  turn {}  {}",
        finding.severity,
        finding.check,
        finding.event_id,
        finding.turn_index,
        finding.timestamp.as_deref().unwrap_or("no time"),
    );
    let _ = writeln!(out, "    {}", finding.reason);
    append_labelled_text(&mut out, "call", finding.call.as_deref());
    append_labelled_text(&mut out, "message", finding.message.as_deref());
    append_labelled_text(&mut out, "signature", finding.signature.as_deref());
    out.extend(finding.fix.as_ref().map(fix_lines));
    out.extend(finding.lost.as_ref().map(lost_lines));
    if !finding.related_event_ids.is_empty() {
        let _ = writeln!(out, "    see also {}", finding.related_event_ids.join(" "));
    }
    out.push('\n');
    out
}

/// Writes a labelled text, on the line of its label if the text is a single line.
fn append_labelled_text(out: &mut String, label: &str, text: Option<&str>) {
    let Some(text) = text.map(str::trim_end).filter(|text| !text.is_empty()) else { return };
    if text.contains('\n') {
        let _ = write!(out, "    {label}\n{}", indent_lines(text, "      "));
    } else {
        let _ = writeln!(out, "    {label}  {text}");
    }
}

fn fix_lines(fix: &Fix) -> String {
    let mut out = String::new();
    let result = fix.result_event_id.as_deref().unwrap_or("no result");
    let _ = writeln!(out, "    fixed by  {} ({}, {result})", fix.event_id, fix.matched);
    append_labelled_text(&mut out, "changed", fix.diff.as_deref());
    if fix.edits_omitted > 0 {
        let _ = writeln!(out, "    and {} earlier edits", fix.edits_omitted);
    }
    for edit in &fix.edits {
        let _ = writeln!(out, "    edit  {}  {}", edit.event_id, edit.files.join(" "));
        out.push_str(&indent_lines(edit.diff.as_deref().unwrap_or(""), "      "));
    }
    out
}

fn lost_lines(lost: &Lost) -> String {
    let mut out = String::new();
    for prompt in &lost.prompts {
        let text = one_line(prompt.text.trim());
        let cut = if prompt.omitted > 0 { "…" } else { "" };
        let _ = writeln!(out, "    lost prompt  {}  {text}{cut}", prompt.event_id);
    }
    if lost.prompts_omitted > 0 {
        let _ = writeln!(out, "    and {} more prompts", lost.prompts_omitted);
    }
    if !lost.files.is_empty() {
        let _ = writeln!(out, "    lost files  {}", lost.files.join(" "));
    }
    if lost.files_omitted > 0 {
        let _ = writeln!(out, "    and {} more files", lost.files_omitted);
    }
    out
}
