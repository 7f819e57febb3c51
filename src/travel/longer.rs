//! Adds to a log what another machine has more of it.

/// The beginning of what replaces a secret.
const MASK: &str = "[REDACTED:";

/// Returns what `longer`, the log of the same session on another machine, has after the lines of `log`.
/// `None` if it does not begin with them, but for its masks: another log must never replace the one that is
/// here.
pub(super) fn find_rest<'l>(log: &[u8], longer: &'l [u8]) -> Option<&'l [u8]> {
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
