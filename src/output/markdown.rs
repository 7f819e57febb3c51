//! Shows the Markdown that models write: headings, emphasis and code get a style instead of their marks.
//! What is not sure to be Markdown stays as it is.

use super::painted::{CODE, DIM, PLAIN, Painted, STRONG};
use super::wrapped::wrap_lines;
use base::cells::text_width;

/// The fewest marks around a block of code.
const MIN_FENCE: usize = 3;

/// The indent of a line of code.
const CODE_INDENT: &str = "    ";

/// The marks on each side of strong text.
const STRONG_MARKS: usize = 2;

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
    let mut open: Option<Fence> = None;
    for line in message.lines() {
        let fence = Fence::parse(line);
        let kind = match (&open, &fence) {
            (Some(open), Some(fence)) if fence.closes(open) => PieceKind::Mark,
            (Some(_), _) => PieceKind::Code,
            (None, Some(fence)) if fence.may_open => PieceKind::Mark,
            (None, _) => {
                lines.extend(wrap_pieces(&parse_line(line), room.max(1)));
                continue;
            }
        };
        let wrapped = wrap_lines(line, room);
        lines.extend(wrapped.iter().map(|line| vec![Piece::new(kind, line)]));
        if kind == PieceKind::Mark {
            open = if open.is_some() { None } else { fence };
        }
    }
    lines
}

/// The line at an end of a block of code.
struct Fence {
    mark: char,
    length: usize,
    may_open: bool,
    may_close: bool,
}

impl Fence {
    fn parse(line: &str) -> Option<Self> {
        let text = line.trim_start();
        let mark = text.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        let may_open = mark == '~' || !info.contains('`');
        let may_close = info.trim().is_empty();
        (length >= MIN_FENCE).then_some(Self { mark, length, may_open, may_close })
    }

    fn closes(&self, open: &Self) -> bool {
        self.may_close && self.mark == open.mark && self.length >= open.length
    }
}

/// Returns the pieces of a line outside of blocks of code. A line with a deep indent may be code, too.
fn parse_line(line: &str) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let is_deep = line.starts_with(CODE_INDENT) && item_marks(line.trim_start()) == 0;
    match heading_text(line) {
        _ if is_deep => push_piece(&mut pieces, PieceKind::Text, line),
        Some(heading) => append_pieces(&mut pieces, heading, PieceKind::Strong),
        None => append_pieces(&mut pieces, line, PieceKind::Text),
    }
    pieces
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
    let mut plain = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['`', '*']).map(|found| at + found) {
        let before = text[..found].chars().next_back();
        let marked = if text[found..].starts_with('`') {
            code_text(&text[found..]).map(|(inner, end)| (PieceKind::Code, inner, end))
        } else {
            let strong = strong_text(&text[found..]).filter(|_| before.is_none_or(opens_strong));
            strong.map(|(inner, end)| (PieceKind::Strong, inner, end))
        };
        let Some((kind, inner, end)) = marked else {
            at = found + count_marks(&text[found..]);
            continue;
        };
        push_piece(pieces, around, &text[plain..found]);
        if kind == PieceKind::Code {
            push_piece(pieces, kind, inner);
        } else {
            append_pieces(pieces, inner, kind);
        }
        at = found + end;
        plain = at;
    }
    push_piece(pieces, around, &text[plain..]);
}

/// Returns true if strong text may follow the character: `2**3` and `src/**` have none.
fn opens_strong(before: char) -> bool {
    before.is_whitespace() || matches!(before, '(' | '[' | '"' | '\'' | '—' | '|' | '>')
}

/// Returns the number of equal marks at the beginning of a text.
fn count_marks(text: &str) -> usize {
    let mark = text.chars().next().unwrap_or('*');
    text.len() - text.trim_start_matches(mark).len()
}

/// Splits a text that begins with code: the code, and the position after it.
fn code_text(text: &str) -> Option<(&str, usize)> {
    let ticks = count_marks(text);
    let mut at = ticks;
    while let Some(found) = text[at..].find('`').map(|found| at + found) {
        let closing = count_marks(&text[found..]);
        if closing == ticks {
            let inner = &text[ticks..found];
            return (!inner.trim().is_empty()).then_some((inner, found + closing));
        }
        at = found + closing;
    }
    None
}

