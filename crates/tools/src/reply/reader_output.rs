//! Reads the output of calls that show a file.

use std::collections::BTreeMap;

/// Arguments that say that a call reads a part of a file.
const PARTS: [&str; 6] = ["offset", "limit", "start_line", "end_line", "view_range", "lines"];

/// What separates the number of a line from the line in the output of a reader.
const NUMBER_ENDS: [&str; 5] = ["→", "\t", "| ", ": ", "|"];

/// Returns whether a call shows a part of a file only, as its arguments or its result say.
pub(crate) fn shows_part(call: &str, result: &str) -> bool {
    let begins_argument =
        |line: &str, name| line.strip_prefix(name).is_some_and(|rest: &str| rest.starts_with(':'));
    result.contains("truncated")
        || call.lines().any(|line| PARTS.iter().any(|name| begins_argument(line, name)))
}

/// Returns the lines of a reader that numbers them. What it says before and after them is left out.
pub(crate) fn read_numbered(text: &str) -> BTreeMap<usize, String> {
    let mut lines = BTreeMap::new();
    let mut next = None;
    for line in text.lines() {
        let numbered =
            split_number(line).filter(|(number, _)| next.is_none_or(|next| next == *number));
        match numbered {
            Some((number, line)) => {
                lines.insert(number, line.to_owned());
                next = Some(number + 1);
            }
            // Lines of a file that begin with a number are among others.
            None if !is_around_file(line) => return BTreeMap::new(),
            None if next.is_some() => break,
            None => {}
        }
    }
    lines
}

/// Returns whether a line of a reader's output is not one of the file: blank, a tag or a remark.
fn is_around_file(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with(['<', '('])
}

/// Splits the number from a line of a reader's output.
pub(crate) fn split_number(line: &str) -> Option<(usize, &str)> {
    let line = line.trim_start();
    let rest = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let number = line.get(..line.len() - rest.len())?.parse().ok()?;
    let text = NUMBER_ENDS.iter().find_map(|end| rest.strip_prefix(end))?;
    (number > 0).then_some((number, text))
}
