//! Masks values under a name: `API_KEY=...`, `"password": "..."`, `--token ...`,
//! `<secret>...</secret>`, in any quoting and escaping.

use super::encoded::is_encoded_login;
use super::entropy::{
    is_field, is_mixed, is_name, is_numbered, is_placeholder, is_random, is_signed,
};
use super::env;
use super::names::{FOREIGN, Strength, announced_secret};
use super::pattern::ends_with_any;
use super::phrases::{is_name_of_secret, is_of_sentence, is_word_phrase};
use super::scan::{MASK, SecretScan, is_blank, is_name_byte, is_quote, is_variable_byte};
use super::value::{
    MAX_BETWEEN_BYTES, MAX_NAME_BYTES, ValueLink, ValueSpan, find_linked_value, read_value,
};
use crate::text::names::is_uuid;

/// Minimum number of characters in a random value under any variable whose name ends in `_KEY`.
const MIN_WEAK_KEY_CHARS: usize = 24;

/// Maximum number of bytes from the beginning of an entry of a `.netrc` to the name of its
/// password.
const MAX_NETRC_BYTES: usize = 160;

/// Maximum number of values of one list that are masked.
const MAX_LISTED_VALUES: usize = 64;

/// Returns start and end of the name around `at`, where a word that announces a secret was found.
/// Returns `None` if the name was returned before.
pub(super) fn find_name(scan: &mut SecretScan<'_>, at: usize) -> Option<(usize, usize)> {
    let word_start = if is_quote(scan.byte(at)) { at + 1 } else { at };
    let foreign = FOREIGN.iter().find(|word| scan.has_text_at(word_start, word));
    let (start, word_end) = match foreign {
        Some(word) => (word_start, word_start + word.len()),
        None => name_around(scan, word_start),
    };
    let end = extended_name_end(scan, word_end);
    // A name may contain several such words.
    if end <= scan.name_end {
        return None;
    }
    scan.name_end = end;
    // The kind in a placeholder is not a name, or every `[REDACTED:token] = x` would begin a chain.
    (!scan.has_text_before(start, MASK)).then_some((start, end))
}

/// Masks the value of the name from `start` to `end`.
pub(super) fn mask_named_value(scan: &mut SecretScan<'_>, start: usize, end: usize) {
    let Some((value_start, link)) = find_linked_value(scan, start, end) else { return };
    let name = scan.slice(start, end);
    if link == ValueLink::Below {
        return mask_listed_values(scan, value_start, name);
    }
    let is_flag = scan.has_text_before(start, "--");
    let announced = match announced_secret(name) {
        None if link == ValueLink::Set && is_password_place(scan, start, end, value_start) => {
            let is_word = is_flag || is_read_by_program(scan, start, end, false);
            Some(("password", if is_word { Strength::Password } else { Strength::Secret }))
        }
        announced => announced,
    };
    let Some((kind, strength)) = announced else { return };

    if let Some((setting_start, setting_end)) = env::setting_value(scan, start, end) {
        let text = scan.slice(setting_start, setting_end);
        if env::is_secret(text, strength) && !is_name_of_secret(text, name, strength, false) {
            scan.add_secret_of(setting_start, setting_end, kind);
        }
        return;
    }

    let in_query = matches!(scan.byte_before(start), b'?' | b'&');
    let Some(value) = read_value(scan, value_start, link, in_query) else { return };
    if matches!(link, ValueLink::Argument | ValueLink::Call) && !value.is_quoted {
        return;
    }
    let is_upper_case = name.bytes().all(is_variable_byte);
    let candidate = NamedValue {
        name,
        start,
        end,
        kind,
        strength,
        link,
        value_start,
        is_flag,
        is_upper_case,
        value,
    };
    if candidate.is_secret(scan) {
        scan.add_secret_of(candidate.value.start, candidate.value.end, kind);
    }
}

