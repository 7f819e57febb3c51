//! A session as one HTML page. The page's script draws it as `sessions web` does; without a script,
//! or before it runs, every event is readable as it is in the file.
//!
//! ```text
//! <article class="item user" id="event=5" data-fields='{"event_index":5,...}'>
//!   <h3><b>Prompt</b> 06:12:31</h3>
//!   <pre>the text, which the script reads from here</pre>
//! ```

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemas::tool::details::DetailData;
use schemas::tool::event::{EditDiff, Event};
use schemas::{EventType, ToolError};
use serde::Serialize;

use super::transcript::{
    call_text, event_line, event_remarks, omission_sentence, session_facts, session_title,
    truncate_chars, without_repeats,
};
use crate::page::{FrozenDocument, FrozenView, ShownDetails, escape_attribute, escape_html};
use tools::{EventImage, Transcript, encoding_error, linked_event};

/// Minimum number of turns for which a page has a list of turns.
const CONTENTS_THRESHOLD: usize = 3;

/// Maximum number of characters of a prompt in the list of turns.
const MAX_PROMPT_CHARS: usize = 100;

/// Maximum number of characters of a text.
const MAX_TEXT_CHARS: usize = 40_000;

/// Returns the images of an event that the page shows.
pub(super) type ImageReader<'a> = dyn Fn(&Event) -> Vec<EventImage> + 'a;

/// What the script needs besides the events.
#[derive(Serialize)]
struct TranscriptData<'a> {
    version: &'static str,
    sessions: [&'a schemas::tool::list::Session; 1],
    costs: &'a [(u32, f64)],
    details: ShownDetails<'a>,
}

/// Returns the page of a session. `details` is what `get_session_details` says of it.
pub(super) fn render_transcript(
    whole: &Transcript,
    details: &DetailData,
    images: &ImageReader<'_>,
) -> Result<String, ToolError> {
    let title = session_title(&whole.session);
    let mut plain = format!("<header>\n<h1>{}</h1>\n<dl>\n", escape_html(&title));
    for (name, value) in session_facts(&whole.session) {
        let _ = writeln!(plain, "<div><dt>{name}</dt><dd>{}</dd></div>", escape_html(&value));
    }
    plain.push_str("</dl>\n</header>\n");
    let told = without_repeats(&whole.events);
    let turns: Vec<&[Event]> = told.chunk_by(|a, b| a.turn_index == b.turn_index).collect();
    append_contents(&mut plain, &turns);
    plain.push_str("<main>\n");
    for turn in &turns {
        append_turn(&mut plain, turn, &whole.events, images)?;
    }
    plain.push_str("</main>\n");

    let data = TranscriptData {
        version: env!("CARGO_PKG_VERSION"),
        sessions: [&details.session],
        costs: &whole.costs,
        details: ShownDetails::new(details.summary.as_ref()),
    };
    let view = FrozenView::Transcript { session: &whole.session.session_id };
    FrozenDocument { view, title: &title, data: &data, talks: &[], plain: &plain }.render()
}

/// Appends the list of turns by their prompts, if there are enough to need one.
fn append_contents(out: &mut String, turns: &[&[Event]]) {
    if turns.len() < CONTENTS_THRESHOLD {
        return;
    }
    out.push_str("<nav aria-label=\"Turns\">\n<details><summary>");
    let _ = write!(out, "{} turns</summary>\n<ol>\n", turns.len());
    for turn in turns {
        let Some(first) = turn.first() else { continue };
        let prompt = turn.iter().find(|event| event.event_type == EventType::User);
        let text = prompt.and_then(|event| event.text.as_deref()).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().take(40).collect();
        let line = truncate_chars(&words.join(" "), MAX_PROMPT_CHARS).0;
        let _ = writeln!(
            out,
            "<li><a href=\"#event={}\">{}</a> {}</li>",
            first.event_index,
            turn_heading(first),
            escape_html(&line)
        );
    }
    out.push_str("</ol>\n</details>\n</nav>\n");
}

