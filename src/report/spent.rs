//! Sums tokens and their cost.

use schemas::Usage;
use serde::Serialize;

/// Tokens, and the cost of those whose model has a price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Spent {
    #[serde(flatten)]
    pub(super) usage: Usage,
    pub(super) total_tokens: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
}

impl Spent {
    /// Adds the tokens of one event, or of a sum, and their cost if it is known.
    pub(super) fn add(&mut self, usage: Usage, cost: Option<f64>) {
        self.usage = self.usage.plus(usage);
        self.total_tokens = self.usage.total();
        if let Some(cost) = cost {
            *self.cost_usd.get_or_insert(0.0) += cost;
        }
    }
}
