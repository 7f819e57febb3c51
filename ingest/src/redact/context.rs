//! Masks secrets that are recognized by the text around them: passwords in addresses, authorization
//! headers, cookies.

use super::encoded::is_encoded_login;
use super::entropy::{is_field, is_mixed, is_odd, is_placeholder, is_random};
use super::pattern::LazyRegex;
use super::scan::{SecretScan, is_quote};
use super::value::find_value_start;
use super::wrapped;
use crate::text::names::is_uuid;

/// Maximum length in bytes of the part of an address before its path.
const MAX_AUTHORITY_BYTES: usize = 512;

/// Maximum length of a credential in bytes.
const MAX_CREDENTIAL_BYTES: usize = 8192;

/// The scheme of an `Authorization` header. The group matches only the scheme with a login in
/// base64.
static SCHEME: LazyRegex = LazyRegex::at_start(
    r"(?i-u:Bearer|(Basic)|Token|Bot|ApiKey|Api-Key|Digest|GenieKey|SSWS|Key)(?:[ \t]|%20|\\{0,2}\r?\n|\\{1,2}n)+",
);

/// Name and value of a cookie in a header.
static COOKIE: LazyRegex = LazyRegex::at_start(r#"([A-Za-z0-9_.%-]{1,64})=([^\s;"'`\\<>,]+)"#);

/// The opening of a list of cookies.
static COOKIE_LIST: LazyRegex = LazyRegex::at_start(r#"(?i-u:cookies)\\{0,3}["']\s*:\s*\["#);

/// One cookie of a list.
static LISTED_COOKIE: LazyRegex = LazyRegex::at_start(
    r#"[^{}\]]*\{[^{}]*?["']name\\{0,3}["']\s*:\s*\\{0,3}["']([^"'\\]{1,64})\\{0,3}["'][^{}]*?["']value\\{0,3}["']\s*:\s*\\{0,3}["']([^"'\\\s]+)[^{}]*\}"#,
);

/// Maximum length in bytes of an object in a list of cookies.
const MAX_COOKIE_BYTES: usize = 4 << 10;

/// Number of bytes that are read of a list of cookies.
const MAX_LIST_BYTES: usize = 64 << 10;

/// Parts of the names of cookies that give access to a session.
#[rustfmt::skip]
const SESSIONS: &[&str] = &[
    "sess", "sid", "auth", "token", "csrf", "xsrf", "jwt", "login", "remember", "secure",
    "clearance",
];

/// The ways to write the end of a scheme, whose slashes may be escaped as in JSON.
const SCHEME_ENDS: &[&str] = &["://", r":\/\/", r":\\/\\/"];

/// Masks the password in `scheme://user:password@host`. `at` is where `://` begins, or the byte before
/// it.
pub(super) fn mask_address_password(scan: &mut SecretScan<'_>, at: usize) {
    let at = if scan.byte(at) == b':' { at } else { at + 1 };
    let Some(sign) = SCHEME_ENDS.iter().find(|sign| scan.has_text_at(at, sign)) else { return };
    let start = at + sign.len();
    let end =
        scan.skip_while(start, MAX_AUTHORITY_BYTES, |byte| !b" \t\r\n\"'`<>\\/?#".contains(&byte));
    let Some((login, host)) = scan.slice(start, end).rsplit_once('@') else {
        return mask_unescaped_password(scan, at, start);
    };
    if !host.starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '[' | '$')) {
        return;
    }
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    if host.contains("sentry") && is_sentry_key(user) {
        scan.add_secret_of(start, start + login.len(), "sentry_dsn");
    } else if matches!(password, "" | "x-oauth-basic") {
        // Some services take the token as the user.
        if user.len() >= 20 && is_random(user) && !is_placeholder(user) {
            scan.add_secret(start, start + user.len());
        }
    } else if password.len() >= 4
        && password != user
        && !is_placeholder(password)
        && !password.contains(['(', ')', '{', '}', '|'])
        && (!password.contains([',', ';']) || has_store_scheme(scan, at) && !is_port(password))
    {
        let password_at = start + user.len() + 1;
        scan.add_secret(password_at, start + login.len());
    }
}

