//! Shows the Markdown that models write: headings, emphasis and code get a style instead of their marks.
//! What is not sure to be Markdown stays as it is.

use super::painted::{CODE, DIM, PLAIN, Painted, STRONG};
use super::wrapped::wrap_lines;
use crate::base::cells::text_width;

/// The marks of a block of code.
const FENCE: &str = "```";

/// The most marks of a heading.
const MAX_HEADING_MARKS: usize = 6;

/// What a piece of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text,
    /// A heading or emphasis.
    Strong,
    Code,
    /// A mark of the block around the text.
    Mark,
}

/// A piece of a line. Its text has no line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    pub(crate) text: String,
}

impl Piece {
    fn new(kind: PieceKind, text: &str) -> Self {
        Self { kind, text: text.to_owned() }
    }
}

/// Breaks a message into lines of at most `room` cells. The lines of an item of a list begin below
/// its text.
pub(crate) fn wrap_markdown(message: &str, room: usize) -> Vec<Vec<Piece>> {
    let mut lines = Vec::new();
    let mut is_code = false;
    for line in message.lines() {
        let is_fence = line.trim_start().starts_with(FENCE);
        if is_fence {
            is_code = !is_code;
        }
        if is_fence || is_code {
            let kind = if is_fence { PieceKind::Mark } else { PieceKind::Code };
            let wrapped = wrap_lines(line, room);
            lines.extend(wrapped.iter().map(|line| vec![Piece::new(kind, line)]));
            continue;
        }
        let mut pieces = Vec::new();
        match heading_text(line) {
            Some(heading) => append_pieces(&mut pieces, heading, PieceKind::Strong),
            None => append_pieces(&mut pieces, line, PieceKind::Text),
        }
        lines.extend(wrap_pieces(&pieces, room.max(1)));
    }
    lines
}

/// Appends the pieces of a line.
pub(super) fn push_pieces(painted: &mut Painted, pieces: &[Piece]) {
    for piece in pieces {
        let style = match piece.kind {
            PieceKind::Text => PLAIN,
            PieceKind::Strong => STRONG,
            PieceKind::Code => CODE,
            PieceKind::Mark => DIM,
        };
        painted.push(style, &piece.text);
    }
}

/// Returns the text of a heading without its marks; `None` if the line is none.
fn heading_text(line: &str) -> Option<&str> {
    let text = line.trim_start_matches('#');
    let marks = line.len() - text.len();
    ((1..=MAX_HEADING_MARKS).contains(&marks) && text.starts_with(' ')).then(|| text.trim())
}

/// Appends a text as pieces: `around` where it has no marks.
fn append_pieces(pieces: &mut Vec<Piece>, text: &str, around: PieceKind) {
    let mut rest = text;
    let mut plain = 0;
    while let Some(at) = rest[plain..].find(['`', '*']).map(|at| plain + at) {
        let Some((inner, after, kind)) = marked_text(&rest[at..]) else {
            // A run of marks that marks nothing.
            let mark = rest[at..].chars().next().unwrap_or('*');
            plain = at + rest[at..].len() - rest[at..].trim_start_matches(mark).len();
            continue;
        };
        push_piece(pieces, around, &rest[..at]);
        match kind {
            PieceKind::Code => push_piece(pieces, kind, inner),
            PieceKind::Text | PieceKind::Strong | PieceKind::Mark => {
                append_pieces(pieces, inner, kind);
            }
        }
        rest = after;
        plain = 0;
    }
    push_piece(pieces, around, rest);
}

/// Splits a text that begins with marks: what they enclose, what follows, and what it is.
fn marked_text(text: &str) -> Option<(&str, &str, PieceKind)> {
    if text.starts_with('`') {
        let ticks = text.len() - text.trim_start_matches('`').len();
        let (mark, rest) = text.split_at(ticks);
        let (inner, after) = rest.split_once(mark)?;
        let is_whole = !inner.trim().is_empty() && !after.starts_with('`');
        return is_whole.then_some((inner, after, PieceKind::Code));
    }
    let (inner, after) = text.strip_prefix("**")?.split_once("**")?;
    let is_close = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != '*');
    (is_close(inner.chars().next()) && is_close(inner.chars().next_back())).then_some((
        inner,
        after,
        PieceKind::Strong,
    ))
}

