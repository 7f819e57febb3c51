//! Reads the conversations of OpenHands, whose events are files of their own
//! (docs/formats.md#openhands).
//!
//! ```text
//! ~/.openhands/conversations/<id>/base_state.json            {"id":"...","agent":{"llm":{"model":"..."}},
//!                                                             "workspace":{"working_dir":"..."},
//!                                                             "leaf_event_id":"...","stats":{...}}
//! ~/.openhands/conversations/<id>/events/event-00000-<id>.json {"kind":"MessageEvent","id":"...",...}
//! ```
//!
//! A conversation is assembled into a document of its events (`folder.rs`), which `event.rs` decodes.
//! The tokens of each response are in `stats` (`usage.rs`).

mod event;
mod folder;
mod usage;

use schemas::Provider;

use self::event::OpenHandsDecoder;
use self::usage::{NamedResponses, ResponseUsages};
use crate::provider::format::{LogFormat, LogHead, LogReader, Quirks, RecordTally, SessionClaim};
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::provider::shared::identity::{hash_id, uuid_identity};
use crate::stream::Stream;
use crate::stream::tree::ROOT;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::OpenHands,
    has_unique_ids: true,
    decoder_version: 2,
    roots: |places| {
        let conversations = places.env_path("OPENHANDS_CONVERSATIONS_DIR");
        vec![conversations.unwrap_or_else(|| places.home_path(".openhands/conversations"))]
    },
    sniff: claim_log,
    quirks: Quirks {
        assemblies: &[folder::ASSEMBLY],
        is_sidecar: Some(|name, has| name != folder::BASE_STATE && has(folder::BASE_STATE)),
        ..Quirks::NONE
    },
    reader: LogReader::Document(decode_log),
};

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let id = head.stored_info(folder::STORE)?["id"].as_str().filter(|id| !id.is_empty())?;
    let first = head.document()?.get("messages").and_then(|events| events[0]["id"].as_str());
    Some(SessionClaim {
        first_record: uuid_identity(first),
        ..SessionClaim::new(Provider::OpenHands, id)
    })
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let conversation = Document::read(bytes, &ASSEMBLED, out, tally);
    let info = conversation.fields().get("info").cloned().unwrap_or_default();
    out.set_cwd(info["workspace"]["working_dir"].as_str());
    out.set_model(info["model"].as_str());

    let mut usages = ResponseUsages::read(&info["stats"]);
    let named = NamedResponses::read(&conversation);
    usages.push_rest(&named, out);
    let mut decoder = OpenHandsDecoder::new(usages);
    conversation.for_each_record(out, tally, &mut |event, raw, at, out| {
        decoder.decode_event(event, raw, at, out)
    });

    // The user may have gone back to an earlier event since the last one.
    let leaf = match info["leaf_event_id"].as_str() {
        Some(leaf) => Some(hash_id(leaf)),
        None if info["head_is_empty"] == true => Some(ROOT),
        None => None,
    };
    if let Some(leaf) = leaf.filter(|leaf| Some(*leaf) != decoder.last_entry()) {
        out.add_tree_entry(hash_id(""), leaf);
    }
}
