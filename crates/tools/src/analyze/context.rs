//! Reports how the context grew, request by request, and what compactions lost.

use std::collections::{HashMap, HashSet};

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Context, Finding, Lost};
use schemas::{EventType, Usage};

use super::action::Action;
use super::finding::finding_at;
use crate::reply::convert;
use crate::reply::convert::shorten;
use crate::reply::event_predicates::{is_prompt, is_type, own_rows, shows_compaction};
use base::paths::last_part;

/// Minimum growth in tokens of one request that is reported.
const MIN_JUMP_TOKENS: i64 = 20_000;

/// Divisor of the tokens before a request: its growth is reported if it is at least that part of
/// them.
const JUMP_PART: i64 = 4;

/// Minimum growth in tokens that is a warning.
const MIN_LARGE_JUMP_TOKENS: i64 = 50_000;

/// Maximum number of requests shown for a session.
const MAX_REQUESTS: usize = 30;

/// Maximum number of lost prompts shown.
const MAX_PROMPTS: usize = 5;

/// Maximum size in bytes of a shown prompt.
const MAX_PROMPT_BYTES: usize = 160;

/// Maximum number of lost files shown.
const MAX_FILES: usize = 10;

/// Maximum size in bytes of a shown path.
const MAX_PATH_BYTES: usize = 200;

/// Size in bytes of the beginning of a prompt. A prompt counts as summarized if the summary contains
/// it, or at least [`MIN_WORDS_PERCENT`] of the prompt's words.
const BEGINNING_BYTES: usize = 60;

/// Minimum percentage of the words of a summarized prompt that the summary contains.
const MIN_WORDS_PERCENT: usize = 40;

/// Number of leading letters that are compared: words with the same beginning are treated as equal.
const COMPARED_LETTERS: usize = 4;

/// One request of the main agent.
struct ModelRequest<'r> {
    /// The first and the last row that count the request's tokens.
    first: &'r EventRow,
    last: &'r EventRow,
    tokens: i64,
}

/// Returns the overview of the context, and the findings about it.
pub(super) fn analyze_context(
    rows: &[EventRow],
    actions: &[Action<'_>],
) -> (Option<Context>, Vec<Finding>) {
    let own = own_rows(rows);
    let requests = collect_requests(&own);
    let compactions = collect_compactions(&own);
    let mut found = Vec::new();
    let mut last_compacted = -1;
    for compaction in &compactions {
        found.extend(compaction_finding(rows, actions, &requests, last_compacted, compaction));
        last_compacted = compaction.last().map_or(last_compacted, |row| row.event_index);
    }
    for pair in requests.windows(2) {
        if let [before, after] = pair {
            found.extend(jump_finding(&own, before, after));
        }
    }
    (summarize_requests(&requests, compactions.len()), found)
}

/// Returns the tokens sent with a request: input, including tokens read from or written to a cache.
fn sent_tokens(usage: Usage) -> i64 {
    Usage { output: None, ..usage }.total()
}

/// Returns the requests in order, without those that sent no tokens. Several rows may count the
/// tokens of one request.
fn collect_requests<'r>(own: &[&'r EventRow]) -> Vec<ModelRequest<'r>> {
    let mut requests: Vec<ModelRequest<'r>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for row in own.iter().copied() {
        // A subtype marks a sum over several requests, or a request outside the conversation.
        if !is_type(row, EventType::TokenUsage) || row.subtype.is_some() {
            continue;
        }
        let tokens = sent_tokens(row.usage());
        let same = row.request_id.as_deref().and_then(|id| known.get(id)).copied();
        if let Some(request) = same.and_then(|at| requests.get_mut(at)) {
            request.tokens = request.tokens.saturating_add(tokens);
            request.last = row;
            continue;
        }
        if let Some(id) = row.request_id.as_deref() {
            known.insert(id, requests.len());
        }
        requests.push(ModelRequest { first: row, last: row, tokens });
    }
    requests.retain(|request| request.tokens > 0);
    requests
}

