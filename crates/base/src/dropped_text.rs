//! Texts that the retention dropped. What replaces such a text ends in a line of its own:
//!
//! ```text
//! [dropped by retention: 5120 bytes]
//! ```
//!
//! The line is shown to readers, and neither indexed nor searched. So is the text of a forgotten event,
//! [`FORGOTTEN_TEXT`].

use schemas::event::FORGOTTEN_TEXT;

/// Beginning of the line.
const MARK_START: &str = "[dropped by retention: ";

/// End of the line, after the number of dropped bytes.
const MARK_END: &str = " bytes]";

/// What replaces the title of a session whose texts were dropped.
pub const DROPPED_TITLE: &str = "[dropped by retention]";

/// Returns the text that replaces another one of `bytes` bytes, of which `kept` stays.
pub fn mark_dropped(kept: &str, bytes: usize) -> String {
    let line_end = if kept.is_empty() { "" } else { "\n" };
    format!("{kept}{line_end}{MARK_START}{bytes}{MARK_END}")
}

/// Returns the length of a text without the line at its end that marks it as dropped; 0 if it was
/// forgotten.
pub fn kept_length(text: &[u8]) -> usize {
    if text == FORGOTTEN_TEXT.as_bytes() {
        return 0;
    }
    if !text.ends_with(MARK_END.as_bytes()) {
        return text.len();
    }
    let line_start = memchr::memrchr(b'\n', text).map_or(0, |at| at + 1);
    let number = text[line_start..].strip_prefix(MARK_START.as_bytes());
    let number = number.and_then(|rest| rest.strip_suffix(MARK_END.as_bytes()));
    let is_mark =
        number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit));
    if is_mark { line_start.saturating_sub(1) } else { text.len() }
}

/// Returns a text without the line at its end that marks it as dropped.
pub fn kept_part(text: &str) -> &str {
    text.get(..kept_length(text.as_bytes())).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_line_at_the_end_is_a_mark() {
        assert_eq!(kept_part(&mark_dropped("", 9)), "");
        assert_eq!(kept_part(&mark_dropped("command: ls", 9)), "command: ls");
        assert_eq!(kept_part(FORGOTTEN_TEXT), "");
        for text in [
            "",
            "ls",
            " bytes]",
            "x [dropped by retention: 9 bytes]",
            "[dropped by retention:  bytes]",
        ] {
            assert_eq!(kept_part(text), text);
        }
        let line = mark_dropped("", 9) + "\nmore";
        assert_eq!(kept_part(&line), line);
    }
}
