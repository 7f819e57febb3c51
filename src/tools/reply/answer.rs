//! Wraps the reply of a tool in the envelope that all answers share.

use std::collections::BTreeMap;

use memchr::memmem;
use schemas::envelope::{Answer, Metadata, Pagination, Severity, Status, Warning, WarningCode};
use schemas::limits::BYTES_PER_TOKEN;
use schemas::{Timestamp, ToolError};
use serde::Serialize;

use super::call::{Call, View};
use super::convert;
use crate::store::Snapshot;

/// The start of the text that replaces a masked secret; the kind of secret follows.
const MASK: &[u8] = b"[REDACTED:";

/// Maximum length in bytes of the name of a kind of secret.
const KIND_BYTES: usize = 32;

/// A tool's data, and the facts about it for the envelope.
pub(crate) struct Reply<T> {
    pub(crate) data: T,
    pub(crate) returned: usize,
    /// The number of rows on the pages before this one.
    pub(crate) before: usize,
    /// The number of rows over all pages, and whether it is exact.
    pub(crate) total: Option<(usize, bool)>,
    pub(crate) next_cursor: Option<String>,
    /// True if more rows were left out than a cursor can reach.
    pub(crate) truncated: bool,
    pub(crate) hint: Option<String>,
    pub(crate) warnings: Vec<Warning>,
}

impl<T> Reply<T> {
    pub(crate) fn new(data: T, returned: usize) -> Self {
        Self {
            data,
            returned,
            before: 0,
            total: None,
            next_cursor: None,
            truncated: false,
            hint: None,
            warnings: Vec::new(),
        }
    }
}

/// Runs a tool on the view of a call, and wraps its reply in the envelope.
pub(crate) fn envelope<T: Serialize>(
    call: &Call<'_>,
    View { snapshot, freshness }: &View,
    tool: impl FnOnce(&Snapshot) -> Result<Reply<T>, ToolError>,
) -> Result<Answer<T>, ToolError> {
    let reply = tool(snapshot)?;
    let manifest = snapshot.manifest();
    let newest = manifest.segments.iter().filter_map(|segment| segment.times);
    let newest = convert::time(newest.map(|(_, newest)| newest).max());
    let updated = Timestamp(manifest.updated_at).to_string();
    let more = reply
        .next_cursor
        .as_ref()
        .map(|cursor| more_sentence(cursor, reply.before + reply.returned, reply.total));
    let empty = (reply.returned == 0).then(|| {
        let newest = newest.as_deref().unwrap_or("no known time");
        format!(
            "The index was updated at {updated}; its newest event is of {newest}.{}",
            freshness.why_empty()
        )
    });
    let hint: Vec<String> = [more, reply.hint, empty].into_iter().flatten().collect();
    let mut warnings = reply.warnings;
    warnings.extend(snapshot.labels().damage().map(|damage| {
        let message = format!("labels.json cannot be read, so labels are missing: {damage}");
        Warning::new(WarningCode::LabelsUnreadable, Severity::Warning, message)
    }));
    warnings.extend(freshness.warnings());
    let mut answer = Answer {
        status: Status::Ok,
        pagination: Some(Pagination {
            total_in_page: reply.returned,
            has_more: reply.next_cursor.is_some(),
            next_cursor: reply.next_cursor.clone(),
        }),
        data: reply.data,
        hint: (!hint.is_empty()).then(|| hint.join(" ")),
        warnings,
        metadata: Metadata {
            tokens: 0,
            duration_ms: 0,
            timestamp: Timestamp::now().to_string(),
            cached: false,
            results_total: reply.total.map(|(total, _)| total),
            results_total_is: reply.total.filter(|(_, exact)| !exact).map(|_| "at_least"),
            results_returned: reply.returned,
            results_truncated: reply.truncated || reply.next_cursor.is_some(),
            index_size: snapshot.events(),
            index_last_updated: (manifest.generation > 0).then_some(updated),
            newest_event: newest,
        },
    };
    let json = serde_json::to_vec(&answer).unwrap_or_default();
    answer.warnings.extend(masked(&json));
    answer.metadata.tokens = json.len().div_ceil(BYTES_PER_TOKEN);
    answer.metadata.duration_ms = u64::try_from(call.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(answer)
}

/// Returns the sentence about further pages, which clients that show only the text also need.
/// `seen` is the number of rows on this page and the pages before it.
fn more_sentence(cursor: &str, seen: usize, total: Option<(usize, bool)>) -> String {
    let rest = match total {
        // At least one row follows: the rest of a row that was cut in the middle.
        Some((total, true)) => format!("{} more.", total.saturating_sub(seen).max(1)),
        Some((total, false)) => format!("At least {} more.", total.saturating_sub(seen)),
        None => "There is more.".to_owned(),
    };
    format!("{rest} Pass cursor '{cursor}' to see the next page.")
}

/// Returns a warning that names the kinds of secrets masked in an answer.
fn masked(json: &[u8]) -> Option<Warning> {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for at in memmem::find_iter(json, MASK) {
        let rest = json.get(at + MASK.len()..).unwrap_or_default();
        let end = rest.iter().take(KIND_BYTES).position(|byte| *byte == b']');
        let kind = end.and_then(|end| std::str::from_utf8(rest.get(..end)?).ok());
        let kind = kind.filter(|kind| kind.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'));
        // A snippet may end inside the mask.
        *kinds.entry(kind.unwrap_or("unknown")).or_default() += 1;
    }
    let total: usize = kinds.values().sum();
    (total > 0).then(|| {
        let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
        let message = format!("{total} secrets are masked in this answer: {}", kinds.join(", "));
        Warning::new(WarningCode::Redacted, Severity::Info, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_counted_by_kind() {
        assert_eq!(masked(br#"{"text":"nothing"}"#), None);
        let json = br#"["[REDACTED:github_token] [REDACTED:jwt]","[REDACTED:jwt]","[REDACTED:g"]"#;
        let warning = masked(json).expect("masked");
        assert_eq!(warning.code, WarningCode::Redacted);
        assert!(warning.message.ends_with("github_token 1, jwt 2, unknown 1"), "{warning:?}");
    }
}
