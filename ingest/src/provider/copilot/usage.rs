//! Counts the tokens of GitHub Copilot CLI (docs/formats.md#github-copilot-cli). A message reports
//! only its output. The other counts are in the sums by model that a run writes when it shuts down.
//! This module reduces those sums to the part that was not counted before.

use std::collections::BTreeMap;

use schemas::Usage;
use serde::{Deserialize, Serialize};

use crate::provider::shared::chat::{self, first_int};
use crate::text::json::{JsonFields, Value};

/// Token counts by model.
pub(super) type UsageByModel = BTreeMap<String, Usage>;

/// The token counts that already became events.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct CountedUsage {
    /// Counts of events since the last shutdown.
    since_shutdown: UsageByModel,
    /// Counts of events of the present run.
    in_run: UsageByModel,
    /// The sums of the last shutdown.
    sums: UsageByModel,
}

impl CountedUsage {
    /// Adds the `usage` of an event.
    pub(super) fn add_usage(&mut self, model: &str, usage: Usage) {
        for counts in [&mut self.since_shutdown, &mut self.in_run] {
            let sum = counts.entry(model.to_owned()).or_default();
            *sum = sum.plus(usage);
        }
    }

    /// Returns whether the present run has counts that are not in the sums of a shutdown yet.
    pub(super) fn is_open(&self) -> bool {
        !self.in_run.is_empty()
    }

    /// Begins a run. Returns true if the run before ended without writing its sums, which are lost.
    pub(super) fn begin_run(&mut self) -> bool {
        let was_open = self.is_open();
        self.in_run.clear();
        was_open
    }

    /// Returns the part of a shutdown's sums that no event has counted yet.
    ///
    /// Older versions write the sums of the run that ends. Other versions write those of the
    /// session from its beginning.
    pub(super) fn take_uncounted(&mut self, sums: UsageByModel) -> UsageByModel {
        if sums.is_empty() {
            return UsageByModel::new();
        }

        let is_total = self.is_session_total(&sums);
        let mut uncounted = sums.clone();
        if is_total {
            for (model, before) in &self.sums {
                if let Some(usage) = uncounted.get_mut(model) {
                    *usage = usage.minus(*before);
                }
            }
        }
        let mut counted = if is_total { &self.since_shutdown } else { &self.in_run }.clone();
        subtract_counted(&mut uncounted, &mut counted);
        uncounted.retain(|model, usage| {
            usage.total() > 0 || usage.reasoning > Some(0) || !self.sums.contains_key(model)
        });
        *self = Self { sums, ..Self::default() };
        uncounted
    }

    /// Returns whether `sums` cover the session from its beginning. Such sums have grown since the
    /// last shutdown by at least the counts of the run's messages.
    fn is_session_total(&self, sums: &UsageByModel) -> bool {
        for (model, before) in &self.sums {
            let Some(now) = sums.get(model) else { return false };
            if !now.minus(*before).is_growth() {
                return false;
            }
        }
        !self.sums.is_empty()
            && total_output(sums)
                >= total_output(&self.sums).saturating_add(total_output(&self.in_run))
    }
}

/// Returns the output tokens of all models.
fn total_output(counts: &UsageByModel) -> i64 {
    counts.values().filter_map(|usage| usage.output).fold(0, i64::saturating_add)
}

/// Subtracts the counts that events already gave from `uncounted`: first from the same model, then
/// from the other models, because a message may name its model differently. The tokens that are
/// subtracted are taken from `counted` too, so that they count once.
fn subtract_counted(uncounted: &mut UsageByModel, counted: &mut UsageByModel) {
    for (model, counted_usage) in counted.iter_mut() {
        if let Some(uncounted_usage) = uncounted.get_mut(model) {
            subtract_common(uncounted_usage, counted_usage);
        }
    }
    for counted_usage in counted.values_mut() {
        for uncounted_usage in uncounted.values_mut() {
            subtract_common(uncounted_usage, counted_usage);
        }
    }
}

