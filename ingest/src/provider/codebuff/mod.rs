//! Reads the chats of Codebuff, earlier Manicode, and of Freebuff, from
//! `~/.config/manicode/projects/<project>/chats/<time>/chat-messages.json` (docs/formats.md#codebuff).
//!
//! ```text
//! [{"id":"user-1793538000000","variant":"user","content":"...","timestamp":"10:00 AM"},
//!  {"id":"ai-1793538002000-8f","variant":"ai","content":"","timestamp":"10:00 AM","blocks":[
//!    {"type":"text","textType":"reasoning","content":"..."},
//!    {"type":"tool","toolCallId":"t1","toolName":"read_files","input":{...},"output":"..."},
//!    {"type":"agent","agentId":"a1","agentType":"thinker","initialPrompt":"...","blocks":[...]}]}]
//! ```

mod blocks;

use std::path::{Path, PathBuf};

use schemas::{Provider, Usage};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::blocks::{ResponseDecoder, append_image};
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{Document, DocumentLayout};
use crate::provider::shared::{chat, drift, sidecar};
use crate::stream::{RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Codebuff,
    has_unique_ids: true,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| vec![log.with_file_name(RUN_STATE)]),
        is_sidecar: Some(|name, has| SIDECARS.contains(&name) && has(MESSAGES)),
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

/// Name of the file with the messages of a chat.
const MESSAGES: &str = "chat-messages.json";

/// Name of the file with what the agent needs to continue, among it the folder.
const RUN_STATE: &str = "run-state.json";

/// Files next to the messages that repeat them, or are for debugging.
const SIDECARS: &[&str] = &["log.jsonl", RUN_STATE, "turn-checkpoint.json"];

/// Maximum size in bytes of the run state. It has the history of the model.
const MAX_RUN_STATE_BYTES: u64 = 16 << 20;

/// Authors of messages.
const VARIANTS: &[&str] = &["agent", "ai", "error", "user"];

const LAYOUT: DocumentLayout = DocumentLayout { list: None, header: &[] };

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let stages = ["manicode", "manicode-dev", "manicode-staging"];
    stages.map(|stage| places.home_path(&format!(".config/{stage}/projects"))).into()
}

/// Claims a list of messages. Its folder is named by the time at which the chat began.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let is_message = |object: &Json| {
        object["variant"].as_str().is_some_and(|variant| VARIANTS.contains(&variant))
            && (object["content"].is_string() || object["blocks"].is_array())
    };
    // A first message that is too large for the beginning of the file is cut.
    let is_chat = match head.objects.as_slice() {
        [] => chat_folder(head.path).is_some_and(|folder| parse_folder_time(folder).is_some()),
        objects => objects.iter().all(is_message),
    };
    (head.is_list && is_chat).then(|| SessionClaim {
        first_record: head.objects.first().and_then(|first| id_hash(first["id"].as_str())),
        ..SessionClaim::new(Provider::Codebuff, chat_folder(head.path).unwrap_or(head.file_stem()))
    })
}

/// Returns the name of the folder of a chat.
fn chat_folder(log: &Path) -> Option<&str> {
    let folder = log.parent().filter(|_| log.file_name().is_some_and(|name| name == MESSAGES))?;
    folder.file_name()?.to_str()
}

/// Returns the identity of the message with this id.
fn id_hash(id: Option<&str>) -> Option<u64> {
    let id = id.filter(|id| !id.is_empty())?;
    Some(xxh3_64(id.as_bytes()) | 1)
}

/// Returns the time that names the folder of a chat: `2026-11-01T13-00-00.000Z`.
fn parse_folder_time(name: &str) -> Option<i64> {
    let (date, time) = name.split_once('T')?;
    parse_micros(Some(&format!("{date}T{}", time.replacen('-', ":", 2))))
}

/// Returns the time in the id of a message: `user-1793538000000`.
fn parse_id_time(id: &str) -> Option<i64> {
    let digits = id.split('-').nth(1)?;
    let millis: i64 = digits.parse().ok().filter(|_| digits.len() == 13)?;
    Some(millis * 1000)
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let path = PathBuf::from(&out.session.source_path);
    out.extend_time_range(chat_folder(&path).and_then(parse_folder_time));
    let state = sidecar::read_json(&path.with_file_name(RUN_STATE), MAX_RUN_STATE_BYTES);
    let context = &state.unwrap_or_default()["sessionState"]["fileContext"];
    out.set_cwd(["cwd", "projectRoot"].iter().find_map(|key| context[*key].as_str()));
    Document::read(bytes, &LAYOUT, out, tally).for_each_record(out, tally, &mut decode_message);
}

