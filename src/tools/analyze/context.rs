//! Reports how the context grew, request by request, and what compactions lost.

use std::collections::{HashMap, HashSet};

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Context, Finding, Lost};
use schemas::{EventType, Usage};

use super::action::Action;
use super::finding::{finding, short};
use crate::tools::reply::convert;
use crate::tools::reply::event_predicates::{is, is_slash_or_shell_command, shows_compaction};

/// Minimum growth in one request that is reported: in tokens, and as a fraction (1/`JUMP_PART`) of
/// the tokens before it. From `LARGE_JUMP` tokens on, the growth is a warning.
const JUMP: i64 = 20_000;
const JUMP_PART: i64 = 4;
const LARGE_JUMP: i64 = 50_000;

/// Maximum number of requests shown for a session.
const SHOWN: usize = 30;

/// Limits on what is shown as lost: prompts, bytes of a prompt, files, and bytes of a path.
const PROMPTS: usize = 5;
const PROMPT: usize = 160;
const FILES: usize = 10;
const PATH: usize = 200;

/// A prompt counts as summarized if the summary contains its first `BEGINNING` bytes or at least
/// `WORDS` percent of its words.
const BEGINNING: usize = 60;
const WORDS: usize = 40;

/// Number of leading letters that are compared: words with the same beginning are treated as equal.
const LETTERS: usize = 4;

/// One request of the main agent.
struct Request<'r> {
    /// The first and the last row that count the request's tokens.
    first: &'r EventRow,
    last: &'r EventRow,
    tokens: i64,
}

pub(super) fn findings(
    rows: &[EventRow],
    actions: &[Action<'_>],
) -> (Option<Context>, Vec<Finding>) {
    let own: Vec<&EventRow> =
        rows.iter().filter(|row| !row.is_replay && !row.is_sidechain).collect();
    let requests = requests(&own);
    let compactions = compactions(&own);
    let mut found = Vec::new();
    let mut from = -1;
    for compaction in &compactions {
        found.extend(compacted(rows, actions, &requests, from, compaction));
        from = compaction.last().map_or(from, |row| row.event_index);
    }
    found
        .extend(requests.iter().zip(requests.iter().skip(1)).filter_map(|(a, b)| jump(&own, a, b)));
    (overview(&requests, compactions.len()), found)
}

/// Returns the tokens sent with a request: input, including tokens read from or written to a cache.
fn sent(usage: Usage) -> i64 {
    Usage { output: None, ..usage }.total()
}

fn requests<'r>(own: &[&'r EventRow]) -> Vec<Request<'r>> {
    let mut requests: Vec<Request<'r>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for row in own.iter().copied().filter(|row| is(row, EventType::TokenUsage)) {
        // A subtype marks a sum over several requests, or a request outside the conversation.
        if row.subtype.is_some() {
            continue;
        }
        let tokens = sent(row.usage());
        let same = row.request_id.as_deref().and_then(|id| known.get(id)).copied();
        if let Some(request) = same.and_then(|at| requests.get_mut(at)) {
            request.tokens = request.tokens.saturating_add(tokens);
            request.last = row;
            continue;
        }
        if let Some(id) = row.request_id.as_deref() {
            known.insert(id, requests.len());
        }
        requests.push(Request { first: row, last: row, tokens });
    }
    requests.retain(|request| request.tokens > 0);
    requests
}

