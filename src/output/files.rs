//! Formats the result of writing files as text.

use serde::Serialize;

use super::numbers::count_of;
use super::show::Show;
use crate::export::Exported;
use crate::plugin::PluginsWritten;

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
    fn to_text(&self) -> String {
        let size = format_size(self.bytes);
        let others = match self.files {
            0 | 1 => String::new(),
            files => format!(" and {} next to it", count_of(files - 1, "file")),
        };
        let sessions = count_of(self.sessions, "session");
        let output = &self.output;
        format!("{sessions} in {output}{others} ({size}); open it in a browser\n")
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
    fn to_text(&self) -> String {
        format!("{} in {} ({})\n", self.kind, self.output, format_size(self.bytes))
    }
}

impl Show for Exported {
    fn to_text(&self) -> String {
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
        format!(
            "{}, {noun} as {}: {} written ({}){unchanged}{place}\n",
            count_of(self.sessions, "session"),
            self.format,
            count_of(self.files, "file"),
            format_size(self.bytes)
        )
    }
}

impl Show for PluginsWritten {
    fn to_text(&self) -> String {
        format!("{} in {}\n", count_of(self.files.len(), "file"), self.output.display())
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes for people")]
fn format_size(bytes: u64) -> String {
    if bytes < 100_000 { format!("{bytes} bytes") } else { format!("{:.1} MB", bytes as f64 / 1e6) }
}
