//! Pushes the token counts of a session in the database of Hermes: shares of the sums of the
//! conversation with the responses, and the sums of other tasks where their requests began
//! (docs/formats.md#hermes).

use schemas::session::{ESTIMATED_SHARE, TASK_SUM};
use schemas::{Confidence, EventType, Usage};

use crate::provider::shared::shares::TokenShares;
use crate::stream::{DecodedEvent, Stream};
use crate::text::json::{JsonFields, Value};

/// The sums of a session, by their numbers.
#[derive(Default)]
pub(super) struct StoredCounts {
    sums: Vec<StoredSum>,
}

/// The sums of one model.
struct StoredSum {
    model: Option<String>,
    shares: TokenShares,
}

impl StoredCounts {
    /// Reads the sums in the fields of a session.
    pub(super) fn read(info: Value<'_>) -> Self {
        let mut sums = Vec::new();
        for sum in info.items("usage") {
            let weight = sum.int("weight").unwrap_or(0).max(0).cast_unsigned();
            let model = sum.non_empty("model").map(str::to_owned);
            sums.push(StoredSum { model, shares: TokenShares::new(read_usage(sum), weight) });
        }
        Self { sums }
    }

    /// Sets the model of a response.
    pub(super) fn begin_response(&self, response: Value<'_>, out: &mut Stream) {
        let number = response.int("share").and_then(|number| usize::try_from(number).ok());
        let sum = number.and_then(|number| self.sums.get(number));
        out.set_model(sum.and_then(|sum| sum.model.as_deref()));
    }

    /// Pushes the share of a response. The event exists even while there are no counts, so that no
    /// event changes its place when they come.
    pub(super) fn push_share(&mut self, response: Value<'_>, out: &mut Stream) {
        let weight = response.int("weight").unwrap_or(0).max(0).cast_unsigned();
        let number = response.int("share").and_then(|number| usize::try_from(number).ok());
        let mut usage = Usage::default();
        if let Some(sum) = number.and_then(|number| self.sums.get_mut(number)) {
            out.set_confidence(Confidence::Estimated);
            // A branch has the messages of its original, but not its counts.
            if out.is_record_copied() {
                sum.shares.leave_out(weight);
            } else {
                usage = sum.shares.take_share(weight);
            }
        }
        out.push_counts(ESTIMATED_SHARE, usage, None);
    }

    /// Pushes sums that no response shares.
    pub(super) fn push_sum(&self, sum: Value<'_>, out: &mut Stream) {
        let model = out.session.model.clone();
        out.set_model(sum.text("model"));
        out.set_confidence(Confidence::Estimated);
        let text = sum.text("task").unwrap_or("");
        let decoded = DecodedEvent {
            subtype: Some(TASK_SUM),
            text,
            usage: read_usage(sum),
            ..DecodedEvent::default()
        };
        out.push(EventType::TokenUsage, decoded);
        out.session.model = model.or(out.session.model.take());
    }
}

/// Reads token counts. Input is without the cache, and output includes reasoning.
fn read_usage(sum: Value<'_>) -> Usage {
    Usage {
        input: sum.int("input_tokens"),
        output: sum.int("output_tokens"),
        cache_read: sum.int("cache_read_tokens"),
        cache_write: sum.int("cache_write_tokens"),
        reasoning: sum.int("reasoning_tokens"),
        ..Usage::default()
    }
}
