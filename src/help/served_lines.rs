//! Leaves out the lines of a text that call a tool which is not served.

use schemas::tool::{TOOLS, find_tool};

/// Returns a text without the lines that call a tool which is not served.
pub(crate) fn served_lines(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        if called_names(line).all(|name| find_tool(TOOLS, name).is_some()) {
            out.push_str(line);
            out.push('\n');
        }
    }
    if !text.ends_with('\n') {
        out.pop();
    }
    out
}

/// Returns the names in a text that are written as calls: words joined by underscores before a
/// parenthesis.
fn called_names(text: &str) -> impl Iterator<Item = &str> {
    let before = text.split('(').rev().skip(1);
    before
        .map(|part| {
            let rest = part.trim_end_matches(|c: char| c.is_ascii_lowercase() || c == '_');
            part.strip_prefix(rest).unwrap_or_default()
        })
        .filter(|name| name.contains('_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_call_absent_tools_are_left_out() {
        let text = "Call search_events(query) first.\nThen no_such_tool(x).\nf(x) is none.";
        assert_eq!(served_lines(text), "Call search_events(query) first.\nf(x) is none.");
        assert_eq!(called_names("a_b(c_d(e))").collect::<Vec<_>>(), ["c_d", "a_b"]);
    }
}
