//! Formats rows as aligned columns of text.

/// Formats rows as a table under the names of their columns. Columns marked in `right` are aligned
/// to the right, as numbers are.
pub(crate) fn format_table(names: &[&str], right: &[bool], rows: &[Vec<String>]) -> String {
    let widths = column_widths(names, rows);
    let rules: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();

    let mut out = String::new();
    append_line(&mut out, names, right, &widths);
    append_line(&mut out, &rules, right, &widths);
    for row in rows {
        append_line(&mut out, row, right, &widths);
    }
    out
}

/// Returns the number of characters of the longest cell of each column, its name included.
fn column_widths(names: &[&str], rows: &[Vec<String>]) -> Vec<usize> {
    let mut widths: Vec<usize> = names.iter().map(|name| name.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

/// Appends a line with `cells`, padded to `widths`. Spaces at its end are removed.
fn append_line<T: AsRef<str>>(out: &mut String, cells: &[T], right: &[bool], widths: &[usize]) {
    let mut padded = Vec::with_capacity(cells.len());
    for ((cell, is_right), width) in cells.iter().zip(right).zip(widths) {
        let cell = cell.as_ref();
        padded.push(if *is_right { format!("{cell:>width$}") } else { format!("{cell:<width$}") });
    }
    out.push_str(padded.join("  ").trim_end());
    out.push('\n');
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
}
