//! Reads the tokens of responses from the statistics of a conversation:
//!
//! ```text
//! {"usage_to_metrics":{"agent":{"model_name":"...","accumulated_cost":0.05,
//!   "accumulated_token_usage":{"prompt_tokens":900,...},"costs":[{"cost":0.05,...}],
//!   "token_usages":[{"response_id":"...","model":"...","prompt_tokens":900,"completion_tokens":40,
//!     "cache_read_tokens":800,"cache_write_tokens":60,"reasoning_tokens":10}]}}}
//! ```

use std::collections::{HashMap, HashSet};

use schemas::Usage;
use schemas::session::SHUTDOWN_SUM;
use serde_json::Value as Json;

use crate::provider::shared::chat;
use crate::provider::shared::document::Document;
use crate::provider::shared::identity::begin_header_record;
use crate::stream::Stream;
use crate::text::json::{JsonFields, LineItem, Parser};

/// The tokens of one response, and what they cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ResponseUsage {
    usage: Usage,
    cost: Option<f64>,
}

/// The tokens of the responses of a conversation by the ids of the responses.
#[derive(Default)]
pub(super) struct ResponseUsages {
    by_response: HashMap<String, ResponseUsage>,
    /// Tokens of responses without an id.
    rest: Usage,
}

impl ResponseUsages {
    /// Reads the statistics of a conversation.
    pub(super) fn read(stats: &Json) -> Self {
        let mut usages = Self::default();
        let metrics = stats["usage_to_metrics"].as_object().into_iter().flatten();
        for (_, metrics) in metrics {
            usages.add_metrics(metrics);
        }
        usages
    }

    /// Adds the responses for one purpose, such as `agent` or `condenser`.
    fn add_metrics(&mut self, metrics: &Json) {
        let none = Vec::new();
        let responses = metrics["token_usages"].as_array().unwrap_or(&none);
        let costs = metrics["costs"].as_array().filter(|costs| costs.len() == responses.len());
        let mut sum = Usage::default();
        for (number, response) in responses.iter().enumerate() {
            let usage = read_counts(response);
            sum = sum.plus(usage);
            let cost = costs.and_then(|costs| costs[number]["cost"].as_f64());
            match response["response_id"].as_str().filter(|id| !id.is_empty()) {
                Some(id) => {
                    let known = self.by_response.entry(id.to_owned()).or_default();
                    known.usage = known.usage.plus(usage);
                    known.cost = cost.map(|cost| known.cost.unwrap_or(0.0) + cost).or(known.cost);
                }
                None => self.rest = self.rest.plus(usage),
            }
        }
        let accumulated = read_counts(&metrics["accumulated_token_usage"]);
        if accumulated.total() > sum.total() {
            self.rest = self.rest.plus(accumulated.minus(sum));
        }
    }

    /// Pushes the tokens of all responses that no event names: those of the program itself, such as
    /// a title.
    pub(super) fn push_rest(&mut self, named: &NamedResponses, out: &mut Stream) {
        let mut cost = None;
        self.by_response.retain(|id, response| {
            let is_named = named.ids.contains(id);
            if !is_named {
                self.rest = self.rest.plus(response.usage);
                cost = response.cost.map(|own| cost.unwrap_or(0.0) + own).or(cost);
            }
            is_named
        });
        if self.rest.total() > 0 {
            begin_header_record(named.start, out);
            out.push_counts(SHUTDOWN_SUM, self.rest, cost);
        }
    }

    /// Pushes the tokens of a response, unless they were.
    pub(super) fn push_response(&mut self, id: &str, out: &mut Stream) {
        if let Some(ResponseUsage { usage, cost }) = self.by_response.remove(id) {
            out.push_usage(usage, cost, Some(id));
        }
    }
}

/// Reads token counts. The prompt includes the cache, except for agents that are driven over ACP: then
/// it may be smaller.
fn read_counts(counts: &Json) -> Usage {
    let count = |key: &str| counts[key].as_i64();
    let cache_read = count("cache_read_tokens");
    let cache_write = count("cache_write_tokens");
    let cached = cache_read.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
    let prompt = count("prompt_tokens");
    Usage {
        input: prompt.map(|prompt| if prompt >= cached { prompt - cached } else { prompt }),
        output: count("completion_tokens"),
        cache_read,
        cache_write,
        reasoning: count("reasoning_tokens"),
        ..Usage::default()
    }
}

/// The responses that events name.
#[derive(Default)]
pub(super) struct NamedResponses {
    ids: HashSet<String>,
    /// The time of the first event in microseconds since 1970.
    start: Option<i64>,
}

impl NamedResponses {
    pub(super) fn read(conversation: &Document<'_>) -> Self {
        let mut named = Self::default();
        let mut parser = Parser::default();
        for raw in conversation.raw_records() {
            parser.for_each_item(raw, &mut |item| {
                let LineItem::Object(event, _) = item else { return };
                named.start = named.start.or_else(|| chat::parse_unzoned(event.text("timestamp")?));
                if let Some(id) = event.non_empty("llm_response_id") {
                    named.ids.insert(id.to_owned());
                }
            });
        }
        named
    }
}
