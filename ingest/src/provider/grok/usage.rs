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

use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use memchr::memmem;
use schemas::session::TURN_SUM;
use schemas::{EventType, Usage};

use crate::source::candidate::LogCandidate;
use crate::source::container::Content;
use crate::source::lines::{LogLine, LogLines};
use crate::stream::{Draft, RecordAt, Stream};
use crate::text::json::{JsonFields, LineItem, Parser, Value};

/// The word by which lines with counts are recognized.
const TURN_COMPLETED: &str = "turn_completed";

/// Returns the path of the updates of a session.
pub(super) fn updates_path(log: &Path) -> PathBuf {
    log.with_file_name("updates.jsonl")
}

/// Pushes the counts of the turns that ended since the updates were read up to `offset`, and moves
/// `offset` behind them. `at` is the end of the log. Updates that cannot be read give no counts.
pub(super) fn push_turn_counts(
    offset: &mut u64,
    at: RecordAt,
    parser: &mut Parser,
    out: &mut Stream,
) {
    let path = updates_path(Path::new(&out.session.source_path));
    // The next reading tries again from the same place.
    let _ = read_updates(&path, offset, at, parser, out);
}

fn read_updates(
    path: &Path,
    offset: &mut u64,
    at: RecordAt,
    parser: &mut Parser,
    out: &mut Stream,
) -> io::Result<()> {
    let mut content = Content::open(&LogCandidate::from_path(path.to_owned())?)?;
    if content.length()? <= *offset {
        return Ok(());
    }
    content.seek(SeekFrom::Start(*offset))?;
    let finder = memmem::Finder::new(TURN_COMPLETED);
    let mut lines = LogLines::new(content, *offset);
    loop {
        match lines.next_line()? {
            Some(LogLine::Whole { bytes, .. }) => {
                if finder.find(bytes).is_some() {
                    parser.for_each_item(bytes, &mut |item| {
                        if let LineItem::Object(update, _) = item {
                            push_turn(update, at, out);
                        }
                    });
                }
            }
            Some(LogLine::Oversized { has_newline: true, .. }) => {}
            Some(LogLine::Tail { .. } | LogLine::Oversized { .. }) | None => return Ok(()),
        }
        *offset = lines.offset();
    }
}

/// Pushes the counts of a turn, one event for each model.
fn push_turn(update: Value<'_>, at: RecordAt, out: &mut Stream) {
    let time = update.int("timestamp").and_then(|seconds| seconds.checked_mul(1_000_000));
    let Some(update) = update.object("params").and_then(|params| params.object("update")) else {
        return;
    };
    if update.text("sessionUpdate") != Some(TURN_COMPLETED) {
        return;
    }
    let Some(usage) = update.object("usage") else { return };

    out.begin_record(at, None, time);
    let by_model = usage.object("modelUsage").and_then(|models| models.as_object());
    let before = out.session.model.clone();
    let mut has_models = false;
    for (model, counts) in by_model.iter().flatten() {
        has_models = true;
        out.set_model(Some(model));
        push_counts(counts, out);
    }
    out.session.model = before.or(out.session.model.take());
    if !has_models {
        push_counts(usage, out);
    }
}

fn push_counts(counts: Value<'_>, out: &mut Stream) {
    let usage = read_usage(counts);
    if !usage.is_unknown() {
        let draft = Draft { subtype: Some(TURN_SUM), usage, ..Draft::default() };
        out.push(EventType::TokenUsage, draft);
    }
}

/// Parses token counts. Input includes cached tokens, and output includes reasoning.
fn read_usage(counts: Value<'_>) -> Usage {
    let cached = counts.int("cachedReadTokens");
    Usage {
        input: counts.int("inputTokens").map(|input| (input - cached.unwrap_or(0)).max(0)),
        output: counts.int("outputTokens"),
        cache_read: cached,
        reasoning: counts.int("reasoningTokens"),
        ..Usage::default()
    }
}
