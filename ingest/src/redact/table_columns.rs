//! Masks secrets in the column of a table below a name that announces them:
//!
//! ```text
//! | user | password  |        user,password         user | password
//! |------|-----------|        mira,Quay#91side      ------+--------------
//! | mira | Quay#91side |                            mira | Quay#91side
//! ```

use super::assign::{self, is_secret};
use super::entropy::{is_numbered, is_placeholder};
use super::names::{Strength, announced_secret};
use super::pattern::LINE_LEAD;
use super::phrases::is_name_of_secret;
use super::scan::{SecretScan, is_identifier_byte, is_quote};

/// Maximum number of lines of a table below its header.
const MAX_ROWS: usize = 200;

/// Maximum number of bytes of a line of a table.
const MAX_LINE_BYTES: usize = 2 << 10;

/// Maximum number of bytes of a header.
const MAX_HEADER_BYTES: usize = 500;

/// Maximum number of bytes of a name in a header.
const MAX_CELL_BYTES: usize = 40;

/// Maximum number of words of a name in a header. A sentence has more.
const MAX_CELL_WORDS: usize = 3;

/// The signs between columns. `│` is that of tables in boxes.
const DELIMITERS: [char; 5] = ['|', ',', '\t', ';', '│'];

/// Signs around a name or a value that are not part of it.
const MARKS: [char; 5] = ['"', '\'', '`', '*', '\r'];

/// A cell of a line, without the blanks around it.
struct Cell<'t> {
    text: &'t str,
    /// Offset of the text in its line.
    offset: usize,
}

impl Cell<'_> {
    /// Returns whether the cell may be the name of a column.
    fn is_name(&self) -> bool {
        let is_letter = |c: char| c.is_alphanumeric() || "_-. ".contains(c) || MARKS.contains(&c);
        self.text.len() <= MAX_CELL_BYTES
            && self.text.chars().all(is_letter)
            && self.text.split(' ').count() <= MAX_CELL_WORDS
            && !self.text.ends_with('.')
    }
}

/// A column of secrets.
struct SecretColumn<'t> {
    number: usize,
    name: &'t str,
    kind: &'static str,
    strength: Strength,
}

/// Masks what the name around `at` announces: its value, or the columns below it. A word that announces
/// a secret is at `at`.
pub(super) fn mask_announced(scan: &mut SecretScan<'_>, at: usize) {
    if let Some((start, end)) = assign::find_name(scan, at) {
        mask_columns(scan, start, end);
        assign::mask_named_value(scan, start, end);
    }
}

/// Masks the columns of secrets of the table whose header includes the name from `start` to `end`. Does
/// nothing if the name is not a cell of a header.
fn mask_columns(scan: &mut SecretScan<'_>, start: usize, end: usize) {
    if start < scan.table_end {
        return;
    }
    let is_mark = |byte: u8| is_quote(byte) || matches!(byte, b' ' | b'*');
    let after = scan.text_from(scan.skip_while(end, MAX_CELL_BYTES, is_mark), 4);
    let is_last = after.is_empty() || after.starts_with(['\r', '\n']);
    let is_delimiter = |c: &char| DELIMITERS.contains(c);
    let next = after.chars().next().filter(is_delimiter);
    if next.is_none() && !is_last {
        return;
    }
    let before = scan.text_before(scan.run_start(start, MAX_CELL_BYTES, is_mark), 4);
    let delimiter = next.or(before.chars().next_back().filter(is_delimiter));

    // Most lines have other signs, and are not split.
    let is_of_header =
        |byte: u8| !byte.is_ascii_punctuation() && byte != b'\n' || is_header_sign(byte);
    let header_start = scan.run_start(start, MAX_HEADER_BYTES, is_of_header);
    let header_end = scan.skip_while(end, MAX_HEADER_BYTES, is_of_header);
    if !begins_text(scan, header_start) || scan.byte(header_end) != b'\n' {
        return;
    }
    let header = scan.slice(header_start, header_end);
    let has_number = number_length(header) > 0;
    let cells = split_cells(header, delimiter, has_number);
    if !cells.iter().all(Cell::is_name) {
        return;
    }
    let mut columns = Vec::new();
    for (number, cell) in cells.iter().enumerate() {
        let name = cell.text.trim_matches(MARKS);
        if let Some((kind, strength)) = announced_column(name) {
            columns.push(SecretColumn { number, name, kind, strength });
        }
    }

    let mut line_start = header_end + 1;
    for number in 0..MAX_ROWS {
        let line_end = scan.skip_while(line_start, MAX_LINE_BYTES, |byte| byte != b'\n');
        let line = scan.slice(line_start, line_end);
        if line.trim_ascii().is_empty() {
            break;
        }
        // Without a rule, a line of text between such signs looks like a header.
        let needs_rule = number == 0 && matches!(delimiter, None | Some('|' | '│'));
        if !is_rule(line) {
            let row = split_cells(line, delimiter, has_number);
            if needs_rule || row.len() != cells.len() {
                break;
            }
            mask_row(scan, line_start, &row, &columns);
        }
        line_start = line_end + 1;
    }
    scan.table_end = line_start;
}

