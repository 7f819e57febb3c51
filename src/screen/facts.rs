//! The facts of a session in one line.

use ratatui::text::Line;
use schemas::tool::list::Session;
use schemas::{Timestamp, Zone};

use super::theme::Theme;
use crate::output::all_tokens;
use crate::output::conversation_blocks::Conversation;
use crate::output::painted::{DIM, STRONG};
use base::cells::truncate_end;
use base::numbers::{count_of, format_dollars};
use base::sanitize::{clean_text, one_line};

/// The characters of an id that tell sessions apart.
const SHORT_ID_CHARS: usize = 8;

/// Returns the beginning of an id that a command accepts.
pub(super) fn short_id(id: &str) -> &str {
    id.char_indices().nth(SHORT_ID_CHARS).map_or(id, |(at, _)| &id[..at])
}

/// Formats a time of a log, given as RFC 3339, for the reader's zone.
pub(super) fn format_time(time: &str, zone: &Zone) -> String {
    Timestamp::parse(time).map(|time| zone.short_time(time, Timestamp::now())).unwrap_or_default()
}

/// Returns the title of a conversation and the facts of its session, a line each.
pub(super) fn heading_lines(
    conversation: &Conversation,
    zone: &Zone,
    width: usize,
    theme: Theme,
) -> Vec<Line<'static>> {
    let facts = describe_session(&conversation.session, zone);
    vec![
        Line::styled(truncate_end(&conversation.title, width), theme.style(STRONG)),
        Line::styled(truncate_end(&facts, width), theme.style(DIM)),
    ]
}

/// Describes a session in one line: agent, project, branch, time, counts, cost and id.
fn describe_session(session: &Session, zone: &Zone) -> String {
    let mut facts = vec![session.provider.to_string()];
    facts.extend(session.project.clone());
    facts.extend(session.git_branch.clone());
    facts.extend(session.ended_at.as_deref().map(|time| format_time(time, zone)));
    if let Some(counts) = session.counts {
        facts.push(count_of(counts.turns, "turn"));
        if counts.tool_errors > 0 {
            facts.push(format!("{} failed", counts.tool_errors));
        }
    }
    let cost = all_tokens(session).and_then(|tokens| tokens.cost_usd);
    facts.extend(cost.map(format_dollars));
    facts.push(short_id(&session.session_id).to_owned());
    one_line(&clean_text(&facts.join(" · ")))
}
