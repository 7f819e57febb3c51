//! Counts the tokens of requests, and says how far the counts can be trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed_enum::closed_enum;

closed_enum! {
    /// How far the token counts of a session can be trusted.
    Confidence {
        /// The log gives the counts of every request.
        Measured = "measured",
        /// Counts of some requests are missing.
        Partial = "partial",
        /// Some counts are guessed.
        Estimated = "estimated",
        /// The log gives none.
        Unknown = "unknown",
    }
}

#[expect(clippy::derivable_impls, reason = "the macro derives for every enum alike")]
impl Default for Confidence {
    fn default() -> Self {
        Self::Unknown
    }
}

/// Token counts of one API request, or sums of such. `None` is "the log does not say", which is
/// not zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input tokens that were neither read from nor written to a cache.
    #[serde(rename = "input_tokens", default, skip_serializing_if = "Option::is_none")]
    pub input: Option<i64>,
    /// Output tokens, reasoning included.
    #[serde(rename = "output_tokens", default, skip_serializing_if = "Option::is_none")]
    pub output: Option<i64>,
    /// Input tokens read from a cache.
    #[serde(rename = "cache_read_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<i64>,
    /// Input tokens written to a cache.
    #[serde(rename = "cache_write_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<i64>,
    /// The part of the cache writes that is kept for an hour; the rest is kept for five minutes.
    #[serde(rename = "cache_write_1h_tokens", default, skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<i64>,
    /// The part of the output that was reasoning.
    #[serde(rename = "reasoning_tokens", default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<i64>,
    /// Web searches that the model's maker made for the request and charges for. `None` if there
    /// were none.
    #[serde(rename = "web_search_requests", default, skip_serializing_if = "Option::is_none")]
    pub web_search: Option<i64>,
}

impl Usage {
    /// Applies `combine` field by field; a field unknown on both sides stays unknown.
    fn zip_fields(self, other: Self, combine: fn(i64, i64) -> i64) -> Self {
        let [ours, theirs] = [self, other].map(Self::fields);
        let [input, output, cache_read, cache_write, cache_write_1h, reasoning, web_search] =
            std::array::from_fn(|at| zip_counts(ours[at], theirs[at], combine));
        Self { input, output, cache_read, cache_write, cache_write_1h, reasoning, web_search }
    }

    /// Returns all counts, in the order of declaration.
    const fn fields(self) -> [Option<i64>; 7] {
        let Self { input, output, cache_read, cache_write, cache_write_1h, reasoning, web_search } =
            self;
        [input, output, cache_read, cache_write, cache_write_1h, reasoning, web_search]
    }

    /// Returns the field-wise sum.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip_fields(other, i64::saturating_add)
    }

    /// Returns the field-wise difference; fields may be negative.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.zip_fields(other, i64::saturating_sub)
    }

    /// Returns the sum of input, output and both cache counts. Reasoning is part of the output
    /// already.
    pub fn total(self) -> i64 {
        [self.input, self.output, self.cache_read, self.cache_write]
            .into_iter()
            .flatten()
            .fold(0, i64::saturating_add)
    }

    /// Returns true if no field is known.
    pub fn is_unknown(self) -> bool {
        self == Self::default()
    }

    /// Returns true if no field is negative, so that this may be the growth of a total.
    pub fn is_growth(self) -> bool {
        self.fields().into_iter().flatten().all(|count| count >= 0)
    }
}

/// Combines two counts. An unknown one counts as 0, unless both are unknown.
fn zip_counts(a: Option<i64>, b: Option<i64>, combine: fn(i64, i64) -> i64) -> Option<i64> {
    if a.is_none() && b.is_none() {
        return None;
    }
    Some(combine(a.unwrap_or(0), b.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_counts_are_not_zero() {
        let known = Usage { output: Some(3), ..Usage::default() };
        assert_eq!(known.plus(Usage::default()), known);
        assert!(Usage::default().is_unknown() && !known.is_unknown());
        assert_eq!(known.minus(known), Usage { output: Some(0), ..Usage::default() });
    }
}
