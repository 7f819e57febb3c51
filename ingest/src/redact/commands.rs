//! Passwords on command lines that no name announces: `curl -u user:password`, `sshpass -p ...`.

use super::entropy::{is_path, is_placeholder};
use super::pattern::Pattern;
use super::scan::{Rank, Scan};

/// Longest command looked at.
const MAX_COMMAND: usize = 1000;

/// A command that may hold a password: the anchor it begins with, and a regex over the command
/// whose group is the password.
pub(super) struct Command {
    pub(super) anchor: &'static str,
    pub(super) kind: &'static str,
    pub(super) source: &'static str,
    pattern: Pattern,
}

const fn command(anchor: &'static str, kind: &'static str, source: &'static str) -> Command {
    Command { anchor, kind, source, pattern: Pattern::new(source) }
}

/// What reads a password from another command's output.
macro_rules! piped {
    ($says:literal) => {
        concat!(
            $says,
            r#"\\{0,3}["']?([^\s"'|\\]+)\\{0,3}["']?\s*\|\s*(?:sudo\s(?:[^|]*?\s)?-[A-Za-z]*S\b|(?:docker|podman|helm registry|gh auth|glab auth) login|gh secret set|(?:sudo )?chpasswd|wrangler secret put|vercel env add|kubeseal)"#
        )
    };
}

/// Every command.
#[rustfmt::skip]
pub(super) static COMMANDS: [Command; 18] = [
    command("curl", "basic_auth", r#"(?s)curl\s(?:.*?\s)?(?:-[a-zA-Z]{0,4}u\s*|--(?:proxy-)?user[ =])\\{0,3}["']?[^\s:"'\\$]+:([^\s"'\\]+)"#),
    command("sshpass", "password", r#"sshpass\s+-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    command("mysql", "password", r#"(?s)mysql(?:dump|admin|import)?\s[^|;&]*?\s-p\\{0,3}["']?([^\s"'\\]+)"#),
    command("mariadb", "password", r#"(?s)mariadb(?:-dump|-admin|-import)?\s[^|;&]*?\s-p\\{0,3}["']?([^\s"'\\]+)"#),
    command("mongo", "password", r#"(?s)mongo(?:sh|dump|restore|import|export|stat)?\s[^|;&]*?\s-p\s*\\{0,3}["']?([^\s"'\\]+)"#),
    command("docker login", "password", r#"(?s)docker login\s[^|;&]*?\s(?:-p\s*|--password[ =])\\{0,3}["']?([^\s"'\\]+)"#),
    command("podman login", "password", r#"(?s)podman login\s[^|;&]*?\s(?:-p\s*|--password[ =])\\{0,3}["']?([^\s"'\\]+)"#),
    command("registry login", "password", r#"(?s)registry login\s[^|;&]*?\s(?:-p\s*|--password[ =])\\{0,3}["']?([^\s"'\\]+)"#),
    command("redis-cli", "password", r#"(?s)redis-cli\s[^|;&]*?\s(?:-a\s*|--pass\s+)\\{0,3}["']?([^\s"'\\]+)"#),
    command("ldapsearch", "password", r#"(?s)ldapsearch\s[^|;&]*?\s-w\s*\\{0,3}["']?([^\s"'\\]+)"#),
    command("openssl", "password", r#"(?s)openssl\s[^|;&]*?\s-pass(?:in|out)?\s+\\{0,3}["']?pass:([^\s"'\\]+)"#),
    command("keytool", "password", r#"(?s)keytool\s[^|;&]*?\s-(?:dest|src)?(?:store|key)pass\s+\\{0,3}["']?([^\s"'\\]+)"#),
    command("htpasswd", "password", r#"htpasswd\s+-[a-zA-Z]*b[a-zA-Z]*\s+\S+\s+\S+\s+\\{0,3}["']?([^\s"'\\]+)"#),
    command("smbclient", "password", r#"(?s)smbclient\s[^|;&]*?\s-U\s*\\{0,3}["']?[^\s"'\\%]+%([^\s"'\\]+)"#),
    command("machine ", "password", r"machine\s+\S*\.\S+\s+login\s+\S+\s+password\s+(\S+)"),
    command(":5432:", "password", r":5432:[^:\s]+:[^:\s]+:([^:\s]+)"),
    command("echo", "password", piped!(r"echo\s+(?:-n\s+)?")),
    command("printf", "password", piped!(r#"printf\s+(?:\\{0,3}["']?%s(?:\\{1,3}n)?\\{0,3}["']?\s+)?"#)),
];

/// Masks the password in the command that begins at `at`.
pub(super) fn find(scan: &mut Scan<'_>, at: usize, command: &Command) {
    if !command.anchor.starts_with(':') && !scan.begins_word(at) {
        return;
    }
    let line = command_line(scan.window(at, MAX_COMMAND));
    let found = command.pattern.at_start(line);
    let Some(password) = found.and_then(|found| found.get(1)) else { return };
    let value = password.as_str();
    if value.len() >= 4 && !is_placeholder(value) && !is_path(value) && !is_ports(value) {
        scan.add(at + password.start(), at + password.end(), command.kind, Rank::Around);
    }
}

/// `-p 27017:27017`: what a container publishes.
fn is_ports(value: &str) -> bool {
    value.contains(':')
        && value.bytes().all(|byte| byte.is_ascii_digit() || b":./-".contains(&byte))
}

/// The text up to the end of the line, and over it where a backslash continues the line. Behind
/// `&&` and `||` another command begins.
fn command_line(text: &str) -> &str {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes());
    let end = ends.map(|at| text.get(..at).unwrap_or_default()).find(|line| !line.ends_with('\\'));
    let line = end.unwrap_or(text);
    let joints = [" && ", " || "].iter().filter_map(|joint| line.find(joint));
    line.get(..joints.min().unwrap_or(line.len())).unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_a_regex_with_a_group() {
        for command in &COMMANDS {
            let regex = regex::Regex::new(command.source).expect(command.anchor);
            assert_eq!(regex.captures_len(), 2, "{}", command.anchor);
        }
    }

    #[test]
    fn a_command_ends_with_its_line() {
        assert_eq!(command_line("curl \\\n -u a:b\nnext"), "curl \\\n -u a:b");
        assert_eq!(command_line("curl"), "curl");
        assert_eq!(command_line("curl 'x&y' && docker run --user a:b"), "curl 'x&y'");
    }
}
