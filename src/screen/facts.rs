//! The facts of a session in one line.

use schemas::tool::list::{Session, Tokens};
use schemas::{Timestamp, Zone};

use super::times::format_time;
use crate::output::count_of;
use base::sanitize::{clean_text, one_line};

/// The characters of an id that tell sessions apart.
const SHORT_ID_CHARS: usize = 8;

/// Returns the beginning of an id that a command accepts.
pub(super) fn short_id(id: &str) -> &str {
    id.char_indices().nth(SHORT_ID_CHARS).map_or(id, |(at, _)| &id[..at])
}

/// Returns the tokens of a session with its subagents.
pub(super) fn all_tokens(session: &Session) -> Option<&Tokens> {
    let family = session.with_subagents.as_ref().map(|family| &family.tokens);
    family.or(session.tokens.as_ref())
}

/// Describes a session in one line: agent, project, branch, time, counts, cost and id.
pub(super) fn describe_session(session: &Session, zone: &Zone) -> String {
    let now = Timestamp::now();
    let mut facts = vec![session.provider.to_string()];
    facts.extend(session.project.clone());
    facts.extend(session.git_branch.clone());
    facts.extend(session.ended_at.as_deref().map(|time| format_time(time, zone, now)));
    if let Some(counts) = session.counts {
        facts.push(count_of(counts.turns, "turn"));
        if counts.tool_errors > 0 {
            facts.push(format!("{} failed", counts.tool_errors));
        }
    }
    let cost = all_tokens(session).and_then(|tokens| tokens.cost_usd);
    facts.extend(cost.map(|cost| format!("${cost:.2}")));
    facts.push(short_id(&session.session_id).to_owned());
    one_line(&clean_text(&facts.join(" · ")))
}
