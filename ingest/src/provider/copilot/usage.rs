//! Token counts of GitHub Copilot CLI (docs/formats.md#github-copilot-cli). A message reports only
//! its output. The other counts are in the sums by model that a run writes when it shuts down. This
//! module reduces those sums to the part that was not counted before.

use std::collections::BTreeMap;

use schemas::Usage;
use serde::{Deserialize, Serialize};

use crate::text::json::{Fields, Value};

/// Token counts by model.
pub(super) type ByModel = BTreeMap<String, Usage>;

/// The token counts that already became events.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Counted {
    /// Counts of events since the last shutdown.
    since_shutdown: ByModel,
    /// Counts of events of the present run.
    in_run: ByModel,
    /// The sums of the last shutdown.
    sums: ByModel,
}

impl Counted {
    /// Adds the `usage` of an event.
    pub(super) fn give(&mut self, model: &str, usage: Usage) {
        for given in [&mut self.since_shutdown, &mut self.in_run] {
            let sum = given.entry(model.to_owned()).or_default();
            *sum = sum.plus(usage);
        }
    }

    /// Returns whether the present run has counts that are not in the sums of a shutdown yet.
    pub(super) fn is_open(&self) -> bool {
        !self.in_run.is_empty()
    }

    /// Begins a run. Returns true if the run before ended without writing its sums, which are lost.
    pub(super) fn begin_run(&mut self) -> bool {
        let open = self.is_open();
        self.in_run.clear();
        open
    }

    /// Returns the part of a shutdown's sums that no event has counted yet.
    ///
    /// Older versions write the sums of the run that ends. Other versions write those of the
    /// session from its beginning. In the second case, the sums have grown since the last shutdown
    /// by at least the counts of the run's messages.
    pub(super) fn shut_down(&mut self, sums: ByModel) -> ByModel {
        if sums.is_empty() {
            return ByModel::new();
        }
        let grown = |(model, before): (&String, &Usage)| {
            sums.get(model).is_some_and(|now| now.minus(*before).is_growth())
        };
        let whole = !self.sums.is_empty()
            && self.sums.iter().all(grown)
            && output(&sums) >= output(&self.sums).saturating_add(output(&self.in_run));
        let mut news = sums.clone();
        let mut given = if whole { &self.since_shutdown } else { &self.in_run }.clone();
        if whole {
            for (model, before) in &self.sums {
                news.entry(model.clone()).and_modify(|usage| *usage = usage.minus(*before));
            }
        }
        settle(&mut news, &mut given);
        news.retain(|model, usage| {
            usage.total() > 0 || usage.reasoning > Some(0) || !self.sums.contains_key(model)
        });
        *self = Self { sums, ..Self::default() };
        news
    }
}

fn output(counts: &ByModel) -> i64 {
    counts.values().filter_map(|usage| usage.output).fold(0, i64::saturating_add)
}

/// Subtracts the counts that events already gave from `news`: first from the same model, then from
/// the other models, because a message may name its model differently.
fn settle(news: &mut ByModel, given: &mut ByModel) {
    for (model, given) in given.iter_mut() {
        if let Some(news) = news.get_mut(model) {
            take(news, given);
        }
    }
    for given in given.values_mut() {
        for news in news.values_mut() {
            take(news, given);
        }
    }
}

fn take(news: &mut Usage, given: &mut Usage) {
    for (news, given) in [
        (&mut news.input, &mut given.input),
        (&mut news.output, &mut given.output),
        (&mut news.cache_read, &mut given.cache_read),
        (&mut news.cache_write, &mut given.cache_write),
        (&mut news.reasoning, &mut given.reasoning),
    ] {
        if let (Some(news), Some(given)) = (news, given) {
            let taken = (*news).min(*given).max(0);
            *news -= taken;
            *given -= taken;
        }
    }
}

/// Returns the sums of a shutdown by model, without the models that have none. If no model has
/// sums, the counts of the session are assigned to its last model.
pub(super) fn sums(shutdown: Value<'_>) -> ByModel {
    let mut sums = ByModel::new();
    let models = shutdown.object("modelMetrics");
    for (model, metric) in models.and_then(|models| models.as_object()).iter().flatten() {
        let usage = metric.object("usage").map(usage);
        let usage = usage.or_else(|| metric.field("tokenDetails").map(details));
        if let Some(usage) = usage.filter(|usage| !usage.is_unknown()) {
            sums.insert(model.to_owned(), usage);
        }
    }
    if let Some(details) = shutdown.field("tokenDetails").map(details)
        && sums.is_empty()
        && !details.is_unknown()
    {
        sums.insert(shutdown.text("currentModel").unwrap_or("").to_owned(), details);
    }
    sums
}

/// Parses the usage of a compaction.
pub(super) fn compaction(used: Value<'_>) -> Usage {
    let details = used.object("copilotUsage").and_then(|usage| usage.field("tokenDetails"));
    details.map(self::details).filter(|usage| !usage.is_unknown()).unwrap_or_else(|| usage(used))
}

