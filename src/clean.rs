//! Text from logs is untrusted: what a terminal or a model should not see is taken out.

/// Text fit for a person's terminal and a model's context: without terminal escape sequences,
/// control characters except newline and tab, and invisible characters (bidi controls, zero-width
/// characters, tags).
pub(crate) fn clean(text: &str) -> String {
    let visible = |c: &char| !is_invisible(*c);
    if !text.chars().any(is_invisible) {
        return text.to_owned();
    }
    anstream::adapter::strip_str(text).to_string().chars().filter(visible).collect()
}

fn is_invisible(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Zero-width joiners hold emoji and several scripts together.
        '\u{200c}' | '\u{200d}' => false,
        '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2064}' => true,
        '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' | '\u{61c}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_invisible_characters_go_text_stays() {
        assert_eq!(clean("a\u{1b}[31;1mred\u{1b}[0m\r\nb\tc"), "ared\nb\tc");
        assert_eq!(clean("x\u{1b}]52;c;ZXZpbA==\u{7}y"), "xy");
        assert_eq!(clean("a\u{202e}b\u{200b}c\u{feff}\u{e0041}"), "abc");
        assert_eq!(clean("日本 👩\u{200d}💻 é"), "日本 👩\u{200d}💻 é");
    }
}
