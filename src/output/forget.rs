//! Formats the sessions that are forgotten.

use std::fmt::Write as _;

use super::columns::{Cell, Column, FittedTable};
use super::layout::Layout;
use super::painted::{AGENT, DIM, ID, PLAIN, PROJECT, Painted};
use super::show::{Show, append_omitted};
use super::wrapped::wrap_lines;
use base::cells::truncate_end;
use base::numbers::count_of;
use base::sanitize::one_line;
use tools::forget::{ForgetCopy, ForgetData, ForgetEntry};

/// Maximum number of sessions listed.
const MAX_LISTED: usize = 100;

/// The columns of the table of sessions.
const COLUMNS: &[Column] = &[
    Column::text("id").spill(),
    Column::text("last active"),
    Column::text("agent").drop_at(2),
    Column::text("project").cut_to(8),
    Column::number("events").drop_at(1),
    Column::text("title").cut_to(22),
];

impl Show for ForgetData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        if !layout.is_plain && !self.sessions.is_empty() {
            painted = paint_table(self, layout);
        }
        painted.append(&Painted::from_text(&describe(self, layout)));
        painted
    }
}

/// Formats the sessions as a table, the newest first.
fn paint_table(data: &ForgetData, layout: &Layout) -> Painted {
    let mut entries: Vec<&ForgetEntry> = data.sessions.iter().collect();
    entries.sort_by(|a, b| b.last_active.cmp(&a.last_active));
    let mut table = FittedTable::new(COLUMNS);
    for entry in entries.into_iter().take(MAX_LISTED) {
        table.push(vec![
            Cell::new(ID, &layout.session_id(&entry.session_id)),
            Cell::new(DIM, &layout.time(entry.last_active.as_deref())),
            Cell::new(AGENT, entry.provider.as_str()),
            Cell::new(PROJECT, entry.project.as_deref().unwrap_or("")),
            Cell::new(PLAIN, &layout.count(entry.events.cast_unsigned())),
            Cell::new(PLAIN, entry.title.as_deref().unwrap_or("")),
        ]);
    }
    let mut painted = table.paint(layout.width);
    let mut omitted = String::new();
    append_omitted(data.sessions.len(), MAX_LISTED, &mut omitted);
    painted.append(&Painted::from_text(&omitted));
    painted
}

/// Describes what is forgotten, with the sessions if it is for a pipe.
fn describe(data: &ForgetData, layout: &Layout) -> String {
    if data.sessions.is_empty() {
        return "No session matches.\n".to_owned();
    }
    let mut out = String::new();
    if layout.is_plain {
        append_lines(data.sessions.iter().map(|entry| entry_line(entry, layout)), layout, &mut out);
    }
    if !data.copies.is_empty() {
        out.push_str(
            "These sessions contain copies of some of their events, or the originals \
             (--with-copies forgets them too):\n",
        );
        append_lines(data.copies.iter().map(|copy| copy_line(copy, layout)), layout, &mut out);
    }

    let mut summary = count_of(data.sessions.len(), "session");
    let count =
        |is_it: fn(&ForgetEntry) -> bool| data.sessions.iter().filter(|it| is_it(it)).count();
    let (subagents, earlier) = (count(|it| it.is_subagent), count(|it| it.is_earlier_version));
    if subagents > 0 {
        let _ = write!(summary, ", {subagents} of them as subagents of others");
    }
    if earlier > 0 {
        let _ = write!(summary, ", {earlier} of them as earlier versions of others");
    }
    let events = count_of(data.events.cast_unsigned(), "event");
    let mut summary = format!("{summary}, with {events}.\n");
    if data.is_done {
        summary = format!("Forgot {summary}{}\n", describe_removal(data));
    }
    for line in wrap_lines(&summary, layout.width) {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Describes what was done, or what is to be done.
pub(crate) fn describe_removal(data: &ForgetData) -> String {
    if data.is_done {
        "Their logs, and copies of them, are not read again. To undo this while the logs exist: `sessions forget --undo ID`".to_owned()
    } else if data.sessions.is_empty() {
        String::new()
    } else {
        "Nothing was changed. Add --yes to forget them. Your agents' log files are not touched."
            .to_owned()
    }
}

/// Appends the first lines.
fn append_lines(lines: impl ExactSizeIterator<Item = String>, layout: &Layout, out: &mut String) {
    let count = lines.len();
    for line in lines.take(MAX_LISTED) {
        let _ = writeln!(out, "{}", truncate_end(&line, layout.width));
    }
    append_omitted(count, MAX_LISTED, out);
}

fn entry_line(entry: &ForgetEntry, layout: &Layout) -> String {
    format!(
        "  {}  {}  {}  {}  {}  {}",
        layout.session_id(&entry.session_id),
        layout.time(entry.last_active.as_deref()),
        entry.provider,
        count_of(entry.events.cast_unsigned(), "event"),
        one_line(entry.project.as_deref().unwrap_or("")),
        one_line(entry.title.as_deref().unwrap_or(""))
    )
}

/// Describes what happens to a session with copies.
fn copy_line(copy: &ForgetCopy, layout: &Layout) -> String {
    let ForgetCopy { session, events_left_out, events_kept, is_removed } = copy;
    let effect = match (is_removed, events_left_out) {
        (true, _) => "removed: it is only a copy".to_owned(),
        (false, 0) => "kept: it holds the originals".to_owned(),
        (false, _) => {
            let events = count_of(events_left_out.cast_unsigned(), "event");
            format!("loses the text of {events}, keeps {events_kept}")
        }
    };
    let title = one_line(session.title.as_deref().unwrap_or(""));
    format!("  {}  {effect}  {title}", layout.session_id(&session.session_id))
}
