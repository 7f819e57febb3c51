//! A session as one HTML page: answers are rendered from Markdown, calls and results are folded.
//! The page has no script; its policy allows none.

use std::fmt::Write as _;

use schemas::tool::event::Event;

use super::diff::CallDiff;
use super::text::{escape_html, render_html};
use super::transcript::{
    TranscriptPart, TranscriptTurn, collect_turns, describe_call, describe_notices, event_remarks,
    omission_sentence, session_facts, session_title, truncate_chars,
};
use crate::export::csp::content_security_policy;
use crate::tools::Transcript;

const STYLE: &str = include_str!("assets/transcript.css");

/// Minimum number of turns for which a page has a list of turns.
const CONTENTS_THRESHOLD: usize = 3;

/// Maximum number of characters of a prompt in the list of turns.
const MAX_PROMPT_CHARS: usize = 100;

/// Maximum number of characters shown of a prompt or an answer.
const MAX_MESSAGE_CHARS: usize = 40_000;

/// Maximum number of characters shown of a folded text.
const MAX_FOLDED_CHARS: usize = 8_000;

/// Returns the page of a session.
pub(super) fn render_transcript(whole: &Transcript) -> String {
    let turns = collect_turns(&whole.events);
    let title = escape_html(&session_title(&whole.session));
    let mut out = format!(
        r##"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="generator" content="sessions transcript">
<meta http-equiv="Content-Security-Policy" content="{}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the transcript</a>
<header>
<h1>{title}</h1>
<dl>
"##,
        content_security_policy(&[], &[STYLE])
    );
    for (name, value) in session_facts(&whole.session) {
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape_html(&value));
    }
    out.push_str("</dl>\n</header>\n");
    append_contents(&mut out, &turns);
    out.push_str("<main id=\"main\" tabindex=\"-1\">\n");
    for turn in &turns {
        append_turn(&mut out, turn);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Appends the list of turns by their prompts, if there are enough to need one.
fn append_contents(out: &mut String, turns: &[TranscriptTurn<'_>]) {
    if turns.len() < CONTENTS_THRESHOLD {
        return;
    }
    out.push_str("<nav aria-label=\"Turns\">\n<details><summary>");
    let _ = write!(out, "{} turns</summary>\n<ol>\n", turns.len());
    for turn in turns {
        let prompt = turn.parts.iter().find_map(|part| match part {
            TranscriptPart::Prompt(event) => event.text.as_deref(),
            TranscriptPart::Answer(_)
            | TranscriptPart::Reasoning(_)
            | TranscriptPart::Call { .. }
            | TranscriptPart::Result(_)
            | TranscriptPart::Notices(_) => None,
        });
        let words = prompt.unwrap_or_default().split_whitespace().take(40);
        let line = truncate_chars(&words.collect::<Vec<_>>().join(" "), MAX_PROMPT_CHARS).0;
        let _ = writeln!(
            out,
            "<li><a href=\"#turn-{}\">{}</a> {}</li>",
            turn.index,
            turn_heading(turn),
            escape_html(&line)
        );
    }
    out.push_str("</ol>\n</details>\n</nav>\n");
}

/// Returns the heading of a turn.
fn turn_heading(turn: &TranscriptTurn<'_>) -> String {
    match turn.index {
        0 => "Before the first prompt".to_owned(),
        index => format!("Turn {index}"),
    }
}

fn append_turn(out: &mut String, turn: &TranscriptTurn<'_>) {
    let index = turn.index;
    let time = turn.timestamp.unwrap_or("no time");
    let _ = write!(
        out,
        "<section aria-labelledby=\"turn-{index}\">\n<h2 id=\"turn-{index}\">{} <small>{}</small></h2>\n",
        turn_heading(turn),
        escape_html(time)
    );
    for part in &turn.parts {
        append_part(out, part);
    }
    out.push_str("</section>\n");
}

fn append_part(out: &mut String, part: &TranscriptPart<'_>) {
    match part {
        TranscriptPart::Prompt(event) => {
            append_part_start(out, "prompt", "<h3>Prompt</h3>", event, None);
            let (text, left) = cut_message(event);
            let _ = writeln!(out, "<pre>{}</pre>", escape_html(&text));
            append_omission(out, event, left);
        }
        TranscriptPart::Answer(event) => {
            append_part_start(out, "answer", "<h3>Answer</h3>", event, None);
            let (text, left) = cut_message(event);
            let _ = writeln!(out, "<div class=\"markdown\">\n{}</div>", render_html(&text));
            append_omission(out, event, left);
        }
        TranscriptPart::Reasoning(event) => {
            append_part_start(out, "reasoning", "<b>Reasoning</b>", event, None);
            append_folded(out, "Show the reasoning", &[*event]);
        }
        TranscriptPart::Call { call, result } => {
            append_part_start(out, "call", &tool_heading(call), call, *result);
            append_call(out, call, *result);
        }
        TranscriptPart::Result(event) => {
            append_part_start(out, "call", &tool_heading(event), event, None);
            append_folded(out, "Show the result", &[*event]);
        }
        TranscriptPart::Notices(notices) => {
            let Some(first) = notices.first() else { return };
            append_part_start(out, "notices", "<b>Records of the agent</b>", first, None);
            append_folded(out, &escape_html(&describe_notices(notices)), notices);
        }
    }
    out.push_str("</div>\n");
}

/// Returns the name of an event's tool as HTML.
fn tool_heading(event: &Event) -> String {
    format!("<b>{}</b>", escape_html(event.tool_name.as_deref().unwrap_or("tool")))
}

/// Opens a part: its name, its remarks, and the id that links to it.
fn append_part_start(
    out: &mut String,
    class: &str,
    name: &str,
    event: &Event,
    result: Option<&Event>,
) {
    let has_failed = result.unwrap_or(event).is_error == Some(true);
    let class = if has_failed { format!("{class} failed") } else { class.to_owned() };
    let index = event.event_index;
    let _ = write!(out, "<div class=\"part {class}\" id=\"e{index}\">\n<div class=\"line\">{name}");
    for remark in event_remarks(event, result) {
        let _ = write!(out, " <span>{}</span>", escape_html(&remark));
    }
    let id = escape_html(&event.event_id);
    let _ = writeln!(out, " <a href=\"#e{index}\">{id}</a></div>");
}

/// Returns the beginning of a prompt or an answer, and the number of characters left out.
fn cut_message(event: &Event) -> (String, usize) {
    truncate_chars(event.text.as_deref().unwrap_or_default(), MAX_MESSAGE_CHARS)
}

/// Appends texts that are folded at first; `summary` is HTML.
fn append_folded(out: &mut String, summary: &str, events: &[&Event]) {
    let _ = writeln!(out, "<details><summary>{summary}</summary>");
    for (at, event) in events.iter().enumerate() {
        let (text, left) =
            truncate_chars(event.text.as_deref().unwrap_or_default(), MAX_FOLDED_CHARS);
        if at > 0 {
            let kind = event.subtype.as_deref().unwrap_or(event.event_type.as_str());
            let kind = escape_html(kind);
            let id = escape_html(&event.event_id);
            let index = event.event_index;
            let _ = writeln!(
                out,
                "<div class=\"line\" id=\"e{index}\">{kind} <a href=\"#e{index}\">{id}</a></div>"
            );
        }
        if !text.trim().is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escape_html(&text));
        }
        append_omission(out, event, left);
    }
    out.push_str("</details>\n");
}

