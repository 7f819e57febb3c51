//! Finds the value that belongs to a name, in any quoting and escaping: in code, settings, command
//! lines and sentences.

use super::paired::find_paired_value;
use super::scan::{SecretScan, is_blank, is_identifier_byte, is_quote, is_variable_byte};

/// Maximum length of a name in bytes.
pub(super) const MAX_NAME_BYTES: usize = 64;

/// Maximum length of a value in bytes.
const MAX_VALUE_BYTES: usize = 4096;

/// Maximum number of blanks between two parts of a setting.
pub(super) const MAX_BETWEEN_BYTES: usize = 40;

/// Phrases between a secret's name and the secret in a sentence.
const LINKING_PHRASES: &[&str] = &[
    " is now ",
    " is set to ",
    " is: ",
    " is ",
    " was changed to ",
    " was set to ",
    " was ",
    " to ",
    " ist ",
    " lautet ",
    " est ",
    " es ",
    "是",
    "は",
];

/// Verbs before a name in a sentence that changes its value.
const CHANGING_VERBS: &[&str] = &["set ", "change", "reset", "rotate", "update"];

/// Text that a dialogue prints after a name whose value is not set yet.
const UNSET: &str = " [None]";

/// The full-width colon of Chinese and Japanese.
const WIDE_COLON: &str = "：";

/// Number of bytes before the name in which the verbs of [`CHANGING_VERBS`] are searched.
const VERB_WINDOW_BYTES: usize = 40;

/// Words before the name in commands that set its value.
const SETTING_COMMANDS: &[&str] = &[" set ", "setx ", " -gx "];

/// Words before the name in files and shells that set a variable without a sign.
const VARIABLE_COMMANDS: &[&str] = &["ENV ", "set -x ", "set -gx ", "set -Ux ", "set -lx "];

/// Calls that wrap a text in code.
const WRAPPERS: &[&str] = &[
    "String::from(",
    "Some(",
    "SecretString::from(",
    "SecretString::new(",
    "Secret::new(",
    "SecretStr(",
    "new String(",
    "Buffer.from(",
    "Arc::from(",
    "json.dumps(",
];

/// The way a value follows its name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueLink {
    /// `name = value`, `name: value`, `--name value`.
    Set,
    /// `("name", value)`.
    Argument,
    /// `<name>value</name>`.
    Element,
    /// `aws configure set name value`.
    Command,
    /// `ENV NAME value` in a Dockerfile, `set -x NAME value` in the shell `fish`.
    Variable,
    /// `name: [value, value]`, and over several lines.
    Below,
    /// `the password is value`.
    Prose,
    /// `setPassword("value")`.
    Call,
    /// `with password value`, and columns.
    Bare,
}

/// The position of a value, and whether it is in quotes. The quotes are not part of it.
pub(super) struct ValueSpan {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) is_quoted: bool,
}

/// Returns where the value of the name from `start` to `end` begins.
pub(super) fn find_value_start(scan: &SecretScan<'_>, start: usize, end: usize) -> Option<usize> {
    find_linked_value(scan, start, end).map(|(value_start, _)| value_start)
}

/// Returns where the value of the name from `start` to `end` begins, and how it follows the name.
pub(super) fn find_linked_value(
    scan: &SecretScan<'_>,
    start: usize,
    end: usize,
) -> Option<(usize, ValueLink)> {
    let decoration_end = skip_decoration(scan, end);
    let mut at = scan.skip_while(decoration_end, 3, |byte| byte == b'\\');
    let is_quoted = is_quote(scan.byte(at));
    if is_quoted {
        at += 1;
    } else if at != decoration_end {
        return None;
    }
    if let Some(value_start) = find_paired_value(scan, start, at) {
        return Some((value_start, ValueLink::Set));
    }
    // `environ["NAME"] = ...`, `getenv("NAME") or ...`
    let is_closed = scan.byte(at) == b']' || is_quoted && scan.byte(at) == b')';
    if is_closed {
        at += 1;
    }

    let is_code = !is_quoted || is_closed;
    let sign = scan.skip_while(at, MAX_BETWEEN_BYTES, is_blank);
    let next = scan.byte(sign + 1);
    match scan.byte(sign) {
        b'=' if matches!(next, b'=' | b'~') => None,
        b'=' => {
            let length = if next == b'>' { 2 } else { 1 };
            Some(assigned_value_start(scan, after_sign(scan, sign + length)))
        }
        b':' => {
            // `a::b`, `urn:a:b`
            let is_path_part = scan.byte_before(start) == b':'
                && scan.byte_before(start - 1).is_ascii_alphanumeric();
            if next == b':' || is_path_part {
                return None;
            }
            // `:=` of Go, `${NAME:-value}` of shells
            let length = if matches!(next, b'=' | b'-') { 2 } else { 1 };
            let sign_end = after_sign(scan, sign + length);
            let set_at = if is_quoted { sign_end } else { skip_type(scan, sign_end) };
            Some(assigned_value_start(scan, set_at))
        }
        b',' if is_quoted => Some((after_sign(scan, sign + 1), ValueLink::Argument)),
        // `env.NAME || "..."`, `env.NAME ?? "..."`, `environ.get("NAME") or "..."`
        b'|' | b'?' if is_code && next == scan.byte(sign) => {
            Some((after_sign(scan, sign + 2), ValueLink::Argument))
        }
        b'o' if is_code && sign > at && scan.has_text_at(sign, "or ") => {
            Some((after_sign(scan, sign + 3), ValueLink::Argument))
        }
        b'>' if !is_quoted && scan.byte_before(start) == b'<' => {
            Some((sign + 1, ValueLink::Element))
        }
        b'(' if !is_quoted && is_quote(next) => Some((sign + 1, ValueLink::Call)),
        // Settings of SQL, C and Gradle: `PASSWORD '...'`
        quote if is_quote(quote) && quote != b'`' && !is_quoted && sign > at => {
            Some((sign, ValueLink::Argument))
        }
        _ if scan.has_text_at(sign, WIDE_COLON) => {
            Some((after_sign(scan, sign + WIDE_COLON.len()), ValueLink::Set))
        }
        _ if is_quoted => None,
        _ => find_value_without_sign(scan, start, at, sign),
    }
}

