//! Reads the records of a log ahead, for decoders that need a later record to decode an earlier
//! one.

use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use crate::source::candidate::LogCandidate;
use crate::source::container::{Content, log_paths};
use crate::source::lines::{LogLine, LogLines};
use crate::text::json::{LineItem, Parser, Value};

/// Passes the records of a log of lines with their bytes to `visit`, until it breaks. `log` is the
/// path without the extension of a compressed file. The rest of a line after a break is passed as
/// well.
///
/// # Errors
///
/// Returns an error if the log cannot be read.
pub(crate) fn visit_records(
    log: &Path,
    visit: &mut dyn FnMut(Value<'_>, &[u8]) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut files = log_paths(log).into_iter();
    let file = files.find_map(|path| LogCandidate::from_path(path).ok());
    let content = Content::open(&file.ok_or(io::ErrorKind::NotFound)?)?;
    let mut lines = LogLines::new(content, 0);
    let mut parser = Parser::default();
    while let Some(line) = lines.next_line()? {
        let records = match line {
            LogLine::Whole { bytes, .. } => bytes,
            // Like the reader of the log, which leaves the rest until it is whole.
            LogLine::Tail { bytes, .. } => &bytes[..parser.complete_length(bytes)],
            LogLine::Oversized { .. } => continue,
        };
        let mut flow = ControlFlow::Continue(());
        parser.for_each_item(records, &mut |item| {
            if let LineItem::Object(record, range) = item
                && visit(record, &records[range]).is_break()
            {
                flow = ControlFlow::Break(());
            }
        });
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}
