//! Formats the matches of a search: grouped by session for a screen, one by one for a pipe.

use std::collections::HashMap;
use std::fmt::Write as _;

use anstyle::Style;
use schemas::tool::search::{Match, SearchData};
use schemas::{EventType, Provider};

use super::conversation::diff_style;
use super::highlight::Highlighter;
use super::layout::Layout;
use super::painted::{AGENT, DIM, FAILED, ID, PLAIN, PROJECT, PROMPT, Painted, STRONG};
use super::show::{Show, abandoned_note, indent_lines};
use super::text::tool_part;
use base::cells::{text_width, truncate_end};
use base::sanitize::one_line;

/// Most lines of a match on a screen.
const MAX_SNIPPET_LINES: usize = 3;

/// Most cells of the name of a project.
const MAX_PROJECT_WIDTH: usize = 20;

/// The cells before the further lines of a match.
const SNIPPET_INDENT: usize = 6;

/// The characters before a match that are kept, so that it is among the first lines.
const CHARS_BEFORE_MATCH: usize = 60;

impl Show for SearchData {
    fn to_text(&self) -> String {
        let mut out = String::new();
        let mut session_id = "";
        let mut project = "";
        for found in &self.matches {
            // Further matches of a session do not repeat its project.
            if found.session_id != session_id {
                session_id = &found.session_id;
                project = found.project.as_deref().unwrap_or("");
            }
            let subtype =
                found.subtype.as_deref().map(|subtype| format!("/{subtype}")).unwrap_or_default();
            let _ = writeln!(
                out,
                "{}  {}  {}{subtype}{}  turn {}{}  {}",
                found.event_id,
                found.timestamp.as_deref().unwrap_or("no time"),
                found.event_type,
                tool_part(found.tool_name.as_ref(), found.is_error),
                found.turn_index,
                abandoned_note(found.is_abandoned),
                project,
            );
            out.push_str(&indent_lines(found.snippet.trim(), "    "));
            out.push('\n');
            for (index, line) in &found.context {
                let _ = writeln!(out, "      :{index} {line}");
            }
        }
        out
    }

    fn paint(&self, layout: &Layout) -> Painted {
        let highlighter = Highlighter::new(&self.query);
        let mut painted = Painted::new();
        for (at, session) in group_by_session(&self.matches).iter().enumerate() {
            if at > 0 {
                painted.end_line();
            }
            push_session_line(&mut painted, session, layout);
            for found in session {
                push_match(&mut painted, found, &highlighter, layout.width);
            }
        }
        painted
    }
}

/// The sessions of the matches of a search, without the matches.
pub struct MatchingSessions<'d>(pub &'d SearchData);

impl Show for MatchingSessions<'_> {
    fn to_text(&self) -> String {
        let groups = group_by_session(&self.0.matches);
        let ids = groups.iter().filter_map(|group| group.first());
        ids.map(|found| format!("{}\n", found.session_id)).collect()
    }

    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        for session in group_by_session(&self.0.matches) {
            push_session_line(&mut painted, &session, layout);
        }
        painted
    }
}

/// Returns the matches of each session, in the order in which the sessions occur first.
fn group_by_session(matches: &[Match]) -> Vec<Vec<&Match>> {
    let mut groups: Vec<Vec<&Match>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for found in matches {
        let at = *places.entry(&found.session_id).or_insert_with(|| {
            groups.push(Vec::new());
            groups.len() - 1
        });
        if let Some(group) = groups.get_mut(at) {
            group.push(found);
        }
    }
    groups
}

/// Appends the line of a session with matches: id, agent, project, time, count and title.
fn push_session_line(painted: &mut Painted, matches: &[&Match], layout: &Layout) {
    let Some(first) = matches.first() else { return };
    let id = layout.short_id(&first.session_id);
    let time = layout.time(first.timestamp.as_deref());
    let project = truncate_end(first.project.as_deref().unwrap_or(""), MAX_PROJECT_WIDTH);
    let hits = if matches.len() == 1 {
        "1 match".to_owned()
    } else {
        format!("{} matches", matches.len())
    };
    painted.push_inline(ID, &id).push(PLAIN, "  ").push(DIM, &time);
    let agent = first.provider.map_or("", Provider::as_str);
    painted.push(PLAIN, "  ").push(AGENT, agent);
    let mut used = text_width(&id) + text_width(&time) + agent.len() + 4;
    for (style, text) in [(PROJECT, project.as_str()), (PLAIN, hits.as_str())] {
        if !text.is_empty() {
            painted.push(PLAIN, "  ").push_inline(style, text);
            used += text_width(text) + 2;
        }
    }
    let title = layout.session_title(&first.session_id).map(|title| one_line(&title));
    if let Some(title) = title {
        let room = layout.width.saturating_sub(used + 2);
        if room >= text_width(&title).min(20) {
            painted.push(PLAIN, "  ").push_inline(STRONG, &truncate_end(&title, room));
        } else {
            painted.end_line();
            let title = truncate_end(&title, layout.width.saturating_sub(2));
            painted.push(PLAIN, "  ").push_inline(STRONG, &title);
        }
    }
    painted.end_line();
}

