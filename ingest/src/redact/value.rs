//! Finds the value that belongs to a name, in any quoting and escaping: in code, settings, command
//! lines and sentences.

use super::scan::{Scan, is_quote};

/// Longest names and values, in bytes.
pub(super) const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 4096;

/// Most blanks between two parts of a setting, in bytes.
pub(super) const MAX_BETWEEN: usize = 40;

/// Phrases between a secret's name and the secret in a sentence.
const IS: &[&str] = &[
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
const SETS: &[&str] = &["set ", "change", "reset", "rotate", "update"];

/// Text that a dialogue prints after a name whose value is not set yet.
const UNSET: &str = " [None]";

/// The full-width colon of Chinese and Japanese.
const WIDE_COLON: &str = "：";

/// How many bytes before the name the verbs of [`SETS`] are searched.
const MAX_VERB: usize = 40;

/// Calls that code wraps a text in.
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
pub(super) enum Link {
    /// `name = value`, `name: value`, `--name value`.
    Set,
    /// `("name", value)`.
    Argument,
    /// `<name>value</name>`.
    Element,
    /// `aws configure set name value`.
    Command,
    /// `name: [value, value]`, and over several lines.
    Below,
    /// `the password is value`.
    Prose,
    /// `setPassword("value")`.
    Call,
    /// `with password value`, and columns.
    Bare,
}

/// The position of a value, and whether it is in quotes.
pub(super) struct Value {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) quoted: bool,
}

/// Returns where the value of the name from `start` to `end` begins.
pub(super) fn value_after(scan: &Scan<'_>, start: usize, end: usize) -> Option<usize> {
    value_begins(scan, start, end).map(|(from, _)| from)
}

/// Returns where the value of the name from `start` to `end` begins, and how it follows the name.
pub(super) fn value_begins(scan: &Scan<'_>, start: usize, end: usize) -> Option<(usize, Link)> {
    // `**Password**: ...`
    let end = if scan.slice(end, end + 2) == "**" { end + 2 } else { end };
    // `AWS Secret Access Key [None]: ...`
    let end = if scan.slice(end, end + UNSET.len()) == UNSET { end + UNSET.len() } else { end };
    let mut at = scan.skip(end, 3, |byte| byte == b'\\');
    let quoted = is_quote(scan.byte(at));
    if quoted {
        at += 1;
    } else if at != end {
        return None;
    }
    if let Some(from) = value_key(scan, at) {
        return Some((from, Link::Set));
    }
    // `environ["NAME"] = ...`, `getenv("NAME") or ...`
    let behind = scan.byte(at) == b']' || quoted && scan.byte(at) == b')';
    if behind {
        at += 1;
    }
    let is_code = !quoted || behind;
    let sign = scan.skip(at, MAX_BETWEEN, is_blank);
    let next = scan.byte(sign + 1);
    let after = |length: usize| {
        let from = scan.skip(sign + length, MAX_BETWEEN, is_blank);
        // `**Password:** ...`
        if scan.slice(from, from + 2) == "**" { scan.skip(from + 2, 8, is_blank) } else { from }
    };
    match scan.byte(sign) {
        b'=' if matches!(next, b'=' | b'~') => None,
        b'=' => Some(set(scan, after(if next == b'>' { 2 } else { 1 }))),
        b':' => {
            // `a::b`, `urn:a:b`
            let in_path =
                scan.before(start) == b':' && scan.before(start - 1).is_ascii_alphanumeric();
            if next == b':' || in_path {
                return None;
            }
            // `:=` of Go, `${NAME:-value}` of shells
            let from = after(if matches!(next, b'=' | b'-') { 2 } else { 1 });
            Some(set(scan, if quoted { from } else { behind_type(scan, from) }))
        }
        b',' if quoted => Some((after(1), Link::Argument)),
        // `env.NAME || "..."`, `env.NAME ?? "..."`, `environ.get("NAME") or "..."`
        b'|' | b'?' if is_code && next == scan.byte(sign) => Some((after(2), Link::Argument)),
        b'o' if is_code && sign > at && scan.slice(sign, sign + 3) == "or " => {
            Some((after(3), Link::Argument))
        }
        b'>' if !quoted && scan.before(start) == b'<' => Some((sign + 1, Link::Element)),
        b'(' if !quoted && is_quote(next) => Some((sign + 1, Link::Call)),
        // Settings of SQL, C and Gradle: `PASSWORD '...'`
        quote if is_quote(quote) && quote != b'`' && !quoted && sign > at => {
            Some((sign, Link::Argument))
        }
        _ if scan.slice(sign, sign + WIDE_COLON.len()) == WIDE_COLON => {
            Some((after(WIDE_COLON.len()), Link::Set))
        }
        _ => {
            let flag = scan.slice(start.saturating_sub(2), start) == "--";
            if flag && !quoted && scan.byte(at) == b'\n' {
                // The next word of a list of words.
                let dash = scan.skip(at + 1, MAX_BETWEEN, is_blank);
                return (scan.slice(dash, dash + 2) == "- ").then_some((dash + 2, Link::Set));
            }
            let is = |word: &&&str| scan.slice(at, at + word.len()).eq_ignore_ascii_case(word);
            if let Some(word) = IS.iter().find(is) {
                let before = || scan.slice(start.saturating_sub(MAX_VERB), start).to_lowercase();
                let told = **word != *" to " || SETS.iter().any(|verb| before().contains(verb));
                return (!quoted && !flag && told).then(|| (at + word.len(), Link::Prose));
            }
            let is_set =
                |command: &str| scan.slice(start.saturating_sub(command.len()), start) == command;
            let link = if flag { Link::Set } else { Link::Command };
            let is_given = flag || [" set ", "setx ", " -gx "].into_iter().any(is_set);
            let link = if is_given { link } else { Link::Bare };
            (!quoted && sign > at).then_some((sign, link))
        }
    }
}