/// Returns whether a user name is a key of Sentry: 32 hexadecimal digits.
fn is_sentry_key(user: &str) -> bool {
    user.len() == 32 && user.bytes().all(|byte| byte.is_ascii_hexdigit())
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

/// Returns whether one of [`STORES`] is the scheme before `at`.
fn has_store_scheme(scan: &SecretScan<'_>, at: usize) -> bool {
    let scheme = scan.run_start(at, 12, |byte| byte.is_ascii_alphanumeric());
    STORES.contains(&scan.slice(scheme, at))
}

/// Returns whether the text after a colon is a port: `host:5432/...`, `HOST:PORT/...`. It may
/// contain the rest of the address.
fn is_port(password: &str) -> bool {
    let digits = password.bytes().take_while(u8::is_ascii_digit).count();
    let is_word = password.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("port"));
    let end = if is_word { 4 } else { digits };
    (is_word || (2..=5).contains(&digits))
        && password[end..].chars().next().is_none_or(|c| matches!(c, '/' | '?' | '#' | ',' | ';'))
}

/// Masks an unescaped password with signs that an address should escape:
/// `postgres://user:pass/word@host`.
fn mask_unescaped_password(scan: &mut SecretScan<'_>, at: usize, start: usize) {
    if !has_store_scheme(scan, at) {
        return;
    }
    let end =
        scan.skip_while(start, MAX_AUTHORITY_BYTES, |byte| !b" \t\r\n\"'`<>\\".contains(&byte));
    let Some((login, host)) = scan.slice(start, end).rsplit_once('@') else { return };
    let Some((user, password)) = login.split_once(':') else { return };
    if password.len() >= 4
        && user.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
        && host.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !is_port(password)
        && !is_placeholder(password)
        && !password.contains(['(', ')', '{', '}', '|'])
    {
        let password_at = start + user.len() + 1;
        scan.add_secret(password_at, start + login.len());
    }
}

/// The escapes in an encoded address, in lower case.
struct EncodedSigns {
    /// `://`
    scheme_end: &'static str,
    /// `:`
    colon: &'static str,
    /// `@`
    at_sign: &'static str,
    /// `/`, `?` and `#`, one of which may follow the host.
    path_starts: [&'static str; 3],
}

/// The escapes of an address that is a part of another one.
const ENCODED: EncodedSigns = EncodedSigns {
    scheme_end: "%3a%2f%2f",
    colon: "%3a",
    at_sign: "%40",
    path_starts: ["%2f", "%3f", "%23"],
};

/// The escapes of an address that is a part of an encoded one.
const TWICE_ENCODED: EncodedSigns = EncodedSigns {
    scheme_end: "%253a%252f%252f",
    colon: "%253a",
    at_sign: "%2540",
    path_starts: ["%252f", "%253f", "%2523"],
};

/// Masks the password in an address that is a part of another one:
/// `postgres%3A%2F%2Fuser%3Apassword%40host`. `at` is where the encoded `://` begins.
pub(super) fn mask_encoded_password(scan: &mut SecretScan<'_>, at: usize) {
    let signs = if scan.has_text_at(at, "%25") { &TWICE_ENCODED } else { &ENCODED };
    let start = at + signs.scheme_end.len();
    let mut end = scan.skip_while(start, MAX_AUTHORITY_BYTES, is_authority_byte);
    while scan.byte(end) == b'%'
        && end - start < MAX_AUTHORITY_BYTES
        && !is_path_start(scan, end, signs)
    {
        end = scan.skip_while(end + 1, MAX_AUTHORITY_BYTES, is_authority_byte);
    }

    let authority = scan.slice(start, end);
    let lower = authority.to_ascii_lowercase();
    let Some(colon) = lower.find(signs.colon) else { return };
    let Some(sign) = lower.rfind(signs.at_sign) else { return };
    let password_start = colon + signs.colon.len();
    let password = authority.get(password_start..sign).unwrap_or_default();
    let host_start = sign + signs.at_sign.len();
    if password.len() >= 4
        && authority.get(..colon) != Some(password)
        && lower.as_bytes().get(host_start).is_some_and(u8::is_ascii_alphanumeric)
        && !is_placeholder(password)
        && !["%7b", "%24", "%3c", "%257b", "%2524", "%253c"]
            .iter()
            .any(|hole| password.to_ascii_lowercase().starts_with(hole))
    {
        scan.add_secret(start + password_start, start + sign);
    }
}

/// Returns whether an encoded address may contain the byte before its path, apart from `%`.
fn is_authority_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.~+!*-".contains(&byte)
}

