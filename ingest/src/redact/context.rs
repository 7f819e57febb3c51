//! Masks secrets that are recognized by the text around them: passwords in addresses, authorization
//! headers, cookies.

use super::entropy::{
    is_encoded_login, is_field, is_mixed, is_odd, is_placeholder, is_random, is_uuid,
};
use super::pattern::Pattern;
use super::scan::{Rank, Scan, is_quote};
use super::value::value_after;

/// Longest part of an address before its path, in bytes.
const MAX_AUTHORITY: usize = 512;

/// Longest credential, in bytes.
const MAX_CREDENTIAL: usize = 8192;

static SCHEME: Pattern = Pattern::new(
    r"(?i-u:Bearer|(Basic)|Token|Bot|ApiKey|Api-Key|Digest|GenieKey|SSWS|Key)(?: |%20)+",
);
static COOKIE: Pattern = Pattern::new(r#"([A-Za-z0-9_.%-]{1,64})=([^\s;"'`\\<>,]+)"#);

/// The opening of a list of cookies, and one cookie of it.
static COOKIE_LIST: Pattern = Pattern::new(r#"(?i-u:cookies)\\{0,3}["']\s*:\s*\["#);
static LISTED_COOKIE: Pattern = Pattern::new(
    r#"[^{}\]]*\{[^{}]*?["']name\\{0,3}["']\s*:\s*\\{0,3}["']([^"'\\]{1,64})\\{0,3}["'][^{}]*?["']value\\{0,3}["']\s*:\s*\\{0,3}["']([^"'\\\s]+)[^{}]*\}"#,
);

/// Longest object of a list of cookies, in bytes.
const MAX_COOKIE: usize = 4 << 10;

/// Longest list of cookies that is read, in bytes.
const MAX_LIST: usize = 64 << 10;

/// Parts of the names of cookies that give access to a session.
#[rustfmt::skip]
const SESSIONS: &[&str] = &[
    "sess", "sid", "auth", "token", "csrf", "xsrf", "jwt", "login", "remember", "secure",
    "clearance",
];

/// Masks the password in `scheme://user:password@host`. `at` is where `://` begins.
pub(super) fn address(scan: &mut Scan<'_>, at: usize) {
    let start = at + "://".len();
    let in_authority = |byte: u8| !b" \t\r\n\"'`<>\\/?#".contains(&byte);
    let end = scan.skip(start, MAX_AUTHORITY, in_authority);
    let Some((login, host)) = scan.slice(start, end).rsplit_once('@') else {
        return unescaped(scan, at, start);
    };
    if !host.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '[' | '$')) {
        return;
    }
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let is_key = |user: &str| user.len() == 32 && user.bytes().all(|byte| byte.is_ascii_hexdigit());
    if host.contains("sentry") && is_key(user) {
        scan.add(start, start + login.len(), "sentry_dsn", Rank::Around);
    } else if matches!(password, "" | "x-oauth-basic") {
        // Some services take the token as the user.
        if user.len() >= 20 && is_random(user) && !is_placeholder(user) {
            scan.add(start, start + user.len(), "url_password", Rank::Around);
        }
    } else if password.len() >= 4
        && password != user
        && !is_placeholder(password)
        && !password.contains(['(', ')', '{', '}', '|'])
        && (!password.contains([',', ';']) || is_store(scan, at) && !is_port(password))
    {
        let password_at = start + user.len() + 1;
        scan.add(password_at, start + login.len(), "url_password", Rank::Around);
    }
}

/// Schemes of databases and queues, whose addresses people write by hand.
const STORES: &[&str] = &[
    "postgres",
    "postgresql",
    "mysql",
    "mariadb",
    "mongodb",
    "srv",
    "redis",
    "rediss",
    "amqp",
    "amqps",
    "mssql",
    "sqlserver",
    "clickhouse",
    "psycopg2",
    "asyncpg",
    "pymysql",
];

/// Whether one of [`STORES`] is the scheme before `at`.
fn is_store(scan: &Scan<'_>, at: usize) -> bool {
    let mut scheme = at;
    while at - scheme < 12 && scan.before(scheme).is_ascii_alphanumeric() {
        scheme -= 1;
    }
    STORES.contains(&scan.slice(scheme, at))
}

