//! Wraps the reply of a tool in the envelope that all answers share.

use std::collections::BTreeMap;

use ingest::redact::masked_kinds;
use schemas::envelope::{
    EncodedAnswer, EncodedData, Metadata, Pagination, Severity, Status, ToolAnswer, Warning,
    WarningCode,
};
use schemas::limits::BYTES_PER_TOKEN;
use schemas::{ErrorCode, Timestamp, ToolError};
use serde::Serialize;

use super::call::Call;
use super::convert;
use super::history::CallView;
pub use super::history::RowTotal;
use super::store_warnings::store_warnings;
use base::numbers::list_counts;
use store::Snapshot;

/// The start of the text that replaces a masked secret; the kind of secret follows.
const MASK: &str = "[REDACTED:";

/// A tool's data, and the facts about it for the envelope.
pub struct Reply<T> {
    pub data: T,
    pub returned: usize,
    /// The number of rows on the pages before this one.
    pub before: usize,
    pub total: Option<RowTotal>,
    pub next_cursor: Option<String>,
    /// True if more rows were left out than a cursor can reach.
    pub is_truncated: bool,
    pub hint: Option<String>,
    /// The sessions that the answer covers; `None` if it is not about sessions of the store.
    pub scope: Option<String>,
    pub warnings: Vec<Warning>,
    /// The confidence of the best match, if the matches are ranked.
    pub best_confidence: Option<f64>,
}

/// Confidence below which ranked matches are left out: none is.
const CONFIDENCE_THRESHOLD: f64 = 0.0;

impl<T> Reply<T> {
    pub fn new(data: T, returned: usize) -> Self {
        Self {
            data,
            returned,
            before: 0,
            total: None,
            next_cursor: None,
            is_truncated: false,
            hint: None,
            scope: None,
            warnings: Vec::new(),
            best_confidence: None,
        }
    }

    /// Replaces the data.
    pub fn map<U>(self, replace: impl FnOnce(T) -> U) -> Reply<U> {
        Reply {
            data: replace(self.data),
            returned: self.returned,
            before: self.before,
            total: self.total,
            next_cursor: self.next_cursor,
            is_truncated: self.is_truncated,
            hint: self.hint,
            scope: self.scope,
            warnings: self.warnings,
            best_confidence: self.best_confidence,
        }
    }

    /// Returns true if rows were left out that no cursor reaches.
    fn has_unshown_rows(&self) -> bool {
        let total = match self.total {
            Some(RowTotal::Exact(rows) | RowTotal::AtLeast(rows)) => rows,
            None => 0,
        };
        self.is_truncated && total > self.before + self.returned
    }
}

/// What a tool returns.
pub type AnswerResult<T> = Result<EncodedAnswer<T>, ToolError>;

