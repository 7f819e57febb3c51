//! Finds the parts of a compaction's summary that name what is open.
//!
//! ```text
//! 7. Pending Tasks:
//!    - Run the tests
//! 8. Current Work:
//!    ...
//! ```
//!
//! Other agents write the same as `## Next Steps`, `### In Progress` or `<current_plan>`.

/// Words of a heading under which a summary names what is open, in lower case.
const OPEN_HEADINGS: &[&str] = &[
    "pending",
    "next step",
    "current work",
    "current state",
    "current_plan",
    "current plan",
    "task_state",
    "in progress",
    "blocked",
    "remaining",
    "still to",
    "to do",
    "todo",
    "unfinished",
    "unresolved",
    "open question",
    "open issue",
    "open task",
    "outstanding",
    "not yet",
    "what's left",
];

/// Words of a heading that names what is done, although it may contain a word for what is open.
const CLOSED_HEADINGS: &[&str] = &["completed", "resolved issue", "none"];

/// Beginnings of lines with which an agent ends its summary and adds instructions.
const END_LINES: &[&str] = &[
    "If you need specific details from before compaction",
    "Please continue the conversation from where",
    "Continue the conversation from where",
];

/// Maximum length of a heading in bytes.
const MAX_HEADING_BYTES: usize = 80;

/// A heading of a summary.
struct Heading<'t> {
    /// The depth: 1 for `#`, a numbered line or a tag; more for further `#`.
    depth: usize,
    title: &'t str,
}

/// Returns the sections of a summary that name what is open, with their headings; `None` if it has
/// none.
pub(super) fn open_sections(text: &str) -> Option<String> {
    let mut out = String::new();
    // The depth of the heading of the open section that a line is in.
    let mut inside: Option<usize> = None;
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        }
        if END_LINES.iter().any(|beginning| line.starts_with(beginning)) {
            break;
        }
        if line.starts_with("</") {
            inside = None;
            continue;
        }
        let heading = if is_code { None } else { parse_heading(line) };
        match heading {
            Some(heading) if names_open(heading.title) => {
                inside = Some(inside.map_or(heading.depth, |depth| depth.min(heading.depth)));
                push_line(&mut out, line);
            }
            Some(heading) if inside.is_some_and(|depth| heading.depth <= depth) => inside = None,
            Some(_) | None if inside.is_some() => push_line(&mut out, line),
            Some(_) | None => {}
        }
    }
    let out = out.trim_end();
    // Headings alone do not say what is open.
    let has_content = out.lines().any(|line| {
        let is_heading = parse_heading(line).is_some_and(|heading| names_open(heading.title));
        !line.trim().is_empty() && !is_heading
    });
    has_content.then(|| out.to_owned())
}

fn names_open(title: &str) -> bool {
    let lower = title.to_lowercase();
    let is_closed = CLOSED_HEADINGS.iter().any(|word| lower.contains(word));
    !is_closed && OPEN_HEADINGS.iter().any(|word| lower.contains(word))
}

/// Returns the heading that a line is: `## Title`, `7. Title:`, `**Title**`, `Title:` or `<title>`.
fn parse_heading(line: &str) -> Option<Heading<'_>> {
    if line.is_empty() || line.len() > MAX_HEADING_BYTES || line.starts_with(char::is_whitespace) {
        return None;
    }
    let line = line.trim_end();
    let unmarked = line.trim_start_matches('#');
    let marks = line.len() - unmarked.len();
    if marks > 0 && unmarked.starts_with(' ') {
        return Some(Heading { depth: marks, title: unmarked.trim() });
    }
    if let Some(inner) = line.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
        return Some(Heading { depth: 1, title: inner });
    }
    let after_number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    if let Some(title) = after_number.strip_prefix(". ").filter(|_| after_number.len() < line.len())
    {
        let title = title.trim_matches('*').strip_suffix(':')?;
        return Some(Heading { depth: 1, title });
    }
    if let Some(title) = line.strip_prefix("**") {
        let title = title.trim_end_matches(':').strip_suffix("**")?;
        return Some(Heading { depth: 9, title });
    }
    let is_item = line.starts_with(['-', '*', '`', '|']);
    let title = line.strip_suffix(':').filter(|_| !is_item)?;
    Some(Heading { depth: 9, title })
}

fn push_line(out: &mut String, line: &str) {
    let is_blank = line.trim().is_empty();
    if is_blank && (out.is_empty() || out.ends_with("\n\n")) {
        return;
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_open_sections_of_every_style_are_found() {
        let numbered = "Analysis:\n1. **Primary Request**:\n   x\n\n7. Pending Tasks:\n   - Run the tests\n\n8. Current Work:\n   Task 4.\n   1. one\n\nIf you need specific details from before compaction (like";
        assert_eq!(
            open_sections(numbered).as_deref(),
            Some(
                "7. Pending Tasks:\n   - Run the tests\n\n8. Current Work:\n   Task 4.\n   1. one"
            )
        );
        let marked = "## Goal\nShip it\n\n## Progress\n### Done\n- [x] a\n### In Progress\n- b\n### Blocked\n- c\n\n## Key Decisions\n- d\n\n## Next Steps\n1. e\n## Files\nf";
        assert_eq!(
            open_sections(marked).as_deref(),
            Some("### In Progress\n- b\n### Blocked\n- c\n\n## Next Steps\n1. e")
        );
        let tagged = "<state_snapshot>\n<goal>\nx\n</goal>\n<current_plan>\n1. [TODO] y\n</current_plan>\n</state_snapshot>";
        assert_eq!(open_sections(tagged).as_deref(), Some("<current_plan>\n1. [TODO] y"));
    }

    #[test]
    fn a_summary_that_names_nothing_open_has_no_section() {
        for text in ["", "All is done.", "## Next Steps\n", "## Completed and remaining\nx"] {
            assert_eq!(open_sections(text), None, "{text}");
        }
    }
}
