//! Reads what Google Takeout exports of the Gemini app, `MyActivity.json`
//! (docs/formats.md#gemini-app).
//!
//! ```text
//! {"header":"Gemini Apps","title":"Prompted Which harbor ...","time":"2026-02-02T07:24:02.806Z",
//!  "products":["Gemini Apps"],"safeHtmlItem":[{"html":"<p>...</p>"}],
//!  "details":[{"name":"...","url":"https://gemini.google.com/app/<id>"}],
//!  "subtitles":[{"name":"Attached 1 file."}],"attachedFiles":["..."],"imageFile":"..."}
//! ```
//!
//! An entry is a prompt with its answers. Those of a conversation are assembled into a document
//! (`shared/chat_export.rs`); one that names none, as in old exports, is a session of its own.

mod html;

use schemas::{EventType, Provider};
use serde_json::Value as Json;
use serde_json::value::RawValue;
use xxhash_rust::xxh3::xxh3_64;

use self::html::append_html;
use crate::provider::format::{
    LogFormat, LogHead, LogReader, Quirks, RecordOutcome, RecordTally, SessionClaim,
};
use crate::provider::shared::chat_export::{ChatExport, Fields};
use crate::provider::shared::document::{ASSEMBLED, Document};
use crate::provider::shared::drift;
use crate::source::assembly::Assembly;
use crate::stream::{RecordAt, Stream, parse_micros};
use crate::text::damaged_json::field_text;
use crate::text::json::{JsonFields, Value, string_value};
use crate::text::render;

pub(super) const FORMAT: LogFormat = LogFormat {
    provider: Provider::GeminiApps,
    has_unique_ids: true,
    decoder_version: 1,
    // Only the user knows where an export is.
    roots: |_| Vec::new(),
    sniff: claim_log,
    quirks: Quirks { assemblies: &[ASSEMBLY], ..Quirks::NONE },
    reader: LogReader::Document(decode_log),
};

/// Value of `store` in the documents of these conversations.
const STORE: &str = "geminiapps";

const EXPORT: ChatExport = ChatExport {
    store: STORE,
    names: &["MyActivity", "My Activity"],
    messages: None,
    is_own: |fields| fields.get("header").and_then(Json::as_str).is_some_and(is_gemini),
    id: conversation_id,
    updated: "time",
    order: order_entries,
};

const ASSEMBLY: Assembly = Assembly {
    name: "Gemini Takeout",
    source_suffix: ".json",
    is_source: |path| EXPORT.is_export(path),
    sessions: |path| EXPORT.list(path),
    assemble: |path| EXPORT.assemble(path),
    ..Assembly::NONE
};

/// The beginning of the address of a conversation.
const ADDRESS: &str = "https://gemini.google.com/app/";

/// The words before a prompt in a title. Other words are those of other activities.
const PROMPT_WORDS: &[&str] = &["Prompted ", "Branched ", "Answered ", "Asked: "];

/// The words before what the user did otherwise.
const OTHER_WORDS: &[&str] =
    &["Added ", "Cleared ", "Created ", "Gave feedback", "Selected ", "Used "];

/// Known fields of an entry.
const KNOWN_ENTRY: &[&str] = &[
    "activityControls",
    "attachedFiles",
    "details",
    "header",
    "imageFile",
    "products",
    "safeHtmlItem",
    "subtitles",
    "time",
    "title",
    "titleUrl",
];

fn is_gemini(header: &str) -> bool {
    header.contains("Gemini") || header.contains("Bard")
}

/// Returns the id of the conversation of an entry. A prompt that names none or several has its time as
/// the id; what the user did otherwise is in one session.
fn conversation_id(fields: &Fields) -> Option<String> {
    let details = fields.get("details").and_then(Json::as_array);
    let addresses = details.into_iter().flatten().filter_map(|detail| detail["url"].as_str());
    let mut ids: Vec<&str> = addresses
        .filter_map(|address| address.strip_prefix(ADDRESS))
        .map(|rest| rest.split(['/', '?', '#']).next().unwrap_or(rest))
        .filter(|id| !id.is_empty())
        .collect();
    ids.dedup();
    match ids.as_slice() {
        [id] => Some((*id).to_owned()),
        _ if !has_prompt(fields) => Some("gemini-activity".to_owned()),
        _ => fields.get("time")?.as_str().map(|time| format!("gemini-{}", time.replace(':', ""))),
    }
}

fn has_prompt(fields: &Fields) -> bool {
    let title = fields.get("title").and_then(Json::as_str).unwrap_or("");
    let answers = fields.get("safeHtmlItem").and_then(Json::as_array);
    is_prompt(title, answers.is_some_and(|answers| !answers.is_empty()))
}

/// Returns whether an entry is a prompt. In other languages than English the words before it are
/// others, so what has an answer is one.
fn is_prompt(title: &str, has_answers: bool) -> bool {
    let begins = |words: &[&str]| words.iter().any(|words| title.starts_with(words));
    begins(PROMPT_WORDS) || has_answers && !begins(OTHER_WORDS)
}

/// Puts entries in the order of their times. Exports have the latest first.
fn order_entries(mut entries: Vec<&RawValue>) -> Vec<&RawValue> {
    entries.reverse();
    entries.sort_by_cached_key(|entry| {
        let time: Option<String> = serde_json::from_str(field_text(entry.get(), "time")?).ok();
        parse_micros(time.as_deref())
    });
    entries
}

fn claim_log(head: &LogHead<'_>) -> Option<SessionClaim> {
    let id = head.stored_info(STORE)?["id"].as_str()?;
    Some(SessionClaim::new(Provider::GeminiApps, id))
}

fn decode_log(bytes: &[u8], out: &mut Stream, tally: &mut RecordTally) {
    let conversation = Document::read(bytes, &ASSEMBLED, out, tally);
    conversation.for_each_record(out, tally, &mut decode_entry);
}

/// Decodes an entry: a prompt with its answers, or something else that the user did.
fn decode_entry(entry: Value<'_>, _: &[u8], at: RecordAt, out: &mut Stream) -> RecordOutcome {
    let title = entry.text("title").unwrap_or("");
    let time = entry.text("time").unwrap_or("");
    let identity = xxh3_64(format!("{time} {title}").as_bytes()) | 1;
    out.begin_record(at, Some(identity), parse_micros(Some(time)));
    drift::count_unknown_fields(entry, KNOWN_ENTRY, out);
    let answers = entry.items("safeHtmlItem");
    let prompt = PROMPT_WORDS.iter().find_map(|words| title.strip_prefix(words));
    let is_prompt = is_prompt(title, !answers.is_empty());
    if is_prompt {
        out.push_prompt(prompt.unwrap_or(title));
    } else {
        out.push_notification("activity", title);
    }

    let mut names = String::new();
    for file in entry.items("attachedFiles").into_iter().filter_map(string_value) {
        render::append_line(file, &mut names);
    }
    if let Some(image) = entry.non_empty("imageFile") {
        render::append_line(image, &mut names);
    }
    if !names.is_empty() {
        out.push_notification("attachments", &names);
    }
    for answer in answers {
        let mut text = String::new();
        append_html(answer.text("html").unwrap_or(""), &mut text);
        if is_prompt {
            out.begin_step();
            out.push_text(EventType::Message, &text);
        } else {
            out.push_shortened("activity", &text);
        }
    }
    RecordOutcome::Events
}
