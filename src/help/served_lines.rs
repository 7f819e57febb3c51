//! Leaves out the lines of a text that are about a tool which is not served.

use schemas::tool::ServedTools;

/// Returns a text without the lines that name a tool which is not served, or call one that does not
/// exist.
pub(crate) fn served_lines(text: &str, served: ServedTools) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for line in text.lines() {
        let names_missing = served.missing().any(|tool| line.contains(tool.name));
        if !names_missing && called_names(line).all(|name| served.find(name).is_some()) {
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
    fn lines_about_absent_tools_are_left_out() {
        let text = "Call search_events(query) first.\nThen no_such_tool(x).\nf(x) is none.";
        let all = served_lines(text, ServedTools::ALL);
        assert_eq!(all, "Call search_events(query) first.\nf(x) is none.");
        assert_eq!(served_lines(text, ServedTools::MEMORY), "f(x) is none.");
        let named = "As list_sessions says.\nOr not.";
        assert_eq!(served_lines(named, ServedTools::ALL), named);
        assert_eq!(served_lines(named, ServedTools::MEMORY), "Or not.");
        assert_eq!(called_names("a_b(c_d(e))").collect::<Vec<_>>(), ["c_d", "a_b"]);
    }
}
