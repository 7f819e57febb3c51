//! Finds secrets in settings as in dotenv files, printed environments and Dockerfiles:
//! `NAME=value`.
//!
//! Where two settings are together, the value of a name that sounds secret is masked even if it is
//! an ordinary word; `PORT=3000` stays. In a text that contains nothing but settings, random values
//! are masked under any name.

use std::iter::successors;
use std::ops::Range;

use memchr::{memchr, memchr_iter, memrchr};

use super::entropy::{is_mixed, is_name, is_placeholder, is_random};
use super::names::Strength;
use super::pattern::LazyRegex;
use super::scan::{SecretScan, is_variable_byte};
use crate::text::names::is_uuid;

/// Maximum length in bytes of a line that counts as a setting.
const MAX_LINE_BYTES: usize = 2000;

/// Maximum length in bytes of the text before the name: the number of the line, the sign of a diff,
/// `export`.
const MAX_LEAD_BYTES: usize = 48;

/// Maximum number of lines from a setting to the next one, with comments and blank lines between
/// them.
const MAX_DISTANCE_LINES: usize = 40;

/// Values of settings that are not secrets, even under a name that sounds secret.
#[rustfmt::skip]
const SWITCHES: &[&str] = &[
    "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "enabled", "disabled", "missing",
    "present", "unset", "configured", "required", "optional", "same-origin", "include", "omit",
];

/// A setting. The first line of a file that a call writes comes after the name of the argument.
pub(super) static SETTING: LazyRegex = LazyRegex::at_start(
    r"[ \t]*(?:[a-z_]{1,24}:[ \t])?(?:[0-9]+(?:→|[\t:|])[ \t]?)?[+-]?[ \t]*(?:(?:export|ENV|ARG|set|declare -x)[ \t]+)?([A-Z][A-Z0-9_]*)=",
);

/// An argument of a call, as the text of the call shows it.
static ARGUMENT: LazyRegex = LazyRegex::at_start(r"[a-z_]{1,24}:[ \t]");

/// A comment or a blank line.
static REMARK: LazyRegex =
    LazyRegex::at_start(r"[ \t]*(?:[0-9]+(?:→|[\t:|])[ \t]*)?[+-]?[ \t]*(?:#|\r?$)");

/// Returns start and end of the value of the setting whose name is from `start` to `end`, if it
/// is a setting and another one is next to it.
pub(super) fn setting_value(
    scan: &SecretScan<'_>,
    start: usize,
    end: usize,
) -> Option<(usize, usize)> {
    let name = scan.slice(start, end);
    if scan.byte(end) != b'='
        || !name.bytes().all(is_variable_byte)
        || !scan.byte(start).is_ascii_uppercase()
    {
        return None;
    }

    let line = line_around(scan, start)?;
    let lead = SETTING.captures(scan.slice(line.start, line.end))?.get(1)?.start();
    if line.start + lead != start {
        return None;
    }
    let (offset, length) = plain_value(scan.slice(end + 1, line.end))?;
    let value_start = end + 1 + offset;
    has_neighbour(scan, &line).then_some((value_start, value_start + length))
}

/// Words in the names of random values that are not secrets.
#[rustfmt::skip]
const PUBLIC: &[&str] = &[
    "SHA", "SHA1", "SHA256", "COMMIT", "REV", "REVISION", "HASH", "DIGEST", "CHECKSUM", "ETAG", "ID", "IDS", "SID",
    "UUID", "GUID", "VERSION", "BUILD", "TAG", "REF", "BRANCH", "PATH", "DIR", "HOME", "URL", "URI", "HOST",
    "HOSTNAME", "ENDPOINT", "DOMAIN", "NAME", "PUBLIC", "PUB", "PUBLISHABLE", "FINGERPRINT", "ADDRESS", "ARN",
    "BUCKET", "IMAGE", "SESSION", "PROFILE", "USER", "EMAIL", "OPTIONS", "OPTS", "FLAGS", "COLORS", "TIME", "DATE",
];

