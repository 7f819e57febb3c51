//! Reads the conversations of Warp's agent from its database `warp.sqlite` (docs/formats.md#warp).
//!
//! ```text
//! agent_conversations(conversation_id, conversation_data, last_modified_at)
//! agent_tasks(id, conversation_id, task_id, task, last_modified_at)   task: Protocol Buffers
//! ai_queries(id, exchange_id, conversation_id, start_ts, input, working_directory, model_id,
//!            output_status)
//! ```
//!
//! A conversation is assembled into a document. Its messages are those of its tasks; the rows of
//! `ai_queries`, one for each request, have the model and the folder.

mod database;
mod message;
mod task;

use std::path::PathBuf;

use schemas::session::SHUTDOWN_SUM;
use schemas::{Provider, Usage};

use self::database::{ASSEMBLY, DATABASE, STORE};
use self::message::WarpDecoder;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Platform, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::database::tables::claim_stored;
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::provider::shared::identity::begin_header_record;
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::Warp,
    has_unique_ids: true,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// Returns the databases of the terminal and of its text interface, of the stable and of the preview
/// version.
fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    let folders = match places.platform() {
        Platform::Linux => {
            ["warp-terminal", "warp-terminal-preview"].map(|name| places.state_path(name)).to_vec()
        }
        Platform::MacOs => ["dev.warp.Warp-Stable", "dev.warp.Warp-Preview"]
            .into_iter()
            .flat_map(|name| {
                let group = "Library/Group Containers/2BBY89MBSN.dev.warp";
                let group = places.home_path(group).join("Library/Application Support");
                [group.join(name), places.application_path(name)]
            })
            .collect(),
        Platform::Windows => {
            ["warp/Warp/data", "warp/WarpPreview/data"].map(|name| places.local_path(name)).to_vec()
        }
    };
    let databases = folders.iter().flat_map(|folder| [folder.clone(), folder.join("tui")]);
    databases.map(|folder| folder.join(DATABASE)).collect()
}

/// Claims a conversation by the name of its store.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let info = head.stored_info(STORE)?;
    let id = info["id"].as_str()?;
    Some(claim_stored(Provider::Warp, id, &info["parent_conversation_id"]))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let conversation = Document::read(bytes, &ASSEMBLED, out, tally);
    conversation.with_info(|info| decode_header(info, out));
    let mut decoder = WarpDecoder::default();
    conversation.for_each_record(out, tally, &mut |record, _, at, out| {
        decoder.decode_record(record, at, out)
    });
}

/// Reads the fields of a conversation. Their event comes first, so that no event changes its place
/// when the conversation grows.
fn decode_header(info: Value<'_>, out: &mut Stream) {
    out.offer_title(TitleFrom::Agent, info.text("title").unwrap_or(""));
    out.set_model(info.text("model"));
    let Some(usage) = info.object("conversation_usage_metadata") else { return };
    begin_header_record(info.int("end"), out);
    if let Some(charged) = usage.object("total_charged_usage") {
        let counts = Usage {
            input: charged.int("input_tokens"),
            output: charged.int("output_tokens"),
            cache_read: charged.int("input_cache_read_tokens"),
            cache_write: charged.int("input_cache_write_tokens"),
            ..Usage::default()
        };
        let cost = usage.cost("total_provider_cost_in_cents").map(|cents| cents / 100.0);
        out.push_counts(SHUTDOWN_SUM, counts, cost);
        return;
    }
    // Sums of input and output together, which are neither.
    let mut text = String::new();
    for row in usage.items("token_usage") {
        render::begin_new_line(&mut text);
        render::append_value(row, &mut text);
    }
    if !text.is_empty() {
        out.push_shortened("usage", &text);
    }
}