/// Returns where the value begins that is set at `from`: there, in a list, or on the next line.
fn set(scan: &Scan<'_>, from: usize) -> (usize, Link) {
    // `[`, and the signs of a folded text in YAML
    let open = scan.skip(from, 2, |byte| matches!(byte, b'[' | b'>' | b'|' | b'-'));
    let is_below = matches!(scan.byte(open), b'\n' | b'\r') || scan.byte(from) == b'[';
    if !is_below {
        return (from, Link::Set);
    }
    let begins = scan.skip(open, MAX_BETWEEN, |byte| b" \t\r\n-".contains(&byte));
    (begins, Link::Below)
}

/// Returns where the value begins in `"NAME", "value": ...`, in `key="NAME" value=...` and, over
/// two lines, in `name: NAME`, `value: ...`.
fn value_key(scan: &Scan<'_>, at: usize) -> Option<usize> {
    let comma = scan.skip(at, 1, |byte| byte == b',');
    let word = scan.skip(comma, 40, |byte| is_blank(byte) || matches!(byte, b'\r' | b'\n'));
    if word == at {
        return None;
    }
    let quote = |at| {
        let at = scan.skip(at, 3, |byte| byte == b'\\');
        scan.skip(at, 1, is_quote)
    };
    let word = quote(word);
    let end = word + "value".len();
    if !scan.slice(word, end).eq_ignore_ascii_case("value") {
        return None;
    }
    let sign = scan.skip(quote(end), 4, is_blank);
    matches!(scan.byte(sign), b':' | b'=').then(|| scan.skip(sign + 1, 4, is_blank))
}

