//! Formats rows as aligned columns of text.

use tabled::builder::Builder;
use tabled::settings::object::Columns;
use tabled::settings::{Alignment, Padding, Style};

/// The spaces between two columns.
pub const COLUMN_GAP: usize = 2;

/// Formats rows as a table under the names of their columns and a rule. Columns marked in `right` are
/// aligned to the right, as numbers are.
pub fn format_table(names: &[&str], right: &[bool], rows: &[Vec<String>]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let mut widths: Vec<usize> = names.iter().map(|name| tabled_width(name)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(tabled_width(cell));
        }
    }
    let mut lines = vec![names.iter().map(|name| (*name).to_owned()).collect()];
    lines.push(widths.iter().map(|width| "-".repeat(*width)).collect());
    lines.extend(rows.iter().cloned());
    align_columns(lines, right)
}

/// Formats lines of cells as columns. Cells may contain escape sequences of styles, and no line
/// breaks.
pub fn align_columns(lines: Vec<Vec<String>>, right: &[bool]) -> String {
    let mut builder = Builder::with_capacity(lines.len(), right.len());
    for line in lines {
        builder.push_record(line);
    }
    let mut table = builder.build();
    table.with(Style::empty()).with(Padding::new(0, COLUMN_GAP, 0, 0));
    for (column, is_right) in right.iter().enumerate() {
        let alignment = if *is_right { Alignment::right() } else { Alignment::left() };
        table.modify(Columns::one(column), alignment);
    }
    let mut out = String::new();
    for line in table.to_string().lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Returns the cells that the widest line of a text takes in a table.
fn tabled_width(text: &str) -> usize {
    text.lines().map(super::cells::text_width).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_at_the_same_place() {
        let rows = [("x", "100"), ("yyyyy", "7")].map(|(a, b)| vec![a.to_owned(), b.to_owned()]);
        let text = format_table(&["name", "n"], &[false, true], &rows);
        assert_eq!(text, "name     n\n-----  ---\nx      100\nyyyyy    7\n");
    }

    #[test]
    fn wide_characters_take_two_cells() {
        let rows = [("日本", "1"), ("abcde", "2")].map(|(a, b)| vec![a.to_owned(), b.to_owned()]);
        let text = format_table(&["name", "n"], &[false, true], &rows);
        assert_eq!(text, "name   n\n-----  -\n日本   1\nabcde  2\n");
    }
}
