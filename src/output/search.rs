//! Formats the matches of a search: grouped by session on a screen, one by one in a pipe.

use std::collections::HashMap;

use anstyle::Style;
use schemas::Provider;
use schemas::tool::search::{Match, SearchData};

use super::event::{abandoned_note, describe_event};
use super::highlight::Highlighter;
use super::layout::Layout;
use super::list::{SessionLine, push_title};
use super::painted::{DIM, ID, PLAIN, PROJECT, Painted, STRONG, diff_style};
use super::show::Show;
use base::cells::{text_width, truncate_end};
use base::sanitize::one_line;

/// Most lines of a match on a screen.
const MAX_SNIPPET_LINES: usize = 3;

/// Fewest cells of a title, unless it is shorter.
const MIN_TITLE_WIDTH: usize = 20;

/// The cells before the further lines of a match.
const SNIPPET_INDENT: usize = 6;

/// The characters before a match that are kept, so that it is among the first lines.
const CHARS_BEFORE_MATCH: usize = 60;

impl Show for SearchData {
    fn paint(&self, layout: &Layout) -> Painted {
        let highlighter = Highlighter::new(&self.query);
        let mut painted = Painted::new();
        if layout.is_plain {
            for session in self.matches.chunk_by(|a, b| a.session_id == b.session_id) {
                // Further matches of a session do not repeat its project.
                let project = session.first().and_then(|first| first.project.as_deref());
                for found in session {
                    push_record(&mut painted, found, project, &highlighter, layout);
                }
            }
            return painted;
        }
        for (at, session) in group_by_session(&self.matches).iter().enumerate() {
            if at > 0 {
                painted.end_line();
            }
            push_session_line(&mut painted, session, layout);
            for found in session {
                push_match(&mut painted, found, &highlighter, layout);
            }
        }
        painted
    }
}

/// The sessions of the matches of a search, without the matches.
pub struct MatchingSessions<'d>(pub &'d SearchData);

impl Show for MatchingSessions<'_> {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        for session in group_by_session(&self.0.matches) {
            match session.first() {
                // Other commands take the ids as they are.
                Some(first) if layout.is_plain => {
                    painted.push_inline(ID, &first.session_id).end_line();
                }
                Some(_) | None => push_session_line(&mut painted, &session, layout),
            }
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

/// Appends the line of a session with matches: id, time, agent, project, count and title.
fn push_session_line(painted: &mut Painted, matches: &[&Match], layout: &Layout) {
    let Some(first) = matches.first() else { return };
    let line = SessionLine {
        id: &first.session_id,
        time: &layout.time(first.timestamp.as_deref()),
        agent: first.provider.map_or("", Provider::as_str),
        project: first.project.as_deref(),
    };
    let hits = match matches.len() {
        1 => "1 match".to_owned(),
        count => format!("{count} matches"),
    };
    let used = line.push_to(painted, layout) + text_width(&hits) + 4;
    painted.push(PLAIN, "  ").push(PLAIN, &hits);
    let title = layout.session_title(&first.session_id).map(|title| one_line(&title));
    let width = layout.width.saturating_sub(used);
    match title {
        Some(title) if width >= text_width(&title).min(MIN_TITLE_WIDTH) => {
            painted.push(PLAIN, "  ").push_inline(STRONG, &truncate_end(&title, width));
            painted.end_line();
        }
        title => {
            painted.end_line();
            push_title(painted, title.as_deref(), layout);
        }
    }
}

/// Appends a match as a record of its own: its id, time, place and project, then its text.
fn push_record(
    painted: &mut Painted,
    found: &Match,
    project: Option<&str>,
    highlighter: &Highlighter,
    layout: &Layout,
) {
    let (style, label) = describe_match(found);
    painted.push_inline(ID, &found.event_id);
    painted.push(DIM, &format!("  {}  ", layout.time(found.timestamp.as_deref())));
    painted.push_inline(style, &label).push(DIM, &format!("  turn {}", found.turn_index));
    if let Some(project) = project {
        painted.push(PLAIN, "  ").push_inline(PROJECT, project);
    }
    painted.end_line();
    push_lines(painted, found, highlighter, layout);
    push_context(painted, found, layout);
}

/// Appends a match below its session: what it is, then the text around the words.
fn push_match(painted: &mut Painted, found: &Match, highlighter: &Highlighter, layout: &Layout) {
    let (style, label) = describe_match(found);
    let place = format!("  :{}", found.event_index);
    painted.push(ID, &place).push(PLAIN, " ").push_inline(style, &label).push(PLAIN, "  ");
    if found.is_diff {
        painted.end_line();
        push_lines(painted, found, highlighter, layout);
    } else {
        let text = focus_match(&found.snippet, highlighter);
        let used = text_width(&place) + text_width(&label) + 3;
        let lines = wrap_after_label(&text, layout.width.saturating_sub(used), layout.width);
        for (at, line) in lines.iter().enumerate() {
            let indent = if at == 0 { 0 } else { SNIPPET_INDENT };
            painted.push(PLAIN, &" ".repeat(indent));
            highlighter.push(painted, PLAIN, line);
            painted.end_line();
        }
    }
    push_context(painted, found, layout);
}

/// Returns what a match is in a few words, with their style.
fn describe_match(found: &Match) -> (Style, String) {
    let Match { event_type, tool_name, subtype, is_error, is_abandoned, .. } = found;
    let (style, label) =
        describe_event(*event_type, tool_name.as_deref(), subtype.as_deref(), *is_error);
    (style, format!("{label}{}", abandoned_note(*is_abandoned)))
}

/// Appends the lines of a snippet as they are.
fn push_lines(painted: &mut Painted, found: &Match, highlighter: &Highlighter, layout: &Layout) {
    let width = layout.width.saturating_sub(SNIPPET_INDENT);
    for line in found.snippet.trim_end().lines() {
        let style = if found.is_diff { diff_style(line) } else { PLAIN };
        painted.push(PLAIN, &" ".repeat(SNIPPET_INDENT));
        highlighter.push(painted, style, &truncate_end(&layout.text(line), width));
        painted.end_line();
    }
}

/// Appends the lines of the events before and after a match.
fn push_context(painted: &mut Painted, found: &Match, layout: &Layout) {
    for (index, line) in &found.context {
        let line = format!("{}:{index} {line}", " ".repeat(SNIPPET_INDENT));
        painted.push_inline(DIM, &truncate_end(&one_line(&line), layout.width));
        painted.end_line();
    }
}

/// Breaks a text into a few lines. The first has `first_width` cells, the others are indented.
fn wrap_after_label(text: &str, first_width: usize, width: usize) -> Vec<String> {
    // Placeholder for the label while the lines are wrapped.
    let label = " ".repeat(width.saturating_sub(first_width));
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
        let cut = truncate_end(last, width.saturating_sub(SNIPPET_INDENT + 1));
        *last = format!("{}…", cut.trim_end_matches('…'));
    }
    lines
}

/// Returns a snippet on one line, cut at its beginning if its first match would come late.
fn focus_match(snippet: &str, highlighter: &Highlighter) -> String {
    let text = snippet.split_whitespace().collect::<Vec<_>>().join(" ");
    let start = highlighter.find_in(&text).next().map_or(0, |found| found.start);
    let before = text[..start].chars().count();
    if before <= CHARS_BEFORE_MATCH {
        return text;
    }
    let kept: String = text.chars().skip(before - CHARS_BEFORE_MATCH).collect();
    let from = kept.find(' ').map_or(0, |at| at + 1);
    format!("…{}", &kept[from..])
}
