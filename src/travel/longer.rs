//! Adds to a log what another machine has more of it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// The beginning of what replaces a secret.
const MASK: &str = "[REDACTED:";

/// The field of a document with the records.
const RECORDS: &str = "messages";

/// Returns a log with what `longer`, the log of the same session on another machine, has more of it. `None` if
/// that does not begin like the log, but for its masks: another log must never replace the one that is here.
pub(super) fn extend(log: &[u8], longer: &[u8], has_lines: bool) -> Option<Vec<u8>> {
    if has_lines {
        return find_rest(log, longer).map(|rest| [log, rest].concat());
    }
    extend_document(str::from_utf8(log).ok()?, str::from_utf8(longer).ok()?).map(String::into_bytes)
}

/// Returns the longer document with the bytes of `document` wherever both have the same, but for its masks.
fn extend_document(document: &str, longer: &str) -> Option<String> {
    let own: BTreeMap<&str, &RawValue> = serde_json::from_str(document).ok()?;
    let fields: BTreeMap<&str, &RawValue> = serde_json::from_str(longer).ok()?;
    if !own.contains_key(RECORDS) || own.keys().any(|name| !fields.contains_key(name)) {
        return None;
    }
    let mut replaced: Vec<(&str, &str)> = Vec::new();
    for (name, other) in &fields {
        let Some(value) = own.get(name) else { continue };
        if *name == RECORDS {
            let own: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            let others: Vec<&RawValue> = serde_json::from_str(other.get()).ok()?;
            let is_longer = others.len() >= own.len();
            let pairs = || own.iter().zip(&others).map(|(own, other)| (own.get(), other.get()));
            if !is_longer || pairs().any(|(own, other)| !is_same(own, other)) {
                return None;
            }
            replaced.extend(pairs());
        } else if is_same(value.get(), other.get()) {
            replaced.push((value.get(), other.get()));
        }
    }
    // Each value is a part of the longer document, whose place its address says.
    let place = |part: &str| part.as_ptr().addr() - longer.as_ptr().addr();
    replaced.sort_by_key(|(_, other)| place(other));
    let mut extended = String::with_capacity(longer.len());
    let mut copied_end = 0;
    for (own, other) in replaced {
        let start = place(other);
        extended.push_str(&longer[copied_end..start]);
        extended.push_str(own);
        copied_end = start + other.len();
    }
    extended.push_str(&longer[copied_end..]);
    Some(extended)
}

fn is_same(own: &str, other: &str) -> bool {
    is_same_line(own.as_bytes(), other.as_bytes())
}

/// Returns what the longer log has after the lines of `log`. `None` if it does not begin with them, but for
/// its masks.
fn find_rest<'l>(log: &[u8], longer: &'l [u8]) -> Option<&'l [u8]> {
    let mut lines = longer.split_inclusive(|byte| *byte == b'\n');
    let mut end = 0;
    for line in log.split_inclusive(|byte| *byte == b'\n') {
        let other = lines.next()?;
        if !line.ends_with(b"\n") || !is_same_line(line, other) {
            return None;
        }
        end += other.len();
    }
    Some(&longer[end..])
}

/// Returns whether a line is another one with some of its secrets masked.
fn is_same_line(line: &[u8], masked: &[u8]) -> bool {
    if line == masked {
        return true;
    }
    let (Ok(line), Ok(masked)) = (std::str::from_utf8(line), std::str::from_utf8(masked)) else {
        return false;
    };
    let mut rest = line;
    let mut parts = masked.split(MASK);
    let Some(after) = parts.next().and_then(|first| rest.strip_prefix(first)) else {
        return false;
    };
    rest = after;
    let mut is_at_end = rest.is_empty();
    for part in parts {
        let Some((_, text)) = part.split_once(']') else { return false };
        let Some(at) = rest.find(text) else { return false };
        rest = &rest[at + text.len()..];
        is_at_end = text.is_empty() || rest.is_empty();
    }
    is_at_end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_log_that_begins_like_this_one_has_more_of_it() {
        let log = b"{\"a\":\"key kJ8d\"}\n{\"b\":1}\n";
        let longer = b"{\"a\":\"key [REDACTED:token]\"}\n{\"b\":1}\n{\"c\":2}\n";
        assert_eq!(find_rest(log, longer), Some(&b"{\"c\":2}\n"[..]));
        assert_eq!(find_rest(log, log), Some(&b""[..]));
        for log in
            [&b"{\"a\":\"other\"}\n{\"b\":1}\n"[..], b"{\"a\":\"key kJ8d\"}\n{\"b\":1", b"x\n"]
        {
            assert_eq!(find_rest(log, longer), None);
        }
    }

    #[test]
    fn a_document_gets_the_records_that_it_lacks_and_keeps_its_own_bytes() {
        let own = r#"{"id":"x", "title":"key kJ8d","v":2,"messages":[{"a":"key kJ8d"},
            {"b":1} ],"env":{"a":1}}"#;
        let longer = r#"{"id":"x", "title":"key [REDACTED:token]","v":3,"messages":[{"a":"key [REDACTED:token]"},
            {"b":1}, {"c":2}],"env":{"a":1},"new":[]}"#;
        let wanted = r#"{"id":"x", "title":"key kJ8d","v":3,"messages":[{"a":"key kJ8d"},
            {"b":1}, {"c":2}],"env":{"a":1},"new":[]}"#;
        let extend = |own: &str, longer: &str| extend(own.as_bytes(), longer.as_bytes(), false);
        assert_eq!(extend(own, longer).as_deref(), Some(wanted.as_bytes()));
        assert_eq!(extend(own, own).as_deref(), Some(own.as_bytes()));
        for (own, longer) in [
            (longer, own),
            (r#"{"messages":[{"a":1}]}"#, r#"{"messages":[{"a":2},{"b":1}]}"#),
            (r#"{"messages":[],"x":1}"#, r#"{"messages":[{"a":2}]}"#),
            (r#"{"x":1}"#, r#"{"x":1,"messages":[]}"#),
            ("[]", "[]"),
            (r#"{"messages":[]}"#, "x"),
        ] {
            assert_eq!(extend(own, longer), None, "{own} {longer}");
        }
    }

    #[test]
    fn masks_stand_for_secrets_only() {
        for (line, masked, wanted) in [
            ("a s3cret b\n", "a [REDACTED:x] b\n", true),
            ("s1 and s2\n", "[REDACTED:x] and [REDACTED:y]\n", true),
            ("a s3cret c\n", "a [REDACTED:x] b\n", false),
            ("b s3cret b\n", "a [REDACTED:x] b\n", false),
            ("a b\n", "a b \n", false),
            ("a [REDACTED:x\n", "a [REDACTED:x\n", true),
            ("a\n", "a [REDACTED:x\n", false),
        ] {
            assert_eq!(is_same_line(line.as_bytes(), masked.as_bytes()), wanted, "{line} {masked}");
        }
    }
}
