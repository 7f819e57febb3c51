//! Reads the conversations of Cortex Code, the agent of Snowflake, from
//! `~/.snowflake/cortex/conversations` (docs/formats.md#cortex).
//!
//! ```text
//! <id>.json           {"session_id":"<id>","title":"...","working_directory":"...","git_branch":"...",
//!                      "created_at":"...","last_updated":"...","history":[MESSAGE,...]}
//! <id>.history.jsonl  MESSAGE in each line, if the document has no history
//!
//! MESSAGE  {"role":"assistant","id":"...","user_sent_time":"...","content":[{"type":"tool_use",
//!           "tool_use":{"tool_use_id":"c1","name":"bash","input":{...}}}]}
//! ```

use std::path::{Path, PathBuf};

use schemas::Provider;
use serde_json::Value as Json;

use crate::provider::format::{
    LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::document::{self, Document, DocumentLayout};
use crate::provider::shared::identity::{begin_uuid_record, uuid_identity};
use crate::provider::shared::machine_text::MachineText;
use crate::provider::shared::{blocks, chat, drift, sidecar};
use crate::stream::{RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Cortex,
    has_unique_ids: true,
    decoder_version: 1,
    roots: |places| vec![places.home_path(".snowflake").join(FOLDER)],
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| description_path(log).into_iter().collect()),
        is_sidecar: Some(|name, has| {
            name.strip_suffix(".json").is_some_and(|stem| has(&format!("{stem}{HISTORY_SUFFIX}")))
        }),
        machine_texts: MACHINE_TEXTS,
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

/// The end of the path of the folder of conversations.
const FOLDER: &str = "cortex/conversations";

/// The end of the name of a file with messages.
const HISTORY_SUFFIX: &str = ".history.jsonl";

/// The field of a document that holds the messages.
const HISTORY: &str = "history";

const LAYOUT: DocumentLayout = DocumentLayout { list: Some(HISTORY), header: DESCRIPTION };

/// The fields that describe a conversation.
const DESCRIPTION: &[&str] =
    &["title", "working_directory", "git_root", "git_branch", "created_at", "last_updated"];

/// Maximum size in bytes of a document that describes a conversation in another file.
const MAX_DESCRIPTION_BYTES: u64 = 4 << 20;

/// Beginning of the titles of conversations without one.
const PLACEHOLDER_TITLE: &str = "Chat for session:";

/// Text in the user's role that no user typed, as `cortex-replay` knows it.
const MACHINE_TEXTS: &[MachineText] = &[
    MachineText::documented("<system-reminder>", "</system-reminder>", "system_reminder"),
    MachineText::documented(
        "<local-command-caveat>",
        "</local-command-caveat>",
        "local_command_caveat",
    ),
    MachineText::documented(
        "<local-command-stdout>",
        "</local-command-stdout>",
        "local_command_output",
    ),
    MachineText::documented("<task-notification>", "</task-notification>", "task_notification"),
    MachineText::documented("<command-name>", "", "command"),
    MachineText::documented("<command-message>", "", "command"),
];

/// Returns the document that describes the messages of a file.
fn description_path(log: &Path) -> Option<PathBuf> {
    let name = log.file_name()?.to_str()?;
    Some(log.with_file_name(format!("{}.json", name.strip_suffix(HISTORY_SUFFIX)?)))
}

/// Claims a document with messages, or a file of messages. A backup, `<id>.back.<time>.json`, repeats
/// an earlier state.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let name = head.path.file_name()?.to_str()?;
    if let Some(id) = name.strip_suffix(HISTORY_SUFFIX) {
        // Other programs, too, give files such names.
        let folder = head.path.parent()?;
        if !folder.ends_with(FOLDER) && !description_path(head.path)?.is_file() {
            return None;
        }
        let first = head.objects.first()?;
        let is_message = matches!(first["role"].as_str(), Some("user" | "assistant"))
            && !first["content"].is_null()
            && first.get("sessionId").is_none();
        return is_message.then(|| SessionClaim {
            first_record: uuid_identity(first["id"].as_str()),
            ..SessionClaim::new(Provider::Cortex, id)
        });
    }
    let fields = head.document()?;
    let id = fields.get("session_id")?.as_str().filter(|id| !id.is_empty())?;
    let history = fields.get(HISTORY)?;
    let is_conversation = fields.contains_key("working_directory")
        && fields.contains_key("last_updated")
        && history.as_array().is_none_or(|history| !history.is_empty());
    (is_conversation && !name.contains(".back.")).then(|| SessionClaim {
        first_record: uuid_identity(history[0]["id"].as_str()),
        ..SessionClaim::new(Provider::Cortex, id)
    })
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let path = PathBuf::from(&out.session.source_path);
    if let Some(description) = description_path(&path) {
        let fields = sidecar::read_json(&description, MAX_DESCRIPTION_BYTES).unwrap_or_default();
        apply_description(&|key| fields[key].as_str(), out);
        return document::for_each_line_record(bytes, out, tally, &mut decode_message);
    }
    let conversation = Document::read(bytes, &LAYOUT, out, tally);
    let fields = conversation.fields();
    apply_description(&|key| fields.get(key).and_then(Json::as_str), out);
    conversation.for_each_record(out, tally, &mut decode_message);
}

fn apply_description<'f>(field: &dyn Fn(&str) -> Option<&'f str>, out: &mut Stream) {
    out.extend_time_range(parse_micros(field("created_at")));
    out.extend_time_range(parse_micros(field("last_updated")));
    let title = field("title").unwrap_or("");
    if !title.starts_with(PLACEHOLDER_TITLE) {
        out.offer_title(TitleFrom::Agent, title);
    }
    let folder = field("working_directory").filter(|folder| !folder.is_empty());
    out.set_cwd(folder.or_else(|| field("git_root")));
    out.set_branch(field("git_branch"));
}

fn decode_message(message: Value<'_>, raw: &[u8], at: RecordAt, out: &mut Stream) -> RecordOutcome {
    let id = message.non_empty("id");
    let time = parse_micros(message.text("user_sent_time"));
    out.begin_message(id);
    begin_uuid_record(id, raw, at, time, out);
    match message.text("role") {
        Some("user") => push_user_message(message, out),
        Some("assistant") => {
            out.begin_step();
            blocks::push_response_content(message.field("content"), out);
        }
        role => drift::push_unknown_record(role, message, &["role", "id"], out),
    }
    RecordOutcome::Events
}

/// Pushes a message of the user. Its blocks say which of them the user typed.
fn push_user_message(message: Value<'_>, out: &mut Stream) {
    let mut prompt = String::new();
    let mut machine = String::new();
    for block in message.items("content") {
        let shown = block.non_empty("displayText");
        let is_text = block.text("type") == Some("text");
        let is_machine = block.flag("internalOnly") == Some(true)
            || block.flag("is_user_prompt") == Some(false) && shown.is_none();
        if is_text {
            let text = if is_machine { &mut machine } else { &mut prompt };
            render::append_line(shown.or_else(|| block.text("text")).unwrap_or(""), text);
        } else if matches!(block.text("type"), Some("image")) {
            render::begin_new_line(&mut prompt);
            chat::append_part(block, &mut prompt);
        } else {
            blocks::push_block(block, out);
        }
    }
    if message.items("content").is_empty() {
        prompt.push_str(message.text("content").unwrap_or(""));
    }
    if !machine.is_empty() {
        out.push_shortened("internal", &machine);
    }
    blocks::push_user_text(&prompt, MACHINE_TEXTS, out);
}