/// Masks the random values of a text that has at least two settings, and otherwise only remarks.
/// Other arguments of the call that writes the settings may come before them.
pub(super) fn mask_settings(scan: &mut SecretScan<'_>) {
    if !may_have_settings(scan.bytes()) {
        return;
    }
    // Start and length of each value.
    let mut found = Vec::new();
    let mut settings = 0;
    let mut start = 0;
    while start < scan.len() {
        let Some(end) = line_end(scan.bytes(), start) else { return };
        let line = scan.slice(start, end);
        if let Some(name) = SETTING.captures(line).and_then(|found| found.get(1)) {
            settings += 1;
            let after_sign = name.end() + 1;
            if let Some((value, length)) = plain_value(line.get(after_sign..).unwrap_or_default())
                && let Some(text) = line.get(after_sign + value..after_sign + value + length)
                && is_secret_setting(name.as_str(), text)
            {
                found.push((start + after_sign + value, length));
            }
        } else if line.starts_with("<system-reminder>") {
            // Claude Code appends this reminder to a file that it read.
            break;
        } else if REMARK.captures(line).is_none()
            && (settings > 0 || ARGUMENT.captures(line).is_none())
        {
            return;
        }
        start = end + 1;
    }

    if settings > 1 {
        for (at, length) in found {
            scan.add_secret(at, at + length);
        }
    }
}

/// Returns whether at least two names end before a `=`. Most texts have none and need no regex.
fn may_have_settings(text: &[u8]) -> bool {
    memchr_iter(b'=', text).filter(|at| *at > 0 && is_variable_byte(text[*at - 1])).nth(1).is_some()
}

/// Returns whether a value is random and its name is not that of a public value.
fn is_secret_setting(name: &str, value: &str) -> bool {
    is_random(value)
        && !is_uuid(value)
        && !is_placeholder(value)
        && !is_name(value)
        && !name.split('_').any(|word| PUBLIC.contains(&word))
}

/// Returns whether the value of a setting whose name sounds secret is a secret.
pub(super) fn is_secret(value: &str, strength: Strength) -> bool {
    if value.len() < 4
        || SWITCHES.iter().any(|word| value.eq_ignore_ascii_case(word))
        || is_placeholder(value)
        || is_name(value)
        || (strength != Strength::Password && value.contains(|c: char| c.is_ascii_whitespace()))
    {
        return false;
    }
    match strength {
        Strength::Password => true,
        Strength::Secret => value.len() >= 6 && !value.bytes().all(|byte| byte.is_ascii_digit()),
        Strength::Weak => is_random(value) || (value.len() >= 8 && is_mixed(value, true)),
    }
}

/// Returns the line around a name. `None` if the name is not near the beginning of the line, or if
/// the line is too long.
fn line_around(scan: &SecretScan<'_>, name: usize) -> Option<Range<usize>> {
    let bytes = scan.bytes();
    let lowest = name.saturating_sub(MAX_LEAD_BYTES);
    let start = match memrchr(b'\n', bytes.get(lowest..name)?) {
        Some(at) => lowest + at + 1,
        None if lowest == 0 => 0,
        None => return None,
    };
    Some(start..line_end(bytes, start)?)
}

/// Returns the end of the line that begins at `start`. `None` if the text ends before it, or if the
/// line is too long.
fn line_end(bytes: &[u8], start: usize) -> Option<usize> {
    let highest = bytes.len().min(start + MAX_LINE_BYTES);
    match memchr(b'\n', bytes.get(start..highest)?) {
        Some(at) => Some(start + at),
        None => (highest == bytes.len()).then_some(highest),
    }
}

/// Returns the start of the line that ends at `end`, or `None` if the line is too long.
fn line_start(bytes: &[u8], end: usize) -> Option<usize> {
    let lowest = end.saturating_sub(MAX_LINE_BYTES);
    match memrchr(b'\n', bytes.get(lowest..end)?) {
        Some(at) => Some(lowest + at + 1),
        None => (lowest == 0).then_some(0),
    }
}