/// Returns the heading of the turn of an event.
fn turn_heading(event: &Event) -> String {
    match event.turn_index {
        0 => "Before the first prompt".to_owned(),
        index => format!("Turn {index}"),
    }
}

/// Appends consecutive events of one turn. `all` are the events of the session.
fn append_turn(
    out: &mut String,
    events: &[Event],
    all: &[Event],
    images: &ImageReader<'_>,
) -> Result<(), ToolError> {
    let Some(first) = events.first() else { return Ok(()) };
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", turn_heading(first));
    for event in events {
        append_event(out, event, all, images)?;
    }
    out.push_str("</section>\n");
    Ok(())
}

/// Appends an event: its fields for the script, its heading and its text.
fn append_event(
    out: &mut String,
    event: &Event,
    all: &[Event],
    images: &ImageReader<'_>,
) -> Result<(), ToolError> {
    let has_diff = event.diff.as_ref().is_some_and(|diff| !diff.text.is_empty());
    let (text, left) = truncate_chars(call_text(event), MAX_TEXT_CHARS);
    let index = event.event_index;
    let kind = event.event_type.as_str();
    let fields = escape_attribute(&encode_fields(event, left)?);
    let hidden = if event.event_type == EventType::TokenUsage { " hidden" } else { "" };
    let _ = writeln!(
        out,
        "<article class=\"item {kind}\" id=\"event={index}\" data-fields='{fields}'{hidden}>"
    );
    let is_call = event.event_type == EventType::ToolCall;
    let name = escape_html(&event_name(event));
    let mut line = format!("<b>{name}</b>");
    if is_call {
        let _ = write!(line, " <code>{}</code>", escape_html(event_line(event)));
    }
    let result = if is_call { linked_event(event, all) } else { None };
    for remark in event_remarks(event, result) {
        let _ = write!(line, " · {}", escape_html(&remark));
    }

    let is_folded = !matches!(event.event_type, EventType::User | EventType::Message);
    if is_folded {
        let _ = writeln!(out, "<details><summary class=\"line\">{line}</summary>");
    } else {
        let _ = writeln!(out, "<h3>{line} · <a href=\"#event={index}\">#{index}</a></h3>");
    }
    if event.event_type != EventType::TokenUsage && event.text.is_some() {
        // The parser drops a line break at the beginning.
        let class = if has_diff { " class=\"diff\"" } else { "" };
        let _ = writeln!(out, "<pre{class}>\n{}</pre>", escape_html(&text));
    }
    if let Some(sentence) = omission_sentence(event, left) {
        let _ = writeln!(out, "<p class=\"line\">{}</p>", escape_html(&sentence));
    }
    for image in images(event) {
        let kind = image.kind;
        let bytes = STANDARD.encode(&image.bytes);
        let _ = writeln!(
            out,
            "<img src=\"data:{kind};base64,{bytes}\" alt=\"Image of event {index}\">"
        );
    }
    out.push_str(if is_folded { "</details>\n</article>\n" } else { "</article>\n" });
    Ok(())
}

/// Encodes the fields of an event but its text or its diff, which is an element. `left` is the number of
/// characters of the text that are left out.
fn encode_fields(event: &Event, left: usize) -> Result<String, ToolError> {
    let chars = call_text(event).chars().count();
    let diff = event.diff.as_ref().map(|diff| EditDiff { text: String::new(), ..diff.clone() });
    let fields = Event {
        text: None,
        diff,
        text_chars: (left > 0).then_some(chars),
        source: None,
        tool_call_id: None,
        ..event.clone()
    };
    serde_json::to_string(&fields).map_err(encoding_error)
}

/// Returns the name of an event in its heading.
fn event_name(event: &Event) -> String {
    match event.event_type {
        EventType::User => "Prompt".to_owned(),
        EventType::Message => "Answer".to_owned(),
        EventType::Reasoning => "Reasoning".to_owned(),
        EventType::ToolCall => event.tool_name.clone().unwrap_or_else(|| "tool".to_owned()),
        EventType::ToolResult => "Result".to_owned(),
        EventType::TokenUsage => event.event_type.as_str().to_owned(),
        EventType::Notification => event_line(event).to_owned(),
    }
}
