//! Reads the conversations in an export of ChatGPT, `conversations.json` or
//! `conversations-<number>.json` (docs/formats.md#chatgpt).
//!
//! ```text
//! {"title":"...","create_time":1758000000.5,"update_time":1758000060.0,"mapping":{
//!   "<id>":{"id":"<id>","parent":null,"children":["..."],"message":null},
//!   "<id>":{"id":"<id>","parent":"<id>","children":["..."],"message":{
//!     "id":"...","author":{"role":"user","name":null},"create_time":1758000000.5,
//!     "content":{"content_type":"text","parts":["..."]},"recipient":"all",
//!     "metadata":{"model_slug":"..."}}}},
//!  "current_node":"<id>","conversation_id":"..."}
//! ```
//!
//! Each conversation is assembled into a document (`shared/chat_export.rs`) with the nodes of its tree
//! in the order in which they were written (`order.rs`). `message.rs` decodes them.

mod message;
mod order;

use schemas::Provider;

use self::message::ChatGptDecoder;
use crate::provider::format::{LogFormat, LogHead, LogReader, Quirks, RecordTally, SessionClaim};
use crate::provider::shared::chat;
use crate::provider::shared::chat_export::ChatExport;
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::provider::shared::identity::hash_id;
use crate::source::assembly::Assembly;
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::ChatGpt,
    has_unique_ids: true,
    decoder_version: 1,
    // Only the user knows where an export is.
    roots: |_| Vec::new(),
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// Value of `store` in the documents of these conversations.
const STORE: &str = "chatgpt";

/// The fields with the id of a conversation.
const IDS: &[&str] = &["conversation_id", "id"];

const EXPORT: ChatExport = ChatExport {
    store: STORE,
    names: &["conversations"],
    messages: Some("mapping"),
    is_own: |fields| fields.contains_key("create_time"),
    id: |fields| IDS.iter().find_map(|key| fields.get(*key)?.as_str()).map(str::to_owned),
    updated: "update_time",
    order: order::order_nodes,
};

const ASSEMBLY: Assembly = Assembly {
    name: "ChatGPT export",
    source_suffix: ".json",
    is_source: |path| EXPORT.is_export(path),
    sessions: |path| EXPORT.list(path),
    assemble: |path| EXPORT.assemble(path),
    ..Assembly::NONE
};

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let info = head.stored_info(STORE)?;
    let id = IDS.iter().find_map(|key| info[*key].as_str())?;
    Some(SessionClaim::new(Provider::ChatGpt, id))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let conversation = Document::read(bytes, &ASSEMBLED, out, tally);
    let mut current = None;
    conversation.with_info(|info| {
        decode_info(info, out);
        current = info.text("current_node").map(hash_id);
    });
    let mut decoder = ChatGptDecoder::default();
    conversation.for_each_record(out, tally, &mut |node, raw, at, out| {
        decoder.decode_node(node, raw, at, out)
    });
    // The user may have gone back to an older branch since the last message.
    if let Some(current) = current.filter(|current| Some(*current) != decoder.last_entry()) {
        out.add_tree_entry(hash_id(""), current);
    }
}

/// Reads the fields that describe a conversation.
fn decode_info(info: Value<'_>, out: &mut Stream) {
    for key in ["create_time", "update_time"] {
        out.extend_time_range(info.field(key).and_then(chat::parse_time));
    }
    let title = info.text("title").unwrap_or("");
    if title != "New chat" {
        out.offer_title(TitleFrom::Agent, title);
    }
    out.set_model(info.text("default_model_slug"));
}
