//! Reads the threads of Amp from `~/.local/share/amp/threads/T-<uuid>.json` (docs/formats.md#amp).
//! Each thread is one document, which Amp rewrites as a whole:
//!
//! ```text
//! {"v":1,"id":"T-<uuid>","created":<ms>,"title":"...","messages":[...],
//!  "env":{"initial":{"trees":[...],"platform":{...}}},"relationships":[...],
//!  "usageLedger":{"events":[...]}}
//! ```
//!
//! No native thread was available. Several public readers of such files agree on this shape.
//! Messages are decoded in `message.rs`.

mod message;

use std::collections::HashMap;

use schemas::event::Relation;
use schemas::{EventType, Provider, Usage};
use serde_json::Value as Json;

use self::message::{AmpDecoder, CountedMessage};
use crate::provider::format::{
    LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::document::{Document, DocumentLayout};
use crate::provider::shared::file_uri::file_uri_path;
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Amp,
    has_unique_ids: false,
    decoder_version: 2,
    roots: |places| {
        let data = places.env_path("AMP_DATA_HOME").map(|dir| dir.join("amp"));
        vec![data.unwrap_or_else(|| places.data_path("amp")).join("threads")]
    },
    sniff: claim_log,
    quirks: Quirks::NONE,
    reader: LogReader::Document(decode_log),
};

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let document = head.document().filter(|document| document.contains_key("messages"))?;
    // Other threads refer to this one by its file name.
    let ids = [head.file_stem(), document.get("id").and_then(Json::as_str).unwrap_or("")];
    let native_id = ids.into_iter().find(|id| id.starts_with("T-"))?;
    if !["v", "created"].iter().any(|key| document.get(*key).is_some_and(Json::is_number)) {
        return None;
    }

    let (parent, relation) = read_lineage(document).unzip();
    Some(SessionClaim { parent, relation, ..SessionClaim::new(Provider::Amp, native_id) })
}

/// Returns the parent thread and the relation to it, if the fields before the messages name one.
fn read_lineage(document: &serde_json::Map<String, Json>) -> Option<(String, Relation)> {
    let parent_fields =
        [("mainThreadID", Relation::SubagentOf), ("originThreadID", Relation::ForkedFrom)];
    for (key, relation) in parent_fields {
        if let Some(thread) = document.get(key).and_then(Json::as_str) {
            return Some((thread.to_owned(), relation));
        }
    }
    document.get("relationships")?.as_array()?.iter().find_map(parent_thread)
}

/// Returns the other thread of an entry of `relationships` and the relation to it, if that thread
/// is the parent.
fn parent_thread(entry: &Json) -> Option<(String, Relation)> {
    let relation = match entry["type"].as_str()? {
        "handoff" => Relation::ContinuedFrom,
        "fork" => Relation::ForkedFrom,
        _ => return None,
    };
    // `role` is the role of the other thread.
    if entry["role"] != "parent" {
        return None;
    }
    Some((entry["threadID"].as_str()?.to_owned(), relation))
}

/// The fields of a thread that are read.
const THREAD_LAYOUT: DocumentLayout =
    DocumentLayout { list: Some("messages"), header: &["title", "created", "env", "usageLedger"] };

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let thread = Document::read(bytes, &THREAD_LAYOUT, out, tally);
    thread.with_header(|fields| decode_header(fields, out));

    let mut decoder = AmpDecoder::default();
    thread.for_each_record(out, tally, &mut |message, _, at, out| {
        decoder.decode_message(message, at, out);
        RecordOutcome::Events
    });
    let whole = RecordAt { offset: 0, length: bytes.len() as u64, line: 1 };
    thread.with_header(|fields| push_ledger_usage(fields, &decoder.counted, whole, out));
}

