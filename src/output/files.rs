//! Formats the result of writing files as text.

use serde::Serialize;

use super::layout::Layout;
use super::painted::Painted;
use super::show::Show;
use crate::export::Exported;
use crate::plugin::PluginsWritten;
use base::numbers::{count_of, format_bytes};

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
        let missing = match self.without_log {
            None | Some(0) => String::new(),
            Some(missing) => format!(
                "{} have no log in the archive: it has those read since `keep_logs` is set under [store] in settings.toml, and none of databases\n",
                count_of(missing, "session")
            ),
        };
        Painted::from_text(&format!("{text}{missing}"))
    }
}

impl Show for PluginsWritten {
    fn paint(&self, _: &Layout) -> Painted {
        let files = count_of(self.files.len(), "file");
        Painted::from_text(&format!("{files} in {}\n", self.output.display()))
    }
}
