//! Sums up the rows of a group.

use std::collections::BTreeSet;

use schemas::tool::stats::{Group, GroupKey, GroupTokens, Spread};
use schemas::{Usage, limits};
use serde_json::{Map, Value};

use super::fact::{CALL, Fact, RESULT, USAGE};
use super::plan::StatsPlan;
use crate::base::sanitize::clean;

/// The separator between the values of two keys, and the placeholder for a missing value.
pub(super) const NEXT: char = '\u{1f}';
pub(super) const ABSENT: char = '\u{1e}';

/// The sums over the rows of a group.
#[derive(Default)]
pub(super) struct Sums {
    /// The positions of the sessions; a position may occur more than once.
    sessions: Vec<usize>,
    events: u64,
    tool_calls: u64,
    tool_results: u64,
    tool_errors: u64,
    once: Usage,
    recorded: Usage,
    cost: Option<f64>,
    unpriced: i64,
    models: BTreeSet<String>,
    durations: Vec<u64>,
    outputs: Vec<u64>,
    text_bytes: u64,
    trend: [u64; limits::TREND_SPANS],
}

impl Sums {
    /// Adds a row.
    pub(super) fn add(&mut self, fact: &Fact<'_>) {
        if fact.event_type == USAGE {
            self.recorded = self.recorded.plus(fact.usage);
        }
        if fact.is_replay {
            return;
        }
        if self.sessions.last() != Some(&fact.session) {
            self.sessions.push(fact.session);
        }
        self.events += 1;
        self.text_bytes += fact.text_bytes;
        if let Some(part) = fact.span.and_then(|span| self.trend.get_mut(span)) {
            *part += 1;
        }
        match fact.event_type {
            CALL => self.tool_calls += 1,
            RESULT => {
                self.tool_results += 1;
                self.tool_errors += u64::from(fact.is_error == Some(true));
                self.durations.extend(fact.duration_ms.and_then(|ms| u64::try_from(ms).ok()));
                self.outputs.push(fact.text_bytes);
            }
            USAGE => {
                self.once = self.once.plus(fact.usage);
                match fact.cost {
                    Some(cost) => *self.cost.get_or_insert(0.0) += cost,
                    None => self.unpriced += fact.usage.total(),
                }
                if let Some(model) = fact.model.filter(|model| !self.models.contains(*model)) {
                    self.models.insert(model.to_owned());
                }
            }
            _ => {}
        }
    }

    /// Adds the sums over other rows.
    pub(super) fn merge(&mut self, other: Self) {
        self.sessions.extend(other.sessions);
        self.events += other.events;
        self.tool_calls += other.tool_calls;
        self.tool_results += other.tool_results;
        self.tool_errors += other.tool_errors;
        self.once = self.once.plus(other.once);
        self.recorded = self.recorded.plus(other.recorded);
        self.cost = match (self.cost, other.cost) {
            (Some(mine), Some(other)) => Some(mine + other),
            (mine, other) => mine.or(other),
        };
        self.unpriced += other.unpriced;
        self.models.extend(other.models);
        self.durations.extend(other.durations);
        self.outputs.extend(other.outputs);
        self.text_bytes += other.text_bytes;
        for (mine, other) in self.trend.iter_mut().zip(other.trend) {
            *mine += other;
        }
    }

    /// Returns true if the group contains only copied history without tokens.
    pub(super) fn is_empty(&self) -> bool {
        self.events == 0 && self.recorded.is_unknown()
    }

    /// Converts the sums to the group of an answer.
    pub(super) fn group(mut self, plan: &StatsPlan<'_>, key: &str) -> Group {
        self.sessions.sort_unstable();
        self.sessions.dedup();
        let values = key.splitn(plan.keys.len(), NEXT).zip(plan.keys);
        let group: Map<_, _> = values
            .filter(|(value, _)| !value.starts_with(ABSENT))
            .map(|(value, key)| (key.to_string(), Value::String(clean(value))))
            .collect();
        let by_session = plan.keys.contains(&GroupKey::Session);
        let session = self.sessions.first().filter(|_| by_session);
        let title = session.and_then(|at| plan.snapshot.sessions().get(*at)?.title.as_ref());
        let tokens = GroupTokens { counted_once: self.once, as_recorded: self.recorded };
        let models =
            if plan.keys.contains(&GroupKey::Model) { BTreeSet::new() } else { self.models };
        Group {
            group,
            title: title.map(|title| clean(title)),
            sessions: self.sessions.len(),
            events: self.events,
            tool_calls: self.tool_calls,
            tool_results: self.tool_results,
            tool_errors: self.tool_errors,
            error_rate: rate(self.tool_errors, self.tool_results),
            tokens: (!self.recorded.is_unknown()).then_some(tokens),
            cost_usd: self.cost.map(|cost| rounded(cost, 1e6)),
            unpriced_tokens: self.unpriced,
            models: models.iter().map(|model| clean(model)).collect(),
            duration_ms: spread(self.durations),
            output_bytes: spread(self.outputs),
            text_bytes: self.text_bytes,
            trend: plan.range.map(|_| self.trend.to_vec()).unwrap_or_default(),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate of six digits")]
fn rate(errors: u64, results: u64) -> Option<f64> {
    (results > 0).then(|| rounded(errors as f64 / results as f64, 1e6))
}

fn rounded(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

/// Computes percentiles by nearest rank, so that each is an actual value.
fn spread(mut values: Vec<u64>) -> Option<Spread> {
    values.sort_unstable();
    let rank = |percent: usize| {
        let rank = (values.len() * percent).div_ceil(100).saturating_sub(1);
        values.get(rank).copied()
    };
    Some(Spread { p50: rank(50)?, p95: rank(95)?, total: values.iter().sum() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_values_that_are_there() {
        assert_eq!(spread(Vec::new()), None);
        assert_eq!(spread(vec![7]), Some(Spread { p50: 7, p95: 7, total: 7 }));
        let hundred = spread((1..=100).rev().collect());
        assert_eq!(hundred, Some(Spread { p50: 50, p95: 95, total: 5050 }));
        assert_eq!(spread(vec![1, 2]), Some(Spread { p50: 1, p95: 2, total: 3 }));
    }
}
