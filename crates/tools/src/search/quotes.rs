//! Quotes the texts of matches. The best matches of one session are shown with more than a snippet:
//! a question about one session asks for the answer, not for its place.

use schemas::tool::search::Match;
use schemas::{EventType, ToolError, ToolKind, limits};

use crate::error::store_error;
use crate::reply::rows::{EventLinks, convert_whole_event, read_events};
use crate::reply::shown::read_diff;
use crate::reply::text_share::{TextSize, share_room};
use base::json_length::json_length;
use base::sanitize::{clean_text, cut_for_json};
use search::{SearchHit, Snippet, cut_snippet};
use store::Snapshot;

/// Maximum size of the diff of a match in bytes of JSON.
const MAX_DIFF_BYTES: usize = 600;

/// Replaces the snippets of matches by as much of their texts as fits. `hits` are those of
/// the matches, in the same order.
pub(super) fn show_texts(
    snapshot: &Snapshot,
    matches: &mut [Match],
    hits: &[SearchHit],
) -> Result<(), ToolError> {
    let mut texts = Vec::new();
    let mut sizes = Vec::new();
    for (place, (found, hit)) in matches.iter().zip(hits).enumerate() {
        let end = hit.event_index.saturating_add(1);
        let event = read_events(snapshot, hit.session, hit.event_index, end)?.pop();
        let text = event.map(|event| event.text).unwrap_or_default();
        sizes.push(TextSize {
            bytes: json_length(&clean_text(&text)),
            least: json_length(&found.snippet),
            most: most_bytes(found.event_type, place),
        });
        texts.push(text);
    }

    let shares = share_room(&sizes, limits::SESSION_TEXTS_BYTES);
    for (((found, hit), text), (size, share)) in
        matches.iter_mut().zip(hits).zip(&texts).zip(sizes.iter().zip(shares))
    {
        if share > size.least {
            found.snippet = quote_text(text, hit, share);
        }
    }
    Ok(())
}

/// Returns the first lines of the diff of a match; `None` if it is not an edit.
pub(super) fn quote_diff(
    snapshot: &Snapshot,
    found: &Match,
    hit: &SearchHit,
) -> Result<Option<String>, ToolError> {
    let kind = found.tool_name.as_deref().map(ToolKind::from_name);
    if found.event_type != EventType::ToolCall || kind != Some(ToolKind::Edit) {
        return Ok(None);
    }
    let end = hit.event_index.saturating_add(1);
    let row = read_events(snapshot, hit.session, hit.event_index, end)?.pop();
    let session = snapshot.sessions()[hit.session].row().map_err(store_error)?;
    let event = row.map(|row| convert_whole_event(&row, session, &EventLinks::default()));
    let diff = event.and_then(|event| read_diff(&event, None));
    Ok(diff.map(|diff| cut_for_json(&diff.text, MAX_DIFF_BYTES)))
}

/// Returns the most bytes of the text of the match at a place. What a command printed is rarely the
/// answer, and neither is a match after the best ones.
fn most_bytes(event_type: EventType, place: usize) -> usize {
    match event_type {
        EventType::User | EventType::Message if place < limits::WHOLE_MATCHES => {
            limits::SESSION_TEXTS_BYTES
        }
        EventType::User | EventType::Message | EventType::Reasoning | EventType::ToolCall => {
            limits::SESSION_CALL_BYTES
        }
        EventType::ToolResult | EventType::Notification | EventType::TokenUsage => {
            limits::SESSION_RESULT_BYTES
        }
    }
}

/// Returns the part of a text around its snippet that takes about `bytes` bytes of JSON.
fn quote_text(text: &str, hit: &SearchHit, bytes: usize) -> String {
    let [chars_before, _] = hit.snippet.omitted;
    let start = text.char_indices().nth(chars_before).map_or(text.len(), |(at, _)| at);
    let end = start + hit.snippet.text.len();
    // Fewer characters take more bytes if they are escaped or not ASCII.
    let chars = bytes * text.chars().count() / json_length(&text).max(1);
    cut_for_json(&quote_snippet(&cut_snippet(text, start, end, chars)), bytes)
}

/// Returns a snippet with ellipses at its cuts.
pub(super) fn quote_snippet(snippet: &Snippet) -> String {
    let [before, after] = snippet.omitted;
    let start = if before > 0 { "…" } else { "" };
    let end = if after > 0 { "…" } else { "" };
    format!("{start}{}{end}", clean_text(&snippet.text).trim())
}
