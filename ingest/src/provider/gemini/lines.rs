//! Reads the line form of a Gemini log: messages, and updates of earlier messages. A repeated id
//! replaces a message, and `$set` replaces the whole list. `$rewindTo` removes a message and all
//! messages after it, or every message if the id is unknown. Removed messages are kept as an
//! abandoned branch.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use crate::provider::format::{RecordOutcome, RecordTally};
use crate::provider::shared::document::{self, RecordSpan};
use crate::stream::{Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value, string_value};

/// Reads the session's own fields.
pub(super) fn read_header(object: Value<'_>, out: &mut Stream) {
    for key in ["startTime", "lastUpdated"] {
        out.extend_time_range(parse_micros(object.text(key)));
    }
    out.offer_title(TitleFrom::Agent, object.text("summary").unwrap_or(""));
    let directories = object.items("directories");
    out.set_cwd(directories.first().and_then(|first| string_value(*first)));
}

/// Returns the messages of a log in their last state, and the offsets of those that were removed.
pub(super) fn collect_messages(
    bytes: &[u8],
    out: &mut Stream,
    tally: &mut RecordTally,
) -> (Vec<RecordSpan>, HashSet<u64>) {
    let mut list = MessageList::default();
    document::for_each_line(bytes, out, tally, &mut |object, span, out, tally| {
        if let Some(set) = object.object("$set") {
            read_header(set, out);
            if set.field("messages").is_some()
                && let Some(messages) = parse_set_line(span.record_bytes(bytes), span)
            {
                list.replace_live(messages);
            }
            tally.count_object(RecordOutcome::Merged("update"));
        } else if let Some(id) = object.text("$rewindTo") {
            list.rewind_to(id);
            tally.count_object(RecordOutcome::Merged("update"));
        } else if object.field("type").is_none() && object.field("sessionId").is_some() {
            read_header(object, out);
            tally.count_object(RecordOutcome::Merged("document_header"));
        } else if list.add_or_replace(object.text("id").unwrap_or(""), span) {
            tally.count_object(RecordOutcome::Merged("rewritten_message"));
        }
    });

    let mut kept = Vec::with_capacity(list.messages.len());
    let mut dropped = HashSet::new();
    for message in &list.messages {
        match message.state {
            MessageState::Live => {}
            MessageState::Dropped => {
                dropped.insert(message.span.position().offset);
            }
            MessageState::Unknown => continue,
        }
        kept.push(message.span);
    }
    (kept, dropped)
}

/// A message in its last version.
struct TrackedMessage {
    /// The id of the message, or an empty string if it has none.
    id: String,
    span: RecordSpan,
    state: MessageState,
}

/// What the later lines of the log did to a message.
enum MessageState {
    /// Part of the conversation.
    Live,
    /// Removed by a later line.
    Dropped,
    /// Replaced together with all other messages. It cannot be recognized in the new list, because
    /// it has no id.
    Unknown,
}

/// The messages in the order in which they came.
#[derive(Default)]
struct MessageList {
    messages: Vec<TrackedMessage>,
    /// Indexes of the live messages, ascending.
    live: Vec<usize>,
    /// Index in `live` of each live message that has an id.
    places: HashMap<String, usize>,
}

impl MessageList {
    /// Adds a message. Returns true if it replaced an earlier one.
    fn add_or_replace(&mut self, id: &str, span: RecordSpan) -> bool {
        if let Some(at) = self.places.get(id).and_then(|place| self.live.get(*place)) {
            self.messages[*at].span = span;
            return true;
        }
        if !id.is_empty() {
            self.places.insert(id.to_owned(), self.live.len());
        }
        self.live.push(self.messages.len());
        self.messages.push(TrackedMessage { id: id.to_owned(), span, state: MessageState::Live });
        false
    }

    /// Removes the message with this id and all live messages after it, or every live message if
    /// the id is unknown.
    fn rewind_to(&mut self, id: &str) {
        let rewind_start = self.places.get(id).copied().unwrap_or(0);
        for at in self.live.drain(rewind_start..) {
            self.messages[at].state = MessageState::Dropped;
            self.places.remove(&self.messages[at].id);
        }
    }

    /// Replaces the live messages. Messages in the new list fill each other's positions, so that
    /// they follow the new order. Messages that are not in the new list stay where they were.
    fn replace_live(&mut self, new: Vec<(String, RecordSpan)>) {
        let new_ids: HashSet<&str> = new.iter().map(|(id, _)| id.as_str()).collect();
        let mut free_positions = Vec::new();
        for at in self.live.drain(..) {
            let message = &mut self.messages[at];
            if message.id.is_empty() {
                message.state = MessageState::Unknown;
            } else if new_ids.contains(message.id.as_str()) {
                free_positions.push(at);
            } else {
                message.state = MessageState::Dropped;
            }
        }
        self.places.clear();

        let mut free = free_positions.into_iter();
        for (id, span) in new {
            if self.places.contains_key(&id) {
                self.add_or_replace(&id, span);
            } else if let Some(at) = free.next() {
                if !id.is_empty() {
                    self.places.insert(id.clone(), self.live.len());
                }
                self.live.push(at);
                self.messages[at] = TrackedMessage { id, span, state: MessageState::Live };
            } else {
                self.add_or_replace(&id, span);
            }
        }
    }
}

/// Returns the messages inside a `$set` line, with their ids. `at` is the position of the line. A
/// message without an id has an empty one. `None` if the line has no list of messages.
fn parse_set_line(line: &[u8], at: RecordSpan) -> Option<Vec<(String, RecordSpan)>> {
    #[derive(serde::Deserialize)]
    struct Update<'a> {
        #[serde(rename = "$set", borrow)]
        set: Set<'a>,
    }
    #[derive(serde::Deserialize)]
    struct Set<'a> {
        #[serde(borrow)]
        messages: Vec<&'a RawValue>,
    }
    #[derive(serde::Deserialize)]
    struct Id {
        id: Option<String>,
    }

    // Has the positions of the line, also if that is damaged.
    let text = document::to_legible_text(line);
    let update = serde_json::from_str::<Update<'_>>(&text).ok()?;
    let base = text.as_ptr() as usize;
    let mut messages = Vec::with_capacity(update.set.messages.len());
    for raw in update.set.messages {
        let parsed = serde_json::from_str::<Id>(raw.get()).ok();
        let id = parsed.and_then(|parsed| parsed.id).unwrap_or_default();
        let offset = at.offset + (raw.get().as_ptr() as usize - base);
        messages.push((id, RecordSpan { offset, length: raw.get().len(), line: at.line }));
    }
    Some(messages)
}
