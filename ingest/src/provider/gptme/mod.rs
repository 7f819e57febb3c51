//! Reads the conversations of gptme (docs/formats.md#gptme).
//!
//! ```text
//! ~/.local/share/gptme/logs/<name>/conversation.jsonl
//!   {"role":"user","content":"...","timestamp":"2026-06-13T10:00:01.000000"}
//!   {"role":"assistant","content":"```shell\nls\n```","timestamp":"...",
//!    "metadata":{"model":"...","cost":0.001,"usage":{"input_tokens":120,...}}}
//!   {"role":"system","content":"Ran command: `ls`\n...","timestamp":"..."}
//! next to it, config.toml with the title, the folder and the model; branches/<name>.jsonl
//! ```
//!
//! Calls are in the text of a response (`calls.rs`), and messages of the system after it are their results.
//! The file is rewritten with each message.

mod calls;

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};

use schemas::event::Relation;
use schemas::{EventType, Provider, Usage};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use self::calls::{WrittenCall, find_calls};
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Platform, Quirks, RecordOutcome, RecordTally,
    SessionClaim,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::document;
use crate::provider::shared::{chat, drift};
use crate::source::bounded_file::read_bounded_file;
use crate::source::container::has_log;
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom};
use crate::text::json::{JsonFields, Parser, Value, string_value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Gptme,
    has_unique_ids: false,
    decoder_version: 1,
    roots: |places| vec![logs_folder(places)],
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| {
            if log.ends_with(CONVERSATION) { vec![log.with_file_name(CONFIG)] } else { Vec::new() }
        }),
        is_stored_elsewhere: Some(is_other_file),
        is_other_folder: Some(is_other_folder),
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

/// File name of a conversation.
const CONVERSATION: &str = "conversation.jsonl";

/// The folder of the conversations.
const LOGS: &str = "logs";

/// The folder of the branches of a conversation.
const BRANCHES: &str = "branches";

/// The folder in which the tools of a conversation work, unless it has another one.
const WORKSPACE: &str = "workspace";

/// File name of the settings of a conversation.
const CONFIG: &str = "config.toml";

/// Maximum size in bytes of the settings.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// The beginnings of results that have failed.
const FAILURES: &[&str] = &["Error", "Failed"];

/// Known fields of a message.
const KNOWN_MESSAGE: &[&str] = &[
    "call_id",
    "content",
    "ephemeral_ttl",
    "file_hashes",
    "files",
    "hide",
    "metadata",
    "pinned",
    "role",
    "timestamp",
];

fn logs_folder(places: &AgentFolders<'_>) -> PathBuf {
    if let Some(logs) = places.env_path("GPTME_LOGS_HOME") {
        return logs;
    }
    let is_linux =
        places.platform() == Platform::Linux || places.env_path("XDG_DATA_HOME").is_some();
    let data = match places.platform() {
        _ if is_linux => places.data_path("gptme"),
        Platform::Windows => places.local_path("gptme/gptme"),
        Platform::MacOs | Platform::Linux => places.application_path("gptme"),
    };
    data.join(LOGS)
}

/// Returns whether a file in the folder of a conversation is no log: a list of changes, and views of the
/// conversation that were made shorter.
fn is_other_file(path: &Path) -> bool {
    let is_in =
        |folder: Option<&Path>| folder.is_some_and(|folder| has_log(&folder.join(CONVERSATION)));
    let folder = path.parent();
    let above = folder.and_then(Path::parent);
    path.ends_with("events.jsonl") && (is_in(folder) || is_in(above.and_then(Path::parent)))
        || folder.is_some_and(|folder| folder.ends_with("views")) && is_in(above)
}

/// Returns whether a folder is that of a conversation. Other programs, too, call a file
/// `conversation.jsonl`.
fn is_conversation_folder(folder: &Path) -> bool {
    folder.parent().is_some_and(|logs| logs.ends_with(LOGS)) || folder.join(CONFIG).is_file()
}

