//! A session as one HTML page: answers are rendered from Markdown, calls and results are folded.
//! The page has no script; its policy allows none.

use std::fmt::Write as _;

use schemas::tool::event::Event;

use super::text::{escape, render};
use super::transcript::{Part, Turn, cut, deed, facts, kinds, omitted, remarks, title, turns};
use crate::export::csp::policy;
use crate::tools::Whole;

const STYLE: &str = include_str!("assets/transcript.css");

/// Maximum number of characters shown of a message, and of a folded text.
const SAID: usize = 40_000;
const FOLDED: usize = 8_000;

pub(super) fn transcript(whole: &Whole) -> String {
    let turns = turns(&whole.events);
    let title = escape(&title(&whole.session));
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
        policy(&[], &[STYLE])
    );
    for (name, value) in facts(&whole.session) {
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{}</dd></div>", escape(&value));
    }
    out.push_str("</dl>\n</header>\n");
    contents(&mut out, &turns);
    out.push_str("<main id=\"main\" tabindex=\"-1\">\n");
    turns.iter().for_each(|turn| self::turn(&mut out, turn));
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

/// Writes the list of turns by their prompts, if there are enough to need one.
fn contents(out: &mut String, turns: &[Turn<'_>]) {
    if turns.len() < 3 {
        return;
    }
    out.push_str("<nav aria-label=\"Turns\">\n<details><summary>");
    let _ = write!(out, "{} turns</summary>\n<ol>\n", turns.len());
    for turn in turns {
        let prompt = turn.parts.iter().find_map(|part| match part {
            Part::Prompt(event) => event.text.as_deref(),
            Part::Answer(_)
            | Part::Reasoning(_)
            | Part::Call { .. }
            | Part::Result(_)
            | Part::Notices(_) => None,
        });
        let words = prompt.unwrap_or_default().split_whitespace().take(40);
        let line = cut(&words.collect::<Vec<_>>().join(" "), 100).0;
        let (index, name, line) = (turn.index, name(turn), escape(&line));
        let _ = writeln!(out, "<li><a href=\"#turn-{index}\">{name}</a> {line}</li>");
    }
    out.push_str("</ol>\n</details>\n</nav>\n");
}

fn name(turn: &Turn<'_>) -> String {
    match turn.index {
        0 => "Before the first prompt".to_owned(),
        index => format!("Turn {index}"),
    }
}

fn turn(out: &mut String, turn: &Turn<'_>) {
    let index = turn.index;
    let time = turn.timestamp.unwrap_or("no time");
    let _ = write!(
        out,
        "<section aria-labelledby=\"turn-{index}\">\n<h2 id=\"turn-{index}\">{} <small>{}</small></h2>\n",
        name(turn),
        escape(time)
    );
    turn.parts.iter().for_each(|part| self::part(out, part));
    out.push_str("</section>\n");
}

fn part(out: &mut String, part: &Part<'_>) {
    match part {
        Part::Prompt(event) => {
            begin(out, "prompt", "<h3>Prompt</h3>", event, None);
            said(out, event, |text| format!("<pre>{}</pre>\n", escape(text)));
        }
        Part::Answer(event) => {
            begin(out, "answer", "<h3>Answer</h3>", event, None);
            said(out, event, |text| format!("<div class=\"markdown\">\n{}</div>\n", render(text)));
        }
        Part::Reasoning(event) => {
            begin(out, "reasoning", "<b>Reasoning</b>", event, None);
            folded(out, "Show the reasoning", &[*event]);
        }
        Part::Call { call, result } => {
            begin(out, "call", &tool(call), call, *result);
            let shown: Vec<&Event> = std::iter::once(*call).chain(*result).collect();
            let deed = deed(call);
            let deed = if deed.is_empty() { "Show the call" } else { &deed };
            folded(out, &format!("<code>{}</code>", escape(deed)), &shown);
        }
        Part::Result(event) => {
            begin(out, "call", &tool(event), event, None);
            folded(out, "Show the result", &[*event]);
        }
        Part::Notices(notices) => {
            let Some(first) = notices.first() else { return };
            begin(out, "notices", "<b>Records of the agent</b>", first, None);
            folded(out, &escape(&kinds(notices)), notices);
        }
    }
    out.push_str("</div>\n");
}

fn tool(event: &Event) -> String {
    format!("<b>{}</b>", escape(event.tool_name.as_deref().unwrap_or("tool")))
}

/// Opens a part: its name, its remarks, and the id that links to it.
fn begin(out: &mut String, class: &str, name: &str, event: &Event, result: Option<&Event>) {
    let failed = result.unwrap_or(event).is_error == Some(true);
    let class = if failed { format!("{class} failed") } else { class.to_owned() };
    let index = event.event_index;
    let _ = write!(out, "<div class=\"part {class}\" id=\"e{index}\">\n<div class=\"line\">{name}");
    for remark in remarks(event, result) {
        let _ = write!(out, " <span>{}</span>", escape(&remark));
    }
    let id = escape(&event.event_id);
    let _ = writeln!(out, " <a href=\"#e{index}\">{id}</a></div>");
}

fn said(out: &mut String, event: &Event, body: impl Fn(&str) -> String) {
    let (text, left) = cut(event.text.as_deref().unwrap_or_default(), SAID);
    out.push_str(&body(&text));
    rest(out, event, left);
}

/// Writes texts that are folded at first; `summary` is HTML.
fn folded(out: &mut String, summary: &str, events: &[&Event]) {
    let _ = writeln!(out, "<details><summary>{summary}</summary>");
    for (at, event) in events.iter().enumerate() {
        let (text, left) = cut(event.text.as_deref().unwrap_or_default(), FOLDED);
        if at > 0 {
            let kind = event.subtype.as_deref().unwrap_or(event.event_type.as_str());
            let (kind, id) = (escape(kind), escape(&event.event_id));
            let index = event.event_index;
            let _ = writeln!(
                out,
                "<div class=\"line\" id=\"e{index}\">{kind} <a href=\"#e{index}\">{id}</a></div>"
            );
        }
        if !text.trim().is_empty() {
            let _ = writeln!(out, "<pre>{}</pre>", escape(&text));
        }
        rest(out, event, left);
    }
    out.push_str("</details>\n");
}

fn rest(out: &mut String, event: &Event, left: usize) {
    if let Some(sentence) = omitted(event, left) {
        let _ = writeln!(out, "<p class=\"line\">{}</p>", escape(&sentence));
    }
}
