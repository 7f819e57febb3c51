//! Formats the results of label updates as text.

use std::fmt::Write as _;

use schemas::tool::label::LabelData;

use super::layout::Layout;
use super::painted::Painted;
use super::show::Show;

impl Show for LabelData {
    fn paint(&self, _: &Layout) -> Painted {
        let mut out = String::new();
        for done in &self.succeeded {
            let _ = writeln!(out, "{}  {}", done.session_id, done.labels.join(", "));
        }
        for failed in &self.failed {
            let _ = writeln!(out, "{}  FAILED {}", failed.session_id, failed.message);
        }
        Painted::from_text(&out)
    }
}
