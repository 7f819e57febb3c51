//! Formats the log of hooks as text.

use std::fmt::Write as _;

use schemas::Timestamp;
use serde::Serialize;

use super::show::{Show, indent_lines};
use base::sanitize::clean_text;
use store::HookLogRow;

/// What hooks said, the newest first.
#[derive(Debug, Serialize)]
pub struct HookLogList {
    pub rows: Vec<HookLogRow>,
}

impl Show for HookLogList {
    fn to_text(&self) -> String {
        let mut out = String::new();
        for row in &self.rows {
            let session = row.session.as_deref().unwrap_or("unknown session");
            let _ = writeln!(
                out,
                "{}  {} {}  {} in {}  {} bytes, {} ms",
                Timestamp(row.time),
                row.client,
                row.hook,
                clean_text(session),
                clean_text(&row.project),
                row.bytes,
                row.ms,
            );
            let why = format!("{}\n{}", row.reason, row.ids.join(" "));
            out.push_str(&indent_lines(&clean_text(&why), "    "));
        }
        out
    }
}
