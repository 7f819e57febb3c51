//! A session as Markdown: answers are quotations, other text from the log is in code fences, and
//! results are folded.

use std::fmt::Write as _;

use schemas::tool::event::Event;

use super::text::{code, fence, plain, quote};
use super::transcript::{Part, cut, deed, facts, kinds, omitted, remarks, title, turns};
use crate::tools::Whole;

/// Maximum number of characters shown of a message, and of a folded text.
const SAID: usize = 40_000;
const FOLDED: usize = 1_500;

pub(super) fn transcript(whole: &Whole) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "# {}\n\n| | |\n|---|---|", plain(&title(&whole.session)));
    for (name, value) in facts(&whole.session) {
        let _ = writeln!(out, "| {name} | {} |", plain(&value));
    }
    for turn in turns(&whole.events) {
        let name = match turn.index {
            0 => "Before the first prompt".to_owned(),
            index => format!("Turn {index}"),
        };
        let time = turn.timestamp.map(|time| format!(" · {time}")).unwrap_or_default();
        let _ = writeln!(out, "\n## {name}{time}");
        turn.parts.iter().for_each(|part| self::part(&mut out, part));
    }
    out
}

fn part(out: &mut String, part: &Part<'_>) {
    match part {
        Part::Prompt(event) => {
            let (text, left) = cut(text(event), SAID);
            let _ = write!(out, "\n**Prompt**{}\n\n{}", line(event, None), fence(&text));
            rest(out, event, left);
        }
        Part::Answer(event) => {
            let (text, left) = cut(text(event), SAID);
            let _ = write!(out, "\n**Answer**{}\n\n{}", line(event, None), quote(&text));
            rest(out, event, left);
        }
        Part::Reasoning(event) => {
            let _ = write!(out, "\n**Reasoning**{}\n\n", line(event, None));
            folded(out, "reasoning", &[*event]);
        }
        Part::Call { call, result } => {
            let tool = plain(call.tool_name.as_deref().unwrap_or("tool"));
            let line = line(call, *result);
            let _ = write!(out, "\n**{tool}** {}{line}\n\n", code(&deed(call)));
            let shown: Vec<&Event> = std::iter::once(*call).chain(*result).collect();
            folded(out, if result.is_some() { "call and result" } else { "call" }, &shown);
        }
        Part::Result(event) => {
            let tool = plain(event.tool_name.as_deref().unwrap_or("tool"));
            let _ = write!(out, "\n**{tool}**{}\n\n", line(event, None));
            folded(out, "result", &[*event]);
        }
        Part::Notices(notices) => {
            let ids = [notices.first(), notices.last()]
                .map(|event| event.map_or_else(String::new, |event| code(&event.event_id)));
            let [first, last] = ids;
            let until = if first == last { String::new() } else { format!(" to {last}") };
            let _ = writeln!(out, "\n*{}* · {first}{until}", plain(&kinds(notices)));
        }
    }
}

/// Returns the text after the name of a part: the remarks and the event's id.
fn line(event: &Event, result: Option<&Event>) -> String {
    let mut out = String::new();
    for remark in remarks(event, result) {
        let _ = write!(out, " · {remark}");
    }
    let _ = write!(out, " · {}", code(&event.event_id));
    if let Some(result) = result {
        let _ = write!(out, " → {}", code(&result.event_id));
    }
    out
}

/// Writes texts that are folded at first.
fn folded(out: &mut String, name: &str, events: &[&Event]) {
    let _ = write!(out, "<details><summary>{name}</summary>\n\n");
    for event in events {
        let (text, left) = cut(text(event), FOLDED);
        if !text.trim().is_empty() {
            out.push_str(&fence(&text));
            out.push('\n');
        }
        rest(out, event, left);
    }
    out.push_str("</details>\n");
}

fn rest(out: &mut String, event: &Event, left: usize) {
    if let Some(sentence) = omitted(event, left) {
        let _ = writeln!(out, "\n*{}*\n", plain(&sentence));
    }
}

fn text(event: &Event) -> &str {
    event.text.as_deref().unwrap_or_default()
}