/// Sums up the requests; of many requests, only some are shown.
fn summarize_requests(requests: &[ModelRequest<'_>], compactions: usize) -> Option<Context> {
    let first = requests.first()?;
    let last = requests.last()?;
    let peak = requests.iter().max_by_key(|request| request.tokens)?;
    let step = requests.len().div_ceil(MAX_REQUESTS).max(1);
    let mut series = Vec::new();
    for (at, request) in requests.iter().enumerate() {
        let is_last = at + 1 == requests.len();
        let is_peak = request.first.event_index == peak.first.event_index;
        if at % step == 0 || is_last || is_peak {
            series.push([i64::from(request.first.event_index), request.tokens]);
        }
    }
    Some(Context {
        requests: requests.len(),
        first_tokens: first.tokens,
        peak_tokens: peak.tokens,
        peak_event_id: convert::event_id(peak.first),
        last_tokens: last.tokens,
        compactions,
        series,
    })
}

/// Returns a finding if a request was sent many more tokens than the one before. The finding is at
/// the largest text between the two.
fn jump_finding(
    own: &[&EventRow],
    before: &ModelRequest<'_>,
    after: &ModelRequest<'_>,
) -> Option<Finding> {
    let growth = after.tokens - before.tokens;
    if growth < MIN_JUMP_TOKENS || growth.saturating_mul(JUMP_PART) < before.tokens {
        return None;
    }
    let between = before.last.event_index..after.first.event_index;
    let largest = own
        .iter()
        .filter(|row| between.contains(&row.event_index) && adds_context(row))
        .max_by_key(|row| row.text.len());
    let (shown, cause) = match largest {
        Some(row) => {
            let kind = row.event_type;
            let bytes = row.text.len();
            (*row, format!("the largest text before it is this {kind} of {bytes} bytes"))
        }
        None => (after.first, "the log shows no text before it".to_owned()),
    };
    let severity = if growth >= MIN_LARGE_JUMP_TOKENS { Severity::Warning } else { Severity::Info };
    let reason =
        format!("The context grew by {growth} tokens to {} in one request; {cause}", after.tokens);
    Some(Finding {
        tokens: Some(growth),
        bytes: largest.map(|row| row.text.len()),
        related_event_ids: largest.map(|_| convert::event_id(after.first)).into_iter().collect(),
        ..finding_at(Check::Context, severity, shown, reason)
    })
}

/// Returns true if a row is of a type that adds to the context of the next request.
fn adds_context(row: &EventRow) -> bool {
    matches!(row.event_type, EventType::User | EventType::ToolResult | EventType::Notification)
}

/// Returns the records of each compaction. They are contiguous: nothing from the model comes
/// between them.
fn collect_compactions<'r>(own: &[&'r EventRow]) -> Vec<Vec<&'r EventRow>> {
    let mut compactions: Vec<Vec<&EventRow>> = Vec::new();
    let mut is_in_compaction = false;
    for row in own.iter().copied() {
        if !shows_compaction(row) {
            if is_type(row, EventType::Message) || is_type(row, EventType::ToolCall) {
                is_in_compaction = false;
            }
            continue;
        }
        match compactions.last_mut() {
            Some(compaction) if is_in_compaction => compaction.push(row),
            _ => compactions.push(vec![row]),
        }
        is_in_compaction = true;
    }
    compactions
}

