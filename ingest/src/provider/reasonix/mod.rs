//! Reads the sessions of Reasonix from `~/.reasonix/sessions/<id>.jsonl` and the folders next to it
//! (docs/formats.md#reasonix).
//!
//! ```text
//! {"role":"user","content":"..."}
//! {"role":"assistant","content":"...","reasoning_content":"...","tool_calls":[{"id":"c1","name":"...",
//!  "arguments":"{...}"}]}
//! {"role":"tool","tool_call_id":"c1","content":"..."}
//!
//! <id>.jsonl.meta  {"id":"...","created_at":"...","workspace_root":"/...","topic_title":"...","model":"..."}
//! ```
//!
//! Messages have no times, no ids and no tokens. The file next to them describes the session.

use std::path::{Path, PathBuf};

use schemas::{EventType, Provider};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::xxh3_64;

use crate::provider::format::{
    AgentFolders, LineDecoder, LogFormat, LogHead, LogReader, Platform, Quirks, RecordOutcome,
    SessionClaim, state_json,
};
use crate::provider::shared::arguments::Arguments;
use crate::provider::shared::{chat, sidecar};
use crate::stream::{DecodedEvent, RecordAt, Stream, TitleFrom, parse_micros};
use crate::text::json::{JsonFields, Parser, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Reasonix,
    has_unique_ids: false,
    decoder_version: 1,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks {
        companions: Some(|log| meta_paths(log).to_vec()),
        is_sidecar: Some(|name, has| {
            let stem = SIDECARS.iter().find_map(|ending| name.strip_suffix(ending));
            stem.is_some_and(|stem| has(&format!("{stem}.jsonl")))
        }),
        ..Quirks::NONE
    },
    reader: LogReader::Lines(|claim, state| {
        Box::new(ReasonixDecoder {
            state: state
                .and_then(|state| ReasonixState::deserialize(state).ok())
                .unwrap_or_default(),
            is_subagent: claim.agent_id.is_some(),
            meta: Json::Null,
            text: String::new(),
            inner: Parser::default(),
        })
    }),
};

/// Endings of the names of files that repeat or describe the log next to them.
const SIDECARS: &[&str] = &[".events.jsonl", ".meta.json"];

/// Names of the folder of the agent on the systems.
const HOMES: &[&str] = &[".reasonix", "reasonix"];

/// Roles of messages.
const ROLES: &[&str] = &["system", "user", "assistant", "tool"];

/// Maximum size in bytes of the file that describes a session.
const MAX_META_BYTES: u64 = 1 << 20;

/// Fields of that file whose values change what is read.
const META_FIELDS: &[&str] = &["created_at", "workspace_root", "topic_title", "model"];

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let mut homes = vec![places.home_path(".reasonix")];
    if places.platform() == Platform::Windows {
        homes.push(places.application_path("reasonix"));
    }
    let folders = |home: PathBuf| ["sessions", "projects", "archive"].map(|name| home.join(name));
    homes.into_iter().flat_map(folders).collect()
}

/// Returns the files that describe the session of a log, of this version and of the first one.
fn meta_paths(log: &Path) -> [PathBuf; 2] {
    let mut meta = log.as_os_str().to_owned();
    meta.push(".meta");
    [meta.into(), log.with_extension("meta.json")]
}

/// Claims a log of messages that is in a folder of Reasonix or has a file that describes it.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let is_message =
        |object: &Json| object["role"].as_str().is_some_and(|role| ROLES.contains(&role));
    let is_own = head.path.iter().any(|name| HOMES.iter().any(|home| name == *home))
        || meta_paths(head.path)[0].is_file();
    let name = head.path.to_string_lossy();
    let is_sidecar = SIDECARS.iter().any(|end| name.ends_with(end));
    if head.objects.is_empty() || is_sidecar || !is_own || !head.objects.iter().all(is_message) {
        return None;
    }
    let id = head.file_stem();
    let is_subagent = head.path.parent().is_some_and(|folder| folder.ends_with("subagents"));
    Some(SessionClaim {
        agent_id: is_subagent.then(|| id.to_owned()),
        ..SessionClaim::new(Provider::Reasonix, id)
    })
}

