//! Reads the line form of a Gemini log: messages, and updates of earlier messages. A repeated id
//! replaces a message, and `$set` replaces the whole list. `$rewindTo` removes a message and all
//! messages after it, or every message if the id is unknown. Removed messages are kept as an
//! abandoned branch.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::header::header;
use crate::provider::format::{Outcome, Tally};
use crate::provider::shared::document::{self, Span};
use crate::stream::Stream;
use crate::text::json::Fields;

/// Returns the messages of a log in their last state, and the offsets of those that were removed.
pub(super) fn messages(
    bytes: &[u8],
    out: &mut Stream,
    tally: &mut Tally,
) -> (Vec<Span>, HashSet<u64>) {
    let mut list = List::default();
    document::lines(bytes, out, tally, &mut |object, span, out, tally| {
        if let Some(set) = object.object("$set") {
            header(set, out);
            if set.field("messages").is_some() {
                list.set(set_messages(span.of(bytes), span));
            }
            tally.object(Outcome::Merged("update"));
        } else if let Some(id) = object.text("$rewindTo") {
            list.rewind(id);
            tally.object(Outcome::Merged("update"));
        } else if object.field("type").is_none() && object.field("sessionId").is_some() {
            header(object, out);
            tally.object(Outcome::Merged("document_header"));
        } else if list.add(object.text("id").unwrap_or(""), span) {
            tally.object(Outcome::Merged("rewritten_message"));
        }
    });
    let kept = list.messages.iter().filter(|message| message.state != State::Unknown);
    let dropped = list.messages.iter().filter(|message| message.state == State::Dropped);
    let dropped = dropped.map(|message| message.span.at().offset).collect();
    (kept.map(|message| message.span).collect(), dropped)
}

struct Message {
    id: String,
    span: Span,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Live,
    /// Removed by a later line.
    Dropped,
    /// Replaced together with all other messages. It cannot be recognized in the new list, because
    /// it has no id.
    Unknown,
}

/// The messages in the order in which they came.
#[derive(Default)]
struct List {
    messages: Vec<Message>,
    /// Indexes of the live messages, ascending.
    live: Vec<usize>,
    /// Index in `live` of each live message that has an id.
    places: HashMap<String, usize>,
}

impl List {
    /// Adds a message. Returns true if it replaced an earlier one.
    fn add(&mut self, id: &str, span: Span) -> bool {
        if let Some(at) = self.places.get(id).and_then(|place| self.live.get(*place)) {
            self.messages[*at].span = span;
            return true;
        }
        if !id.is_empty() {
            self.places.insert(id.to_owned(), self.live.len());
        }
        self.live.push(self.messages.len());
        self.messages.push(Message { id: id.to_owned(), span, state: State::Live });
        false
    }

    fn rewind(&mut self, id: &str) {
        let from = self.places.get(id).copied().unwrap_or(0);
        for at in self.live.drain(from..) {
            self.messages[at].state = State::Dropped;
            self.places.remove(&self.messages[at].id);
        }
    }

    /// Replaces the live messages. Messages in the new list fill each other's positions, so that
    /// they follow the new order. Messages that are not in the new list stay where they were.
    fn set(&mut self, new: Vec<(String, Span)>) {
        let kept: HashSet<&str> = new.iter().map(|(id, _)| id.as_str()).collect();
        let mut free = Vec::new();
        for at in self.live.drain(..) {
            let message = &mut self.messages[at];
            match (message.id.as_str(), kept.contains(message.id.as_str())) {
                ("", _) => message.state = State::Unknown,
                (_, true) => free.push(at),
                (_, false) => message.state = State::Dropped,
            }
        }
        self.places.clear();
        let mut free = free.into_iter();
        for (id, span) in new {
            if self.places.contains_key(&id) {
                self.add(&id, span);
            } else if let Some(at) = free.next() {
                if !id.is_empty() {
                    self.places.insert(id.clone(), self.live.len());
                }
                self.live.push(at);
                self.messages[at] = Message { id, span, state: State::Live };
            } else {
                self.add(&id, span);
            }
        }
    }
}

/// Returns the messages inside a `$set` line, with their ids.
fn set_messages(line: &[u8], at: Span) -> Vec<(String, Span)> {
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
    let Ok(update) = serde_json::from_slice::<Update<'_>>(line) else { return Vec::new() };
    let base = line.as_ptr() as usize;
    let span = |raw: &&RawValue| {
        let id =
            serde_json::from_str::<Id>(raw.get()).ok().and_then(|id| id.id).unwrap_or_default();
        let offset = at.offset + (raw.get().as_ptr() as usize - base);
        (id, Span { offset, length: raw.get().len(), line: at.line })
    };
    update.set.messages.iter().map(span).collect()
}
