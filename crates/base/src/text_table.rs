//! Formats rows as aligned columns of text.

use super::cells::text_width;
use super::sanitize::one_line;

/// The spaces between two columns.
pub const COLUMN_GAP: usize = 2;

/// Formats rows as a table under the names of their columns and a rule. Columns marked in `right` are
/// aligned to the right, as numbers are. Cells have no line breaks.
pub fn format_table(names: &[&str], right: &[bool], rows: &[Vec<String>]) -> String {
    if names.is_empty() {
        return String::new();
    }
    let names: Vec<String> = names.iter().map(|name| one_line(name)).collect();
    let mut widths: Vec<usize> = names.iter().map(|name| text_width(name)).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(text_width(cell));
        }
    }
    let rule = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut out = String::new();
    for line in [&names, &rule].into_iter().chain(rows) {
        let mut text = String::new();
        for ((cell, width), is_right) in line.iter().zip(&widths).zip(right) {
            let padding = " ".repeat(width - text_width(cell));
            let (before, after) = if *is_right { (&*padding, "") } else { ("", &*padding) };
            text.extend([before, cell, after]);
            text.extend([" "; COLUMN_GAP]);
        }
        out.extend([text.trim_end(), "\n"]);
    }
    out
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
