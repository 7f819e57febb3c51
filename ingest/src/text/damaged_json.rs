//! Reads the valid parts of JSON that has errors or is cut.

use serde::de::IgnoredAny;

/// Maximum number of nested values in which an error is looked for.
const MAX_REPAIRED_DEPTH: usize = 24;

/// Returns the JSON without the parts that are not: a field whose value is not JSON becomes null, and
/// an element of a list is left out. What is left out is added to `bad`. `None` if nothing is left.
pub(crate) fn repair_json<'a>(text: &'a str, bad: &mut Vec<&'a str>) -> Option<String> {
    repair_value(text.trim(), MAX_REPAIRED_DEPTH, bad)
}

fn repair_value<'a>(text: &'a str, depth: usize, bad: &mut Vec<&'a str>) -> Option<String> {
    if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return Some(text.to_owned());
    }
    let mut parts = Vec::new();
    match text.as_bytes().first().filter(|_| depth > 0) {
        Some(b'{') => {
            for member in members(text) {
                let Some((key, value)) = split_field(member) else {
                    bad.push(member);
                    continue;
                };
                let value =
                    repair_value(value, depth - 1, bad).unwrap_or_else(|| "null".to_owned());
                parts.push(format!("{}:{value}", serde_json::Value::from(key)));
            }
            Some(format!("{{{}}}", parts.join(",")))
        }
        Some(b'[') => {
            parts.extend(members(text).filter_map(|element| repair_value(element, depth - 1, bad)));
            Some(format!("[{}]", parts.join(",")))
        }
        _ => {
            bad.push(text);
            None
        }
    }
}

/// Returns the fields of an object or the elements of a list, as they are between the commas. The last
/// one of a text that is cut may be cut, too.
pub(crate) fn members(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.trim_start().strip_prefix(['{', '[']).unwrap_or("");
    let next = move || {
        if rest.is_empty() {
            return None;
        }
        let end = end_of_member(rest.as_bytes());
        let member = rest[..end].trim();
        let is_last = !rest[end..].starts_with(',');
        rest = if is_last { "" } else { &rest[end + 1..] };
        Some(member)
    };
    std::iter::from_fn(next).filter(|member| !member.is_empty())
}

/// Returns where a field or an element ends: at a comma, at the bracket around it, or with the text.
fn end_of_member(text: &[u8]) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at += string_length(&text[at..]) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' | b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    text.len()
}

/// Returns the length of the string at the beginning of a text, with its quotes.
fn string_length(text: &[u8]) -> usize {
    let mut at = 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        if text[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    text.len()
}

/// Splits a field into its name and the text of its value. `None` if it has no name.
pub(crate) fn split_field(member: &str) -> Option<(String, &str)> {
    let mut names = serde_json::Deserializer::from_str(member).into_iter::<String>();
    let name = names.next()?.ok()?;
    let value = member[names.byte_offset()..].trim_start().strip_prefix(':')?;
    Some((name, value.trim_start()))
}

/// Returns the text of a field of an object, however deep that is nested.
pub(crate) fn field_text<'a>(object: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = members(object).filter_map(split_field);
    fields.find_map(|(key, value)| (key == name).then_some(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn repair(text: &str) -> (Option<String>, Vec<&str>) {
        let mut bad = Vec::new();
        (repair_json(text, &mut bad), bad)
    }

    #[test]
    fn only_what_is_no_json_is_left_out() {
        for (text, want, left_out) in [
            (r#"{"a":NaN,"b":[1,x,"},\"{",{}]}"#, r#"{"a":null,"b":[1,"},\"{",{}]}"#, "NaN x"),
            (
                r#"{"a": {"b": "\x", "c": 1}, d: 2, "e": 3}"#,
                r#"{"a":{"b":null,"c":1},"e":3}"#,
                r#""\x" d: 2"#,
            ),
            (r#"[{"a":1,},{"b":2}"#, r#"[{"a":1},{"b":2}]"#, ""),
            (r#"{"a":{"b":[1,2,"cu"#, r#"{"a":{"b":[1,2]}}"#, r#""cu"#),
            (r#"{"a":1,"b"#, r#"{"a":1}"#, r#""b"#),
        ] {
            let (repaired, bad) = repair(text);
            assert_eq!(repaired.as_deref(), Some(want));
            assert_eq!(bad.join(" "), left_out, "{text}");
        }
        assert_eq!(repair("x"), (None, vec!["x"]));
    }

    proptest! {
        #[test]
        fn any_text_gives_json_or_nothing(text in "[\\[\\]{}\"\\\\a,:é1 ]{0,24}") {
            if let (Some(repaired), _) = repair(&text) {
                prop_assert!(serde_json::from_str::<IgnoredAny>(&repaired).is_ok(), "{}", repaired);
            }
        }
    }
}