/// Returns whether a folder in that of a conversation has no logs, as the workspace, which may be a project.
fn is_other_folder(path: &Path) -> bool {
    let Some(folder) = path.parent() else { return false };
    // Names rule most folders out. The system is asked about the others.
    let may_be_other = path.ends_with(WORKSPACE)
        || folder.parent().is_some_and(|logs| logs.ends_with(LOGS)) && !path.ends_with(BRANCHES);
    may_be_other && is_conversation_folder(folder) && has_log(&folder.join(CONVERSATION))
}

/// Claims a conversation, which its folder names, or a branch of one.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let first = head.objects.first()?;
    // The time has microseconds, so no other conversation begins with the same message.
    let first_record = Some(xxh3_64(first.to_string().as_bytes()) | 1);
    let is_message = matches!(first["role"].as_str(), Some("system" | "user" | "assistant"))
        && first["content"].is_string()
        && first["timestamp"].is_string();
    let folder = head.path.parent()?;
    let name = |folder: &Path| Some(folder.file_name()?.to_str()?.to_owned());
    if is_message && head.path.ends_with(CONVERSATION) && is_conversation_folder(folder) {
        return Some(SessionClaim {
            first_record,
            ..SessionClaim::new(Provider::Gptme, name(folder)?)
        });
    }
    let is_conversation =
        |folder: &&Path| is_conversation_folder(folder) && has_log(&folder.join(CONVERSATION));
    let conversation = folder.parent().filter(|_| is_message && folder.ends_with(BRANCHES));
    if let Some(parent) = conversation.filter(is_conversation).and_then(name) {
        let id = format!("{parent}/{}", head.file_stem());
        return Some(SessionClaim {
            parent: Some(parent),
            relation: Some(Relation::ForkedFrom),
            first_record,
            ..SessionClaim::new(Provider::Gptme, id)
        });
    }
    // A copy somewhere else is known by its times.
    let is_copy = is_message && first["timestamp"].as_str().is_some_and(is_local_time);
    is_copy.then(|| SessionClaim {
        first_record,
        ..SessionClaim::new(Provider::Gptme, head.file_stem())
    })
}

/// Returns whether a time is written as gptme does: with microseconds, and without a zone.
fn is_local_time(time: &str) -> bool {
    let fraction = time.rsplit_once('.').map(|(_, fraction)| fraction);
    fraction.is_some_and(|fraction| {
        fraction.len() == 6 && fraction.bytes().all(|byte| byte.is_ascii_digit())
    })
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let log = PathBuf::from(&out.session.source_path);
    let is_branch = !log.ends_with(CONVERSATION);
    let folder =
        log.parent().and_then(|folder| if is_branch { folder.parent() } else { Some(folder) });
    decode_config(folder.unwrap_or(&log), out);
    let mut decoder = GptmeDecoder::default();
    let mut seen = HashSet::new();
    document::for_each_line_record(bytes, out, tally, &mut |message, raw, at, out| {
        // Two messages differ in their times, unless one was written twice.
        if message.text("timestamp").is_some() && !seen.insert(xxh3_64(raw)) {
            return RecordOutcome::Merged("repeated_message");
        }
        decoder.decode_message(message, raw, at, out)
    });
}

/// Reads the settings of a conversation: `[chat]` with `name`, `model` and `workspace`.
fn decode_config(folder: &Path, out: &mut Stream) {
    let Some(config) = read_bounded_file(&folder.join(CONFIG), MAX_CONFIG_BYTES) else { return };
    let Ok(config) = toml::from_str::<Json>(&String::from_utf8_lossy(&config)) else { return };
    let chat = &config["chat"];
    out.offer_title(TitleFrom::Agent, chat["name"].as_str().unwrap_or(""));
    out.set_model(chat["model"].as_str());
    // A folder in that of the conversation is where the log is, not where it ran.
    out.set_cwd(chat["workspace"].as_str().filter(|path| !path.starts_with("@log")));
}

/// Decodes the messages of one conversation in order.
#[derive(Default)]
struct GptmeDecoder {
    /// Ids of the calls of the last response that have no result yet.
    open_calls: VecDeque<String>,
    /// Number of calls without an id of their own.
    call_count: usize,
    parser: Parser,
}

