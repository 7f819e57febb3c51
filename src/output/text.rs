//! Answers as text for a person.

use std::fmt::Write as _;

use ingest::report::Report;
use schemas::Usage;
use schemas::tool::details::{DetailData, Excerpt};
use schemas::tool::event::{Event, EventData};
use schemas::tool::list::{ListData, Session};
use schemas::tool::search::SearchData;
use serde_json::Value;

use crate::sql::ResultTable;
use crate::tools::status::StatusData;

/// Text for a terminal. What comes from logs is cleaned already.
pub trait Show {
    fn show(&self) -> String;
}

/// Indents every line of a text.
fn indent(text: &str, by: &str) -> String {
    let mut out = String::new();
    for line in text.trim_end().lines() {
        let _ = writeln!(out, "{by}{line}");
    }
    out
}

fn tool_part(tool: Option<&String>, is_error: Option<bool>) -> String {
    let tool = tool.map(|tool| format!(" {tool}")).unwrap_or_default();
    let failed = if is_error == Some(true) { " FAILED" } else { "" };
    format!("{tool}{failed}")
}

impl Show for SearchData {
    fn show(&self) -> String {
        let mut out = String::new();
        for found in &self.matches {
            let subtype =
                found.subtype.as_deref().map(|subtype| format!("/{subtype}")).unwrap_or_default();
            let _ = writeln!(
                out,
                "{}  {}  {}{subtype}{}  turn {}  {}",
                found.event_id,
                found.timestamp.as_deref().unwrap_or("no time"),
                found.event_type,
                tool_part(found.tool_name.as_ref(), found.is_error),
                found.turn_index,
                found.project.as_deref().unwrap_or(""),
            );
            let (before, after) = (found.omitted[0], found.omitted[1]);
            let start = if before > 0 { "…" } else { "" };
            let end = if after > 0 { "…" } else { "" };
            out.push_str(&indent(&format!("{start}{}{end}", found.snippet.trim()), "    "));
            out.push('\n');
        }
        out
    }
}

impl Show for ListData {
    fn show(&self) -> String {
        let mut out = String::new();
        for session in &self.sessions {
            out.push_str(&session_lines(session));
        }
        for id in &self.not_found {
            let _ = writeln!(out, "{id}  not found");
        }
        out
    }
}

fn session_lines(session: &Session) -> String {
    let mut out = String::new();
    let counts = session.counts.unwrap_or_default();
    let parent = session.relation.zip(session.parent_session_id.as_ref());
    let _ = writeln!(
        out,
        "{}  {}  {}  {}",
        session.session_id,
        session.provider,
        session.ended_at.as_deref().unwrap_or("no time"),
        session.project.as_deref().unwrap_or(""),
    );
    if let Some(title) = &session.title {
        let _ = writeln!(out, "    {}", title.replace('\n', " "));
    }
    if session.counts.is_some() {
        let usage = session.usage.map(usage_text).unwrap_or_default();
        let _ = writeln!(
            out,
            "    {} events, {} turns, {} tool calls, {} errors{usage}",
            counts.events, counts.turns, counts.tool_calls, counts.tool_errors
        );
    }
    if let Some((relation, parent)) = parent {
        let _ = writeln!(out, "    {relation} {parent}");
    }
    out
}

fn usage_text(usage: Usage) -> String {
    let fields = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache write", usage.cache_write),
    ];
    let known: Vec<_> = fields
        .iter()
        .filter_map(|(name, count)| count.map(|count| format!("{name} {count}")))
        .collect();
    format!("; tokens: {}", known.join(", "))
}

impl Show for EventData {
    fn show(&self) -> String {
        let mut out: String = self.events.iter().map(event_lines).collect();
        for id in &self.not_found {
            let _ = writeln!(out, "{id}  not found");
        }
        out
    }
}

