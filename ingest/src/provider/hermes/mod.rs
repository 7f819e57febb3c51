//! Hermes: `~/.hermes/sessions/session_<id>.json`, one document that is rewritten whole, and
//! `<id>.jsonl`, the transcript of its gateway with a time on each line (FORMATS.md section 10).
//! Where both are there the second is the log. Newer versions keep their sessions in a database,
//! `state.db`, which is not read here.

mod message;

use schemas::Provider;
use serde_json::Value as Json;

use self::message::{Decoder, local_time};
use super::document::{self, Document, Layout};
use super::{Claim, Format, Head, Reader, Tally};
use crate::json::Fields;
use crate::stream::{Stream, TitleFrom};

pub const FORMAT: Format = Format {
    provider: Provider::Hermes,
    unique_ids: false,
    roots: |places| {
        let home = places.set("HERMES_HOME").unwrap_or_else(|| places.home(".hermes"));
        vec![home.join("sessions")]
    },
    sniff,
    reader: Reader::Document(read),
};

const SESSION: Layout = Layout {
    list: Some("messages"),
    header: &["session_start", "last_updated", "title", "model", "cwd", "model_config"],
};

fn sniff(head: &Head<'_>) -> Option<Claim> {
    let claim = |native_id: &str| Claim {
        provider: Provider::Hermes,
        native_id: native_id.to_owned(),
        agent_id: None,
        parent: None,
        relation: None,
        first_record: None,
    };
    if head.objects.first().is_some_and(is_transcript) {
        return Some(claim(head.stem()));
    }
    let document = head.document.as_ref()?;
    let text = |key: &str| document.get(key).and_then(Json::as_str).filter(|text| !text.is_empty());
    let id = text("session_id")?;
    let is_ours = text("session_start").is_some()
        && (document.contains_key("platform") || document.contains_key("messages"));
    let has_transcript = head.path.with_file_name(format!("{id}.jsonl")).exists();
    (is_ours && !has_transcript).then(|| claim(id))
}

/// Whether a line begins a transcript.
fn is_transcript(object: &Json) -> bool {
    object["role"] == "session_meta"
        && ["model", "platform", "tools"].iter().any(|key| object.get(key).is_some())
}

fn read(bytes: &[u8], out: &mut Stream, tally: &mut Tally) {
    let mut decoder = Decoder::default();
    if document::is_lines(bytes, SESSION.list.unwrap_or_default()) {
        return document::lines(bytes, out, tally, &mut |message, span, out, tally| {
            tally.object(decoder.message(message, span.of(bytes), span.at(), out));
        });
    }
    let session = Document::read(bytes, &SESSION, out, tally);
    session.header(|header| {
        let start = header.text("session_start").and_then(local_time);
        decoder.starts(start);
        out.widen(start);
        out.widen(header.text("last_updated").and_then(local_time));
        out.title(TitleFrom::Agent, header.text("title").unwrap_or(""));
        out.set_model(header.text("model"));
        let config = header.object("model_config");
        out.set_cwd(header.text("cwd").or_else(|| config.and_then(|config| config.text("cwd"))));
    });
    document::each(bytes, &session.records, out, tally, &mut |message, raw, at, out| {
        decoder.message(message, raw, at, out)
    });
}
