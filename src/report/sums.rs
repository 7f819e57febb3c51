//! Sums over all sessions of a report: by day, by tool, by error.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use schemas::session::EventRow;
use schemas::{EventId, Provider, Timestamp};
use serde::Serialize;

use super::spent::Spent;
use crate::base::sanitize::clean;

/// Maximum number of errors shown.
const ERRORS: usize = 100;

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
pub(super) struct Recurring {
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
struct Tool {
    kind: Option<String>,
    calls: usize,
    errors: usize,
    sessions: BTreeSet<String>,
    durations: Vec<i64>,
}

#[derive(Default)]
struct Failure {
    count: usize,
    sessions: BTreeSet<String>,
    tools: BTreeSet<String>,
    /// The time, the session and the event index of the latest failure.
    last: (Option<i64>, String, u32),
}

#[derive(Default)]
pub(super) struct Sums {
    spent: BTreeMap<(Option<String>, String), Spent>,
    began: BTreeMap<(Option<String>, String), usize>,
    tools: HashMap<String, Tool>,
    failures: HashMap<String, Failure>,
    unpriced: BTreeSet<String>,
}

impl Sums {
    /// Adds the tokens of an event.
    pub(super) fn spend(&mut self, event: &EventRow, model: &str, cost: Option<f64>) {
        let date = event.timestamp.map(|time| date(&Timestamp(time).to_string()));
        let usage = event.usage();
        self.spent.entry((date, model.to_owned())).or_default().add(usage, cost);
        if cost.is_none() && usage.total() > 0 {
            self.unpriced.insert(model.to_owned());
        }
    }

    /// Adds a session to the day on which it began.
    pub(super) fn began(&mut self, started_at: Option<&str>, provider: Provider) {
        *self.began.entry((started_at.map(date), provider.to_string())).or_default() += 1;
    }

    /// Adds a call of a tool.
    pub(super) fn called(&mut self, session: &str, tool: &str, event: &EventRow) {
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
    pub(super) fn answered(&mut self, tool: &str, event: &EventRow) {
        let sum = self.tools.entry(tool.to_owned()).or_default();
        sum.errors += usize::from(event.is_error == Some(true));
        sum.durations.extend(event.duration_ms);
    }

    /// Adds a failed call to the failures with the same signature.
    pub(super) fn failed(
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
        let index = u32::try_from(event.event_index).unwrap_or(0);
        let this = (event.timestamp, session.to_owned(), index);
        if this >= failure.last {
            failure.last = this;
        }
    }

    /// Returns the tokens by day and model, oldest first.
    pub(super) fn days(&self) -> Vec<DaySpent> {
        let day = |((date, model), spent): (&(Option<String>, String), &Spent)| DaySpent {
            date: date.clone(),
            model: model.clone(),
            spent: *spent,
        };
        self.spent.iter().map(day).collect()
    }

    /// Returns the sessions by day and agent, oldest first.
    pub(super) fn activity(&self) -> Vec<DayActivity> {
        let day = |((date, provider), sessions): (&(Option<String>, String), &usize)| DayActivity {
            date: date.clone(),
            provider: provider.clone(),
            sessions: *sessions,
        };
        self.began.iter().map(day).collect()
    }

    /// Returns the tools, the most used first.
    pub(super) fn tools(self) -> Vec<ToolSum> {
        let tool = |(tool_name, mut tool): (String, Tool)| {
            tool.durations.sort_unstable();
            ToolSum {
                tool_name,
                tool_kind: tool.kind,
                calls: tool.calls,
                errors: tool.errors,
                sessions: tool.sessions.len(),
                duration_p50_ms: percentile(&tool.durations, 50),
                duration_p95_ms: percentile(&tool.durations, 95),
            }
        };
        let mut tools: Vec<_> = self.tools.into_iter().map(tool).collect();
        tools.sort_by(|a, b| (b.calls, &a.tool_name).cmp(&(a.calls, &b.tool_name)));
        tools
    }

    /// Returns the errors that occurred more than once, the most frequent first.
    pub(super) fn recurring(&self) -> Vec<Recurring> {
        let error = |(signature, failure): (&String, &Failure)| {
            let (time, session, index) = &failure.last;
            Recurring {
                signature: signature.clone(),
                count: failure.count,
                sessions: failure.sessions.len(),
                tools: failure.tools.clone(),
                last_session_id: session.clone(),
                last_event_id: EventId::format(session, *index),
                last_timestamp: time.map(|time| Timestamp(time).to_string()),
            }
        };
        let often = self.failures.iter().filter(|(_, failure)| failure.count > 1);
        let mut errors: Vec<_> = often.map(error).collect();
        errors.sort_by(|a, b| (b.count, &a.signature).cmp(&(a.count, &b.signature)));
        errors.truncate(ERRORS);
        errors
    }

    /// Returns the models that used tokens and have no price.
    pub(super) fn unpriced(&self) -> Vec<String> {
        self.unpriced.iter().cloned().collect()
    }
}

/// Returns the name of a tool or model for display.
pub(super) fn shown(name: Option<&String>) -> String {
    name.map_or_else(|| "unknown".to_owned(), |name| clean(name))
}

/// Returns the day of a time in RFC 3339.
fn date(time: &str) -> String {
    time.split('T').next().unwrap_or(time).to_owned()
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

    #[test]
    fn what_happens_once_does_not_recur() {
        let mut sums = Sums::default();
        let event =
            |event_index, timestamp| EventRow { event_index, timestamp, ..EventRow::default() };
        sums.failed("a", "Bash", &event(3, Some(9)), "E: <n>".into());
        sums.failed("b", "Bash", &event(5, Some(7)), "E: <n>".into());
        sums.failed("b", "Edit", &event(6, None), "other".into());
        let errors = sums.recurring();
        assert_eq!(errors.len(), 1);
        assert_eq!((errors[0].count, errors[0].sessions), (2, 2));
        assert_eq!(errors[0].last_event_id, "a:3", "the later one");
    }
}
