//! Removes characters from untrusted log text that a terminal or a model should not see, and
//! truncates texts.

/// Returns a text that is safe for a terminal and a model's context: the characters that `ingest`
/// keeps, with plain line breaks.
pub(crate) fn clean_text(text: &str) -> String {
    let cleaned = ingest::text::sanitize::clean(text);
    if cleaned.contains('\r') { cleaned.replace('\r', "") } else { cleaned.into_owned() }
}

/// Returns a text, such as a path or a title, on one line: line breaks and tabs become spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

/// Returns the beginning of `text` that takes at most `bytes` bytes inside a JSON string, and the
/// number of characters that it omits.
pub(crate) fn truncate_for_json(text: &str, bytes: usize) -> (&str, usize) {
    let mut room = bytes;
    for (at, c) in text.char_indices() {
        let Some(rest) = room.checked_sub(json_bytes(c)) else {
            return (&text[..at], text[at..].chars().count());
        };
        room = rest;
    }
    (text, 0)
}

/// Returns the number of bytes that a character takes inside a JSON string.
fn json_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_line_breaks_stays_in_its_line() {
        assert_eq!(one_line("a\r\nb\tc"), "a  b c");
    }

    #[test]
    fn heads_are_cut_by_their_json_size() {
        assert_eq!(truncate_for_json("abc", 3), ("abc", 0));
        assert_eq!(truncate_for_json("a\nbc", 3), ("a\n", 2));
        assert_eq!(truncate_for_json("日本語", 6), ("日本", 1));
    }

    #[test]
    fn escapes_and_invisible_characters_go_text_stays() {
        assert_eq!(clean_text("a\u{1b}[31;1mred\u{1b}[0m\r\nb\tc"), "ared\nb\tc");
        assert_eq!(clean_text("17982\r100 1306k\r\r\nb\r"), "17982\n100 1306k\nb");
        assert_eq!(clean_text("x\u{1b}]52;c;ZXZpbA==\u{7}y"), "xy");
        assert_eq!(clean_text("a\u{202e}b\u{200b}c\u{feff}\u{e0041}"), "abc");
        assert_eq!(clean_text("日本 👩\u{200d}💻 é"), "日本 👩\u{200d}💻 é");
    }
}