/// Whether the text after a colon is a port: `host:5432/...`, `HOST:PORT/...`, and whatever else
/// may follow in an address.
fn is_port(password: &str) -> bool {
    let digits = password.bytes().take_while(u8::is_ascii_digit).count();
    let is_hole = password.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("port"));
    let end = if is_hole { 4 } else { digits };
    (is_hole || (2..=5).contains(&digits))
        && password[end..].chars().next().is_none_or(|c| matches!(c, '/' | '?' | '#' | ',' | ';'))
}

/// Masks an unescaped password with signs that an address should escape:
/// `postgres://user:pass/word@host`.
fn unescaped(scan: &mut Scan<'_>, at: usize, start: usize) {
    if !is_store(scan, at) {
        return;
    }
    let end = scan.skip(start, MAX_AUTHORITY, |byte| !b" \t\r\n\"'`<>\\".contains(&byte));
    let Some((login, host)) = scan.slice(start, end).rsplit_once('@') else { return };
    let Some((user, password)) = login.split_once(':') else { return };
    let is_word = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    if password.len() >= 4
        && is_word(user)
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !is_port(password)
        && !is_placeholder(password)
        && !password.contains(['(', ')', '{', '}', '|'])
    {
        let password_at = start + user.len() + 1;
        scan.add(password_at, start + login.len(), "url_password", Rank::Around);
    }
}

/// Masks the password in an address that is a part of another one:
/// `postgres%3A%2F%2Fuser%3Apassword%40host`. `at` is where the encoded `://` begins.
pub(super) fn encoded_address(scan: &mut Scan<'_>, at: usize) {
    let start = at + "%3A%2F%2F".len();
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_.~+!*-".contains(&byte);
    let is_path = |at: usize| {
        let sign = scan.slice(at, at + 3);
        ["%2f", "%3f", "%23"].iter().any(|path| sign.eq_ignore_ascii_case(path))
    };
    let mut end = scan.skip(start, MAX_AUTHORITY, is_part);
    while scan.byte(end) == b'%' && end - start < MAX_AUTHORITY && !is_path(end) {
        end = scan.skip(end + 1, MAX_AUTHORITY, is_part);
    }
    let authority = scan.slice(start, end);
    let lower = authority.to_ascii_lowercase();
    let (Some(colon), Some(sign)) = (lower.find("%3a"), lower.rfind("%40")) else { return };
    let password = authority.get(colon + 3..sign).unwrap_or_default();
    if password.len() >= 4
        && authority.get(..colon) != Some(password)
        && lower.as_bytes().get(sign + 3).is_some_and(u8::is_ascii_alphanumeric)
        && !is_placeholder(password)
        && !["%7b", "%24", "%3c"].iter().any(|hole| password.to_ascii_lowercase().starts_with(hole))
    {
        scan.add(start + colon + 3, start + sign, "url_password", Rank::Around);
    }
}

/// Masks the value of `Authorization: Bearer ...`, also if it is a field of code or JSON. `at` is
/// where the name begins.
pub(super) fn authorization(scan: &mut Scan<'_>, at: usize) {
    let Some(from) = value_after(scan, at, at + "authorization".len()) else { return };
    let from = behind_quote(scan, from);
    let scheme = SCHEME.at_start(scan.window(from, 64));
    let start = from + scheme.as_ref().and_then(|found| found.get(0)).map_or(0, |all| all.len());
    if scheme.as_ref().is_some_and(|found| found.get(1).is_some()) {
        return login(scan, start);
    }
    let (end, value) = credential(scan, start);
    let is_header = scheme.is_some() || is_random(value);
    if is_header && (is_uuid(value) || is_secret(value)) && !goes_on(scan, end) {
        scan.add(start, end, "authorization", Rank::Around);
    }
}

/// Masks the value of `Bearer ...` in any context.
pub(super) fn bearer(scan: &mut Scan<'_>, at: usize) {
    let start = scan.skip(at + "bearer ".len(), 2, |byte| byte == b' ');
    let (end, value) = credential(scan, start);
    if value.len() >= 16 && !is_uuid(value) && is_secret(value) && !goes_on(scan, end) {
        scan.add(start, end, "bearer_token", Rank::Around);
    }
}

