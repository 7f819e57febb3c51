//! Gemini CLI: `~/.gemini/tmp/<hash>/chats/session-*.json` (one document) and `.jsonl` (header,
//! messages, updates); see docs/formats.md#gemini-cli. In both forms, earlier content may change,
//! so a log is read as a whole every time.

mod header;
mod lines;
mod message;
mod place;

use std::collections::HashSet;
use std::path::Path;

use schemas::Provider;
use schemas::event::Relation;

use self::header::header;
use self::message::Decoder;
use crate::provider::format::{Claim, Format, Head, Outcome, Quirks, Reader, Tally};
use crate::provider::shared::document::{self, Document, Layout};
use crate::provider::shared::identity::is_uuid;
use crate::stream::Stream;
use crate::text::json::Fields;

pub(super) const FORMAT: Format = Format {
    provider: Provider::Gemini,
    unique_ids: true,
    roots: |places| vec![places.home(".gemini/tmp")],
    sniff,
    quirks: Quirks::NONE,
    reader: Reader::Document(read),
};

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let header = match &head.document {
        Some(document) => document,
        None => head.objects.first()?.as_object()?,
    };
    let is_ours = header.contains_key("sessionId")
        && (header.contains_key("projectHash") || header.contains_key("startTime"))
        && !header.contains_key("type");
    if !is_ours {
        return None;
    }
    let text = |key: &str| header.get(key).and_then(|value| value.as_str());
    let folder = head.path.parent().and_then(|p| p.file_name()).and_then(|name| name.to_str());
    let parent = folder.filter(|name| is_uuid(name) && text("kind") == Some("subagent"));
    Some(Claim {
        provider: Provider::Gemini,
        native_id: text("sessionId")
            .filter(|id| !id.is_empty())
            .unwrap_or_else(|| head.stem())
            .to_owned(),
        agent_id: parent.map(|_| head.stem().to_owned()),
        parent: parent.map(str::to_owned),
        relation: (text("kind") == Some("subagent")).then_some(Relation::SubagentOf),
        first_record: None,
    })
}

const LAYOUT: Layout = Layout {
    list: Some("messages"),
    header: &["sessionId", "startTime", "lastUpdated", "summary", "kind", "directories"],
};

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let cwd = place::cwd(Path::new(&out.session.source_path));
    out.set_cwd(cwd.as_deref());
    let (messages, dropped) = if document::is_lines(bytes, "messages") {
        lines::messages(bytes, out, tally)
    } else {
        let document = Document::read(bytes, &LAYOUT, out, tally);
        document.header(|fields| header(fields, out));
        (document.records, HashSet::new())
    };
    let mut decoder = Decoder::default();
    // Position at which the current run of removed messages began.
    let mut since = None;
    document::each(bytes, &messages, out, tally, &mut |message, _, at, out| {
        out.begin_message(message.non_empty("id"));
        let first = out.position();
        decoder.message(message, at, out);
        if dropped.contains(&at.offset) {
            out.abandon(*since.get_or_insert(first));
        } else {
            since = None;
        }
        Outcome::Events
    });
}
