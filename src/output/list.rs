//! Formats sessions: a table with a line for each on a screen, and everything about each in a pipe or
//! where the user wants it.

use schemas::event::TimeSource;
use schemas::tool::list::{Counts, ListData, Session, Tokens};
use schemas::{Confidence, Usage};

use super::columns::{Cell, Column, FittedTable};
use super::layout::Layout;
use super::painted::{AGENT, COST, DIM, FAILED, ID, PLAIN, PROJECT, Painted, STRONG};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::cells::{text_width, truncate_end};
use base::numbers::{count_of, format_dollars};
use base::sanitize::{clean_text, one_line};

/// The cells before the lines about a session.
const INDENT: &str = "  ";

/// Most cells of the name of a project.
const MAX_PROJECT_WIDTH: usize = 20;

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

impl Show for ListData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        if layout.is_plain {
            for session in &self.sessions {
                push_session(&mut painted, session, layout);
            }
        } else if !self.sessions.is_empty() {
            let mut table = FittedTable::new(COLUMNS);
            for session in &self.sessions {
                table.push(session_row(session, layout));
            }
            painted.append(&table.paint(layout.width));
        }
        push_not_found(&mut painted, &self.not_found);
        painted
    }
}

/// Appends the ids that nothing has.
pub(super) fn push_not_found(painted: &mut Painted, ids: &[String]) {
    for id in ids {
        painted.push_inline(FAILED, &format!("{id}  not found"));
        painted.end_line();
    }
}

fn session_row(session: &Session, layout: &Layout) -> Vec<Cell> {
    let counts = session.with_subagents.as_ref().map(|family| family.counts).or(session.counts);
    let counts = counts.unwrap_or_default();
    let own_turns = session.counts.map_or(0, |counts| counts.turns);
    let title = match session.title.as_deref() {
        Some(title) => Cell::new(PLAIN, title),
        None => Cell::new(DIM, "(no title)"),
    };
    let cost = all_tokens(session).and_then(|tokens| tokens.cost_usd);
    vec![
        Cell::new(ID, &layout.session_id(&session.session_id)),
        Cell::new(DIM, &layout.time(session.ended_at.as_deref())),
        Cell::new(AGENT, session.provider.as_str()),
        Cell::new(PROJECT, session.project.as_deref().unwrap_or("")),
        Cell::new(PLAIN, &format_nonzero(own_turns)),
        Cell::new(FAILED, &format_nonzero(counts.tool_errors)),
        Cell::new(COST, &cost.map(format_dollars).unwrap_or_default()),
        title,
    ]
}

/// Returns the tokens of a session with its subagents.
pub(crate) fn all_tokens(session: &Session) -> Option<&Tokens> {
    let family = session.with_subagents.as_ref().map(|family| &family.tokens);
    family.or(session.tokens.as_ref())
}

/// Formats a count; empty if it is zero.
fn format_nonzero(count: i64) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

/// What the line of a session shows.
pub(super) struct SessionLine<'s> {
    pub(super) id: &'s str,
    /// The time as it is shown.
    pub(super) time: &'s str,
    pub(super) agent: &'s str,
    pub(super) project: Option<&'s str>,
}

impl SessionLine<'_> {
    /// Appends the line without its end, and returns its cells.
    pub(super) fn push_to(&self, painted: &mut Painted, layout: &Layout) -> usize {
        let project = one_line(self.project.unwrap_or_default());
        let project = truncate_end(&project, layout.limit(MAX_PROJECT_WIDTH));
        let id = layout.session_id(self.id);
        let mut cells = 0;
        for (style, text) in
            [(ID, &*id), (DIM, self.time), (AGENT, self.agent), (PROJECT, &project)]
        {
            let gap = if cells == 0 || text.is_empty() { "" } else { "  " };
            painted.push(PLAIN, gap).push_inline(style, text);
            cells += gap.len() + text_width(text);
        }
        cells
    }
}

/// Appends the title of a session on a line of its own, if it has one.
pub(super) fn push_title(painted: &mut Painted, title: Option<&str>, layout: &Layout) {
    if let Some(title) = title {
        let width = layout.width.saturating_sub(INDENT.len());
        painted.push(PLAIN, INDENT).push_inline(STRONG, &truncate_end(&one_line(title), width));
        painted.end_line();
    }
}