/// Returns the position after marks that are part of neither the name nor the sign.
fn skip_decoration(scan: &SecretScan<'_>, end: usize) -> usize {
    let mut end = end;
    // `**Password**: ...`
    if scan.has_text_at(end, "**") {
        end += "**".len();
    }
    // `AWS Secret Access Key [None]: ...`
    if scan.has_text_at(end, UNSET) {
        end += UNSET.len();
    }
    end
}

/// Returns the position after the blanks that follow a sign.
fn after_sign(scan: &SecretScan<'_>, sign_end: usize) -> usize {
    let blanks_end = scan.skip_while(sign_end, MAX_BETWEEN_BYTES, is_blank);
    // `**Password:** ...`
    if scan.has_text_at(blanks_end, "**") {
        scan.skip_while(blanks_end + 2, 8, is_blank)
    } else {
        blanks_end
    }
}

/// Returns where the value begins if no sign separates it from the name that ends at `name_end`, and how
/// it follows the name. `blanks_end` is the position after blanks.
fn find_value_without_sign(
    scan: &SecretScan<'_>,
    name_start: usize,
    name_end: usize,
    blanks_end: usize,
) -> Option<(usize, ValueLink)> {
    let is_flag = scan.has_text_before(name_start, "--");
    if is_flag && scan.byte(name_end) == b'\n' {
        // The next word of a list of words.
        let dash = scan.skip_while(name_end + 1, MAX_BETWEEN_BYTES, is_blank);
        return scan.has_text_at(dash, "- ").then_some((dash + 2, ValueLink::Set));
    }

    let phrase = LINKING_PHRASES
        .iter()
        .find(|phrase| scan.slice(name_end, name_end + phrase.len()).eq_ignore_ascii_case(phrase));
    if let Some(phrase) = phrase {
        let is_sentence = !is_flag && (*phrase != " to " || has_verb_before(scan, name_start));
        return is_sentence.then_some((name_end + phrase.len(), ValueLink::Prose));
    }

    if blanks_end == name_end {
        return None;
    }
    let link = if is_flag {
        ValueLink::Set
    } else if is_set_variable(scan, name_start, name_end) {
        ValueLink::Variable
    } else if SETTING_COMMANDS.iter().any(|command| scan.has_text_before(name_start, command)) {
        ValueLink::Command
    } else {
        ValueLink::Bare
    };
    Some((blanks_end, link))
}

/// Returns whether the name is that of a variable after one of [`VARIABLE_COMMANDS`].
fn is_set_variable(scan: &SecretScan<'_>, start: usize, end: usize) -> bool {
    VARIABLE_COMMANDS.iter().any(|command| scan.has_text_before(start, command))
        && scan.slice(start, end).bytes().all(is_variable_byte)
}

/// Returns whether one of [`CHANGING_VERBS`] is before the name that begins at `start`.
fn has_verb_before(scan: &SecretScan<'_>, start: usize) -> bool {
    let before = scan.slice(start.saturating_sub(VERB_WINDOW_BYTES), start).to_lowercase();
    CHANGING_VERBS.iter().any(|verb| before.contains(verb))
}

/// Returns where the value begins that is set at `set_at`: there, in a list, or on the next line.
fn assigned_value_start(scan: &SecretScan<'_>, set_at: usize) -> (usize, ValueLink) {
    // `[`, and the signs of a folded text in YAML
    let open = scan.skip_while(set_at, 2, |byte| matches!(byte, b'[' | b'>' | b'|' | b'-'));
    let is_below = matches!(scan.byte(open), b'\n' | b'\r') || scan.byte(set_at) == b'[';
    if !is_below {
        return (set_at, ValueLink::Set);
    }
    let first_item = scan.skip_while(open, MAX_BETWEEN_BYTES, |byte| b" \t\r\n-".contains(&byte));
    (first_item, ValueLink::Below)
}