/// Returns whether a line begins at `at`, or the text of an argument: `content: user,password`.
fn begins_text(scan: &SecretScan<'_>, at: usize) -> bool {
    let is_argument = scan.byte_before(at) == b':';
    let start =
        if is_argument { scan.run_start(at - 1, MAX_CELL_BYTES, is_identifier_byte) } else { at };
    start == 0 || scan.byte_before(start) == b'\n'
}

/// Masks the secrets of a row that begins at `line_start`.
fn mask_row(
    scan: &mut SecretScan<'_>,
    line_start: usize,
    row: &[Cell<'_>],
    columns: &[SecretColumn<'_>],
) {
    for column in columns {
        let Some(cell) = row.get(column.number) else { return };
        let value = cell.text.trim_matches(MARKS);
        let start = line_start + cell.offset + cell.text.find(value).unwrap_or_default();
        let is_secret = is_column_secret(value, column.strength)
            && !is_name_of_secret(value, column.name, column.strength, false);
        if is_secret {
            scan.add_secret_of(start, start + value.len(), column.kind);
        }
    }
}

/// Returns whether a header may contain the sign.
fn is_header_sign(byte: u8) -> bool {
    b"|,;_-.*\"'`".contains(&byte)
}

/// Returns the kind of the secrets in the column with this name, and how strongly the name announces
/// them.
fn announced_column(name: &str) -> Option<(&'static str, Strength)> {
    match name.to_ascii_lowercase().as_str() {
        "pass" | "pw" => Some(("password", Strength::Password)),
        _ => announced_secret(name),
    }
}

/// Returns whether a value in a column is a secret. Tables also describe passwords, in words.
fn is_column_secret(value: &str, strength: Strength) -> bool {
    let is_password = strength == Strength::Password;
    is_secret(value, strength, true, false)
        || is_password && is_numbered(value) && !is_placeholder(value)
}

/// Returns whether a line is the rule between the header and the rows: `|---|:--:|`, `----+----`.
fn is_rule(line: &str) -> bool {
    let mut signs =
        line.trim_start_matches(|c: char| c.is_ascii_digit() || " →\t".contains(c)).chars();
    line.contains(['-', '─', '=']) && signs.all(|c| "|-+:= \t\r─┼├┤│╞╪╡".contains(c))
}

/// Returns the length of the number that a reader of files puts before a line.
fn number_length(line: &str) -> usize {
    LINE_LEAD.captures(line).and_then(|found| found.get(0)).map_or(0, |lead| lead.len())
}

/// Splits a line at a sign that is in no quotes. The cells have no blanks around them.
fn split_cells(line: &str, delimiter: Option<char>, has_number: bool) -> Vec<Cell<'_>> {
    let lead = if has_number { number_length(line) } else { 0 };
    let mut cells = Vec::new();
    let mut cell_start = lead;
    let mut is_in_quotes = false;
    for (at, c) in line.char_indices().skip_while(|(at, _)| *at < lead) {
        is_in_quotes ^= c == '"';
        if Some(c) == delimiter && !is_in_quotes {
            cells.push(trim_cell(line, cell_start, at));
            cell_start = at + c.len_utf8();
        }
    }
    cells.push(trim_cell(line, cell_start, line.len()));
    cells
}

/// Returns a part of a line without the blanks around it.
fn trim_cell(line: &str, start: usize, end: usize) -> Cell<'_> {
    let text = line.get(start..end).unwrap_or_default();
    let blanks = text.len() - text.trim_ascii_start().len();
    Cell { text: text.trim_ascii(), offset: start + blanks }
}
