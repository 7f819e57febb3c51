//! The decoder that CONTRIBUTING.md shows, so that it compiles.

use schemas::{EventType, Provider};

use crate::provider::format::{
    LineDecoder, LogFormat, LogHead, LogReader, Quirks, RecordOutcome, SessionClaim,
};
use crate::provider::shared::identity::uuid_identity;
use crate::stream::{DecodedEvent, RecordAt, Stream, parse_micros};
use crate::text::json::{JsonFields as _, Value};
use crate::text::render::append_notification;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::IFlow,
    has_unique_ids: true,
    decoder_version: 1,
    roots: |places| vec![places.data_path("dockhand/sessions")],
    sniff: claim_log,
    quirks: Quirks::NONE,
    reader: LogReader::Lines(|_, _| Box::new(DockhandDecoder)),
};

struct DockhandDecoder;

impl LineDecoder for DockhandDecoder {
    fn decode_record(
        &mut self,
        object: Value<'_>,
        _: &[u8],
        at: RecordAt,
        out: &mut Stream,
    ) -> RecordOutcome {
        let time = parse_micros(object.text("time"));
        out.begin_record(at, uuid_identity(object.text("id")), time);

        match object.text("kind") {
            // Begins a turn, and names the session if nothing else does.
            Some("ask") => out.push_prompt(object.text("text").unwrap_or("")),
            kind => {
                // Unknown kinds are kept, and doctor reports them.
                out.count_unknown("record", kind.unwrap_or("untyped"));
                let mut text = String::new();
                append_notification(object, &["id", "kind", "time"], &mut text);
                let decoded = DecodedEvent { subtype: kind, text: &text, ..DecodedEvent::default() };
                out.push(EventType::Notification, decoded);
            }
        }
        RecordOutcome::Events
    }

    fn save_state(&self) -> String {
        "null".to_owned()
    }
}

/// The decoder's own logs are nowhere.
fn claim_log(_: &LogHead<'_>) -> Option<SessionClaim> {
    None
}

#[test]
fn contributing_shows_a_decoder_that_compiles() {
    assert_eq!(FORMAT.decoder_version, 1);
    let page = std::fs::read_to_string("../CONTRIBUTING.md").expect("the page");
    let code = include_str!("dockhand.rs");
    let start = code.find("pub(super) const FORMAT").expect("the decoder");
    let end = code.find("\n/// The decoder's own logs").expect("its end");
    let shown = code[start..end].replace("Provider::IFlow", "Provider::Dockhand");
    assert!(page.contains(&shown), "CONTRIBUTING.md shows another decoder than {shown}");
}
