//! Draws the Markdown that models write: headings, emphasis and code get a style instead of their
//! marks, lists and quotations an indent, tables columns, and links their addresses.

use std::ops::Range;

use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use super::painted::{CODE, DIM, PLAIN, STRONG};
use super::wrapped::wrap_lines;
use base::cells::text_width;

/// The cells between two columns of a table.
const COLUMN_GAP: usize = 2;

/// The least cells of a column of a table that has to shrink.
const MIN_COLUMN_WIDTH: usize = 6;

/// What a piece of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceKind {
    Text,
    /// A heading or emphasis.
    Strong,
    Code,
    /// A mark of the block around the text, or the address of a link.
    Mark,
}

impl PieceKind {
    pub(crate) const fn style(self) -> Style {
        match self {
            Self::Text => PLAIN,
            Self::Strong => STRONG,
            Self::Code => CODE,
            Self::Mark => DIM,
        }
    }
}

/// A piece of a line. Its text has no line break.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) kind: PieceKind,
    pub(crate) text: String,
}

/// Breaks a message into lines of at most `width` cells.
pub(crate) fn wrap_markdown(message: &str, width: usize) -> Vec<Vec<Piece>> {
    let mut page = MarkdownPage { message, width: width.max(1), ..MarkdownPage::default() };
    for (event, range) in Parser::new_ext(message, Options::ENABLE_TABLES).into_offset_iter() {
        page.push_event(event, range);
    }
    page.end_line();
    page.lines
}

/// The lines of a message, while they are made.
#[derive(Default)]
struct MarkdownPage<'m> {
    message: &'m str,
    width: usize,
    lines: Vec<Vec<Piece>>,
    /// The pieces of the current line or cell.
    current: Vec<Piece>,
    /// What is before the lines of the open lists and quotations, from the outermost on.
    margins: Vec<Margin>,
    /// The numbers of the next items of the open lists; `None` for lists without numbers.
    numbers: Vec<Option<u64>>,
    /// How many headings and emphases are open.
    strong: usize,
    /// The addresses of the open links, and where their texts begin in `current`.
    links: Vec<(String, usize)>,
    is_code: bool,
    table: Vec<Vec<Vec<Piece>>>,
}

/// What is before the lines of a list's item or of a quotation.
struct Margin {
    /// The mark of an item, until it is drawn.
    mark: Option<String>,
    rest: Piece,
}