/// Appends a match: what it is, and the text around the words.
fn push_match(painted: &mut Painted, found: &Match, highlighter: &Highlighter, width: usize) {
    let (style, label) = describe_match(found);
    let index = format!("  :{}", found.event_index);
    painted.push(ID, &index).push(PLAIN, " ").push(style, &label).push(PLAIN, "  ");

    if found.is_diff {
        painted.end_line();
        for line in found.snippet.lines() {
            let shown = format!("{}{line}", " ".repeat(SNIPPET_INDENT)).replace('\t', "    ");
            painted.push_inline(diff_style(line), &truncate_end(&shown, width));
            painted.end_line();
        }
        return;
    }
    let text = focus_match(&found.snippet, highlighter);
    let first_room = width.saturating_sub(text_width(&index) + text_width(&label) + 3);
    for (at, line) in wrap_after_label(&text, first_room, width).iter().enumerate() {
        if at > 0 {
            painted.push(PLAIN, &" ".repeat(SNIPPET_INDENT));
        }
        highlighter.push(painted, PLAIN, line);
        painted.end_line();
    }
    for (index, line) in &found.context {
        let line = format!("      :{index} {line}");
        painted.push_inline(DIM, &truncate_end(&one_line(&line), width));
        painted.end_line();
    }
}

/// Breaks a text into a few lines. The first has `first_room` cells, the others are indented.
fn wrap_after_label(text: &str, first_room: usize, width: usize) -> Vec<String> {
    // Placeholder for the label while the lines are wrapped.
    let label = " ".repeat(width.saturating_sub(first_room));
    let indent = " ".repeat(SNIPPET_INDENT);
    let options = textwrap::Options::new(width).initial_indent(&label).subsequent_indent(&indent);
    let wrapped = textwrap::wrap(text, options);
    let is_cut = wrapped.len() > MAX_SNIPPET_LINES;
    let mut lines: Vec<String> = Vec::new();
    for (at, line) in wrapped.iter().take(MAX_SNIPPET_LINES).enumerate() {
        let indent = if at == 0 { &label } else { &indent };
        lines.push(line.strip_prefix(indent.as_str()).unwrap_or(line).to_owned());
    }
    if is_cut && let Some(last) = lines.last_mut() {
        let room = width.saturating_sub(SNIPPET_INDENT + 1);
        *last = format!("{}…", truncate_end(last, room).trim_end_matches('…'));
    }
    lines
}

/// Returns a snippet on one line, cut at its beginning if its first match would come late.
fn focus_match(snippet: &str, highlighter: &Highlighter) -> String {
    let text = snippet.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = highlighter.find(&text).map_or(0, |found| found.start);
    let before = text[..start].chars().count();
    if before <= CHARS_BEFORE_MATCH {
        return text;
    }
    let kept: String = text.chars().skip(before - CHARS_BEFORE_MATCH).collect();
    let from = kept.find(' ').map_or(0, |at| at + 1);
    format!("…{}", &kept[from..])
}

/// Returns what an event is in a few words, with their style.
fn describe_match(found: &Match) -> (Style, String) {
    let tool = found.tool_name.as_deref().unwrap_or("tool");
    let (style, label) = match found.event_type {
        EventType::User => (PROMPT, "prompt".to_owned()),
        EventType::Message => (STRONG, "answer".to_owned()),
        EventType::Reasoning => (DIM, "reasoning".to_owned()),
        EventType::ToolCall => (PLAIN, tool.to_owned()),
        EventType::ToolResult if found.is_error == Some(true) => (FAILED, format!("{tool} failed")),
        EventType::ToolResult => (PLAIN, format!("{tool} result")),
        EventType::TokenUsage => (DIM, "tokens".to_owned()),
        EventType::Notification => {
            (DIM, found.subtype.clone().unwrap_or_else(|| "notice".to_owned()))
        }
    };
    let abandoned = if found.is_abandoned { " abandoned" } else { "" };
    (style, format!("{label}{abandoned}"))
}