/// Subtracts from both usages, kind by kind, the tokens that both have.
fn subtract_common(uncounted: &mut Usage, counted: &mut Usage) {
    for (uncounted_tokens, counted_tokens) in [
        (&mut uncounted.input, &mut counted.input),
        (&mut uncounted.output, &mut counted.output),
        (&mut uncounted.cache_read, &mut counted.cache_read),
        (&mut uncounted.cache_write, &mut counted.cache_write),
        (&mut uncounted.reasoning, &mut counted.reasoning),
    ] {
        if let Some(uncounted_tokens) = uncounted_tokens
            && let Some(counted_tokens) = counted_tokens
        {
            let common = (*uncounted_tokens).min(*counted_tokens).max(0);
            *uncounted_tokens -= common;
            *counted_tokens -= common;
        }
    }
}

/// Returns the sums of a shutdown by model, without the models that have none. If no model has
/// sums, the counts of the session are assigned to its last model.
pub(super) fn read_sums(shutdown: Value<'_>) -> UsageByModel {
    let mut sums = UsageByModel::new();
    let models = shutdown.object("modelMetrics");
    for (model, metric) in models.and_then(|models| models.as_object()).iter().flatten() {
        let usage = metric.object("usage").map(read_usage);
        let usage = usage.or_else(|| metric.field("tokenDetails").map(read_token_details));
        if let Some(usage) = usage.filter(|usage| !usage.is_unknown()) {
            sums.insert(model.to_owned(), usage);
        }
    }
    if let Some(details) = shutdown.field("tokenDetails").map(read_token_details)
        && sums.is_empty()
        && !details.is_unknown()
    {
        sums.insert(shutdown.text("currentModel").unwrap_or("").to_owned(), details);
    }
    sums
}

/// Parses the usage of a compaction.
pub(super) fn read_compaction_usage(used: Value<'_>) -> Usage {
    let details = used.object("copilotUsage").and_then(|usage| usage.field("tokenDetails"));
    details
        .map(self::read_token_details)
        .filter(|usage| !usage.is_unknown())
        .unwrap_or_else(|| read_usage(used))
}

/// Parses counts whose input includes tokens read from and written to the cache.
fn read_usage(counts: Value<'_>) -> Usage {
    let cache_read = first_int(counts, &["cacheReadTokens", "cachedInput"]);
    let cached = [cache_read, counts.int("cacheWriteTokens")];
    Usage {
        output: first_int(counts, &["outputTokens", "output"]),
        reasoning: counts.int("reasoningTokens"),
        ..chat::without_cache(first_int(counts, &["inputTokens", "input"]), cached)
    }
}

/// Parses counts by kind, which do not overlap: `{"input": {"tokenCount": 6}}`, or a list of
/// `{"tokenType": "input", "tokenCount": 6}`.
fn read_token_details(details: Value<'_>) -> Usage {
    Usage {
        input: read_token_count(details, "input"),
        output: read_token_count(details, "output"),
        cache_read: read_token_count(details, "cache_read"),
        cache_write: read_token_count(details, "cache_write"),
        ..Usage::default()
    }
}