/// Returns the position after a type (`KEY: &str = "..."`), or `from` if there is none.
fn behind_type(scan: &Scan<'_>, from: usize) -> usize {
    let is_type = |byte: u8| byte.is_ascii_alphanumeric() || b"&'<>[]|.? _".contains(&byte);
    let sign = scan.skip(from, 48, is_type);
    let quote = scan.skip(sign + 1, 4, is_blank);
    if sign > from && scan.byte(sign) == b'=' && is_quote(scan.byte(quote)) { quote } else { from }
}

/// Returns the value that begins at `from`. Returns `None` if it is code or too long, or if it is
/// inside a value in which many others began that were not secrets ([`Scan::value_end`]).
pub(super) fn value(scan: &mut Scan<'_>, from: usize, link: Link, in_query: bool) -> Option<Value> {
    if link == Link::Element {
        let end = scan.skip(from, MAX_VALUE, |byte| !matches!(byte, b'<' | b'\n'));
        return (scan.byte(end) == b'<').then_some(Value { start: from, end, quoted: true });
    }
    let wrapper = WRAPPERS.iter().find(|word| scan.slice(from, from + word.len()) == **word);
    let from = from + wrapper.map_or(0, |word| word.len());
    // `b"..."`, `r"..."`
    let prefix = scan.skip(from, 2, |byte| matches!(byte | 0x20, b'b' | b'r' | b'u'));
    let quote = scan.skip(prefix, 3, |byte| byte == b'\\');
    if is_quote(scan.byte(quote)) {
        let end = closing(scan, quote, quote - prefix)?;
        return Some(Value { start: quote + 1, end, quoted: true });
    }
    if wrapper.is_some() {
        return None;
    }
    let is_end = |byte: u8| {
        // This is a `match` instead of a search in a list because a text full of settings spends
        // most of its time here.
        matches!(
            byte,
            b' ' | b'\t'
                | b'\r'
                | b'\n'
                | b'"'
                | b'\''
                | b'`'
                | b','
                | b';'
                | b'\\'
                | b'|'
                | b'<'
                | b'>'
                | b'('
                | b')'
                | b'{'
                | b'}'
                | b'['
                | b']'
        ) || (in_query && byte == b'&')
            || (link == Link::Prose && !byte.is_ascii())
    };
    let mut end = scan.value_end(from, MAX_VALUE, |byte| !is_end(byte))?;
    // The first pair of a form: `password=...&next=/`.
    if let Some(pair) = pair_end(scan.slice(from, end)) {
        return Some(Value { start: from, end: from + pair, quoted: false });
    }
    let is_code = match scan.byte(end) {
        b'<' => scan.byte(end + 1) != b'/',
        next => matches!(next, b'(' | b'[' | b'{'),
    };
    if end - from == MAX_VALUE || is_code {
        return None;
    }
    while end > from && matches!(scan.before(end), b'.' | b':') {
        end -= 1;
    }
    Some(Value { start: from, end, quoted: false })
}

/// Returns where the next pair of a form begins: `...&name=`.
fn pair_end(text: &str) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    memchr::memchr_iter(b'&', text.as_bytes()).find(|at| {
        let name = text.as_bytes().get(at + 1..).unwrap_or_default();
        let length = name.iter().take(MAX_NAME).take_while(|byte| is_part(byte)).count();
        length > 0 && name.get(length) == Some(&b'=')
    })
}

/// Returns the end of the quoted text whose opening quote is at `quote`, after `slashes`
/// backslashes. If the quoted text is cut off, it ends where the whole text ends.
fn closing(scan: &Scan<'_>, quote: usize, slashes: usize) -> Option<usize> {
    let sign = scan.byte(quote);
    let start = quote + 1;
    let mut at = start;
    while at - start <= MAX_VALUE {
        at = scan.skip(at, MAX_VALUE, |byte| byte != sign && byte != b'\n');
        if at == scan.len() {
            return (at > start).then_some(at);
        }
        if scan.byte(at) != sign {
            return None;
        }
        let mut before = at;
        while before > start && scan.before(before) == b'\\' {
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

pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