/// Appends everything about a session: its line, its title, and its facts.
pub(super) fn push_session(painted: &mut Painted, session: &Session, layout: &Layout) {
    let line = SessionLine {
        id: &session.session_id,
        time: &layout.time(session.ended_at.as_deref()),
        agent: session.provider.as_str(),
        project: session.project.as_deref(),
    };
    line.push_to(painted, layout);
    painted.end_line();
    push_title(painted, session.title.as_deref(), layout);
    for fact in collect_facts(session, layout) {
        push_wrapped(painted, PLAIN, INDENT, &clean_text(&fact), layout.width, usize::MAX);
    }
}

/// Returns the facts about a session, one for each line.
fn collect_facts(session: &Session, layout: &Layout) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(counts) = session.counts {
        let events = count_of(counts.events, "event");
        let turns = count_of(counts.turns, "turn");
        let branch = session.git_branch.as_ref().map(|branch| format!(", branch {branch}"));
        let calls = describe_calls(&counts);
        facts.push(format!("{events}, {turns}, {calls}{}", branch.unwrap_or_default()));
    }
    facts.extend(session.tokens.as_ref().map(|tokens| describe_tokens(tokens, layout)));
    if let Some(family) = &session.with_subagents {
        let subagents = count_of(family.subagents, "subagent");
        let calls = describe_calls(&family.counts);
        let tokens = describe_tokens(&family.tokens, layout);
        facts.push(format!("with {subagents}: {calls}; {tokens}"));
    }
    if !session.labels.is_empty() {
        facts.push(format!("labels: {}", session.labels.join(", ")));
    }
    facts.extend(session.note.as_ref().map(|note| format!("note: {note}")));
    if let Some((relation, parent)) = session.relation.zip(session.parent_session_id.as_ref()) {
        let relation = relation.as_str().replace('_', " ");
        facts.push(format!("{relation} {}", layout.session_id(parent)));
    }
    if session.time_source == Some(TimeSource::File) {
        facts.push("no record has a time, so the times are those of the file".to_owned());
    }
    if session.machine.is_some() || session.user_name.is_some() {
        let machine = session.machine.as_deref().unwrap_or("this machine");
        let user = session.user_name.as_deref().unwrap_or("this user");
        facts.push(format!("its log is on {machine}, of {user}"));
    } else if session.source_gone {
        facts.push("its log is gone".to_owned());
    }
    facts
}

fn describe_calls(counts: &Counts) -> String {
    let calls = count_of(counts.tool_calls, "call");
    if counts.tool_errors == 0 { calls } else { format!("{calls}, {} failed", counts.tool_errors) }
}

/// Describes the tokens of a session, their cost, and how far both can be trusted.
fn describe_tokens(tokens: &Tokens, layout: &Layout) -> String {
    let mut parts = Vec::new();
    parts.extend(tokens.cost_usd.map(|cost| format!("cost: {}", format_dollars(cost))));
    parts.extend(
        tokens.cost_as_logged.map(|cost| format!("cost as logged: {}", format_dollars(cost))),
    );
    parts.push(format!("tokens: {}", describe_usage(tokens.counted_once, layout)));
    if let Some(recorded) = tokens.as_recorded {
        let total = layout.short_count(recorded.total());
        parts.push(format!("{total} as recorded, including copied history"));
    }
    if !tokens.unpriced_models.is_empty() {
        parts.push(format!("no price is known for {}", tokens.unpriced_models.join(", ")));
    }
    let text = parts.join("; ");
    if tokens.confidence == Confidence::Measured {
        return text;
    }
    format!("{text} ({})", tokens.confidence)
}

/// Describes the tokens that were counted.
pub(super) fn describe_usage(usage: Usage, layout: &Layout) -> String {
    let counts = [
        ("input", usage.input),
        ("output", usage.output),
        ("cache read", usage.cache_read),
        ("cache write", usage.cache_write),
    ];
    let mut parts = Vec::new();
    for (name, count) in counts {
        parts.extend(count.map(|count| format!("{name} {}", layout.short_count(count))));
    }
    if parts.is_empty() { "none of its own".to_owned() } else { parts.join(", ") }
}