/// Returns the count of one kind of tokens.
fn read_token_count(details: Value<'_>, kind: &str) -> Option<i64> {
    if let Some(entry) = details.object(kind) {
        return entry.int("tokenCount");
    }
    let list = details.as_array()?;
    let entry = list.iter().find(|entry| entry.text("tokenType") == Some(kind))?;
    entry.int("tokenCount")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Parser, decode_embedded};

    fn of(input: i64, output: i64) -> Usage {
        Usage { input: Some(input), output: Some(output), ..Usage::default() }
    }

    fn said(output: i64) -> Usage {
        Usage { output: Some(output), ..Usage::default() }
    }

    fn one(model: &str, usage: Usage) -> UsageByModel {
        UsageByModel::from([(model.to_owned(), usage)])
    }

    #[test]
    fn sums_of_each_run_count_once() {
        let mut counted = CountedUsage::default();
        counted.add_usage("a", said(30));
        assert_eq!(counted.take_uncounted(one("a", of(1000, 50))), one("a", of(1000, 20)));
        assert!(!counted.begin_run());
        counted.add_usage("a", said(10));
        // Less than before, so these are the sums of the second run.
        assert_eq!(counted.take_uncounted(one("a", of(400, 10))), one("a", of(400, 0)));
        // More than before, but not by what the run's messages gave.
        assert!(!counted.begin_run());
        counted.add_usage("a", said(25));
        assert_eq!(counted.take_uncounted(one("a", of(500, 25))), one("a", of(500, 0)));
    }

    #[test]
    fn sums_of_the_session_count_once() {
        let mut counted = CountedUsage::default();
        counted.add_usage("a", said(30));
        assert_eq!(counted.take_uncounted(one("a", of(1000, 30))), one("a", of(1000, 0)));
        assert!(!counted.begin_run());
        counted.add_usage("a", said(10));
        assert!(counted.begin_run(), "this run was killed");
        counted.add_usage("a", said(5));
        assert_eq!(counted.take_uncounted(one("a", of(1600, 45))), one("a", of(600, 0)));
        assert!(!counted.begin_run());
        // Nothing happened in this run.
        assert_eq!(counted.take_uncounted(one("a", of(1600, 45))), UsageByModel::new());
    }

    #[test]
    fn a_message_under_another_name_is_not_counted_again() {
        let mut counted = CountedUsage::default();
        counted.add_usage("auto", said(30));
        counted.add_usage("b", said(5));
        let sums = UsageByModel::from([("a".to_owned(), of(9, 30)), ("b".to_owned(), of(4, 5))]);
        let uncounted =
            UsageByModel::from([("a".to_owned(), of(9, 0)), ("b".to_owned(), of(4, 0))]);
        assert_eq!(counted.take_uncounted(sums), uncounted);
    }

    #[test]
    fn a_shutdown_without_sums_leaves_the_run_open() {
        let mut counted = CountedUsage::default();
        counted.add_usage("a", said(30));
        assert_eq!(counted.take_uncounted(UsageByModel::new()), UsageByModel::new());
        assert!(counted.begin_run());
    }

    fn check(json: &str, read: fn(Value<'_>) -> Usage, want: Usage) {
        let mut got = None;
        decode_embedded(json, &mut Parser::default(), |value| got = Some(read(value)));
        assert_eq!(got, Some(want), "{json}");
    }

    #[test]
    fn input_is_told_apart_from_the_cache() {
        let want = Usage {
            input: Some(6),
            output: Some(50),
            cache_read: Some(80),
            cache_write: Some(14),
            ..Usage::default()
        };
        check(
            r#"{"inputTokens":100,"outputTokens":50,"cacheReadTokens":80,"cacheWriteTokens":14}"#,
            read_usage,
            want,
        );
        let list = r#"{"inputTokens":100,"copilotUsage":{"tokenDetails":[{"tokenType":"input","tokenCount":6},{"tokenType":"cache_read","tokenCount":80},{"tokenType":"cache_write","tokenCount":14},{"tokenType":"output","tokenCount":50}]}}"#;
        check(list, read_compaction_usage, want);
        let old = Usage { cache_write: None, input: Some(20), ..want };
        check(r#"{"input":100,"output":50,"cachedInput":80}"#, read_compaction_usage, old);
        let map = r#"{"modelMetrics":{"m":{"requests":2}},"currentModel":"m","tokenDetails":{"input":{"tokenCount":6},"output":{"tokenCount":50},"cache_read":{"tokenCount":80},"cache_write":{"tokenCount":14}}}"#;
        check(map, |value| read_sums(value).remove("m").unwrap_or_default(), want);
    }
}
