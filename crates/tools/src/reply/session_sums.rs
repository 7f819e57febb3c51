//! Computes the sums of a session, and of a session with its subagents.

use std::collections::{HashMap, HashSet};

use schemas::price::PriceTable;
use schemas::session::{SessionRow, sum_costs};
use schemas::tool::list::{Counts, Family, Tokens};
use schemas::{Confidence, Usage};

use base::sanitize::clean_text;
use store::{StoreError, StoredSession};

/// Maximum depth of a chain of subagents that is followed, because logs can name each other in a
/// cycle.
pub const MAX_SUBAGENT_DEPTH: usize = 16;

/// Returns the counts of a session.
pub fn session_counts(row: &SessionRow) -> Counts {
    Counts {
        events: row.events,
        turns: row.turns,
        steps: row.steps,
        tool_calls: row.tool_calls,
        tool_errors: row.tool_errors,
        replay_events: row.replay_events,
    }
}

/// Returns a session's tokens; `None` if its log does not record any.
pub fn session_tokens(row: &SessionRow, prices: &PriceTable) -> Option<Tokens> {
    if row.recorded_usage().is_unknown() {
        return None;
    }
    Some(sum_tokens(std::slice::from_ref(&row), prices))
}

/// Sums up the tokens of sessions, and their cost.
fn sum_tokens(rows: &[&SessionRow], prices: &PriceTable) -> Tokens {
    let mut tokens = Tokens { confidence: Confidence::Measured, ..Tokens::default() };
    let mut recorded = Usage::default();
    let mut costs = Vec::new();
    let mut logged = Vec::new();
    for row in rows {
        tokens.counted_once = tokens.counted_once.plus(row.usage());
        recorded = recorded.plus(row.recorded_usage());
        // A subagent that never got an answer does not lower the confidence of the sum.
        let confidence = row.usage_confidence.as_ref().and_then(|name| name.parse().ok());
        let confidence = confidence.unwrap_or_default();
        let is_unanswered = row.steps == 0 && confidence == Confidence::Unknown;
        if !is_unanswered {
            tokens.confidence = tokens.confidence.max(confidence);
        }
        for entry in row.model_usage() {
            let cost = entry.cost(prices);
            let unpriced = cost.is_none().then(|| clean_text(&entry.name()));
            if let Some(name) = unpriced.filter(|name| !tokens.unpriced_models.contains(name)) {
                tokens.unpriced_models.push(name);
            }
            costs.push(cost);
            logged.push(entry.cost_as_logged);
        }
    }
    tokens.as_recorded = (recorded != tokens.counted_once).then_some(recorded);
    tokens.cost_usd = sum_costs(costs);
    tokens.cost_as_logged = sum_costs(logged);
    tokens
}

/// Maps each session to its subagents.
pub struct SubagentIndex<'s> {
    children: HashMap<&'s str, Vec<&'s StoredSession>>,
}

impl<'s> SubagentIndex<'s> {
    pub fn from_sessions(sessions: &'s [StoredSession]) -> Self {
        let mut children: HashMap<&str, Vec<&StoredSession>> = HashMap::new();
        for session in sessions.iter().filter(|session| session.is_subagent) {
            if let Some(parent) = &session.parent_session_id {
                children.entry(parent).or_default().push(session);
            }
        }
        Self { children }
    }

    /// Returns the sums over a session and its subagents; `None` if it has no subagents.
    pub fn sum_with_subagents(
        &self,
        session: &'s StoredSession,
        prices: &PriceTable,
    ) -> Result<Option<Family>, StoreError> {
        let mut members = vec![session];
        // Logs can name each other in a cycle.
        let mut seen = HashSet::from([session.id()]);
        let mut next = 0;
        while let Some(member) = members.get(next) {
            let children = self.children.get(member.id()).into_iter().flatten();
            members
                .extend(children.filter(|child| child.is_conversation && seen.insert(child.id())));
            next += 1;
        }
        if members.len() == 1 {
            return Ok(None);
        }

        let rows: Vec<&SessionRow> =
            members.iter().map(|member| Ok(&**member.row()?)).collect::<Result<_, StoreError>>()?;
        let mut counts = Counts::default();
        for member in rows.iter().map(|row| self::session_counts(row)) {
            counts.events += member.events;
            counts.turns += member.turns;
            counts.steps += member.steps;
            counts.tool_calls += member.tool_calls;
            counts.tool_errors += member.tool_errors;
            counts.replay_events += member.replay_events;
        }
        let tokens = sum_tokens(&rows, prices);
        Ok(Some(Family { subagents: rows.len() - 1, counts, tokens }))
    }
}