fn decode_message(message: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> RecordOutcome {
    let id = message.non_empty("id");
    // The field has the time of day only, without its zone.
    let time = parse_micros(message.text("timestamp")).or_else(|| id.and_then(parse_id_time));
    out.begin_message(id);
    match id_hash(id) {
        Some(identity) => out.begin_record(at, Some(identity), time),
        None => out.begin_record_lacking_id(at, raw, time),
    }
    let metadata = message.object("metadata");
    out.set_cwd(metadata.and_then(|metadata| metadata.text("bashCwd")));
    match message.text("variant") {
        Some("user") => push_prompt(message, out),
        Some("error") => {
            out.push_notice("error", message.text("content").unwrap_or(""), Some(true));
        }
        Some("ai") if id.is_some_and(|id| id.starts_with("sys-")) => {
            let mut text = message.text("content").unwrap_or("").to_owned();
            append_blocks(message, &mut text);
            render::truncate_notification(&mut text);
            out.push_notification("system", &text);
        }
        Some("ai") if id.is_some_and(|id| id.starts_with("bash-result-")) => {
            push_shell_input(message, out);
        }
        Some(variant @ ("ai" | "agent")) => {
            let agent = message.non_empty("parentId").or(id).filter(|_| variant == "agent");
            push_response(message, agent, out);
        }
        variant => drift::push_unknown_record(variant, message, &["variant", "id"], out),
    }
    RecordOutcome::Events
}

/// Appends the texts and pictures of a message, each in lines of its own.
fn append_blocks(message: Value<'_>, text: &mut String) {
    for block in message.items("blocks") {
        render::begin_new_line(text);
        match block.text("type") {
            Some("image") => append_image(block, text),
            _ => text.push_str(block.text("content").unwrap_or("")),
        }
    }
}

/// Pushes what the user typed, with what was pasted and the names of what was attached.
fn push_prompt(message: Value<'_>, out: &mut Stream) {
    let mut text = message.text("content").unwrap_or("").to_owned();
    append_blocks(message, &mut text);
    for pasted in message.items("textAttachments") {
        render::append_line(pasted.text("content").unwrap_or(""), &mut text);
    }
    for list in ["attachments", "fileAttachments"] {
        for file in message.items(list) {
            let name = ["path", "filename"].iter().find_map(|key| file.non_empty(key));
            render::append_line(&format!("[{}]", name.unwrap_or("file")), &mut text);
        }
    }
    out.push_prompt(&text);
}

/// Pushes a command that the user ran behind `!`, and what it printed.
fn push_shell_input(message: Value<'_>, out: &mut Stream) {
    for block in message.items("blocks") {
        let input = block.object("input");
        let command = input.and_then(|input| input.text("command")).unwrap_or("");
        out.push_prompt(&format!("!{command}"));
        out.push_notification("bash_output", block.text("output").unwrap_or(""));
    }
}

fn push_response(message: Value<'_>, agent: Option<&str>, out: &mut Stream) {
    if let Some(agent) = agent {
        out.set_sidechain(Some(agent));
    }
    let metadata = message.object("metadata");
    out.set_model(metadata.and_then(|metadata| metadata.non_empty("model")));
    let mut response = ResponseDecoder::default();
    response.push_blocks(message, agent, 0, out);
    if let Some(error) = message.non_empty("userError") {
        out.push_notice("error", error, Some(true));
    }
    let counts = metadata.and_then(|metadata| {
        let nested = || metadata.object("codebuff")?.object("usage");
        metadata.object("usage").or_else(nested)
    });
    if let Some(counts) = counts {
        out.push_usage(read_usage(counts), None, message.non_empty("id"));
    }
}

/// Reads the counts of a message. The readers that know them take the input as it is written.
fn read_usage(counts: Value<'_>) -> Usage {
    Usage {
        input: chat::first_int(counts, &["inputTokens", "input_tokens"]),
        output: chat::first_int(counts, &["outputTokens", "output_tokens"]),
        cache_read: chat::first_int(counts, &["cacheReadInputTokens", "cache_read_input_tokens"]),
        cache_write: chat::first_int(
            counts,
            &["cacheCreationInputTokens", "cache_creation_input_tokens"],
        ),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const CHAT: &str = "/p/chats/2026-11-01T14-00-00.000Z/chat-messages.json";

    fn check(path: &str, objects: Vec<Json>, want: Option<&str>) {
        let head = LogHead { path: Path::new(path), objects, fields: None, is_list: true };
        assert_eq!(claim_log(&head).map(|claim| claim.native_id).as_deref(), want, "{path}");
    }

    #[test]
    fn chats_are_told_by_their_messages_or_their_folder() {
        let messages = || vec![json!({"id": "user-1", "variant": "user", "content": ""})];
        check(CHAT, messages(), Some("2026-11-01T14-00-00.000Z"));
        check(CHAT, Vec::new(), Some("2026-11-01T14-00-00.000Z"));
        check("/saved/chat.json", messages(), Some("chat"));
        check("/site/data/chat-messages.json", Vec::new(), None);
        check(CHAT, vec![json!({"id": 1, "variant": "primary", "content": ""})], None);
    }

    #[test]
    fn ids_and_folders_have_times() {
        let begin = parse_folder_time("2026-11-01T14-00-00.000Z");
        assert_eq!(begin, Some(1_793_541_600_000_000));
        assert_eq!(parse_id_time("ai-1793541602000-3fa9c1"), Some(1_793_541_602_000_000));
        for id in ["bash-result-6f1d0a52", "user-", "user-12", "x"] {
            assert_eq!(parse_id_time(id), None, "{id}");
        }
    }
}
