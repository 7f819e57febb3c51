//! Keeps the sums of a session that are more than one number: tokens by model, abandoned branches,
//! items unknown to the decoder, masked secrets. They are columns of JSON or short text in the
//! session's row, from which a later run continues.

use std::collections::{BTreeMap, VecDeque};

use schemas::session::{LONG_PROMPTS, ModelUsage, SessionRow, is_sum_of_requests, sum_costs};
use schemas::{Timestamp, Usage};
use xxhash_rust::xxh3::xxh3_64;

use super::branches::AbandonedRanges;
use super::decoded_event::DecodedEvent;
use crate::redact;

/// Maximum number of unknown names counted separately; further names are counted together.
const MAX_DRIFT_NAMES: usize = 100;

/// Maximum number of characters kept of an unknown name.
const MAX_DRIFT_NAME_CHARS: usize = 80;

/// Maximum number of sums by model and day counted separately, more than any session has. What follows
/// is counted without a name, and so without a price.
const MAX_MODELS: usize = 4096;

/// A part of a record that its decoder does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UnknownItem {
    /// A field of this name.
    Field(String),
    /// A record, or an item in it, of this type.
    Record(String),
}

/// Counts by name.
pub(crate) type NameCounts = BTreeMap<String, u64>;

/// The sums of a session that are more than one number.
#[derive(Default)]
pub(crate) struct Ledger {
    models: Vec<ModelUsage>,
    abandoned: AbandonedRanges,
    drift: NameCounts,
    /// Number of records in `drift`.
    unknown_records: u64,
    redactions: NameCounts,
}

/// Hashes of the ids of the last requests, each with the length of its longest prompt in tokens. A
/// request may be counted in pieces, with other requests in between.
pub(crate) type LastRequests = VecDeque<(u64, i64)>;

/// Maximum number of requests remembered.
const MAX_REQUESTS: usize = 8;

impl Ledger {
    /// Reads the ledger from a session's row.
    pub(crate) fn from_row(row: &SessionRow) -> Self {
        fn parse_json<T: serde::de::DeserializeOwned + Default>(json: Option<&String>) -> T {
            json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
        }
        let drift: NameCounts = parse_json(row.drift.as_ref());
        let unknown_records = drift
            .iter()
            .filter(|(key, _)| key.starts_with("record:"))
            .map(|(_, count)| count)
            .sum();
        Self {
            models: parse_json(row.usage_by_model.as_ref()),
            abandoned: AbandonedRanges::parse_ranges(row.abandoned.as_deref().unwrap_or_default()),
            drift,
            unknown_records,
            redactions: parse_json(row.redactions.as_ref()),
        }
    }

    /// Writes the ledger into the row, adding the secrets masked since.
    pub(crate) fn write_to_row(&self, row: &mut SessionRow, masked: redact::SecretCounts) {
        fn to_json<T: serde::Serialize>(value: &T, is_empty: bool) -> Option<String> {
            if is_empty { None } else { serde_json::to_string(value).ok() }
        }

        row.usage_by_model = to_json(&self.models, self.models.is_empty());
        row.abandoned = self.abandoned.to_column();
        row.drift = to_json(&self.drift, self.drift.is_empty());

        let mut redactions = self.redactions.clone();
        for (kind, count) in masked.0 {
            *redactions.entry(kind).or_default() += count;
        }
        row.redactions = to_json(&redactions, redactions.is_empty());
    }

    /// Adds the tokens of an own event, and remembers its request. `decoded.timestamp` is the time of the
    /// event, whose day decides the price.
    pub(crate) fn add_usage(
        &mut self,
        model: Option<&str>,
        decoded: &DecodedEvent<'_>,
        requests: &mut LastRequests,
    ) {
        let mut prompt_tokens = Usage { output: None, ..decoded.usage }.total();
        if let Some(id) = decoded.request_id {
            prompt_tokens = remember_prompt(requests, id, prompt_tokens);
        }
        if is_sum_of_requests(decoded.subtype) {
            prompt_tokens = 0;
        }
        let exceeded = LONG_PROMPTS.iter().rfind(|size| prompt_tokens > **size);
        let prompt_over = exceeded.copied().unwrap_or(0);

        let mut added = ModelUsage {
            model: model.map(str::to_owned),
            prompt_over,
            day: decoded.timestamp.map(|time| Timestamp(time).utc_day()),
            mode: decoded.mode.price_mode(),
            cost_as_logged: decoded.cost,
            usage: decoded.usage,
        };
        // Requests are mostly of the newest day, whose sums are the last ones.
        let mut position = self.models.iter().rposition(|known| has_same_price(known, &added));
        if position.is_none() && self.models.len() >= MAX_MODELS {
            added = ModelUsage { prompt_over, usage: decoded.usage, ..ModelUsage::default() };
            position = self.models.iter().rposition(|known| has_same_price(known, &added));
        }
        match position.and_then(|at| self.models.get_mut(at)) {
            Some(entry) => {
                entry.usage = entry.usage.plus(added.usage);
                entry.cost_as_logged = sum_costs([entry.cost_as_logged, added.cost_as_logged]);
            }
            None => self.models.push(added),
        }
    }