impl GptmeDecoder {
    fn decode_message(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = message.text("timestamp").and_then(chat::parse_unzoned);
        out.begin_record_by_content(at, raw, time);
        drift::count_unknown_fields(message, KNOWN_MESSAGE, out);
        let content = message.text("content").unwrap_or("");
        match message.text("role") {
            Some("user") => {
                self.open_calls.clear();
                out.push_prompt(content);
                push_files(message, out);
            }
            Some("assistant") => self.decode_answer(message, content, out),
            Some("system" | "tool") => self.decode_system(message, content, out),
            role => {
                let role = role.unwrap_or("untyped");
                out.count_unknown("record", role);
                out.push_shortened(role, content);
            }
        }
        RecordOutcome::Events
    }

    fn decode_answer(&mut self, message: Value<'_>, content: &str, out: &mut Stream) {
        self.open_calls.clear();
        let metadata = message.object("metadata");
        out.set_model(metadata.and_then(|metadata| metadata.text("model")));
        out.begin_step();
        let (reasoning, text) = split_reasoning(content);
        if !reasoning.trim().is_empty() {
            out.push_text(EventType::Reasoning, reasoning.trim());
        }
        out.push_text(EventType::Message, text.trim());
        for call in find_calls(text) {
            self.push_call(&call, out);
        }
        if let Some(metadata) = metadata {
            push_tokens(metadata, out);
        }
    }

    fn push_call(&mut self, call: &WrittenCall<'_>, out: &mut Stream) {
        let mut arguments = Arguments::default();
        arguments.read_json_text(&call.arguments, &mut self.parser);
        self.call_count += 1;
        let id = call.id.map_or_else(|| format!("call-{}", self.call_count), str::to_owned);
        let files: Vec<String> = call.file.iter().map(|file| (*file).to_owned()).collect();
        let decoded = arguments.decoded();
        let decoded = DecodedEvent {
            tool_name: Some(call.tool),
            tool_call_id: Some(&id),
            files: if files.is_empty() { decoded.files } else { &files },
            command: if call.is_command { &call.arguments } else { decoded.command },
            ..decoded
        };
        out.push(EventType::ToolCall, decoded);
        self.open_calls.push_back(id);
    }

    /// Decodes a message of the system: the result of a call, or a notification.
    fn decode_system(&mut self, message: Value<'_>, content: &str, out: &mut Stream) {
        let named = message.non_empty("call_id").map(str::to_owned);
        if let Some(id) = &named {
            self.open_calls.retain(|open| open != id);
        }
        let Some(id) = named.or_else(|| self.open_calls.pop_front()) else {
            return out.push_shortened("system", content);
        };
        let exit_code = parse_return_code(content);
        let has_failed = FAILURES.iter().any(|start| content.starts_with(start))
            || exit_code.is_some_and(|code| code != 0);
        out.push_result(Some(&id), content, Some(has_failed), exit_code);
    }
}

/// Pushes the names of the files of a prompt.
fn push_files(message: Value<'_>, out: &mut Stream) {
    let files = message.items("files");
    let names: Vec<&str> = files.into_iter().filter_map(string_value).collect();
    if !names.is_empty() {
        out.push_notification("attachments", &names.join("\n"));
    }
}

/// Pushes the tokens of a response. Old logs have the counts next to the model.
fn push_tokens(metadata: Value<'_>, out: &mut Stream) {
    let counts = metadata.object("usage").unwrap_or(metadata);
    let usage = Usage {
        input: counts.int("input_tokens"),
        output: counts.int("output_tokens"),
        cache_read: counts.int("cache_read_tokens"),
        cache_write: counts.int("cache_creation_tokens"),
        ..Usage::default()
    };
    out.push_usage(usage, metadata.cost("cost"), None);
}

/// Splits a response into its reasoning and the rest.
fn split_reasoning(content: &str) -> (&str, &str) {
    for (start, end) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        let rest = content.trim_start().strip_prefix(start);
        if let Some(split) = rest.and_then(|rest| rest.split_once(end)) {
            return split;
        }
    }
    ("", content)
}

/// Parses the exit code in the output of a command that failed.
fn parse_return_code(text: &str) -> Option<i32> {
    let line = text.lines().rev().find_map(|line| line.strip_prefix("Return code: "))?;
    line.trim().parse().ok()
}