/// Returns whether the escape at `at` is that of the `/`, `?` or `#` after the host of an encoded
/// address.
fn is_path_start(scan: &SecretScan<'_>, at: usize, signs: &EncodedSigns) -> bool {
    let is_at = |start: &str| scan.slice(at, at + start.len()).eq_ignore_ascii_case(start);
    signs.path_starts.into_iter().any(is_at)
}

/// Masks the value of `Authorization: Bearer ...`, also if it is a field of code or JSON. `at` is
/// where the name begins.
pub(super) fn mask_authorization(scan: &mut SecretScan<'_>, at: usize) {
    let Some(value_start) = find_value_start(scan, at, at + "authorization".len()) else { return };
    let scheme_start = skip_opening_quote(scan, value_start);
    let scheme = SCHEME.captures(scan.text_from(scheme_start, 64));
    let start =
        scheme_start + scheme.as_ref().and_then(|found| found.get(0)).map_or(0, |all| all.len());
    if scheme.as_ref().is_some_and(|found| found.get(1).is_some()) {
        return mask_encoded_login(scan, start);
    }
    let (end, value) = read_credential(scan, start);
    let is_header = scheme.is_some() || is_random(value);
    if is_header && (is_uuid(value) || is_secret(value)) && !is_code_at(scan, end) {
        let end = wrapped::continued_end(scan, end, is_credential_byte, is_secret);
        scan.add_secret(start, end);
    }
}

/// Masks the value of `Bearer ...` in any context.
pub(super) fn mask_bearer_token(scan: &mut SecretScan<'_>, at: usize) {
    let start = scan.skip_while(at + "bearer ".len(), 2, |byte| byte == b' ');
    let (end, value) = read_credential(scan, start);
    if value.len() >= 16 && !is_uuid(value) && is_secret(value) && !is_code_at(scan, end) {
        let end = wrapped::continued_end(scan, end, is_credential_byte, is_secret);
        scan.add_secret(start, end);
    }
}

/// Masks the value of `Basic ...` in any context. It is user and password in base64.
pub(super) fn mask_basic_login(scan: &mut SecretScan<'_>, at: usize) {
    mask_encoded_login(scan, at + "basic ".len());
}

/// Masks the user and password in base64 that begin at `start`.
fn mask_encoded_login(scan: &mut SecretScan<'_>, start: usize) {
    let end = scan.skip_while(start, MAX_CREDENTIAL_BYTES, is_credential_byte);
    let value = scan.slice(start, end);
    if value.len() >= 8 && is_encoded_login(value) {
        scan.add_secret_of(start, end, "basic_auth");
    }
}

/// Masks the values of cookies that give access: `Cookie: a=b; c=d`, `Set-Cookie: a=b; Path=/`,
/// `--cookie 'a=b'`.
pub(super) fn mask_cookies(scan: &mut SecretScan<'_>, at: usize) {
    if scan.byte_before(at).is_ascii_alphanumeric() {
        return;
    }
    if let Some(list) = COOKIE_LIST.captures(scan.text_from(at, 40)) {
        return mask_cookie_list(scan, at + list.get(0).map_or(0, |opening| opening.len()));
    }
    let is_set_cookie = scan.slice(at.saturating_sub(4), at).eq_ignore_ascii_case("set-");
    let Some(value_start) = find_value_start(scan, at, at + "cookie".len()) else { return };
    let at = skip_opening_quote(scan, value_start);
    mask_cookie_pairs(scan, at, is_set_cookie);
}

/// Number of bytes of a `curl` command in which cookies are searched.
const MAX_CURL_BYTES: usize = 1000;