/// A value under a name that announces a secret.
struct NamedValue<'a> {
    name: &'a str,
    /// Where the name begins.
    start: usize,
    /// Where the name ends.
    end: usize,
    /// The kind of secret that the name announces.
    kind: &'static str,
    /// How strongly the name announces it.
    strength: Strength,
    link: ValueLink,
    /// Where the value begins, with its quotes.
    value_start: usize,
    /// Whether the name is a flag of a command line: `--token`.
    is_flag: bool,
    /// Whether the name is written as that of an environment variable: `API_KEY`.
    is_upper_case: bool,
    value: ValueSpan,
}

impl NamedValue<'_> {
    /// Returns whether the value is a secret, judged by its shape, its name and its place.
    fn is_secret(&self, scan: &SecretScan<'_>) -> bool {
        let text = scan.slice(self.value.start, self.value.end);
        if self.is_plain(scan, text)
            || is_name_of_secret(text, self.name, self.strength, !self.is_upper_case)
        {
            return false;
        }
        if self.value.is_quoted && self.is_passphrase(scan, text) {
            return true;
        }
        if self.kind == "basic_auth" {
            return (self.value.is_quoted || self.name.starts_with('_'))
                && text.len() >= 12
                && is_encoded_login(text);
        }

        // Keys of some services are UUIDs.
        let may_be_uuid = is_uuid(text)
            && (self.kind == "heroku_key" || may_be_uuid(self.name, self.is_upper_case));
        let is_quoted = self.value.is_quoted;
        let strength =
            if self.link == ValueLink::Command { Strength::Secret } else { self.strength };
        if is_secret(text, strength, is_quoted, may_be_uuid) {
            return true;
        }
        match strength {
            Strength::Password => self.is_password(scan, text),
            Strength::Secret => false,
            Strength::Weak => {
                (self.is_variable(scan) || self.is_upper_case && is_quoted)
                    && text.len() >= MIN_WEAK_KEY_CHARS
                    && is_secret(text, Strength::Secret, is_quoted, may_be_uuid)
            }
        }
    }

    /// Returns whether the value is an ordinary word, given the way it follows its name.
    fn is_plain(&self, scan: &SecretScan<'_>, text: &str) -> bool {
        match self.link {
            ValueLink::Prose => is_of_sentence(text),
            ValueLink::Call => !is_signed(text) && !is_random(text),
            ValueLink::Bare => {
                let is_likely_secret = is_signed(text)
                    || is_drawn(text)
                    || is_netrc(scan, self.start)
                    || is_vault_row(scan, self.start);
                // `#` begins the number of an issue.
                !is_likely_secret || is_of_sentence(text) || text.starts_with('#')
            }
            ValueLink::Set
            | ValueLink::Variable
            | ValueLink::Argument
            | ValueLink::Element
            | ValueLink::Command
            | ValueLink::Below => false,
        }
    }

    /// Returns whether the value is a passphrase of several words.
    fn is_passphrase(&self, scan: &SecretScan<'_>, text: &str) -> bool {
        if self.strength == Strength::Password && self.is_variable(scan) {
            return is_word_phrase(&text.to_ascii_lowercase());
        }
        self.link == ValueLink::Set
            && self.name.to_ascii_lowercase().ends_with("phrase")
            && is_word_phrase(text)
    }

    /// Returns whether the value is a password that does not look random.
    fn is_password(&self, scan: &SecretScan<'_>, text: &str) -> bool {
        let is_variable = self.is_variable(scan);
        let may_be_numbered = self.value.is_quoted
            || is_variable
            || self.is_flag
            || self.link == ValueLink::Prose
            || is_yaml_line(scan, self.start, self.end, self.value.end);
        if may_be_numbered && is_numbered(text) && !is_placeholder(text) {
            return true;
        }

        // `POSTGRES_PASSWORD: barnacle`
        let is_setting = self.is_upper_case && scan.has_text_at(self.end, ": ");
        if (is_variable || is_setting) && is_assigned_word(scan, self.start, is_variable, text) {
            return true;
        }
        is_read_by_program(scan, self.start, self.end, self.is_flag) && may_be_plain_password(text)
    }

    /// Returns whether the name is a variable that is set: `PGPASSWORD=tundra109 psql`.
    fn is_variable(&self, scan: &SecretScan<'_>) -> bool {
        self.is_upper_case && self.value_start == self.end + 1 && scan.byte(self.end) == b'='
    }
}

