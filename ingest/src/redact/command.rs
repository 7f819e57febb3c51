//! Masks passwords on command lines that no name announces (`curl -u user:password`), the values that
//! commands store under a name (`kubectl create secret generic db --from-literal=password=...`), and
//! the answers of scripts as of `expect` and `pexpect`:
//!
//! ```text
//! expect "*assword:"
//! send "Quokka91!\r"
//! ```

use super::entropy::{is_password_sign, is_path, is_placeholder, is_random};
use super::env;
use super::names::{Strength, announced_secret};
use super::pattern::LazyRegex;
use super::rule::{PasswordPlace, Stored};
use super::scan::SecretScan;
use crate::text::names::is_uuid;

/// Number of bytes of a command that are examined.
const MAX_COMMAND_BYTES: usize = 1000;

/// Masks the password in the command that begins at `at`.
pub(super) fn mask_command_password(scan: &mut SecretScan<'_>, at: usize, place: &PasswordPlace) {
    if !matches!(scan.byte(at), b':' | b'.' | b'!' | b'|') && !scan.may_begin_token(at) {
        return;
    }
    let line = command_line(scan.text_from(at, MAX_COMMAND_BYTES));
    let Some(found) = place.pattern.captures(line) else { return };
    let Some(password) = found.get(1) else { return };

    let value = password.as_str();
    // `user:password`
    let word = value.rsplit_once(':').map_or(value, |(_, word)| word);
    if value.len() >= 4
        && !is_placeholder(value)
        && !is_placeholder(word)
        && !is_path(value)
        && !is_ports(value)
        && (!place.is_strict || may_be_password(word))
    {
        scan.add_secret(at + password.start(), at + password.end());
    }
}

/// Returns whether a value names ports: `-p 127.0.0.1:27017:27017/tcp` publishes those of a
/// container, and `-p 6379` is the port of a server.
fn is_ports(value: &str) -> bool {
    let plain = value.trim_end_matches("/tcp").trim_end_matches("/udp");
    let mut parts = plain.rsplit(':');
    if !parts.next().is_some_and(is_port) {
        return false;
    }
    let Some(before) = parts.next() else { return true };
    is_port(before) || before.contains('.') || parts.next().is_some()
}

fn is_port(part: &str) -> bool {
    (2..=5).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a value is neither a word of a text nor a flag nor a setting. It contains a
/// digit or a sign, and is not the name of a region with its number.
fn may_be_password(value: &str) -> bool {
    // Words of sentences, and options without the letter that was taken for the flag.
    let is_word =
        ["option", "flag", "rotocol", "rint-defaults"].iter().any(|word| value.starts_with(word));
    if is_word || value.starts_with('-') {
        return false;
    }

    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let is_name = value.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
    });
    let is_region = is_name && value.contains(['-', '_', '.']) && digits <= 2;
    !is_region && (digits > 0 || value.bytes().any(is_password_sign))
}

/// Returns the text up to the end of the line, and beyond it if a backslash continues the line. The
/// text ends before `&&` and `||`, because another command begins there.
fn command_line(text: &str) -> &str {
    let mut line = text;
    for at in memchr::memchr_iter(b'\n', text.as_bytes()) {
        let before = text.get(..at).unwrap_or_default();
        if !before.ends_with('\\') {
            line = before;
            break;
        }
    }
    let end = [" && ", " || "].iter().filter_map(|joint| line.find(joint)).min();
    line.get(..end.unwrap_or(line.len())).unwrap_or(line)
}

/// Number of bytes of a command with pairs that are examined.
const MAX_PAIRS_BYTES: usize = 2000;

/// A name and its value, which may be in quotes together.
static PAIR: LazyRegex = LazyRegex::anywhere(
    r#"(?x)[\s=](?:
            \\{0,3}"([A-Za-z][A-Za-z0-9_.-]{0,63})=([^"\\\n]+)
            | \\{0,3}'([A-Za-z][A-Za-z0-9_.-]{0,63})=([^'\\\n]+)
            | ([A-Za-z][A-Za-z0-9_.-]{0,63})=\\{0,3}(?:"([^"\\\n]+)|'([^'\\\n]+)|([^\s"'\\]+))
        )"#,
);

