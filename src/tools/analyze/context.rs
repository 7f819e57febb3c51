//! How the context grew, request by request, and what compactions lost.

use std::collections::{HashMap, HashSet};

use schemas::envelope::Severity;
use schemas::session::EventRow;
use schemas::tool::analyze::{Check, Context, Finding, Lost};
use schemas::{EventType, Usage};

use super::action::{Action, is};
use super::ends::is_command;
use super::{finding, short};
use crate::tools::convert;

/// Growth in one request that is told: so many tokens, and so large a part of what was there.
const JUMP: i64 = 20_000;
const JUMP_PART: i64 = 4;
const LARGE_JUMP: i64 = 50_000;

/// Requests shown of a session.
const SHOWN: usize = 30;

/// What is shown of what was lost: prompts with their size in bytes, and files.
const PROMPTS: usize = 5;
const PROMPT: usize = 160;
const FILES: usize = 10;
const PATH: usize = 200;

/// A prompt is in a summary that has its beginning, in bytes, or this part of its words, percent.
const BEGINNING: usize = 60;
const WORDS: usize = 40;

/// Words are alike that begin with as many letters alike.
const LETTERS: usize = 4;

/// One request of the main agent.
struct Request<'r> {
    /// The rows that count its tokens.
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

/// What a request was sent: input, and what of it was read from or written to a cache.
fn sent(usage: Usage) -> i64 {
    Usage { output: None, ..usage }.total()
}

fn requests<'r>(own: &[&'r EventRow]) -> Vec<Request<'r>> {
    let mut requests: Vec<Request<'r>> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for row in own.iter().copied().filter(|row| is(row, EventType::TokenUsage)) {
        // With a subtype it is a sum over requests, or one beside the conversation.
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

/// A request that was sent much more than the one before, at the largest text that came between.
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

/// The records of each compaction: they stand together, with nothing of the model's between them.
fn compactions<'r>(own: &[&'r EventRow]) -> Vec<Vec<&'r EventRow>> {
    let mut compactions: Vec<Vec<&EventRow>> = Vec::new();
    let mut goes_on = false;
    for row in own.iter().copied() {
        if tells_of_compaction(row) {
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

/// Whether a record tells that the context was compacted; that one begins, or only a little goes,
/// does not count.
pub(in crate::tools) fn tells_of_compaction(row: &EventRow) -> bool {
    let subtype = row.subtype.as_deref().filter(|_| is(row, EventType::Notification));
    let subtype = subtype.unwrap_or_default().to_ascii_lowercase();
    let no_loss = ["micro", "begin", "start", "cancel", "reference", "reminder"];
    ["compact", "compress", "session.truncation"].iter().any(|part| subtype.contains(part))
        && !no_loss.iter().any(|part| subtype.contains(part))
}

/// A compaction, with what it lost. `from` is the last event of the one before.
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
        .filter(|row| !row.is_sidechain && !is_command(&row.text))
        .collect();
    let files = files(actions, &covered);
    // Some agents note only that it happened.
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

/// Files that calls named, those that were edited first, the latest first among each.
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

/// The summary of a compaction, ready to be asked.
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
        // "yes, go on" has nothing to lose.
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

/// Beginnings of the words that tell something.
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

    /// A request of so many tokens, in two rows of one id.
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
