//! Formats what became of the logs that were to be restored.

use std::fmt::Write as _;

use super::layout::Layout;
use super::painted::Painted;
use super::show::{Show, append_omitted};
use super::wrapped::wrap_lines;
use base::numbers::{count_of, to_megabytes};
use base::sanitize::one_line;
use tools::restore::{RestoreData, RestoreOutcome, RestoredSession};

/// Maximum number of sessions listed.
const MAX_LISTED: usize = 100;

impl Show for RestoreData {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut lines = Vec::new();
        for session in self.sessions.iter().take(MAX_LISTED) {
            append_session(session, self.is_dry_run, layout, &mut lines);
        }
        let mut out = String::new();
        for line in lines.iter().flat_map(|line| wrap_lines(line, layout.width)) {
            let _ = writeln!(out, "{line}");
        }
        append_omitted(self.sessions.len(), MAX_LISTED, &mut out);
        if self.sessions.is_empty() {
            out.push_str("No log is lost: there is nothing to restore.\n");
            return Painted::from_text(&out);
        }
        let verb = if self.is_dry_run { "Would restore" } else { "Restored" };
        let _ = write!(out, "{verb} {}", count_of(self.restored, "session"));
        if self.existing > 0 {
            let _ = write!(out, "; {} exist already", count_of(self.existing, "log"));
        }
        if self.not_restored > 0 {
            let _ = write!(out, "; {} could not be restored", self.not_restored);
        }
        out.push_str(".\n");
        if self.is_dry_run && self.restored > 0 {
            out.push_str("Nothing was written. Without --dry-run they are restored.\n");
        }
        Painted::from_text(&out)
    }
}

/// Appends the lines about a session.
fn append_session(
    session: &RestoredSession,
    is_dry_run: bool,
    layout: &Layout,
    lines: &mut Vec<String>,
) {
    let outcome = match session.outcome {
        RestoreOutcome::Restored if is_dry_run => "can be restored",
        RestoreOutcome::Restored => "restored",
        RestoreOutcome::LogExists => "its log exists: nothing to restore",
        RestoreOutcome::NotArchived => "not archived",
        RestoreOutcome::Failed => "failed",
    };
    let mut line =
        format!("{}  {}  {outcome}", layout.session_id(&session.session_id), session.provider);
    if let Some(title) = &session.title {
        let _ = write!(line, "  {}", one_line(title));
    }
    lines.push(line);
    for file in &session.files {
        let masked = if file.is_masked { ", secrets masked" } else { "" };
        let size = to_megabytes(file.bytes);
        lines.push(format!("    {}  {size:.2} MB{masked}", one_line(&file.path)));
    }
    if let Some(reason) = &session.reason {
        lines.push(format!("    {}", one_line(reason)));
    }
}
