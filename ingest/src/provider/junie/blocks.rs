//! Finds the last event of each block before a log is decoded.

use std::collections::{HashMap, HashSet};

use crate::provider::shared::document::RecordSpan;
use crate::source::lines::{LogLine, LogLines};
use crate::text::json::{JsonFields, LineItem, Parser, Value, string_value};

/// The places of the first and the last event of a block.
struct BlockPlace {
    first: usize,
    last: usize,
    /// The length in bytes of the last event.
    length: usize,
}

/// The blocks of a log.
pub(super) struct Blocks<'b> {
    bytes: &'b [u8],
    places: HashMap<String, BlockPlace>,
    /// Ids of the prompts that the agent never got.
    dropped: HashSet<String>,
}

/// Returns the name of the block that an event changes.
fn block_name(event: Value<'_>) -> Option<String> {
    if let Some(id) = event.non_empty("requestId") {
        return Some(format!("prompt {id}"));
    }
    let inner = event.object("event")?.object("agentEvent")?;
    let task = event.text("taskId").unwrap_or("");
    Some(format!("{} {task} {}", inner.text("kind")?, inner.non_empty("stepId")?))
}

impl<'b> Blocks<'b> {
    /// Reads the blocks of the log with these bytes.
    pub(super) fn read(bytes: &'b [u8]) -> Self {
        let mut blocks = Self { bytes, places: HashMap::new(), dropped: HashSet::new() };
        let mut parser = Parser::default();
        let mut lines = LogLines::new(bytes, 0);
        while let Ok(Some(line)) = lines.next_line() {
            let (LogLine::Whole { offset, bytes } | LogLine::Tail { offset, bytes }) = line else {
                continue;
            };
            let start = usize::try_from(offset).unwrap_or(usize::MAX);
            parser.for_each_item(bytes, &mut |item| {
                if let LineItem::Object(event, at) = item {
                    blocks.add_event(event, start + at.start, at.len());
                }
            });
        }
        blocks
    }

    fn add_event(&mut self, event: Value<'_>, offset: usize, length: usize) {
        let ids = event.items("userMessageIds");
        let mut ids = ids.into_iter().filter_map(string_value);
        match event.text("kind") {
            Some("UserMessagesDroppedFromHistory" | "UserMessagesFailedInHistory") => {
                self.dropped.extend(ids.map(str::to_owned));
            }
            Some("UserMessagesCommittedToHistory") => ids.by_ref().for_each(|id| {
                self.dropped.remove(id);
            }),
            _ => {
                let Some(name) = block_name(event) else { return };
                let new = BlockPlace { first: offset, last: offset, length };
                let place = self.places.entry(name).or_insert(new);
                place.last = offset;
                place.length = length;
            }
        }
    }

    /// Returns whether the agent never got the prompt with this id.
    pub(super) fn is_dropped(&self, id: &str) -> bool {
        self.dropped.contains(id)
    }

    /// Returns whether an event is one of a block.
    pub(super) fn include(&self, event: Value<'_>) -> bool {
        block_name(event).is_some_and(|name| self.places.contains_key(&name))
    }

    /// Passes the last event of a block to `take`, if the event at `span` is the first one of the block.
    pub(super) fn with_text_block(
        &self,
        event: Value<'_>,
        span: RecordSpan,
        take: &mut dyn FnMut(Value<'_>),
    ) {
        let place = block_name(event).and_then(|name| self.places.get(&name));
        let Some(place) = place else { return take(event) };
        if place.first != span.offset {
            return;
        }
        let latest = self.bytes.get(place.last..place.last + place.length).unwrap_or_default();
        Parser::default().for_each_item(latest, &mut |item| {
            if let LineItem::Object(latest, _) = item {
                take(latest);
            }
        });
    }

    /// Returns whether the event at `span` is the last one of its block.
    pub(super) fn is_last(&self, event: Value<'_>, span: RecordSpan) -> bool {
        let place = block_name(event).and_then(|name| self.places.get(&name));
        place.is_none_or(|place| place.last == span.offset)
    }
}