    /// Counts an item unknown to the decoder.
    pub(crate) fn count_unknown(&mut self, kind: &str, name: &str) {
        self.unknown_records += u64::from(kind == "record");
        let end = name.char_indices().nth(MAX_DRIFT_NAME_CHARS).map_or(name.len(), |(at, _)| at);
        let mut key = [kind, ":", &name[..end]].concat();
        if let Some(count) = self.drift.get_mut(&key) {
            *count += 1;
            return;
        }
        if self.drift.len() >= MAX_DRIFT_NAMES {
            key = format!("{kind}:...");
        }
        *self.drift.entry(key).or_default() += 1;
    }

    /// Number of unknown records counted.
    pub(crate) fn unknown_records(&self) -> u64 {
        self.unknown_records
    }

    /// Adds a range of abandoned events.
    pub(crate) fn add_abandoned(&mut self, first: i32, last: i32) {
        self.abandoned.add_range(first, last);
    }

    /// Replaces all abandoned ranges by the ranges `first..end`.
    pub(crate) fn replace_abandoned(&mut self, ranges: &[(i32, i32)]) {
        self.abandoned = AbandonedRanges::default();
        for (first, end) in ranges {
            self.abandoned.add_range(*first, end - 1);
        }
    }
}

/// Returns whether the costs of two sums are known in the same way, so that they are one.
fn has_same_price(one: &ModelUsage, other: &ModelUsage) -> bool {
    one.model == other.model
        && one.prompt_over == other.prompt_over
        && one.day == other.day
        && one.mode == other.mode
        && one.cost_as_logged.is_some() == other.cost_as_logged.is_some()
}

/// Remembers the length of a prompt of a request, in tokens. Returns the length of the longest
/// prompt of the request so far.
fn remember_prompt(requests: &mut LastRequests, id: &str, prompt_tokens: i64) -> i64 {
    let id_hash = xxh3_64(id.as_bytes());
    let mut longest = prompt_tokens;
    match requests.iter_mut().find(|(known, _)| *known == id_hash) {
        Some((_, known_longest)) => {
            longest = longest.max(*known_longest);
            *known_longest = longest;
        }
        None => requests.push_front((id_hash, prompt_tokens)),
    }
    requests.truncate(MAX_REQUESTS);
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_goes_round() {
        let mut ledger = Ledger::default();
        let mut requests = LastRequests::new();
        let usage = Usage { input: Some(5), output: Some(2), ..Usage::default() };
        let mut count = |usage: Usage, id: &str| {
            let decoded = DecodedEvent { usage, request_id: Some(id), ..DecodedEvent::default() };
            ledger.add_usage(Some("m"), &decoded, &mut requests);
        };
        count(usage, "r");
        let long = Usage { cache_read: Some(300_000), ..Usage::default() };
        count(long, "s");
        count(usage, "t");
        let rest = Usage { output: Some(9), ..Usage::default() };
        count(rest, "s");
        ledger.count_unknown("record", "odd");
        ledger.add_abandoned(10, 12);
        ledger.add_abandoned(3, 20);
        ledger.add_abandoned(30, 31);
        let masked = redact::SecretCounts(NameCounts::from([("github_token".to_owned(), 2)]));
        let mut row = SessionRow::default();
        ledger.write_to_row(&mut row, masked.clone());
        assert_eq!(row.abandoned.as_deref(), Some("3-20,30-31"));
        assert_eq!(row.drift.as_deref(), Some(r#"{"record:odd":1}"#));
        let models: Vec<ModelUsage> =
            serde_json::from_str(row.usage_by_model.as_deref().expect("models")).expect("json");
        assert_eq!(models.len(), 2);
        assert_eq!(models[1].usage.output, Some(9), "the rest of a long request is long too");
        let mut again = SessionRow::default();
        Ledger::from_row(&row).write_to_row(&mut again, redact::SecretCounts::default());
        assert_eq!(again, row);
        Ledger::from_row(&row).write_to_row(&mut again, masked);
        assert_eq!(again.redactions.as_deref(), Some(r#"{"github_token":4}"#));
    }

    #[test]
    fn models_have_an_end_and_their_tokens_none() {
        let (mut ledger, mut requests) = (Ledger::default(), LastRequests::new());
        let usage = Usage { output: Some(1), ..Usage::default() };
        let decoded = DecodedEvent { usage, ..DecodedEvent::default() };
        for round in 0..2 {
            for model in 0..5000 {
                ledger.add_usage(Some(&format!("m{model}")), &decoded, &mut requests);
            }
            assert_eq!(ledger.models.len(), MAX_MODELS + 1, "{round}");
        }
        let sum: Usage = ledger.models.iter().fold(Usage::default(), |sum, m| sum.plus(m.usage));
        assert_eq!(sum.output, Some(10_000));
        let nameless: Vec<_> = ledger.models.iter().filter(|m| m.model.is_none()).collect();
        assert_eq!(nameless.len(), 1);
        assert_eq!(nameless[0].usage.output, Some(2 * (5000 - 4096)));
    }
}
