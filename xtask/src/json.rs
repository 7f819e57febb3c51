//! Reads single strings from JSON text, which is all that xtask needs.

/// Returns the first string that is the value of `key`, or `None` if there is none. A string that
/// contains an escape other than that of a quote, a slash or a backslash is skipped.
pub(crate) fn find_string(text: &str, key: &str) -> Option<String> {
    let quoted = format!("\"{key}\"");
    text.match_indices(&quoted).find_map(|(at, _)| {
        let value = text[at + quoted.len()..].trim_start().strip_prefix(':')?;
        parse_string(value.trim_start().strip_prefix('"')?)
    })
}

fn parse_string(text: &str) -> Option<String> {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some(value),
            '\\' => match chars.next()? {
                escaped @ ('"' | '\\' | '/') => value.push(escaped),
                _ => return None,
            },
            plain => value.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_string_value_is_found() {
        let text =
            r#"{"a": "session_id", "session_id": null, "session_id" : "b1", "session_id":"b2"}"#;
        assert_eq!(find_string(text, "session_id").as_deref(), Some("b1"));
        assert_eq!(find_string(text, "b1"), None);
    }

    #[test]
    fn paths_are_unescaped() {
        let text = r#"{"executable":"C:\\x\\\"y\".exe","fresh":true}"#;
        assert_eq!(find_string(text, "executable").as_deref(), Some(r#"C:\x\"y".exe"#));
        assert_eq!(find_string(r#"{"executable":"cut"#, "executable"), None);
    }
}
