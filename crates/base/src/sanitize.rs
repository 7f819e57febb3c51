//! Removes characters from untrusted log text that a terminal or a model should not see, and
//! truncates texts.

/// Returns a text that is safe for a terminal and a model's context: the characters that `ingest`
/// keeps, with plain line breaks.
pub fn clean_text(text: &str) -> String {
    let cleaned = ingest::text::sanitize::clean(text);
    if cleaned.contains('\r') { cleaned.replace('\r', "") } else { cleaned.into_owned() }
}

/// Returns a text, such as a path or a title, on one line: line breaks and tabs become spaces.
pub fn one_line(text: &str) -> String {
    text.replace(['\n', '\r', '\t'], " ")
}

/// Returns the beginning of `text` that takes at most `bytes` bytes inside a JSON string, and the
/// number of characters that it omits.
pub fn truncate_for_json(text: &str, bytes: usize) -> (&str, usize) {
    let mut room = bytes;
    for (at, c) in text.char_indices() {
        let Some(rest) = room.checked_sub(json_bytes(c)) else {
            return (&text[..at], text[at..].chars().count());
        };
        room = rest;
    }
    (text, 0)
}

/// Returns `text` if it takes at most `bytes` bytes inside a JSON string, otherwise its beginning with an
/// ellipsis.
pub fn cut_for_json(text: &str, bytes: usize) -> String {
    match truncate_for_json(text, bytes) {
        (_, 0) => text.to_owned(),
        (kept, _) => format!("{}…", kept.trim_end()),
    }
}

/// What is between the beginning and the end of a text of which the middle is left out.
const OMISSION: &str = " […] ";

/// Longest part of a word in bytes that is left out so that a text is not cut within a word.
const MAX_WORD_BYTES: usize = 20;

/// Returns two thirds of `bytes` of the beginning and a third of the end of `text`, with `OMISSION`
/// between them, and the number of characters left out. Words are whole where a blank is near. A text
/// that takes at most `bytes` bytes inside a JSON string is whole.
pub fn truncate_middle_for_json(text: &str, bytes: usize) -> (String, usize) {
    if truncate_for_json(text, bytes).1 == 0 {
        return (text.to_owned(), 0);
    }
    let room = bytes.saturating_sub(OMISSION.len());
    let mut end_room = room / 3;
    let (head, _) = truncate_for_json(text, room - end_room);
    let mut tail_start = text.len();
    for (at, c) in text[head.len()..].char_indices().rev() {
        let Some(rest) = end_room.checked_sub(json_bytes(c)) else { break };
        end_room = rest;
        tail_start = head.len() + at;
    }

    let head = match head.rfind(char::is_whitespace) {
        Some(blank) if head.len() - blank <= MAX_WORD_BYTES => &head[..blank],
        Some(_) | None => head,
    };
    let tail = &text[tail_start..];
    let tail = match tail.find(char::is_whitespace) {
        Some(blank) if blank <= MAX_WORD_BYTES => &tail[blank..],
        Some(_) | None => tail,
    };
    let head = head.trim_end();
    let tail = tail.trim_start();
    let omitted = text[head.len()..text.len() - tail.len()].chars().count();
    (format!("{head}{OMISSION}{tail}"), omitted)
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
    fn the_middle_of_a_long_text_is_left_out() {
        assert_eq!(truncate_middle_for_json("a\nb", 4), ("a\nb".to_owned(), 0));
        let text = "The cause was found. It took a while. The fix is in.";
        let (cut, omitted) = truncate_middle_for_json(text, 44);
        assert_eq!(cut, "The cause was found. It […] fix is in.");
        assert_eq!(omitted, 19);
        assert_eq!(truncate_middle_for_json("日本語日本語", 16), ("日本 […] 語".to_owned(), 3));
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
