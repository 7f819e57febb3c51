//! The line form of a Gemini log: messages, and updates of the messages before. The same id written
//! again replaces a message, `$set` the whole list, and `$rewindTo` takes out a message and all behind
//! it, or all there are when it names none of them. What was taken out stays, as a branch that was
//! abandoned.

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;

use super::header;
use crate::json::Fields;
use crate::provider::document::{self, Span};
use crate::provider::{Outcome, Tally};
use crate::stream::Stream;

/// The messages of a log in their last state, and where those stand that were taken out.
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
    let dropped = list.messages.iter().filter(|message| message.dropped);
    let dropped = dropped.map(|message| message.span.at().offset).collect();
    (list.messages.into_iter().map(|message| message.span).collect(), dropped)
}

struct Message {
    id: String,
    span: Span,
    dropped: bool,
}

/// Messages in the order in which they came.
#[derive(Default)]
struct List {
    messages: Vec<Message>,
    /// Where those stand that were not taken out and have an id.
    places: HashMap<String, usize>,
}

impl List {
    /// Adds a message; true says that it took the place of one.
    fn add(&mut self, id: &str, span: Span) -> bool {
        if let Some(at) = self.places.get(id) {
            self.messages[*at].span = span;
            return true;
        }
        if !id.is_empty() {
            self.places.insert(id.to_owned(), self.messages.len());
        }
        self.messages.push(Message { id: id.to_owned(), span, dropped: false });
        false
    }

    fn rewind(&mut self, id: &str) {
        let from = self.places.get(id).copied().unwrap_or(0);
        for message in &mut self.messages[from..] {
            message.dropped = true;
            self.places.remove(&message.id);
        }
    }

    /// Replaces the list. What is not in the new one stays where it was; messages without an id are
    /// not known again.
    fn set(&mut self, new: Vec<(String, Span)>) {
        let kept: HashSet<&str> = new.iter().map(|(id, _)| id.as_str()).collect();
        let old = std::mem::take(self);
        let old = old.messages.into_iter().filter(|message| !message.id.is_empty());
        let mut old: Vec<Message> = old
            .map(|message| Message {
                dropped: message.dropped || !kept.contains(message.id.as_str()),
                ..message
            })
            .collect();
        old.reverse();
        for (id, span) in new {
            // What was taken out before the next message that stays stands before this one.
            while old.last().is_some_and(|message| message.dropped) {
                self.messages.extend(old.pop());
            }
            if old.last().is_some_and(|message| message.id == id) {
                old.pop();
            }
            self.add(&id, span);
        }
        old.reverse();
        self.messages.extend(old.into_iter().filter(|message| message.dropped));
    }
}

/// The messages inside a `$set` line.
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