/// Reads the thread's own fields.
fn decode_header(fields: Value<'_>, out: &mut Stream) {
    out.offer_title(TitleFrom::Agent, fields.text("title").unwrap_or(""));
    out.extend_time_range(chat::read_millis(Some(fields), "created"));
    let Some(initial) = fields.object("env").and_then(|env| env.object("initial")) else { return };
    out.set_version(initial.object("platform").and_then(|client| client.text("clientVersion")));
    let trees = initial.items("trees");
    let Some(tree) = trees.first() else { return };
    let uri = tree.text("uri").or_else(|| tree.text("path"));
    out.set_cwd(uri.and_then(file_uri_path).as_deref().or(uri));

    let Some(repository) = tree.object("repository") else { return };
    out.set_repository(repository.text("url"));
    let branch = repository.text("ref");
    out.set_branch(branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name)));
}

/// Pushes the token usage of requests that only the ledger records: those for titles, and those
/// that tools sent to models. Requests of messages are skipped, because their usage is already
/// counted with the messages, which also record the cached tokens.
fn push_ledger_usage(
    fields: Value<'_>,
    counted: &[CountedMessage],
    whole: RecordAt,
    out: &mut Stream,
) {
    let Some(ledger) = fields.object("usageLedger") else { return };
    let model = out.session.model.clone();

    // Indexes into `counted`, in descending order, so that `pop` returns the lowest one.
    let mut by_message = HashMap::<_, Vec<_>>::new();
    let mut by_tokens = HashMap::<_, Vec<_>>::new();
    for (at, message) in counted.iter().enumerate().rev() {
        by_message.entry(message.id).or_default().push(at);
        by_tokens.entry((message.input, message.output)).or_default().push(at);
    }

    let mut is_matched = vec![false; counted.len()];
    for event in ledger.items("events") {
        let tokens = event.object("tokens");
        let usage = Usage {
            input: tokens.and_then(|tokens| tokens.int("input")),
            output: tokens.and_then(|tokens| tokens.int("output")),
            ..Usage::default()
        };
        let message = event.int("toMessageId");
        let twins = match message {
            Some(_) => by_message.get_mut(&message),
            None => by_tokens.get_mut(&(usage.input, usage.output)),
        };
        let is_counted = twins.is_some_and(|twins| match_message(twins, &mut is_matched));
        if is_counted || usage.total() == 0 {
            continue;
        }

        out.begin_record(whole, None, parse_micros(event.text("timestamp")));
        out.set_model(event.text("model"));
        let decoded = DecodedEvent {
            subtype: event.text("operationType"),
            usage,
            request_id: event.text("id"),
            ..DecodedEvent::default()
        };
        out.push_in_step(EventType::TokenUsage, 0, decoded);
    }
    out.set_model(model.as_deref());
}

/// Removes indexes of messages from the end of `twins` up to one that is not matched yet, and marks
/// this message as matched. Returns false if all messages are matched.
fn match_message(twins: &mut Vec<usize>, is_matched: &mut [bool]) -> bool {
    while let Some(at) = twins.pop() {
        if !std::mem::replace(&mut is_matched[at], true) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use schemas::session::SessionRow;

    use super::*;
    use crate::stream::StreamState;
    use crate::stream::replay::CopiedHistory;

    /// Tokens of a thread: uncached input, cache writes, output.
    fn tokens(model: &str, usage: &str, ledger: &str) -> (Option<i64>, Option<i64>, Option<i64>) {
        let usage = format!(r#"{{"model":"{model}","outputTokens":7,{usage}}}"#);
        let answer = r#"{"role":"assistant","messageId":1,"content":"aye""#;
        let thread = format!(
            r#"{{"v":1,"id":"T-1","messages":[{answer},"usage":{usage}}}],"usageLedger":{{"events":[{ledger}]}}}}"#
        );
        let (row, state) = (SessionRow::default(), StreamState::default());
        let mut stream = Stream::new(
            Provider::Amp,
            row,
            state,
            None,
            CopiedHistory::default(),
            None,
            Box::default(),
        );
        decode_log(thread.as_bytes(), &mut stream, &mut RecordTally::default());
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
}
