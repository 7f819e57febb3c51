//! Masks values under a name: `API_KEY=...`, `"password": "..."`, `--token ...`,
//! `<secret>...</secret>`, in any quoting and escaping.

use super::entropy::{
    is_encoded_login, is_field, is_mixed, is_name, is_numbered, is_placeholder, is_random,
    is_signed, is_uuid,
};
use super::env;
use super::names::{FOREIGN, Strength, sound};
use super::placeholder::MASK;
use super::scan::{Rank, Scan, is_quote};
use super::value::{Link, MAX_BETWEEN, MAX_NAME, is_blank, value, value_begins};
use super::words::Words;

/// Fewest characters of a random value under any variable whose name ends in `_KEY`.
const LONG_KEY: usize = 24;

/// Most bytes between the beginning of an entry of a `.netrc` and the name of its password.
const NETRC: usize = 160;

/// Most values of one list that are masked.
const MOST_LISTED: usize = 64;

/// Words of methods and formats that sentences about secrets name instead of a secret.
static METHODS: Words = Words::new(&[
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
]);

/// Masks the value of the name around `at`, where a word that announces a secret was found.
pub(super) fn find(scan: &mut Scan<'_>, at: usize) {
    let at = if is_quote(scan.byte(at)) { at + 1 } else { at };
    let foreign = FOREIGN.iter().find(|word| scan.slice(at, at + word.len()) == **word);
    let (start, end) = foreign.map_or_else(|| name(scan, at), |word| (at, at + word.len()));
    let end = with_key(scan, end);
    // A name may hold several such words.
    if end <= scan.name_end {
        return;
    }
    scan.name_end = end;
    // The kind in a placeholder is not a name, or every `[REDACTED:token] = x` would begin a chain.
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
        let text = scan.slice(from, to);
        if env::is_secret(text, strength) && !tells_of(text, name, strength, false) {
            scan.add(from, to, kind, Rank::Named);
        }
        return;
    }
    let in_query = matches!(scan.before(start), b'?' | b'&');
    let Some(value) = value(scan, from, link, in_query) else { return };
    if matches!(link, Link::Argument | Link::Call) && !value.quoted {
        return;
    }
    let text = scan.slice(value.start, value.end);
    let is_plain = match link {
        Link::Prose => is_of_sentence(text),
        Link::Call => !is_signed(text) && !is_random(text),
        // `#` begins the number of an issue.
        Link::Bare => {
            let is_known = is_signed(text) || is_drawn(text) || is_netrc(scan, start);
            !is_known || is_of_sentence(text) || text.starts_with('#')
        }
        Link::Set | Link::Argument | Link::Element | Link::Command | Link::Below => false,
    };
    let is_upper = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    let is_loud = name.bytes().all(is_upper);
    if is_plain || tells_of(text, name, strength, !is_loud) {
        return;
    }
    let secret = if kind == "basic_auth" {
        (value.quoted || name.starts_with('_')) && text.len() >= 12 && is_encoded_login(text)
    } else {
        // Keys of some services are UUIDs.
        let of_uuids = is_uuid(text) && (kind == "heroku_key" || may_be_uuid(name, is_loud));
        let strength = if link == Link::Command { Strength::Secret } else { strength };
        // `PGPASSWORD=tundra109 psql`
        let is_variable = is_loud && from == end + 1 && scan.byte(end) == b'=';
        // `POSTGRES_PASSWORD: barnacle`
        let is_setting = is_loud && scan.slice(end, end + 2) == ": ";
        is_secret(text, strength, value.quoted, of_uuids)
            || (strength == Strength::Password
                && (value.quoted
                    || is_variable
                    || is_flag
                    || link == Link::Prose
                    || is_line(scan, start, end, value.end))
                && is_numbered(text)
                && !is_placeholder(text))
            || (strength == Strength::Password
                && (is_variable || is_setting)
                && is_given(scan, start, is_variable, text))
            || (strength == Strength::Password
                && is_joined(scan, start, end, is_flag)
                && is_word(text))
            || (strength == Strength::Weak
                && (is_variable || is_loud && value.quoted)
                && text.len() >= LONG_KEY
                && is_secret(text, Strength::Secret, value.quoted, of_uuids))
    };
    if secret {
        scan.add(value.start, value.end, kind, Rank::Named);
    }
}

/// Whether a UUID under such a name is a key: `EXA_API_KEY`, `client_secret`, `RAILWAY_TOKEN`.
fn may_be_uuid(name: &str, is_loud: bool) -> bool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    let ends = |ends: &[&str]| ends.iter().any(|end| plain.ends_with(end));
    ends(&["apikey", "clientsecret", "secretkey"])
        || name.to_ascii_lowercase().ends_with("_authtoken")
        || is_loud && name.ends_with("_TOKEN")
}

/// Whether a variable is given a word as its password: `PGPASSWORD=barnacle psql`, and in YAML.
fn is_given(scan: &Scan<'_>, start: usize, is_set: bool, word: &str) -> bool {
    const GIVES: &[&str] = &[
        "export ", "-e ", "-e \"", "-e '", "--env ", "ENV ", ": ", "&& ", "; ", "|| ", "sudo ",
        "env ",
    ];
    let mut line = start;
    while !is_set && start - line < MAX_BETWEEN && is_blank(scan.before(line)) {
        line -= 1;
    }
    let begins = line == 0 || scan.before(line) == b'\n';
    let gives = |words: &[&str]| {
        words.iter().any(|word| scan.slice(start.saturating_sub(word.len()), start) == *word)
    };
    (begins || is_set && gives(GIVES)) && is_word(word)
}

