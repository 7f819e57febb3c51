//! Finds secrets in settings as in dotenv files, printed environments and Dockerfiles:
//! `NAME=value`.
//!
//! Where two settings are together, the value of a name that sounds secret is masked even if it is
//! an ordinary word; `PORT=3000` stays. In a text that contains nothing but settings, random values
//! are masked under any name.

use memchr::{memchr, memchr_iter, memrchr};

use super::entropy::{is_mixed, is_name, is_placeholder, is_random, is_uuid};
use super::names::Strength;
use super::pattern::Pattern;
use super::scan::{Rank, Scan};

/// Longest line that counts as a setting, in bytes.
const MAX_LINE: usize = 2000;

/// Longest text before the name in bytes: the number of the line, the sign of a diff, `export`.
const MAX_LEAD: usize = 48;

/// Most comments and blank lines between two settings.
const MAX_GAP: usize = 40;

/// Values of settings that are not secrets, even under a name that sounds secret.
#[rustfmt::skip]
const SWITCHES: &[&str] = &[
    "true", "false", "yes", "no", "on", "off", "none", "null", "nil", "enabled", "disabled", "missing",
    "present", "unset", "configured", "required", "optional", "same-origin", "include", "omit",
];

/// A setting. The first line of a file that a call writes comes after the name of the argument.
static SETTING: Pattern = Pattern::new(
    r"[ \t]*(?:[a-z_]{1,24}:[ \t])?(?:[0-9]+(?:→|[\t:|])[ \t]?)?[+-]?[ \t]*(?:(?:export|ENV|ARG|set)[ \t]+)?([A-Z][A-Z0-9_]*)=",
);
/// An argument of a call, as the text of the call shows it.
static ARGUMENT: Pattern = Pattern::new(r"[a-z_]{1,24}:[ \t]");
static REMARK: Pattern = Pattern::new(r"[ \t]*(?:[0-9]+(?:→|[\t:|])[ \t]*)?[+-]?[ \t]*(?:#|\r?$)");

