//! The help of the program at a terminal: headings, commands and flags are strong.

use super::painted::{PLAIN, Painted, STRONG};

/// Paints a help text as clap formats it: headings end with a colon, and the names of commands and flags
/// are indented and followed by at least two spaces.
pub(crate) fn paint_help(text: &str) -> Painted {
    let mut painted = Painted::new();
    for line in text.lines() {
        let (strong, rest) = line.split_at(strong_length(line));
        painted.push(STRONG, strong).push(PLAIN, rest);
        painted.end_line();
    }
    painted
}

/// Returns the length of the part at the beginning of a line that is a heading or a name.
fn strong_length(line: &str) -> usize {
    if let Some(usage) = line.strip_prefix("Usage:") {
        return line.len() - usage.len();
    }
    let name = line.trim_start();
    let indent = line.len() - name.len();
    if indent == 0 {
        return if line.ends_with(':') { line.len() } else { 0 };
    }
    let is_flag = name.starts_with('-');
    match name.find("  ") {
        Some(length) if indent == 2 || is_flag => indent + length,
        None if is_flag => line.len(),
        Some(_) | None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_and_names_are_strong() {
        for (line, strong) in [
            ("Find and read:", "Find and read:"),
            ("Usage: sessions [OPTIONS]", "Usage:"),
            ("  list         List sessions", "  list"),
            ("  -n, --limit <N>  Sessions per page", "  -n, --limit <N>"),
            ("      --store <DIR>", "      --store <DIR>"),
            ("               of the store", ""),
            ("  sessions list --sort cost -n 5", ""),
            ("AI agents: `sessions --ai-help` prints it.", ""),
            ("", ""),
        ] {
            assert_eq!(&line[..strong_length(line)], strong, "{line}");
        }
    }
}