/// Whether `name: value` is a line of YAML.
fn is_line(scan: &Scan<'_>, start: usize, end: usize, to: usize) -> bool {
    let before = scan.lead(start, MAX_BETWEEN);
    let indent = before.rsplit('\n').next().unwrap_or_default();
    scan.slice(end, end + 2) == ": "
        && indent.bytes().all(|byte| is_blank(byte) || byte == b'-')
        && (to == scan.len() || matches!(scan.byte(to), b'\n' | b'\r'))
}

/// Whether a value can be a password that is a plain word.
fn is_word(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii_graphic())
        && !is_field(value)
        && env::is_secret(value, Strength::Password)
}

/// Whether `name=` is in a place where a program reads it: in `--password=barnacle`, or after
/// another pair of a form or of a connection (`User Id=mira;Password=barnacle`,
/// `user=mira password=barnacle`).
fn is_joined(scan: &Scan<'_>, start: usize, end: usize, is_flag: bool) -> bool {
    if scan.byte(end) != b'=' || is_blank(scan.byte(end + 1)) {
        return false;
    }
    let before = scan.lead(start, MAX_BETWEEN);
    let by = match before.as_bytes() {
        _ if is_flag => return true,
        [.., by @ (b'&' | b';' | b' ')] => char::from(*by),
        _ => return false,
    };
    let pair = before.trim_end_matches(by).rsplit([by, '\'', '"']).next();
    let Some((name, value)) = pair.and_then(|pair| pair.split_once('=')) else { return false };
    let name = name.to_ascii_lowercase();
    // Query strings of pages also pass other things under such a name.
    let is_login = || ["user", "login", "mail", "name"].iter().any(|end| name.ends_with(end));
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_. -".contains(&byte);
    !name.is_empty()
        && name.bytes().all(is_part)
        && !value.is_empty()
        && !value.ends_with(',')
        && (by != '&' || is_login())
}

/// Whether a value of twenty or more characters is drawn from all letters and digits. Neither words
/// of a sentence nor digests are.
fn is_drawn(value: &str) -> bool {
    let has = |fits: fn(&u8) -> bool| value.bytes().any(|byte| fits(&byte));
    value.len() >= 20
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_digit)
        && is_random(value)
}

/// Whether the name is in an entry of a `.netrc`, which may have one line or several.
fn is_netrc(scan: &Scan<'_>, start: usize) -> bool {
    let before = scan.lead(start, NETRC);
    before
        .rfind("machine ")
        .is_some_and(|at| before.get(at..).is_some_and(|entry| entry.contains("login ")))
}

/// Whether a word belongs to a sentence about secrets: a method, or the name of a thing in a
/// cluster.
fn is_of_sentence(word: &str) -> bool {
    let is_slug = word.contains('-') && !word.bytes().any(|byte| byte.is_ascii_uppercase());
    is_slug || is_mail(word) || names_method(word)
}

/// Whether a word is a mail address: `mira2@harbor.example`.
fn is_mail(word: &str) -> bool {
    let is_part = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'_')
    };
    word.split_once('@').is_some_and(|(user, host)| {
        host.contains('.') && user.bytes().chain(host.bytes()).all(is_part)
    })
}

/// Whether a value names a secret but is not one: `password: Argon2idHash`, `TOKEN=token`, and in
/// code `password: password_field_2`.
fn tells_of(value: &str, name: &str, strength: Strength, in_code: bool) -> bool {
    let names_one = |word: &str| {
        let lower = word.to_ascii_lowercase();
        let names_another = ["password", "passwd", "pwd_"].iter().any(|name| lower.contains(name));
        names_method(word) || in_code && names_another
    };
    value.eq_ignore_ascii_case(name)
        || (strength == Strength::Password && !is_signed(value) && names_one(value))
}

/// Whether a word names a method of making or storing secrets.
fn names_method(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    METHODS.any_in(&lower)
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

/// Masks the random values of a list, or the one on the next line.
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

/// Returns the end of a name that continues in another word: `API Key`, `Secret Token`.
fn with_key(scan: &Scan<'_>, end: usize) -> usize {
    let is_more = |word: &str| {
        let next = end + 1 + word.len();
        scan.byte(end) == b' '
            && scan.slice(end + 1, next).eq_ignore_ascii_case(word)
            && !scan.byte(next).is_ascii_alphanumeric()
    };
    let more = ["key", "token", "access key"].into_iter().find(|word| is_more(word));
    more.map_or(end, |word| end + 1 + word.len())
}

/// Returns start and end of the name around `at`.
fn name(scan: &Scan<'_>, at: usize) -> (usize, usize) {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let mut start = at;
    while at - start < MAX_NAME && is_part(scan.before(start)) {
        start -= 1;
    }
    // The letter of an escape is not part of the name: `\nTOKEN=`.
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
