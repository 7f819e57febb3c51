//! `sessions report`: the sums over the sessions of a store, as one HTML file with charts and a
//! page for every session.
//!
//! This module computes the numbers; `assets/report.js` draws them in the browser with Chart.js.
//! Text from logs reaches the page as JSON data and is shown as text only.

mod page;
mod read;
mod session;
mod spent;
mod sums;

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::path::Path;

use schemas::price::PriceTable;
use schemas::{ErrorCode, Provider, Timestamp, ToolError};
use serde::Serialize;

use self::session::SessionPage;
use self::spent::Spent;
use self::sums::{DayActivity, DaySpent, Recurring, Sums, ToolSum};
use crate::error::store_error;
use crate::files::outfile::{self, Put, file_error};
use crate::store::Snapshot;
use crate::tools::{MAX_SUBAGENT_DEPTH, Selection};

/// Everything that the page shows.
#[derive(Debug, Serialize)]
pub struct Report {
    version: &'static str,
    generated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Provider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    prices_as_of: String,
    totals: Totals,
    days: Vec<DaySpent>,
    activity: Vec<DayActivity>,
    tools: Vec<ToolSum>,
    errors: Vec<Recurring>,
    sessions: Vec<SessionPage>,
}

#[derive(Debug, Default, Serialize)]
struct Totals {
    sessions: usize,
    subagents: usize,
    turns: usize,
    tool_calls: usize,
    tool_errors: usize,
    #[serde(flatten)]
    spent: Spent,
    unpriced_models: Vec<String>,
}

impl Report {
    /// Reads the selected sessions; with `since`, only the events from then on.
    pub fn read(
        snapshot: &Snapshot,
        selection: &Selection,
        prices: &PriceTable,
        now: Timestamp,
    ) -> Result<Self, ToolError> {
        let since = selection.since(now)?;
        let chosen = selection.sessions(snapshot, now)?;
        let mut sums = Sums::default();
        let mut sessions = Vec::new();
        for at in chosen {
            let page =
                session::page(snapshot, at, since, prices, &mut sums).map_err(store_error)?;
            // The usage of a log without a conversation counts, but there is nothing to show.
            if snapshot.sessions()[at].is_conversation() {
                sessions.push(page);
            }
        }
        join(&mut sessions);
        for session in sessions.iter().filter(|session| !session.is_subagent) {
            sums.began(session.started_at.as_deref(), session.provider);
        }
        let totals = totals(&sessions, &sums);
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            generated_at: now.to_string(),
            since: since.map(|since| since.to_string()),
            provider: selection.provider,
            project: selection.project.clone(),
            prices_as_of: prices.as_of().to_owned(),
            totals,
            days: sums.days(),
            activity: sums.activity(),
            errors: sums.recurring(),
            tools: sums.tools(),
            sessions,
        })
    }

    /// Returns the number of session pages in the report.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Renders the page.
    pub fn html(&self) -> Result<String, ToolError> {
        page::html(self).map_err(|error| {
            ToolError::new(ErrorCode::InternalError, format!("The report cannot be made: {error}"))
        })
    }
}

/// Writes a page to a file. An earlier report there is replaced, any other file is not. Returns the
/// size of the page.
pub fn save(html: &str, path: &Path) -> Result<u64, ToolError> {
    let advice = "It is no report of sessions, so it stays. Name another file with -o";
    let put = outfile::put(
        path,
        || is_report(path),
        advice,
        |file| file.write_all(html.as_bytes()).map_err(|error| file_error(path, &error)),
    )?;
    Ok(match put {
        Put::Written(bytes) => bytes,
        Put::Unchanged => html.len() as u64,
    })
}

/// Returns true if the file begins as reports do.
fn is_report(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = outfile::open_regular(path).and_then(|file| file.take(2048).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).contains(page::GENERATOR)
}

/// Links sessions to their children, and adds the cost of subagents to the session at the top of
/// their chain.
fn join(sessions: &mut [SessionPage]) {
    let at: HashMap<String, usize> =
        sessions.iter().enumerate().map(|(at, one)| (one.session_id.clone(), at)).collect();
    let parents: Vec<Option<usize>> = sessions
        .iter()
        .map(|one| one.parent_session_id.as_ref().and_then(|parent| at.get(parent).copied()))
        .collect();
    let mut children: Vec<(usize, String)> = Vec::new();
    let mut costs: Vec<(usize, f64)> = Vec::new();
    for (session, parent) in sessions.iter_mut().zip(&parents) {
        // A subagent whose parent is not in the report is treated as a session of its own.
        session.is_subagent &= parent.is_some();
        children.extend(parent.map(|parent| (parent, session.session_id.clone())));
    }
    for (at, session) in sessions.iter().enumerate() {
        let Some(cost) = session.spent.cost_usd else { continue };
        let up = |from: &usize| {
            let inside = sessions.get(*from).is_some_and(|session| session.is_subagent);
            parents.get(*from).copied().flatten().filter(|_| inside)
        };
        let root = std::iter::successors(Some(at), up).take(MAX_SUBAGENT_DEPTH).last();
        costs.extend(root.map(|root| (root, cost)));
    }
    for (parent, child) in children {
        if let Some(parent) = sessions.get_mut(parent) {
            parent.children.push(child);
        }
    }
    for (root, cost) in costs {
        if let Some(root) = sessions.get_mut(root) {
            *root.family_cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

fn totals(sessions: &[SessionPage], sums: &Sums) -> Totals {
    let mut totals = Totals { unpriced_models: sums.unpriced(), ..Totals::default() };
    for session in sessions {
        totals.sessions += usize::from(!session.is_subagent);
        totals.subagents += usize::from(session.is_subagent);
        totals.turns += session.turns;
        totals.tool_calls += session.tool_calls;
        totals.tool_errors += session.tool_errors;
    }
    for day in sums.days() {
        totals.spent.add(day.spent.usage, day.spent.cost_usd);
    }
    totals
}