/// The state of the decoder between two records of a log.
#[derive(Debug, Default, Serialize, Deserialize)]
struct ReasonixState {
    /// True once the first record was read.
    has_begun: bool,
    /// Hash of what describes the session, as it was then.
    meta: u64,
}

struct ReasonixDecoder {
    state: ReasonixState,
    is_subagent: bool,
    /// What describes the session. Null if nothing does.
    meta: Json,
    text: String,
    inner: Parser,
}

impl LineDecoder for ReasonixDecoder {
    fn prepare(&mut self, log: &Path) -> bool {
        let mut metas = meta_paths(log).into_iter();
        let found = metas.find_map(|path| sidecar::read_json(&path, MAX_META_BYTES));
        self.meta = found.unwrap_or_default();
        !self.state.has_begun || self.meta.is_null() || hash_meta(&self.meta) == self.state.meta
    }

    fn decode_record(
        &mut self,
        message: Value<'_>,
        raw: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let mut time = None;
        if !std::mem::replace(&mut self.state.has_begun, true) {
            self.state.meta = hash_meta(&self.meta);
            time = parse_micros(self.meta["created_at"].as_str());
            out.set_model(self.meta["model"].as_str());
        }
        out.begin_record_by_content(at, raw, time);
        if self.is_subagent {
            out.set_sidechain(None);
        }
        self.text.clear();
        chat::append_field(message, "content", &mut self.text);
        match message.text("role") {
            Some("user") if self.is_subagent => out.push_text(EventType::User, &self.text),
            Some("user") => out.push_prompt(&self.text),
            Some("assistant") => self.decode_response(message, out),
            Some("tool") => {
                let decoded = DecodedEvent {
                    text: &self.text,
                    tool_name: message.non_empty("name"),
                    tool_call_id: message.non_empty("tool_call_id"),
                    ..DecodedEvent::default()
                };
                out.push(EventType::ToolResult, decoded);
            }
            role => {
                let role = role.unwrap_or("untyped");
                if role != "system" {
                    out.count_unknown("record", role);
                    self.text.clear();
                    render::append_notification(message, &["role"], &mut self.text);
                }
                out.push_shortened(role, &self.text);
            }
        }
        RecordOutcome::Events
    }

    fn finish_reading(&mut self, _: RecordAt, out: &mut Stream) {
        out.set_cwd(self.meta["workspace_root"].as_str());
        out.offer_title(TitleFrom::Agent, self.meta["topic_title"].as_str().unwrap_or(""));
        for time in ["created_at", "updated_at"] {
            out.extend_time_range(parse_micros(self.meta[time].as_str()));
        }
    }

    fn save_state(&self) -> String {
        state_json(&self.state)
    }
}

impl ReasonixDecoder {
    fn decode_response(&mut self, message: Value<'_>, out: &mut Stream) {
        out.begin_step();
        if let Some(reasoning) = message.non_empty("reasoning_content") {
            out.push_text(EventType::Reasoning, reasoning);
        }
        if !self.text.is_empty() {
            out.push_text(EventType::Message, &self.text);
        }
        for call in message.items("tool_calls") {
            let function = call.object("function").unwrap_or(call);
            let arguments = Arguments::of_input(function.field("arguments"), &mut self.inner);
            arguments.push_call(function.non_empty("name"), call.non_empty("id"), out);
        }
    }
}

/// Returns a hash of what describes a session, without the times of its changes.
fn hash_meta(meta: &Json) -> u64 {
    let values: Vec<&str> =
        META_FIELDS.iter().map(|field| meta[*field].as_str().unwrap_or("")).collect();
    xxh3_64(values.join("\n").as_bytes())
}