fn event_lines(event: &Event) -> String {
    let mut out = String::new();
    let subtype = event.subtype.as_deref().map(|subtype| format!("/{subtype}")).unwrap_or_default();
    let replay = if event.is_replay { "  copied" } else { "" };
    let _ = writeln!(
        out,
        "{}  {}  {}{subtype}{}  turn {} step {}{replay}",
        event.event_id,
        event.timestamp.as_deref().unwrap_or("no time"),
        event.event_type,
        tool_part(event.tool_name.as_ref(), event.is_error),
        event.turn_index,
        event.step_index,
    );
    if let Some(usage) = event.usage {
        let _ = writeln!(out, "    {}", usage_text(usage).trim_start_matches("; "));
    }
    if let Some(source) = &event.source {
        let _ = writeln!(
            out,
            "    {} at byte {}, {} bytes",
            source.path, source.byte_offset, source.byte_length
        );
    }
    out.push_str(&indent(event.text.as_deref().unwrap_or(""), "    "));
    out.push('\n');
    out
}

fn excerpt_lines(label: &str, excerpt: &Excerpt) -> String {
    let more = if excerpt.omitted > 0 {
        format!(" (+{} characters)", excerpt.omitted)
    } else {
        String::new()
    };
    let tool = tool_part(excerpt.tool_name.as_ref(), excerpt.is_error);
    format!("{label}{tool}  {}{more}\n{}", excerpt.event_id, indent(&excerpt.text, "    "))
}

impl Show for DetailData {
    fn show(&self) -> String {
        let mut out = session_lines(&self.session);
        out.push('\n');
        if let Some(summary) = &self.summary {
            let parts = [
                ("first prompt", &summary.first_prompt),
                ("last prompt", &summary.last_prompt),
                ("last message", &summary.last_message),
            ];
            for (label, excerpt) in parts {
                out.extend(excerpt.as_ref().map(|excerpt| excerpt_lines(label, excerpt)));
            }
            if !summary.tools.is_empty() {
                out.push_str("tools\n");
            }
            for tool in &summary.tools {
                let _ = writeln!(
                    out,
                    "    {} {} calls, {} errors",
                    tool.tool_name, tool.calls, tool.errors
                );
            }
            out.extend(summary.errors.iter().map(|excerpt| excerpt_lines("error", excerpt)));
            out.extend(
                summary.compactions.iter().map(|excerpt| excerpt_lines("compaction", excerpt)),
            );
            for child in &summary.children {
                let _ = writeln!(
                    out,
                    "{} {}  {}",
                    child.relation,
                    child.session_id,
                    child.title.as_deref().unwrap_or("")
                );
            }
        }
        for turn in self.turns.iter().flatten() {
            let _ = writeln!(
                out,
                "turn {}  {}  {} steps, {} tool calls, {} errors",
                turn.turn_index,
                turn.timestamp.as_deref().unwrap_or("no time"),
                turn.steps,
                turn.tool_calls,
                turn.tool_errors
            );
            out.extend(turn.prompt.as_ref().map(|excerpt| excerpt_lines("  prompt", excerpt)));
            out.extend(turn.answer.as_ref().map(|excerpt| excerpt_lines("  answer", excerpt)));
        }
        for step in self.steps.iter().flatten() {
            let _ = writeln!(
                out,
                "turn {} step {}  {}",
                step.turn_index,
                step.step_index,
                step.timestamp.as_deref().unwrap_or("no time")
            );
            out.extend(
                step.events
                    .iter()
                    .map(|excerpt| excerpt_lines(&format!("  {}", excerpt.event_type), excerpt)),
            );
        }
        out.extend(self.events.iter().flatten().map(event_lines));
        out
    }
}

