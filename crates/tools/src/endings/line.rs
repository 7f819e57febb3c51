//! Shortens lines of a session's end.

use base::sanitize::truncate_for_json;

/// Cuts a line to a number of bytes of JSON, with an ellipsis at the cut.
pub(super) fn shorten_line(line: &str, bytes: usize) -> String {
    let (kept, omitted) = truncate_for_json(line, bytes);
    if omitted == 0 { kept.to_owned() } else { format!("{kept}…") }
}