fn overview(requests: &[Request<'_>], compactions: usize) -> Option<Context> {
    let (first, last) = (requests.first()?, requests.last()?);
    let peak = requests.iter().max_by_key(|request| request.tokens)?;
    let step = requests.len().div_ceil(SHOWN).max(1);
    let index = |request: &Request<'_>| i64::from(request.first.event_index);
    let shown = requests.iter().enumerate().filter(|(at, request)| {
        at % step == 0 || at + 1 == requests.len() || index(request) == index(peak)
    });
    Some(Context {
        requests: requests.len(),
        first_tokens: first.tokens,
        peak_tokens: peak.tokens,
        peak_event_id: convert::event_id(peak.first),
        last_tokens: last.tokens,
        compactions,
        series: shown.map(|(_, request)| [index(request), request.tokens]).collect(),
    })
}

/// Returns a finding if a request was sent many more tokens than the one before. The finding is at
/// the largest text between the two.
fn jump(own: &[&EventRow], before: &Request<'_>, after: &Request<'_>) -> Option<Finding> {
    let growth = after.tokens - before.tokens;
    if growth < JUMP || growth.saturating_mul(JUMP_PART) < before.tokens {
        return None;
    }
    let between = before.last.event_index..after.first.event_index;
    let came = |row: &&&EventRow| {
        between.contains(&row.event_index)
            && [EventType::User, EventType::ToolResult, EventType::Notification]
                .iter()
                .any(|kind| is(row, *kind))
    };
    let largest = own.iter().filter(came).max_by_key(|row| row.text.len());
    let (shown, cause) = match largest {
        Some(row) => {
            let bytes = row.text.len();
            (
                *row,
                format!("the largest text before it is this {} of {bytes} bytes", row.event_type),
            )
        }
        None => (after.first, "the log shows nothing that came before it".to_owned()),
    };
    let severity = if growth >= LARGE_JUMP { Severity::Warning } else { Severity::Info };
    let reason =
        format!("The context grew by {growth} tokens to {} in one request; {cause}", after.tokens);
    Some(Finding {
        tokens: Some(growth),
        bytes: largest.map(|row| row.text.len()),
        related_event_ids: largest.map(|_| convert::event_id(after.first)).into_iter().collect(),
        ..finding(Check::Context, severity, shown, reason)
    })
}

/// Returns the records of each compaction. They are contiguous: nothing from the model comes
/// between them.
fn compactions<'r>(own: &[&'r EventRow]) -> Vec<Vec<&'r EventRow>> {
    let mut compactions: Vec<Vec<&EventRow>> = Vec::new();
    let mut goes_on = false;
    for row in own.iter().copied() {
        if shows_compaction(row) {
            match compactions.last_mut().filter(|_| goes_on) {
                Some(compaction) => compaction.push(row),
                None => compactions.push(vec![row]),
            }
            goes_on = true;
        } else if is(row, EventType::Message) || is(row, EventType::ToolCall) {
            goes_on = false;
        }
    }
    compactions
}