/// Returns whether `pass` or `pw` is in a place where it means a password and not a test that
/// passed: a flag, a value in quotes, or a pair after the name of a user.
fn is_password_place(scan: &SecretScan<'_>, start: usize, end: usize, value_start: usize) -> bool {
    if !matches!(scan.slice(start, end), "pass" | "pw") {
        return false;
    }
    let is_flag = scan.has_text_before(start, "--");
    let quote = scan.skip_while(value_start, 3, |byte| byte == b'\\');
    is_flag || is_quote(scan.byte(quote)) || is_read_by_program(scan, start, end, false)
}

/// Returns whether a UUID under such a name is a key: `EXA_API_KEY`, `client_secret`,
/// `RAILWAY_TOKEN`.
fn may_be_uuid(name: &str, is_upper_case: bool) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    ends_with_any(&plain.to_ascii_lowercase(), &["apikey", "clientsecret", "secretkey"])
        || name.to_ascii_lowercase().ends_with("_authtoken")
        || is_upper_case && name.ends_with("_TOKEN")
}

/// Returns whether a variable is given a word as its password: `PGPASSWORD=barnacle psql`, and in
/// YAML. `is_set` is false in YAML.
fn is_assigned_word(scan: &SecretScan<'_>, start: usize, is_set: bool, word: &str) -> bool {
    const LEADS: &[&str] = &[
        "export ", "-e ", "-e \"", "-e '", "--env ", "ENV ", ": ", "&& ", "; ", "|| ", "sudo ",
        "env ",
    ];
    let line = if is_set { start } else { scan.run_start(start, MAX_BETWEEN_BYTES, is_blank) };
    let is_line_start = line == 0 || scan.byte_before(line) == b'\n';
    (is_line_start || is_set && LEADS.iter().any(|lead| scan.has_text_before(start, lead)))
        && may_be_plain_password(word)
}

/// Returns whether `name: value` is a line of YAML. The value ends at `value_end`.
fn is_yaml_line(
    scan: &SecretScan<'_>,
    name_start: usize,
    name_end: usize,
    value_end: usize,
) -> bool {
    let before = scan.text_before(name_start, MAX_BETWEEN_BYTES);
    let indent = before.rsplit('\n').next().unwrap_or_default();
    scan.has_text_at(name_end, ": ")
        && indent.bytes().all(|byte| is_blank(byte) || byte == b'-')
        && (value_end == scan.len() || matches!(scan.byte(value_end), b'\n' | b'\r'))
}

/// Returns whether a value can be a password that is a plain word.
fn may_be_plain_password(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_graphic())
        && !is_field(value)
        && env::is_secret(value, Strength::Password)
}

/// Returns whether `name=` is in a place where a program reads it: in `--password=barnacle`, or
/// after another pair of a form or of a connection (`User Id=mira;Password=barnacle`,
/// `user=mira password=barnacle`).
fn is_read_by_program(scan: &SecretScan<'_>, start: usize, end: usize, is_flag: bool) -> bool {
    if scan.byte(end) != b'=' || is_blank(scan.byte(end + 1)) {
        return false;
    }
    if is_flag {
        return true;
    }

    let before = scan.text_before(start, MAX_BETWEEN_BYTES);
    let Some(separator @ (b'&' | b';' | b' ' | b',')) = before.as_bytes().last().copied() else {
        return false;
    };
    // Query strings of pages, and lists, also pass other things under such a name.
    let needs_user = matches!(separator, b'&' | b',');
    let separator = char::from(separator);
    let ends_pair = |c| c == separator || matches!(c, '\'' | '"') || separator == ',' && c == ' ';
    let pair = before.trim_end_matches(separator).rsplit(ends_pair).next();
    let Some((name, value)) = pair.and_then(|pair| pair.split_once('=')) else { return false };
    let name = name.to_ascii_lowercase();
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_. -".contains(&byte))
        && !value.is_empty()
        && !value.ends_with(',')
        && (!needs_user || ends_with_any(&name, &["user", "login", "mail", "name"]))
}

