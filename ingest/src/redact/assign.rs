//! Values that stand under a name: `API_KEY=...`, `"password": "..."`, `--token ...`,
//! `<secret>...</secret>`, in any quoting and escaping.

use super::entropy::{
    is_encoded_login, is_field, is_mixed, is_name, is_numbered, is_placeholder, is_random,
    is_signed, is_uuid,
};
use super::env;
use super::names::{Strength, sound};
use super::scan::{MASK, Rank, Scan, is_quote};

/// Longest names and values.
const MAX_NAME: usize = 64;
const MAX_VALUE: usize = 4096;

/// Values of one list, and what stands between two of them.
const MOST_LISTED: usize = 64;
const MAX_BETWEEN: usize = 40;

/// What stands in a sentence between a secret's name and the secret.
const IS: &[&str] = &[
    " is now ",
    " is set to ",
    " is: ",
    " is ",
    " was changed to ",
    " was set to ",
    " was ",
    " to ",
];

/// Verbs before a name that something is set to.
const SETS: &[&str] = &["set ", "change", "reset", "rotate", "update"];

/// How far before the name they are looked for.
const MAX_VERB: usize = 40;

/// What sentences about secrets name instead of secrets.
const METHODS: &[&str] = &[
    "sha1",
    "sha2",
    "sha5",
    "md5",
    "pbkdf",
    "bcrypt",
    "scrypt",
    "argon",
    "aes1",
    "aes2",
    "hmac",
    "wpa",
    "bip39",
    "pkcs",
    "utf8",
    "base64",
    "varchar",
    "1password",
    "character",
    "x509",
    "rsa",
];

/// What code wraps a text in.
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

/// How a value follows its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Link {
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
}

/// A value: where it stands, and whether in quotes.
struct Value {
    start: usize,
    end: usize,
    quoted: bool,
}

/// Masks the value under the name in which a word of secrets stands at `at`.
pub(super) fn find(scan: &mut Scan<'_>, at: usize) {
    let at = if is_quote(scan.byte(at)) { at + 1 } else { at };
    let (start, end) = name(scan, at);
    let end = with_key(scan, end);
    // A name may hold several such words.
    if end <= scan.name_end {
        return;
    }
    scan.name_end = end;
    // The kind of a placeholder is no name, or every `[REDACTED:token] = x` would begin a chain.
    if scan.slice(start.saturating_sub(MASK.len()), start) == MASK {
        return;
    }
    let Some((from, link)) = value_begins(scan, start, end) else { return };
    let name = scan.slice(start, end);
    if link == Link::Below {
        return list(scan, from, name);
    }
    let is_flag = scan.slice(start.saturating_sub(2), start) == "--";
    let flag = Some(("password", Strength::Password)).filter(|_| is_flag && name == "pass");
    let Some((kind, strength)) = sound(name).or(flag) else { return };
    if let Some((from, to)) = env::value(scan, start, end) {
        if env::is_secret(scan.slice(from, to), strength) {
            scan.add(from, to, kind, Rank::Named);
        }
        return;
    }
    let in_query = matches!(scan.before(start), b'?' | b'&');
    let Some(value) = value(scan, from, link, in_query) else { return };
    if link == Link::Argument && !value.quoted {
        return;
    }
    let text = scan.slice(value.start, value.end);
    if link == Link::Prose && is_of_sentence(text) {
        return;
    }
    let secret = if kind == "basic_auth" {
        (value.quoted || name.starts_with('_')) && text.len() >= 12 && is_encoded_login(text)
    } else {
        // Keys of some services are UUIDs.
        let of_uuids = kind == "heroku_key" || name.to_ascii_lowercase().ends_with("_authtoken");
        let strength = if link == Link::Command { Strength::Secret } else { strength };
        let is_upper =
            |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        // `PGPASSWORD=tundra109 psql`
        let is_variable = name.bytes().all(is_upper) && from == end + 1 && scan.byte(end) == b'=';
        is_secret(text, strength, value.quoted, of_uuids)
            || (strength == Strength::Password
                && (value.quoted || is_variable || link == Link::Prose)
                && is_numbered(text)
                && !is_placeholder(text))
    };
    if secret {
        scan.add(value.start, value.end, kind, Rank::Named);
    }
}

/// Whether a word belongs to a sentence about secrets: a method, the name of a thing in a cluster.
fn is_of_sentence(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let is_slug = lower == word && word.contains('-');
    is_slug || METHODS.iter().any(|method| lower.contains(method))
}

fn is_secret(value: &str, strength: Strength, quoted: bool, of_uuids: bool) -> bool {
    if value.len() < 8
        || value.bytes().any(|byte| byte <= b' ' || byte == 0x7f)
        || is_placeholder(value)
        || is_name(value)
        || is_field(value)
    {
        return false;
    }
    if is_uuid(value) {
        return of_uuids;
    }
    match strength {
        Strength::Weak => false,
        Strength::Secret => is_random(value),
        Strength::Password => is_random(value) || is_mixed(value, quoted) || is_signed(value),
    }
}