/// The flag of `curl` before cookies, up to their opening quote.
static CURL_COOKIES: LazyRegex =
    LazyRegex::at_start(r#"(?s)curl\s(?:[^|;&]*?\s)?-[a-zA-Z]{0,4}b\s*\\{0,3}["']?"#);

/// Masks the cookies in `curl -b 'session=...'`. The command begins at `at`.
pub(super) fn mask_curl_cookies(scan: &mut SecretScan<'_>, at: usize) {
    let command = scan.text_from(at, MAX_CURL_BYTES);
    if let Some(flag) = CURL_COOKIES.captures(command).and_then(|found| found.get(0)) {
        mask_cookie_pairs(scan, at + flag.len(), false);
    }
}

/// Masks the cookies that begin at `start` and give access. In the header `Set-Cookie`, only the
/// first pair is a cookie.
fn mask_cookie_pairs(scan: &mut SecretScan<'_>, start: usize, is_set_cookie: bool) {
    let mut at = start;
    while let Some(found) = COOKIE.captures(scan.text_from(at, MAX_CREDENTIAL_BYTES)) {
        let Some(name) = found.get(1) else { return };
        let Some(value) = found.get(2) else { return };
        let end = at + value.end();
        if is_session_cookie(name.as_str(), value.as_str()) {
            scan.add_secret(at + value.start(), end);
        }
        if is_set_cookie || scan.byte(end) != b';' {
            return;
        }
        at = scan.skip_while(end + 1, 2, |byte| byte == b' ');
    }
}

/// Returns whether the value of a cookie gives access to a session.
fn is_session_cookie(name: &str, value: &str) -> bool {
    if is_placeholder(value) || is_field(value) {
        return false;
    }
    if is_random(value) {
        return true;
    }
    let name = name.to_ascii_lowercase();
    SESSIONS.iter().any(|part| name.contains(part)) && value.len() >= 8 && is_odd(value)
}

/// Masks the values in a list of cookies as browsers save it:
/// `"cookies":[{"name":"sid","value":"..."}]`. The first object of the list begins after `at`.
fn mask_cookie_list(scan: &mut SecretScan<'_>, at: usize) {
    // The objects of a list within another were examined with the outer one.
    if at < scan.cookies_end {
        return;
    }
    let end = at + MAX_LIST_BYTES;
    scan.cookies_end = at;
    loop {
        let at = scan.cookies_end;
        let window = scan.text_from(at, MAX_COOKIE_BYTES.min(end.saturating_sub(at)));
        let Some(found) = LISTED_COOKIE.captures(window) else { return };
        let Some(all) = found.get(0) else { return };
        let Some(name) = found.get(1) else { return };
        let Some(value) = found.get(2) else { return };
        if is_session_cookie(name.as_str(), value.as_str()) {
            scan.add_secret(at + value.start(), at + value.end());
        }
        scan.cookies_end = at + all.end();
    }
}

/// A line of a file of cookies of `curl` and browsers, from the second field on. The groups are name
/// and value.
static SAVED_COOKIE: LazyRegex = LazyRegex::at_start(
    r"\t(?:TRUE|FALSE)\t/[^\t\n]{0,200}\t(?:TRUE|FALSE)\t[0-9]{1,12}\t([^\t\n]{1,64})\t(\S+)",
);

/// Masks a cookie in a file of cookies if it gives access. `at` is where the second field begins.
pub(super) fn mask_saved_cookie(scan: &mut SecretScan<'_>, at: usize) {
    let Some(found) = SAVED_COOKIE.captures(scan.text_from(at, MAX_COOKIE_BYTES)) else { return };
    let Some(name) = found.get(1) else { return };
    let Some(value) = found.get(2) else { return };
    if is_session_cookie(name.as_str(), value.as_str()) {
        scan.add_secret(at + value.start(), at + value.end());
    }
}

/// Returns the position after an opening quote, which may be escaped, or `at` if there is none.
fn skip_opening_quote(scan: &SecretScan<'_>, at: usize) -> usize {
    let quote = scan.skip_while(at, 3, |byte| byte == b'\\');
    if is_quote(scan.byte(quote)) { quote + 1 } else { at }
}

/// Returns end and text of the credential that begins at `start`, without punctuation at its end.
fn read_credential<'a>(scan: &SecretScan<'a>, start: usize) -> (usize, &'a str) {
    let end = scan.skip_while(start, MAX_CREDENTIAL_BYTES, is_credential_byte);
    let value = scan.slice(start, end).trim_end_matches(['.', ':', ',']);
    (start + value.len(), value)
}

/// Returns whether a credential may contain the byte.
fn is_credential_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~+/=:-".contains(&byte)
}

/// Returns whether the byte at `end` shows that the value before it is a piece of code or of a
/// template.
fn is_code_at(scan: &SecretScan<'_>, end: usize) -> bool {
    matches!(scan.byte(end), b'(' | b'[' | b'{' | b'<' | b'$')
}

/// Returns whether a credential looks like a secret.
fn is_secret(value: &str) -> bool {
    value.len() >= 8
        && !is_placeholder(value)
        && !is_field(value)
        && (is_random(value) || (value.len() < 16 && is_mixed(value, false)))
}