/// Returns start and length of the value of the setting whose name is from `start` to `end`, if it
/// is a setting and another one is next to it.
pub(super) fn value(scan: &Scan<'_>, start: usize, end: usize) -> Option<(usize, usize)> {
    let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let name = scan.slice(start, end);
    if scan.byte(end) != b'='
        || !name.bytes().all(is_upper)
        || !scan.byte(start).is_ascii_uppercase()
    {
        return None;
    }
    let (from, to) = line(scan, start)?;
    let lead = SETTING.at_start(scan.slice(from, to))?.get(1)?.start();
    if from + lead != start {
        return None;
    }
    let (value, length) = plain(scan.slice(end + 1, to))?;
    let value = end + 1 + value;
    has_neighbour(scan, from, to).then_some((value, value + length))
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
pub(super) fn whole(scan: &mut Scan<'_>) {
    if !may_have_settings(scan.bytes()) {
        return;
    }
    let mut found = Vec::new();
    let (mut start, mut settings) = (0, 0);
    while start < scan.len() {
        let Some(end) = line_end(scan.bytes(), start) else { return };
        let line = scan.slice(start, end);
        if let Some(name) = SETTING.at_start(line).and_then(|found| found.get(1)) {
            settings += 1;
            let from = name.end() + 1;
            if let Some((value, length)) = plain(line.get(from..).unwrap_or_default())
                && is_kept(name.as_str(), line.get(from + value..from + value + length))
            {
                found.push((start + from + value, length));
            }
        } else if line.starts_with("<system-reminder>") {
            // Claude Code appends this reminder to a file that it read.
            break;
        } else if REMARK.at_start(line).is_none()
            && (settings > 0 || ARGUMENT.at_start(line).is_none())
        {
            return;
        }
        start = end + 1;
    }
    if settings > 1 {
        found.iter().for_each(|(at, length)| scan.add(*at, at + length, "env_value", Rank::Named));
    }
}

/// Whether at least two names end before a `=`. Most texts have none and need no regex.
fn may_have_settings(text: &[u8]) -> bool {
    let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let before = |at: usize| at.checked_sub(1).and_then(|before| text.get(before));
    memchr_iter(b'=', text)
        .filter(|at| before(*at).is_some_and(|byte| is_name(*byte)))
        .nth(1)
        .is_some()
}

/// Whether the value is random and its name is not that of a public value.
fn is_kept(name: &str, value: Option<&str>) -> bool {
    let is_public = || name.split('_').any(|word| PUBLIC.contains(&word));
    value.is_some_and(|value| {
        is_random(value)
            && !is_uuid(value)
            && !is_placeholder(value)
            && !is_name(value)
            && !is_public()
    })
}

/// Whether the value of a setting whose name sounds secret is a secret.
pub(super) fn is_secret(value: &str, strength: Strength) -> bool {
    let password = strength == Strength::Password;
    let switch = SWITCHES.iter().any(|word| value.eq_ignore_ascii_case(word));
    if value.len() < 4
        || switch
        || is_placeholder(value)
        || is_name(value)
        || (!password && value.contains(|c: char| c.is_ascii_whitespace()))
    {
        return false;
    }
    match strength {
        Strength::Password => true,
        Strength::Secret => value.len() >= 6 && !value.bytes().all(|byte| byte.is_ascii_digit()),
        Strength::Weak => is_random(value) || (value.len() >= 8 && is_mixed(value, true)),
    }
}

/// Returns start and end of the line around a name that is near the beginning of the line.
fn line(scan: &Scan<'_>, name: usize) -> Option<(usize, usize)> {
    let bytes = scan.bytes();
    let lowest = name.saturating_sub(MAX_LEAD);
    let start = match memrchr(b'\n', bytes.get(lowest..name)?) {
        Some(at) => lowest + at + 1,
        None if lowest == 0 => 0,
        None => return None,
    };
    Some((start, line_end(bytes, start)?))
}

/// Returns the end of the line that begins at `start`, or `None` if the line is too long.
fn line_end(bytes: &[u8], start: usize) -> Option<usize> {
    let highest = bytes.len().min(start + MAX_LINE);
    match memchr(b'\n', bytes.get(start..highest)?) {
        Some(at) => Some(start + at),
        None => (highest == bytes.len()).then_some(highest),
    }
}

/// Returns the start of the line that ends at `end`, or `None` if the line is too long.
fn line_start(bytes: &[u8], end: usize) -> Option<usize> {
    let lowest = end.saturating_sub(MAX_LINE);
    match memrchr(b'\n', bytes.get(lowest..end)?) {
        Some(at) => Some(lowest + at + 1),
        None => (lowest == 0).then_some(0),
    }
}

/// Whether another setting is next to the line, with nothing but remarks between them.
fn has_neighbour(scan: &Scan<'_>, start: usize, end: usize) -> bool {
    let bytes = scan.bytes();
    let above = |from: usize| {
        let end = from.checked_sub(1)?;
        Some((line_start(bytes, end)?, end))
    };
    let below = |to: usize| {
        let start = (to < bytes.len()).then_some(to + 1)?;
        Some((start, line_end(bytes, start)?))
    };
    let meets_setting = |next: &dyn Fn(usize, usize) -> Option<(usize, usize)>| {
        let (mut from, mut to) = (start, end);
        for _ in 0..MAX_GAP {
            let Some((start, end)) = next(from, to) else { return false };
            (from, to) = (start, end);
            let line = scan.slice(from, to);
            if SETTING.at_start(line).is_some() {
                return true;
            }
            if REMARK.at_start(line).is_none() {
                return false;
            }
        }
        false
    };
    meets_setting(&|from, _| above(from)) || meets_setting(&|_, to| below(to))
}

/// Returns the offset of the value in the rest of a line, and its length. Returns `None` if the
/// rest contains more than a value and a comment.
fn plain(rest: &str) -> Option<(usize, usize)> {
    let rest = rest.trim_ascii_end();
    if let Some(quote) = rest.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        let (value, tail) = rest.get(1..)?.split_once(quote)?;
        let tail = tail.trim_ascii_start();
        return (tail.is_empty() || tail.starts_with('#')).then_some((1, value.len()));
    }
    let value = rest.split(" #").next().unwrap_or(rest).trim_ascii_end();
    let is_command = |c: char| c.is_ascii_whitespace() || "()`;|<>".contains(c);
    (!value.contains(is_command)).then_some((0, value.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting<'t>(text: &'t str, name: &str) -> Option<&'t str> {
        let scan = Scan::new(text);
        let at = text.find(name).expect("is there");
        value(&scan, at, at + name.len()).map(|(from, to)| scan.slice(from, to))
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