/// Parses counts whose input includes tokens read from and written to the cache.
fn usage(counts: Value<'_>) -> Usage {
    let count = |names: &[&str]| names.iter().find_map(|name| counts.int(name));
    let cache_read = count(&["cacheReadTokens", "cachedInput"]);
    let cache_write = count(&["cacheWriteTokens"]);
    let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
    Usage {
        input: count(&["inputTokens", "input"]).map(|input| input.saturating_sub(cached).max(0)),
        output: count(&["outputTokens", "output"]),
        cache_read,
        cache_write,
        reasoning: count(&["reasoningTokens"]),
        ..Usage::default()
    }
}

/// Parses counts by kind, which do not overlap: `{"input": {"tokenCount": 6}}`, or a list of
/// `{"tokenType": "input", "tokenCount": 6}`.
fn details(details: Value<'_>) -> Usage {
    let list = details.as_array();
    let count = |kind: &str| {
        let listed = || list.as_ref()?.iter().find(|entry| entry.text("tokenType") == Some(kind));
        details.object(kind).or_else(listed).and_then(|entry| entry.int("tokenCount"))
    };
    Usage {
        input: count("input"),
        output: count("output"),
        cache_read: count("cache_read"),
        cache_write: count("cache_write"),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::json::{Parser, embedded};

    fn of(input: i64, output: i64) -> Usage {
        Usage { input: Some(input), output: Some(output), ..Usage::default() }
    }

    fn said(output: i64) -> Usage {
        Usage { output: Some(output), ..Usage::default() }
    }

    fn one(model: &str, usage: Usage) -> ByModel {
        ByModel::from([(model.to_owned(), usage)])
    }

    #[test]
    fn sums_of_each_run_count_once() {
        let mut counted = Counted::default();
        counted.give("a", said(30));
        assert_eq!(counted.shut_down(one("a", of(1000, 50))), one("a", of(1000, 20)));
        assert!(!counted.begin_run());
        counted.give("a", said(10));
        // Less than before, so these are the sums of the second run.
        assert_eq!(counted.shut_down(one("a", of(400, 10))), one("a", of(400, 0)));
        // More than before, but not by what the run's messages gave.
        assert!(!counted.begin_run());
        counted.give("a", said(25));
        assert_eq!(counted.shut_down(one("a", of(500, 25))), one("a", of(500, 0)));
    }

    #[test]
    fn sums_of_the_session_count_once() {
        let mut counted = Counted::default();
        counted.give("a", said(30));
        assert_eq!(counted.shut_down(one("a", of(1000, 30))), one("a", of(1000, 0)));
        assert!(!counted.begin_run());
        counted.give("a", said(10));
        assert!(counted.begin_run(), "this run was killed");
        counted.give("a", said(5));
        assert_eq!(counted.shut_down(one("a", of(1600, 45))), one("a", of(600, 0)));
        assert!(!counted.begin_run());
        // Nothing happened in this run.
        assert_eq!(counted.shut_down(one("a", of(1600, 45))), ByModel::new());
    }

    #[test]
    fn a_message_under_another_name_is_not_counted_again() {
        let mut counted = Counted::default();
        counted.give("auto", said(30));
        counted.give("b", said(5));
        let sums = ByModel::from([("a".to_owned(), of(9, 30)), ("b".to_owned(), of(4, 5))]);
        let news = ByModel::from([("a".to_owned(), of(9, 0)), ("b".to_owned(), of(4, 0))]);
        assert_eq!(counted.shut_down(sums), news);
    }

    #[test]
    fn a_shutdown_without_sums_leaves_the_run_open() {
        let mut counted = Counted::default();
        counted.give("a", said(30));
        assert_eq!(counted.shut_down(ByModel::new()), ByModel::new());
        assert!(counted.begin_run());
    }

    fn check(json: &str, read: fn(Value<'_>) -> Usage, want: Usage) {
        let mut got = None;
        embedded(json, &mut Parser::default(), |value| got = Some(read(value)));
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
            usage,
            want,
        );
        let list = r#"{"inputTokens":100,"copilotUsage":{"tokenDetails":[{"tokenType":"input","tokenCount":6},{"tokenType":"cache_read","tokenCount":80},{"tokenType":"cache_write","tokenCount":14},{"tokenType":"output","tokenCount":50}]}}"#;
        check(list, compaction, want);
        let old = Usage { cache_write: None, input: Some(20), ..want };
        check(r#"{"input":100,"output":50,"cachedInput":80}"#, compaction, old);
        let map = r#"{"modelMetrics":{"m":{"requests":2}},"currentModel":"m","tokenDetails":{"input":{"tokenCount":6},"output":{"tokenCount":50},"cache_read":{"tokenCount":80},"cache_write":{"tokenCount":14}}}"#;
        check(map, |value| sums(value).remove("m").unwrap_or_default(), want);
    }
}