impl MarkdownPage<'_> {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other parts have no marks of their own"
    )]
    fn push_event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.start(tag, &range),
            Event::End(tag) => self.end(tag, &range),
            Event::Code(text) => self.push(PieceKind::Code, &text),
            Event::SoftBreak | Event::HardBreak => self.end_line(),
            Event::Rule => {
                self.begin_block(&range);
                self.push(PieceKind::Mark, &"─".repeat(self.inner_width().min(20)));
                self.end_line();
            }
            Event::Text(text) if self.is_code => {
                for line in text.lines() {
                    for part in wrap_lines(line, self.inner_width()) {
                        self.push(PieceKind::Code, &part);
                        self.end_line();
                    }
                    if line.is_empty() {
                        self.push_line(Vec::new());
                    }
                }
            }
            Event::Html(text) => {
                self.push(PieceKind::Text, text.trim_end());
                self.end_line();
            }
            Event::Text(text) | Event::InlineHtml(text) => self.push_text(&text),
            _ => {}
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other blocks are lines of text")]
    fn start(&mut self, tag: Tag<'_>, range: &Range<usize>) {
        match tag {
            Tag::Heading { .. } => {
                self.begin_block(range);
                self.strong += 1;
            }
            Tag::Emphasis | Tag::Strong if !self.opens_emphasis(range) => {
                let marks = self.emphasis_marks(range);
                self.push_text(&marks);
            }
            Tag::Emphasis | Tag::Strong => self.strong += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.into_string(), self.current.len()));
            }
            Tag::List(first) => {
                self.end_line();
                self.numbers.push(first);
            }
            Tag::Item => {
                self.begin_block(range);
                let mark = match self.numbers.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "- ".to_owned(),
                };
                let rest = piece(PieceKind::Text, &" ".repeat(mark.len()));
                self.margins.push(Margin { mark: Some(mark), rest });
            }
            Tag::BlockQuote(_) => {
                self.begin_block(range);
                self.margins.push(Margin { mark: None, rest: piece(PieceKind::Mark, "> ") });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block(range);
                if let CodeBlockKind::Fenced(language) = kind {
                    self.push(PieceKind::Mark, &format!("```{language}"));
                    self.end_line();
                }
                self.is_code = true;
            }
            Tag::TableHead | Tag::TableRow => self.table.push(Vec::new()),
            Tag::TableCell => {}
            _ => self.begin_block(range),
        }
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "the other blocks are lines of text")]
    fn end(&mut self, tag: TagEnd, range: &Range<usize>) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_line();
                self.strong -= 1;
            }
            TagEnd::Emphasis | TagEnd::Strong if !self.opens_emphasis(range) => {
                let marks = self.emphasis_marks(range);
                self.push_text(&marks);
            }
            TagEnd::Emphasis | TagEnd::Strong => self.strong -= 1,
            TagEnd::Link | TagEnd::Image => {
                let Some((address, start)) = self.links.pop() else { return };
                let shown: String =
                    self.current.iter().skip(start).map(|piece| piece.text.as_str()).collect();
                if shown != address && !address.is_empty() {
                    self.push(PieceKind::Mark, &format!(" ({address})"));
                }
            }
            TagEnd::List(_) => {
                self.numbers.pop();
            }
            TagEnd::Item | TagEnd::BlockQuote(_) => {
                self.end_line();
                self.margins.pop();
            }
            TagEnd::CodeBlock => {
                self.is_code = false;
                if self.message[range.clone()].trim_start().starts_with(['`', '~']) {
                    self.push(PieceKind::Mark, "```");
                    self.end_line();
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.current);
                if let Some(row) = self.table.last_mut() {
                    row.push(cell);
                }
            }
            TagEnd::Table => self.push_table(),
            TagEnd::TableHead | TagEnd::TableRow => {}
            _ => self.end_line(),
        }
    }

    /// Returns true if marks of emphasis mean it: those of `2**3` and `src/**/*.rs` do not.
    fn opens_emphasis(&self, range: &Range<usize>) -> bool {
        let before = self.message[..range.start].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || "([\"'—|>*_".contains(c))
    }

    /// Returns the marks that an emphasis begins with.
    fn emphasis_marks(&self, range: &Range<usize>) -> String {
        let text = &self.message[range.clone()];
        let mark = text.chars().next().unwrap_or('*');
        let count = text.chars().take_while(|c| *c == mark).count().min(2);
        mark.to_string().repeat(count)
    }

    /// Begins a block. The empty lines before it are one.
    fn begin_block(&mut self, range: &Range<usize>) {
        self.end_line();
        let before = &self.message[..range.start];
        let gap = &before[before.trim_end_matches([' ', '\t', '\n', '\r', '>']).len()..];
        let is_mark = self.margins.last().is_some_and(|margin| margin.mark.is_some());
        if !self.lines.is_empty() && !is_mark && gap.matches('\n').count() > 1 {
            self.push_line(Vec::new());
        }
    }

    fn push_text(&mut self, text: &str) {
        let kind = if self.strong > 0 { PieceKind::Strong } else { PieceKind::Text };
        self.push(kind, text);
    }

    fn push(&mut self, kind: PieceKind, text: &str) {
        match self.current.last_mut() {
            Some(last) if last.kind == kind => last.text.push_str(text),
            _ => push_piece(&mut self.current, kind, text),
        }
    }

    /// Returns the cells that a line has after its margins.
    fn inner_width(&self) -> usize {
        let margins: usize = self.margins.iter().map(|margin| text_width(&margin.rest.text)).sum();
        self.width.saturating_sub(margins).max(1)
    }

    /// Ends the current line, if it has a text.
    fn end_line(&mut self) {
        let pieces = std::mem::take(&mut self.current);
        if !pieces.is_empty() {
            for line in wrap_pieces(&pieces, self.inner_width()) {
                self.push_line(line);
            }
        }
    }

    /// Appends a line after the margins.
    fn push_line(&mut self, pieces: Vec<Piece>) {
        let mut line = Vec::new();
        for margin in &mut self.margins {
            match margin.mark.take() {
                Some(mark) => push_piece(&mut line, PieceKind::Mark, &mark),
                None if pieces.is_empty() && margin.rest.kind == PieceKind::Text => {}
                None => line.push(margin.rest.clone()),
            }
        }
        line.extend(pieces);
        self.lines.push(line);
    }

    /// Appends the table in columns. The widest shrink until all fit.
    fn push_table(&mut self) {
        let rows = std::mem::take(&mut self.table);
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |cell: &Vec<Piece>| cell.iter().map(|piece| text_width(&piece.text)).sum();
        let mut widths = vec![1usize; columns];
        for (at, cell) in rows.iter().flat_map(|row| row.iter().enumerate()) {
            widths[at] = widths[at].max(width_of(cell));
        }
        let width = self.inner_width().saturating_sub(COLUMN_GAP * columns.saturating_sub(1));
        while widths.iter().sum::<usize>() > width {
            let Some(widest) = widths.iter_mut().max().filter(|width| **width > MIN_COLUMN_WIDTH)
            else {
                break;
            };
            *widest -= 1;
        }

        for (number, row) in rows.iter().enumerate() {
            let cells: Vec<Vec<Vec<Piece>>> =
                row.iter().zip(&widths).map(|(cell, width)| wrap_pieces(cell, *width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or(0);
            for at in 0..height {
                let mut line = Vec::new();
                for (column, cell) in cells.iter().enumerate() {
                    let mut pieces = cell.get(at).cloned().unwrap_or_default();
                    if number == 0 {
                        for piece in &mut pieces {
                            piece.kind = PieceKind::Strong;
                        }
                    }
                    let used: usize = width_of(&pieces);
                    line.extend(pieces);
                    if column + 1 < cells.len() {
                        let gap = widths[column].saturating_sub(used) + COLUMN_GAP;
                        push_piece(&mut line, PieceKind::Text, &" ".repeat(gap));
                    }
                }
                self.push_line(line);
            }
            if number == 0 {
                let width = widths.iter().sum::<usize>() + COLUMN_GAP * columns.saturating_sub(1);
                self.push_line(vec![piece(PieceKind::Mark, &"─".repeat(width))]);
            }
        }
    }
}

fn piece(kind: PieceKind, text: &str) -> Piece {
    Piece { kind, text: text.to_owned() }
}

fn push_piece(pieces: &mut Vec<Piece>, kind: PieceKind, text: &str) {
    if !text.is_empty() {
        pieces.push(piece(kind, text));
    }
}

/// Breaks the pieces of a line into lines of at most `width` cells.
fn wrap_pieces(pieces: &[Piece], width: usize) -> Vec<Vec<Piece>> {
    let text: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
    if text_width(&text) <= width {
        return vec![pieces.to_vec()];
    }
    let options = textwrap::Options::new(width).break_words(true);
    let mut lines = Vec::new();
    let mut rest = PieceCursor { pieces, at: 0, start: 0 };
    let mut start = 0;
    for wrapped in textwrap::wrap(&text, &options) {
        let shown = &*wrapped;
        // Spaces at a break are in no line.
        if !text[start..].starts_with(shown) {
            start = text.len() - text[start..].trim_start_matches(' ').len();
        }
        let end = (start + shown.len()).min(text.len());
        let mut line = Vec::new();
        rest.append_between(start, end, &mut line);
        lines.push(line);
        start = end;
    }
    lines
}

/// Goes through the pieces of a line from its beginning to its end.
struct PieceCursor<'p> {
    pieces: &'p [Piece],
    /// The piece that was examined last, and its position in the text of all pieces, in bytes.
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
    fn show(message: &str, width: usize) -> Vec<String> {
        let lines = wrap_markdown(message, width);
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
            ("## Why it *fails*", &["[Why it fails]"]),
            ("**Step 4:** edit `a.rs`, then ``b`c``", &["[Step 4:] edit {a.rs}, then {b`c}"]),
            ("**the `lock` file**", &["[the ]{lock}[ file]"]),
            ("```rust\nlet x = **p;\n```\nend", &["<```rust>", "{let x = **p;}", "<```>", "end"]),
            ("- **a**: `**`; (**b**), **c d**.", &["<- >[a]: {**}; ([b]), [c d]."]),
            ("**run `a ** b` now**", &["[run ]{a ** b}[ now]"]),
            ("```one line``` is **code**", &["{one line} is [code]"]),
            ("", &[]),
            ("a\nb\n\nc", &["a", "b", "", "c"]),
            (
                "text:\n- a\n  1. b\n  2. c\n- d",
                &["text:", "<- >a", "  <1. >b", "  <2. >c", "<- >d"],
            ),
            ("> a\n> b", &["<> >a", "<> >b"]),
            ("see [the book](https://b.example/x).", &["see the book< (https://b.example/x)>."]),
            ("<https://b.example/x>", &["https://b.example/x"]),
        ] {
            assert_eq!(show(message, 80), expected, "{message}");
        }
    }

    #[test]
    fn tables_have_columns_that_fit() {
        let table = "| file | what it does |\n|---|---|\n| `a.rs` | reads the logs |\n| b | x |";
        assert_eq!(
            show(table, 80),
            [
                "[file]  [what it does]",
                "<────────────────────>",
                "{a.rs}  reads the logs",
                "b     x"
            ]
        );
        assert_eq!(show(table, 16)[3..], ["{a.rs}  reads the", "      logs", "b     x"]);
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
            "snake_case_name",
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
        assert_eq!(show("- **one two three** four", 11), ["<- >[one two]", "  [three]", "  four"]);
        assert_eq!(show("12. abc def", 8), ["<12. >abc", "    def"]);
        assert_eq!(show("日本語 `語語` x", 6), ["日本語", "{語語} x"]);
        assert_eq!(show("abcdefgh", 3), ["abc", "def", "gh"]);
    }
}
