//! Formats rows as aligned columns of text.

/// Formats rows as a table under the names of their columns. Columns marked in `right` are aligned
/// to the right, as numbers are.
pub(crate) fn aligned(names: &[&str], right: &[bool], rows: &[Vec<String>]) -> String {
    let length = |text: &str| text.chars().count();
    let widths: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| length(cell));
            cells.max().unwrap_or(0).max(length(name))
        })
        .collect();
    let line = |cells: &[&str]| {
        let padded = cells.iter().zip(right).zip(&widths).map(|((cell, right), width)| {
            if *right { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
        });
        format!("{}\n", padded.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rules: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut out = line(names);
    out.push_str(&line(&rules.iter().map(String::as_str).collect::<Vec<_>>()));
    for row in rows {
        out.push_str(&line(&row.iter().map(String::as_str).collect::<Vec<_>>()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_end_at_the_same_place() {
        let rows = [("x", "100"), ("yyyyy", "7")].map(|(a, b)| vec![a.to_owned(), b.to_owned()]);
        let text = aligned(&["name", "n"], &[false, true], &rows);
        assert_eq!(text, "name     n\n-----  ---\nx      100\nyyyyy    7\n");
    }
}
