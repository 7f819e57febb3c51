//! Formats the log of hooks as text.

use schemas::Timestamp;
use serde::Serialize;

use super::layout::Layout;
use super::painted::{DIM, PLAIN, Painted};
use super::show::Show;
use super::wrapped::push_wrapped;
use base::sanitize::clean_text;
use store::HookLogRow;

/// What hooks said, the newest first.
#[derive(Debug, Serialize)]
pub struct HookLogList {
    pub rows: Vec<HookLogRow>,
}

impl Show for HookLogList {
    fn paint(&self, layout: &Layout) -> Painted {
        let mut painted = Painted::new();
        for row in &self.rows {
            let session = row.session.as_deref().unwrap_or("unknown session");
            let heading = format!(
                "{}  {} {}  {session} in {}  {} bytes, {} ms",
                Timestamp(row.time),
                row.client,
                row.hook,
                row.project,
                row.bytes,
                row.ms,
            );
            painted.push_inline(PLAIN, &heading);
            painted.end_line();
            for line in [&row.reason, &row.ids.join(" ")] {
                push_wrapped(
                    &mut painted,
                    DIM,
                    "    ",
                    &clean_text(line),
                    layout.width,
                    usize::MAX,
                );
            }
        }
        painted
    }
}