/// Masks the value of `Basic ...` in any context. It is user and password in base64.
pub(super) fn basic(scan: &mut Scan<'_>, at: usize) {
    login(scan, at + "basic ".len());
}

fn login(scan: &mut Scan<'_>, start: usize) {
    let end = scan.skip(start, MAX_CREDENTIAL, is_credential);
    let value = scan.slice(start, end);
    if value.len() >= 8 && is_encoded_login(value) {
        scan.add(start, end, "basic_auth", Rank::Around);
    }
}

/// Masks the values of cookies that give access: `Cookie: a=b; c=d`, `Set-Cookie: a=b; Path=/`,
/// `--cookie 'a=b'`.
pub(super) fn cookie(scan: &mut Scan<'_>, at: usize) {
    if scan.before(at).is_ascii_alphanumeric() {
        return;
    }
    if let Some(list) = COOKIE_LIST.at_start(scan.window(at, 40)) {
        return cookie_list(scan, at + list.get(0).map_or(0, |opening| opening.len()));
    }
    let set = scan.slice(at.saturating_sub(4), at).eq_ignore_ascii_case("set-");
    let Some(from) = value_after(scan, at, at + "cookie".len()) else { return };
    let mut at = behind_quote(scan, from);
    while let Some(found) = COOKIE.at_start(scan.window(at, MAX_CREDENTIAL)) {
        let (Some(name), Some(value)) = (found.get(1), found.get(2)) else { return };
        let (start, end) = (at + value.start(), at + value.end());
        let (name, value) = (name.as_str().to_ascii_lowercase(), value.as_str());
        if opens_session(&name, value) {
            scan.add(start, end, "cookie", Rank::Around);
        }
        if set || scan.byte(end) != b';' {
            return;
        }
        at = scan.skip(end + 1, 2, |byte| byte == b' ');
    }
}

/// Whether the value of a cookie gives access to a session.
fn opens_session(name: &str, value: &str) -> bool {
    let opens = SESSIONS.iter().any(|part| name.contains(part));
    !is_placeholder(value)
        && !is_field(value)
        && (is_random(value) || (opens && value.len() >= 8 && is_odd(value)))
}

/// Masks the values in a list of cookies as browsers save it:
/// `"cookies":[{"name":"sid","value":"..."}]`. The first object of the list begins after `at`.
fn cookie_list(scan: &mut Scan<'_>, at: usize) {
    let end = at + MAX_LIST;
    let mut at = at;
    while let Some(found) =
        LISTED_COOKIE.at_start(scan.window(at, MAX_COOKIE.min(end.saturating_sub(at))))
    {
        let (Some(all), Some(name), Some(value)) = (found.get(0), found.get(1), found.get(2))
        else {
            return;
        };
        if opens_session(&name.as_str().to_ascii_lowercase(), value.as_str()) {
            scan.add(at + value.start(), at + value.end(), "cookie", Rank::Around);
        }
        at += all.end();
    }
}

/// Returns the position after an opening quote, which may be escaped, or `at` if there is none.
fn behind_quote(scan: &Scan<'_>, at: usize) -> usize {
    let quote = scan.skip(at, 3, |byte| byte == b'\\');
    if is_quote(scan.byte(quote)) { quote + 1 } else { at }
}

/// Returns end and text of the credential that begins at `start`, without punctuation at its end.
fn credential<'a>(scan: &Scan<'a>, start: usize) -> (usize, &'a str) {
    let end = scan.skip(start, MAX_CREDENTIAL, is_credential);
    let value = scan.slice(start, end).trim_end_matches(['.', ':', ',']);
    (start + value.len(), value)
}

fn is_credential(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~+/=:-".contains(&byte)
}

/// Whether the next byte shows that the value is a piece of code or of a template.
fn goes_on(scan: &Scan<'_>, end: usize) -> bool {
    matches!(scan.byte(end), b'(' | b'[' | b'{' | b'<' | b'$')
}

fn is_secret(value: &str) -> bool {
    value.len() >= 8
        && !is_placeholder(value)
        && !is_field(value)
        && (is_random(value) || (value.len() < 16 && is_mixed(value, false)))
}