/// Names of values that a secret store keeps next to a secret.
#[rustfmt::skip]
const PUBLIC_NAMES: &[&str] = &[
    "user", "username", "login", "email", "host", "hostname", "port", "url", "uri", "endpoint", "region",
    "name", "database", "db", "dbname", "type", "version", "policy", "policies", "ttl", "path", "role",
    "env", "environment", "domain", "id", "account", "driver", "scheme", "server", "namespace",
];

/// Masks the secrets in the pairs of the command at `at`.
pub(super) fn mask_pairs(scan: &mut SecretScan<'_>, at: usize, stored: Stored) {
    if at < scan.pairs_end {
        return;
    }
    let line = command_line(scan.text_from(at, MAX_PAIRS_BYTES));
    let end = line.find(['|', ';', '&']).unwrap_or(line.len());
    let line = line.get(..end).unwrap_or_default();
    scan.pairs_end = at + line.len();
    for found in PAIR.captures_iter(line) {
        let groups = [(1, &[2][..]), (3, &[4]), (5, &[6, 7, 8])];
        for (name_group, value_groups) in groups {
            let Some(name) = found.get(name_group) else { continue };
            let value = value_groups.iter().find_map(|group| found.get(*group));
            let Some(value) = value else { continue };
            if let Some(kind) = secret_kind(name.as_str(), value.as_str(), stored) {
                scan.add_secret_of(at + value.start(), at + value.end(), kind);
            }
        }
    }
}

/// Returns the kind of the secret that a pair holds, or `None` if it holds none.
fn secret_kind(name: &str, value: &str, stored: Stored) -> Option<&'static str> {
    let announced = announced_secret(name);
    let kind = announced.map_or("secret", |(kind, _)| kind);
    let is_secret = if stored == Stored::Secrets {
        !is_public_name(name)
            && !value.starts_with(['@', '$'])
            && env::is_secret(value, Strength::Password)
    } else {
        match announced {
            Some((_, strength)) => !value.starts_with('$') && env::is_secret(value, strength),
            None => {
                is_random(value)
                    && !is_uuid(value)
                    && !is_public_name(name)
                    && env::is_secret(value, Strength::Secret)
            }
        }
    };
    is_secret.then_some(kind)
}

/// Returns whether the last word of a name is one of [`PUBLIC_NAMES`].
pub(super) fn is_public_name(name: &str) -> bool {
    let last = name.rsplit(['_', '-', '.']).next().unwrap_or(name).to_ascii_lowercase();
    PUBLIC_NAMES.contains(&last.as_str())
}

/// Maximum number of bytes from the question to its answer.
const MAX_QUESTION_BYTES: usize = 240;

/// The text that the script types, without the line break at its end.
static ANSWER: LazyRegex = LazyRegex::at_start(
    r#"send(?:line)?(?: -- |[ (])\\{0,3}["']([^\s"'\\$\[\]]{4,128})(?:\\{1,4}[rn])*\\{0,3}["']"#,
);

/// Masks the text that the `send` at `at` types if the question before it asks for a password.
pub(super) fn mask_typed_password(scan: &mut SecretScan<'_>, at: usize) {
    let before = scan.text_before(at, MAX_QUESTION_BYTES);
    let Some(question) = before.rfind("expect").and_then(|expect_at| before.get(expect_at..))
    else {
        return;
    };
    let question = question.to_ascii_lowercase();
    // If another `send` is between, that one answered the question.
    let is_for_password = !question.contains("send")
        && ["assword", "assphrase", "asscode"].iter().any(|word| question.contains(word));
    if !is_for_password {
        return;
    }

    let Some(found) = ANSWER.captures(scan.text_from(at, 160)) else { return };
    let Some(answer) = found.get(1) else { return };
    if !is_placeholder(answer.as_str()) {
        scan.add_secret(at + answer.start(), at + answer.end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_ends_with_its_line() {
        assert_eq!(command_line("curl \\\n -u a:b\nnext"), "curl \\\n -u a:b");
        assert_eq!(command_line("curl"), "curl");
        assert_eq!(command_line("curl 'x&y' && docker run --user a:b"), "curl 'x&y'");
    }
}
