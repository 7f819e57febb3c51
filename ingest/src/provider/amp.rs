//! Amp: `~/.local/share/amp/threads/T-<uuid>.json`, one document for a thread, rewritten whole
//! (FORMATS.md sections 10 and 12; no native thread was at hand: the shape is what several public
//! readers of such files agree on).
//!
//! `{v, id, created (ms), title?, messages[], env{initial{trees[], platform}}, relationships[]?,
//! usageLedger{events[]}?}`. Messages are decoded in `amp_message.rs`.

use schemas::event::Relation;
use schemas::problem::ProblemKind;
use schemas::{EventType, Provider, Usage};
use serde_json::Value as Json;

use super::amp_document::{Parts, take_apart};
use super::amp_message::Decoder;
use super::{Claim, Format, Head, Outcome, Reader, Tally};
use crate::json::{Found, Parser};
use crate::stream::{Draft, RecordAt, Stream, TitleFrom, micros};

pub const FORMAT: Format = Format {
    provider: Provider::Amp,
    unique_ids: false,
    roots: |places| {
        let data = places.set("AMP_DATA_HOME").map(|dir| dir.join("amp"));
        vec![data.unwrap_or_else(|| places.data("amp")).join("threads")]
    },
    sniff,
    reader: Reader::Document(read),
};

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let document = head.document.as_ref().filter(|document| document.contains_key("messages"))?;
    let text = |key: &str| document.get(key).and_then(Json::as_str);
    // The name of the file is what other threads call it by.
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

/// The thread that this one hangs on, as far as it says so before its messages.
fn lineage(document: &serde_json::Map<String, Json>) -> Option<(String, Relation)> {
    let named = |key: &str, relation| Some((document.get(key)?.as_str()?.to_owned(), relation));
    let related = document.get("relationships").and_then(Json::as_array).and_then(|all| {
        all.iter().find_map(|one| {
            let relation = match one["type"].as_str()? {
                "handoff" => Relation::ContinuedFrom,
                "fork" => Relation::ForkedFrom,
                _ => return None,
            };
            // `role` is the other thread's.
            let thread = one["threadID"].as_str().filter(|_| one["role"] == "parent")?;
            Some((thread.to_owned(), relation))
        })
    });
    named("mainThreadID", Relation::SubagentOf)
        .or_else(|| named("originThreadID", Relation::ForkedFrom))
        .or(related)
}

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let whole = RecordAt { offset: 0, length: bytes.len() as u64, line: 1 };
    let Ok(text) = std::str::from_utf8(bytes) else {
        // Offsets of repaired text would not fit the file.
        let message = "the document is not UTF-8 and was not read".to_owned();
        return out.problem(whole, ProblemKind::InvalidUtf8, message);
    };
    let text = text.trim_start_matches('\u{feff}');
    let mut parts = take_apart(text, "messages");
    tally.lines += text.lines().count() as u64;
    tally.object(Outcome::Merged("document_header"));
    if let Some(error) = parts.error.take() {
        let message = format!("the document ends early or is no JSON: {error}");
        out.problem(whole, ProblemKind::BadJson, message);
    }
    header(&parts.fields, out);
    let mut decoder = Decoder::default();
    let mut parser = Parser::default();
    let mut line = 1;
    let mut counted = 0;
    for raw in &parts.records {
        let offset = raw.get().as_ptr() as usize - bytes.as_ptr() as usize;
        let before = bytes.get(counted..offset).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', before).count() as u64;
        counted = offset;
        let at = RecordAt { offset: offset as u64, length: raw.get().len() as u64, line };
        parser.each(raw.get().as_bytes(), &mut |found| match found {
            Found::Object(message, _) => {
                decoder.message(message, at, out);
                let nothing = out.pushed() == 0;
                let outcome =
                    if nothing { Outcome::Merged("empty_message") } else { Outcome::Events };
                tally.object(outcome);
            }
            Found::Problem(kind, _, message) => out.problem(at, kind, message),
        });
    }
    ledger(&parts, decoder, whole, out);
}

/// The thread's own fields.
fn header(fields: &serde_json::Map<String, Json>, out: &mut Stream) {
    let text = |pointer: &[&str]| {
        let (first, rest) = pointer.split_first()?;
        let found = rest.iter().try_fold(fields.get(*first)?, |value, key| value.get(key))?;
        found.as_str()
    };
    out.title(TitleFrom::Agent, text(&["title"]).unwrap_or(""));
    out.set_version(text(&["env", "initial", "platform", "clientVersion"]));
    let created = fields.get("created").and_then(Json::as_i64).filter(|ms| *ms > 0);
    out.widen(created.map(|ms| ms.saturating_mul(1000)));
    let initial = fields.get("env").and_then(|env| env.get("initial"));
    let trees = initial.and_then(|initial| initial.get("trees")).and_then(Json::as_array);
    let Some(tree) = trees.and_then(|trees| trees.first()) else { return };
    let uri = tree["uri"].as_str().or_else(|| tree["path"].as_str());
    out.set_cwd(uri.map(path_of).as_deref());
    let repository = &tree["repository"];
    out.set_repository(repository["url"].as_str());
    let branch = repository["ref"].as_str();
    out.set_branch(branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name)));
}

/// The path in a `file:` URI; other text as it is.
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
    // `/C:/code` is `C:/code`.
    match path.as_bytes() {
        [b'/', drive, b':', ..] if drive.is_ascii_alphabetic() => path[1..].to_owned(),
        _ => path,
    }
}

/// Requests that only the ledger has: titles, and what tools asked of models. Those of messages
/// stand with the messages, where the cached tokens are known too.
fn ledger(parts: &Parts<'_>, decoder: Decoder, whole: RecordAt, out: &mut Stream) {
    let Some(events) = parts.fields.get("usageLedger").and_then(|l| l["events"].as_array()) else {
        return;
    };
    let mut counted = decoder.counted;
    let model = out.session.model.clone();
    for event in events {
        let count = |key: &str| event["tokens"][key].as_i64();
        let usage = Usage { input: count("input"), output: count("output"), ..Usage::default() };
        let message = event["toMessageId"].as_i64();
        let twin = counted.iter().position(|(id, known)| {
            message.map_or(*known == (usage.input, usage.output), |message| *id == Some(message))
        });
        if let Some(at) = twin {
            counted.swap_remove(at);
            continue;
        }
        if usage.total() == 0 {
            continue;
        }
        out.begin_record(whole, None, micros(event["timestamp"].as_str()));
        out.set_model(event["model"].as_str());
        let draft = Draft {
            subtype: event["operationType"].as_str(),
            usage,
            request_id: event["id"].as_str(),
            ..Draft::default()
        };
        out.push_in(EventType::TokenUsage, 0, draft);
    }
    out.set_model(model.as_deref());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_become_paths() {
        assert_eq!(path_of("file:///home/mira/my%20code"), "/home/mira/my code");
        assert_eq!(path_of("file:///C:/code"), "C:/code");
        assert_eq!(path_of("/home/mira"), "/home/mira");
        assert_eq!(path_of("file:///100%"), "/100%");
    }
}
