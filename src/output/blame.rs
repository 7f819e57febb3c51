//! Formats the sessions that wrote a file as text.

use std::fmt::Write as _;

use super::show::Show;
use crate::tools::BlameData;

impl Show for BlameData {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for span in &self.spans {
            let [first, last] = span.lines;
            let lines = if first == last { first.to_string() } else { format!("{first}-{last}") };
            let Some(writer) = &span.written_by else {
                let _ = writeln!(out, "{lines}  none");
                continue;
            };
            let _ = writeln!(
                out,
                "{lines}  {}  {}  {}  {}",
                writer.event_id,
                writer.timestamp.as_deref().unwrap_or("no time"),
                writer.provider,
                writer.title.as_deref().unwrap_or("")
            );
        }
        let _ = writeln!(
            out,
            "{} of {} lines were written by a known session",
            self.known_lines, self.lines
        );
        out
    }
}