/// Masks the random values of a list, or the one that stands on the next line.
fn list(scan: &mut Scan<'_>, from: usize, name: &str) {
    let Some((kind, Strength::Secret | Strength::Password)) = sound(name.trim_end_matches('s'))
    else {
        return;
    };
    let mut at = from;
    for _ in 0..MOST_LISTED {
        let Some(value) = value(scan, at, Link::Set, false) else { return };
        let text = scan.slice(value.start, value.end);
        if !is_secret(text, Strength::Secret, value.quoted, false) {
            return;
        }
        scan.add(value.start, value.end, kind, Rank::Named);
        at = scan.skip(value.end, MAX_BETWEEN, |byte| b"\\\"'`, \t\r\n-".contains(&byte));
        if at == value.end {
            return;
        }
    }
}

/// Where a name ends that goes on in another word: `API Key`, `Secret Token`.
fn with_key(scan: &Scan<'_>, end: usize) -> usize {
    let is_more = |word: &str| {
        let next = end + 1 + word.len();
        scan.byte(end) == b' '
            && scan.slice(end + 1, next).eq_ignore_ascii_case(word)
            && !scan.byte(next).is_ascii_alphanumeric()
    };
    let more = ["key", "token"].into_iter().find(|word| is_more(word));
    more.map_or(end, |word| end + 1 + word.len())
}

/// Start and end of the name around `at`.
fn name(scan: &Scan<'_>, at: usize) -> (usize, usize) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let mut start = at;
    while at - start < MAX_NAME && is_part(scan.before(start)) {
        start -= 1;
    }
    // The letter of an escape is no part of the name: `\nTOKEN=`.
    if start < at && scan.before(start) == b'\\' && matches!(scan.byte(start), b'n' | b'r' | b't') {
        start += 1;
    }
    while start < at && scan.byte(start) == b'-' {
        start += 1;
    }
    let mut end = at;
    while end - at < MAX_NAME && is_part(scan.byte(end)) {
        end += 1;
    }
    (start, end)
}

/// Where the value of the name begins that stands there.
pub(super) fn value_after(scan: &Scan<'_>, start: usize, end: usize) -> Option<usize> {
    value_begins(scan, start, end).map(|(from, _)| from)
}

/// Where the value of a name begins, and how it follows.
fn value_begins(scan: &Scan<'_>, start: usize, end: usize) -> Option<(usize, Link)> {
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
    let sign = scan.skip(at, 8, is_blank);
    let next = scan.byte(sign + 1);
    let after = |length: usize| {
        let from = scan.skip(sign + length, 8, is_blank);
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
            (is_given && !quoted && sign > at).then_some((sign, link))
        }
    }
}

/// The value that is set at `from`, or a list of values, or what stands on the next line.
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

/// Where the value begins in `"NAME", "value": ...`, `key="NAME" value=...` and, over two lines,
/// `name: NAME`, `value: ...`.
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

/// Skips a type: `KEY: &str = "..."`.
fn behind_type(scan: &Scan<'_>, from: usize) -> usize {
    let is_type = |byte: u8| byte.is_ascii_alphanumeric() || b"&'<>[]|.? _".contains(&byte);
    let sign = scan.skip(from, 48, is_type);
    let quote = scan.skip(sign + 1, 4, is_blank);
    if sign > from && scan.byte(sign) == b'=' && is_quote(scan.byte(quote)) { quote } else { from }
}

/// The value that begins at `from`; `None` when it is code, or too long.
fn value(scan: &Scan<'_>, from: usize, link: Link, in_query: bool) -> Option<Value> {
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
    let is_end =
        |byte: u8| b" \t\r\n\"'`,;<>(){}[]|\\".contains(&byte) || (in_query && byte == b'&');
    let mut end = scan.skip(from, MAX_VALUE, |byte| !is_end(byte));
    // The first pair of a form: `password=...&next=/`.
    if let Some(pair) = pair_end(scan.slice(from, end)) {
        return Some(Value { start: from, end: from + pair, quoted: false });
    }
    if end - from == MAX_VALUE || matches!(scan.byte(end), b'(' | b'[' | b'{' | b'<') {
        return None;
    }
    while end > from && matches!(scan.before(end), b'.' | b':') {
        end -= 1;
    }
    Some(Value { start: from, end, quoted: false })
}

/// Where another pair of a form follows: `...&name=`.
fn pair_end(text: &str) -> Option<usize> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    memchr::memchr_iter(b'&', text.as_bytes()).find(|at| {
        let name = text.as_bytes().get(at + 1..).unwrap_or_default();
        let length = name.iter().take(MAX_NAME).take_while(|byte| is_part(byte)).count();
        length > 0 && name.get(length) == Some(&b'=')
    })
}

/// Where the text in quotes ends that opens at `quote` behind so many backslashes. A text that is
/// cut off ends with the whole.
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

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