/// Returns a finding for a compaction, with what it lost. `last_compacted` is the index of the last
/// event of the previous compaction; -1 if there is none.
fn compaction_finding(
    rows: &[EventRow],
    actions: &[Action<'_>],
    requests: &[ModelRequest<'_>],
    last_compacted: i32,
    compaction: &[&EventRow],
) -> Option<Finding> {
    let first = compaction.first()?;
    let request_before =
        requests.iter().rfind(|request| request.last.event_index < first.event_index);
    let tokens_before = request_before.map(|request| request.tokens);
    let size = describe_size(requests, compaction, tokens_before);
    let covered = last_compacted..first.event_index;
    let prompts: Vec<&EventRow> =
        rows.iter().filter(|row| covered.contains(&row.event_index) && is_prompt(row)).collect();
    let files = named_files(actions, &covered);
    let summary = compaction.iter().filter(|row| has_summary(row)).max_by_key(|row| row.text.len());
    let Some(summary) = summary else {
        let reason = format!(
            "Compacted{size}; the log does not contain the summary, so what it keeps of {} prompts \
            and {} files is unknown",
            prompts.len(),
            files.len()
        );
        return Some(Finding {
            tokens: tokens_before,
            ..finding_at(Check::Context, Severity::Info, first, reason)
        });
    };

    let summary_content = CompactionSummary::from_text(&summary.text);
    let lost_prompts: Vec<_> =
        prompts.iter().filter(|row| !summary_content.mentions_prompt(&row.text)).collect();
    let lost_files: Vec<_> =
        files.iter().filter(|path| !summary_content.mentions_file(path)).collect();
    let reason = format!(
        "Compacted{size}; the summary leaves out {} of {} prompts and {} of {} files",
        lost_prompts.len(),
        prompts.len(),
        lost_files.len(),
        files.len()
    );
    let severity = if lost_prompts.is_empty() { Severity::Info } else { Severity::Warning };
    let shown_prompts = lost_prompts.iter().take(MAX_PROMPTS);
    let shown_files = lost_files.iter().take(MAX_FILES);
    let lost = Lost {
        prompts_omitted: lost_prompts.len().saturating_sub(MAX_PROMPTS),
        prompts: shown_prompts.map(|row| convert::text_excerpt(row, MAX_PROMPT_BYTES)).collect(),
        files_omitted: lost_files.len().saturating_sub(MAX_FILES),
        files: shown_files.map(|path| shorten(path, MAX_PATH_BYTES)).collect(),
    };
    let is_elsewhere = summary.event_index != first.event_index;
    Some(Finding {
        tokens: tokens_before,
        related_event_ids: is_elsewhere.then(|| convert::event_id(summary)).into_iter().collect(),
        lost: Some(lost).filter(|lost| *lost != Lost::default()),
        ..finding_at(Check::Context, severity, first, reason)
    })
}

/// Describes the tokens of the requests before and after a compaction.
fn describe_size(
    requests: &[ModelRequest<'_>],
    compaction: &[&EventRow],
    before: Option<i64>,
) -> String {
    let last = compaction.last().map_or(-1, |row| row.event_index);
    let after = requests.iter().find(|request| request.first.event_index > last);
    match (before, after) {
        (Some(before), Some(after)) => format!(" from {before} to {} tokens", after.tokens),
        (Some(before), None) => format!(" at {before} tokens"),
        (None, _) => String::new(),
    }
}

/// Returns true if a record of a compaction contains a summary. Some agents record only that a
/// compaction happened.
fn has_summary(row: &EventRow) -> bool {
    let text = row.text.trim();
    !text.is_empty() && !text.to_ascii_lowercase().ends_with("compacted")
}

/// Returns the files that calls named: edited files first, and the most recent first in each group.
fn named_files<'r>(actions: &[Action<'r>], covered: &std::ops::Range<i32>) -> Vec<&'r str> {
    let mut files: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    for must_edit in [true, false] {
        for action in actions.iter().rev() {
            if action.is_edit() != must_edit || !covered.contains(&action.call.event_index) {
                continue;
            }
            for path in action.files() {
                if known.insert(path) {
                    files.push(path);
                }
            }
        }
    }
    files
}

/// The summary of a compaction, prepared for lookups.
struct CompactionSummary {
    /// In lower case, with single spaces.
    text: String,
    words: HashSet<String>,
}

impl CompactionSummary {
    fn from_text(text: &str) -> Self {
        let text = normalize_text(text);
        let words = word_beginnings(&text).map(str::to_owned).collect();
        Self { text, words }
    }

    /// Returns true if the summary contains enough of a prompt.
    fn mentions_prompt(&self, prompt: &str) -> bool {
        let prompt = normalize_text(prompt);
        let beginning = &prompt[..prompt.floor_char_boundary(BEGINNING_BYTES)];
        if self.text.contains(beginning) {
            return true;
        }
        let own: HashSet<&str> = word_beginnings(&prompt).collect();
        let shared = own.iter().filter(|word| self.words.contains(**word)).count();
        // A prompt such as "yes, go on" has nothing to lose.
        own.len() < 3 || 100 * shared >= MIN_WORDS_PERCENT * own.len()
    }