/// Returns a finding for a compaction, with what it lost. `from` is the last event of the previous
/// compaction.
fn compacted(
    rows: &[EventRow],
    actions: &[Action<'_>],
    requests: &[Request<'_>],
    from: i32,
    compaction: &[&EventRow],
) -> Option<Finding> {
    let (first, last) = (compaction.first()?, compaction.last()?);
    let sizes = |request: &&Request<'_>| request.last.event_index < first.event_index;
    let before = requests.iter().rev().find(sizes).map(|request| request.tokens);
    let after = requests.iter().find(|request| request.first.event_index > last.event_index);
    let size = match (before, after.map(|request| request.tokens)) {
        (Some(before), Some(after)) => format!(" from {before} to {after} tokens"),
        (Some(before), None) => format!(" at {before} tokens"),
        _ => String::new(),
    };
    let covered = from..first.event_index;
    let prompts: Vec<&EventRow> = rows
        .iter()
        .filter(|row| covered.contains(&row.event_index) && is(row, EventType::User))
        .filter(|row| !row.is_sidechain && !is_slash_or_shell_command(&row.text))
        .collect();
    let files = files(actions, &covered);
    // Some agents record only that a compaction happened.
    let says_more = |row: &&&EventRow| {
        let text = row.text.trim();
        !text.is_empty() && !text.to_ascii_lowercase().ends_with("compacted")
    };
    let summary = compaction.iter().filter(says_more).max_by_key(|row| row.text.len());
    let Some(summary) = summary else {
        let reason = format!(
            "Compacted{size}; the log does not hold the summary, so what is left of {} prompts and {} files is not known",
            prompts.len(),
            files.len()
        );
        return Some(Finding {
            tokens: before,
            ..finding(Check::Context, Severity::Info, first, reason)
        });
    };
    let kept = Summary::of(&summary.text);
    let lost_prompts: Vec<_> =
        prompts.iter().filter(|row| !kept.mentions_prompt(&row.text)).collect();
    let lost_files: Vec<_> = files.iter().filter(|path| !kept.mentions_file(path)).collect();
    let reason = format!(
        "Compacted{size}; the summary leaves out {} of {} prompts and {} of {} files",
        lost_prompts.len(),
        prompts.len(),
        lost_files.len(),
        files.len()
    );
    let severity = if lost_prompts.is_empty() { Severity::Info } else { Severity::Warning };
    let lost = Lost {
        prompts_omitted: lost_prompts.len().saturating_sub(PROMPTS),
        prompts: lost_prompts
            .iter()
            .take(PROMPTS)
            .map(|row| convert::excerpt(row, PROMPT))
            .collect(),
        files_omitted: lost_files.len().saturating_sub(FILES),
        files: lost_files.iter().take(FILES).map(|path| short(path, PATH)).collect(),
    };
    let is_elsewhere = summary.event_index != first.event_index;
    Some(Finding {
        tokens: before,
        related_event_ids: is_elsewhere.then(|| convert::event_id(summary)).into_iter().collect(),
        lost: Some(lost).filter(|lost| *lost != Lost::default()),
        ..finding(Check::Context, severity, first, reason)
    })
}

/// Returns the files that calls named: edited files first, and the most recent first in each group.
fn files<'r>(actions: &[Action<'r>], covered: &std::ops::Range<i32>) -> Vec<&'r str> {
    let mut files: Vec<&str> = Vec::new();
    let mut known: HashSet<&str> = HashSet::new();
    for edits in [true, false] {
        let of_kind = actions.iter().rev().filter(|action| action.edits() == edits);
        for action in of_kind.filter(|action| covered.contains(&action.call.event_index)) {
            let paths = action.files().iter().map(String::as_str);
            files.extend(paths.filter(|path| known.insert(path)));
        }
    }
    files
}

/// The summary of a compaction, prepared for lookups.
struct Summary {
    /// In lower case, with single spaces.
    text: String,
    words: HashSet<String>,
}

impl Summary {
    fn of(text: &str) -> Self {
        let text = plain(text);
        let words = words(&text).map(str::to_owned).collect();
        Self { text, words }
    }

    fn mentions_prompt(&self, prompt: &str) -> bool {
        let prompt = plain(prompt);
        let beginning = &prompt[..prompt.floor_char_boundary(BEGINNING)];
        let own: HashSet<&str> = words(&prompt).collect();
        let there = own.iter().filter(|word| self.words.contains(**word)).count();
        // A prompt such as "yes, go on" has nothing to lose.
        self.text.contains(beginning) || own.len() < 3 || 100 * there >= WORDS * own.len()
    }

    fn mentions_file(&self, path: &str) -> bool {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path).to_lowercase();
        self.text.contains(&name)
    }
}

fn plain(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the first letters of the words that are long enough to be informative.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let long = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.len() >= LETTERS);
    long.map(|word| word.char_indices().nth(LETTERS).map_or(word, |(at, _)| &word[..at]))
}

#[cfg(test)]
mod tests {
    use super::super::action::actions;
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
        let (context, found) = findings(&rows, &actions(&rows));
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
    fn a_compaction_tells_what_its_summary_leaves_out() {
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
                "The person asked to share the counter between the clones of a budget; kept.rs was read.",
            ),
        ];
        let (_, found) = findings(&rows, &actions(&rows));
        let [compaction] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((compaction.event_index, compaction.severity), (3, Severity::Warning));
        let lost = compaction.lost.as_ref().expect("something");
        let prompts: Vec<_> = lost.prompts.iter().map(|prompt| prompt.event_id.as_str()).collect();
        assert_eq!(
            (prompts.as_slice(), lost.files.as_slice()),
            (&["s:1"][..], &["/a/lost.rs".to_owned()][..])
        );
        rows.truncate(4);
        let (_, found) = findings(&rows, &actions(&rows));
        assert!(
            found.iter().all(|f| f.lost.is_none() && f.reason.contains("2 prompts")),
            "{found:?}"
        );
    }
}
