//! Fits text into the cells of a terminal: a wide character takes two, a combining one none.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The character at the place where a text was cut.
const ELLIPSIS: char = '…';

/// Returns the number of cells that a text takes. It must not contain escape sequences.
pub fn text_width(text: &str) -> usize {
    text.width()
}

/// Returns the beginning of a text that fits into `width` cells, with an ellipsis if its end is cut.
pub fn truncate_end(text: &str, width: usize) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut cells = 0;
    for c in text.chars() {
        cells += c.width().unwrap_or(0);
        if cells + 1 > width {
            break;
        }
        kept.push(c);
    }
    if width > 0 {
        kept.push(ELLIPSIS);
    }
    kept
}

/// Returns the end of a text that fits into `width` cells, with an ellipsis if its beginning is cut.
pub fn truncate_start(text: &str, width: usize) -> String {
    if text_width(text) <= width {
        return text.to_owned();
    }
    let mut from = text.len();
    let mut cells = 0;
    for (at, c) in text.char_indices().rev() {
        cells += c.width().unwrap_or(0);
        if cells + 1 > width {
            break;
        }
        from = at;
    }
    if width == 0 { String::new() } else { format!("{ELLIPSIS}{}", &text[from..]) }
}

/// Fits a text into `width` cells. A path loses its beginning, which says less than its end; a
/// command or a sentence loses its end.
pub fn truncate(text: &str, width: usize) -> String {
    if is_path(text) { truncate_start(text, width) } else { truncate_end(text, width) }
}

/// Returns whether a text looks like an absolute path. Its folders may have spaces in their names,
/// but `/review the code` is a command.
fn is_path(text: &str) -> bool {
    let Some((first, _)) = text.split_once(' ') else { return text.starts_with('/') };
    let last = text.rsplit(' ').next().unwrap_or_default();
    first.starts_with('/') && first[1..].contains('/') && last.contains('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_to_cells() {
        assert_eq!(truncate_end("harbor", 6), "harbor");
        assert_eq!(truncate_end("harbor", 4), "har…");
        assert_eq!(truncate_end("日本語", 6), "日本語");
        assert_eq!(truncate_end("日本語", 5), "日本…");
        assert_eq!(truncate_end("日本語", 4), "日…");
        assert_eq!(truncate_end("x", 0), "");
        assert_eq!(truncate_start("/home/mira/code", 5), "…code");
        assert_eq!(truncate_start("日本語", 4), "…語");
        assert_eq!(truncate("/home/mira/code", 5), "…code");
        assert_eq!(truncate("/home/mira/My Notes/a/b.rs", 7), "…a/b.rs");
        assert_eq!(truncate("/review the harbor", 8), "/review…");
        assert_eq!(truncate("/review src/main.rs", 8), "/review…");
        assert_eq!(truncate("/usr/bin/env python", 8), "/usr/bi…");
    }
}
