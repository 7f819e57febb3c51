//! Sums up the rows of a group.

use std::collections::BTreeSet;

use schemas::tool::stats::{Group, GroupKey, GroupTokens, Spread};
use schemas::{Usage, limits};
use serde_json::{Map, Value};

use super::fact::{CALL, RESULT, StatsFact, USAGE};
use super::plan::StatsPlan;
use crate::reply::convert::clean_title;
use base::model_name::shown_model;
use base::sanitize::clean_text;

/// The separator between the values of two keys.
pub(super) const KEY_SEPARATOR: char = '\u{1f}';

/// The placeholder for a key without a value.
pub(super) const MISSING_VALUE: char = '\u{1e}';

/// The sums over the rows of a group.
#[derive(Default)]
pub(super) struct GroupSums {
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
    /// How often each spelling of the tool's name occurs; empty unless groups are by tool.
    spellings: Vec<(String, u64)>,
    durations: Vec<u64>,
    outputs: Vec<u64>,
    text_bytes: u64,
    trend: [u64; limits::TREND_SPANS],
}

impl GroupSums {
    /// Adds a row.
    pub(super) fn add_row(&mut self, fact: &StatsFact<'_>) {
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
        if let Some(name) = fact.tool_name {
            self.add_spelling(name, 1);
        }
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
                let model = fact.model.map(shown_model);
                if let Some(model) = model.filter(|model| !self.models.contains(model.as_ref())) {
                    self.models.insert(model.into_owned());
                }
            }
            _ => {}
        }
    }

    /// Counts a spelling of the tool's name.
    fn add_spelling(&mut self, name: &str, count: u64) {
        match self.spellings.iter_mut().find(|(known, _)| known == name) {
            Some((_, times)) => *times += count,
            None => self.spellings.push((name.to_owned(), count)),
        }
    }

    /// Returns the most frequent spelling of the tool's name; of several, the first in the order of
    /// text.
    fn tool_spelling(&self) -> Option<&str> {
        let spellings = self.spellings.iter();
        let most = spellings.max_by(|(a, x), (b, y)| x.cmp(y).then_with(|| b.cmp(a)))?;
        Some(&most.0)
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
        for (name, count) in other.spellings {
            self.add_spelling(&name, count);
        }
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
    pub(super) fn into_group(mut self, plan: &StatsPlan<'_>, key: &str) -> Group {
        self.sessions.sort_unstable();
        self.sessions.dedup();
        let values = key.splitn(plan.keys.len(), KEY_SEPARATOR).zip(plan.keys);
        let group: Map<_, _> = values
            .filter(|(value, _)| !value.starts_with(MISSING_VALUE))
            .map(|(value, key)| {
                let spelling = if *key == GroupKey::Tool { self.tool_spelling() } else { None };
                (key.to_string(), Value::String(clean_text(spelling.unwrap_or(value))))
            })
            .collect();

        let mut title = None;
        if plan.keys.contains(&GroupKey::Session)
            && let Some(at) = self.sessions.first()
        {
            title = plan.snapshot.sessions().get(*at).and_then(|row| row.title.as_deref());
        }
        let tokens = GroupTokens {
            counted_once: self.once,
            as_recorded: (self.recorded != self.once).then_some(self.recorded),
        };
        let models =
            if plan.keys.contains(&GroupKey::Model) { BTreeSet::new() } else { self.models };
        Group {
            group,
            title: title.map(clean_title),
            sessions: self.sessions.len(),
            events: self.events,
            tool_calls: self.tool_calls,
            tool_results: self.tool_results,
            tool_errors: self.tool_errors,
            error_rate: error_rate(self.tool_errors, self.tool_results),
            tokens: (!self.recorded.is_unknown()).then_some(tokens),
            cost_usd: self.cost.map(|cost| round_to(cost, 1e6)),
            unpriced_tokens: self.unpriced,
            models: models.iter().map(|model| clean_text(model)).collect(),
            duration_ms: compute_spread(self.durations),
            output_bytes: compute_spread(self.outputs),
            text_bytes: self.text_bytes,
            trend: if plan.range.is_some() { self.trend.to_vec() } else { Vec::new() },
        }
    }
}

/// Returns the share of results that are errors; `None` without results.
#[expect(clippy::cast_precision_loss, reason = "a rate of six digits")]
fn error_rate(errors: u64, results: u64) -> Option<f64> {
    (results > 0).then(|| round_to(errors as f64 / results as f64, 1e6))
}

/// Rounds a number to a fraction of 1/`parts`.
fn round_to(number: f64, parts: f64) -> f64 {
    (number * parts).round() / parts
}

/// Computes percentiles by nearest rank, so that each is an actual value.
fn compute_spread(mut values: Vec<u64>) -> Option<Spread> {
    values.sort_unstable();
    let p50 = percentile(&values, 50)?;
    let p95 = percentile(&values, 95)?;
    Some(Spread { p50, p95, total: values.iter().sum() })
}

/// Returns a percentile of ascending values; `None` if there are no values.
fn percentile(values: &[u64], percent: usize) -> Option<u64> {
    let rank = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(rank).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_actual_values() {
        assert_eq!(compute_spread(Vec::new()), None);
        assert_eq!(compute_spread(vec![7]), Some(Spread { p50: 7, p95: 7, total: 7 }));
        let hundred = compute_spread((1..=100).rev().collect());
        assert_eq!(hundred, Some(Spread { p50: 50, p95: 95, total: 5050 }));
        assert_eq!(compute_spread(vec![1, 2]), Some(Spread { p50: 1, p95: 2, total: 3 }));
    }
}
