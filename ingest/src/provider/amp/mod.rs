//! Amp: `~/.local/share/amp/threads/T-<uuid>.json`, one document per thread, which is rewritten as
//! a whole (docs/formats.md#amp). No native thread was available; the shape below is the one on
//! which several public readers of such files agree.
//!
//! `{v, id, created (ms), title?, messages[], env{initial{trees[], platform}}, relationships[]?,
//! usageLedger{events[]}?}`. Messages are decoded in `message.rs`.

mod message;

use std::collections::HashMap;

use schemas::event::Relation;
use schemas::{EventType, Provider, Usage};
use serde_json::Value as Json;

use self::message::{Counted, Decoder};
use crate::provider::format::{Claim, Format, Head, Outcome, Quirks, Reader, Tally};
use crate::provider::shared::chat;
use crate::provider::shared::document::{self, Document, Layout};
use crate::stream::{Draft, RecordAt, Stream, TitleFrom, micros};
use crate::text::json::{Fields, Value};

pub(super) const FORMAT: Format = Format {
    provider: Provider::Amp,
    unique_ids: false,
    roots: |places| {
        let data = places.set("AMP_DATA_HOME").map(|dir| dir.join("amp"));
        vec![data.unwrap_or_else(|| places.data("amp")).join("threads")]
    },
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Document(read),
};

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let document = head.document.as_ref().filter(|document| document.contains_key("messages"))?;
    let text = |key: &str| document.get(key).and_then(Json::as_str);
    // Other threads refer to this one by its file name.
    let ids = [head.stem(), text("id").unwrap_or("")];
    let native_id = ids.into_iter().find(|id| id.starts_with("T-"))?;
    let ours = ["v", "created"].iter().any(|key| document.get(*key).is_some_and(Json::is_number));
    if !ours {
        return None;
    }
    let (parent, relation) = lineage(document).unzip();
    Some(Claim {
        provider: Provider::Amp,
        native_id: native_id.to_owned(),
        agent_id: None,
        parent,
        relation,
        first_record: None,
    })
}

/// Returns the parent thread and the relation to it, if the fields before the messages name one.
fn lineage(document: &serde_json::Map<String, Json>) -> Option<(String, Relation)> {
    let named = |key: &str, relation| Some((document.get(key)?.as_str()?.to_owned(), relation));
    let related = document.get("relationships").and_then(Json::as_array).and_then(|all| {
        all.iter().find_map(|one| {
            let relation = match one["type"].as_str()? {
                "handoff" => Relation::ContinuedFrom,
                "fork" => Relation::ForkedFrom,
                _ => return None,
            };
            // `role` is the role of the other thread.
            let thread = one["threadID"].as_str().filter(|_| one["role"] == "parent")?;
            Some((thread.to_owned(), relation))
        })
    });
    named("mainThreadID", Relation::SubagentOf)
        .or_else(|| named("originThreadID", Relation::ForkedFrom))
        .or(related)
}

/// The fields of a thread that are read.
const THREAD: Layout =
    Layout { list: Some("messages"), header: &["title", "created", "env", "usageLedger"] };

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let thread = Document::read(bytes, &THREAD, out, tally);
    thread.header(|fields| header(fields, out));
    let mut decoder = Decoder::default();
    document::each(bytes, &thread.records, out, tally, &mut |message, _, at, out| {
        decoder.message(message, at, out);
        if out.pushed() == 0 { Outcome::Merged("empty_message") } else { Outcome::Events }
    });
    let whole = RecordAt { offset: 0, length: bytes.len() as u64, line: 1 };
    thread.header(|fields| ledger(fields, &decoder.counted, whole, out));
}

/// Reads the thread's own fields.
fn header(fields: Value<'_>, out: &mut Stream) {
    out.title(TitleFrom::Agent, fields.text("title").unwrap_or(""));
    out.widen(chat::millis(Some(fields), "created"));
    let Some(initial) = fields.object("env").and_then(|env| env.object("initial")) else { return };
    out.set_version(initial.object("platform").and_then(|client| client.text("clientVersion")));
    let trees = initial.items("trees");
    let Some(tree) = trees.first() else { return };
    let uri = tree.text("uri").or_else(|| tree.text("path"));
    out.set_cwd(uri.map(path_of).as_deref());
    let repository = tree.object("repository");
    let field = |key: &str| repository.and_then(|repository| repository.text(key));
    out.set_repository(field("url"));
    out.set_branch(field("ref").map(|name| name.strip_prefix("refs/heads/").unwrap_or(name)));
}

/// Returns the path in a `file:` URI. Other text is returned unchanged.
fn path_of(uri: &str) -> String {
    let Some(path) = uri.strip_prefix("file://") else { return uri.to_owned() };
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let code = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, code) {
            (b'%', Some(code)) => {
                bytes.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    let path = String::from_utf8_lossy(&bytes).into_owned();
    // `/C:/code` becomes `C:/code`.
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path[1..].to_owned(),
        _ => path,
    }
}

