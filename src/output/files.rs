//! Formats the result of writing files as text.

use std::fmt::Write as _;

use serde::Serialize;

use super::layout::Layout;
use super::painted::Painted;
use super::show::Show;
use crate::export::Exported;
use crate::plugin::PluginsWritten;
use base::numbers::{count_of, format_bytes};
use base::sanitize::one_line;
use tools::{BaseCall, BaseKind, RestoredFile, WrittenBy};

/// A report that was written.
#[derive(Debug, Serialize)]
pub struct ReportWritten {
    pub output: String,
    pub sessions: usize,
    /// The number of files. `output` links the others.
    pub files: usize,
    pub bytes: u64,
}

impl Show for ReportWritten {
    fn paint(&self, _: &Layout) -> Painted {
        let size = format_bytes(self.bytes);
        let others = match self.files {
            0 | 1 => String::new(),
            files => format!(" and {} next to it", count_of(files - 1, "file")),
        };
        let sessions = count_of(self.sessions, "session");
        let output = &self.output;
        let text = format!("{sessions} in {output}{others} ({size}); open it in a browser\n");
        Painted::from_text(&text)
    }
}

/// An image of an event that was written.
#[derive(Debug, Serialize)]
pub struct ImageWritten {
    pub output: String,
    /// The media type, such as `image/png`.
    pub kind: &'static str,
    pub bytes: u64,
}

impl Show for ImageWritten {
    fn paint(&self, _: &Layout) -> Painted {
        let size = format_bytes(self.bytes);
        Painted::from_text(&format!("{} in {} ({size})\n", self.kind, self.output))
    }
}

/// A restored file that was written.
#[derive(Debug, Serialize)]
pub struct FileRestored {
    pub output: String,
    pub bytes: u64,
}

impl Show for FileRestored {
    fn paint(&self, _: &Layout) -> Painted {
        Painted::from_text(&format!("{} ({})\n", self.output, format_bytes(self.bytes)))
    }
}

/// Says where the text of a restored file comes from, and what of it is not certain.
pub(crate) fn describe_restored(restored: &RestoredFile, layout: &Layout) -> String {
    let event = |by: &WrittenBy| {
        let time = layout.time(by.timestamp.as_deref());
        format!("{} ({}, {time})", layout.event_id(&by.event_id), by.provider)
    };
    let path = one_line(&restored.path);
    let mut out = match &restored.base {
        None => format!("no call in the store shows the whole of {path}\n"),
        Some(BaseCall { how, call }) => match how {
            BaseKind::Written => format!("written as a whole in {}\n", event(call)),
            BaseKind::Read => format!("read as a whole in {}\n", event(call)),
            BaseKind::Deleted => format!(
                "deleted in {}; `--at {}` restores what it was before\n",
                event(call),
                layout.event_id(&call.event_id)
            ),
        },
    };
    if let Some(last) = restored.edits.last() {
        let edits = count_of(restored.edits.len(), "edit");
        let _ = writeln!(out, "with {edits} after it, the last in {}", event(last));
    }
    if let Some(first) = restored.not_applied.first() {
        let calls = count_of(restored.not_applied.len(), "later call");
        let _ = writeln!(
            out,
            "not certain: {calls} changed the file, or may have, in a way that the log does not show; \
             the first is {}",
            event(first)
        );
    }
    if restored.masked_secrets > 0 {
        let _ = writeln!(out, "{} masked in it", count_of(restored.masked_secrets, "secret"));
    }
    out
}

impl Show for Exported {
    fn paint(&self, _: &Layout) -> Painted {
        let unchanged = match self.files_unchanged {
            0 => String::new(),
            files => format!(", {files} unchanged"),
        };
        let place = self.output.as_ref().map(|place| format!(" in {place}")).unwrap_or_default();
        let rows = self.rows.unwrap_or(self.events);
        let noun = if self.rows.is_some() {
            format!("{} of {}", count_of(rows, "row"), self.table)
        } else {
            count_of(rows, "event")
        };
        let text = format!(
            "{}, {noun} as {}: {} written ({}){unchanged}{place}\n",
            count_of(self.sessions, "session"),
            self.format,
            count_of(self.files, "file"),
            format_bytes(self.bytes)
        );
        Painted::from_text(&text)
    }
}

impl Show for PluginsWritten {
    fn paint(&self, _: &Layout) -> Painted {
        let files = count_of(self.files.len(), "file");
        Painted::from_text(&format!("{files} in {}\n", self.output.display()))
    }
}
