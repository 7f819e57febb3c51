//! Masks private keys and encrypted files that are not PEM: the members of JSON Web Keys and of keys in
//! the XML of .NET, the numbers that `openssl rsa -text` prints, and the body of files that Ansible
//! encrypted.
//!
//! ```text
//! {"kty":"EC","crv":"P-256","x":"...","y":"...","d":"..."}
//! privateExponent:                   $ANSIBLE_VAULT;1.1;AES256
//!     13:d3:0a:...                   33363965326261303234653839326337...
//! ```

use super::entropy::is_placeholder;
use super::pattern::LazyRegex;
use super::scan::{SecretScan, is_blank};

/// Number of bytes that are searched on each side of `"kty"`. An RSA key with 4096 bits has about
/// 3,200.
const MAX_MEMBER_DISTANCE_BYTES: usize = 4 << 10;

/// A private member of a key. `k` is private only in symmetric keys, whose type is `oct`.
static WEB_MEMBER: LazyRegex = LazyRegex::anywhere(
    r#"\\{0,3}["'](d|p|q|dp|dq|qi|k)\\{0,3}["']\s{0,8}:\s{0,8}\\{0,3}["']([A-Za-z0-9_=-]{16,1500})\\{0,3}["']"#,
);

/// Masks the private members of the key whose type is at `at`.
pub(super) fn mask_web_key(scan: &mut SecretScan<'_>, at: usize) {
    if at < scan.web_key_end {
        return;
    }
    let before = scan.text_before(at, MAX_MEMBER_DISTANCE_BYTES);
    // The window is twice as long for the types that follow before `web_key_end`.
    let after = scan.text_from(at, 2 * MAX_MEMBER_DISTANCE_BYTES);
    let open = before.rfind('{').unwrap_or(before.len());
    let close = after.find('}');
    let start = at - before.len() + open;
    let end = at + close.unwrap_or(after.len());
    scan.web_key_end = close.map_or(at + MAX_MEMBER_DISTANCE_BYTES, |close| at + close);

    let key = scan.slice(start, end);
    let is_symmetric = key.contains("oct");
    for found in WEB_MEMBER.captures_iter(key) {
        let Some(name) = found.get(1) else { continue };
        let Some(value) = found.get(2) else { continue };
        if (name.as_str() == "k") == is_symmetric && !is_placeholder(value.as_str()) {
            scan.add_secret(start + value.start(), start + value.end());
        }
    }
}

/// Maximum number of bytes of a number in hexadecimal digits, with the blanks between its lines. The
/// longest numbers, of keys with 8192 bits, have about 4,000.
const MAX_NUMBER_BYTES: usize = 8 << 10;

/// Minimum number of bytes of a private number. Shorter ones are examples.
const MIN_NUMBER_PAIRS: usize = 16;

/// Maximum number of bytes between two lines of a number.
const MAX_BREAK_BYTES: usize = 24;

/// Maximum number of bytes of the name of a private number.
const MAX_NUMBER_NAME_BYTES: usize = 20;

/// Masks the hexadecimal digits after the name of a private number at `at`.
pub(super) fn mask_hex_number(scan: &mut SecretScan<'_>, at: usize) {
    let name_end = scan.skip_while(at, MAX_NUMBER_NAME_BYTES, |byte| byte != b':') + 1;
    let start = skip_line_break(scan, name_end);
    if start == name_end || start < scan.key_end {
        return;
    }
    let mut at = start;
    let mut end = start;
    let mut pairs = 0;
    while at - start < MAX_NUMBER_BYTES && is_hex_pair(scan, at) {
        pairs += 1;
        end = at + 2;
        if scan.byte(end) != b':' {
            break;
        }
        at = end + 1;
        if !is_hex_pair(scan, at) {
            at = skip_line_break(scan, at);
        }
    }
    scan.key_end = scan.key_end.max(end);
    if pairs >= MIN_NUMBER_PAIRS {
        scan.add_secret(start, end);
    }
}

