//! Reads the chats of the Cursor editor from its database, `User/globalStorage/state.vscdb`
//! (docs/formats.md#cursor-editor). Transcripts of its agent are read by the decoder `cursor`.
//!
//! ```text
//! cursorDiskKV(key, value)
//!   composerData:<chat>       {"composerId":"...","name":"...","createdAt":1792570000000,
//!                              "fullConversationHeadersOnly":[{"bubbleId":"...","type":1},...]}
//!   bubbleId:<chat>:<bubble>  {"bubbleId":"...","type":2,"text":"...","toolFormerData":{...}}
//! composerHeaders(composerId, lastUpdatedAt, value)   newer versions; `value` has the folder
//! ```
//!
//! A chat is assembled into a document of its bubbles (`database.rs`), which `bubble.rs` decodes.

mod bubble;
pub(super) mod database;

use std::path::PathBuf;

use schemas::Provider;

use self::bubble::BubbleDecoder;
use crate::provider::format::{
    AgentFolders, LogFormat, LogHead, LogReader, Quirks, RecordTally, SessionClaim,
};
use crate::provider::shared::chat;
use crate::provider::shared::database::tables::claim_stored;
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::stream::{Stream, TitleFrom};
use crate::text::json::{JsonFields, Value};

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::CursorIde,
    has_unique_ids: true,
    decoder_version: 2,
    roots: log_roots,
    sniff: claim_log,
    quirks: Quirks { assemblies: &[database::ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

fn log_roots(places: &AgentFolders<'_>) -> Vec<PathBuf> {
    vec![places.application_path("Cursor").join("User/globalStorage").join(database::DATABASE)]
}

/// Claims a chat by the name of its store.
fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let info = head.stored_info(database::STORE)?;
    let id = info["composerId"].as_str()?;
    Some(claim_stored(Provider::CursorIde, id, &info["subagentInfo"]["parentComposerId"]))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let chat = Document::read(bytes, &ASSEMBLED, out, tally);
    let mut decoder = BubbleDecoder::default();
    chat.with_info(|info| decode_header(info, &mut decoder, out));
    chat.for_each_record(out, tally, &mut |bubble, _, at, out| {
        decoder.decode_bubble(bubble, at, out)
    });
}

/// Reads the fields that describe a chat.
fn decode_header(info: Value<'_>, decoder: &mut BubbleDecoder, out: &mut Stream) {
    let created = chat::read_millis(Some(info), "createdAt");
    out.extend_time_range(created);
    out.extend_time_range(chat::read_millis(Some(info), "lastUpdatedAt"));
    decoder.begin(created);
    out.offer_title(TitleFrom::Agent, info.text("name").unwrap_or(""));
    let workspace =
        info.object("workspaceIdentifier").and_then(|workspace| workspace.object("uri"));
    let folder =
        workspace.and_then(|uri| uri.non_empty("fsPath").or_else(|| uri.non_empty("path")));
    out.set_cwd(folder);
    let model = info.object("modelConfig").and_then(|config| config.text("modelName"));
    out.set_model(model.filter(|model| *model != bubble::CHOSEN_BY_CURSOR));
}
