//! Breaks texts into the lines of a screen.

use anstyle::Style;

use super::painted::{PLAIN, Painted};
use base::cells::text_width;

/// Breaks the lines of a text that are wider than `width`, between words where there are some.
pub(crate) fn wrap_lines(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let options = textwrap::Options::new(width).break_words(true);
    let mut lines = Vec::new();
    for line in text.lines() {
        if text_width(line) <= width {
            lines.push(line.to_owned());
        } else {
            lines.extend(textwrap::wrap(line, &options).into_iter().map(|line| line.into_owned()));
        }
    }
    lines
}

/// Breaks the lines of a remark at spaces. A word that is wider than `width`, such as a path, stays in one
/// piece, so that it can be copied.
pub(super) fn wrap_remark(text: &str, width: usize) -> String {
    let options = textwrap::Options::new(width.max(1))
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

/// Appends at most `max_lines` lines of a text in a style, each after `indent`. Returns the number of
/// lines that were left out.
pub(super) fn push_wrapped(
    painted: &mut Painted,
    style: Style,
    indent: &str,
    text: &str,
    width: usize,
    max_lines: usize,
) -> usize {
    let lines = wrap_lines(text, width.saturating_sub(text_width(indent)));
    for line in lines.iter().take(max_lines) {
        painted.push(PLAIN, indent).push(style, line);
        painted.end_line();
    }
    lines.len().saturating_sub(max_lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_cells_and_breaks_of_the_text_are_kept() {
        assert_eq!(wrap_lines("日本語", 4), ["日本", "語"]);
        assert_eq!(wrap_lines("one two\n\n  three", 7), ["one two", "", "  three"]);
        assert_eq!(
            wrap_remark("see /a/deep-down/path.jsonl --no-pager", 10),
            "see\n/a/deep-down/path.jsonl\n--no-pager"
        );
    }
}