/// Pushes the token usage of requests that only the ledger records: those for titles, and those
/// that tools sent to models. Requests of messages are skipped: their usage is already counted with
/// the messages, which also record the cached tokens.
fn ledger(fields: Value<'_>, counted: &[Counted], whole: RecordAt, out: &mut Stream) {
    let Some(ledger) = fields.object("usageLedger") else { return };
    let model = out.session.model.clone();
    // Indexes into `counted`, in descending order, so that `pop` returns the lowest one.
    let (mut by_message, mut by_tokens) =
        (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
    for (at, (message, tokens)) in counted.iter().enumerate().rev() {
        by_message.entry(*message).or_default().push(at);
        by_tokens.entry(*tokens).or_default().push(at);
    }
    let mut found = vec![false; counted.len()];
    for event in ledger.items("events") {
        let tokens = event.object("tokens");
        let count = |key: &str| tokens.and_then(|tokens| tokens.int(key));
        let usage = Usage { input: count("input"), output: count("output"), ..Usage::default() };
        let message = event.int("toMessageId");
        let twins = match message {
            Some(_) => by_message.get_mut(&message),
            None => by_tokens.get_mut(&(usage.input, usage.output)),
        };
        let mut twins = twins.into_iter().flat_map(|twins| std::iter::from_fn(|| twins.pop()));
        let is_of_message = twins.any(|at| !std::mem::replace(&mut found[at], true));
        if is_of_message || usage.total() == 0 {
            continue;
        }
        out.begin_record(whole, None, micros(event.text("timestamp")));
        out.set_model(event.text("model"));
        let draft = Draft {
            subtype: event.text("operationType"),
            usage,
            request_id: event.text("id"),
            ..Draft::default()
        };
        out.push_in(EventType::TokenUsage, 0, draft);
    }
    out.set_model(model.as_deref());
}

#[cfg(test)]
mod tests {
    use schemas::session::SessionRow;

    use super::*;
    use crate::stream::StreamState;
    use crate::stream::replay::History;

    /// Tokens of a thread: uncached input, cache writes, output.
    fn tokens(model: &str, usage: &str, ledger: &str) -> (Option<i64>, Option<i64>, Option<i64>) {
        let usage = format!(r#"{{"model":"{model}","outputTokens":7,{usage}}}"#);
        let answer = r#"{"role":"assistant","messageId":1,"content":"aye""#;
        let thread = format!(
            r#"{{"v":1,"id":"T-1","messages":[{answer},"usage":{usage}}}],"usageLedger":{{"events":[{ledger}]}}}}"#
        );
        let (row, state) = (SessionRow::default(), StreamState::default());
        let mut stream = Stream::new(Provider::Amp, row, state, None, History::default(), None);
        read(thread.as_bytes(), &mut stream, &mut Tally::default());
        let usage = stream.session.usage();
        (usage.input, usage.cache_write, usage.output)
    }

    #[test]
    fn what_openai_did_not_read_from_the_cache_is_input() {
        let undivided = r#""inputTokens":0,"cacheCreationInputTokens":900"#;
        let divided = r#""inputTokens":5,"cacheCreationInputTokens":900"#;
        for model in ["gpt-5.6-sol", "gpt-5", "o3"] {
            assert_eq!(tokens(model, undivided, ""), (Some(900), None, Some(7)), "{model}");
            assert_eq!(tokens(model, divided, ""), (Some(5), Some(900), Some(7)), "{model}");
        }
        let claude = tokens("claude-opus-4-6", undivided, "");
        assert_eq!(claude, (Some(0), Some(900), Some(7)));
    }

    #[test]
    fn the_ledger_repeats_the_numbers_of_messages_as_they_stand() {
        let usage = r#""inputTokens":0,"cacheCreationInputTokens":900"#;
        let once = (Some(900), None, Some(7));
        for twin in [
            r#"{"tokens":{"input":0,"output":7},"toMessageId":1}"#,
            r#"{"tokens":{"input":0,"output":7}}"#,
        ] {
            assert_eq!(tokens("gpt-5.6-sol", usage, twin), once, "{twin}");
        }
        let other = r#"{"tokens":{"input":3,"output":2}}"#;
        assert_eq!(tokens("gpt-5.6-sol", usage, other), (Some(903), None, Some(9)));
    }

    #[test]
    fn uris_become_paths() {
        assert_eq!(path_of("file:///home/mira/my%20code"), "/home/mira/my code");
        assert_eq!(path_of("file:///C:/code"), "C:/code");
        assert_eq!(path_of("/home/mira"), "/home/mira");
        assert_eq!(path_of("file:///100%"), "/100%");
    }
}