fn push_piece(pieces: &mut Vec<Piece>, kind: PieceKind, text: &str) {
    if !text.is_empty() {
        pieces.push(Piece::new(kind, text));
    }
}

/// Breaks the pieces of a line into lines of at most `room` cells.
fn wrap_pieces(pieces: &[Piece], room: usize) -> Vec<Vec<Piece>> {
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    if text_width(&text) <= room {
        return vec![pieces.to_vec()];
    }
    let indent = " ".repeat(item_indent(&text).min(room / 2));
    let options = textwrap::Options::new(room).break_words(true).subsequent_indent(&indent);
    let mut lines = Vec::new();
    let mut start = 0;
    for wrapped in textwrap::wrap(&text, &options) {
        let is_first = lines.is_empty();
        let shown = if is_first { &*wrapped } else { wrapped.get(indent.len()..).unwrap_or("") };
        // Spaces at a break are in no line.
        if !text[start..].starts_with(shown) {
            start = text.len() - text[start..].trim_start_matches(' ').len();
        }
        let end = (start + shown.len()).min(text.len());
        let mut line = Vec::new();
        push_piece(&mut line, PieceKind::Text, if is_first { "" } else { &indent });
        line.extend(pieces_between(pieces, start, end));
        lines.push(line);
        start = end;
    }
    lines
}

/// Returns the cells before the text of an item of a list, or of a text with an indent.
fn item_indent(text: &str) -> usize {
    let item = text.trim_start_matches(' ');
    let spaces = text.len() - item.len();
    let digits = item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let marks = match item.as_bytes() {
        [b'-' | b'*' | b'+' | b'>', b' ', ..] => 2,
        _ if digits > 0 && item[digits..].starts_with(". ") => digits + 2,
        _ => 0,
    };
    spaces + marks
}

/// Returns the parts of the pieces between two positions of their whole text, in bytes.
fn pieces_between(pieces: &[Piece], start: usize, end: usize) -> Vec<Piece> {
    let mut found = Vec::new();
    let mut at = 0;
    for piece in pieces {
        let from = start.saturating_sub(at).min(piece.text.len());
        let to = end.saturating_sub(at).min(piece.text.len());
        if let Some(text) = piece.text.get(from..to) {
            push_piece(&mut found, piece.kind, text);
        }
        at += piece.text.len();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes lines with marks for what the pieces are: `[strong]`, `{code}`, `<mark>`.
    fn show(message: &str, room: usize) -> Vec<String> {
        let lines = wrap_markdown(message, room);
        let show_piece = |piece: &Piece| match piece.kind {
            PieceKind::Text => piece.text.clone(),
            PieceKind::Strong => format!("[{}]", piece.text),
            PieceKind::Code => format!("{{{}}}", piece.text),
            PieceKind::Mark => format!("<{}>", piece.text),
        };
        lines.iter().map(|line| line.iter().map(show_piece).collect()).collect()
    }

    #[test]
    fn marks_become_styles() {
        for (message, expected) in [
            ("plain", &["plain"][..]),
            ("## Why it *fails*", &["[Why it *fails*]"]),
            ("**Step 4:** edit `a.rs`, then ``b`c``", &["[Step 4:] edit {a.rs}, then {b`c}"]),
            ("**the `lock` file**", &["[the ]{lock}[ file]"]),
            ("```rust\nlet x = **p;\n```\nend", &["<```rust>", "{let x = **p;}", "<```>", "end"]),
            ("", &[]),
            ("a\n\nb", &["a", "", "b"]),
        ] {
            assert_eq!(show(message, 80), expected, "{message}");
        }
    }

    #[test]
    fn what_is_no_mark_is_shown() {
        for text in ["2 ** 3 ** 4", "a ` b", "#define X", "####### seven", "****", "**"] {
            assert_eq!(show(text, 80).join("").replace(['[', ']', '{', '}'], ""), text, "{text}");
        }
    }

    #[test]
    fn styles_continue_over_breaks_and_items_hang() {
        assert_eq!(show("- **one two three** four", 11), ["- [one two]", "  [three]", "  four"]);
        assert_eq!(show("12. abc def", 8), ["12. abc", "    def"]);
        assert_eq!(show("日本語 `語語` x", 6), ["日本語", "{語語} x"]);
        assert_eq!(show("abcdefgh", 3), ["abc", "def", "gh"]);
    }
}