/// Returns whether a value of twenty or more characters is drawn from all letters and digits.
/// Neither words of a sentence nor digests are.
fn is_drawn(value: &str) -> bool {
    value.len() >= 20
        && value.bytes().any(|byte| byte.is_ascii_uppercase())
        && value.bytes().any(|byte| byte.is_ascii_lowercase())
        && value.bytes().any(|byte| byte.is_ascii_digit())
        && is_random(value)
}

/// Maximum number of bytes from the head of a table of Vault to one of its rows.
const MAX_TABLE_BYTES: usize = 1000;

/// Returns whether the name begins a row of a table as `vault kv get` prints it.
fn is_vault_row(scan: &SecretScan<'_>, start: usize) -> bool {
    let is_line_start = start == 0 || scan.byte_before(start) == b'\n';
    if !is_line_start {
        return false;
    }
    let before = scan.text_before(start, MAX_TABLE_BYTES);
    let head = before.rfind("\n---").and_then(|rule| before.get(..rule)).unwrap_or_default();
    let head = head.rsplit('\n').next().unwrap_or_default();
    head.starts_with("Key ") && head.trim_ascii_end().ends_with(" Value")
}

/// Returns whether the name is in an entry of a `.netrc`, which may have one line or several.
fn is_netrc(scan: &SecretScan<'_>, start: usize) -> bool {
    let before = scan.text_before(start, MAX_NETRC_BYTES);
    let entry = before.rfind("machine ").and_then(|at| before.get(at..));
    entry.is_some_and(|entry| entry.contains("login "))
}

/// Returns whether a value under a name of this strength looks like a secret. UUIDs do only if
/// `may_be_uuid` is true.
pub(super) fn is_secret(
    value: &str,
    strength: Strength,
    is_quoted: bool,
    may_be_uuid: bool,
) -> bool {
    if value.len() < 8
        || value.bytes().any(|byte| byte <= b' ' || byte == 0x7f)
        || is_placeholder(value)
        || is_name(value)
        || is_field(value)
    {
        return false;
    }
    if is_uuid(value) {
        return may_be_uuid;
    }
    match strength {
        Strength::Weak => false,
        Strength::Secret => is_random(value),
        Strength::Password => is_random(value) || is_mixed(value, is_quoted) || is_signed(value),
    }
}

/// Masks the random values of a list, or the one on the next line.
fn mask_listed_values(scan: &mut SecretScan<'_>, list_start: usize, name: &str) {
    let Some((kind, Strength::Secret | Strength::Password)) =
        announced_secret(name.trim_end_matches('s'))
    else {
        return;
    };
    let mut at = list_start;
    for _ in 0..MAX_LISTED_VALUES {
        let Some(value) = read_value(scan, at, ValueLink::Set, false) else { return };
        let text = scan.slice(value.start, value.end);
        if !is_secret(text, Strength::Secret, value.is_quoted, false) {
            return;
        }
        scan.add_secret_of(value.start, value.end, kind);
        at = scan
            .skip_while(value.end, MAX_BETWEEN_BYTES, |byte| b"\\\"'`, \t\r\n-".contains(&byte));
        if at == value.end {
            return;
        }
    }
}

/// Returns the end of a name that continues in another word: `API Key`, `Secret Token`.
fn extended_name_end(scan: &SecretScan<'_>, end: usize) -> usize {
    if scan.byte(end) != b' ' {
        return end;
    }
    for word in ["key", "token", "access key"] {
        let next = end + 1 + word.len();
        if scan.slice(end + 1, next).eq_ignore_ascii_case(word)
            && !scan.byte(next).is_ascii_alphanumeric()
        {
            return next;
        }
    }
    end
}

/// Returns start and end of the name around `at`.
fn name_around(scan: &SecretScan<'_>, at: usize) -> (usize, usize) {
    let mut start = scan.run_start(at, MAX_NAME_BYTES, is_name_byte);
    // The letter of an escape is not part of the name: `\nTOKEN=`.
    if start < at && scan.is_escape_letter(start) {
        start += 1;
    }
    let start = scan.skip_while(start, at - start, |byte| byte == b'-');
    (start, scan.skip_while(at, MAX_NAME_BYTES, is_name_byte))
}
