//! Formats the sessions that a question found: a line of facts, the title, why it fits, and passages.

use schemas::tool::find::{FindData, SessionMatch};
use schemas::tool::search::ParsedQuery;

use super::highlight::Highlighter;
use super::layout::Layout;
use super::list::{SessionLine, push_title};
use super::painted::{DIM, ID, PLAIN, Painted, WARNED};
use super::show::Show;
use super::wrapped::wrap_lines;
use base::cells::truncate_end;
use base::numbers::count_of;
use base::sanitize::{clean_text, one_line};

/// Most lines of a passage on a screen.
const MAX_PASSAGE_LINES: usize = 2;

/// The cells before a passage, which has its position there.
const PASSAGE_INDENT: usize = 9;

impl Show for FindData {
    fn paint(&self, layout: &Layout) -> Painted {
        let query = ParsedQuery { any_of: self.looked_for.clone(), ..ParsedQuery::default() };
        let highlighter = Highlighter::new(&query);
        let mut painted = Painted::new();
        for (at, session) in self.sessions.iter().enumerate() {
            if at > 0 {
                painted.end_line();
            }
            push_session(&mut painted, session, &highlighter, layout);
        }
        if !self.absent.is_empty() {
            let text = format!("no session has: {}", self.absent.join(", "));
            painted.push_inline(WARNED, &truncate_end(&text, layout.width));
            painted.end_line();
        }
        painted
    }
}

fn push_session(
    painted: &mut Painted,
    session: &SessionMatch,
    highlighter: &Highlighter,
    layout: &Layout,
) {
    let day = || session.ended.clone().unwrap_or_else(|| "no time".to_owned());
    let line = SessionLine {
        id: &session.session_id,
        time: &layout.session_end(&session.session_id).unwrap_or_else(day),
        agent: session.provider.as_str(),
        project: session.project.as_deref(),
    };
    line.push_to(painted, layout);
    painted.end_line();
    // The answer has the beginning of the title only.
    let title = layout.session_title(&session.session_id).or(session.title.clone());
    push_title(painted, title.as_deref(), layout);
    let why = format!("{} in {}", session.why, count_of(session.events, "event"));
    painted.push_inline(DIM, &truncate_end(&format!("  {why}"), layout.width));
    painted.end_line();
    for (index, text) in &session.passages {
        let mut text = one_line(&clean_text(text));
        // Passages are cut after a number of characters.
        if text.ends_with(char::is_alphanumeric) {
            text.push('…');
        }
        let width = layout.width.saturating_sub(PASSAGE_INDENT);
        let lines = wrap_lines(&text, width);
        for (at, line) in lines.iter().take(MAX_PASSAGE_LINES).enumerate() {
            let place = if at == 0 { format!(":{index}") } else { String::new() };
            painted.push(ID, &format!("  {place:<width$}", width = PASSAGE_INDENT - 2));
            let is_cut = at + 1 == MAX_PASSAGE_LINES && lines.len() > MAX_PASSAGE_LINES;
            let line = if is_cut { &truncate_end(&format!("{line}…"), width) } else { line };
            highlighter.push(painted, PLAIN, line);
            painted.end_line();
        }
    }
    if let Some(since) = &session.since {
        let since = format!("  since then: {}", one_line(&clean_text(since)));
        painted.push_inline(DIM, &truncate_end(&since, layout.width));
        painted.end_line();
    }
}
