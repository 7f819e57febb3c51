//! Formats the sessions that a question found for a screen.

use schemas::tool::find::{FindData, SessionMatch};
use schemas::tool::search::ParsedQuery;

use super::highlight::Highlighter;
use super::layout::Layout;
use super::numbers::count_of;
use super::painted::{AGENT, DIM, ID, PLAIN, PROJECT, Painted, STRONG, WARNED};
use super::wrapped::wrap_lines;
use base::cells::truncate_end;
use base::sanitize::{clean_text, one_line};

/// Most lines of a passage.
const MAX_PASSAGE_LINES: usize = 2;

/// The cells before a passage, which has its position there.
const PASSAGE_INDENT: usize = 9;

/// Formats the found sessions: a line of facts, the title, why it fits, and the passages.
pub(super) fn paint_found(data: &FindData, layout: &Layout) -> Painted {
    let query = ParsedQuery { any_of: data.looked_for.clone(), ..ParsedQuery::default() };
    let highlighter = Highlighter::new(&query);
    let mut painted = Painted::new();
    for (at, session) in data.sessions.iter().enumerate() {
        if at > 0 {
            painted.end_line();
        }
        push_session(&mut painted, session, &highlighter, layout);
    }
    if !data.absent.is_empty() {
        let text = format!("no session has: {}", data.absent.join(", "));
        painted.push_inline(WARNED, &truncate_end(&text, layout.width));
        painted.end_line();
    }
    painted
}

fn push_session(
    painted: &mut Painted,
    session: &SessionMatch,
    highlighter: &Highlighter,
    layout: &Layout,
) {
    painted.push_inline(ID, &layout.short_id(&session.session_id)).push(PLAIN, "  ");
    let day = || session.ended.clone().unwrap_or_else(|| "no time".to_owned());
    let ended = layout.session_end(&session.session_id).unwrap_or_else(day);
    painted.push_inline(DIM, &ended).push(PLAIN, "  ");
    painted.push(AGENT, session.provider.as_str());
    if let Some(project) = &session.project {
        painted.push(PLAIN, "  ").push_inline(PROJECT, &truncate_end(project, 20));
    }
    painted.end_line();
    let room = layout.width.saturating_sub(2);
    // The answer has the beginning of the title only.
    if let Some(title) = layout.session_title(&session.session_id).or(session.title.clone()) {
        painted.push(PLAIN, "  ").push_inline(STRONG, &truncate_end(&one_line(&title), room));
        painted.end_line();
    }
    let why = format!("{} in {}", session.why, count_of(session.events, "event"));
    painted.push(PLAIN, "  ").push_inline(DIM, &truncate_end(&why, room));
    painted.end_line();
    for (index, text) in &session.passages {
        let mut text = one_line(&clean_text(text));
        // Passages are cut after a number of characters.
        if text.ends_with(char::is_alphanumeric) {
            text.push('…');
        }
        let room = layout.width.saturating_sub(PASSAGE_INDENT);
        let lines = wrap_lines(&text, room);
        for (at, line) in lines.iter().take(MAX_PASSAGE_LINES).enumerate() {
            let place = if at == 0 { format!(":{index}") } else { String::new() };
            painted.push(ID, &format!("  {place:<width$}", width = PASSAGE_INDENT - 2));
            let is_cut = at + 1 == MAX_PASSAGE_LINES && lines.len() > MAX_PASSAGE_LINES;
            let line = if is_cut { &truncate_end(&format!("{line}…"), room) } else { line };
            highlighter.push(painted, PLAIN, line);
            painted.end_line();
        }
    }
}
