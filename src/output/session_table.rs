//! Formats lists of sessions for a screen: one line per session.

use schemas::tool::list::{ListData, Session, Tokens};

use super::columns::{Cell, Column, FittedTable};
use super::layout::Layout;
use super::numbers::format_dollars;
use super::painted::{AGENT, COST, DIM, FAILED, ID, PLAIN, PROJECT, Painted};

/// The columns of the list. The title keeps its place the longest.
const COLUMNS: &[Column] = &[
    Column::text("id").spill(),
    Column::text("last active"),
    Column::text("agent").drop_at(1),
    Column::text("project").cut_to(8),
    Column::number("turns").drop_at(4),
    Column::number("failed").drop_at(3),
    Column::number("cost").drop_at(2),
    Column::text("title").cut_to(22),
];

/// Formats sessions as a table of one line each.
pub(super) fn paint_sessions(data: &ListData, layout: &Layout) -> Painted {
    let mut table = FittedTable::new(COLUMNS);
    for session in &data.sessions {
        table.push(session_row(session, layout));
    }
    let mut painted = Painted::new();
    if !data.sessions.is_empty() {
        painted.append(&table.paint(layout.width));
    }
    for id in &data.not_found {
        painted.push(FAILED, &format!("{id}  not found"));
        painted.end_line();
    }
    painted
}

fn session_row(session: &Session, layout: &Layout) -> Vec<Cell> {
    let counts = session.with_subagents.as_ref().map(|family| family.counts).or(session.counts);
    let counts = counts.unwrap_or_default();
    let own_turns = session.counts.map_or(0, |counts| counts.turns);
    let title = match session.title.as_deref() {
        Some(title) => Cell::new(PLAIN, title),
        None => Cell::new(DIM, "(no title)"),
    };
    vec![
        Cell::new(ID, &layout.short_id(&session.session_id)),
        Cell::new(DIM, &layout.time(session.ended_at.as_deref())),
        Cell::new(AGENT, session.provider.as_str()),
        Cell::new(PROJECT, session.project.as_deref().unwrap_or("")),
        Cell::new(PLAIN, &format_nonzero(own_turns)),
        Cell::new(FAILED, &format_nonzero(counts.tool_errors)),
        Cell::new(COST, &session_cost(session).map(format_dollars).unwrap_or_default()),
        title,
    ]
}

/// Returns the cost of a session with its subagents.
fn session_cost(session: &Session) -> Option<f64> {
    all_tokens(session)?.cost_usd
}

/// Returns the tokens of a session with its subagents.
pub(super) fn all_tokens(session: &Session) -> Option<&Tokens> {
    let family = session.with_subagents.as_ref().map(|family| &family.tokens);
    family.or(session.tokens.as_ref())
}

/// Formats a count; empty if it is zero.
fn format_nonzero(count: i64) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}
