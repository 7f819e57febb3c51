//! Reads the token counts of Grok's turns from `updates.jsonl` next to the log
//! (docs/formats.md#grok). A turn may be many requests:
//!
//! ```text
//! {"timestamp":1788422402,"method":"_x.ai/session/update","params":{"update":
//!  {"sessionUpdate":"turn_completed","usage":{"inputTokens":21,"outputTokens":2,
//!   "cachedReadTokens":1,"reasoningTokens":1,"modelUsage":{"grok-build":{...}}}}}}
//! ```
//!
//! All other lines repeat the conversation in small pieces. `_meta.totalTokens` in them says how full
//! the context is.

use std::io;
use std::path::{Path, PathBuf};

use memchr::memmem;
use schemas::Usage;
use schemas::session::TURN_SUM;

use crate::provider::shared::chat;
use crate::source::candidate::LogCandidate;
use crate::source::container::Content;
use crate::source::lines::{LogLine, LogLines};
use crate::stream::{RecordAt, Stream};
use crate::text::json::{JsonFields, LineItem, Parser, Value};

/// The word by which lines with counts are recognized.
const TURN_COMPLETED: &str = "turn_completed";

/// Returns the path of the updates of a session.
pub(super) fn updates_path(log: &Path) -> PathBuf {
    log.with_file_name("updates.jsonl")
}

/// The token counts of a turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TurnCounts {
    /// Time in microseconds at which the turn ended.
    time: Option<i64>,
    /// The counts of each model; without a model if the turn does not split them.
    by_model: Vec<(Option<String>, Usage)>,
}

/// Reads the counts of all turns that ended, in their order, from the updates of the log at `log`.
/// Updates that cannot be read have none.
pub(super) fn read_turns(log: &Path, parser: &mut Parser) -> Vec<TurnCounts> {
    let mut turns = Vec::new();
    // The part that was read before an error counts.
    let _ = read_updates(&updates_path(log), parser, &mut turns);
    turns
}

fn read_updates(path: &Path, parser: &mut Parser, turns: &mut Vec<TurnCounts>) -> io::Result<()> {
    let content = Content::open(&LogCandidate::from_path(path.to_owned())?)?;
    let finder = memmem::Finder::new(TURN_COMPLETED);
    let mut lines = LogLines::new(content, 0);
    while let Some(line) = lines.next_line()? {
        if let LogLine::Whole { bytes, .. } = line
            && finder.find(bytes).is_some()
        {
            parser.for_each_item(bytes, &mut |item| {
                if let LineItem::Object(update, _) = item {
                    turns.extend(parse_turn(update));
                }
            });
        }
    }
    Ok(())
}

/// Parses the counts of a turn. `None` if the update has none.
fn parse_turn(update: Value<'_>) -> Option<TurnCounts> {
    let time = update.int("timestamp").and_then(|seconds| seconds.checked_mul(1_000_000));
    let update = update.object("params")?.object("update")?;
    if update.text("sessionUpdate") != Some(TURN_COMPLETED) {
        return None;
    }

    let usage = update.object("usage")?;
    let models = usage.object("modelUsage").and_then(|models| models.as_object());
    let mut by_model: Vec<(Option<String>, Usage)> = Vec::new();
    for (model, counts) in models.iter().flatten() {
        by_model.push((Some(model.to_owned()), read_usage(counts)));
    }
    if by_model.is_empty() {
        by_model.push((None, read_usage(usage)));
    }
    Some(TurnCounts { time, by_model })
}

/// Pushes the counts of a turn, one event for each model. `at` is where the turn ends in the log.
pub(super) fn push_turn(turn: &TurnCounts, at: RecordAt, out: &mut Stream) {
    out.begin_record(RecordAt { length: 0, ..at }, None, turn.time);
    let before = out.session.model.clone();
    for (model, usage) in &turn.by_model {
        out.set_model(model.as_deref());
        if !usage.is_unknown() {
            out.push_counts(TURN_SUM, *usage, None);
        }
    }
    out.session.model = before.or(out.session.model.take());
}

/// Parses token counts. Input includes cached tokens, and output includes reasoning.
fn read_usage(counts: Value<'_>) -> Usage {
    Usage {
        output: counts.int("outputTokens"),
        reasoning: counts.int("reasoningTokens"),
        ..chat::without_cache(counts.int("inputTokens"), [counts.int("cachedReadTokens"), None])
    }
}