/// Runs a tool on the snapshot of a call, and wraps its reply in the envelope.
pub fn run_and_wrap<T: Serialize>(
    call: &Call<'_>,
    view: &CallView,
    tool: impl FnOnce(&Snapshot) -> Result<Reply<T>, ToolError>,
) -> AnswerResult<T> {
    let CallView { snapshot, freshness, examined } = view;
    let mut reply = tool(snapshot)?;
    if let Some(examined) = examined.as_ref().filter(|part| !part.description.is_empty()) {
        examined.append_to(reply.scope.get_or_insert_with(|| "the lake".to_owned()));
    }
    let manifest = snapshot.manifest();
    let newest = match examined {
        // The store has the events of some sessions only.
        Some(_) => snapshot.sessions().iter().filter_map(|session| session.ended_at).max(),
        None => snapshot.newest_event(),
    };
    let newest = convert::format_time(newest);
    let updated = Timestamp(manifest.updated_at).to_string();

    let has_more = reply.next_cursor.is_some() || reply.has_unshown_rows();
    let mut hints = Vec::new();
    if reply.next_cursor.is_some() {
        hints.push(describe_next_page(reply.before + reply.returned, reply.total));
    }
    hints.extend(reply.hint);
    if reply.returned == 0 {
        let newest_note = match &newest {
            Some(newest) => format!("its newest event is from {newest}"),
            None => "none of its events has a time".to_owned(),
        };
        let why_empty = freshness.describe_unknown_files();
        hints.push(format!("The index was updated at {updated}; {newest_note}.{why_empty}"));
    }

    let mut warnings = reply.warnings;
    warnings.extend(store_warnings(snapshot));
    warnings.extend(freshness.warnings());

    let (results_total, results_total_is) = match reply.total {
        Some(RowTotal::Exact(rows)) => (Some(rows), None),
        Some(RowTotal::AtLeast(rows)) => (Some(rows), Some("at_least")),
        None => (None, None),
    };
    let mut answer = ToolAnswer {
        status: Status::Ok,
        pagination: Some(Pagination {
            total_in_page: reply.returned,
            has_more,
            next_cursor: reply.next_cursor.clone(),
        }),
        data: EncodedData::new(reply.data).map_err(encoding_error)?,
        hint: (!hints.is_empty()).then(|| hints.join(" ")),
        warnings,
        metadata: Metadata {
            tokens: 0,
            duration_ms: 0,
            timestamp: Timestamp::now().to_string(),
            cached: false,
            results_total,
            results_total_is,
            scope: reply.scope,
            results_returned: reply.returned,
            results_truncated: reply.is_truncated || reply.next_cursor.is_some(),
            confidence: reply.best_confidence,
            threshold: reply.best_confidence.map(|_| CONFIDENCE_THRESHOLD),
            index_size: count_events(snapshot, examined.is_none()),
            index_last_updated: (manifest.generation > 0).then_some(updated),
            newest_event: newest,
            debug: None,
        },
    };

    // The data is copied here, not written again.
    let json = serde_json::to_vec(&answer).map_err(encoding_error)?;
    answer.warnings.extend(redaction_warning(&json));
    answer.metadata.tokens = json.len().div_ceil(BYTES_PER_TOKEN);
    answer.metadata.duration_ms = u64::try_from(call.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(answer)
}

/// Returns the number of events that can be found, which the store may not have all.
fn count_events(snapshot: &Snapshot, has_all_events: bool) -> u64 {
    if has_all_events {
        return snapshot.event_count();
    }
    let events = snapshot.sessions().iter().map(|session| session.events);
    events.map(|events| u64::try_from(events).unwrap_or(0)).sum()
}

/// Returns the error for data that cannot be written as JSON.
#[expect(clippy::needless_pass_by_value, reason = "the form that `map_err` takes")]
pub fn encoding_error(error: serde_json::Error) -> ToolError {
    let message = format!("the answer cannot be written as JSON, which is a bug: {error}");
    ToolError::new(ErrorCode::InternalError, message)
}

/// Returns the sentence about further pages, which clients that show only the text also need.
/// `seen` is the number of rows on this page and the pages before it.
fn describe_next_page(seen: usize, total: Option<RowTotal>) -> String {
    let rest = match total {
        // At least one row follows: the rest of a row that was cut in the middle.
        Some(RowTotal::Exact(rows)) => format!("{} more", rows.saturating_sub(seen).max(1)),
        Some(RowTotal::AtLeast(rows)) if rows > seen => format!("At least {} more", rows - seen),
        Some(RowTotal::AtLeast(_)) => "There may be more".to_owned(),
        None => "There is more".to_owned(),
    };
    format!("{rest}: pass pagination.next_cursor as cursor.")
}

/// Returns a warning that names the kinds of secrets masked in an answer.
pub fn redaction_warning(json: &[u8]) -> Option<Warning> {
    let json = std::str::from_utf8(json).ok()?;
    let total = json.matches(MASK).count();
    if total == 0 {
        return None;
    }
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    for kind in masked_kinds(json).filter(|kind| kind.bytes().all(is_name)) {
        *counts.entry(kind).or_default() += 1;
    }
    // A snippet may end inside the mask.
    let unnamed = total - counts.values().sum::<usize>();
    if unnamed > 0 {
        counts.insert("unknown", unnamed);
    }
    let message = format!("{total} secrets are masked in this answer: {}", list_counts(&counts));
    Some(Warning::new(WarningCode::Redacted, Severity::Info, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_counted_by_kind() {
        assert_eq!(redaction_warning(br#"{"text":"nothing"}"#), None);
        let json = br#"["[REDACTED:github_token] [REDACTED:k3s_token]","[REDACTED:k3s_token]","[REDACTED:g"]"#;
        let warning = redaction_warning(json).expect("masked");
        assert_eq!(warning.code, WarningCode::Redacted);
        assert!(warning.message.ends_with("github_token 1, k3s_token 2, unknown 1"), "{warning:?}");
    }
}
