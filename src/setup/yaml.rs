//! Adds an entry to a configuration in YAML, as lines. The other lines stay as they are.
//!
//! ```yaml
//! extensions:
//!   sessions:
//!     enabled: true
//!     cmd: "/opt/sessions"
//!     args: ["mcp"]
//! ```
//!
//! Values are written as JSON, which YAML includes. A file whose tables are not written as indented
//! blocks is refused.

use std::ops::Range;

use super::entry::{SERVER_NAME, ServerEntry, has_value};

/// Returns `text` with the entry added. The error is the reason why the text cannot take the entry.
pub(super) fn add_to_yaml(text: &str, entry: &ServerEntry) -> Result<String, String> {
    let table = entry.table;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.iter().skip(1).any(|line| line == "---") || lines.iter().any(|line| line == "...") {
        return Err("it holds several documents".to_owned());
    }
    if let Some(line) = lines.iter().find(|line| line.trim_start_matches(' ').starts_with('\t')) {
        return Err(format!("it is indented by tabs (`{}`)", line.trim()));
    }

    let table_at = find_table(&mut lines, table)?;
    let members = block_of(&lines, table_at);
    let first = lines[table_at + 1..].iter().find(|line| content_indent(line).is_some());
    if first.is_some_and(|line| line.trim_start().starts_with('-')) {
        return Err(format!("'{table}' in it is a list"));
    }
    let indent = members.clone().find_map(|at| content_indent(&lines[at])).unwrap_or(2);
    let name_line = format!("{}{SERVER_NAME}:", " ".repeat(indent));
    let known = members.clone().find(|at| without_comment(&lines[*at]).starts_with(&name_line));
    match known {
        Some(at) if without_comment(&lines[at]) != name_line => {
            return Err(format!("'{SERVER_NAME}' in it is not a table"));
        }
        Some(at) => update_members(&mut lines, at, indent, entry),
        None => {
            let mut block = vec![name_line];
            for (name, value) in &entry.fields {
                block.push(format!("{}{name}: {value}", " ".repeat(indent + 2)));
            }
            lines.splice(members.end..members.end, block);
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// Returns `text` without the entry.
pub(super) fn remove_from_yaml(text: &str, entry: &ServerEntry) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let head = format!("{}:", entry.table);
    let Some(table_at) = lines.iter().position(|line| line.starts_with(&head)) else {
        return text.to_owned();
    };
    let mut members = block_of(&lines, table_at);
    let indent = members.clone().find_map(|at| content_indent(&lines[at])).unwrap_or_default();
    let name_line = format!("{}{SERVER_NAME}:", " ".repeat(indent));
    let Some(at) = members.find(|at| without_comment(&lines[*at]) == name_line) else {
        return text.to_owned();
    };
    let end = block_of(&lines, at).end;
    lines.drain(at..end);
    lines.join("\n") + "\n"
}

/// Returns the line that begins the table. An empty table becomes a block; a missing one is added
/// at the end.
fn find_table(lines: &mut Vec<String>, table: &str) -> Result<usize, String> {
    let head = format!("{table}:");
    let Some(at) = lines.iter().position(|line| line.starts_with(&head)) else {
        lines.push(head);
        return Ok(lines.len() - 1);
    };
    let value = without_comment(&lines[at])[head.len()..].trim();
    match value {
        "" => Ok(at),
        "{}" | "null" | "~" => {
            lines[at] = head;
            Ok(at)
        }
        _ => Err(format!("'{table}' in it is not written as a block")),
    }
}

/// Returns the lines that belong to the block that line `at` begins, without blank lines and
/// comments at its end.
fn block_of(lines: &[String], at: usize) -> Range<usize> {
    let outer = content_indent(&lines[at]).unwrap_or_default();
    let mut end = at + 1;
    for (inner, line) in lines.iter().enumerate().skip(at + 1) {
        match content_indent(line) {
            Some(indent) if indent <= outer => break,
            Some(_) => end = inner + 1,
            None => {}
        }
    }
    at + 1..end
}

/// Returns the number of spaces before the content of a line, or `None` if it has none.
fn content_indent(line: &str) -> Option<usize> {
    let content = line.trim_start();
    (!content.is_empty() && !content.starts_with('#')).then(|| line.len() - content.len())
}

/// Returns a line without the comment and the spaces at its end. A `#` after a space begins a
/// comment, unless it is inside quotes; names and heads of tables have none.
fn without_comment(line: &str) -> &str {
    let end = line.find(" #").unwrap_or(line.len());
    line[..end].trim_end()
}

/// Sets the fields of the entry that begins in line `at`. Its other fields belong to the user.
fn update_members(lines: &mut Vec<String>, at: usize, indent: usize, entry: &ServerEntry) {
    let members = block_of(lines, at);
    let inner = members.clone().find_map(|at| content_indent(&lines[at])).unwrap_or(indent + 2);
    for (name, value) in &entry.fields {
        let head = format!("{}{name}:", " ".repeat(inner));
        let wanted = format!("{head} {value}");
        let members = block_of(lines, at);
        let known = members.clone().find(|at| lines[*at].starts_with(&head));
        let Some(known) = known else {
            lines.insert(members.end, wanted);
            continue;
        };
        // A list may be written with dashes at the indentation of its name.
        let mut end = block_of(lines, known).end;
        while end < members.end && lines[end].starts_with(&format!("{}- ", " ".repeat(inner))) {
            end += 1;
        }
        let text = without_comment(&lines[known])[head.len()..].trim();
        if !serde_json::from_str(text).is_ok_and(|known| has_value(&known, value)) {
            lines.splice(known..end, [wanted]);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added_to(text: &str) -> Result<String, String> {
        let fields = json!({ "enabled": true, "cmd": "/opt/sessions", "args": ["mcp"] });
        let fields = fields.as_object().cloned().expect("object");
        add_to_yaml(text, &ServerEntry { table: "extensions", fields })
    }

    const BLOCK: &str =
        "  sessions:\n    enabled: true\n    cmd: \"/opt/sessions\"\n    args: [\"mcp\"]\n";

    #[test]
    fn a_file_without_the_table_gets_it() {
        for before in ["", "extensions:\n", "extensions: {}\n", "extensions: null # none\n"] {
            let after = added_to(before).expect("edits");
            assert_eq!(after, format!("extensions:\n{BLOCK}"), "{before}");
            assert_eq!(added_to(&after).as_ref(), Ok(&after), "twice");
        }
        let after = added_to("GOOSE_MODEL: x # mine\n").expect("edits");
        assert_eq!(after, format!("GOOSE_MODEL: x # mine\nextensions:\n{BLOCK}"));
    }

    #[test]
    fn other_lines_stay() {
        let before =
            "# mine\nextensions:\n    developer: # keep\n        enabled: true\n\nGOOSE_MODEL: x\n";
        let after = added_to(before).expect("edits");
        let block = "    sessions:\n      enabled: true\n      cmd: \"/opt/sessions\"\n      args: [\"mcp\"]\n";
        assert_eq!(after, before.replace("true\n\n", &format!("true\n{block}\n")));
        assert_eq!(added_to(&after).as_ref(), Ok(&after), "twice");
    }

    #[test]
    fn an_entry_that_is_there_keeps_its_further_fields() {
        let before = "extensions:\n  sessions:\n    cmd: /old # old\n    args:\n    - old\n    - mcp\n    timeout: 9\n  other:\n    enabled: false\n";
        let after = added_to(before).expect("edits");
        assert_eq!(
            after,
            "extensions:\n  sessions:\n    cmd: \"/opt/sessions\"\n    args: [\"mcp\"]\n    timeout: 9\n    enabled: true\n  other:\n    enabled: false\n"
        );
    }

    #[test]
    fn what_cannot_take_it_is_refused() {
        for text in [
            "extensions: {a: {enabled: true}}\n",
            "extensions: 3\n",
            "extensions:\n- a\n",
            "extensions:\n  - a\n",
            "extensions:\n  sessions: 3\n",
            "extensions:\n\tx: 3\n",
            "a: 1\n---\nb: 2\n",
        ] {
            assert!(added_to(text).is_err(), "{text}");
        }
    }
}
