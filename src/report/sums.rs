//! Sums over all sessions of a report: by day, by tool, by error.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::session::EventRow;
use schemas::{EventId, Provider, Timestamp, Zone};
use serde::Serialize;

use super::spent::Spent;
use crate::base::sanitize::clean_text;

/// Maximum number of errors shown.
const MAX_ERRORS: usize = 100;

/// The tokens of a model on a day.
#[derive(Debug, Serialize)]
pub(super) struct DaySpent {
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    model: String,
    #[serde(flatten)]
    pub(super) spent: Spent,
}

/// The number of sessions of an agent that began on a day.
#[derive(Debug, Serialize)]
pub(super) struct DayActivity {
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    provider: String,
    sessions: usize,
}

/// The calls, errors and durations of a tool.
#[derive(Debug, Serialize)]
pub(super) struct ToolSum {
    tool_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_kind: Option<String>,
    calls: usize,
    errors: usize,
    sessions: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_p50_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_p95_ms: Option<i64>,
}

/// An error that occurred more than once.
#[derive(Debug, Serialize)]
pub(super) struct RecurringError {
    signature: String,
    count: usize,
    sessions: usize,
    tools: BTreeSet<String>,
    last_session_id: String,
    last_event_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_timestamp: Option<String>,
}

#[derive(Default)]
struct ToolTally {
    kind: Option<String>,
    calls: usize,
    errors: usize,
    sessions: BTreeSet<String>,
    durations: Vec<i64>,
}

#[derive(Default)]
struct ErrorTally {
    count: usize,
    sessions: BTreeSet<String>,
    tools: BTreeSet<String>,
    /// The latest failure.
    last: FailedEvent,
}

/// An event that failed. Later ones are greater.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct FailedEvent {
    time: Option<i64>,
    session: String,
    index: u32,
}

/// The sums over all sessions of a report.
pub(super) struct ReportSums {
    /// The zone of the days.
    zone: Zone,
    /// By day and model.
    spent: BTreeMap<(Option<String>, String), Spent>,
    /// The number of sessions that began, by day and agent.
    began: BTreeMap<(Option<String>, String), usize>,
    /// By name.
    tools: HashMap<String, ToolTally>,
    /// By signature.
    failures: HashMap<String, ErrorTally>,
    /// The models that used tokens and have no price.
    unpriced: BTreeSet<String>,
}

impl ReportSums {
    /// Creates empty sums, with days of `zone`.
    pub(super) fn new(zone: Zone) -> Self {
        Self {
            zone,
            spent: BTreeMap::new(),
            began: BTreeMap::new(),
            tools: HashMap::new(),
            failures: HashMap::new(),
            unpriced: BTreeSet::new(),
        }
    }

    /// Adds the tokens of an event.
    pub(super) fn add_tokens(&mut self, event: &EventRow, model: &str, cost: Option<f64>) {
        let date = event.timestamp.and_then(|time| self.zone.day(Timestamp(time)));
        let usage = event.usage();
        self.spent.entry((date, model.to_owned())).or_default().add(usage, cost);
        if cost.is_none() && usage.total() > 0 {
            self.unpriced.insert(model.to_owned());
        }
    }

    /// Adds a session to the day on which it began.
    pub(super) fn add_session(&mut self, started_at: Option<&str>, provider: Provider) {
        let date = started_at.and_then(Timestamp::parse).and_then(|time| self.zone.day(time));
        *self.began.entry((date, provider.to_string())).or_default() += 1;
    }

    /// Adds a call of a tool.
    pub(super) fn add_call(&mut self, session: &str, tool: &str, event: &EventRow) {
        let sum = self.tools.entry(tool.to_owned()).or_default();
        sum.calls += 1;
        if !sum.sessions.contains(session) {
            sum.sessions.insert(session.to_owned());
        }
        if sum.kind.is_none() {
            sum.kind.clone_from(&event.tool_kind);
        }
    }

    /// Adds the result of a tool call.
    pub(super) fn add_result(&mut self, tool: &str, event: &EventRow) {
        let sum = self.tools.entry(tool.to_owned()).or_default();
        sum.errors += usize::from(event.is_error == Some(true));
        sum.durations.extend(event.duration_ms);
    }