/// Returns whether another setting is next to the line, with nothing but remarks between them.
fn has_neighbour(scan: &SecretScan<'_>, line: &Range<usize>) -> bool {
    let bytes = scan.bytes();
    let line_above = |below: &Range<usize>| {
        let end = below.start.checked_sub(1)?;
        Some(line_start(bytes, end)?..end)
    };
    let line_below = |above: &Range<usize>| {
        let start = above.end + 1;
        Some(start..line_end(bytes, start)?)
    };
    leads_to_setting(scan, successors(line_above(line), line_above))
        || leads_to_setting(scan, successors(line_below(line), line_below))
}

/// Returns whether one of the next lines is a setting, with nothing but comments and blank lines
/// before it.
fn leads_to_setting(scan: &SecretScan<'_>, lines: impl Iterator<Item = Range<usize>>) -> bool {
    for line in lines.take(MAX_DISTANCE_LINES) {
        let line = scan.slice(line.start, line.end);
        if SETTING.captures(line).is_some() {
            return true;
        }
        if REMARK.captures(line).is_none() {
            return false;
        }
    }
    false
}

/// Returns the offset of the value in the rest of a line, and its length. Returns `None` if the
/// rest contains more than a value and a comment.
fn plain_value(rest: &str) -> Option<(usize, usize)> {
    let rest = rest.trim_ascii_end();
    if let Some(quote @ ('"' | '\'')) = rest.chars().next() {
        let (value, tail) = rest.get(1..)?.split_once(quote)?;
        let tail = tail.trim_ascii_start();
        return (tail.is_empty() || tail.starts_with('#')).then_some((1, value.len()));
    }
    let value = rest.split(" #").next().unwrap_or(rest).trim_ascii_end();
    let has_more = value.contains(|c: char| c.is_ascii_whitespace() || "()`;|<>".contains(c));
    (!has_more).then_some((0, value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting<'t>(text: &'t str, name: &str) -> Option<&'t str> {
        let scan = SecretScan::new(text, |_| Vec::new());
        let at = text.find(name).expect("is there");
        setting_value(&scan, at, at + name.len()).map(|(from, to)| scan.slice(from, to))
    }

    #[test]
    fn settings_are_lines_that_stand_together() {
        assert_eq!(setting("A=1\nKEY=lantern\n", "KEY"), Some("lantern"));
        assert_eq!(setting("KEY='a b' # why\n\n# more\nexport B=\"x\"", "KEY"), Some("a b"));
        assert_eq!(setting("  1→A=1\n  2→KEY=lantern", "KEY"), Some("lantern"));
        assert_eq!(setting("file: /w/.env\ncontent: KEY=lantern\nB=1\n", "KEY"), Some("lantern"));
        assert_eq!(setting("new_string: 1\tKEY=lantern\n2\tB=1", "KEY"), Some("lantern"));
        assert_eq!(setting("KEY=lantern\n", "KEY"), None, "alone");
        assert_eq!(setting("text\nKEY=lantern\nmore text\nA=1", "KEY"), None, "among text");
        assert_eq!(setting("A=1\nKEY=lantern make all", "KEY"), None, "a command");
        assert_eq!(setting("A=1\nrun KEY=lantern", "KEY"), None, "an argument");
    }

    #[test]
    fn switches_and_paths_are_no_secrets() {
        for value in ["true", "changeme", "./key.pem", "/run/secret", "$OTHER", "abc"] {
            assert!(!is_secret(value, Strength::Password), "{value}");
        }
        assert!(is_secret("1234", Strength::Password));
        assert!(!is_secret("123456", Strength::Secret));
        assert!(is_secret("lantern", Strength::Secret));
        assert!(!is_secret("lantern", Strength::Weak));
    }
}
