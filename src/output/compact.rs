//! Formats the result of a compaction as text.

use std::fmt::Write as _;

use super::layout::Layout;
use super::painted::Painted;
use super::show::Show;
use base::numbers::count_of;
use tools::compact::CompactData;

impl Show for CompactData {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        if self.is_dry_run {
            out.push_str("Dry run: nothing was changed. A compaction would do this:\n");
        }
        if !self.keep.is_empty() {
            let _ = writeln!(out, "keep       {}", self.keep.join(", "));
        }
        let _ = writeln!(out, "dropped    texts of {}", count_of(self.sessions, "session"));
        for (event_type, dropped) in &self.dropped {
            let _ = writeln!(
                out,
                "           {event_type}: {} texts, {} bytes",
                dropped.texts, dropped.bytes
            );
        }
        let _ =
            writeln!(out, "superseded {} rows of logs that were read again", self.superseded_rows);
        if !self.is_dry_run {
            let _ =
                writeln!(out, "segments   {} before, {} after", self.segments, self.segments_after);
        }
        let about = if self.is_dry_run { "about " } else { "" };
        let _ = writeln!(
            out,
            "freed      {about}{} of {} bytes on disk",
            self.freed_bytes, self.store_bytes
        );
        Painted::from_text(&out)
    }
}
