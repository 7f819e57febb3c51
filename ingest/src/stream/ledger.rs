//! Keeps the sums of a session that are more than one number: tokens by model, abandoned branches,
//! items unknown to the decoder, masked secrets. They are columns of JSON or short text in the
//! session's row, from which a later run continues.

use std::collections::{BTreeMap, VecDeque};

use schemas::Usage;
use schemas::session::{LONG_PROMPTS, ModelUsage, SessionRow};

use super::branches::Abandoned;
use super::draft::Draft;
use crate::redact;

/// Number of unknown names counted separately; further names are counted together.
const DRIFT_NAMES: usize = 100;

/// Number of characters kept of an unknown name.
const DRIFT_NAME_CHARS: usize = 80;

/// Number of models counted separately, more than any session has. Further models are counted
/// without a name, and so without a price.
const MODELS: usize = 256;

/// Counts by name.
pub(crate) type Counts = BTreeMap<String, u64>;

#[derive(Default)]
pub(crate) struct Ledger {
    models: Vec<ModelUsage>,
    abandoned: Abandoned,
    drift: Counts,
    redactions: Counts,
}

/// The last requests, each with the length of its longest prompt in tokens. A request may be
/// counted in pieces, with other requests in between.
pub(crate) type LastRequests = VecDeque<(String, i64)>;

/// Number of requests remembered.
const REQUESTS: usize = 8;

impl Ledger {
    /// Reads the ledger from a session's row.
    pub(crate) fn of(row: &SessionRow) -> Self {
        fn parse<T: serde::de::DeserializeOwned + Default>(json: Option<&String>) -> T {
            json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default()
        }
        Self {
            models: parse(row.usage_by_model.as_ref()),
            abandoned: Abandoned::of(row.abandoned.as_deref().unwrap_or_default()),
            drift: parse(row.drift.as_ref()),
            redactions: parse(row.redactions.as_ref()),
        }
    }

    /// Writes the ledger into the row, adding the secrets masked since.
    pub(crate) fn write(&self, row: &mut SessionRow, masked: redact::Counts) {
        fn json<T: serde::Serialize>(value: &T, empty: bool) -> Option<String> {
            if empty { None } else { serde_json::to_string(value).ok() }
        }
        row.usage_by_model = json(&self.models, self.models.is_empty());
        row.abandoned = self.abandoned.column();
        row.drift = json(&self.drift, self.drift.is_empty());
        let mut redactions = self.redactions.clone();
        for (kind, count) in masked.0 {
            *redactions.entry(kind).or_default() += count;
        }
        row.redactions = json(&redactions, redactions.is_empty());
    }

    /// Adds the tokens of an own event, and remembers its request.
    pub(crate) fn usage(
        &mut self,
        model: Option<&str>,
        draft: &Draft<'_>,
        requests: &mut LastRequests,
    ) {
        let prompt = Usage { output: None, ..draft.usage }.total();
        let mut prompt = prompt;
        if let Some(id) = draft.request_id {
            match requests.iter_mut().find(|(known, _)| known == id) {
                Some((_, longest)) => {
                    prompt = prompt.max(*longest);
                    *longest = prompt;
                }
                None => requests.push_front((id.to_owned(), prompt)),
            }
            requests.truncate(REQUESTS);
        }
        // A shutdown record sums up many requests, so it has no prompt length.
        let prompt = if draft.subtype == Some("shutdown") { 0 } else { prompt };
        let over = LONG_PROMPTS.iter().rfind(|size| prompt > **size).copied().unwrap_or(0);
        let place = |models: &[ModelUsage], model: Option<&str>| {
            let same = |entry: &ModelUsage| entry.model.as_deref() == model;
            models.iter().position(|entry| same(entry) && entry.prompt_over == over)
        };
        let full = self.models.len() >= MODELS;
        let model = model.filter(|model| !full || place(&self.models, Some(*model)).is_some());
        match place(&self.models, model).and_then(|at| self.models.get_mut(at)) {
            Some(entry) => entry.usage = entry.usage.plus(draft.usage),
            None => {
                let model = model.map(str::to_owned);
                self.models.push(ModelUsage { model, prompt_over: over, usage: draft.usage });
            }
        }
    }

    /// Counts an item unknown to the decoder.
    pub(crate) fn drift(&mut self, kind: &str, name: &str) {
        let end = name.char_indices().nth(DRIFT_NAME_CHARS).map_or(name.len(), |(at, _)| at);
        let mut key = [kind, ":", &name[..end]].concat();
        if let Some(count) = self.drift.get_mut(&key) {
            *count += 1;
            return;
        }
        if self.drift.len() >= DRIFT_NAMES {
            key = format!("{kind}:...");
        }
        *self.drift.entry(key).or_default() += 1;
    }

    /// Adds a range of abandoned events.
    pub(crate) fn abandon(&mut self, first: i32, last: i32) {
        self.abandoned.add(first, last);
    }

    /// Replaces all abandoned ranges by the ranges `first..end`.
    pub(crate) fn abandon_only(&mut self, ranges: &[(i32, i32)]) {
        self.abandoned = Abandoned::default();
        ranges.iter().for_each(|(first, end)| self.abandoned.add(*first, end - 1));
    }
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
            let draft = Draft { usage, request_id: Some(id), ..Draft::default() };
            ledger.usage(Some("m"), &draft, &mut requests);
        };
        count(usage, "r");
        let long = Usage { cache_read: Some(300_000), ..Usage::default() };
        count(long, "s");
        count(usage, "t");
        let rest = Usage { output: Some(9), ..Usage::default() };
        count(rest, "s");
        ledger.drift("record", "odd");
        ledger.abandon(10, 12);
        ledger.abandon(3, 20);
        ledger.abandon(30, 31);
        let masked = redact::Counts(Counts::from([("github_token".to_owned(), 2)]));
        let mut row = SessionRow::default();
        ledger.write(&mut row, masked.clone());
        assert_eq!(row.abandoned.as_deref(), Some("3-20,30-31"));
        assert_eq!(row.drift.as_deref(), Some(r#"{"record:odd":1}"#));
        let models: Vec<ModelUsage> =
            serde_json::from_str(row.usage_by_model.as_deref().expect("models")).expect("json");
        assert_eq!(models.len(), 2);
        assert_eq!(models[1].usage.output, Some(9), "the rest of a long request is long too");
        let mut again = SessionRow::default();
        Ledger::of(&row).write(&mut again, redact::Counts::default());
        assert_eq!(again, row);
        Ledger::of(&row).write(&mut again, masked);
        assert_eq!(again.redactions.as_deref(), Some(r#"{"github_token":4}"#));
    }

    #[test]
    fn models_have_an_end_and_their_tokens_none() {
        let (mut ledger, mut requests) = (Ledger::default(), LastRequests::new());
        let usage = Usage { output: Some(1), ..Usage::default() };
        let draft = Draft { usage, ..Draft::default() };
        for round in 0..2 {
            for model in 0..1000 {
                ledger.usage(Some(&format!("m{model}")), &draft, &mut requests);
            }
            assert_eq!(ledger.models.len(), MODELS + 1, "{round}");
        }
        let sum: Usage = ledger.models.iter().fold(Usage::default(), |sum, m| sum.plus(m.usage));
        assert_eq!(sum.output, Some(2000));
        let nameless: Vec<_> = ledger.models.iter().filter(|m| m.model.is_none()).collect();
        assert_eq!(nameless.len(), 1);
        assert_eq!(nameless[0].usage.output, Some(2 * (1000 - 256)));
    }
}
