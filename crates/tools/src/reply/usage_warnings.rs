//! Warns about tokens that an answer cannot price or does not include.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemas::envelope::{Severity, Warning, WarningCode};
use schemas::price::PriceTable;
use schemas::session::SessionRow;

use super::convert::parse_counts;
use base::sanitize::{clean_text, cut_for_json};

/// Prefix of the names of drift under which records with uncounted tokens are kept.
const UNCOUNTED_PREFIX: &str = "usage:";

/// Maximum number of names in one warning, and their size in bytes of JSON: most fit a line.
const MAX_NAMES: usize = 1;
const MAX_NAME_BYTES: usize = 60;

/// Returns the warnings about the tokens and costs of sessions on the days, in UTC, that `has_day`
/// accepts.
pub fn usage_warnings<'r>(
    rows: impl IntoIterator<Item = &'r Arc<SessionRow>>,
    prices: &PriceTable,
    has_day: &dyn Fn(&str) -> bool,
) -> Vec<Warning> {
    let mut modes = BTreeSet::new();
    let mut records = BTreeSet::new();
    for row in rows {
        let unpriced = row.model_usage().into_iter().filter(|entry| {
            let model = entry.model.as_deref().unwrap_or("");
            let day = entry.day.as_deref();
            day.is_none_or(has_day)
                && !entry.mode.is_standard()
                && prices.rate_in_mode(model, &entry.mode, day).is_none()
        });
        modes.extend(unpriced.map(|entry| clean_text(&entry.name())));
        records.extend(uncounted_records(row));
    }

    let mut warnings = Vec::new();
    if !modes.is_empty() {
        let message = format!("No price for {}; you can add it to prices.toml", list_names(&modes));
        warnings.push(Warning::new(WarningCode::UnknownPriceMode, Severity::Warning, message));
    }
    if !records.is_empty() {
        let message =
            format!("Tokens not counted: {}. See `sessions doctor`", list_names(&records));
        warnings.push(Warning::new(WarningCode::UsageIncomplete, Severity::Warning, message));
    }
    warnings
}

/// Returns the records of a session with tokens that its decoder did not count, as
/// `codex event_msg/odd`.
pub fn uncounted_records(row: &SessionRow) -> Vec<String> {
    let drift = parse_counts(row.drift.as_ref());
    let names = drift.keys().filter_map(|name| name.strip_prefix(UNCOUNTED_PREFIX));
    names.map(|name| format!("{} {}", row.provider, clean_text(name))).collect()
}

/// Lists names, separated by commas.
fn list_names(names: &BTreeSet<String>) -> String {
    let shown = names.iter().take(MAX_NAMES);
    let shown: Vec<String> = shown.map(|name| cut_for_json(name, MAX_NAME_BYTES)).collect();
    let more = names.len() - shown.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_a_line() {
        let names = ["a", "b", "c"].map(|letter| letter.repeat(80));
        let listed = list_names(&BTreeSet::from(names));
        assert_eq!(listed, format!("{}… and 2 more", "a".repeat(60)));
    }
}