/// Returns whether two hexadecimal digits and no third one are at `at`.
fn is_hex_pair(scan: &SecretScan<'_>, at: usize) -> bool {
    scan.byte(at).is_ascii_hexdigit()
        && scan.byte(at + 1).is_ascii_hexdigit()
        && !scan.byte(at + 2).is_ascii_hexdigit()
}

/// Returns the position after a line break, real or escaped, and the indentation of the next line.
/// Returns `at` if no line ends there.
fn skip_line_break(scan: &SecretScan<'_>, at: usize) -> usize {
    let line_end = scan.skip_while(at, MAX_BREAK_BYTES, |byte| is_blank(byte) || byte == b'\r');
    let next_line = match scan.byte(line_end) {
        b'\n' => line_end + 1,
        b'\\' if scan.byte(line_end + 1) == b'n' => line_end + 2,
        _ => return at,
    };
    scan.skip_while(next_line, MAX_BREAK_BYTES, is_blank)
}

/// Number of bytes of an RSA key in XML that are examined. One with 4096 bits has about 3,500.
const MAX_XML_BYTES: usize = 8 << 10;

/// A private member of a key.
static XML_MEMBER: LazyRegex =
    LazyRegex::anywhere(r"<(?:P|Q|DP|DQ|InverseQ|D)>\s{0,80}([A-Za-z0-9+/=\s]{16,3000}?)\s{0,80}<");

/// Masks the private members of the key whose element begins at `at`.
pub(super) fn mask_xml_key(scan: &mut SecretScan<'_>, at: usize) {
    if at < scan.key_end {
        return;
    }
    let text = scan.text_from(at, MAX_XML_BYTES);
    let key = text.split("RSAKeyValue>").nth(1).unwrap_or_default();
    let key_start = at + "<RSAKeyValue>".len();
    scan.key_end = key_start + key.len();
    for found in XML_MEMBER.captures_iter(key) {
        let Some(value) = found.get(1) else { continue };
        let (start, end) = (key_start + value.start(), key_start + value.end());
        scan.add_secret(start, end);
    }
}

/// Minimum number of digits in a line other than the last one.
const MIN_VAULT_LINE_DIGITS: usize = 32;

/// Maximum number of bytes between two lines: a line break, an indentation and a line number.
const MAX_VAULT_GAP_BYTES: usize = 64;

/// Maximum length of a body in bytes.
const MAX_VAULT_BYTES: usize = 64 << 10;

/// Masks the lines after the header at `at`.
pub(super) fn mask_vault_body(scan: &mut SecretScan<'_>, at: usize) {
    let header = scan.text_from(at, 80);
    let length = header.find(['\n', '\\', '"', ' ']).unwrap_or(header.len());
    let header_end = at + length;

    let mut start = header_end;
    let mut end = header_end;
    let mut line_start = header_end;
    while line_start - end <= MAX_VAULT_GAP_BYTES
        && line_start - header_end < MAX_VAULT_BYTES
        && line_start < scan.len()
    {
        let run_end = scan.skip_while(line_start, MAX_VAULT_BYTES, |byte| byte.is_ascii_hexdigit());
        if run_end - line_start >= MIN_VAULT_LINE_DIGITS {
            if end == header_end {
                start = line_start;
            }
            end = run_end;
        }
        line_start = run_end + 1;
    }

    // The last line may be shorter than the others.
    let last = scan.skip_while(end, MAX_VAULT_GAP_BYTES, |byte| byte.is_ascii_whitespace());
    let last_end = scan.skip_while(last, MIN_VAULT_LINE_DIGITS, |byte| byte.is_ascii_hexdigit());
    let is_line = last_end > last && matches!(scan.byte(last_end), 0 | b'\n' | b'\r');
    if end > start && last > end && is_line {
        end = last_end;
    }

    scan.add_secret(start, end);
}