    /// Adds a failed call to the failures with the same signature.
    pub(super) fn add_failure(
        &mut self,
        session: &str,
        tool: &str,
        event: &EventRow,
        signature: String,
    ) {
        let failure = self.failures.entry(signature).or_default();
        failure.count += 1;
        failure.sessions.insert(session.to_owned());
        failure.tools.insert(tool.to_owned());
        let this = FailedEvent {
            time: event.timestamp,
            session: session.to_owned(),
            index: u32::try_from(event.event_index).unwrap_or(0),
        };
        if this >= failure.last {
            failure.last = this;
        }
    }

    /// Returns the tokens by day and model, oldest first.
    pub(super) fn tokens_by_day(&self) -> Vec<DaySpent> {
        let mut days = Vec::new();
        for ((date, model), spent) in &self.spent {
            days.push(DaySpent { date: date.clone(), model: model.clone(), spent: *spent });
        }
        days
    }

    /// Returns the sessions by day and agent, oldest first.
    pub(super) fn sessions_by_day(&self) -> Vec<DayActivity> {
        let mut days = Vec::new();
        for ((date, provider), sessions) in &self.began {
            days.push(DayActivity {
                date: date.clone(),
                provider: provider.clone(),
                sessions: *sessions,
            });
        }
        days
    }

    /// Returns the tools, the most used first.
    pub(super) fn into_tool_sums(self) -> Vec<ToolSum> {
        let mut tools = Vec::new();
        for (tool_name, mut tool) in self.tools {
            tool.durations.sort_unstable();
            tools.push(ToolSum {
                tool_name,
                tool_kind: tool.kind,
                calls: tool.calls,
                errors: tool.errors,
                sessions: tool.sessions.len(),
                duration_p50_ms: percentile(&tool.durations, 50),
                duration_p95_ms: percentile(&tool.durations, 95),
            });
        }
        tools.sort_by(|a, b| (b.calls, &a.tool_name).cmp(&(a.calls, &b.tool_name)));
        tools
    }

    /// Returns the errors that occurred more than once, the most frequent first.
    pub(super) fn recurring_errors(&self) -> Vec<RecurringError> {
        let mut errors = Vec::new();
        for (signature, failure) in &self.failures {
            if failure.count < 2 {
                continue;
            }
            let last = &failure.last;
            errors.push(RecurringError {
                signature: signature.clone(),
                count: failure.count,
                sessions: failure.sessions.len(),
                tools: failure.tools.clone(),
                last_session_id: last.session.clone(),
                last_event_id: EventId::format(&last.session, last.index),
                last_timestamp: last.time.map(|time| Timestamp(time).to_string()),
            });
        }
        errors.sort_by(|a, b| (b.count, &a.signature).cmp(&(a.count, &b.signature)));
        errors.truncate(MAX_ERRORS);
        errors
    }

    /// Returns the models that used tokens and have no price.
    pub(super) fn unpriced_models(&self) -> Vec<String> {
        self.unpriced.iter().cloned().collect()
    }
}

/// Returns the name of a tool or model for display.
pub(super) fn display_name(name: Option<&String>) -> String {
    name.map_or_else(|| "unknown".to_owned(), |name| clean_text(name))
}

/// Returns the value that `percent` percent of the values do not exceed (nearest rank). `sorted` is
/// in ascending order.
fn percentile(sorted: &[i64], percent: usize) -> Option<i64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_occur() {
        assert_eq!(percentile(&[], 50), None);
        assert_eq!(percentile(&[7], 95), Some(7));
        let hundred: Vec<i64> = (1..=100).collect();
        assert_eq!((percentile(&hundred, 50), percentile(&hundred, 95)), (Some(50), Some(95)));
        assert_eq!(percentile(&[1, 2, 3], 50), Some(2));
    }

    fn event(event_index: i32, timestamp: Option<i64>) -> EventRow {
        EventRow { event_index, timestamp, ..EventRow::default() }
    }

    #[test]
    fn what_happens_once_does_not_recur() {
        let mut sums = ReportSums::new(Zone::UTC);
        sums.add_failure("a", "Bash", &event(3, Some(9)), "E: <n>".into());
        sums.add_failure("b", "Bash", &event(5, Some(7)), "E: <n>".into());
        sums.add_failure("b", "Edit", &event(6, None), "other".into());
        let errors = sums.recurring_errors();
        assert_eq!(errors.len(), 1);
        assert_eq!((errors[0].count, errors[0].sessions), (2, 2));
        assert_eq!(errors[0].last_event_id, "a:3", "the later one");
    }
}