/// Returns the position after a type (`KEY: &str = "..."`), or `type_start` if there is none.
fn skip_type(scan: &SecretScan<'_>, type_start: usize) -> usize {
    let sign = scan.skip_while(type_start, 48, |byte| {
        byte.is_ascii_alphanumeric() || b"&'<>[]|.? _".contains(&byte)
    });
    let quote = scan.skip_while(sign + 1, 4, is_blank);
    if sign > type_start && scan.byte(sign) == b'=' && is_quote(scan.byte(quote)) {
        quote
    } else {
        type_start
    }
}

/// Returns the value that begins at `value_start`. Returns `None` if it is code or too long, or if it is
/// inside a value in which many others began that were not secrets ([`SecretScan::value_end`]).
pub(super) fn read_value(
    scan: &mut SecretScan<'_>,
    value_start: usize,
    link: ValueLink,
    in_query: bool,
) -> Option<ValueSpan> {
    if link == ValueLink::Element {
        let end =
            scan.skip_while(value_start, MAX_VALUE_BYTES, |byte| !matches!(byte, b'<' | b'\n'));
        let value = ValueSpan { start: value_start, end, is_quoted: true };
        return (scan.byte(end) == b'<').then_some(value);
    }

    let wrapper = WRAPPERS.iter().find(|word| scan.has_text_at(value_start, word));
    let content_start = value_start + wrapper.map_or(0, |word| word.len());
    // `b"..."`, `r"..."`
    let prefix =
        scan.skip_while(content_start, 2, |byte| matches!(byte | 0x20, b'b' | b'r' | b'u'));
    let quote = scan.skip_while(prefix, 3, |byte| byte == b'\\');
    if is_quote(scan.byte(quote)) {
        let end = closing_quote(scan, quote, quote - prefix)?;
        return Some(ValueSpan { start: quote + 1, end, is_quoted: true });
    }
    if wrapper.is_some() {
        return None;
    }

    let mut end = scan.value_end(content_start, MAX_VALUE_BYTES, |byte| {
        !(is_value_end(byte) || in_query && byte == b'&')
            && (link != ValueLink::Prose || byte.is_ascii())
    })?;
    // The first pair of a form: `password=...&next=/`.
    if let Some(pair) = pair_end(scan.slice(content_start, end)) {
        return Some(ValueSpan {
            start: content_start,
            end: content_start + pair,
            is_quoted: false,
        });
    }
    let is_code = match scan.byte(end) {
        b'<' => scan.byte(end + 1) != b'/',
        next => matches!(next, b'(' | b'[' | b'{'),
    };
    if is_app_id(scan, content_start, end) {
        end = scan.skip_while(end + 1, MAX_VALUE_BYTES, |byte| !is_value_end(byte));
    }
    if end - content_start == MAX_VALUE_BYTES || is_code {
        return None;
    }
    while end > content_start && matches!(scan.byte_before(end), b'.' | b':') {
        end -= 1;
    }
    Some(ValueSpan { start: content_start, end, is_quoted: false })
}

/// Returns whether the value is the number of an app before its secret, as in tokens of Facebook:
/// `1234567890123456|...`.
fn is_app_id(scan: &SecretScan<'_>, start: usize, end: usize) -> bool {
    (13..=17).contains(&(end - start))
        && scan.byte(end) == b'|'
        && scan.slice(start, end).bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a byte ends an unquoted value. This is a `match` instead of a search in a list
/// because a text full of settings spends most of its time here.
#[rustfmt::skip]
fn is_value_end(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b'`' | b',' | b';' | b'\\' | b'|'
            | b'<' | b'>' | b'(' | b')' | b'{' | b'}' | b'[' | b']'
    )
}

/// Returns where the next pair of a form begins: `...&name=`.
fn pair_end(text: &str) -> Option<usize> {
    memchr::memchr_iter(b'&', text.as_bytes()).find(|at| {
        let name = text.as_bytes().get(at + 1..).unwrap_or_default();
        let bytes = name.iter().take(MAX_NAME_BYTES);
        let length = bytes.take_while(|byte| is_identifier_byte(**byte)).count();
        length > 0 && name.get(length) == Some(&b'=')
    })
}

/// Returns the end of the quoted text whose opening quote is at `quote`, after `slashes`
/// backslashes. If the quoted text is cut off, it ends where the whole text ends.
fn closing_quote(scan: &SecretScan<'_>, quote: usize, slashes: usize) -> Option<usize> {
    let sign = scan.byte(quote);
    let start = quote + 1;
    let mut at = start;
    while at - start <= MAX_VALUE_BYTES {
        at = scan.skip_while(at, MAX_VALUE_BYTES, |byte| byte != sign && byte != b'\n');
        if at == scan.len() {
            return (at > start).then_some(at);
        }
        if scan.byte(at) != sign {
            return None;
        }
        let mut before = at;
        while before > start && scan.byte_before(before) == b'\\' {
            before -= 1;
        }
        let escapes = at - before;
        if slashes == 0 && escapes & 1 == 0 {
            return Some(at);
        }
        if slashes > 0 && escapes <= slashes {
            return Some(before);
        }
        at += 1;
    }
    None
}