/// Appends a call with its result, folded at first. An edit is shown as what it changes.
fn append_call(out: &mut String, call: &Event, result: Option<&Event>) {
    let deed = describe_call(call);
    let summary = if deed.is_empty() { "Show the call" } else { &deed };
    let summary = format!("<code>{}</code>", escape_html(summary));
    let Some(diff) = CallDiff::of_call(call) else {
        let shown: Vec<&Event> = std::iter::once(call).chain(result).collect();
        return append_folded(out, &summary, &shown);
    };
    let _ = writeln!(out, "<details><summary>{summary}</summary>");
    out.push_str(&diff.to_html());
    if diff.lines_omitted() > 0 {
        let id = escape_html(&call.event_id);
        let _ = writeln!(
            out,
            "<p class=\"line\">{} more lines: sessions event {id}</p>",
            diff.lines_omitted()
        );
    }
    out.push_str("</details>\n");
    if let Some(result) = result {
        let _ = write!(out, "<div id=\"e{}\">", result.event_index);
        append_folded(out, "Show the result", &[result]);
        out.push_str("</div>\n");
    }
}

/// Appends the sentence about the `left` characters that are not shown, if there are any.
fn append_omission(out: &mut String, event: &Event, left: usize) {
    if let Some(sentence) = omission_sentence(event, left) {
        let _ = writeln!(out, "<p class=\"line\">{}</p>", escape_html(&sentence));
    }
}