/// Splits a text that begins with strong text: the text, and the position after it.
fn strong_text(text: &str) -> Option<(&str, usize)> {
    if count_marks(text) != STRONG_MARKS {
        return None;
    }
    let mut at = STRONG_MARKS;
    while let Some(found) = text[at..].find(['`', '*']).map(|found| at + found) {
        let marks = count_marks(&text[found..]);
        if text[found..].starts_with('`') {
            // Marks in code are not marks.
            at = found + code_text(&text[found..]).map_or(marks, |(_, end)| end);
            continue;
        }
        let end = found + marks;
        let inner = &text[STRONG_MARKS..found];
        let is_close = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace());
        let after = text[end..].chars().next();
        let closes = marks == STRONG_MARKS
            && is_close(inner.chars().next())
            && is_close(inner.chars().next_back())
            && after.is_none_or(|after| !after.is_ascii_alphanumeric() && after != '/');
        if closes {
            return Some((inner, end));
        }
        at = end;
    }
    None
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
    let mut rest = PieceCursor { pieces, at: 0, start: 0 };
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
        rest.append_between(start, end, &mut line);
        lines.push(line);
        start = end;
    }
    lines
}

/// Returns the cells before the text of an item of a list, or of a text with an indent.
fn item_indent(text: &str) -> usize {
    let item = text.trim_start_matches(' ');
    text.len() - item.len() + item_marks(item)
}

/// Returns the cells of the mark of an item of a list: `- `, `12. `.
fn item_marks(item: &str) -> usize {
    let digits = item.len() - item.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    match item.as_bytes() {
        [b'-' | b'*' | b'+' | b'>', b' ', ..] => 2,
        _ if digits > 0 && item[digits..].starts_with(". ") => digits + 2,
        _ => 0,
    }
}

/// Goes through the pieces of a line from its beginning to its end.
struct PieceCursor<'p> {
    pieces: &'p [Piece],
    /// The piece that was looked at last, and its position in the text of all pieces, in bytes.
    at: usize,
    start: usize,
}

impl PieceCursor<'_> {
    /// Appends the parts of the pieces between two positions, which are not before the last ones.
    fn append_between(&mut self, from: usize, until: usize, line: &mut Vec<Piece>) {
        while let Some(piece) = self.pieces.get(self.at) {
            let end = self.start + piece.text.len();
            let first = from.clamp(self.start, end) - self.start;
            let last = until.clamp(self.start, end) - self.start;
            if let Some(text) = piece.text.get(first..last) {
                push_piece(line, piece.kind, text);
            }
            if end > until {
                return;
            }
            self.at += 1;
            self.start = end;
        }
    }
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
            ("- **a**: `**`; (**b**), **c d**.", &["- [a]: {**}; ([b]), [c d]."]),
            ("**run `a ** b` now**", &["[run ]{a ** b}[ now]"]),
            ("~~~\n# x\n```\n~~~\n# y", &["<~~~>", "{# x}", "{```}", "<~~~>", "[y]"]),
            ("````\n```\n**x**\n````", &["<````>", "{```}", "{**x**}", "<````>"]),
            ("```one line``` is **code**", &["{one line} is [code]"]),
            ("", &[]),
            ("a\n\nb", &["a", "", "b"]),
        ] {
            assert_eq!(show(message, 80), expected, "{message}");
        }
    }

    #[test]
    fn what_is_no_mark_is_shown() {
        for text in [
            "2 ** 3 ** 4",
            "2**3 and 4**5",
            "src/**/*.rs and test/**/*.ts",
            "f(**a,**b)",
            "**/*.rs, **/*.ts",
            "a ` b",
            "#define X",
            "####### seven",
            "****",
            "**",
            "***both***",
            "    # indented **code**",
        ] {
            assert_eq!(show(text, 80), [text], "{text}");
        }
    }

    #[test]
    fn a_long_line_takes_time_in_proportion() {
        let line = "`a` b ".repeat(200_000);
        assert_eq!(wrap_markdown(&line, 80).len(), 200_000 / 20);
    }

    #[test]
    fn styles_continue_over_breaks_and_items_hang() {
        assert_eq!(show("- **one two three** four", 11), ["- [one two]", "  [three]", "  four"]);
        assert_eq!(show("12. abc def", 8), ["12. abc", "    def"]);
        assert_eq!(show("日本語 `語語` x", 6), ["日本語", "{語語} x"]);
        assert_eq!(show("abcdefgh", 3), ["abc", "def", "gh"]);
    }
}
