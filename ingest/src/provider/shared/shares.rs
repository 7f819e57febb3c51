//! Distributes the token totals of a session over its responses, for agents that record only the
//! totals. A share is proportional to the length of the response, and so an estimate.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use schemas::Usage;

use super::records::visit_records;
use crate::text::json::Value;

/// The totals of a session, of which the responses before the next one have had their shares.
#[derive(Debug)]
pub(crate) struct TokenShares {
    total: Usage,
    /// Sum of the weights of all responses.
    total_weight: u64,
    /// Sum of the weights of the responses that had their shares.
    passed_weight: u64,
}

impl TokenShares {
    /// Distributes `total` over responses whose weights add up to `total_weight`.
    pub(crate) fn new(total: Usage, total_weight: u64) -> Self {
        Self { total, total_weight, passed_weight: 0 }
    }

    /// Returns the share of the next response. The shares of all responses add up to the total
    /// exactly. Responses beyond the total weight get nothing.
    pub(crate) fn take_share(&mut self, weight: u64) -> Usage {
        let before = self.passed_weight;
        let after = before.saturating_add(weight).min(self.total_weight);
        self.passed_weight = after;
        let total = self.total;
        Usage {
            input: self.share_of(total.input, before, after),
            output: self.share_of(total.output, before, after),
            cache_read: self.share_of(total.cache_read, before, after),
            cache_write: self.share_of(total.cache_write, before, after),
            cache_write_1h: self.share_of(total.cache_write_1h, before, after),
            reasoning: self.share_of(total.reasoning, before, after),
            web_search: self.share_of(total.web_search, before, after),
        }
    }

    /// Leaves out a response that is a copy, so that the others share the totals. It must come
    /// before the first response that has a share.
    pub(crate) fn leave_out(&mut self, weight: u64) {
        self.total_weight = self.total_weight.saturating_sub(weight).max(self.passed_weight);
    }

    /// Returns the part of a count that belongs to the weights from `before` to `after`.
    fn share_of(&self, count: Option<i64>, before: u64, after: u64) -> Option<i64> {
        let count = count?;
        Some(self.part_up_to(count, after) - self.part_up_to(count, before))
    }

    /// Returns the part of a count that belongs to all weights up to `weight`, rounded down.
    fn part_up_to(&self, count: i64, weight: u64) -> i64 {
        let whole = i128::from(self.total_weight.max(1));
        let part = i128::from(count.max(0)) * i128::from(weight) / whole;
        i64::try_from(part).unwrap_or(i64::MAX)
    }
}

/// Returns the sum of the weights of a log's records. `log` is its path without the extension of a
/// compressed file. `weigh` returns the weight of a record, given
/// with its bytes; 0 if it is not a response.
///
/// # Errors
///
/// Returns an error if the log cannot be read.
pub(crate) fn weigh_records(log: &Path, weigh: fn(Value<'_>, &[u8]) -> u64) -> io::Result<u64> {
    let mut sum = 0_u64;
    visit_records(log, &mut |record, raw| {
        sum = sum.saturating_add(weigh(record, raw));
        ControlFlow::Continue(())
    })?;
    Ok(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_to_the_total() {
        let total = Usage { input: Some(1_000_003), output: Some(2), ..Usage::default() };
        let weights = [7, 1, 900, 33, 5];
        let mut shares = TokenShares::new(total, weights.iter().sum());
        let taken: Vec<Usage> = weights.iter().map(|weight| shares.take_share(*weight)).collect();
        let sum = taken.iter().fold(Usage::default(), |sum, share| sum.plus(*share));
        assert_eq!(sum, total);
        assert!(taken.iter().all(|share| share.is_growth() && share.reasoning.is_none()));
        assert_eq!(taken[2].input, Some(951_377));
        assert_eq!(shares.take_share(50).total(), 0, "a response too many gets nothing");
    }

    #[test]
    fn only_whole_records_have_a_weight() {
        let dir = tempfile::tempdir().expect("tempdir");
        let log = dir.path().join("log.jsonl");
        std::fs::write(&log, "{\"a\":1}{\"b\":2}\n[]\n{\"a\":3}{\"a\":").expect("writes");
        let weigh = |record: Value<'_>, raw: &[u8]| -> u64 {
            if record.get("a").is_some() { raw.len() as u64 } else { 0 }
        };
        assert_eq!(weigh_records(&log, weigh).expect("reads"), 14);
    }
}