impl Show for Report {
    fn show(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "{} files: {} new, {} grown, {} rewritten, {} unchanged, {} vanished, {} empty, {} of unknown format, {} unreadable",
            self.files,
            self.files_new,
            self.files_grown,
            self.files_rewritten,
            self.files_unchanged,
            self.files_vanished,
            self.files_empty,
            self.files_unknown,
            self.files_failed
        );
        let _ = writeln!(
            out,
            "{} sessions, {} events ({} copied) from {} records, {:.1} MB in {:.2} s, {:.0} MB/s",
            self.sessions,
            self.events,
            self.replay_events,
            self.objects,
            megabytes(self.bytes_read),
            self.elapsed_ms as f64 / 1000.0,
            self.mb_per_second
        );
        for (provider, numbers) in &self.by_provider {
            let _ = writeln!(
                out,
                "    {provider}: {} files, {:.1} MB, {} records, {} events",
                numbers.files,
                megabytes(numbers.bytes),
                numbers.objects,
                numbers.events
            );
        }
        if self.segments_set_aside > 0 {
            let _ = writeln!(
                out,
                "{} damaged segments were set aside and their logs read again; what has no log any more is lost",
                self.segments_set_aside
            );
        }
        if !self.objects_merged.is_empty() {
            let merged: Vec<_> = self
                .objects_merged
                .iter()
                .map(|(reason, count)| format!("{reason} {count}"))
                .collect();
            let _ = writeln!(out, "records that are part of other events: {}", merged.join(", "));
        }
        if !self.problems.is_empty() {
            let kinds: Vec<_> =
                self.problems.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
            let _ = writeln!(out, "problems: {}", kinds.join(", "));
            for problem in self.problem_list.iter().take(10) {
                let _ = writeln!(
                    out,
                    "    {}:{} (byte {}) {}: {}",
                    problem.path, problem.line, problem.byte, problem.kind, problem.message
                );
            }
        }
        out
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes for people")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

impl Show for StatusData {
    fn show(&self) -> String {
        let mut out = String::new();
        let _ = writeln!(
            out,
            "store      {} (generation {}, {} segments)",
            self.store, self.generation, self.segments
        );
        let _ = writeln!(
            out,
            "updated    {}",
            self.last_updated.as_deref().unwrap_or("never: run `sessions ingest`")
        );
        let _ = writeln!(out, "sessions   {}", self.sessions);
        let _ = writeln!(out, "events     {} ({} copied)", self.events, self.replay_events);
        for (provider, events) in &self.events_by_provider {
            let _ = writeln!(out, "           {provider} {events}");
        }
        let _ = writeln!(out, "newest     {}", self.newest_event.as_deref().unwrap_or("none"));
        let _ = writeln!(
            out,
            "size       {:.1} MB for {:.1} MB of logs ({:.1} %)",
            megabytes(self.store_bytes),
            megabytes(self.log_bytes),
            self.store_ratio * 100.0
        );
        let counts = |map: &std::collections::BTreeMap<String, usize>| {
            map.iter().map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
        };
        let _ = writeln!(out, "files      {}", counts(&self.files));
        let _ = writeln!(out, "pending    {}", self.pending);
        out.push_str(&indent(&self.pending_files.join("\n"), "           "));
        if self.incomplete_files > 0 {
            let _ = writeln!(
                out,
                "incomplete {} files end inside a line ({} bytes wait)",
                self.incomplete_files, self.incomplete_bytes
            );
        }
        if !self.problems.is_empty() {
            let _ = writeln!(out, "problems   {}", counts(&self.problems));
        }
        for session in &self.incomplete_sessions {
            let _ = writeln!(
                out,
                "LOST       events of {session}: its log and a segment of it are gone"
            );
        }
        for damage in &self.damaged_segments {
            let _ = writeln!(
                out,
                "DAMAGED    segment {damage}; run `sessions ingest` to read the logs again"
            );
        }
        out
    }
}

impl Show for ResultTable {
    fn show(&self) -> String {
        let cell = |value: &Value| match value {
            Value::Null => String::new(),
            Value::String(text) => text.replace('\n', "\\n").replace('\t', " "),
            other => other.to_string(),
        };
        let mut out = self.columns.join("\t");
        out.push('\n');
        for row in &self.rows {
            out.push_str(&row.iter().map(cell).collect::<Vec<_>>().join("\t"));
            out.push('\n');
        }
        out
    }
}