    /// Returns true if the summary contains the name of a file.
    fn mentions_file(&self, path: &str) -> bool {
        let name = last_part(path).to_lowercase();
        self.text.contains(&name)
    }
}

/// Converts a text to lower case with single spaces.
fn normalize_text(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first letters of the words that are long enough to be informative.
fn word_beginnings(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    let long = words.filter(|word| word.len() >= COMPARED_LETTERS);
    long.map(|word| match word.char_indices().nth(COMPARED_LETTERS) {
        Some((at, _)) => &word[..at],
        None => word,
    })
}

#[cfg(test)]
mod tests {
    use super::super::action::pair_calls;
    use super::*;

    fn row(index: i32, kind: EventType, subtype: Option<&str>, text: &str) -> EventRow {
        EventRow {
            session_id: "s".to_owned(),
            event_index: index,
            event_type: kind,
            subtype: subtype.map(str::to_owned),
            text: text.to_owned(),
            ..EventRow::default()
        }
    }

    /// Returns a request with this number of tokens, as two rows that share one id.
    fn request(index: i32, tokens: i64) -> [EventRow; 2] {
        let usage = |index, input, cache| EventRow {
            request_id: Some(format!("r{tokens}")),
            input_tokens: Some(input),
            cache_read_tokens: Some(cache),
            output_tokens: Some(999),
            ..row(index, EventType::TokenUsage, None, "")
        };
        [usage(index, 10, tokens - 10), usage(index + 1, 0, 0)]
    }

    #[test]
    fn requests_are_counted_once_and_jumps_have_a_cause() {
        let mut rows = Vec::new();
        rows.extend(request(0, 10_000));
        rows.push(row(2, EventType::ToolResult, None, &"x".repeat(80_000)));
        rows.push(row(3, EventType::ToolResult, None, "small"));
        rows.extend(request(4, 40_000));
        rows.extend(request(6, 41_000));
        let (context, found) = analyze_context(&rows, &pair_calls(&rows));
        let context = context.expect("requests");
        assert_eq!(
            (context.requests, context.peak_tokens, context.first_tokens),
            (3, 41_000, 10_000)
        );
        assert_eq!(context.series, [[0, 10_000], [4, 40_000], [6, 41_000]]);
        assert_eq!(found.len(), 1);
        let jump = found.first().expect("one");
        assert_eq!((jump.event_index, jump.tokens, jump.bytes), (2, Some(30_000), Some(80_000)));
    }

    #[test]
    fn a_compaction_reports_what_its_summary_leaves_out() {
        let read = EventRow {
            tool_name: Some("Read".to_owned()),
            files: Some(vec!["/a/kept.rs".to_owned(), "/a/lost.rs".to_owned()]),
            ..row(2, EventType::ToolCall, None, "")
        };
        let mut rows = vec![
            row(0, EventType::User, None, "Share the counter between all clones of the budget"),
            row(1, EventType::User, None, "Never touch anything inside the vendored directory"),
            read,
            row(3, EventType::Notification, Some("compact_boundary"), "Conversation compacted"),
            row(
                4,
                EventType::Notification,
                Some("compact_summary"),
                "The user asked to share the counter between the clones of a budget; kept.rs was read.",
            ),
        ];
        let (_, found) = analyze_context(&rows, &pair_calls(&rows));
        let [compaction] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((compaction.event_index, compaction.severity), (3, Severity::Warning));
        let lost = compaction.lost.as_ref().expect("something");
        let prompts: Vec<_> = lost.prompts.iter().map(|prompt| prompt.event_id.as_str()).collect();
        assert_eq!(
            (prompts.as_slice(), lost.files.as_slice()),
            (&["s:1"][..], &["/a/lost.rs".to_owned()][..])
        );
        rows.truncate(4);
        let (_, found) = analyze_context(&rows, &pair_calls(&rows));
        assert!(
            found.iter().all(|f| f.lost.is_none() && f.reason.contains("2 prompts")),
            "{found:?}"
        );
    }
}
