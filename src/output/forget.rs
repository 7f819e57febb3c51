//! Formats the sessions that are forgotten as text.

use std::fmt::Write as _;

use super::show::Show;
use base::sanitize::one_line;
use tools::forget::{ForgetCopy, ForgetData, ForgetEntry};

/// Maximum number of sessions listed.
const MAX_LISTED: usize = 100;

impl Show for ForgetData {
    fn to_text(&self) -> String {
        let mut out = String::new();
        if self.sessions.is_empty() {
            out.push_str("No session matches.\n");
            return out;
        }
        append_entries(&self.sessions, &mut out);
        if !self.copies.is_empty() {
            out.push_str("These sessions hold copies of some of their events, or the originals (--with-copies forgets them too):\n");
            append_copies(&self.copies, &mut out);
        }

        let sessions = self.sessions.len();
        let subagents = self.sessions.iter().filter(|entry| entry.is_subagent).count();
        let earlier = self.sessions.iter().filter(|entry| entry.is_earlier_version).count();
        let verb = if self.is_done { "Forgot" } else { "Would forget" };
        let _ = write!(out, "{verb} {sessions} sessions");
        if subagents > 0 {
            let _ = write!(out, ", {subagents} of them as subagents of others");
        }
        if earlier > 0 {
            let _ = write!(out, ", {earlier} of them as earlier versions of others");
        }
        let _ = writeln!(out, ", with {} events.", self.events);
        out.push_str(if self.is_done {
            "Their logs and copies of them are not read again. `sessions forget --undo ID` allows it while the logs exist.\n"
        } else {
            "Nothing was changed. Add --yes to forget them. The logs of the agents stay as they are.\n"
        });
        out
    }
}

/// Appends a line for each of the first sessions.
fn append_entries(entries: &[ForgetEntry], out: &mut String) {
    for entry in entries.iter().take(MAX_LISTED) {
        let _ = writeln!(
            out,
            "  {}  {}  {}  {} events  {}  {}",
            entry.session_id,
            entry.last_active.as_deref().unwrap_or("no time"),
            entry.provider,
            entry.events,
            one_line(entry.project.as_deref().unwrap_or("")),
            one_line(entry.title.as_deref().unwrap_or(""))
        );
    }
    if entries.len() > MAX_LISTED {
        let _ = writeln!(out, "  and {} more; --json lists them all", entries.len() - MAX_LISTED);
    }
}

/// Appends what happens to each of the first sessions with copies.
fn append_copies(copies: &[ForgetCopy], out: &mut String) {
    for copy in copies.iter().take(MAX_LISTED) {
        let ForgetCopy { session, events_left_out, events_kept, is_removed } = copy;
        let effect = match (is_removed, events_left_out) {
            (true, _) => "removed: it is only a copy".to_owned(),
            (false, 0) => "stays: it has the originals".to_owned(),
            (false, _) => {
                format!("loses the text of {events_left_out} events, keeps {events_kept}")
            }
        };
        let title = one_line(session.title.as_deref().unwrap_or(""));
        let _ = writeln!(out, "  {}  {effect}  {title}", session.session_id);
    }
    if copies.len() > MAX_LISTED {
        let _ = writeln!(out, "  and {} more; --json lists them all", copies.len() - MAX_LISTED);
    }
}
