//! Prices the responses of a session, turn by turn.

use std::collections::BTreeMap;

use schemas::price::PriceTable;
use schemas::session::{EventRow, LONG_PROMPTS, ModelUsage, is_sum_of_requests};
use schemas::{EventType, Timestamp, Usage};

use super::convert::unsigned_index;

/// Returns the cost of each turn in US dollars, in the order of the turns. Copied history costs
/// nothing, and turns without a price are left out.
pub fn turn_costs(events: &[EventRow], prices: &PriceTable) -> Vec<(u32, f64)> {
    let mut costs: BTreeMap<u32, f64> = BTreeMap::new();
    for (event, cost) in events.iter().zip(event_costs(events, prices)) {
        if let Some(cost) = cost.filter(|_| !event.is_replay) {
            *costs.entry(unsigned_index(event.turn_index)).or_default() += cost;
        }
    }
    costs.into_iter().collect()
}

/// Returns the cost of each event in US dollars, also of copied ones. `None` if an event has no tokens,
/// or no price.
pub fn event_costs(events: &[EventRow], prices: &PriceTable) -> Vec<Option<f64>> {
    let mut pricer = Pricer { prices, request: None };
    let price = |event: &EventRow| {
        if event.event_type == EventType::TokenUsage { pricer.price_event(event) } else { None }
    };
    events.iter().map(price).collect()
}

/// Prices token counts in the same way as the sums of a session: by the size of the request's whole
/// prompt, even if a request is counted in several events.
struct Pricer<'p> {
    prices: &'p PriceTable,
    /// The id of the last request, and the size of its prompt.
    request: Option<(String, i64)>,
}

impl Pricer<'_> {
    /// Returns the cost of an event's tokens; `None` if they are unknown, or if a kind of them has
    /// no price for its model.
    fn price_event(&mut self, event: &EventRow) -> Option<f64> {
        let usage = event.usage();
        let mut prompt = Usage { output: None, ..usage }.total();
        if let Some((id, earlier)) = &self.request
            && event.request_id.as_ref() == Some(id)
        {
            prompt = prompt.max(*earlier);
        }
        self.request = event.request_id.clone().map(|id| (id, prompt));

        let is_sum = is_sum_of_requests(event.subtype.as_deref());
        let priced_prompt = if is_sum { 0 } else { prompt };
        let prompt_over =
            LONG_PROMPTS.iter().rfind(|size| priced_prompt > **size).copied().unwrap_or(0);
        let mode = event.price_mode();
        let day = event.timestamp.map(|time| Timestamp(time).utc_day());
        let model = event.model.clone();
        ModelUsage { model, prompt_over, day, mode, usage, cost_as_logged: None }.cost(self.prices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(turn_index: i32, request: &str, tokens: [Option<i64>; 2]) -> EventRow {
        EventRow {
            event_type: EventType::TokenUsage,
            turn_index,
            model: Some("m".into()),
            request_id: Some(request.into()),
            cache_read_tokens: tokens[0],
            output_tokens: tokens[1],
            ..EventRow::default()
        }
    }

    #[test]
    fn pieces_of_a_long_request_are_long() {
        let prices = PriceTable::with_overrides(
            "[models.m]\ninput = 1.0\noutput = 1.0\ncache_read = 1.0\n\
             long = { above_tokens = 200000, input = 2.0, output = 2.0, cache_read = 2.0 }\n",
        )
        .expect("prices");
        let million = Some(1_000_000);
        let events = [
            event(1, "a", [million, None]),
            event(1, "a", [None, million]),
            event(3, "b", [None, million]),
            EventRow { is_replay: true, ..event(3, "c", [None, million]) },
        ];
        assert_eq!(turn_costs(&events, &prices), [(1, 4.0), (3, 1.0)]);
    }
}
