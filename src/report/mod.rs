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
use schemas::{ErrorCode, Provider, ToolError};
use serde::Serialize;

use self::session::SessionPage;
use self::spent::Spent;
use self::sums::{DayActivity, DaySpent, RecurringError, ReportSums, ToolSum};
use crate::error::store_error;
use crate::files::outfile::{self, WriteOutcome, file_error};
use crate::store::Snapshot;
use crate::tools::{Call, MAX_SUBAGENT_DEPTH, SessionSelection};

/// Everything that the page shows.
#[derive(Debug, Serialize)]
pub struct SessionsReport {
    version: &'static str,
    generated_at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<String>,
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider: Option<Provider>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    prices_as_of: String,
    totals: ReportTotals,
    days: Vec<DaySpent>,
    activity: Vec<DayActivity>,
    tools: Vec<ToolSum>,
    errors: Vec<RecurringError>,
    sessions: Vec<SessionPage>,
}

#[derive(Debug, Default, Serialize)]
struct ReportTotals {
    sessions: usize,
    subagents: usize,
    turns: usize,
    tool_calls: usize,
    tool_errors: usize,
    #[serde(flatten)]
    spent: Spent,
    unpriced_models: Vec<String>,
}

impl SessionsReport {
    /// Reads the selected sessions; with `since` and `until`, only the events of that time.
    pub fn read(
        snapshot: &Snapshot,
        selection: &SessionSelection,
        prices: &PriceTable,
        call: &Call<'_>,
    ) -> Result<Self, ToolError> {
        let range = selection.parse_range(call)?;
        let mut sums = ReportSums::new(call.zone.clone());
        let mut sessions = Vec::new();
        for at in selection.select_sessions(snapshot, call)? {
            let page = session::read_session_page(snapshot, at, range, prices, &mut sums)
                .map_err(store_error)?;
            // The usage of a log without a conversation counts, but there is nothing to show.
            if snapshot.sessions()[at].is_conversation() {
                sessions.push(page);
            }
        }

        link_sessions(&mut sessions);
        for session in sessions.iter().filter(|session| !session.is_subagent) {
            sums.add_session(session.started_at.as_deref(), session.provider);
        }
        let totals = sum_sessions(&sessions, &sums);
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            generated_at: call.now.to_string(),
            since: range.since.map(|since| since.to_string()),
            until: range.until.map(|until| until.to_string()),
            provider: selection.provider,
            project: selection.project.clone(),
            prices_as_of: prices.as_of().to_owned(),
            totals,
            days: sums.tokens_by_day(),
            activity: sums.sessions_by_day(),
            errors: sums.recurring_errors(),
            tools: sums.into_tool_sums(),
            sessions,
        })
    }

    /// Returns the number of session pages in the report.
    pub fn session_count(&self) -> usize {
        self.sessions.len()
    }

    /// Renders the page.
    pub fn render_html(&self) -> Result<String, ToolError> {
        page::render_page(self).map_err(|error| {
            ToolError::new(ErrorCode::InternalError, format!("The report cannot be made: {error}"))
        })
    }
}

/// Writes a page to a file. An earlier report there is replaced, any other file is not. Returns the
/// size of the page.
pub fn save_page(html: &str, path: &Path) -> Result<u64, ToolError> {
    let advice = "It is not a report of sessions, so it is not replaced. Name another file with -o";
    let put = outfile::write_output(
        path,
        || is_report(path),
        advice,
        |file| file.write_all(html.as_bytes()).map_err(|error| file_error(path, &error)),
    )?;
    Ok(match put {
        WriteOutcome::Written(bytes) => bytes,
        WriteOutcome::Unchanged => html.len() as u64,
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
fn link_sessions(sessions: &mut [SessionPage]) {
    let at: HashMap<String, usize> =
        sessions.iter().enumerate().map(|(at, one)| (one.session_id.clone(), at)).collect();
    let parents: Vec<Option<usize>> = sessions
        .iter()
        .map(|one| one.parent_session_id.as_ref().and_then(|parent| at.get(parent).copied()))
        .collect();

    let mut children: Vec<(usize, String)> = Vec::new();
    for (session, parent) in sessions.iter_mut().zip(&parents) {
        // A subagent whose parent is not in the report is treated as a session of its own.
        session.is_subagent &= parent.is_some();
        children.extend(parent.map(|parent| (parent, session.session_id.clone())));
    }
    for (parent, child) in children {
        if let Some(parent) = sessions.get_mut(parent) {
            parent.children.push(child);
        }
    }

    let mut costs: Vec<(usize, f64)> = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        if let Some(cost) = session.spent.cost_usd {
            costs.push((top_of_chain(at, sessions, &parents), cost));
        }
    }
    for (top, cost) in costs {
        if let Some(top) = sessions.get_mut(top) {
            *top.family_cost_usd.get_or_insert(0.0) += cost;
        }
    }
}

/// Returns the session at the top of the chain of subagents that the session `at` belongs to.
/// `parents` has the parent of each session.
fn top_of_chain(at: usize, sessions: &[SessionPage], parents: &[Option<usize>]) -> usize {
    let mut top = at;
    for _ in 1..MAX_SUBAGENT_DEPTH {
        let is_subagent = sessions.get(top).is_some_and(|session| session.is_subagent);
        match parents.get(top) {
            Some(Some(parent)) if is_subagent => top = *parent,
            _ => break,
        }
    }
    top
}

/// Sums the sessions of the report.
fn sum_sessions(sessions: &[SessionPage], sums: &ReportSums) -> ReportTotals {
    let mut totals =
        ReportTotals { unpriced_models: sums.unpriced_models(), ..ReportTotals::default() };
    for session in sessions {
        totals.sessions += usize::from(!session.is_subagent);
        totals.subagents += usize::from(session.is_subagent);
        totals.turns += session.turns;
        totals.tool_calls += session.tool_calls;
        totals.tool_errors += session.tool_errors;
    }
    for day in sums.tokens_by_day() {
        totals.spent.add(day.spent.usage, day.spent.cost_usd);
    }
    totals
}
